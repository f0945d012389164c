//! The engine stage.
