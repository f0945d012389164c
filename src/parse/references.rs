//! Whether everything an article names exists, and nothing is named twice: blocks, claims,
//! fixtures, measured tables, variables, profiles, what the prose quotes, refers to and fills in.
//! Names count even where the thing itself is faulty, so that one mistake is told once.

use super::directives::Sections;
use super::fences::{Fence, Role};
use super::fill_in;
use super::front_matter::FULL_PROFILE;
use super::inline::SCHEMES;
use super::markdown::UndefinedLink;
use super::problems::{Problems, listed};
use super::sql::{self, SetVariables};
use crate::article::{
    Block, BlockKind, Claim, Client, CollectSession, Experiment, FillIn, FrontMatter, Order, Phase,
    Prose, ReferenceKind, Script, Statement, texts,
};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::source::{Span, Spanned};
use indexmap::{IndexMap, IndexSet};
use std::cell::Cell;
use std::collections::HashSet;

/// What can be filled in beside claims and params.
pub const FILL_IN_ROOTS: [&str; 2] = ["server", "host"];

/// More comparisons than this are not made to find what was meant.
const MAX_COMPARISONS: usize = 50_000;

pub struct Names<'a> {
    problems: &'a Problems<'a>,
    /// None where the front matter cannot be read: then nothing is known of params and profiles.
    front_matter: Option<&'a FrontMatter>,
    blocks: IndexMap<&'a str, (Role, Span)>,
    claims: IndexMap<&'a str, Span>,
    /// Whether `claims` are all there are; not where a block's YAML is faulty.
    all_claims: bool,
    /// Tables of schema `measured`.
    tables: IndexSet<String>,
    /// Experiments whose YAML is faulty: they may give more tables than are known.
    unclear: Vec<&'a str>,
    comparisons: Cell<usize>,
}

impl<'a> Names<'a> {
    pub fn collect(
        fences: &'a [(Fence, Sections)],
        blocks: &'a [Block],
        front_matter: Option<&'a FrontMatter>,
        problems: &'a Problems,
    ) -> Self {
        let mut names = Self {
            problems,
            front_matter,
            blocks: IndexMap::new(),
            claims: IndexMap::new(),
            all_claims: true,
            tables: IndexSet::new(),
            unclear: Vec::new(),
            comparisons: Cell::new(0),
        };
        for (fence, sections) in fences {
            names.add_block(fence);
            if fence.role == Role::Claims {
                names.all_claims &= sections.complete;
                for entry in sections
                    .sections
                    .iter()
                    .flat_map(|section| &section.entries)
                {
                    names.add_claim(&entry.key);
                }
            } else if fence.role == Role::Experiment && !sections.complete {
                names.unclear.push(&fence.id.value);
            }
        }
        for block in blocks {
            if let BlockKind::Experiment(experiment) = &block.kind {
                names.add_tables(experiment);
            }
        }
        names
    }

    pub fn check(&self, blocks: &[Block], prose: &Prose, undefined: &[UndefinedLink]) {
        self.check_fixtures(blocks);
        self.check_blocks(blocks);
        self.check_prose(prose);
        self.check_texts(blocks);
        for link in undefined {
            self.check_undefined(link);
        }
    }

    fn add_block(&mut self, fence: &'a Fence) {
        let id = &fence.id;
        match self.blocks.get(id.value.as_str()) {
            Some(&(_, first)) => self.problems.duplicate(
                id.span,
                first,
                format!("duplicate id `{}`", id.value),
                "ids are unique in an article; give this block another",
            ),
            None => {
                self.blocks.insert(&id.value, (fence.role, id.span));
            }
        }
    }

    fn add_claim(&mut self, name: &'a Spanned<String>) {
        let word = name.value.as_str();
        if let Some(&first) = self.claims.get(word) {
            self.problems.duplicate(
                name.span,
                first,
                format!("duplicate claim `{word}`"),
                "claim names are unique in an article; give this one another",
            );
            return;
        }
        let is_param = self
            .front_matter
            .is_some_and(|front| front.params.contains_key(word));
        if is_param || FILL_IN_ROOTS.contains(&word) {
            let what = if is_param {
                "a param"
            } else {
                "something else"
            };
            self.problems.error(
                name.span,
                format!("claim `{word}` has the name of {what}"),
                format!("`{{{{ {word} }}}}` could be either; give the claim another name"),
            );
        }
        self.claims.insert(word, name.span);
    }

