//! psql's backslash commands, of which two are kept: `\gexec` and `\gset [prefix]`.

use crate::article::Terminator;
use crate::diagnostic::{Diagnostic, did_you_mean};
use std::ops::Range;

const SUPPORTED: [&str; 2] = ["gexec", "gset"];

/// A command as it stands in the text: from the backslash to the end of its line.
pub struct Command {
    pub terminator: Terminator,
    pub range: Range<usize>,
}

/// A command that cannot be run, and its place in the text.
pub struct BadCommand {
    pub diagnostic: Diagnostic,
    pub range: Range<usize>,
}

/// Reads the command whose backslash stands at `at`. Either way the range says where to go on.
pub fn read(text: &str, at: usize) -> Result<Command, BadCommand> {
    let line_end = text[at..]
        .find(['\n', '\r'])
        .map_or(text.len(), |length| at + length);
    let line = &text[at + 1..line_end];
    let name_length = line
        .find(|c: char| c.is_whitespace() || c == '\\')
        .unwrap_or(line.len());
    let (name, arguments) = line.split_at(name_length);
    let range = at..line_end;
    let bad = |diagnostic| BadCommand {
        diagnostic,
        range: at..(at + 1 + name_length).max(at + 1),
    };
    let arguments = arguments.trim();
    match (name, arguments) {
        ("gexec", "") => Ok(Command {
            terminator: Terminator::Gexec,
            range,
        }),
        ("gset", prefix) if is_prefix(prefix) => Ok(Command {
            terminator: Terminator::Gset {
                prefix: prefix.to_owned(),
            },
            range,
        }),
        ("gexec", _) => Err(bad(Diagnostic::error(format!(
            "`\\gexec` takes nothing behind it, found `{arguments}`"
        ))
        .hint("begin the next statement on a line of its own"))),
        ("gset", _) => Err(bad(Diagnostic::error(format!(
            "`{arguments}` cannot be the prefix of `\\gset`"
        ))
        .hint("a prefix is made of letters, digits and underscores; begin the next statement on a line of its own"))),
        _ => Err(bad(unknown(name))),
    }
}

fn is_prefix(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn unknown(name: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("unknown backslash command `\\{name}`"));
    let supported = "`\\gexec` and `\\gset [prefix]` are the ones there are";
    let near = did_you_mean(name, SUPPORTED).filter(|_| name.len() > 1);
    diagnostic.hint(match (near, name) {
        (Some(near), _) => format!("{}; {supported}", near.replacen('`', "`\\", 1)),
        (None, "timing") => format!("time is measured without it; {supported}"),
        (None, "copy" | "i" | "ir" | "include") => {
            format!("psql's own files are not read; {supported}")
        }
        (None, "set") => format!("name the value under `params:`; {supported}"),
        _ => supported.to_owned(),
    })
}
