//! Where a container's server has its data directory and its socket.
//!
//! Where the daemon runs on the kernel that this program runs on, both are folders of this machine
//! ([`shares_folders`]): the data directory is copied there while the container starts, a third of a
//! second sooner than through the daemon, and lies on the disk that the embedded engine's lies on.
//! Elsewhere the data directory is unpacked into a volume, and the server is reached by a port.

use super::container::{Container, Reach};
use super::endpoint::Daemon;
use super::image::Image;
use super::template::{Packed, Template};
use crate::engine::cache::{RunDirectory, copy, own};
use crate::engine::system::is_root;
use crate::exit_code::Failure;
use std::io;
use std::path::{Path, PathBuf};

/// Whether a folder of this machine is the same folder in a container, with the same owners.
pub async fn shares_folders(daemon: &Daemon) -> bool {
    if !cfg!(target_os = "linux")
        || !daemon.is_here()
        || !daemon.endpoint.host.starts_with("unix://")
    {
        return false;
    }
    let Ok(about) = daemon.docker.info().await else {
        return false;
    };
    // Another kernel: a virtual machine. Other owners: a daemon without root, or one that maps users.
    let options = about.security_options.unwrap_or_default();
    let maps =
        (options.iter()).any(|option| option.contains("rootless") || option.contains("userns"));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    about.kernel_version.as_deref() == Some(kernel.trim()) && !maps
}

/// Where an image has its data directory: in a volume, below the folder that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    pub folder: String,
    pub below: PathBuf,
}

impl Inside {
    pub fn of(image: &Image) -> Self {
        Self::new(
            Path::new(&image.data),
            image.volume.as_deref().map(Path::new),
        )
    }

    fn new(data: &Path, volume: Option<&Path>) -> Self {
        let folder = volume.unwrap_or_else(|| data.parent().unwrap_or(data));
        let below = data.strip_prefix(folder).unwrap_or(Path::new(""));
        Self {
            folder: folder.display().to_string(),
            below: below.to_owned(),
        }
    }
}

/// The place of one container.
#[derive(Debug)]
pub struct Place {
    pub inside: Inside,
    /// The user that the server runs as, and that owns its files.
    pub owner: (u32, u32),
    shared: Option<Shared>,
}

#[derive(Debug)]
struct Shared {
    volume: PathBuf,
    socket: PathBuf,
}

/// In a run's folder; not the name that the embedded engine's data directory has.
const VOLUME: &str = "volume";
const SOCKET: &str = "socket";

impl Place {
    /// Makes the folders that are shared.
    pub fn new(image: &Image, template: &Template, run: &RunDirectory) -> io::Result<Self> {
        let shared = match template.packed {
            Packed::Tar(_) => None,
            Packed::Folder(_) => Some(Shared::new(run, template.owner)?),
        };
        Ok(Self {
            inside: Inside::of(image),
            owner: template.owner,
            shared,
        })
    }

    /// The folder of the server's socket, where there is one.
    pub fn socket(&self) -> Option<&Path> {
        self.shared.as_ref().map(|shared| shared.socket.as_path())
    }

    /// The folder of this machine that the data directory lies in.
    pub fn volume(&self) -> Option<&Path> {
        self.shared.as_ref().map(|shared| shared.volume.as_path())
    }

    /// A port of another machine's loopback interface is none of this one's.
    pub fn reach(&self, is_here: bool) -> Reach<'_> {
        match &self.shared {
            Some(shared) => Reach::Folders {
                volume: &shared.volume,
                at: &self.inside.folder,
                socket: &shared.socket,
            },
            None if is_here => Reach::Port,
            None => Reach::Nowhere,
        }
    }

    /// As a container's user is written. The image need not know it.
    pub fn user(&self) -> String {
        format!("{}:{}", self.owner.0, self.owner.1)
    }

    /// Puts the data directory where it is shared; beside the container's start.
    pub fn copying(&self, template: &Template) -> impl FnOnce() -> io::Result<()> + Send + use<> {
        let owner = self.owner_if_root();
        let paths = match (&template.packed, &self.shared) {
            (Packed::Folder(from), Some(shared)) => Some((from.clone(), shared.volume.clone())),
            _ => None,
        };
        move || match paths {
            Some((from, to)) => copy(&from, &to, owner),
            None => Ok(()),
        }
    }

    /// Puts the data directory into the volume where none is shared.
    pub async fn unpack(&self, container: &Container, template: Template) -> Result<(), Failure> {
        match template.packed {
            Packed::Tar(tar) => container.upload(&self.inside.folder, tar).await,
            Packed::Folder(_) => Ok(()),
        }
    }

    /// Writes small files in the data directory; through the daemon, which never leaves the
    /// container's own file system, as what runs there may have put a link in their place.
    pub async fn write(
        &self,
        container: &Container,
        files: &[(&str, String)],
    ) -> Result<(), Failure> {
        let tar = self
            .packed(files)
            .map_err(|error| Failure::internal(format!("cannot pack settings: {error}")))?;
        container.upload(&self.inside.folder, tar).await
    }

    /// Writes small files in the data directory while nothing has run there yet.
    pub async fn write_first(
        &self,
        container: &Container,
        files: &[(&str, String)],
    ) -> Result<(), Failure> {
        let Some(shared) = &self.shared else {
            return self.write(container, files).await;
        };
        for (name, content) in files {
            let path = shared.volume.join(&self.inside.below).join(name);
            std::fs::write(&path, content)
                .and_then(|()| own(&path, self.owner_if_root()))
                .map_err(|error| Failure::io("write", &path, &error))?;
        }
        Ok(())
    }

    fn owner_if_root(&self) -> Option<(u32, u32)> {
        is_root().then_some(self.owner)
    }

    fn packed(&self, files: &[(&str, String)]) -> io::Result<Vec<u8>> {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o600);
            header.set_uid(self.owner.0.into());
            header.set_gid(self.owner.1.into());
            let path = self.inside.below.join(name);
            tar.append_data(&mut header, path, content.as_bytes())?;
        }
        tar.into_inner()
    }
}

impl Shared {
    fn new(run: &RunDirectory, owner: (u32, u32)) -> io::Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        // The image's entrypoint lets everyone into the socket's folder: nobody comes as far.
        let elsewhere = run.directory_elsewhere()?;
        std::fs::set_permissions(&elsewhere, std::fs::Permissions::from_mode(0o700))?;
        let shared = Self {
            volume: run.path().join(VOLUME),
            socket: elsewhere.join(SOCKET),
        };
        for folder in [&shared.volume, &shared.socket] {
            std::fs::create_dir(folder)?;
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
            own(folder, is_root().then_some(owner))?;
        }
        Ok(shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_lies_below_the_volume() {
        for (data, volume, folder, below) in [
            (
                "/var/lib/postgresql/data",
                Some("/var/lib/postgresql/data"),
                "/var/lib/postgresql/data",
                "",
            ),
            (
                "/var/lib/postgresql/18/docker",
                Some("/var/lib/postgresql"),
                "/var/lib/postgresql",
                "18/docker",
            ),
            ("/data/pg", None, "/data", "pg"),
        ] {
            let expected = Inside {
                folder: folder.to_owned(),
                below: below.into(),
            };
            let found = Inside::new(Path::new(data), volume.map(Path::new));
            assert_eq!(found, expected);
        }
    }
}
