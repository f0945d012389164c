//! Whether the CPU was ours while a window was open: time given to other guests, stops by the
//! limit of a container, slowing because of heat. Read from files that Linux has; elsewhere nothing
//! is known, and nothing is doubted. Of a server in a container they are its own files, wherever it
//! runs, and the server reads them for us.

use crate::engine::session::Session;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, Default)]
pub struct CpuState {
    times: Option<CpuTimes>,
    throttled: Option<u64>,
    overheated: Option<u64>,
}

/// What happened between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuChange {
    /// Share of the time that was given away.
    pub steal: Option<f64>,
    pub throttled: u64,
    pub overheated: u64,
}

impl CpuState {
    /// Of what the server runs in. `control` is a superuser's session.
    pub async fn read(control: &mut Session) -> Self {
        if control.is_contained() {
            let said = control.execute(CONTAINED).await;
            let row = said.ok().and_then(|said| said.rows.into_iter().next());
            return Self::of_container(&row.unwrap_or_default());
        }
        if control.is_elsewhere() {
            return Self::default();
        }
        Self {
            times: fs::read_to_string("/proc/stat")
                .ok()
                .and_then(|stat| CpuTimes::parse(&stat)),
            throttled: fs::read_to_string("/proc/self/cgroup")
                .ok()
                .and_then(|own| throttled(&own, Path::new("/sys/fs/cgroup"))),
            overheated: overheated(Path::new("/sys/devices/system/cpu")),
        }
    }

    /// The columns of [`CONTAINED`].
    fn of_container(row: &[Option<String>]) -> Self {
        let column = |index: usize| row.get(index)?.as_deref();
        Self {
            times: column(0).and_then(CpuTimes::parse),
            throttled: column(1).and_then(throttled_count),
            overheated: column(2).and_then(|count| count.parse().ok()),
        }
    }

    pub fn since(self, before: Self) -> CpuChange {
        let more = |after: Option<u64>, before: Option<u64>| {
            let both = after.zip(before);
            both.map_or(0, |(after, before)| after.saturating_sub(before))
        };
        CpuChange {
            steal: (self.times.zip(before.times))
                .and_then(|(after, before)| after.steal_since(before)),
            throttled: more(self.throttled, before.throttled),
            overheated: more(self.overheated, before.overheated),
        }
    }
}

/// A container sees the counts of all the machine's processors, and of control groups its own, in
/// either version of them.
const CONTAINED: &str = "SELECT pg_catalog.pg_read_file('/proc/stat', 0, 4096, true),
    coalesce(pg_catalog.pg_read_file('/sys/fs/cgroup/cpu.stat', 0, 4096, true),
        pg_catalog.pg_read_file('/sys/fs/cgroup/cpu,cpuacct/cpu.stat', 0, 4096, true),
        pg_catalog.pg_read_file('/sys/fs/cgroup/cpu/cpu.stat', 0, 4096, true)),
    (SELECT sum(pg_catalog.rtrim(counted, E'\\n')::bigint)
     FROM pg_catalog.pg_ls_dir('/sys/devices/system/cpu', true, false) AS cpu,
         LATERAL pg_catalog.pg_read_file('/sys/devices/system/cpu/' || cpu
             || '/thermal_throttle/core_throttle_count', 0, 64, true) AS counted
     WHERE cpu ~ '^cpu[0-9]+$' AND counted ~ '^[0-9]')";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTimes {
    total: u64,
    steal: u64,
}

impl CpuTimes {
    /// The first line of /proc/stat, in ticks.
    fn parse(stat: &str) -> Option<Self> {
        let ticks: Vec<u64> = stat
            .lines()
            .next()?
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|field| field.parse().ok())
            .collect();
        Some(Self {
            total: ticks.iter().sum(),
            steal: *ticks.get(7)?,
        })
    }

    /// The share of the time between; None where it is too short to tell, or a counter went back.
    fn steal_since(self, before: Self) -> Option<f64> {
        let total = self.total.checked_sub(before.total)?;
        let steal = self.steal.checked_sub(before.steal)?;
        // A tick is 10 ms: below a hundred of them a share means nothing.
        (total >= 100).then(|| steal as f64 / total as f64)
    }
}

/// How often this process and all in its control group were stopped by a CPU limit, theirs or that
/// of a group above. `own` is /proc/self/cgroup; both versions of control groups are known.
fn throttled(own: &str, root: &Path) -> Option<u64> {
    let counts: Vec<u64> = own
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .flat_map(|(controllers, path)| {
            let is_cpu = controllers.split(',').any(|name| name == "cpu");
            let roots = match controllers {
                // Version 2 has one tree; beside version 1 it stands in a folder of its own.
                "" => vec![root.to_owned(), root.join("unified")],
                _ if is_cpu => vec![root.join(controllers), root.join("cpu")],
                _ => Vec::new(),
            };
            roots.into_iter().map(move |root| (root, path.to_owned()))
        })
        .filter_map(|(root, path)| throttled_upwards(&root, &path))
        .collect();
    // A link leads from one name of the tree to the other: the same count comes twice.
    counts.into_iter().max()
}

