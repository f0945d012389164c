//! The analyse stage.
