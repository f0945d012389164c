//! How long a server takes from nothing to its first answer, by each engine, and beside it what people
//! write by hand: `docker run` and a loop of `pg_isready`. In turn, so that a busy machine is busy for
//! all; ratios decide.

use remeasure::engine::pins::{Pin, Pins};
use remeasure::engine::session::Role;
use remeasure::engine::{self, EngineChoice, Limits, StartRequest};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const VERSION: &str = "16.15";
const TURNS: usize = 5;

/// How long it takes; None where it cannot be had.
type Way<'a> = Box<dyn Fn() -> Option<Duration> + 'a>;

pub fn print() {
    let pins = std::env::var_os("REMEASURE_TEST_PINS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("articles/pins.yaml"),
        PathBuf::from,
    );
    let pins = Pins::read(&pins).expect("pins.yaml is right");
    let pin = pins.version(VERSION).expect("the version is pinned");
    println!("\nPostgres {VERSION}, from nothing to the first answer, best of {TURNS}, in ms\n");
    // The first fetches what is missing.
    let mut ways: Vec<(&str, Way)> = vec![
        ("docker", Box::new(|| answer(&EngineChoice::Docker, pin))),
        ("docker run and pg_isready", Box::new(|| by_hand(pin))),
        (
            "embedded",
            Box::new(|| answer(&EngineChoice::Embedded, pin)),
        ),
    ];
    ways.retain(|(name, way)| {
        let there = way().is_some();
        if !there {
            println!("{name:<28}cannot be had here (`remeasure doctor`)");
        }
        there
    });
    let mut best = vec![Duration::MAX; ways.len()];
    for _ in 0..TURNS {
        for ((_, way), best) in ways.iter().zip(&mut best) {
            *best = way().map_or(*best, |taken| taken.min(*best));
        }
    }
    let Some(first) = best.first() else { return };
    for ((name, _), taken) in ways.iter().zip(&best) {
        println!(
            "{name:<28}{:>8.0}    {:.2} of the first",
            taken.as_secs_f64() * 1e3,
            taken.as_secs_f64() / first.as_secs_f64()
        );
    }
}

fn answer(choice: &EngineChoice, pin: &Pin) -> Option<Duration> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let begun = Instant::now();
        let request = StartRequest {
            pin,
            settings: &BTreeMap::new(),
            limits: Limits::default(),
            cache: &engine::default_cache(),
            offline: false,
            progress: &|_| {},
        };
        let server = engine::start(choice, &request).await.ok()?;
        let mut session = server.connect("postgres", Role::Tool).await.ok()?;
        session.execute("SELECT 1").await.ok()?;
        let taken = begun.elapsed();
        server.stop().await.ok()?;
        Some(taken)
    })
}

fn by_hand(pin: &Pin) -> Option<Duration> {
    let image = pin.image.as_ref()?;
    let repository = image.name.rsplit_once(':')?.0;
    let image = format!("{repository}@{}", image.digest);
    let docker = |arguments: &[&str]| Command::new("docker").args(arguments).output().ok();
    let begun = Instant::now();
    let run = ["run", "--detach", "--env", "POSTGRES_PASSWORD=x", &image];
    let started = docker(&run).filter(|output| output.status.success())?;
    let container = String::from_utf8(started.stdout).ok()?;
    let container = container.trim();
    // By TCP: the entrypoint's first, temporary server listens to its socket only.
    let ready = ["exec", container, "pg_isready", "--host", "127.0.0.1"];
    let limit = Duration::from_secs(60);
    while begun.elapsed() < limit && !docker(&ready)?.status.success() {
        std::thread::sleep(Duration::from_millis(100));
    }
    let taken = begun.elapsed();
    docker(&["rm", "--force", "--volumes", container]);
    Some(taken)
}
