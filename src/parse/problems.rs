//! Collects what is wrong, so that one reading of an article tells all of it.

use crate::diagnostic::Diagnostic;
use crate::source::{Source, Span};
use std::cell::RefCell;
use std::sync::Arc;

pub struct Problems<'s> {
    pub source: &'s Arc<Source>,
    found: RefCell<Vec<Diagnostic>>,
}

impl<'s> Problems<'s> {
    pub fn new(source: &'s Arc<Source>) -> Self {
        Self {
            source,
            found: RefCell::default(),
        }
    }

    pub fn push(&self, problem: Diagnostic) {
        self.found.borrow_mut().push(problem);
    }

    pub fn extend(&self, problems: Vec<Diagnostic>) {
        self.found.borrow_mut().extend(problems);
    }

    pub fn error(
        &self,
        span: impl Into<Span>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(Diagnostic::error(message).at(self.source, span).hint(hint));
    }

    /// A second thing where there can be one; `first` is where the first stands.
    pub fn duplicate(&self, span: Span, first: Span, message: String, hint: impl Into<String>) {
        self.push(
            Diagnostic::error(message)
                .at(self.source, span)
                .related(self.source, first, "first defined here")
                .hint(hint),
        );
    }

    pub fn count(&self) -> usize {
        self.found.borrow().len()
    }

    /// All of them, in the order of the text.
    pub fn into_sorted(self) -> Vec<Diagnostic> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|problem| problem.place.as_ref().map(|place| place.span));
        found
    }
}

/// "`a`, `b` and `c`"
pub fn listed<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names
        .into_iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}
