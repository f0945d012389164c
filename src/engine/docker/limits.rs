//! What a container may use: from the front matter, else from the settings ([`Limits::asked`]), and
//! what the kernel has granted, as the container itself reads it ([`Granted::read`]).

use crate::diagnostic::Diagnostic;
use crate::engine::StartRequest;
use crate::exit_code::Failure;
use std::collections::BTreeMap;

/// None: whatever there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub memory_bytes: Option<i64>,
    pub nano_cpus: Option<i64>,
    pub shm_bytes: Option<i64>,
    pub processes: Option<i64>,
}

impl Limits {
    pub fn asked(request: &StartRequest<'_>) -> Result<Self, Failure> {
        let asked = &request.limits;
        let bytes = |name: &str, value: Option<&str>| match value {
            None => Ok(None),
            Some(value) => memory_bytes(value).map(Some).ok_or_else(|| {
                Failure::article(
                    Diagnostic::error(format!("`{name}: {value}` is no size"))
                        .hint("write a number with kB, MB, GB or TB"),
                )
            }),
        };
        let shared = bytes("shm_size", asked.shm_size)?;
        let cpus = asked.cpus.and_then(|cpus| cpus.parse::<f64>().ok());
        Ok(Self {
            memory_bytes: bytes("memory", asked.memory)?,
            nano_cpus: cpus.map(|cpus| (cpus * 1e9) as i64),
            shm_bytes: Some(shared.unwrap_or_else(|| shared_memory(request.settings))),
            processes: Some(processes(request.settings)),
        })
    }
}

/// What `/dev/shm` must hold: parallel workers share their memory there, an index build as much as
/// `maintenance_work_mem`, a hash join a multiple of `work_mem`.
fn shared_memory(settings: &BTreeMap<String, String>) -> i64 {
    const MEGABYTE: i64 = 1 << 20;
    let of = |name: &str, default: i64| {
        let asked = setting(settings, name).and_then(memory_bytes);
        asked.unwrap_or(default)
    };
    let work = of("work_mem", 4 * MEGABYTE);
    let maintenance = of("maintenance_work_mem", 64 * MEGABYTE);
    64 * MEGABYTE + 2 * maintenance + 16 * work.max(4 * MEGABYTE)
}

/// How many processes a server with these settings may come to, and as many clients beside it: each
/// thread of a pgbench in the container counts.
pub fn processes(settings: &BTreeMap<String, String>) -> i64 {
    /// Each starts a process for one; with the most that any version has by default.
    const SETTINGS: [(&str, i64); 5] = [
        ("max_connections", 100),
        ("max_worker_processes", 8),
        ("autovacuum_worker_slots", 16),
        ("autovacuum_max_workers", 3),
        ("max_wal_senders", 10),
    ];
    const OTHERS: i64 = 256;
    let of = |(name, default): (&str, i64)| {
        let asked = setting(settings, name).and_then(|value| value.trim().parse().ok());
        asked.unwrap_or(default).clamp(0, 1 << 20)
    };
    (OTHERS + 2 * SETTINGS.into_iter().map(of).sum::<i64>()).max(1024)
}

/// Names of settings have no case.
fn setting<'a>(settings: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    let found = settings
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

