//! What ARTICLE_FORMAT says of experiments, on the real pinned Postgres: each article is built by
//! the program, and what is asserted stands in the record that came out.

mod comparisons;
mod counted;
mod faults;
mod instruments;
mod plans;
mod programs;
mod protocol;
mod repetitions;
mod sessions;
mod settings;
mod together;
mod values;
mod versions;
