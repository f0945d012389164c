//! What the docker engine would find on this machine: each place where a daemon may be, with why it
//! does not answer, the docker contexts, and which pinned images are here. Nothing is pulled.

use super::endpoint::{self, Daemon, Endpoint};
use super::error::full_text_of;
use super::image::{self, Presence};
use crate::engine::pins::{Image, Pins};
use crate::engine::{Finding, Need};

pub async fn findings(pins: &Pins) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut first = None;
    for endpoint in endpoint::here() {
        let (finding, daemon) = place(&endpoint, first.is_some()).await;
        findings.push(finding);
        first = first.or(daemon);
    }
    for (name, host) in endpoint::contexts() {
        findings.push(Finding::good(
            format!("docker context `{name}`"),
            format!("`{host}`"),
        ));
    }
    if let Some(daemon) = first {
        for version in pins.versions() {
            let pinned = pins.version(&version).and_then(|pin| pin.image.as_ref());
            let what = format!("image of Postgres {version}");
            findings.push(match pinned {
                Some(pinned) => of_image(&daemon, pinned, what).await,
                None => Finding::bad(
                    what,
                    "none is pinned",
                    "add `image:` with name and digest to pins.yaml",
                ),
            });
        }
    }
    findings
        .into_iter()
        .map(|finding| finding.needed(Need::Optional))
        .collect()
}

async fn place(endpoint: &Endpoint, is_behind: bool) -> (Finding, Option<Daemon>) {
    let what = format!(
        "container daemon `{}` ({})",
        endpoint.host, endpoint.named_by
    );
    match endpoint::reach(endpoint).await {
        Ok(daemon) => {
            let used = match is_behind {
                true => ", not used: one before it answers",
                false => "",
            };
            let detail = format!("{}, {}{used}", daemon.version, daemon.platform);
            (Finding::good(what, detail), Some(daemon))
        }
        Err(why) => {
            let hint = endpoint::access_hint(endpoint).unwrap_or_else(|| {
                "nothing to do where another daemon answers, or the embedded engine does".into()
            });
            (Finding::bad(what, why, hint), None)
        }
    }
}

async fn of_image(daemon: &Daemon, pinned: &Image, what: String) -> Finding {
    let reference = image::reference(pinned);
    match image::look(daemon, pinned, None).await {
        Ok(Presence::Here(image)) => {
            Finding::good(what, format!("`{reference}` is here, {}", image.platform))
        }
        Ok(Presence::Missing) => Finding::bad(
            what,
            format!("`{reference}` is not here"),
            format!("it is pulled when it is first used, or now: docker pull {reference}"),
        ),
        Ok(Presence::OtherPlatform(other)) => Finding::bad(
            what,
            format!(
                "`{reference}` is here for {other}, and the daemon is {}",
                daemon.platform
            ),
            "the daemon's own platform is pulled when it is first used, where there is one",
        ),
        Err(failure) => Finding::bad(
            what,
            full_text_of(&failure),
            "correct the image's name and digest in pins.yaml",
        ),
    }
}
