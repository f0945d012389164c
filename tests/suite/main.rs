//! Every test that runs the program or a real server. One binary, so that it is linked once.

mod articles;
mod at_once;
mod caching;
mod cases;
mod comparing;
mod engines;
mod failing;
mod fuzz;
#[path = "../../benches/generated.rs"]
#[allow(dead_code, reason = "benchmarks use more of it")]
mod generated;
mod interrupted;
mod measuring;
mod project;
mod quotes;
mod readme;
mod recorded;
mod reports;
mod several_machines;
mod shards;
mod telling;
mod workflows;
