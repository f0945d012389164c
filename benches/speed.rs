//! `make bench`: how long reading, judging and linting take over sizes of an article, and the whole
//! process beside it. Prints a table; ratios decide, not times.

mod generated;
#[path = "speed/servers.rs"]
mod servers;

use generated::{Size, article, record, text, write_project};
use remeasure::record::parse_record;
use remeasure::record::to_json;
use remeasure::{judge, lint};
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SIZES: [usize; 3] = [1, 2, 4];

/// A name, and its time at each of the sizes.
type Row = (&'static str, Vec<Duration>);

fn main() {
    let mut rows: Vec<Row> = Vec::new();
    for factor in SIZES {
        let size = Size::LARGE.times(factor);
        for (name, time) in stages(size).into_iter().chain(processes(size)) {
            match rows.iter_mut().find(|(known, _)| *known == name) {
                Some((_, times)) => times.push(time),
                None => rows.push((name, vec![time])),
            }
        }
    }
    print(&rows);
    servers::print();
}

/// In this process.
fn stages(size: Size) -> Vec<(&'static str, Duration)> {
    let folder = Path::new("generated");
    let written = text(size);
    let article = article(written.clone(), folder);
    let record = record(&article, size);
    let json = to_json(&record);
    let context = judge::Context {
        profile: &record.profile,
        accepted: None,
        measured_here: false,
    };
    vec![
        (
            "parse",
            best(|| generated::article(written.clone(), folder)),
        ),
        ("read record", best(|| parse_record("record.json", &json))),
        ("judge", best(|| judge::judge(&article, &record, &context))),
        ("lint", best(|| lint::lint(&article))),
    ]
}

/// The program itself, from start to end.
fn processes(size: Size) -> Vec<(&'static str, Duration)> {
    let root = tempfile::tempdir().expect("a folder");
    write_project(root.path(), size);
    let run = |arguments: &[&str]| {
        let ran = Command::new(env!("CARGO_BIN_EXE_remeasure"))
            .args(arguments)
            .current_dir(root.path())
            .stdout(Stdio::null())
            .output()
            .expect("remeasure runs");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{arguments:?}: {said}");
    };
    vec![
        ("check --recorded", best(|| run(&["check", "--recorded"]))),
        ("remeasure lint", best(|| run(&["lint"]))),
    ]
}

/// The shortest of several tries: what is added to it is other processes' doing.
fn best<T>(mut once: impl FnMut() -> T) -> Duration {
    let tries = 10;
    (0..tries)
        .map(|_| {
            let start = Instant::now();
            let result = black_box(once());
            let taken = start.elapsed();
            drop(result);
            taken
        })
        .min()
        .unwrap_or_default()
}

fn print(rows: &[Row]) {
    let size = Size::LARGE;
    println!(
        "{} quotes, {} MB, {} measured rows; and {:?} times that: best of ten, in ms\n",
        size.quotes,
        size.bytes >> 20,
        size.rows,
        &SIZES[1..]
    );
    let heads: String = SIZES
        .iter()
        .map(|size| format!("{:>10}", format!("×{size}")))
        .collect();
    println!("{:<18}{heads}    ratios", "");
    for (name, times) in rows {
        let cells: String = times
            .iter()
            .map(|time| format!("{:>10.1}", time.as_secs_f64() * 1e3))
            .collect();
        let ratios: Vec<String> = times
            .windows(2)
            .map(|two| format!("{:.2}", two[1].as_secs_f64() / two[0].as_secs_f64()))
            .collect();
        println!("{name:<18}{cells}    {}", ratios.join(" "));
    }
}
