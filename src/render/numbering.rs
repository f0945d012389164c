//! "Figure 1", "Table 2", "Experiment 3": numbers in the order of the document, and the anchors
//! they are found at.

use crate::article::{Article, ReferenceKind};
use std::collections::BTreeMap;

pub struct Numbering<'a> {
    numbers: BTreeMap<(&'static str, &'a str), usize>,
}

impl<'a> Numbering<'a> {
    pub fn new(article: &'a Article) -> Self {
        let charts = article.charts().map(|chart| chart.id.value.as_str());
        let tables = article.tables().map(|table| table.id.value.as_str());
        let experiments = (article.experiments()).map(|experiment| experiment.id.value.as_str());
        let mut numbers = BTreeMap::new();
        let mut number = |kind, ids: &mut dyn Iterator<Item = &'a str>| {
            for (index, id) in ids.enumerate() {
                numbers.insert((scheme(kind), id), index + 1);
            }
        };
        number(ReferenceKind::Chart, &mut charts.into_iter());
        number(ReferenceKind::Table, &mut tables.into_iter());
        number(ReferenceKind::Experiment, &mut experiments.into_iter());
        Self { numbers }
    }

    /// None: the article has no such block.
    pub fn label(&self, kind: ReferenceKind, id: &str) -> Option<String> {
        let number = self.numbers.get(&(scheme(kind), id))?;
        let noun = match kind {
            ReferenceKind::Chart => "Figure",
            ReferenceKind::Table => "Table",
            ReferenceKind::Experiment => "Experiment",
        };
        Some(format!("{noun} {number}"))
    }
}

/// The scheme of a reference's link; also the first part of the anchor.
pub fn scheme(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Chart => "chart",
        ReferenceKind::Table => "table",
        ReferenceKind::Experiment => "experiment",
    }
}

/// `chart:insert_wal` → (chart, insert_wal)
pub fn parse_reference(destination: &str) -> Option<(ReferenceKind, &str)> {
    let (scheme, id) = destination.split_once(':')?;
    let kind = match scheme {
        "chart" => ReferenceKind::Chart,
        "table" => ReferenceKind::Table,
        "experiment" => ReferenceKind::Experiment,
        _ => return None,
    };
    Some((kind, id))
}
