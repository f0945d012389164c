//! Text into an [`crate::article::Article`], or every problem in it, each with its place.

pub mod sql;
