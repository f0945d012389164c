//! `doctor`: which engines are found, tried where, and why not.

use super::build::runtime;
use super::project::Project;
use super::terminal::print;
use crate::engine::{self, Finding, Need};
use crate::exit_code::{Failure, Outcome};

pub fn doctor(project: &Project) -> Result<Outcome, Failure> {
    let pins = project.pins()?;
    let cache = engine::default_cache();
    let findings = runtime()?.block_on(engine::doctor(&pins, &cache));
    for finding in &findings {
        print(&format!(
            "{} {}: {}\n",
            if finding.ok { "ok  " } else { "no  " },
            finding.what,
            finding.detail
        ))?;
        if let Some(hint) = &finding.hint {
            print(&format!("     hint: {hint}\n"))?;
        }
    }
    let missing = |finding: &&Finding| match finding.need {
        Need::Required => !finding.ok,
        Need::OneOf(_) => !findings
            .iter()
            .any(|other| other.need == finding.need && other.ok),
        Need::Optional => false,
    };
    if !findings.iter().any(|finding| missing(&finding)) {
        Ok(Outcome::Holds)
    } else {
        Err(Failure::Engine(crate::diagnostic::Diagnostic::error(
            "no engine can run here as it is",
        )))
    }
}
