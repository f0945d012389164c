//! The pinned image: named by the digest of its index, pulled only when it is missing.

use super::endpoint::Daemon;
use super::error::{failure, full_text, is_not_found};
use crate::diagnostic::Diagnostic;
use crate::engine::pins::Image as PinnedImage;
use crate::exit_code::Failure;
use bollard::models::{CreateImageInfo, ImageInspect};
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt;
use std::collections::BTreeMap;

/// An image that is present.
#[derive(Clone, Debug)]
pub struct Image {
    /// `name@sha256:…`
    pub reference: String,
    /// As pinned: of the index over all platforms.
    pub digest: String,
    /// The image that runs: the digest of this platform's configuration.
    pub id: String,
    /// `PGDATA`, where the server keeps its data.
    pub data: String,
    /// The folder of a volume that holds `data`, where one does.
    pub volume: Option<String>,
    /// Such as `linux/amd64`.
    pub platform: String,
}

/// Finds the pinned image, and pulls it where it is missing.
pub async fn present(
    daemon: &Daemon,
    pinned: &PinnedImage,
    offline: bool,
    progress: &dyn Fn(&str),
) -> Result<Image, Failure> {
    let reference = reference(pinned);
    match daemon.docker.inspect_image(&reference).await {
        Ok(found) => return image(pinned, reference, found),
        Err(error) if is_not_found(&error) => {}
        Err(error) => return Err(failure("tell of its images", &error)),
    }
    if offline {
        return Err(Failure::Engine(
            Diagnostic::error(format!("the image `{reference}` is not here"))
                .note("nothing is fetched: --offline")
                .hint(format!("pull it: docker pull {reference}")),
        ));
    }
    pull(daemon, &reference, progress).await?;
    let found = daemon
        .docker
        .inspect_image(&reference)
        .await
        .map_err(|error| failure("find the image it has pulled", &error))?;
    image(pinned, reference, found)
}

/// `postgres:16.15-bookworm` by digest is `postgres@sha256:…`: the tag says nothing more.
pub fn reference(pinned: &PinnedImage) -> String {
    let name = pinned.name.split('@').next().unwrap_or(&pinned.name);
    let repository = match name.rsplit_once(':') {
        // The colon of a registry's port is followed by a path.
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => name,
    };
    format!("{repository}@{}", pinned.digest)
}

async fn pull(daemon: &Daemon, reference: &str, progress: &dyn Fn(&str)) -> Result<(), Failure> {
    progress(&format!("pulling `{reference}`"));
    let options = CreateImageOptionsBuilder::new()
        .from_image(reference)
        .build();
    let mut pull = daemon.docker.create_image(Some(options), None, None);
    let mut layers = Layers::default();
    while let Some(step) = pull.next().await {
        let step = step.map_err(|error| {
            Failure::Engine(
                Diagnostic::error(format!(
                    "the image `{reference}` cannot be pulled: {}",
                    full_text(&error)
                ))
                .hint("is the digest in pins.yaml right, and the registry within reach? `--engine embedded` needs no image"),
            )
        })?;
        if let Some(line) = layers.told(step) {
            progress(&line);
        }
    }
    Ok(())
}

/// Bytes of each layer that are here, of how many.
#[derive(Default)]
struct Layers {
    bytes: BTreeMap<String, (i64, i64)>,
    last_tenth: i64,
}

impl Layers {
    /// A line for each tenth of what is known to be there.
    fn told(&mut self, step: CreateImageInfo) -> Option<String> {
        let detail = step.progress_detail?;
        let (current, total) = (detail.current?, detail.total?);
        if step.status.as_deref() != Some("Downloading") {
            return None;
        }
        self.bytes.insert(step.id?, (current, total));
        let sum = |of: fn(&(i64, i64)) -> i64| self.bytes.values().map(of).sum::<i64>();
        let (current, total) = (sum(|bytes| bytes.0), sum(|bytes| bytes.1));
        let tenth = 10 * current / total.max(1);
        (tenth > self.last_tenth).then(|| {
            self.last_tenth = tenth;
            format!("  {} of {} MB", current / 1_000_000, total / 1_000_000)
        })
    }
}

fn image(pinned: &PinnedImage, reference: String, found: ImageInspect) -> Result<Image, Failure> {
    let config = found.config.unwrap_or_default();
    let variable = |name: &str| {
        config.env.iter().flatten().find_map(|variable| {
            let (key, value) = variable.split_once('=')?;
            (key == name).then(|| value.to_owned())
        })
    };
    let Some(data) = variable("PGDATA") else {
        return Err(Failure::Engine(
            Diagnostic::error(format!("the image `{reference}` is no image of Postgres"))
                .note("it does not say where the server keeps its data (PGDATA)"),
        ));
    };
    let volume = config
        .volumes
        .unwrap_or_default()
        .into_iter()
        .filter(|volume| std::path::Path::new(&data).starts_with(volume))
        .max_by_key(String::len);
    Ok(Image {
        reference,
        digest: pinned.digest.clone(),
        id: found.id.unwrap_or_default(),
        data,
        volume,
        platform: format!(
            "{}/{}",
            found.os.unwrap_or_default(),
            found.architecture.unwrap_or_default()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_by_its_digest() {
        for (name, expected) in [
            ("postgres:16.15-bookworm", "postgres@sha256:aa"),
            ("postgres", "postgres@sha256:aa"),
            (
                "127.0.0.1:5001/postgres",
                "127.0.0.1:5001/postgres@sha256:aa",
            ),
            (
                "127.0.0.1:5001/a/postgres:16",
                "127.0.0.1:5001/a/postgres@sha256:aa",
            ),
            ("postgres:16@sha256:bb", "postgres@sha256:aa"),
        ] {
            let pinned = PinnedImage {
                name: name.into(),
                digest: "sha256:aa".into(),
            };
            assert_eq!(reference(&pinned), expected);
        }
    }
}
