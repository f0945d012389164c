//! Where results wait between runs: below `.remeasure/` beside the articles, one file for each
//! fingerprint of each experiment, appended to after each cell. Deleting it loses measurements
//! that were not accepted, nothing else.
//!
//! An experiment's file is JSON lines: a header, one line for each cell whose runs are all measured,
//! and a last line that says the experiment is whole. A torn last line, as `kill -9` or a full disk
//! leaves it, is ignored. While it is being written the file is called `….measuring.jsonl`: a whole
//! result of the same inputs stays until there is another whole one.

use super::format::{Doubt, ExperimentRecord, Fingerprint, Sample};
use super::lock::{Locking, try_lock};
use crate::article::{Cells, Scalar};
use crate::exit_code::Failure;
use crate::quantity::{Table, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use super::read::read_record;

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
    /// Why nothing was: an existing server refuses it.
    pub skipped: Option<String>,
}

impl StoredExperiment {
    pub fn cells_done(&self) -> usize {
        self.samples
            .iter()
            .map(|sample| sample.cell)
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// How long it took, in seconds with three decimals; None where that is not known.
    pub fn seconds(&self) -> Option<String> {
        let seconds: f64 = self.durations.iter().map(|(_, seconds)| seconds).sum();
        (seconds > 0.0).then(|| format!("{seconds:.3}"))
    }

    /// An accepted result as if it stood in the store: derived columns left out, rows given back
    /// to their cells. None where the cells are not the record's.
    pub fn from_record(record: &ExperimentRecord, cells: &Cells) -> Option<Self> {
        let keys = cells.columns.len() + 1;
        let columns = &record.measured.columns;
        let has_keys = |table: &Table| {
            let names = cells.columns.iter().map(String::as_str).chain(["run"]);
            table.columns.len() >= keys && names.eq(table.columns[..keys].iter().map(|c| &*c.name))
        };
        if !has_keys(&record.measured) || !record.results.values().all(has_keys) {
            return None;
        }
        let measured: Vec<usize> = (keys..columns.len())
            .filter(|&column| !record.derived.contains(&columns[column].name))
            .collect();
        let cell_of = |row: &[Value]| {
            let row: Vec<String> = row[..keys - 1].iter().map(Value::to_string).collect();
            let is_its = |cell: &Vec<Scalar>| cell.iter().map(Scalar::to_string).eq(row.clone());
            cells.rows.iter().position(is_its)
        };
        let sample = |row: &Vec<Value>| {
            let part = |table: &Table| Table {
                columns: table.columns[keys..].to_vec(),
                rows: (table.rows.iter())
                    .filter(|other| other[..keys] == row[..keys])
                    .map(|other| other[keys..].to_vec())
                    .collect(),
            };
            Some(Sample {
                cell: cell_of(row)?,
                run: row[keys - 1].to_string().parse().ok()?,
                row: Table {
                    columns: measured.iter().map(|&i| columns[i].clone()).collect(),
                    rows: vec![measured.iter().map(|&i| row[i].clone()).collect()],
                },
                results: (record.results.iter())
                    .map(|(name, table)| (name.clone(), part(table)))
                    .collect(),
            })
        };
        Some(Self {
            inputs: record.inputs.clone(),
            host: record.host.clone(),
            measured_at: record.measured_at.clone(),
            settings: record.settings.clone(),
            samples: (record.measured.rows.iter())
                .map(sample)
                .collect::<Option<_>>()?,
            doubts: record.doubts.clone(),
            durations: durations(record, cells),
            finished: true,
            skipped: None,
        })
    }
}

/// A record knows how long all cells took together: each gets its share.
fn durations(record: &ExperimentRecord, cells: &Cells) -> Vec<(usize, f64)> {
    let seconds = record.seconds.as_ref().and_then(|text| text.parse().ok());
    // Anybody may have written the file.
    let seconds = seconds.filter(|seconds: &f64| (0.0..1e7).contains(seconds));
    let share = |seconds: f64| seconds / cells.rows.len() as f64;
    let each = |share| (0..cells.rows.len()).map(|cell| (cell, share)).collect();
    seconds.map(share).map_or_else(Vec::new, each)
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
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skipped: Option<String>,
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

impl Store {
    /// `state` is the `.remeasure` folder.
    pub fn new(state: &Path, slug: &str) -> Self {
        Self {
            folder: state.join(slug),
        }
    }

    /// Held by the one process that measures this article or accepts it, so that two do not mix
    /// their lines.
    pub fn try_lock(&self) -> Result<Locking, Failure> {
        // No experiment can have a name that begins with a point.
        let path = self.folder.join(".lock");
        fs::create_dir_all(&self.folder)
            .and_then(|()| self.ignore())
            .and_then(|()| try_lock(&path))
            .map_err(|error| Failure::io("lock", &path, &error))
    }

    /// State beside an article is for no repository.
    fn ignore(&self) -> io::Result<()> {
        let path = self.folder.with_file_name(".gitignore");
        match path.exists() {
            true => Ok(()),
            false => fs::write(path, "*\n"),
        }
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
    ) -> Result<ResultWriter, Failure> {
        let folder = self.folder.join(experiment);
        let name = format!("{}-{}", short(fingerprint), short(&start.host));
        let path = folder.join(format!("{name}.measuring.jsonl"));
        let begin = || {
            fs::create_dir_all(&folder)?;
            write_atomically(&path, &beginning(start)?)?;
            OpenOptions::new().append(true).open(&path)
        };
        match begin() {
            Ok(file) => Ok(ResultWriter {
                file,
                whole: folder.join(format!("{name}.jsonl")),
                path,
            }),
            Err(error) => Err(Failure::io("write", &path, &error)),
        }
    }

    /// Writes down that nothing of an experiment can be measured on its server, with why.
    pub fn skip(
        &self,
        experiment: &str,
        fingerprint: &str,
        skipped: &StoredExperiment,
    ) -> Result<(), Failure> {
        self.writer(experiment, fingerprint, skipped)?.finished(&[])
    }

    /// A cached value under a content hash, such as an analysis or a drawn chart.
    pub fn cached(&self, kind: &str, key: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(kind).join(key)).ok()
    }

    pub fn cache(&self, kind: &str, key: &str, content: &str) -> Result<(), Failure> {
        let folder = self.folder.join(kind);
        let path = folder.join(key);
        fs::create_dir_all(&folder)
            .and_then(|()| write_derived(&path, content.as_bytes()))
            .map_err(|error| Failure::io("write", &path, &error))
    }
}

/// Appends cells as they are finished.
#[derive(Debug)]
pub struct ResultWriter {
    file: File,
    path: PathBuf,
    /// What the file is called once the experiment is whole.
    whole: PathBuf,
}

impl ResultWriter {
    pub fn unit(
        &mut self,
        cell: usize,
        seconds: f64,
        samples: &[Sample],
        doubts: &[Doubt],
    ) -> Result<(), Failure> {
        self.append(&Line::Unit {
            cell,
            seconds,
            samples: samples.to_vec(),
            doubts: doubts.to_vec(),
        })
    }

