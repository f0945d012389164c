//! Rule `noisy_fact`: numbers of noisy claims that are quoted as if they held everywhere. Entry:
//! [`check`].
//!
//! A quoted time or rate is of the machine that it was measured on, and a reader has to be told so:
//! in the same paragraph, list or table (or the paragraph before a list or table), in a heading
//! above it, or by a paragraph of the section (or of one that it is part of, or before all
//! sections) that says what machine the times are of. What is filled in is left out: a page shows
//! the numbers of the machine that it is built on.

use super::claims_by_name;
use super::prose::{Place, Run, runs};
use crate::article::{Article, Claim, ClaimKind};
use crate::diagnostic::Diagnostic;
use crate::quantity::{NumeralError, numeral};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(article: &Article) -> Vec<Diagnostic> {
    let claims = claims_by_name(article);
    let is_noisy = |claim: &&&Claim| claim.kind == ClaimKind::Noisy;
    // The words below are English.
    let english = article.front_matter.lang.split(['-', '_']).next() == Some("en");
    if !english || claims.values().find(is_noisy).is_none() {
        return Vec::new();
    }
    let runs = runs(article);
    let said = Said::by(article, &runs);
    let mut told: BTreeSet<usize> = BTreeSet::new();
    let mut found = Vec::new();
    for run in &runs {
        if said.for_run(run) {
            continue;
        }
        for (name, range) in &run.quotes {
            let text = &run.text.text[range.clone()];
            let number = !matches!(
                numeral(text, None, Default::default()),
                Err(NumeralError::Missing)
            );
            let noisy = claims.get(name.as_str()).filter(is_noisy);
            // One finding a paragraph: one word mends them all.
            if let Some(claim) = noisy.filter(|_| number)
                && told.insert(run.block)
            {
                let span = run.text.span(range.clone());
                found.push(diagnostic(article, claim, span));
            }
        }
    }
    found
}

fn diagnostic(article: &Article, claim: &Claim, span: crate::source::Span) -> Diagnostic {
    let name = &claim.name.value;
    Diagnostic::warning(format!(
        "claim `{name}` is noisy, and nothing here says whose machine this number is of"
    ))
    .at(&article.source, span)
    .label("holds on the machine of the record only")
    .related(&article.source, claim.name.span, "noisy")
    .hint(format!(
        "name the machine (`here`, `on our server`, `{{{{ host.cpu }}}}`), or have the number filled \
         in: `{{{{ {name} }}}}`"
    ))
}

/// Where a machine is named.
#[derive(Default)]
struct Said {
    /// By block: its own words name one.
    blocks: BTreeMap<usize, bool>,
    /// Sections whose heading, or one of whose paragraphs, says it for all that is in them.
    sections: BTreeSet<Vec<usize>>,
}

impl Said {
    fn by(article: &Article, runs: &[Run]) -> Self {
        let mut said = Self::default();
        for run in runs {
            let hosts = run.fill_ins(article).any(|one| one.starts_with("host"));
            let words = Words::of(&run.text.text);
            let names = hosts || words.name_one();
            *said.blocks.entry(run.block).or_default() |= names;
            if run.heading.is_some() && names || (hosts || words.machine) && words.measuring {
                said.sections.insert(run.section.clone());
            }
        }
        said
    }

    fn for_run(&self, run: &Run) -> bool {
        let block = |block: usize| self.blocks.get(&block).copied().unwrap_or(false);
        let introduced = run.place != Place::Paragraph && run.block > 0 && block(run.block - 1);
        let mut above = (0..=run.section.len()).map(|depth| &run.section[..depth]);
        block(run.block) || introduced || above.any(|section| self.sections.contains(section))
    }
}

/// What the words of a text speak of.
#[derive(Clone, Copy, Default)]
struct Words {
    /// A machine, by what it is.
    machine: bool,
    /// Whose: `here`, `our`, `we`.
    ours: bool,
    /// Times, rates and measuring.
    measuring: bool,
}

impl Words {
    fn of(text: &str) -> Self {
        let mut found = Self::default();
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            let word = word.to_lowercase();
            found.machine |= MACHINES.contains(&word.as_str());
            found.ours |= OURS.contains(&word.as_str());
            found.measuring |= MEASURING.contains(&word.as_str());
        }
        found
    }

    fn name_one(self) -> bool {
        self.machine || self.ours
    }
}

/// `host`, `disk` and `server` alone also mean other things in a post about Postgres.
#[rustfmt::skip]
const MACHINES: &[&str] = &[
    "machine", "machines", "laptop", "laptops", "desktop", "workstation", "hardware", "computer", "box", "vm", "macbook",
    "vcpu", "vcpus", "cpu", "cpus", "cores", "ghz", "nvme", "ssd", "ec2", "rds", "droplet", "hetzner", "graviton", "xeon",
    "epyc", "ryzen", "m1", "m2", "m3", "m4", "m5", "ram", "container",
];

/// Not `us`, which is written for µs, nor `I`, which is half of `I/O`.
const OURS: &[&str] = &["here", "our", "ours", "my", "mine", "we"];

#[rustfmt::skip]
const MEASURING: &[&str] = &[
    "time", "times", "timing", "timings", "timed", "speed", "speeds", "latency", "latencies", "throughput", "rate", "rates",
    "seconds", "milliseconds", "microseconds", "measured", "measure", "measurement", "measurements", "measuring",
    "benchmark", "benchmarks", "benchmarked", "numbers", "figures", "results", "ran", "run", "runs", "tested", "tests",
];
