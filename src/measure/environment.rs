//! What the host is: the facts that timings depend on, hashed so that results of two machines are
//! told apart.

use crate::record::{HostEnvironment, ToolEnvironment};
use std::fs;

/// This machine. `storage` says what the data directory lies on.
pub fn host(storage: &str) -> HostEnvironment {
    let mut host = HostEnvironment {
        cpu: cpu_model(),
        cores: std::thread::available_parallelism()
            .ok()
            .and_then(|cores| u32::try_from(cores.get()).ok())
            .unwrap_or(0),
        memory_bytes: memory_bytes(),
        architecture: std::env::consts::ARCH.to_owned(),
        kernel: kernel(),
        virtualization: virtualization(),
        storage: storage.to_owned(),
        sha256: String::new(),
    };
    host.sha256 = host.hash();
    host
}

/// This build of the tool, with the version of the way it measures.
pub fn tool(protocol: u32) -> ToolEnvironment {
    let mut tool = ToolEnvironment {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol,
        sha256: String::new(),
    };
    tool.sha256 = tool.hash();
    tool
}

fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn cpu_model() -> String {
    let from_proc = || {
        let info = fs::read_to_string("/proc/cpuinfo").ok()?;
        let field = |name: &str| {
            info.lines()
                .find(|line| line.starts_with(name))
                .and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
        };
        field("model name").or_else(|| field("CPU implementer").map(|i| format!("implementer {i}")))
    };
    from_proc()
        .or_else(|| sysctl("machdep.cpu.brand_string"))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn memory_bytes() -> String {
    let from_proc = || {
        let info = fs::read_to_string("/proc/meminfo").ok()?;
        let line = info.lines().find(|line| line.starts_with("MemTotal:"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some((kib * 1024).to_string())
    };
    from_proc()
        .or_else(|| sysctl("hw.memsize"))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn kernel() -> String {
    let named = |system: &str, release: String| format!("{system} {release}");
    read("/proc/sys/kernel/osrelease")
        .map(|release| named("Linux", release))
        .or_else(|| sysctl("kern.osrelease").map(|release| named(std::env::consts::OS, release)))
        .unwrap_or_else(|| std::env::consts::OS.to_owned())
}

/// What the firmware and the CPU say about a hypervisor.
fn virtualization() -> String {
    let flagged = fs::read_to_string("/proc/cpuinfo").is_ok_and(|info| {
        info.lines()
            .find(|line| line.starts_with("flags") || line.starts_with("Features"))
            .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
    });
    let product = read("/sys/class/dmi/id/sys_vendor")
        .into_iter()
        .chain(read("/sys/class/dmi/id/product_name"))
        .collect::<Vec<_>>()
        .join(" ");
    match (flagged, product.is_empty()) {
        (false, _) => "none".to_owned(),
        (true, true) => "hypervisor".to_owned(),
        (true, false) => format!("hypervisor ({product})"),
    }
}

fn sysctl(name: &str) -> Option<String> {
    if !cfg!(target_os = "macos") {
        return None;
    }
    let output = std::process::Command::new("/usr/sbin/sysctl")
        .args(["-n", name])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (!text.trim().is_empty()).then(|| text.trim().to_owned())
}
