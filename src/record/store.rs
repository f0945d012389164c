//! Where results wait between runs: below `.remeasure/` beside the articles, one file for each
//! fingerprint of each experiment, appended to after each cell. Deleting it loses measurements
//! that were not accepted, nothing else.
//!
//! An experiment's file is JSON lines: a header, one line for each finished unit (a cell, or a
//! single run where cells are interleaved), and a last line that says the experiment is whole. A
//! torn last line, as `kill -9` or a full disk leaves it, is ignored.

use super::format::{
    Doubt, ExperimentRecord, FORMAT as RECORD_FORMAT, Fingerprint, Record, Sample,
};
use crate::article::Cells;
use crate::diagnostic::Diagnostic;
use crate::exit_code::Failure;
use crate::quantity::{Table, Value};
use crate::source::Source;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What is known of one fingerprint of one experiment on one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredExperiment {
    pub inputs: Fingerprint,
    pub host: String,
    pub measured_at: String,
    pub settings: BTreeMap<String, String>,
    pub samples: Vec<Sample>,
    pub doubts: Vec<Doubt>,
    /// Seconds that each unit took, with the cell it was of; for estimates.
    pub durations: Vec<(usize, f64)>,
    /// Everything planned was measured.
    pub finished: bool,
}

impl StoredExperiment {
    pub fn cells_done(&self) -> usize {
        self.samples
            .iter()
            .map(|sample| sample.cell)
            .collect::<BTreeSet<_>>()
            .len()
    }
}

impl StoredExperiment {
    /// An accepted result as if it stood in the store: derived columns left out, rows given back
    /// to their cells. None where the cells are not the record's.
    pub fn from_record(record: &ExperimentRecord, cells: &Cells) -> Option<Self> {
        let keys = cells.columns.len();
        let cell_of = |row: &[Value]| {
            cells.rows.iter().position(|cell| {
                cell.iter()
                    .zip(row)
                    .all(|(scalar, value)| scalar.to_string() == value.to_string())
            })
        };
        let measured: Vec<usize> = (keys + 1..record.measured.columns.len())
            .filter(|&column| {
                let name = &record.measured.columns[column].name;
                !record.derived.contains(name)
            })
            .collect();
        let mut samples = Vec::new();
        for row in &record.measured.rows {
            let run: u32 = row.get(keys)?.to_string().parse().ok()?;
            let cell = cell_of(row)?;
            let same_run = |other: &&Vec<Value>| {
                cell_of(other) == Some(cell) && other.get(keys) == row.get(keys)
            };
            let results: IndexMap<String, Table> = record
                .results
                .iter()
                .map(|(name, table)| {
                    let rows = table.rows.iter().filter(same_run);
                    let part = Table {
                        columns: table.columns[keys + 1..].to_vec(),
                        rows: rows.map(|row| row[keys + 1..].to_vec()).collect(),
                    };
                    (name.clone(), part)
                })
                .collect();
            let columns = &record.measured.columns;
            samples.push(Sample {
                cell,
                run,
                row: Table {
                    columns: measured.iter().map(|&i| columns[i].clone()).collect(),
                    rows: vec![measured.iter().map(|&i| row[i].clone()).collect()],
                },
                results,
            });
        }
        Some(Self {
            inputs: record.inputs.clone(),
            host: record.host.clone(),
            measured_at: record.measured_at.clone(),
            settings: record.settings.clone(),
            samples,
            doubts: record.doubts.clone(),
            durations: Vec::new(),
            finished: true,
        })
    }
}

/// The accepted record; None where there is none. One of a newer format is refused.
pub fn read_record(path: &Path) -> Result<Option<Record>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::io("read", path, &error)),
    };
    parse_record(&path.display().to_string(), &text)
        .map(Some)
        .map_err(Failure::article)
}

fn parse_record(name: &str, text: &str) -> Result<Record, Diagnostic> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let at = |error: &serde_json::Error| {
        let source = Source::new(name, name, text.to_owned());
        let line_start = text
            .split_inclusive('\n')
            .take(error.line().saturating_sub(1))
            .map(str::len)
            .sum::<usize>();
        let offset = (line_start + error.column().saturating_sub(1)).min(text.len());
        Diagnostic::error(format!("this record cannot be read: {error}"))
            .at(&source, offset..offset)
            .hint("restore it from version control, or accept new measurements: `remeasure accept`")
    };
    let version: Version = serde_json::from_str(text).map_err(|error| at(&error))?;
    if version.format > RECORD_FORMAT {
        return Err(Diagnostic::error(format!(
            "`{name}` is a record of format {}, this build reads up to {RECORD_FORMAT}",
            version.format
        ))
        .hint("use the version of remeasure that wrote it, or a later one"));
    }
    serde_json::from_str(text).map_err(|error| at(&error))
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header {
        format: u32,
        inputs: Fingerprint,
        host: String,
        measured_at: String,
        settings: BTreeMap<String, String>,
    },
    Unit {
        cell: usize,
        seconds: f64,
        samples: Vec<Sample>,
        doubts: Vec<Doubt>,
    },
    Finished {
        doubts: Vec<Doubt>,
    },
}

