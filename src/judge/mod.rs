//! Decides for each quote and each claim whether it holds, from the article and records alone.
//! Entry: [`judge`].

use crate::article::ClaimKind;
use crate::quantity::Value;
use crate::source::Span;

/// What one figure came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub subject: Subject,
    pub claim: String,
    pub kind: ClaimKind,
    /// Where the quote (or the claim's name) stands in the article.
    pub span: Span,
    /// As the prose has it; None for a claim judged by itself.
    pub quoted: Option<String>,
    pub measured: Value,
    /// `measured` for people, in the claim's unit or, for a quote, in the quote's.
    pub measured_text: String,
    /// For people: `±1 %`, `75.5 to 76.5 (to the precision quoted)`, `≥ 3`, `true`.
    pub tolerance: String,
    /// What the source post says, for people, with its unit.
    pub published: Option<String>,
    /// measured / published, 3 significant digits.
    pub published_ratio: Option<String>,
    /// The accepted record's value where it is another machine's, and measured / recorded.
    pub recorded: Option<(String, String)>,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Index into `article.prose.quotes`.
    Quote(usize),
    /// The claim's own tolerance, truth or record, without a quote.
    Claim,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Holds,
    /// How far off, for people: `0.62 B/row above 75.5 to 76.5`.
    DoesNotHold {
        difference: String,
    },
    /// Not judged, and why: another profile, or a noisy claim on another machine.
    Skipped {
        reason: String,
    },
}
