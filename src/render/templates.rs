//! The templates, compiled in and parsed once.

use crate::diagnostic::Diagnostic;
use serde::Serialize;
use std::sync::OnceLock;
use tera::{Context, Tera};

/// Name → source. Names end in `.html`, so everything put into them is escaped.
const TEMPLATES: &[(&str, &str)] = &[
    (
        "html/page.html",
        include_str!("../../templates/html/page.html"),
    ),
    (
        "html/header.html",
        include_str!("../../templates/html/header.html"),
    ),
    (
        "html/machines.html",
        include_str!("../../templates/html/machines.html"),
    ),
    (
        "html/evidence.html",
        include_str!("../../templates/html/evidence.html"),
    ),
    (
        "html/footer.html",
        include_str!("../../templates/html/footer.html"),
    ),
    (
        "html/experiment.html",
        include_str!("../../templates/html/experiment.html"),
    ),
    (
        "html/fixture.html",
        include_str!("../../templates/html/fixture.html"),
    ),
    (
        "html/claims.html",
        include_str!("../../templates/html/claims.html"),
    ),
    (
        "html/skipped.html",
        include_str!("../../templates/html/skipped.html"),
    ),
    (
        "html/table.html",
        include_str!("../../templates/html/table.html"),
    ),
    (
        "html/chart.html",
        include_str!("../../templates/html/chart.html"),
    ),
    (
        "html/rows.html",
        include_str!("../../templates/html/rows.html"),
    ),
    (
        "index/index.html",
        include_str!("../../templates/index/index.html"),
    ),
];

/// Colours, type and print rules of every page.
pub const STYLE: &str = include_str!("../../templates/html/style.css");

/// Opens a figure's evidence in place; pages work without it.
pub const SCRIPT: &str = include_str!("../../templates/html/script.js");

/// Fills one template. Its failing is our bug, never the article's.
pub fn render(name: &str, view: &impl Serialize) -> Result<String, Diagnostic> {
    static ENGINE: OnceLock<Result<Tera, String>> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| {
        let mut tera = Tera::new();
        tera.add_raw_templates(TEMPLATES.iter().copied())
            .map_err(|error| error.to_string())?;
        Ok(tera)
    });
    let failed = |error: String| Diagnostic::error(format!("template `{name}` failed")).note(error);
    let engine = engine.as_ref().map_err(|error| failed(error.clone()))?;
    let context = Context::from_serialize(view).map_err(|error| failed(error.to_string()))?;
    engine
        .render(name, &context)
        .map_err(|error| failed(error.to_string()))
}
