//! The initialised data directory of an image, made once with the image's own programs and kept in
//! the cache: as a tar, and where folders are shared with containers unpacked, to be copied.

use super::container::{Container, Design, Limits, Reach};
use super::endpoint::Daemon;
use super::image::Image;
use super::place::Inside;
use crate::diagnostic::Diagnostic;
use crate::engine::cache::{Cache, own};
use crate::engine::pins::Pin;
use crate::engine::system::is_root;
use crate::engine::{settings, trust};
use crate::exit_code::Failure;
use crate::record::sha256_of;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Raised whenever what is done to a fresh data directory changes.
const LAYOUT: u32 = 1;
/// It runs one after another.
const INITDB_PROCESSES: i64 = 256;
const INITDB_LIMIT: Duration = Duration::from_secs(300);

/// A fresh data directory.
pub struct Template {
    pub packed: Packed,
    /// Who the server is to run as, and its files are to belong to.
    pub owner: (u32, u32),
}

pub enum Packed {
    /// Gzipped, its paths relative to the folder that a volume is mounted at.
    Tar(Vec<u8>),
    /// The same unpacked, on this machine.
    Folder(PathBuf),
}

/// The template of an image; `shared`: unpacked. Made where it is missing.
pub async fn template(
    daemon: &Daemon,
    image: &Image,
    pin: &Pin,
    cache: &Cache,
    shared: bool,
    progress: &dyn Fn(&str),
) -> Result<Template, Failure> {
    let key = sha256_of(format!("{LAYOUT} {}", image.id).as_bytes());
    let name = format!("{}-{}", pin.version, &key[..16]);
    let folder = cache.templates().join(format!("{name}-image"));
    if shared && folder.is_dir() {
        return unpacked(folder, image);
    }
    let file = cache.images().join(format!("{name}.tar.gz"));
    let tar = match std::fs::read(&file) {
        Ok(tar) => tar,
        Err(_) => {
            progress(&format!(
                "initialising a data directory for Postgres {}",
                pin.version
            ));
            let tar = make(daemon, image, pin).await?;
            keep(&file, &tar).map_err(|error| Failure::io("write", &file, &error))?;
            tar
        }
    };
    let broken = |error: std::io::Error| {
        Failure::Engine(
            Diagnostic::error(format!("`{}` is broken: {error}", file.display()))
                .hint("remove it; it is made again"),
        )
    };
    let owner = owner(&tar).map_err(broken)?;
    if !shared {
        let packed = Packed::Tar(tar);
        return Ok(Template { packed, owner });
    }
    unpack(&tar, owner, image, cache, &folder).map_err(broken)?;
    unpacked(folder, image)
}

fn unpacked(folder: PathBuf, image: &Image) -> Result<Template, Failure> {
    use std::os::unix::fs::MetadataExt;
    let data = folder.join(Inside::of(image).below);
    let about = data
        .metadata()
        .map_err(|error| Failure::io("read", &data, &error))?;
    Ok(Template {
        packed: Packed::Folder(folder),
        owner: (about.uid(), about.gid()),
    })
}

/// As root the files belong to the image's `postgres`; else to us, and the server runs as us.
fn unpack(
    tar: &[u8],
    owner: (u32, u32),
    image: &Image,
    cache: &Cache,
    place: &Path,
) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let run = cache.run_directory()?;
    let folder = run.path().join("template");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(tar));
    archive.set_preserve_ownerships(is_root());
    archive.unpack(&folder)?;
    let data = folder.join(Inside::of(image).below);
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700))?;
    own(&data, is_root().then_some(owner))?;
    cache.publish(&folder, place)
}

fn keep(file: &Path, tar: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    crate::record::store::write_atomically(file, tar)
}

async fn make(daemon: &Daemon, image: &Image, pin: &Pin) -> Result<Vec<u8>, Failure> {
    let mut container = Container::create(
        daemon,
        &Design {
            image,
            script: include_str!("initialise.sh"),
            arguments: std::iter::once(trust::prepare_server())
                .chain(
                    settings::initdb_arguments(pin.major())
                        .into_iter()
                        .map(str::to_owned),
                )
                .collect(),
            reach: Reach::Nowhere,
            user: "postgres".to_owned(),
            limits: Limits {
                processes: Some(INITDB_PROCESSES),
                ..Limits::default()
            },
        },
    )
    .await?;
    let made = initialise(&mut container, image).await;
    container.remove().await?;
    made
}

async fn initialise(container: &mut Container, image: &Image) -> Result<Vec<u8>, Failure> {
    container.start(None).await?;
    let deadline = Instant::now() + INITDB_LIMIT;
    while !container.printed().contains("remeasure: initialised") {
        if container.has_ended() || Instant::now() >= deadline {
            return Err(Failure::Engine(
                Diagnostic::error(format!(
                    "the image `{}` cannot initialise a data directory",
                    image.reference
                ))
                .note(container.printed().trim()),
            ));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Single-user mode goes on after an error.
    let said = container.printed();
    if ["ERROR:", "FATAL:", "PANIC:"]
        .iter()
        .any(|word| said.contains(word))
    {
        return Err(Failure::Engine(
            Diagnostic::error("the author's role cannot be made").note(said.trim()),
        ));
    }
    let tar = container.download(&image.data).await?;
    repacked(&tar, &Inside::of(image).below)
        .map_err(|error| Failure::internal(format!("the daemon's tar cannot be read: {error}")))
}

/// The same files with their paths below `folder`, gzipped. The daemon names them by the last part
/// of the folder it was asked for.
fn repacked(tar: &[u8], folder: &Path) -> std::io::Result<Vec<u8>> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut packed = tar::Builder::new(gzip);
    let mut archive = tar::Archive::new(tar);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path: PathBuf = entry.path()?.components().skip(1).collect();
        let path = folder.join(path);
        if path.as_os_str().is_empty() {
            continue;
        }
        let mut header = entry.header().clone();
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        packed.append_data(&mut header, path, content.as_slice())?;
    }
    let mut gzip = packed.into_inner()?;
    gzip.flush()?;
    gzip.finish()
}

fn owner(tar: &[u8]) -> std::io::Result<(u32, u32)> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(tar));
    for entry in archive.entries()? {
        let entry = entry?;
        if entry.path()?.ends_with("PG_VERSION") {
            let number = |id: u64| u32::try_from(id).map_err(std::io::Error::other);
            return Ok((
                number(entry.header().uid()?)?,
                number(entry.header().gid()?)?,
            ));
        }
    }
    Err(std::io::Error::other("it holds no data directory"))
}
