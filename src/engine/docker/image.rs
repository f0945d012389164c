//! The pinned image: named by the digest of its index, pulled only when it is missing, and only the
//! platform that is wanted: the daemon's own, unless the article asks for another.
//!
//! [`present`]: [`look`] (what is here) → [`pull`] (where it is missing) → [`Image`].
//! [`offered`] asks a registry for it and pulls nothing.

use super::endpoint::Daemon;
use super::error::{PullProblem, failure, full_text, is_not_found};
use crate::diagnostic::Diagnostic;
use crate::engine::pins::Image as PinnedImage;
use crate::exit_code::Failure;
use bollard::errors::Error;
use bollard::models::{CreateImageInfo, ImageInspect, OciPlatform};
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a registry may take to say whether it has an image.
pub const REGISTRY_LIMIT: Duration = Duration::from_secs(10);
/// How long a pull may go on without any news: a daemon unpacks a layer in silence.
const PULL_SILENCE: Duration = Duration::from_secs(300);

/// An image that is present.
#[derive(Clone, Debug)]
pub struct Image {
    /// `name@sha256:…`
    pub reference: String,
    /// As pinned: of the index over all platforms.
    pub digest: String,
    /// As the daemon names the image that runs.
    pub id: String,
    /// The digest of the configuration that runs, where that is how the daemon names it.
    pub config: Option<String>,
    /// The digest of this platform's manifest, where the daemon knows it.
    pub manifest: Option<String>,
    /// `PGDATA`, where the server keeps its data.
    pub data: String,
    /// The folder of a volume that holds `data`, where one does.
    pub volume: Option<String>,
    /// Such as `linux/amd64`.
    pub platform: String,
    /// The daemon's own platform, where it has to emulate the image's.
    pub emulated_on: Option<String>,
}

/// What a daemon has of an image.
pub enum Presence {
    Here(Box<Image>),
    Missing,
    /// It is there for this platform, which is not the one that is wanted.
    OtherPlatform(String),
}

/// What a registry has of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    Offered,
    /// And why.
    NotOffered(String),
    /// The daemon cannot ask without pulling, as Podman's.
    NotKnown,
}

/// Finds the pinned image, and pulls it where it is missing. `asked`: the platform that the article
/// asks for, such as `linux/arm64`; None: the daemon's own, and no other will do.
pub async fn present(
    daemon: &Daemon,
    pinned: &PinnedImage,
    asked: Option<&str>,
    offline: bool,
    progress: &dyn Fn(&str),
) -> Result<Image, Failure> {
    let found = look(daemon, pinned, asked).await?;
    let reference = reference(pinned);
    let wanted = wanted(daemon, asked);
    match &found {
        Presence::Here(_) => {}
        Presence::Missing if offline => {
            return Err(Failure::Engine(
                Diagnostic::error(format!("the image `{reference}` is not here"))
                    .note("nothing is fetched: --offline")
                    .hint(format!(
                        "pull it: docker pull {reference}; or use `--engine embedded`"
                    )),
            ));
        }
        Presence::OtherPlatform(platform) if offline => {
            return Err(Failure::Engine(emulated(&reference, platform, &wanted)));
        }
        // By name where another platform's is here: else the daemon may take that for the image.
        Presence::OtherPlatform(_) => {
            pull(daemon, &reference, Some(&wanted), &wanted, progress).await?;
        }
        Presence::Missing => pull(daemon, &reference, asked, &wanted, progress).await?,
    }
    let found = match found {
        Presence::Here(image) => return Ok(*image),
        _ => look(daemon, pinned, asked).await?,
    };
    match found {
        Presence::Here(image) => Ok(*image),
        Presence::Missing => Err(Failure::Engine(Diagnostic::error(format!(
            "the container daemon has pulled `{reference}`, and does not find it"
        )))),
        Presence::OtherPlatform(platform) => {
            Err(Failure::Engine(emulated(&reference, &platform, &wanted)))
        }
    }
}