/// `512MB` as Postgres means it; a number alone is in kB, as these settings have it.
fn memory_bytes(value: &str) -> Option<i64> {
    let value = value.trim();
    let digits = value
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(value.len());
    let number: i64 = value[..digits].parse().ok()?;
    let unit = match value[digits..].trim() {
        "B" => 1,
        "" | "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1_i64 << 40,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// What the container's first process prints before each thing that it was granted.
const GRANTED: &str = "remeasure: granted ";
/// The last of these lines.
pub const ALL_GRANTED: &str = "remeasure: granted that";

/// Limits as the kernel has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted(Limits);

impl Granted {
    /// From what the container has printed; of both versions of control groups.
    pub fn read(printed: &str) -> Self {
        let mut limits = Limits::default();
        for line in printed
            .lines()
            .filter_map(|line| line.strip_prefix(GRANTED))
        {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            // `max`, -1 and a number near the largest stand for no limit.
            let number = |text: &str| {
                let number = text.trim().parse::<i64>().ok();
                number.filter(|number| (1..1 << 60).contains(number))
            };
            match name {
                "memory" => limits.memory_bytes = number(value),
                "cpu" => {
                    limits.nano_cpus = value.split_once(' ').and_then(|(quota, period)| {
                        let nano = i128::from(number(quota)?) * 1_000_000_000;
                        i64::try_from(nano / i128::from(number(period)?)).ok()
                    });
                }
                "pids" => limits.processes = number(value),
                "shm" => limits.shm_bytes = number(value).map(|kilobytes| kilobytes << 10),
                _ => {}
            }
        }
        Self(limits)
    }

    /// For the record.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let Limits {
            memory_bytes,
            nano_cpus,
            shm_bytes,
            processes,
        } = self.0;
        let cpus = nano_cpus.map(|nano| (nano as f64 / 1e9).to_string());
        let amount = |value: Option<i64>| value.map(|value| value.to_string());
        [
            ("memory_bytes", amount(memory_bytes)),
            ("cpus", cpus),
            ("shm_bytes", amount(shm_bytes)),
            ("processes", amount(processes)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }

    /// Where it is not what was asked for, a line for each.
    pub fn differs_from(&self, asked: &Limits) -> Vec<String> {
        let granted = &self.0;
        let mut lines = Vec::new();
        for (what, asked, granted, page) in [
            // The kernel counts memory in pages.
            ("memory", asked.memory_bytes, granted.memory_bytes, 65_536),
            ("CPU time", asked.nano_cpus, granted.nano_cpus, 10_000_000),
            ("/dev/shm", asked.shm_bytes, granted.shm_bytes, 65_536),
            ("processes", asked.processes, granted.processes, 0),
        ] {
            let Some(asked) = asked else { continue };
            match granted {
                Some(granted) if (granted - asked).abs() <= page => {}
                Some(granted) => lines.push(format!(
                    "the container was granted {}, not {} as asked",
                    amount(what, granted),
                    amount(what, asked)
                )),
                None => lines.push(format!(
                    "the container has no limit of {what}, where {} was asked for",
                    amount(what, asked)
                )),
            }
        }
        lines
    }
}

fn amount(what: &str, number: i64) -> String {
    match what {
        "CPU time" => format!("{} CPUs", number as f64 / 1e9),
        "processes" => format!("{number} processes"),
        _ => format!("{} kB of {what}", number >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn shared_memory_grows_with_the_settings() {
        let megabytes = |pairs: &[(&str, &str)]| shared_memory(&settings(pairs)) >> 20;
        assert_eq!(megabytes(&[]), 256);
        assert_eq!(
            megabytes(&[("Maintenance_Work_Mem", "1GB")]),
            64 + 2048 + 64
        );
        assert_eq!(megabytes(&[("work_mem", "65536")]), 64 + 128 + 1024);
    }

    #[test]
    fn there_are_processes_for_every_connection_and_its_client() {
        assert_eq!(processes(&settings(&[])), 1024);
        let many = processes(&settings(&[("max_connections", "5000")]));
        assert!(many > 10_000, "{many}");
        assert_eq!(processes(&settings(&[("max_connections", "many")])), 1024);
    }

    #[test]
    fn what_is_granted_is_read_of_both_versions_of_control_groups() {
        let limits = |memory, cpus, shm, processes| Limits {
            memory_bytes: memory,
            nano_cpus: cpus,
            shm_bytes: shm,
            processes,
        };
        for (printed, expected) in [
            (
                "remeasure: granted memory 1073741824\nremeasure: granted cpu 150000 100000\n\
                 remeasure: granted pids 1024\nremeasure: granted shm 1024-blocks\n\
                 remeasure: granted shm 98304\nremeasure: granted that\n",
                limits(
                    Some(1 << 30),
                    Some(1_500_000_000),
                    Some(96 << 20),
                    Some(1024),
                ),
            ),
            (
                "remeasure: granted memory max\nremeasure: granted cpu max 100000\n\
                 remeasure: granted pids max\n",
                Limits::default(),
            ),
            (
                "remeasure: granted memory 9223372036854771712\n\
                 remeasure: granted cpu -1 100000\n",
                Limits::default(),
            ),
            ("", Limits::default()),
        ] {
            assert_eq!(Granted::read(printed).0, expected, "{printed}");
        }
    }

    #[test]
    fn what_differs_from_what_was_asked_is_told() {
        let asked = Limits {
            memory_bytes: Some(1 << 30),
            nano_cpus: Some(1_500_000_000),
            shm_bytes: None,
            processes: Some(1024),
        };
        let told = |printed: &str| Granted::read(printed).differs_from(&asked);
        let all = "remeasure: granted memory 1073737728\nremeasure: granted cpu 150000 100000\n\
                   remeasure: granted pids 1024\n";
        assert_eq!(told(all), [""; 0]);
        assert_eq!(
            told("remeasure: granted memory 536870912\nremeasure: granted pids 1024\n"),
            [
                "the container was granted 524288 kB of memory, not 1048576 kB of memory as asked",
                "the container has no limit of CPU time, where 1.5 CPUs was asked for",
            ]
        );
    }
}
