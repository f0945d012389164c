//! Computes one expression. A claim or a param, with our own filters or none, stays an exact
//! decimal; everything else is Tera's, with its doubles, and is formatted afterwards.

use super::names::{self, FILTERS, FilterSpec};
use super::scan::{self, Kind, Token};
use super::{FilledText, Problem};
use crate::article::{Article, BytesMeaning, Claim, Scalar};
use crate::quantity::{Number, Value};
use crate::record::{Environment, Record};
use crate::render::number_format as format;
use bigdecimal::BigDecimal;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use tera::{ErrorKind, Kwargs, State, Tera, TeraResult};

/// What a name at the beginning of a path stands for.
pub enum Root<'a> {
    Claim {
        claim: &'a Claim,
        /// None: the record has no value for it.
        value: Option<&'a Value>,
        /// The server refused what it reads.
        skipped: bool,
    },
    Param(Value),
    /// `server` or `host`
    Map(serde_json::Value),
}

impl Root<'_> {
    fn value(&self) -> Option<&Value> {
        match self {
            Self::Claim { value, .. } => *value,
            Self::Param(value) => Some(value),
            Self::Map(_) => None,
        }
    }
}

pub struct Evaluator<'a> {
    roots: BTreeMap<&'a str, Root<'a>>,
    bytes: BytesMeaning,
    tera: Tera,
    context: tera::Context,
    /// Where the template leaves the expression's value, type and all.
    output: Arc<Mutex<Option<tera::Value>>>,
    /// Otherwise names and syntax are checked, nothing else.
    computes: bool,
}

/// Stands before the expression in the template that Tera is given.
const CAPTURE: &str = "{{ __value(v=";

impl<'a> Evaluator<'a> {
    pub fn new(article: &'a Article, record: &'a Record) -> Self {
        let roots = roots(article, record);
        let mut context = tera::Context::new();
        for (name, root) in &roots {
            let value = match root {
                Root::Map(map) => tera::Value::from_serializable(map),
                root => root.value().map_or_else(tera::Value::none, value_for_tera),
            };
            context.insert_value((*name).to_owned(), value);
        }
        let output = Arc::new(Mutex::new(None));
        Self {
            roots,
            bytes: article.front_matter.bytes,
            tera: engine(article.front_matter.bytes, Arc::clone(&output)),
            context,
            output,
            computes: true,
        }
    }

    /// From now on expressions are read and not computed.
    pub fn checking_only(self) -> Self {
        Self {
            computes: false,
            ..self
        }
    }

    pub fn evaluate(&self, expression: &str) -> Result<FilledText, Vec<Problem>> {
        let tokens = scan::tokens(expression).map_err(|problem| vec![problem])?;
        if !self.computes {
            return self.check(expression, &tokens);
        }
        // Its names are checked before anything is measured.
        if let Some(skipped) = self.skipped(&tokens) {
            return Ok(skipped);
        }
        let problems = names::check(&tokens, &self.roots);
        if !problems.is_empty() {
            return Err(problems);
        }
        match self.exactly(&tokens) {
            Some(result) => result,
            None => self.by_tera(expression, &tokens),
        }
        .map_err(|problem| vec![problem])
    }

    /// What stands for whatever is made of a claim that was skipped.
    fn skipped(&self, tokens: &[Token]) -> Option<FilledText> {
        let is_skipped = |token: &&Token| {
            token.kind == Kind::Word
                && matches!(
                    self.roots.get(token.text),
                    Some(Root::Claim { skipped: true, .. })
                )
        };
        let claim = tokens.iter().find(is_skipped)?;
        Some(FilledText {
            text: "(not measured)".to_owned(),
            claim: (tokens.len() == 1).then(|| claim.text.to_owned()),
        })
    }

    /// Names, filters and syntax; the text is empty.
    fn check(&self, expression: &str, tokens: &[Token]) -> Result<FilledText, Vec<Problem>> {
        let empty = FilledText {
            text: String::new(),
            claim: None,
        };
        // Which settings differ from their defaults only a server knows.
        if tokens
            .iter()
            .any(|token| ["settings", "extensions"].contains(&token.text))
        {
            return Ok(empty);
        }
        let problems = names::check(tokens, &self.roots);
        if !problems.is_empty() {
            return Err(problems);
        }
        let (named, insertions) = name_arguments(expression, tokens);
        let template = format!("{CAPTURE}{named}\n) }}}}");
        let mut tera = engine(self.bytes, Arc::clone(&self.output));
        match tera.add_raw_template("expression", &template) {
            Ok(()) => Ok(empty),
            Err(error) => Err(vec![tera_problem(&error, expression, &insertions)]),
        }
    }

