mod fake;
pub mod pins;
pub mod session;
mod statement;
