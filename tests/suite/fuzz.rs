//! Mutations of articles, scripts, quotes and records, and texts made to be slow to read. What has
//! to hold of each stands in `fuzz/bodies.rs`.
//!
//! `FUZZ_SECONDS` says for how long (`make fuzz`), `FUZZ_SEED` where to begin; a failure prints the
//! seed and the text.

use crate::generated::{self, Size};
use remeasure::record::parse_record;
use remeasure::record::{Record, to_json};
use remeasure::{judge, lint};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

#[path = "../../fuzz/bodies.rs"]
mod bodies;

/// Of an ordinary `cargo test`, for all targets together.
const SECONDS: u64 = 4;

/// Longer inputs than these find nothing that shorter ones do not.
const LENGTH: usize = 4_000;

fn number(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
        Err(_) => otherwise,
    }
}

#[test]
fn whatever_is_read_is_read_or_refused_in_order() {
    let first = number("FUZZ_SEED", 1);
    let each = Duration::from_secs(number("FUZZ_SECONDS", SECONDS)) / bodies::TARGETS.len() as u32;
    for (name, body) in bodies::TARGETS {
        let seeds = seeds(name);
        let start = Instant::now();
        let mut seed = first;
        while seed == first || start.elapsed() < each {
            let input = Mutation::new(seed).of(&seeds);
            if catch_unwind(AssertUnwindSafe(|| body(&input))).is_err() {
                let text = String::from_utf8_lossy(&input);
                panic!(
                    "target {name}, FUZZ_SEED={seed}, of the {} bytes\n{text:?}",
                    input.len()
                );
            }
            seed += 1;
        }
        println!("{name}: {} inputs", seed - first);
    }
}

/// What the mutations of a target begin with.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    if target == "record" {
        let size = Size {
            quotes: 3,
            bytes: 0,
            rows: 10,
        };
        let article = generated::article(generated::text(size), Path::new("generated"));
        let records = [Record::default(), generated::record(&article, size)];
        return records
            .iter()
            .map(|one| to_json(one).into_bytes())
            .collect();
    }
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["articles", "tests/articles"] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        seeds.extend(
            paths
                .iter()
                .filter_map(|path| fs::read(path.join("article.md")).ok()),
        );
    }
    seeds.extend(QUOTES.iter().map(|text| text.as_bytes().to_vec()));
    seeds.extend(SCRIPTS.iter().map(|text| text.as_bytes().to_vec()));
    if target == "quote" {
        seeds.retain(|seed| seed.len() < 100);
    }
    seeds
}

#[rustfmt::skip]
const QUOTES: &[&str] = &[
    "76 bytes", "−1,234.5", "754k rows/s", "65%", "8,023,5xx", "1.3–1.8 µs", "1.3 to 1.8 µs", "×3", "3x", "40-byte", "1e6",
    "from 9.6 to 18", "1\u{202f}000 B/row", "2 bn", "+.5 GiB", "16 MiB/s", "about half",
];

#[rustfmt::skip]
const SCRIPTS: &[&str] = &[
    "SELECT $a$ ; $a$, E'\\'', U&\"x\" FROM t WHERE a = :'b'; -- c\n/* /* */ */ VALUES (1)\\gexec\nSELECT 1 \\gset p_\n",
    "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; END; COPY t FROM 'x'; SELECT a[1:2]::int;",
];

/// What means something to one of the readers.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "[", "](", ")", "](claim:x)", "[76 bytes](claim:x)", "](cite:source)", "[](chart:c)", "{{", "}}", "{{ x }}", "\\{{", "`",
    "```", "```sql claims c\n", "```sql experiment e\n", "```sql chart c\n", "--| ", "--| x: {unit: B, kind: noisy}\n",
    "--| measure:\n", "--| matrix: {a: [1, 2]}\n", "\n", "\r\n", "\n\n", "---\n", "|", "|---|\n", "<", ">", "<!--", "-->",
    "<b>", "$", "$$", "$a$", "'", "\"", "E'", "/*", "*/", "--", ";", ":x", ":'x'", ":\"x\"", "::", "\\gexec", "\\gset p_",
    "BEGIN ATOMIC ", "END", "CASE", "(", "measured.e", "1,000", "1.5", "−", "–", " to ", "%", "×", "kB", "µs", "\u{a0}",
    "\u{202f}", "xx", "e9", "é", "行", "\u{1b}", "\u{9b}", "\u{feff}", "\u{e000}", "\0", "\t", "&amp;", "!", "#", "# ", "- ",
    "1. ", "> ", "    ", "[^1]", "[^1]: ", "\\", "{", "}", ":", ",", "null", "true", "\"format\": 2", "[]", "NaN", "~~~\n",
    "title: T\n", "postgres: {version: \"16.15\"}\n", "&a", "*a", "!!str ", "? ", "| \n", "0000000000000000000000000",
];