    /// `name`, `name | fixed(1)`. None: not of this shape.
    fn exactly(&self, tokens: &[Token]) -> Option<Result<FilledText, Problem>> {
        let root = self.roots.get(tokens[0].text)?;
        let value = root.value()?;
        let calls = filter_calls(&tokens[1..])?;
        let (unit, claim) = match root {
            Root::Claim { claim, .. } => (claim.unit.as_deref(), Some(claim.name.value.clone())),
            _ => (None, None),
        };
        let bytes = match root {
            Root::Claim { claim, .. } => claim.bytes.unwrap_or(self.bytes),
            _ => self.bytes,
        };
        let text = if calls.is_empty() {
            plain(root, value, bytes)
                .map_err(|message| Problem::new(message, tokens[0].range.clone()))
        } else {
            let number = value.number()?.finite()?;
            filter_chain(number, unit, bytes, &calls)
        };
        Some(text.map(|text| FilledText { text, claim }))
    }

    fn by_tera(&self, expression: &str, tokens: &[Token]) -> Result<FilledText, Problem> {
        let (named, insertions) = name_arguments(expression, tokens);
        let template = format!("{CAPTURE}{named}\n) }}}}");
        let rendered = self.tera.render_str(&template, &self.context, false);
        let value = self.output.lock().ok().and_then(|mut output| output.take());
        let whole = 0..expression.len();
        match rendered {
            Ok(_) => value
                .ok_or_else(|| "it has no value".to_owned())
                .and_then(|value| computed(&value))
                .map(|text| FilledText { text, claim: None })
                .map_err(|message| Problem::new(message, whole)),
            Err(error) => Err(tera_problem(&error, expression, &insertions)),
        }
    }
}

fn roots<'a>(article: &'a Article, record: &'a Record) -> BTreeMap<&'a str, Root<'a>> {
    let mut roots = BTreeMap::new();
    let Environment { server, host, .. } = &record.environment;
    let mut server = as_json(server);
    // Of several the rest is the first one's.
    server["version"] = record.environment.versions_text().into();
    roots.insert("server", Root::Map(server));
    let mut host = as_json(host);
    // Text in the record, because it may be any size; a number to an author.
    if let Some(bytes) = host["memory_bytes"]
        .as_str()
        .and_then(|t| t.parse::<u64>().ok())
    {
        host["memory_bytes"] = bytes.into();
    }
    roots.insert("host", Root::Map(host));
    for (name, scalar) in &article.front_matter.params {
        let value = match (record.params.get(name), scalar) {
            (Some(text), Scalar::Number(_)) => Value::from_postgres(Some(text), "numeric"),
            (Some(text), Scalar::Boolean(_)) => Value::from_postgres(Some(text), "boolean"),
            (Some(text), Scalar::Text(_)) => Value::Text(text.clone()),
            (None, Scalar::Number(number)) => Value::Number(Number::Finite(number.clone())),
            (None, Scalar::Boolean(value)) => Value::Boolean(*value),
            (None, Scalar::Text(text)) => Value::Text(text.clone()),
        };
        roots.insert(name, Root::Param(value));
    }
    for claim in article.claims() {
        let name = claim.name.value.as_str();
        let value = record.claims.get(name).map(|claim| &claim.value);
        let skipped = record.skipped_because("claim", name).is_some();
        roots.insert(
            name,
            Root::Claim {
                claim,
                value,
                skipped,
            },
        );
    }
    roots
}

/// The record's own JSON: the names that an author can use are those of the record.
fn as_json(part: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(part).unwrap_or_default()
}

fn value_for_tera(value: &Value) -> tera::Value {
    match value {
        Value::Null => tera::Value::none(),
        Value::Boolean(value) => (*value).into(),
        Value::Number(number) => {
            let integer = number.finite().filter(|number| number.is_integer());
            match integer.and_then(|n| n.normalized().to_plain_string().parse::<i64>().ok()) {
                Some(integer) => integer.into(),
                None => number.to_f64().into(),
            }
        }
        Value::Text(text) => text.as_str().into(),
    }
}

/// A claim by its format or the default, a param with all its digits.
fn plain(root: &Root, value: &Value, bytes: BytesMeaning) -> Result<String, String> {
    match (root, value) {
        (Root::Claim { claim, .. }, value) => format::value(value, claim.format.as_deref(), bytes),
        (_, Value::Number(Number::Finite(number))) => Ok(format::exact(number)),
        (_, value) => Ok(value.to_string()),
    }
}

