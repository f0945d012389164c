//! The machine that a server runs on: this one, or that of a container daemon elsewhere, as its own
//! system describes it. What is measured belongs to that machine, whoever asked for it.

/// Where a server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Machine {
    /// On this machine; with the file system and device of its data directory.
    Here {
        storage: String,
    },
    Elsewhere(Box<Facts>),
}

/// What a machine says of itself, as Linux has it in files; empty where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The first processor of /proc/cpuinfo.
    pub processor: String,
    pub cores: Option<u32>,
    /// /proc/meminfo
    pub memory: String,
    /// Such as `6.1.0-18-amd64`.
    pub kernel: String,
    /// As `uname` names it: `x86_64`.
    pub architecture: String,
    /// Who made it, and what: of a virtual machine its hypervisor.
    pub vendor: String,
    pub product: String,
    /// Filesystem and device of the data directory.
    pub storage: String,
    /// Differs between machines, and between boots of one.
    pub boot: String,
}

/// Changes with each boot, and differs between machines; empty where the system does not say.
pub fn boot_of_this() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
