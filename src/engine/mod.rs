pub mod pins;
