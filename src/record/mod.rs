//! Everything measured and analysed, with the environment it was measured on. The record is the
//! only thing the later stages (judge, chart, render, report) read.

mod format;
mod json;
pub mod store;

pub use format::*;
pub use json::to_json;
