//! The arguments of pgbench and psql that an article may give. How the server is reached, as whom,
//! and where files go is the tool's matter.

use super::super::problems::Problems;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::source::Spanned;

/// What pgbench is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// `-i`: makes its tables.
    Initialise,
    /// A builtin script.
    Builtin,
    /// The SQL below the phase.
    Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Takes no value.
    Flag,
    /// A whole number above zero.
    Count,
    /// A number above zero.
    Number,
    Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    Initialising,
    Measuring,
}

struct Known {
    short: &'static str,
    long: &'static str,
    kind: Kind,
    when: When,
}

const fn option(short: &'static str, long: &'static str, kind: Kind, when: When) -> Known {
    Known {
        short,
        long,
        kind,
        when,
    }
}

const PGBENCH: [Known; 31] = [
    option("-i", "--initialize", Kind::Flag, When::Initialising),
    option("-I", "--init-steps", Kind::Word, When::Initialising),
    option("-F", "--fillfactor", Kind::Count, When::Initialising),
    option("-q", "--quiet", Kind::Flag, When::Initialising),
    option("", "--foreign-keys", Kind::Flag, When::Initialising),
    option("", "--partition-method", Kind::Word, When::Initialising),
    option("", "--partitions", Kind::Count, When::Initialising),
    option("", "--unlogged-tables", Kind::Flag, When::Initialising),
    option("-n", "--no-vacuum", Kind::Flag, When::Always),
    option("-s", "--scale", Kind::Count, When::Always),
    option("-b", "--builtin", Kind::Word, When::Measuring),
    option("-N", "--skip-some-updates", Kind::Flag, When::Measuring),
    option("-S", "--select-only", Kind::Flag, When::Measuring),
    option("-c", "--client", Kind::Count, When::Measuring),
    option("-C", "--connect", Kind::Flag, When::Measuring),
    option("-D", "--define", Kind::Word, When::Measuring),
    option("-j", "--jobs", Kind::Count, When::Measuring),
    option("-L", "--latency-limit", Kind::Number, When::Measuring),
    option("-M", "--protocol", Kind::Word, When::Measuring),
    option("-P", "--progress", Kind::Count, When::Measuring),
    option("-r", "--report-per-command", Kind::Flag, When::Measuring),
    option("-R", "--rate", Kind::Number, When::Measuring),
    option("-t", "--transactions", Kind::Count, When::Measuring),
    option("-T", "--time", Kind::Count, When::Measuring),
    option("-v", "--vacuum-all", Kind::Flag, When::Measuring),
    option("", "--exit-on-abort", Kind::Flag, When::Measuring),
    option("", "--failures-detailed", Kind::Flag, When::Measuring),
    option("", "--max-tries", Kind::Count, When::Measuring),
    option("", "--random-seed", Kind::Word, When::Measuring),
    option("", "--sampling-rate", Kind::Number, When::Measuring),
    option("", "--verbose-errors", Kind::Flag, When::Measuring),
];

/// What belongs to the tool, and why.
const REFUSED: [(&[&str], &str); 7] = [
    (
        &[
            "-h",
            "--host",
            "-p",
            "--port",
            "-U",
            "--username",
            "-d",
            "--dbname",
            "--debug",
            "-w",
            "-W",
            "--no-password",
            "--password",
        ],
        "the tool connects it to the server that is measured, as the article's role",
    ),
    (
        &["-f", "--file", "-c", "--command"],
        "its script is the SQL below the phase's line",
    ),
    (
        &["-l", "--log", "--log-prefix", "--aggregate-interval"],
        "the tool has it log each transaction, and reads the log",
    ),
    (
        &[
            "--show-script",
            "-V",
            "--version",
            "-?",
            "--help",
            "--progress-timestamp",
        ],
        "it prints for people what is not measured",
    ),
    (
        &["--tablespace", "--index-tablespace"],
        "an article has no tablespaces",
    ),
    (
        &["-o", "--output", "-L", "--log-file"],
        "it names files outside of the run's folder",
    ),
    (
        &["-v", "--set", "--variable"],
        "name the value under `params:` or `matrix:`",
    ),
];

/// One option as given, with its value, if it has one.
struct Given<'a> {
    known: &'static Known,
    word: &'a Spanned<String>,
    /// The value, and the word it stands in.
    value: Option<(String, &'a Spanned<String>)>,
}

/// Whether `-i` is among them.
pub fn initialises(words: &[Spanned<String>]) -> bool {
    given(words).is_ok_and(|given| given.iter().any(|one| one.known.long == "--initialize"))
        || words.iter().any(|word| {
            word.value == "--initialize"
                || (word.value.starts_with("-i") && !word.value.starts_with("--"))
        })
}

