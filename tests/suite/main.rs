//! Every test that runs the program or a real server. One binary, so that it is linked once.

mod articles;
mod at_once;
mod caching;
mod cases;
mod comparing;
mod engines;
mod interrupted;
mod measuring;
mod project;
mod readme;
mod recorded;
mod telling;
