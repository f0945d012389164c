//! Every test that runs the program or a real server. One binary, so that it is linked once.

mod articles;
mod caching;
mod cases;
mod engines;
mod failing;
mod interrupted;
mod measuring;
mod project;
mod readme;
mod reports;
mod telling;
mod workflows;
