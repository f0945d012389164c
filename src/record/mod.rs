//! Everything measured and analysed, with the environment it was measured on. The record is the
//! only thing the later stages (judge, chart, render, report) read.

mod difference;
mod format;
mod integrity;
mod json;
pub mod lock;
mod merge;
mod read;
pub mod store;
mod unpinned;

pub use difference::{Difference, differences};
pub use format::*;
pub use json::to_json;
pub use merge::{Merged, Named, Refusal, merge};
pub use read::{parse_record, read_record};
pub use unpinned::Unpinned;

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The hex sha256 of bytes, by which inputs, environments and cached results are told apart.
pub fn sha256_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes every write");
            text
        })
}