pub fn check_pgbench(words: &[Spanned<String>], purpose: Purpose, problems: &Problems) {
    for problem in pgbench_problems(words, purpose) {
        let (span, diagnostic) = problem;
        problems.push(diagnostic.at(problems.source, span));
    }
}

type Problem = (crate::source::Span, Diagnostic);

/// All that is wrong with them; where values are still `:params`, all that can be told.
pub fn pgbench_problems(words: &[Spanned<String>], purpose: Purpose) -> Vec<Problem> {
    let given = match given(words) {
        Ok(given) => given,
        Err(problems) => return problems,
    };
    let mut problems = Vec::new();
    let mut wrong = |word: &Spanned<String>, message: String, hint: &str| {
        problems.push((word.span, Diagnostic::error(message).hint(hint)));
    };
    for one in &given {
        let fits = match one.known.when {
            When::Always => true,
            When::Initialising => purpose == Purpose::Initialise,
            When::Measuring => purpose != Purpose::Initialise,
        };
        let name = &one.word.value;
        if !fits && purpose == Purpose::Initialise {
            wrong(
                one.word,
                format!("`{name}` is no option of `-i`"),
                "put it where pgbench measures",
            );
        } else if !fits {
            wrong(
                one.word,
                format!("`{name}` is an option of `-i` only"),
                "put both in a `setup` of their own",
            );
        }
        if purpose == Purpose::Script
            && ["--builtin", "--select-only", "--skip-some-updates"].contains(&one.known.long)
        {
            wrong(
                one.word,
                format!("`{name}` is a script of pgbench's own, and there is one below"),
                "take out one of the two",
            );
        }
        if let Some((value, word)) = &one.value
            && let Some(hint) = wrong_value(one.known, value)
        {
            wrong(
                word,
                format!("`{value}` cannot be the value of `{name}`"),
                hint,
            );
        }
    }
    for (index, one) in given.iter().enumerate() {
        let earlier = given[..index]
            .iter()
            .find(|other| other.known.long == one.known.long);
        if earlier.is_some() && !["--define", "--builtin"].contains(&one.known.long) {
            wrong(
                one.word,
                format!("`{}` comes twice", one.word.value),
                "keep one of the two",
            );
        }
    }
    let of = |long: &str| given.iter().find(|one| one.known.long == long);
    if let (Some(_), Some(time)) = (of("--transactions"), of("--time")) {
        wrong(
            time.word,
            "`-t` and `-T` both say when to end".to_owned(),
            "keep `-t` (transactions of each client) or `-T` (seconds)",
        );
    }
    problems
}

fn wrong_value(known: &Known, value: &str) -> Option<&'static str> {
    if value.contains('\0') || value.is_empty() {
        return Some("give it a value");
    }
    if value.starts_with(':') && super::super::front_matter::is_variable(&value[1..]) {
        return None;
    }
    let number = super::super::read::decimal(value);
    match known.kind {
        Kind::Flag => None,
        Kind::Count => {
            (!matches!(value.parse::<u32>(), Ok(1..))).then_some("write a whole number above zero")
        }
        Kind::Number => {
            (number.is_none_or(|number| number <= 0)).then_some("write a number above zero")
        }
        Kind::Word => match known.long {
            "--protocol" => (!["simple", "extended", "prepared"].contains(&value))
                .then_some("there are `simple`, `extended` and `prepared`"),
            "--random-seed" => (value.parse::<u64>().is_err())
                .then_some("write a whole number: `time` and `rand` are never the same twice"),
            "--define" => {
                let named = value
                    .split_once('=')
                    .is_some_and(|(name, _)| super::super::front_matter::is_variable(name));
                (!named).then_some("write `-D name=value`")
            }
            "--init-steps" => (!value.chars().all(|step| "dtgGvpf".contains(step)))
                .then_some("steps are the letters `dtgGvpf`"),
            "--partition-method" => {
                (!["range", "hash"].contains(&value)).then_some("there are `range` and `hash`")
            }
            _ => None,
        },
    }
}

