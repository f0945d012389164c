//! The plan stage.
