//! Whether the server's program is for another processor than this machine has: its times are then
//! those of an emulator. A daemon that runs an x86_64 image on an aarch64 machine does so unasked.

/// `version` as `version()` answers: `PostgreSQL 16.15 on x86_64-pc-linux-gnu, compiled by …`.
/// `machine` is what Rust calls the processor this tool is built for.
pub fn is_emulated(version: &str, machine: &str) -> bool {
    const KNOWN: [&str; 2] = ["x86_64", "aarch64"];
    let built_for = version.split_once(" on ").map_or("", |(_, rest)| rest);
    let built_for = match built_for.split('-').next().unwrap_or_default() {
        "arm64" => "aarch64",
        "amd64" => "x86_64",
        other => other,
    };
    KNOWN.contains(&built_for) && KNOWN.contains(&machine) && built_for != machine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_another_processor_is_emulated() {
        for (version, machine, emulated) in [
            (
                "PostgreSQL 16.15 on x86_64-pc-linux-gnu, compiled by gcc",
                "x86_64",
                false,
            ),
            (
                "PostgreSQL 16.15 on x86_64-pc-linux-gnu, compiled by gcc",
                "aarch64",
                true,
            ),
            (
                "PostgreSQL 18.6 (Debian 18.6-1) on aarch64-unknown-linux-gnu, x",
                "x86_64",
                true,
            ),
            (
                "PostgreSQL 18.6 on arm64-apple-darwin, compiled by clang",
                "aarch64",
                false,
            ),
            // Of what is not known nothing is said.
            (
                "PostgreSQL 18.6 on s390x-ibm-linux-gnu, compiled by gcc",
                "x86_64",
                false,
            ),
            ("PostgreSQL 16.15 (fake)", "x86_64", false),
            ("", "x86_64", false),
        ] {
            assert_eq!(is_emulated(version, machine), emulated, "{version}");
        }
    }
}
