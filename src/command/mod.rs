//! What a person can ask for. Only commands call stages; each file reads as the pipeline.

mod accept;
mod asked;
mod build;
mod check;
mod destinations;
mod diff;
mod doctor;
mod interrupt;
mod lint;
mod list;
mod lock;
mod new;
mod options;
mod output;
mod progress;
mod project;
mod record;
mod requote;
mod status;
mod terminal;
mod work;

pub use accept::accept;
pub use build::build;
pub use check::{CheckOptions, check};
pub use diff::diff;
pub use doctor::doctor;
pub use lint::lint;
pub use list::{Catalogue, list};
pub use new::new;
pub use options::{BuildOptions, Verbosity};
pub use project::Project;
pub use requote::Quotes;
pub use status::status;
pub use terminal::{look, tell_failure};