    /// `measured.<experiment>` and the tables that go with it.
    fn add_tables(&mut self, experiment: &Experiment) {
        let id = &experiment.id;
        let mut tables = vec![
            (id.value.clone(), id.span),
            (format!("{}_statements", id.value), id.span),
            (format!("{}_settings", id.value), id.span),
        ];
        for instrument in &experiment.instruments {
            for name in &instrument.value.tables {
                tables.push((format!("{}_{name}", id.value), instrument.span));
            }
        }
        if matches!(experiment.measure.client, Client::Pgbench(_)) {
            tables.push((format!("{}_progress", id.value), id.span));
        }
        for collect in &experiment.collects {
            if let Some(name) = &collect.name {
                tables.push((format!("{}_{}", id.value, name.value), name.span));
            }
        }
        for sampling in &experiment.samples {
            let name = &sampling.name;
            tables.push((format!("{}_{}", id.value, name.value), name.span));
        }
        let twin = self
            .blocks
            .get(id.value.as_str())
            .is_some_and(|(_, first)| *first != id.span);
        for (table, span) in tables {
            if !self.problems.fits_postgres(&table, span) {
                break;
            }
            if !self.tables.insert(table.clone()) && !twin {
                self.problems.error(
                    span,
                    format!("`measured.{table}` would be two tables"),
                    "another experiment, a `collect` or an instrument gives a table of that name already; rename one",
                );
            }
        }
    }