/// A row of changes that one number decides.
struct Mutation {
    state: u64,
}

impl Mutation {
    fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % end.max(1)
    }

    fn of(mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let index = self.below(seeds.len());
        let mut input = self.part(&seeds[index]);
        for _ in 0..1 + self.below(8) {
            self.change(&mut input, seeds);
        }
        input.truncate(LENGTH);
        input
    }

    /// All of a short seed, a stretch of a long one.
    fn part(&mut self, seed: &[u8]) -> Vec<u8> {
        if seed.len() <= LENGTH {
            return seed.to_vec();
        }
        let start = self.below(seed.len() - LENGTH);
        let end = start + self.below(LENGTH);
        seed[start..end].to_vec()
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let end = (at + self.below(40)).min(input.len());
        match self.below(8) {
            0 => drop(input.drain(at..end)),
            1 => {
                let again = input[at..end].to_vec();
                let times = 1 + self.below(20);
                input.splice(at..at, again.repeat(times));
            }
            2 => {
                let other = self.below(seeds.len());
                let mut other = self.part(&seeds[other]);
                other.truncate(self.below(200));
                input.splice(at..end, other);
            }
            3 if !input.is_empty() => {
                let at = at.min(input.len() - 1);
                input[at] = self.below(256) as u8;
            }
            4 => input.truncate(at),
            _ => {
                let word = WORDS[self.below(WORDS.len())];
                input.splice(at..at, word.bytes());
            }
        }
    }
}

/// Texts of one thing over and over, which a careless reader goes through again for each of them.
#[test]
fn four_times_the_text_is_not_eight_times_the_work() {
    let mut slow = Vec::new();
    for (name, body) in bodies::TARGETS {
        for word in WORDS {
            let work = |bytes: usize| {
                let input = word.repeat(bytes / word.len());
                // The best of two: only what the reader itself does is left.
                (0..2)
                    .map(|_| work_of(|| body(input.as_bytes())))
                    .min()
                    .unwrap()
            };
            let (small, large) = (work(2_000), work(8_000));
            // Below a millisecond what is read is not what takes the time.
            if large > Duration::from_millis(20) && large > 9 * small {
                slow.push(format!("{name}: {word:?} {small:?}, {large:?}"));
            }
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}

#[test]
fn four_times_the_article_is_not_eight_times_the_work() {
    let size = Size {
        quotes: 60,
        bytes: 40_000,
        rows: 200,
    };
    let folder = Path::new("generated");
    let work = |size: Size| {
        let text = generated::text(size);
        let article = generated::article(text.clone(), folder);
        let record = generated::record(&article, size);
        let json = to_json(&record);
        let context = judge::Context {
            profile: "full",
            accepted: None,
            measured_here: false,
        };
        let stages: [&dyn Fn(); 4] = [
            &|| drop(generated::article(text.clone(), folder)),
            &|| drop(parse_record("record.json", &json)),
            &|| drop(judge::judge(&article, &record, &context)),
            &|| drop(lint::lint(&article)),
        ];
        stages.map(|stage| (0..3).map(|_| work_of(stage)).min().unwrap())
    };
    let (small, large) = (work(size), work(size.times(4)));
    for (stage, (small, large)) in small.into_iter().zip(large).enumerate() {
        assert!(
            large < 8 * small,
            "stage {stage}: {small:?}, then {large:?}"
        );
    }
}

/// Time of the processor on this thread: what others do on the machine is not in it.
fn work_of(once: impl FnOnce()) -> Duration {
    let now = || {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is a timespec that the call fills in.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        assert_eq!(failed, 0);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let start = now();
    once();
    now() - start
}
