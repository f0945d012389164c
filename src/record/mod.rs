//! Everything measured and analysed, with the environment it was measured on. The record is the
//! only thing the later stages (judge, chart, render, report) read.

mod format;
pub mod store;

pub use format::*;