/// Reads the words as getopt does, or tells what is no option.
fn given(words: &[Spanned<String>]) -> Result<Vec<Given<'_>>, Vec<Problem>> {
    let mut given = Vec::new();
    let mut problems = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.value.as_str();
        if text.starts_with("--") {
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (text, None),
            };
            match PGBENCH.iter().find(|known| known.long == name) {
                Some(known) => take(known, word, value, &mut rest, &mut given, &mut problems),
                None => problems.push(unknown(word, name)),
            }
            continue;
        }
        if !text.starts_with('-') || text.len() < 2 {
            problems.push((
                word.span,
                Diagnostic::error(format!("`{text}` is no option"))
                    .hint("the database is the experiment's own; options begin with `-`"),
            ));
            continue;
        }
        // `-Sn -c8`: flags may be joined, and the last of them may have its value behind it.
        for (at, letter) in text[1..].char_indices() {
            let name = format!("-{letter}");
            let Some(known) = PGBENCH.iter().find(|known| known.short == name) else {
                problems.push(unknown(word, &name));
                break;
            };
            let behind = &text[1 + at + letter.len_utf8()..];
            if known.kind == Kind::Flag {
                take(known, word, None, &mut rest, &mut given, &mut problems);
                continue;
            }
            let value = (!behind.is_empty()).then(|| behind.to_owned());
            take(known, word, value, &mut rest, &mut given, &mut problems);
            break;
        }
    }
    if problems.is_empty() {
        Ok(given)
    } else {
        Err(problems)
    }
}

fn take<'a>(
    known: &'static Known,
    word: &'a Spanned<String>,
    value: Option<String>,
    rest: &mut std::slice::Iter<'a, Spanned<String>>,
    given: &mut Vec<Given<'a>>,
    problems: &mut Vec<Problem>,
) {
    let value = match (known.kind, value) {
        (Kind::Flag, None) => None,
        (Kind::Flag, Some(_)) => {
            let message = format!("`{}` takes no value", known.long);
            problems.push((
                word.span,
                Diagnostic::error(message).hint("leave the `=` out"),
            ));
            return;
        }
        (_, Some(value)) => Some((value, word)),
        (_, None) => match rest.next() {
            Some(next) => Some((next.value.clone(), next)),
            None => {
                let message = format!("`{}` has no value", word.value);
                problems.push((word.span, Diagnostic::error(message).hint("give it one")));
                return;
            }
        },
    };
    given.push(Given { known, word, value });
}

fn unknown(word: &Spanned<String>, name: &str) -> Problem {
    let refused = REFUSED.iter().find(|(names, _)| names.contains(&name));
    let diagnostic = match refused {
        Some((_, why)) => Diagnostic::error(format!("`{name}` cannot be given here"))
            .note(*why)
            .hint("leave it out"),
        None => {
            let known = PGBENCH.iter().flat_map(|known| [known.short, known.long]);
            let near = did_you_mean(name, known.filter(|known| !known.is_empty()))
                .filter(|_| name.len() > 2);
            Diagnostic::error(format!("pgbench has no option `{name}`")).hint(
                near.unwrap_or_else(|| "`remeasure list clients` names those there are".into()),
            )
        }
    };
    (word.span, diagnostic)
}

/// Of psql's options there is one that changes how the script runs.
pub fn check_psql(words: &[Spanned<String>], problems: &Problems) {
    for word in words {
        if ["-1", "--single-transaction"].contains(&word.value.as_str()) {
            continue;
        }
        let refused = REFUSED
            .iter()
            .find(|(names, _)| names.contains(&word.value.as_str()));
        let diagnostic = Diagnostic::error(format!("psql cannot be given `{}` here", word.value));
        let diagnostic = match refused {
            Some((_, why)) => diagnostic.note(*why),
            None => diagnostic,
        };
        problems.push(
            diagnostic
                .at(problems.source, word.span)
                .hint("`--single-transaction` is the one option there is"),
        );
    }
}

/// Names and kinds of pgbench's options, for people.
pub fn listed() -> String {
    let names = PGBENCH.iter().map(|known| match (known.short, known.kind) {
        ("", Kind::Flag) => known.long.to_owned(),
        ("", _) => format!("{}=…", known.long),
        (short, Kind::Flag) => short.to_owned(),
        (short, _) => format!("{short} …"),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Variables that `-D` gives a value.
pub fn defined(words: &[Spanned<String>]) -> Vec<String> {
    let given = given(words).unwrap_or_default();
    given
        .iter()
        .filter(|one| one.known.long == "--define")
        .filter_map(|one| Some(one.value.as_ref()?.0.split_once('=')?.0.to_owned()))
        .collect()
}

/// How many seconds `-T` asks for, and where.
pub fn seconds(words: &[Spanned<String>]) -> Option<Spanned<u64>> {
    let given = given(words).ok()?;
    let time = given.iter().find(|one| one.known.long == "--time")?;
    let (value, word) = time.value.as_ref()?;
    Some(Spanned::new(value.parse().ok()?, word.span))
}

/// Whether an option is given, by its long name.
pub fn has(words: &[Spanned<String>], long: &str) -> bool {
    given(words).is_ok_and(|given| given.iter().any(|one| one.known.long == long))
}
