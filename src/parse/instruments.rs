//! `instruments`: which are read around `measure`, each with its options.

use super::fences::Fence;
use super::problems::{Problems, listed};
use super::sql::is_explainable;
use super::yaml::{Entry, Node, Value};
use super::{Known, KnownInstrument};
use crate::article::{
    Client, InstrumentChoice, InstrumentOption, InstrumentOptions, OptionValue, Phase, Statement,
};
use crate::diagnostic::did_you_mean;
use crate::source::Spanned;

/// What is read where nothing is said of it.
const DEFAULT: [&str; 2] = ["time", "wal"];

pub fn instruments(
    node: Option<&Node>,
    fence: &Fence,
    known: &Known,
    problems: &Problems,
) -> Vec<Spanned<InstrumentChoice>> {
    let Some(node) = node else {
        let defaults = known.instruments.iter();
        let defaults = defaults.filter(|one| DEFAULT.contains(&one.name));
        let choice = |one: &KnownInstrument| {
            Spanned::new(chosen_with(*one, InstrumentOptions::new()), fence.name)
        };
        let mut choices: Vec<_> = defaults.map(choice).collect();
        choices.sort_by_key(|one| DEFAULT.iter().position(|name| *name == one.value.name));
        return choices;
    };
    let mut chosen: Vec<Spanned<InstrumentChoice>> = Vec::new();
    let hint = "write `instruments: [time, wal]`";
    for item in problems.items(node, hint).unwrap_or_default() {
        let Some((name, options)) = named(item, problems) else {
            continue;
        };
        let earlier = chosen.iter().find(|choice| choice.value.name == name.value);
        if let Some(earlier) = earlier {
            problems.duplicate(
                name.span,
                earlier.span,
                format!("instrument `{}` comes twice", name.value),
                "name it once",
            );
        } else if let Some(instrument) = by_name(&name, known, problems) {
            let options = options.map_or_else(InstrumentOptions::new, |node| {
                read_options(node, instrument, problems)
            });
            chosen.push(Spanned::new(chosen_with(instrument, options), name.span));
        }
    }
    chosen
}

fn chosen_with(instrument: KnownInstrument, options: InstrumentOptions) -> InstrumentChoice {
    InstrumentChoice {
        name: instrument.name.to_owned(),
        options,
        tables: instrument.tables.iter().map(|(name, _)| *name).collect(),
    }
}

/// That `measure` has a statement for an instrument that asks Postgres to explain one, and runs on
/// the backend that an instrument reads of.
pub fn tell_nothing_to_explain(
    instruments: &[Spanned<InstrumentChoice>],
    measure: &Phase,
    known: &Known,
    problems: &Problems,
) {
    if !matches!(measure.client, Client::Session) {
        tell_what_others_run(instruments, &measure.client, known, problems);
        return;
    }
    let measure = &measure.script;
    let explains =
        |name: &str| (known.instruments.iter()).any(|one| one.explains && one.name == name);
    let explainer = instruments.iter().find(|one| explains(&one.value.name));
    let nothing = !measure.statements.iter().any(is_explainable);
    if let Some(explainer) = explainer.filter(|_| nothing && !measure.statements.is_empty()) {
        let hint = if measure.statements.iter().any(is_explain) {
            "write the statement itself: the instrument puts `EXPLAIN` in front of it"
        } else {
            "it takes the last `SELECT`, `INSERT`, `UPDATE`, `DELETE`, `MERGE`, `VALUES`, \
             `EXECUTE` or `CREATE TABLE … AS` that does not end in a backslash command"
        };
        problems.error(
            explainer.span,
            format!(
                "`measure` has no statement that `{}` could take",
                explainer.value.name
            ),
            hint,
        );
    }
}

/// What is run over and over, or by a program, is not explained; and a program has backends of its
/// own.
fn tell_what_others_run(
    instruments: &[Spanned<InstrumentChoice>],
    client: &Client,
    known: &Known,
    problems: &Problems,
) {
    let (runs, is_program) = match client {
        Client::Session => return,
        Client::Repeat(_) => ("`measure` is a repetition", false),
        Client::Psql(_) => ("`measure` is run by psql", true),
        Client::Pgbench(_) => ("`measure` is run by pgbench", true),
    };
    for one in instruments {
        let name = one.value.name.as_str();
        let Some(instrument) = known.instruments.iter().find(|known| known.name == name) else {
            continue;
        };
        if instrument.explains {
            problems.error(
                one.span,
                format!("`{name}` takes one execution of a statement, and {runs}"),
                "measure the statement on the session, without `via` and `repeat`",
            );
        } else if instrument.of_backend && is_program {
            problems.error(
                one.span,
                format!("`{name}` reads of the measuring session, and {runs}"),
                "leave it out here, or measure on the session",
            );
        }
    }
}

