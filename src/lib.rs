//! `remeasure` turns Markdown articles with embedded experiments into pages whose every figure was
//! measured on a pinned Postgres and checked.
//!
//! ```text
//! nouns     source · article · quantity · record · diagnostic
//! pipeline  parse → plan → engine → measure → analyse → record → judge → chart → render → report
//! ```
//!
//! Nouns import no stage; a stage may name the types of an earlier one, but only [`command`] calls
//! stages; nothing after [`record`] imports `engine` or `measure`.

pub mod article;
pub mod diagnostic;
pub mod exit_code;
pub mod quantity;
pub mod record;
pub mod source;

pub mod analyse;
pub mod chart;
pub mod engine;
pub mod judge;
pub mod lint;
pub mod measure;
pub mod parse;
pub mod plan;
pub mod render;
pub mod report;

pub mod cli;
pub mod command;
