//! What the host is: the facts that timings depend on, hashed so that results of two machines are
//! told apart.

use crate::engine::{Facts, Machine};
use crate::record::{HostEnvironment, ToolEnvironment};
use std::fs;

/// The machine that a server runs on.
pub fn host(machine: &Machine) -> HostEnvironment {
    let mut host = match machine {
        Machine::Here { storage } => HostEnvironment {
            cores: std::thread::available_parallelism()
                .ok()
                .and_then(|cores| u32::try_from(cores.get()).ok())
                .unwrap_or(0),
            architecture: std::env::consts::ARCH.to_owned(),
            kernel: kernel(),
            ..with_sysctl(described(&here(storage)))
        },
        Machine::Elsewhere(facts) => described(facts),
    };
    host.sha256 = host.hash();
    host
}

/// What this machine says of itself, where it has files for it.
fn here(storage: &str) -> Facts {
    let of = |path: &str| read(path).unwrap_or_default();
    Facts {
        processor: of("/proc/cpuinfo"),
        memory: of("/proc/meminfo"),
        vendor: of("/sys/class/dmi/id/sys_vendor"),
        product: of("/sys/class/dmi/id/product_name"),
        storage: storage.to_owned(),
        ..Facts::default()
    }
}

/// A Mac says it in another way.
fn with_sysctl(mut host: HostEnvironment) -> HostEnvironment {
    for (fact, name) in [
        (&mut host.cpu, "machdep.cpu.brand_string"),
        (&mut host.memory_bytes, "hw.memsize"),
    ] {
        if fact == "unknown"
            && let Some(said) = sysctl(name)
        {
            *fact = said;
        }
    }
    host
}

fn described(facts: &Facts) -> HostEnvironment {
    let known = |text: &str| match text {
        "" => "unknown".to_owned(),
        text => text.to_owned(),
    };
    HostEnvironment {
        cpu: cpu_model(&facts.processor),
        cores: facts.cores.unwrap_or(0),
        memory_bytes: memory_bytes(&facts.memory),
        architecture: known(&facts.architecture),
        kernel: match facts.kernel.as_str() {
            "" => "unknown".to_owned(),
            release => format!("Linux {release}"),
        },
        virtualization: virtualization(facts),
        storage: known(&facts.storage),
        sha256: String::new(),
    }
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

fn cpu_model(processor: &str) -> String {
    let field = |name: &str| {
        processor
            .lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
    };
    field("model name")
        .or_else(|| field("CPU implementer").map(|i| format!("implementer {i}")))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn memory_bytes(memory: &str) -> String {
    let total = || {
        let line = memory.lines().find(|line| line.starts_with("MemTotal:"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some((kib * 1024).to_string())
    };
    total().unwrap_or_else(|| "unknown".to_owned())
}

fn kernel() -> String {
    let named = |system: &str, release: String| format!("{system} {release}");
    read("/proc/sys/kernel/osrelease")
        .map(|release| named("Linux", release))
        .or_else(|| sysctl("kern.osrelease").map(|release| named(std::env::consts::OS, release)))
        .unwrap_or_else(|| std::env::consts::OS.to_owned())
}

/// What the firmware and the CPU say about a hypervisor.
fn virtualization(facts: &Facts) -> String {
    let flagged = facts
        .processor
        .lines()
        .find(|line| line.starts_with("flags") || line.starts_with("Features"))
        .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    let names = [facts.vendor.trim(), facts.product.trim()];
    let named: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let product = named.join(" ");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_is_described_by_what_it_says_and_not_by_this_one() {
        let facts = Facts {
            processor: "processor : 0\nmodel name : EPYC 9654\nflags : fpu hypervisor\n".into(),
            cores: Some(96),
            memory: "MemTotal:  24684092 kB\nMemFree: 1 kB\n".into(),
            kernel: "6.1.0".into(),
            architecture: "x86_64".into(),
            vendor: "QEMU\n".into(),
            storage: "xfs on /dev/nvme0n1".into(),
            ..Facts::default()
        };
        let host = host(&Machine::Elsewhere(Box::new(facts)));
        assert_eq!(
            host.machine(),
            "EPYC 9654, 96 cores, 24 GB memory, Linux 6.1.0, xfs on /dev/nvme0n1"
        );
        assert_eq!(host.virtualization, "hypervisor (QEMU)");
        assert_eq!(host.sha256, host.hash());
        let unknown = super::host(&Machine::Elsewhere(Box::default()));
        assert_eq!((unknown.cpu.as_str(), unknown.cores), ("unknown", 0));
        assert_eq!(unknown.storage, "unknown");
    }
}