const FORMAT: u32 = 1;

/// The folder of one article's results.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// Held while an article is being measured, so that two builds at once do not mix their lines.
#[must_use]
pub struct StoreLock(#[expect(dead_code, reason = "the lock ends with the file")] File);

impl Store {
    /// `state` is the `.remeasure` folder.
    pub fn new(state: &Path, slug: &str) -> Self {
        Self {
            folder: state.join(slug),
        }
    }

    /// Waits until no other process measures this article; `on_wait` is called once if it must.
    pub fn lock(&self, on_wait: impl FnOnce()) -> io::Result<StoreLock> {
        fs::create_dir_all(&self.folder)?;
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.folder.join("lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                on_wait();
                file.lock()?;
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        Ok(StoreLock(file))
    }

    /// Every readable result of an experiment, in the order of their files' names. A file of a
    /// newer format or without a whole header counts as none.
    pub fn results(&self, experiment: &str) -> Vec<StoredExperiment> {
        let Ok(entries) = fs::read_dir(self.folder.join(experiment)) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .filter_map(|path| parse(&fs::read_to_string(path).ok()?))
            .collect()
    }

    /// Begins (or goes on with) the file of one fingerprint. What a torn line left is cut off.
    pub fn writer(
        &self,
        experiment: &str,
        fingerprint: &str,
        start: &StoredExperiment,
    ) -> io::Result<ResultWriter> {
        let folder = self.folder.join(experiment);
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!(
            "{}-{}.jsonl",
            short(fingerprint),
            short(&start.host)
        ));
        let mut lines = vec![Line::Header {
            format: FORMAT,
            inputs: start.inputs.clone(),
            host: start.host.clone(),
            measured_at: start.measured_at.clone(),
            settings: start.settings.clone(),
        }];
        let mut doubts = start.doubts.clone();
        for unit in units(start) {
            lines.push(Line::Unit {
                cell: unit.0,
                seconds: unit.1,
                samples: unit.2,
                doubts: std::mem::take(&mut doubts),
            });
        }
        let mut text = Vec::new();
        for line in &lines {
            write_line(&mut text, line)?;
        }
        write_atomically(&path, &text)?;
        let file = OpenOptions::new().append(true).open(&path)?;
        Ok(ResultWriter { file })
    }

    /// A cached value under a content hash, such as an analysis or a drawn chart.
    pub fn cached(&self, kind: &str, key: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(kind).join(key)).ok()
    }

    pub fn cache(&self, kind: &str, key: &str, content: &str) -> io::Result<()> {
        let folder = self.folder.join(kind);
        fs::create_dir_all(&folder)?;
        write_derived(&folder.join(key), content.as_bytes())
    }
}

/// Appends units as they are finished.
pub struct ResultWriter {
    file: File,
}

impl ResultWriter {
    pub fn unit(
        &mut self,
        cell: usize,
        seconds: f64,
        samples: &[Sample],
        doubts: &[Doubt],
    ) -> io::Result<()> {
        self.append(&Line::Unit {
            cell,
            seconds,
            samples: samples.to_vec(),
            doubts: doubts.to_vec(),
        })
    }

    pub fn finished(&mut self, doubts: &[Doubt]) -> io::Result<()> {
        self.append(&Line::Finished {
            doubts: doubts.to_vec(),
        })
    }

    fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut text = Vec::new();
        write_line(&mut text, line)?;
        self.file.write_all(&text)?;
        self.file.sync_data()
    }
}

fn write_line(text: &mut Vec<u8>, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *text, line)?;
    text.push(b'\n');
    Ok(())
}

