//! The instruments of an experiment: one probe of each, what they may ask, and what their failures
//! mean.

use super::instrument::{self, INSTRUMENTS, Instrument, Probe, Sessions, Unreadable};
use super::protocol::Protocol;
use super::script;
use super::state::State;
use crate::article::{Experiment, InstrumentChoice};
use crate::diagnostic::Diagnostic;
use crate::engine::session::{Session, SessionError};
use crate::exit_code::Failure;
use crate::source::{Span, Spanned};

pub fn sessions<'s>(control: &'s mut Session, state: &'s mut State, major: u32) -> Sessions<'s> {
    Sessions {
        subject: &mut state.subject,
        control,
        observer: &mut state.observer,
        database: &state.database,
        major,
    }
}

/// One of each instrument the experiment reads, with its place in the article, in the order of the
/// catalogue.
pub fn probes(experiment: &Experiment) -> Vec<(&Spanned<InstrumentChoice>, Box<dyn Probe>)> {
    let chosen = |instrument: &Instrument| {
        let mut choices = experiment.instruments.iter();
        let choice = choices.find(|choice| choice.value.name == instrument.name)?;
        Some((choice, (instrument.probe)(&choice.value.options)))
    };
    INSTRUMENTS.iter().filter_map(chosen).collect()
}

/// The statement that `explain` is about, and what stands before it.
pub fn explain(experiment: &Experiment, major: u32) -> Option<script::Explain> {
    let options = experiment.instrument(instrument::explain::INSTRUMENT.name)?;
    let analyzes = instrument::explain::analyzes(options);
    Some(script::Explain {
        statement: instrument::explain::statement(&experiment.measure.script)?,
        prefix: analyzes.then(|| instrument::explain::prefix(options, major)),
    })
}

impl Protocol<'_> {
    /// That an instrument cannot read is our bug, unless the log is gone that it would read.
    pub(super) fn reading_failure(
        &self,
        cell: usize,
        run: u32,
        instrument: Span,
        error: Unreadable,
    ) -> Failure {
        const UNDEFINED_FILE: &str = "58P01";
        match error {
            Unreadable::Refused { message, hint } => Failure::article(
                Diagnostic::error(message)
                    .at(&self.request.article.source, instrument)
                    .note(format!("{}, run {run}", self.place(cell, "measure")))
                    .hint(hint),
            ),
            Unreadable::Session(SessionError::Sql(error)) if error.sqlstate == UNDEFINED_FILE => {
                Failure::article(
                    Diagnostic::error(format!(
                        "the write-ahead log of this run is gone before it could be read: {}",
                        error.message
                    ))
                    .at(&self.request.article.source, self.experiment().measure.span)
                    .note(format!("{}, run {run}", self.place(cell, "measure")))
                    .hint(
                        "a checkpoint removed it: raise `max_wal_size` or `wal_keep_size` under \
                     `postgres: {settings: …}`",
                    ),
                )
            }
            Unreadable::Session(error) => error.into(),
        }
    }
}
