//! The parse stage.
