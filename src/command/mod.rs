//! The command stage.
