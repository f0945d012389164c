//! The files beside an article that its psql scripts read: looked for once, with those that an
//! included script includes in turn. The only thing that reading an article reads beside its text.

use super::psql;
use crate::article::{Block, BlockKind, Client, IncludedFile, Phase};
use crate::diagnostic::Diagnostic;
use crate::record::sha256_of;
use crate::source::{Extract, Source, Spanned};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// An included script may include others this deep.
const MOST_FILES: usize = 1000;

/// Every file that scripts of the blocks name and that is there. A script that is included must be.
pub fn included(
    blocks: &[Block],
    folder: &Path,
    source: &Arc<Source>,
) -> (BTreeMap<String, IncludedFile>, Vec<Diagnostic>) {
    let mut reader = Reader {
        folder,
        files: BTreeMap::new(),
        problems: Vec::new(),
    };
    for block in blocks {
        let BlockKind::Experiment(experiment) = &block.kind else {
            continue;
        };
        for script in experiment.phases().filter_map(psql_script) {
            let read = psql::scan(&script.body, source, "");
            reader.read(&script.files, &read.includes, source);
        }
    }
    (reader.files, reader.problems)
}

fn psql_script(phase: &Phase) -> Option<&crate::article::ProgramScript> {
    match &phase.client {
        Client::Psql(script) => Some(script),
        _ => None,
    }
}

struct Reader<'a> {
    folder: &'a Path,
    files: BTreeMap<String, IncludedFile>,
    problems: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn read(&mut self, named: &[Spanned<String>], includes: &[String], source: &Arc<Source>) {
        for name in named {
            let script = includes.contains(&name.value);
            let known = self.files.get(&name.value);
            let done = known.is_some_and(|known| !script || known.script.is_some());
            if done || self.files.len() >= MOST_FILES {
                continue;
            }
            match self.content(&name.value) {
                Ok(content) => self.keep(name, content, script, source),
                // Data may be written by an earlier phase.
                Err(_) if !script => {}
                Err(why) => self.problems.push(
                    Diagnostic::error(format!("cannot read `{}`: {why}", name.value))
                        .at(source, name.span)
                        .hint("what is included lies in the article's folder"),
                ),
            }
        }
    }

    /// Also through links, a file stays inside the folder.
    fn content(&self, name: &str) -> Result<Vec<u8>, String> {
        let said = |error: std::io::Error| error.to_string();
        let path = self.folder.join(name);
        let real = std::fs::canonicalize(&path).map_err(said)?;
        let folder = std::fs::canonicalize(self.folder).map_err(said)?;
        if !real.starts_with(&folder) {
            return Err("it lies outside of the article's folder".into());
        }
        std::fs::read(&real).map_err(said)
    }

    fn keep(
        &mut self,
        name: &Spanned<String>,
        content: Vec<u8>,
        script: bool,
        source: &Arc<Source>,
    ) {
        let path = self.folder.join(&name.value);
        let mut file = IncludedFile {
            sha256: sha256_of(&content),
            script: None,
            variables: Vec::new(),
            files: Vec::new(),
            path,
        };
        if !script {
            self.files.insert(name.value.clone(), file);
            return;
        }
        let Ok(text) = String::from_utf8(content) else {
            self.problems.push(
                Diagnostic::error(format!("`{}` is not UTF-8", name.value)).at(source, name.span),
            );
            return;
        };
        let shown = match source.name.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{}", name.value),
            None => name.value.clone(),
        };
        let included = Source::new(shown, &file.path, text);
        let mut extract = Extract::default();
        extract.push(&included.text, 0);
        let folder = name
            .value
            .rsplit_once('/')
            .map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let read = psql::scan(&extract, &included, &folder);
        file.variables = read
            .script
            .statements
            .iter()
            .flat_map(|statement| &statement.variables)
            .map(|variable| variable.name.clone())
            .collect();
        let files = read.program.files.iter();
        file.files = files.map(|file| file.value.clone()).collect();
        file.script = Some(Arc::clone(&included));
        self.files.insert(name.value.clone(), file);
        self.problems.extend(read.problems);
        self.read(&read.program.files, &read.includes, &included);
    }
}