/// What is here, as it is.
pub async fn look(
    daemon: &Daemon,
    pinned: &PinnedImage,
    asked: Option<&str>,
) -> Result<Presence, Failure> {
    let reference = reference(pinned);
    let found = match daemon.docker.inspect_image(&reference).await {
        Ok(found) => found,
        Err(error) if is_not_found(&error) => return Ok(Presence::Missing),
        Err(error) => return Err(failure("tell of its images", &error)),
    };
    let is_for = platform(found.os.clone(), found.architecture.clone(), None);
    if !is_same(&is_for, &wanted(daemon, asked)) {
        return Ok(Presence::OtherPlatform(is_for));
    }
    let mut image = image(pinned, reference, found)?;
    image.emulated_on =
        (!is_same(&image.platform, &daemon.platform)).then(|| daemon.platform.clone());
    Ok(Presence::Here(Box::new(image)))
}

/// Asks the registry, through the daemon, whether it has the image for the platform.
pub async fn offered(daemon: &Daemon, pinned: &PinnedImage, asked: Option<&str>) -> Offer {
    let reference = reference(pinned);
    let wanted = wanted(daemon, asked);
    let question = daemon.docker.inspect_registry_image(&reference, None);
    let Ok(answer) = tokio::time::timeout(REGISTRY_LIMIT, question).await else {
        return Offer::NotOffered(format!(
            "the registry does not answer within {} s",
            REGISTRY_LIMIT.as_secs()
        ));
    };
    match answer {
        Ok(found) => offered_for(&found.platforms, &wanted),
        // Podman has no such question: its answer is that of an unknown page.
        Err(Error::DockerResponseServerError {
            status_code,
            message,
        }) if [405, 501].contains(&status_code)
            || (status_code == 404 && !message.contains("manifest")) =>
        {
            Offer::NotKnown
        }
        Err(error) => Offer::NotOffered(full_text(&error)),
    }
}