    pub fn finished(mut self, doubts: &[Doubt]) -> Result<(), Failure> {
        self.append(&Line::Finished {
            doubts: doubts.to_vec(),
        })?;
        fs::rename(&self.path, &self.whole)
            .map_err(|error| Failure::io("write", &self.whole, &error))
    }

    fn append(&mut self, line: &Line) -> Result<(), Failure> {
        let mut text = Vec::new();
        write_line(&mut text, line)
            .and_then(|()| self.file.write_all(&text))
            .and_then(|()| self.file.sync_data())
            .map_err(|error| Failure::io("write", &self.path, &error))
    }
}

/// The header, and the cells that are measured already.
fn beginning(start: &StoredExperiment) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let header = Line::Header {
        format: FORMAT,
        inputs: start.inputs.clone(),
        host: start.host.clone(),
        measured_at: start.measured_at.clone(),
        settings: start.settings.clone(),
        skipped: start.skipped.clone(),
    };
    write_line(&mut text, &header)?;
    let mut doubts = start.doubts.clone();
    for (cell, seconds, samples) in units(start) {
        let unit = Line::Unit {
            cell,
            seconds,
            samples,
            doubts: std::mem::take(&mut doubts),
        };
        write_line(&mut text, &unit)?;
    }
    Ok(text)
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
        skipped,
    } = serde_json::from_str(lines.next()?).ok()?
    else {
        return None;
    };
    let mut stored = StoredExperiment {
        inputs,
        host,
        measured_at,
        settings,
        skipped,
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
        .prefix(".writing-")
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
mod tests;