/// Samples in units: neighbours of the same cell with the duration that was kept for them.
fn units(stored: &StoredExperiment) -> Vec<(usize, f64, Vec<Sample>)> {
    let mut units: Vec<(usize, f64, Vec<Sample>)> = Vec::new();
    for sample in &stored.samples {
        match units.last_mut() {
            Some((cell, _, samples)) if *cell == sample.cell => samples.push(sample.clone()),
            _ => units.push((sample.cell, 0.0, vec![sample.clone()])),
        }
    }
    for (unit, (_, seconds)) in units.iter_mut().zip(&stored.durations) {
        unit.1 = *seconds;
    }
    units
}

fn parse(text: &str) -> Option<StoredExperiment> {
    // Only whole lines count.
    let whole = &text[..text.rfind('\n')? + 1];
    let mut lines = whole.lines();
    let Line::Header {
        format: FORMAT,
        inputs,
        host,
        measured_at,
        settings,
    } = serde_json::from_str(lines.next()?).ok()?
    else {
        return None;
    };
    let mut stored = StoredExperiment {
        inputs,
        host,
        measured_at,
        settings,
        ..StoredExperiment::default()
    };
    for line in lines {
        match serde_json::from_str(line) {
            Ok(Line::Unit {
                cell,
                seconds,
                samples,
                doubts,
            }) => {
                stored.samples.extend(samples);
                stored.doubts.extend(doubts);
                stored.durations.push((cell, seconds));
            }
            Ok(Line::Finished { doubts }) => {
                stored.doubts.extend(doubts);
                stored.finished = true;
            }
            Ok(Line::Header { .. }) | Err(_) => break,
        }
    }
    Some(stored)
}

/// The first 16 hex digits: enough for a file's name, the whole hash stands inside.
fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

const BEING_WRITTEN: &str = ".writing-";

/// Whether this is the file of a [`write_atomically`] under way.
pub fn is_being_written(path: &Path) -> bool {
    path.file_name().is_some_and(|name| {
        name.as_encoded_bytes()
            .starts_with(BEING_WRITTEN.as_bytes())
    })
}

/// Writes beside and renames over, so that a reader sees the old file or the new, never a part;
/// after a power failure too.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, |file| file.sync_data())
}

/// The same for what can be made again: not waited for until it is on the disk.
pub fn write_derived(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, |_| Ok(()))
}

fn replace(
    path: &Path,
    content: &[u8],
    settle: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(BEING_WRITTEN)
        .tempfile_in(folder)?;
    file.write_all(content)?;
    settle(file.as_file())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A temporary file is private; what is published follows the usual rules for files.
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::{Column, Table, Value};

    fn sample(cell: usize, run: u32) -> Sample {
        Sample {
            cell,
            run,
            row: Table {
                columns: vec![Column::new("wal_bytes", "numeric")],
                rows: vec![vec![Value::from_postgres(
                    Some("123456789012345678901234567890.10"),
                    "numeric",
                )]],
            },
            results: indexmap::IndexMap::new(),
        }
    }

    #[test]
    fn an_interrupted_result_keeps_its_whole_units_and_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path(), "post");
        let start = StoredExperiment {
            host: "h".repeat(64),
            measured_at: "2026-11-30T10:00:00Z".into(),
            ..StoredExperiment::default()
        };
        let fingerprint = "f".repeat(64);
        let mut writer = store.writer("insert", &fingerprint, &start).unwrap();
        writer
            .unit(0, 1.5, &[sample(0, 1), sample(0, 2)], &[])
            .unwrap();
        drop(writer);
        let path = fs::read_dir(folder.path().join("post/insert"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
        torn.write_all(b"{\"unit\":{\"cell\":1,\"sec").unwrap();

        let found = store.results("insert").pop().unwrap();
        assert!(!found.finished);
        assert_eq!(found.samples, [sample(0, 1), sample(0, 2)]);
        assert_eq!(found.durations, [(0, 1.5)]);

        let mut writer = store.writer("insert", &fingerprint, &found).unwrap();
        writer.unit(1, 2.0, &[sample(1, 1)], &[]).unwrap();
        writer.finished(&[]).unwrap();
        let whole = store.results("insert").pop().unwrap();
        assert!(whole.finished);
        assert_eq!(whole.samples.len(), 3);
        assert_eq!(whole.durations, [(0, 1.5), (1, 2.0)]);
    }

    #[test]
    fn a_file_of_a_newer_format_counts_as_none() {
        assert_eq!(
            parse(
                "{\"header\":{\"format\":2,\"inputs\":{},\"host\":\"\",\"measured_at\":\"\",\"settings\":{}}}\n"
            ),
            None
        );
    }
}