    /// "did you mean", while there is not too much to compare with.
    fn suggest<'n>(&self, name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
        let done = self.comparisons.get();
        let known: Vec<&str> = known.take(MAX_COMPARISONS - done).collect();
        self.comparisons.set(done + known.len());
        did_you_mean(name, known)
    }

    /// `otherwise`: what to do where nothing like `name` is known.
    fn unknown(&self, span: Span, message: String, name: &str, known: &[&str], otherwise: &str) {
        let hint = self
            .suggest(name, known.iter().copied())
            .unwrap_or_else(|| match known.len() {
                1 => format!("there is {}", listed(known)),
                2..=12 => format!("there are {}", listed(known)),
                _ => otherwise.to_owned(),
            });
        self.problems.error(span, message, hint);
    }

    fn is_a(&self, role: Role, id: &str) -> bool {
        self.blocks.get(id).is_some_and(|(found, _)| *found == role)
    }

    fn ids_of(&self, role: Role) -> Vec<&str> {
        let ids = self.blocks.iter().filter(|(_, (found, _))| *found == role);
        ids.map(|(id, _)| *id).collect()
    }

    // ---- blocks ---------------------------------------------------------------------------------

    fn check_fixtures(&self, blocks: &[Block]) {
        let mut from: IndexMap<&str, &Spanned<String>> = IndexMap::new();
        for block in blocks {
            let named = match &block.kind {
                BlockKind::Fixture(fixture) => {
                    let database = format!("fixture_{}", fixture.id.value);
                    self.problems.fits_postgres(&database, fixture.id.span);
                    if let Some(parent) = &fixture.from {
                        from.insert(&fixture.id.value, parent);
                    }
                    fixture.from.as_ref()
                }
                BlockKind::Experiment(experiment) => experiment.fixture.as_ref(),
                _ => None,
            };
            let Some(named) = named else { continue };
            let exists = self.is_a(Role::Fixture, &named.value);
            if !exists {
                self.unknown(
                    named.span,
                    format!("unknown fixture `{}`", named.value),
                    &named.value,
                    &self.ids_of(Role::Fixture),
                    "write a block ` ```sql fixture … `",
                );
            }
        }
        self.check_cycles(&from);
    }

    fn check_cycles(&self, from: &IndexMap<&str, &Spanned<String>>) {
        let mut settled: HashSet<&str> = HashSet::new();
        for &start in from.keys() {
            let mut path: IndexSet<&str> = IndexSet::new();
            let mut at = start;
            while let Some(parent) = from.get(at) {
                if settled.contains(at) {
                    break;
                }
                if !path.insert(at) {
                    let first = path.get_index_of(at).unwrap_or(0);
                    let round: Vec<&str> = path.iter().skip(first).copied().collect();
                    self.problems.error(
                        parent.span,
                        format!(
                            "fixtures build on one another in a circle: {}",
                            listed(&round)
                        ),
                        "take one `from:` out",
                    );
                    break;
                }
                at = &parent.value;
            }
            settled.extend(path);
        }
    }

    fn check_blocks(&self, blocks: &[Block]) {
        for block in blocks {
            match &block.kind {
                BlockKind::Fixture(fixture) => {
                    let mut scope = self.scope(&[]);
                    self.check_script(&fixture.script, &mut scope);
                }
                BlockKind::Experiment(experiment) => self.check_experiment(experiment),
                BlockKind::Claims(claims) => {
                    for claim in &claims.claims {
                        self.check_query(&claim.query);
                        self.check_profile(claim);
                    }
                }
                BlockKind::Table(table) => self.check_query(&table.query),
                BlockKind::Chart(chart) => self.check_query(&chart.query),
            }
        }
    }

    fn check_query(&self, query: &Statement) {
        self.check_statement(query, &mut self.scope(&[]));
        let text = &query.text;
        for (table, range) in sql::measured_table_places(&text.text) {
            let unclear = self.unclear.iter().any(|id| table.starts_with(id));
            if self.tables.contains(&table) || unclear {
                continue;
            }
            let experiments = self.ids_of(Role::Experiment);
            let known = self.tables.iter().map(String::as_str);
            let hint = self.suggest(&table, known).unwrap_or_else(|| {
                format!(
                    "experiments are {}; `collect: {{as: name}}` gives `measured.<experiment>_name`",
                    listed(experiments)
                )
            });
            let message = format!("no experiment gives `measured.{table}`");
            self.problems.error(text.span(range), message, hint);
        }
    }

    fn check_profile(&self, claim: &Claim) {
        let (Some(profile), Some(front_matter)) = (&claim.profile, self.front_matter) else {
            return;
        };
        let name = profile.value.as_str();
        if name == FULL_PROFILE || front_matter.profiles.contains_key(name) {
            return;
        }
        let mut known: Vec<&str> = front_matter.profiles.keys().map(String::as_str).collect();
        known.push(FULL_PROFILE);
        self.unknown(
            profile.span,
            format!("unknown profile `{name}`"),
            name,
            &known,
            "",
        );
    }

    fn check_experiment(&self, experiment: &Experiment) {
        let columns: Vec<&str> = experiment
            .cells
            .columns
            .iter()
            .map(String::as_str)
            .collect();
        let scope = self.scope(&columns);
        for text in experiment
            .session
            .values()
            .chain(experiment.settings.values())
        {
            self.check_text(text, &scope);
        }
        self.check_settings_of_cells(experiment, &columns);
        for text in experiment.derive.values() {
            self.check_text_of_all_cells(text, &columns, "a column is named without the colon");
        }
        for (name, expression) in &experiment.derive {
            if columns.contains(&name.as_str()) || matches!(name.as_str(), "run" | "rows") {
                self.problems.error(
                    expression.span,
                    format!("`derive` gives a column `{name}`, which is there already"),
                    "give it another name",
                );
            }
        }
        for (name, span) in experiment.phases().flat_map(|phase| phase.client.params()) {
            if !scope.knows(name) {
                self.unknown_variable(name, span, &scope);
            }
        }
        self.check_phases(experiment, scope);
    }

    /// Settings are the server's: where cells have their own, one cell is measured after the other.
    fn check_settings_of_cells(&self, experiment: &Experiment, columns: &[&str]) {
        if experiment.order == Order::Sequential {
            return;
        }
        for text in experiment.settings.values() {
            let variables = sql::variables_of_text(&text.value);
            let mut names = variables.iter().map(|variable| variable.name.as_str());
            if let Some(name) = names.find(|name| columns.contains(name)) {
                self.problems.error(
                    text.span,
                    format!("`:{name}` has another value in each cell"),
                    "the server's settings change from cell to cell only with `order: sequential`; \
                     those of a session stand under `session:`",
                );
            }
        }
    }

    /// Each phase sees what those before it set.
    fn check_phases(&self, experiment: &Experiment, mut scope: Scope) {
        for name in experiment.session_names() {
            scope.names.insert(format!("{name}_pid"));
        }
        let observes = |session: &CollectSession| *session != CollectSession::Subject;
        let of_steps = |steps: &'static str| {
            (experiment.steps())
                .filter(move |(name, _)| *name == steps)
                .map(|(_, step)| (&step.phase, step.session.is_some()))
        };
        let samples = experiment.samples.iter().map(|one| (&one.phase, true));
        let collects = (experiment.collects.iter())
            .map(|collect| (&collect.phase, observes(&collect.session)));
        let phases = of_steps("setup")
            .chain(of_steps("warmup"))
            .chain([(&experiment.measure, false)])
            .chain(of_steps("measure"))
            .chain(samples)
            .chain(collects)
            .chain(of_steps("teardown"));
        for (phase, beside_the_subject) in phases {
            self.check_phase(phase, beside_the_subject, &mut scope);
        }
    }

    /// The measuring backend is known to whoever observes it, and to every `wait_until`.
    fn check_phase(&self, phase: &Phase, beside_the_subject: bool, scope: &mut Scope) {
        let known_before = !scope.names.insert(SUBJECT_PID.to_owned());
        if let Some(condition) = &phase.wait_until {
            self.check_text(condition, scope);
        }
        if !beside_the_subject && !known_before {
            scope.names.shift_remove(SUBJECT_PID);
        }
        self.check_script(&phase.script, scope);
        if !known_before {
            scope.names.shift_remove(SUBJECT_PID);
        }
    }

    // ---- variables ------------------------------------------------------------------------------

    fn scope(&self, columns: &[&str]) -> Scope {
        let params = self
            .front_matter
            .into_iter()
            .flat_map(|front| front.params.keys());
        let columns = columns.iter().map(|column| (*column).to_owned());
        Scope {
            names: params.cloned().chain(columns).collect(),
            prefixes: Vec::new(),
            // Without front matter any name may be a param.
            anything: self.front_matter.is_none(),
        }
    }

    fn check_script(&self, script: &Script, scope: &mut Scope) {
        for statement in &script.statements {
            self.check_statement(statement, scope);
        }
    }

    fn check_statement(&self, statement: &Statement, scope: &mut Scope) {
        for variable in &statement.variables {
            if !scope.knows(&variable.name) {
                let span = statement.text.span(variable.range.clone());
                self.unknown_variable(&variable.name, span, scope);
            }
        }
        match sql::set_by(statement) {
            Some(SetVariables::Named(names)) => scope.names.extend(names),
            Some(SetVariables::AnyWithPrefix(prefix)) => scope.prefixes.push(prefix),
            None => {}
        }
    }

    fn check_text(&self, text: &Spanned<String>, scope: &Scope) {
        for variable in sql::variables_of_text(&text.value) {
            if !scope.knows(&variable.name) {
                self.unknown_variable(&variable.name, text.span, scope);
            }
        }
    }

    /// A text that is filled in once for the experiment, where no cell has a value to give.
    fn check_text_of_all_cells(&self, text: &Spanned<String>, columns: &[&str], hint: &str) {
        let variables = sql::variables_of_text(&text.value);
        let of_a_cell = variables
            .iter()
            .find(|variable| columns.contains(&variable.name.as_str()));
        match of_a_cell {
            Some(variable) => self.problems.error(
                text.span,
                format!("`:{}` has another value in each cell", variable.name),
                hint,
            ),
            None => self.check_text(text, &self.scope(&[])),
        }
    }

    fn unknown_variable(&self, name: &str, span: Span, scope: &Scope) {
        let known = scope.names.iter().map(String::as_str);
        let problem: Diagnostic = sql::unknown_variable(name, known);
        self.problems.push(problem.at(self.problems.source, span));
    }

    // ---- prose ----------------------------------------------------------------------------------

    fn check_prose(&self, prose: &Prose) {
        for quote in &prose.quotes {
            let name = quote.claim.value.as_str();
            if self.all_claims && !self.claims.contains_key(name) {
                let known: Vec<&str> = self.claims.keys().copied().collect();
                self.unknown(
                    quote.claim.span,
                    format!("unknown claim `{name}`"),
                    name,
                    &known,
                    "write it in a block ` ```sql claims … `",
                );
            }
        }
        for reference in &prose.references {
            let (role, word) = match reference.kind {
                ReferenceKind::Chart => (Role::Chart, "chart"),
                ReferenceKind::Table => (Role::Table, "table"),
                ReferenceKind::Experiment => (Role::Experiment, "experiment"),
            };
            let name = reference.id.value.as_str();
            if self
                .blocks
                .get(name)
                .is_none_or(|(found, _)| *found != role)
            {
                self.unknown(
                    reference.id.span,
                    format!("unknown {word} `{name}`"),
                    name,
                    &self.ids_of(role),
                    &format!("write a block ` ```sql {word} … `"),
                );
            }
        }
        for citation in &prose.citations {
            self.check_citation(&citation.target);
        }
        for fill_in in &prose.fill_ins {
            let at = fill_in.span.start + 2;
            let source = &self.problems.source.text[at..fill_in.span.end];
            let offset = source.find(&fill_in.expression).unwrap_or(0);
            self.check_fill_in(fill_in, Some(at + offset), fill_in.span);
        }
    }

    /// A link without its definition would stand in the page unchecked.
    fn check_undefined(&self, link: &UndefinedLink) {
        let name = link.name.as_str();
        let scheme = SCHEMES.iter().find(|scheme| name.starts_with(**scheme));
        let destination = match scheme {
            Some(scheme) => format!("{scheme}{}", name[scheme.len()..].trim()),
            None => {
                // `[name]` alone may well be meant as it stands.
                let written = self.problems.source.slice(link.span);
                if !written.contains("][") || !self.claims.contains_key(name) {
                    return;
                }
                format!("claim:{name}")
            }
        };
        self.problems.error(
            link.span,
            format!("`{name}` is not defined"),
            format!("write the destination in parentheses: `[…]({destination})`"),
        );
    }

    fn check_citation(&self, target: &Spanned<String>) {
        if target.value != "source" {
            self.problems.error(
                target.span,
                format!("unknown citation `{}`", target.value),
                "`cite:source` is the one there is: the `source:` of the front matter",
            );
        } else if self
            .front_matter
            .is_some_and(|front| front.published_source.is_none())
        {
            self.problems.error(
                target.span,
                "the front matter names no `source` that could be cited",
                "add `source: {title: …, url: …, author: …, date: …}`",
            );
        }
    }

    fn check_texts(&self, blocks: &[Block]) {
        for text in texts(self.front_matter, blocks) {
            for fill_in in &text.fill_ins {
                let inside = &text.text[fill_in.span.range()];
                let offset = inside.find(&fill_in.expression).unwrap_or(0);
                let start = fill_in.span.start + offset;
                let place = text.places.verbatim(start..fill_in.span.end);
                self.check_fill_in(fill_in, place.map(|place| place.start), text.span);
            }
        }
    }

    /// `at`: where the expression stands in the source, if it stands there byte for byte.
    fn check_fill_in(&self, fill_in: &FillIn, at: Option<usize>, otherwise: Span) {
        let Some(front_matter) = self.front_matter.filter(|_| self.all_claims) else {
            return;
        };
        for (name, range) in fill_in::roots(&fill_in.expression) {
            let known = self.claims.contains_key(name)
                || front_matter.params.contains_key(name)
                || FILL_IN_ROOTS.contains(&name);
            if known {
                continue;
            }
            let span = match at {
                Some(at) => Span::new(at + range.start, at + range.end),
                None => otherwise,
            };
            let params = front_matter.params.keys().map(String::as_str);
            let names = self
                .claims
                .keys()
                .copied()
                .chain(params)
                .chain(FILL_IN_ROOTS);
            let hint = self.suggest(name, names).unwrap_or_else(|| {
                "claims, params, `server` and `host` can be filled in".to_owned()
            });
            self.problems
                .error(span, format!("unknown name `{name}`"), hint);
        }
    }
}

/// On an observer's connection: the process of the measuring backend.
const SUBJECT_PID: &str = "subject_pid";

/// The variables a statement may name.
struct Scope {
    names: IndexSet<String>,
    /// Of `\gset`s whose columns only the server knows.
    prefixes: Vec<String>,
    anything: bool,
}

impl Scope {
    fn knows(&self, name: &str) -> bool {
        self.anything
            || self.names.contains(name)
            || self
                .prefixes
                .iter()
                .any(|prefix| name.starts_with(prefix.as_str()))
    }
}