/// What Tera computed, for people.
fn computed(value: &tera::Value) -> Result<String, String> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    if let Some(truth) = value.as_bool() {
        return Ok(truth.to_string());
    }
    if let Some(integer) = value.as_i128() {
        return Ok(format::exact(&BigDecimal::from(integer)));
    }
    match value.as_f64() {
        Some(number) => decimal(number)
            .map(|number| format::by_default(&number))
            .ok_or_else(|| format!("it is {number}, not a number to print")),
        None if value.is_none() || value.is_undefined() => Err("it has no value".to_owned()),
        None => Err(format!("it is a {}, not a single value", value.name())),
    }
}

/// The shortest decimal that is this double.
fn decimal(number: f64) -> Option<BigDecimal> {
    number
        .is_finite()
        .then(|| format!("{number:?}").parse().ok())?
}

// ---- our own filters --------------------------------------------------------------------------

struct Call<'a> {
    filter: &'static FilterSpec,
    range: Range<usize>,
    arguments: Arguments<'a>,
}

#[derive(Default)]
struct Arguments<'a> {
    n: Option<i64>,
    unit: Option<&'a str>,
}

fn own_filter(name: &str) -> Option<&'static FilterSpec> {
    FILTERS.iter().find(|filter| filter.name == name)
}

/// `| fixed(1) | thousands`, with literal arguments. None: anything else.
fn filter_calls<'a>(tokens: &[Token<'a>]) -> Option<Vec<Call<'a>>> {
    let mut calls = Vec::new();
    let mut rest = tokens;
    while let [pipe, name, after @ ..] = rest {
        if !pipe.is("|") {
            return None;
        }
        let filter = own_filter(name.text)?;
        let mut arguments = Arguments::default();
        rest = after;
        if let [open, after @ ..] = after
            && open.is("(")
        {
            let close = after.iter().position(|token| token.is(")"))?;
            arguments = literal_arguments(filter, &after[..close])?;
            rest = &after[close + 1..];
        }
        calls.push(Call {
            filter,
            range: name.range.clone(),
            arguments,
        });
    }
    rest.is_empty().then_some(calls)
}

fn literal_arguments<'a>(filter: &FilterSpec, tokens: &[Token<'a>]) -> Option<Arguments<'a>> {
    let mut arguments = Arguments::default();
    if tokens.is_empty() {
        return Some(arguments);
    }
    for (index, argument) in tokens.split(|token| token.is(",")).enumerate() {
        let (name, literal) = match argument {
            [literal] if index == 0 => (filter.parameters[0], literal),
            [name, equals, literal] if equals.is("=") => (name.text, literal),
            _ => return None,
        };
        if !filter.parameters.contains(&name) {
            return None;
        }
        match (name, literal.kind) {
            ("n", Kind::Number) => arguments.n = Some(literal.text.parse().ok()?),
            ("unit", Kind::Text) => {
                arguments.unit = Some(&literal.text[1..literal.text.len() - 1]);
            }
            _ => return None,
        }
    }
    Some(arguments)
}

fn filter_chain(
    number: &BigDecimal,
    unit: Option<&str>,
    bytes: BytesMeaning,
    calls: &[Call],
) -> Result<String, Problem> {
    let mut number = number.clone();
    let mut text = String::new();
    for (index, call) in calls.iter().enumerate() {
        let problem = |message: String| Problem::new(message, call.range.clone());
        if index > 0 {
            number = format::read(&text)
                .ok_or_else(|| problem(format!("`{text}` is not a number any more")))?;
        }
        let unit = call.arguments.unit.or(unit);
        text = apply(call.filter.name, &number, unit, bytes, call.arguments.n).map_err(problem)?;
    }
    Ok(text)
}

fn apply(
    filter: &str,
    number: &BigDecimal,
    unit: Option<&str>,
    bytes: BytesMeaning,
    n: Option<i64>,
) -> Result<String, String> {
    const MOST_DIGITS: i64 = 100;
    if n.is_some_and(|n| !(0..=MOST_DIGITS).contains(&n)) {
        return Err(format!("`{filter}` takes 0 to {MOST_DIGITS} digits"));
    }
    Ok(match filter {
        "fixed" => format::fixed(number, n.unwrap_or(0)),
        "significant" => format::significant(number, n.unwrap_or(3).max(1)),
        "thousands" => n.map_or_else(|| format::exact(number), |n| format::fixed(number, n)),
        "percent" => format::percent(number, n),
        "bytes" => format::bytes(number, bytes, n),
        "duration" => {
            let unit = unit.unwrap_or("ms");
            format::duration(number, unit, n).ok_or_else(|| {
                format!("`{unit}` is not a unit of time; say `duration(unit='ms')`")
            })?
        }
        other => return Err(format!("unknown filter `{other}`")),
    })
}

