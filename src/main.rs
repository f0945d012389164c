use std::process::ExitCode;

fn main() -> ExitCode {
    remeasure::cli::main()
}
