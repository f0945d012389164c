//! What the docker engine would find on this machine: each place where a daemon may be, with why it
//! does not answer, and which pinned images are here. Nothing is pulled.

use super::{endpoint, image};
use crate::engine::pins::Pins;
use crate::engine::{Finding, Need};

pub async fn findings(pins: &Pins) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut answers = None;
    for endpoint in endpoint::here() {
        let what = format!(
            "container daemon `{}` ({})",
            endpoint.host, endpoint.named_by
        );
        match endpoint::reach(&endpoint).await {
            Ok(daemon) => {
                findings.push(Finding::good(what, &daemon.version));
                answers = Some(daemon);
                // Those behind it are not asked by a build either.
                break;
            }
            Err(why) => findings.push(Finding::bad(
                what,
                why,
                "nothing to do where another daemon answers, or the embedded engine does",
            )),
        }
    }
    if let Some(daemon) = answers {
        for version in pins.versions() {
            let pinned = pins.version(&version).and_then(|pin| pin.image.as_ref());
            let Some(pinned) = pinned else { continue };
            let what = format!("image of Postgres {version}");
            findings.push(match image::present(&daemon, pinned, true, &|_| {}).await {
                Ok(image) => Finding::good(what, format!("here, {}", image.platform)),
                Err(_) => Finding::bad(
                    what,
                    format!("`{}` is not here", image::reference(pinned)),
                    "it is pulled when it is first used",
                ),
            });
        }
    }
    findings
        .into_iter()
        .map(|finding| finding.needed(Need::Optional))
        .collect()
}
