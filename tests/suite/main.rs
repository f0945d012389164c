//! Every test that runs the program or a real server. One binary, so that it is linked once.

mod articles;
mod caching;
mod cases;
mod engines;
mod fuzz;
#[path = "../../benches/generated.rs"]
#[allow(dead_code, reason = "benchmarks use more of it")]
mod generated;
mod interrupted;
mod measuring;
mod project;
mod readme;
mod telling;