fn offered_for(platforms: &[OciPlatform], wanted: &str) -> Offer {
    let names: Vec<String> = platforms
        .iter()
        .map(|one| platform(one.os.clone(), one.architecture.clone(), None))
        .collect();
    if names.is_empty() || names.iter().any(|name| is_same(name, wanted)) {
        Offer::Offered
    } else {
        Offer::NotOffered(format!("it is not made for {wanted}"))
    }
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

/// `linux/amd64`, `linux/arm/v7`, as registries write it.
pub fn platform(
    os: Option<String>,
    architecture: Option<String>,
    variant: Option<String>,
) -> String {
    let architecture = match architecture.as_deref().unwrap_or_default() {
        "x86_64" => "amd64".to_owned(),
        "aarch64" => "arm64".to_owned(),
        other => other.to_owned(),
    };
    let variant = variant.filter(|variant| !variant.is_empty());
    [Some(os.unwrap_or_default()), Some(architecture), variant]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("/")
}

/// Whether two platforms are of one system and architecture; variants run on one another.
fn is_same(one: &str, other: &str) -> bool {
    let parts = |text: &str| {
        let mut parts = text.split('/').map(str::to_owned);
        platform(parts.next(), parts.next(), None)
    };
    let (one, other) = (parts(one), parts(other));
    // A daemon may not say what it runs on.
    one == other
        || [&one, &other]
            .iter()
            .any(|platform| platform.ends_with('/'))
}

fn wanted(daemon: &Daemon, asked: Option<&str>) -> String {
    asked.map_or_else(|| daemon.platform.clone(), str::to_owned)
}

fn emulated(reference: &str, is_for: &str, wanted: &str) -> Diagnostic {
    Diagnostic::error(format!(
        "the image `{reference}` is for {is_for}, not for {wanted}"
    ))
    .note("it would be emulated: slower by an amount that nobody knows")
    .hint(format!(
        "write `postgres: {{platform: {is_for}}}` in the front matter to have it so, with a doubt on \
         every result; or use `--engine embedded`"
    ))
}

async fn pull(
    daemon: &Daemon,
    reference: &str,
    asked: Option<&str>,
    wanted: &str,
    progress: &dyn Fn(&str),
) -> Result<(), Failure> {
    progress(&format!("pulling `{reference}` for {wanted}"));
    let options = CreateImageOptionsBuilder::new().from_image(reference);
    let options = match asked {
        Some(platform) => options.platform(platform),
        None => options,
    };
    let failed = |why: String| {
        Failure::Engine(
            Diagnostic::error(format!("the image `{reference}` cannot be pulled: {why}"))
                .hint(PullProblem::of(&why).hint(reference)),
        )
    };
    let mut pull = daemon
        .docker
        .create_image(Some(options.build()), None, None);
    let mut layers = Layers::default();
    loop {
        let step = match tokio::time::timeout(PULL_SILENCE, pull.next()).await {
            Err(_) => return Err(failed("nothing has come for 5 minutes".into())),
            Ok(None) => return Ok(()),
            Ok(Some(step)) => step.map_err(|error| failed(full_text(&error)))?,
        };
        if let Some(line) = layers.told(step) {
            progress(&line);
        }
    }
}

/// What is here of each layer.
#[derive(Default)]
struct Layers {
    layers: BTreeMap<String, Layer>,
    last_tenth: i64,
}

#[derive(Default)]
struct Layer {
    bytes: i64,
    of_bytes: i64,
    here: bool,
}

impl Layers {
    /// A line for each tenth of what is known to be there.
    fn told(&mut self, step: CreateImageInfo) -> Option<String> {
        let status = step.status?;
        // The tag stands there for an id.
        if status.starts_with("Pulling from") {
            return None;
        }
        let layer = self.layers.entry(step.id?).or_default();
        match status.as_str() {
            "Downloading" => {
                let detail = step.progress_detail?;
                (layer.bytes, layer.of_bytes) = (detail.current?, detail.total?);
            }
            "Download complete" => layer.bytes = layer.of_bytes,
            "Pull complete" | "Already exists" => {
                (layer.bytes, layer.here) = (layer.of_bytes, true);
            }
            _ => return None,
        }
        let sum = |of: fn(&Layer) -> i64| self.layers.values().map(of).sum::<i64>();
        let (bytes, of_bytes) = (sum(|layer| layer.bytes), sum(|layer| layer.of_bytes));
        let tenth = 10 * bytes / of_bytes.max(1);
        (tenth > self.last_tenth).then(|| {
            self.last_tenth = tenth;
            let here = self.layers.values().filter(|layer| layer.here).count();
            let megabytes = |bytes: i64| bytes as f64 / 1e6;
            format!(
                "  {:.1} of {:.1} MB, {here} of {} layers unpacked",
                megabytes(bytes),
                megabytes(of_bytes),
                self.layers.len()
            )
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
    let Some(data) = variable("PGDATA").filter(|data| data.starts_with('/')) else {
        return Err(Failure::Engine(
            Diagnostic::error(format!(
                "the image `{reference}` is not laid out as the official image of Postgres"
            ))
            .note("it does not say where the server keeps its data (PGDATA)")
            .hint("pin the official image `postgres`, or one made from it"),
        ));
    };
    let volume = config
        .volumes
        .unwrap_or_default()
        .into_iter()
        .filter(|volume| std::path::Path::new(&data).starts_with(volume))
        .max_by_key(String::len);
    let id = found.id.unwrap_or_default();
    // Where images are kept in containerd's store the daemon describes what it names them by.
    let (config, manifest) = match found.descriptor {
        Some(descriptor) => {
            let kind = descriptor.media_type.unwrap_or_default();
            let is_index = kind.contains("index") || kind.contains("manifest.list");
            (None, descriptor.digest.filter(|_| !is_index))
        }
        None => {
            let repositories = found.repo_digests.unwrap_or_default();
            let other = repositories
                .iter()
                .filter(|name| name.split('@').next() == reference.split('@').next())
                .filter_map(|name| name.split_once('@'))
                .map(|(_, digest)| digest.to_owned())
                .find(|digest| *digest != pinned.digest);
            (Some(id.clone()), other)
        }
    };
    Ok(Image {
        reference,
        digest: pinned.digest.clone(),
        id,
        config,
        manifest,
        data,
        volume,
        platform: platform(found.os, found.architecture, found.variant),
        emulated_on: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::{ImageConfig, OciDescriptor, ProgressDetail};

    fn pinned(name: &str) -> PinnedImage {
        PinnedImage {
            name: name.into(),
            digest: "sha256:aa".into(),
        }
    }

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
            assert_eq!(reference(&pinned(name)), expected);
        }
    }

    #[test]
    fn platforms_are_compared_by_system_and_architecture() {
        for (one, other, same) in [
            ("linux/amd64", "linux/amd64", true),
            ("linux/amd64", "linux/x86_64", true),
            ("linux/arm64/v8", "linux/arm64", true),
            ("linux/aarch64", "linux/arm64", true),
            ("linux/arm64", "linux/amd64", false),
            ("windows/amd64", "linux/amd64", false),
            ("linux/386", "linux/amd64", false),
            ("linux/amd64", "linux/", true),
        ] {
            assert_eq!(is_same(one, other), same, "{one} {other}");
        }
        let arm = OciPlatform {
            os: Some("linux".into()),
            architecture: Some("arm64".into()),
            ..OciPlatform::default()
        };
        let only_arm = std::slice::from_ref(&arm);
        assert_eq!(offered_for(only_arm, "linux/arm64"), Offer::Offered);
        assert_eq!(
            offered_for(only_arm, "linux/amd64"),
            Offer::NotOffered("it is not made for linux/amd64".into())
        );
    }

    #[test]
    fn digests_are_recorded_under_the_name_of_what_they_are_of() {
        let inspect = |descriptor: Option<(&str, &str)>, digests: &[&str]| ImageInspect {
            id: Some("sha256:id".into()),
            config: Some(ImageConfig {
                env: Some(vec!["PGDATA=/data".into()]),
                ..ImageConfig::default()
            }),
            descriptor: descriptor.map(|(kind, digest)| OciDescriptor {
                media_type: Some(kind.into()),
                digest: Some(digest.into()),
                ..OciDescriptor::default()
            }),
            repo_digests: Some(digests.iter().map(|digest| (*digest).to_owned()).collect()),
            ..ImageInspect::default()
        };
        let index = "application/vnd.oci.image.index.v1+json";
        let manifest = "application/vnd.oci.image.manifest.v1+json";
        for (found, config, of_manifest) in [
            // Docker's own store: a configuration's digest, and the index that was pulled.
            (inspect(None, &["r@sha256:aa"]), Some("sha256:id"), None),
            // Podman: both.
            (
                inspect(None, &["r@sha256:aa", "r@sha256:bb", "other@sha256:cc"]),
                Some("sha256:id"),
                Some("sha256:bb"),
            ),
            (
                inspect(Some((index, "sha256:aa")), &["r@sha256:aa"]),
                None,
                None,
            ),
            (
                inspect(Some((manifest, "sha256:dd")), &["r@sha256:aa"]),
                None,
                Some("sha256:dd"),
            ),
        ] {
            let image = image(&pinned("r:16"), "r@sha256:aa".into(), found).unwrap();
            assert_eq!(image.config.as_deref(), config);
            assert_eq!(image.manifest.as_deref(), of_manifest);
            assert_eq!(image.id, "sha256:id");
        }
    }

    #[test]
    fn a_pull_is_told_by_tenths_of_all_its_layers() {
        let step = |id: &str, status: &str, bytes: Option<(i64, i64)>| CreateImageInfo {
            id: Some(id.into()),
            status: Some(status.into()),
            progress_detail: bytes.map(|(current, total)| ProgressDetail {
                current: Some(current),
                total: Some(total),
            }),
            ..CreateImageInfo::default()
        };
        let mut layers = Layers::default();
        let mut told = |id, status, bytes| layers.told(step(id, status, bytes));
        assert_eq!(told("16", "Pulling from library/postgres", None), None);
        assert_eq!(told("a", "Pulling fs layer", None), None);
        assert_eq!(
            told("a", "Downloading", Some((1_000_000, 4_000_000))).as_deref(),
            Some("  1.0 of 4.0 MB, 0 of 1 layers unpacked")
        );
        assert_eq!(told("a", "Downloading", Some((1_100_000, 4_000_000))), None);
        assert_eq!(
            told("a", "Pull complete", None).as_deref(),
            Some("  4.0 of 4.0 MB, 1 of 1 layers unpacked")
        );
    }
}