fn is_explain(statement: &Statement) -> bool {
    let mut words = super::sql::words(&statement.text.text);
    words.next().is_some_and(|word| word == "explain")
}

/// `time`, or `{explain: {timing: true}}`
fn named<'n>(item: &'n Node, problems: &Problems) -> Option<(Spanned<String>, Option<&'n Node>)> {
    let Value::Mapping(entries) = &item.value else {
        return Some((problems.spanned_text(item)?, None));
    };
    let [entry] = entries.as_slice() else {
        problems.error(
            item.span,
            "one instrument an item",
            "write `[time, {explain: {…}}]`",
        );
        return None;
    };
    let options = (!entry.value.is_null()).then_some(&entry.value);
    Some((entry.key.clone(), options))
}

fn by_name(name: &Spanned<String>, known: &Known, problems: &Problems) -> Option<KnownInstrument> {
    let mut instruments = known.instruments.iter();
    let found = instruments.find(|instrument| instrument.name == name.value);
    if found.is_none() {
        let names = || known.instruments.iter().map(|instrument| instrument.name);
        let hint = did_you_mean(&name.value, names())
            .unwrap_or_else(|| format!("there are {}", listed(names())));
        problems.error(
            name.span,
            format!("unknown instrument `{}`", name.value),
            hint,
        );
    }
    found.copied()
}

/// In the order of the catalogue, so that two ways to write them down are one.
fn read_options(
    node: &Node,
    instrument: KnownInstrument,
    problems: &Problems,
) -> InstrumentOptions {
    let hint = format!("write `{{{}: {{option: true}}}}`", instrument.name);
    let entries = problems.entries(node, &hint).unwrap_or_default();
    for entry in entries {
        tell_unknown(entry, instrument, problems);
    }
    let entry_of = |name: &str| entries.iter().find(|entry| entry.key.value == name);
    let mut options = InstrumentOptions::new();
    for option in instrument.options {
        if let Some(entry) = entry_of(option.name)
            && let Some(value) = read_value(entry, option, problems)
        {
            options.insert(
                option.name.to_owned(),
                Spanned::new(value, entry.value.span),
            );
        }
    }
    tell_without_what_it_needs(&options, instrument, problems);
    options
}

fn tell_unknown(entry: &Entry, instrument: KnownInstrument, problems: &Problems) {
    let name = entry.key.value.as_str();
    let names = || instrument.options.iter().map(|option| option.name);
    if names().any(|known| known == name) {
        return;
    }
    let hint = if instrument.options.is_empty() {
        format!("`{}` has no options", instrument.name)
    } else {
        did_you_mean(name, names()).unwrap_or_else(|| format!("there are {}", listed(names())))
    };
    let message = format!(
        "unknown option `{name}` of instrument `{}`",
        instrument.name
    );
    problems.error(entry.key.span, message, hint);
}

fn read_value(
    entry: &Entry,
    option: &InstrumentOption,
    problems: &Problems,
) -> Option<OptionValue> {
    if entry.value.is_null() {
        let message = format!("`{}` has no value", option.name);
        problems.error(entry.key.span, message, "give it one, or leave the key out");
        return None;
    }
    if option.words.is_empty() {
        return problems.boolean(&entry.value).map(OptionValue::Boolean);
    }
    let choices: Vec<(&str, OptionValue)> = (option.words.iter())
        .map(|word| (*word, OptionValue::Word(word)))
        .collect();
    problems.choice(&entry.value, &choices)
}

/// `timing: true` beside `analyze: false`: Postgres would refuse it at the first run.
fn tell_without_what_it_needs(
    options: &InstrumentOptions,
    instrument: KnownInstrument,
    problems: &Problems,
) {
    for option in instrument.options {
        let Some(given) = options.get(option.name) else {
            continue;
        };
        let is_on = given.value != OptionValue::Boolean(false) && given.value != NONE;
        let missing = (option.needs).filter(|needed| match options.get(*needed) {
            Some(value) => value.value == OptionValue::Boolean(false),
            None => (instrument.options.iter())
                .any(|one| one.name == *needed && one.default == OptionValue::Boolean(false)),
        });
        if let (true, Some(needed)) = (is_on, missing) {
            problems.error(
                given.span,
                format!("`{}` needs `{needed}`", option.name),
                format!("set `{needed}: true`, or take `{}` away", option.name),
            );
        }
    }
}

/// The word of an option that is not on.
const NONE: OptionValue = OptionValue::Word("none");
