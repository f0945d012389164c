//! The initialised data directory of an image, made once with the image's own programs and kept in
//! the cache as a tar; each start unpacks it into the container's volume.

use super::container::{Container, Design, Limits, Reach};
use super::endpoint::Daemon;
use super::image::Image;
use crate::diagnostic::Diagnostic;
use crate::engine::pins::Pin;
use crate::engine::{settings, trust};
use crate::exit_code::Failure;
use crate::record::sha256_of;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Raised whenever what is done to a fresh data directory changes.
const LAYOUT: u32 = 1;
const INITDB_LIMIT: Duration = Duration::from_secs(300);

/// A data directory to unpack.
pub struct Template {
    /// Gzipped, its paths relative to `folder`.
    pub tar: Vec<u8>,
    /// In the container: the volume that holds the data directory.
    pub folder: String,
    /// Who owns the files: the image's `postgres`.
    pub owner: (u32, u32),
}

/// Where the data directory lies below the folder that it is unpacked in.
pub fn place(image: &Image) -> (String, PathBuf) {
    let data = Path::new(&image.data);
    let folder = image.volume.as_deref().map_or_else(
        || data.parent().unwrap_or(data).to_owned(),
        |volume| Path::new(volume).to_owned(),
    );
    let below = data
        .strip_prefix(&folder)
        .unwrap_or(Path::new(""))
        .to_owned();
    (folder.display().to_string(), below)
}

pub async fn template(
    daemon: &Daemon,
    image: &Image,
    pin: &Pin,
    cache: &Path,
    progress: &dyn Fn(&str),
) -> Result<Template, Failure> {
    let key = sha256_of(format!("{LAYOUT} {}", image.id).as_bytes());
    let file = cache
        .join("images")
        .join(format!("{}-{}.tar.gz", pin.version, &key[..16]));
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
    let owner = owner(&tar).map_err(|error| {
        Failure::Engine(
            Diagnostic::error(format!("`{}` is broken: {error}", file.display()))
                .hint("remove it; it is made again"),
        )
    })?;
    Ok(Template {
        tar,
        folder: place(image).0,
        owner,
    })
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
            limits: Limits::default(),
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
    repacked(&tar, &place(image).1)
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