/// A group's limit is counted in that group: its own and those above it add up.
fn throttled_upwards(root: &Path, path: &str) -> Option<u64> {
    let own = Path::new(path.trim_start_matches('/'));
    let counts: Vec<u64> = own
        .ancestors()
        .filter_map(|group| count_in(&root.join(group).join("cpu.stat")))
        .collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

fn count_in(stat: &Path) -> Option<u64> {
    throttled_count(&fs::read_to_string(stat).ok()?)
}

fn throttled_count(stat: &str) -> Option<u64> {
    let line = stat
        .lines()
        .find_map(|line| line.strip_prefix("nr_throttled "))?;
    line.trim().parse().ok()
}

/// How often cores were slowed because of their heat, all together, as Intel's driver counts it.
fn overheated(cpus: &Path) -> Option<u64> {
    let mut folders: Vec<PathBuf> = fs::read_dir(cpus)
        .ok()?
        .flatten()
        .map(|entry| entry.path().join("thermal_throttle/core_throttle_count"))
        .collect();
    folders.sort();
    let counts: Vec<u64> = folders
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
        .collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share_of_at_least_a_second() {
        let times = |total, steal| CpuTimes { total, steal };
        for (after, share) in [
            (times(1200, 70), Some(0.1)),
            (times(1200, 50), Some(0.0)),
            (times(1099, 90), None),
            // Some hypervisors take back what they counted.
            (times(1200, 49), None),
            (times(900, 50), None),
        ] {
            assert_eq!(after.steal_since(times(1000, 50)), share);
        }
        let stat = "cpu  10 1 5 80 2 0 1 7 0 0\ncpu0 5 0 2 40 1 0 0 3 0 0\n";
        assert_eq!(CpuTimes::parse(stat), Some(times(106, 7)));
        assert_eq!(CpuTimes::parse("cpu 1 2 3\n"), None);
    }

    #[test]
    fn throttling_is_counted_in_the_own_group_and_those_above() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "a/cpu.stat",
            "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1\n",
        );
        write("a/b/cpu.stat", "nr_periods 9\nnr_throttled 3\n");
        write("other/cpu.stat", "nr_throttled 100\n");
        write("cpu,cpuacct/c/cpu.stat", "nr_throttled 2\n");
        write("memory/c/cpu.stat", "nr_throttled 50\n");
        for (own, count) in [
            ("0::/a/b\n", Some(7)),
            ("0::/a\n", Some(4)),
            // No limit is counted in the root of all groups.
            ("0::/\n", None),
            ("3:cpu,cpuacct:/c\n2:memory:/c\n", Some(2)),
            ("2:memory:/c\n1:cpuset:/c\n", None),
            ("", None),
            ("nonsense", None),
        ] {
            assert_eq!(throttled(own, root.path()), count, "{own}");
        }
    }

    #[test]
    fn what_a_container_says_of_itself_is_read() {
        let row = [
            "cpu  10 1 5 80 2 0 1 7 0 0\ncpu0 5\n",
            "nr_throttled 3\n",
            "4",
        ];
        let row = row.map(|column| Some(column.to_owned()));
        let state = CpuState::of_container(&row);
        assert_eq!(state.times, CpuTimes::parse("cpu  10 1 5 80 2 0 1 7"));
        assert_eq!((state.throttled, state.overheated), (Some(3), Some(4)));
        // No control group is told of, and no heat: nothing is known.
        let state = CpuState::of_container(&[row[0].clone(), None, None]);
        assert_eq!((state.throttled, state.overheated), (None, None));
        assert!(CpuState::of_container(&[]).times.is_none());
    }

    #[test]
    fn heat_is_counted_over_all_cores() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(overheated(root.path()), None);
        for (core, count) in [("cpu0", "3\n"), ("cpu1", "4\n")] {
            let folder = root.path().join(core).join("thermal_throttle");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("core_throttle_count"), count).unwrap();
        }
        fs::create_dir(root.path().join("cpufreq")).unwrap();
        assert_eq!(overheated(root.path()), Some(7));
    }

    #[test]
    fn a_change_is_what_was_counted_between() {
        let state = |throttled, overheated| CpuState {
            times: None,
            throttled,
            overheated,
        };
        let change = state(Some(9), Some(1)).since(state(Some(4), None));
        let expected = CpuChange {
            steal: None,
            throttled: 5,
            overheated: 0,
        };
        assert_eq!(change, expected);
        assert_eq!(
            state(Some(1), None).since(state(Some(4), None)),
            CpuChange::default()
        );
    }
}