// ---- Tera -------------------------------------------------------------------------------------

fn engine(bytes: BytesMeaning, output: Arc<Mutex<Option<tera::Value>>>) -> Tera {
    let mut tera = Tera::new();
    tera.register_function(
        "__value",
        move |arguments: Kwargs, _: &State| -> TeraResult<tera::Value> {
            let value = arguments.must_get::<&tera::Value>("v")?.clone();
            if let Ok(mut output) = output.lock() {
                *output = Some(value.clone());
            }
            // Tera refuses to print what is undefined; that is for `computed` to say.
            Ok(tera::Value::from(""))
        },
    );
    for filter in FILTERS {
        tera.register_filter(
            filter.name,
            move |input: &tera::Value, arguments: Kwargs, _: &State| -> TeraResult<String> {
                filter_for_tera(filter, input, &arguments, bytes)
            },
        );
    }
    tera
}

fn filter_for_tera(
    filter: &FilterSpec,
    input: &tera::Value,
    arguments: &Kwargs,
    bytes: BytesMeaning,
) -> TeraResult<String> {
    let unknown = (arguments.iter())
        .filter_map(|(key, _)| key.as_str())
        .find(|name| !filter.parameters.contains(name));
    if let Some(name) = unknown {
        return Err(tera::Error::message(format!(
            "`{}` has no argument `{name}`, only {}",
            filter.name,
            filter.parameters.join(", ")
        )));
    }
    let number = match (input.as_i128(), input.as_f64(), input.as_str()) {
        (Some(integer), ..) => Some(BigDecimal::from(integer)),
        (None, Some(number), _) => decimal(number),
        (None, None, Some(text)) => format::read(text),
        _ => None,
    };
    let Some(number) = number else {
        return Err(tera::Error::message(format!(
            "`{}` takes a number, not `{input}`",
            filter.name
        )));
    };
    let n = arguments.get::<i64>("n")?;
    let unit = arguments.get::<&str>("unit")?;
    apply(filter.name, &number, unit, bytes, n).map_err(tera::Error::message)
}

/// `x | fixed(1)` as Tera has it, `x | fixed(n=1)`; and where what was inserted.
fn name_arguments(expression: &str, tokens: &[Token]) -> (String, Vec<(usize, usize)>) {
    let mut named = String::with_capacity(expression.len() + 8);
    let mut insertions = Vec::new();
    let mut at = 0;
    for window in tokens.windows(4) {
        let [pipe, name, open, first] = window else {
            continue;
        };
        let Some(filter) = own_filter(name.text).filter(|_| pipe.is("|") && open.is("(")) else {
            continue;
        };
        let already_named = tokens
            .iter()
            .find(|token| token.range.start >= first.range.end)
            .is_some_and(|next| first.kind == Kind::Word && next.is("="));
        if first.is(")") || already_named {
            continue;
        }
        named.push_str(&expression[at..first.range.start]);
        let insertion = format!("{}=", filter.parameters[0]);
        insertions.push((first.range.start, insertion.len()));
        named.push_str(&insertion);
        at = first.range.start;
    }
    named.push_str(&expression[at..]);
    (named, insertions)
}

/// Tera's error as ours, with its place mapped back over what was inserted.
fn tera_problem(error: &tera::Error, expression: &str, insertions: &[(usize, usize)]) -> Problem {
    let (message, range) = match error.kind() {
        ErrorKind::SyntaxError(report) | ErrorKind::RenderingError(report) => (
            report.message().to_owned(),
            Some(report.span().range.clone()),
        ),
        other => (other.to_string(), None),
    };
    let back = |offset: usize| {
        let mut offset = offset.saturating_sub(CAPTURE.len());
        for &(at, length) in insertions {
            if offset > at {
                offset = offset.saturating_sub(length).max(at);
            }
        }
        let mut offset = offset.min(expression.len());
        while !expression.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    };
    let range = range.map_or(0..expression.len(), |range| {
        back(range.start)..back(range.end)
    });
    let message = first_line_in_lower_case(&message);
    let filtered = message.starts_with("math operations") && expression.contains('|');
    Problem::new(message, range).hint(
        filtered.then(|| {
            "a filter belongs to the value right before it: `(a * b) | fixed(1)`".to_owned()
        }),
    )
}

fn first_line_in_lower_case(message: &str) -> String {
    let line = message
        .lines()
        .next()
        .unwrap_or_default()
        .trim_end_matches('.');
    let mut chars = line.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => "it cannot be evaluated".to_owned(),
    }
}
