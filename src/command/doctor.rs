//! `doctor`: which engines are found, tried where, and why not.

use super::project::Project;
use crate::engine;
use crate::exit_code::{Failure, Outcome};

pub fn doctor(project: &Project) -> Result<Outcome, Failure> {
    let pins = project.pins()?;
    let findings = engine::doctor(&pins, &engine::default_cache());
    let mut usable = true;
    for finding in &findings {
        println!(
            "{} {}: {}",
            if finding.ok { "ok  " } else { "no  " },
            finding.what,
            finding.detail
        );
        if let Some(hint) = &finding.hint {
            println!("     hint: {hint}");
        }
        // That Docker is missing keeps nobody from measuring.
        usable &= finding.ok || finding.what == "engine docker";
    }
    if usable {
        Ok(Outcome::Holds)
    } else {
        Err(Failure::Engine(crate::diagnostic::Diagnostic::error(
            "no engine can run here as it is",
        )))
    }
}
