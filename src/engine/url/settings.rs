//! Settings on a server that cannot be restarted, reloaded or altered: those that one database can
//! have are set in each of ours, those that the server has already need nothing, all others cannot
//! be had.

use crate::diagnostic::Diagnostic;
use crate::engine::session::{Session, SessionError, SqlError, quote_identifier, quote_literal};
use bigdecimal::BigDecimal;
use std::collections::BTreeMap;

/// What the server says of one setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// For people, as `SHOW` prints it.
    pub shown: String,
    /// In `unit`.
    setting: String,
    unit: String,
    vartype: String,
    /// When a change takes effect.
    context: String,
}

/// What became of a setting that is wanted otherwise than the server has it.
pub enum Settled {
    /// Databases of ours have it.
    OnDatabases,
    Not(Diagnostic),
}

/// Postgres's code for a parameter that cannot be changed now, and for a value that it cannot have.
const CANNOT_CHANGE: &str = "55P02";
const INVALID_VALUE: &str = "22023";

/// Of those that are wanted; in lower case as everywhere in Postgres, but under the names given.
pub async fn known(
    session: &mut Session,
    wanted: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Known>, SessionError> {
    let sql = "SELECT lower(name), pg_catalog.current_setting(name, true), setting, unit, vartype,
        context FROM pg_catalog.pg_settings";
    let mut all = BTreeMap::new();
    for row in session.execute(sql).await?.rows {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || cells.next().unwrap_or_default();
        let name = next();
        let known = Known {
            shown: next(),
            setting: next(),
            unit: next(),
            vartype: next(),
            context: next(),
        };
        all.insert(name, known);
    }
    let found = |name: &String| {
        let known = all.get(&name.to_ascii_lowercase())?;
        Some((name.clone(), known.clone()))
    };
    Ok(wanted.keys().filter_map(found).collect())
}

/// For our role in one database, which goes before what the role or the database has otherwise, and
/// is gone with the database. `database` is quoted already.
pub fn set(database: &str, name: &str, value: &str) -> String {
    let (setting, value) = (identifier(name), value_of(name, value));
    format!("ALTER ROLE CURRENT_USER IN DATABASE {database} SET {setting} = {value}")
}

pub fn reset(database: &str, name: &str) -> String {
    let setting = identifier(name);
    format!("ALTER ROLE CURRENT_USER IN DATABASE {database} RESET {setting}")
}

/// Lists of names: quoted as a whole they would be one name.
const LISTS: [&str; 2] = ["search_path", "temp_tablespaces"];

fn value_of(name: &str, value: &str) -> String {
    if !LISTS.contains(&name.to_ascii_lowercase().as_str()) {
        return quote_literal(value);
    }
    let names = value.split(',').map(|name| name.trim().trim_matches('"'));
    let names: Vec<_> = names.map(quote_literal).collect();
    names.join(", ")
}

/// `a.b` in two parts.
fn identifier(name: &str) -> String {
    let parts: Vec<_> = name.split('.').map(quote_identifier).collect();
    parts.join(".")
}

/// Why a setting cannot be changed without the server's owner, where it cannot.
pub fn fixed(name: &str, wanted: &str, known: Option<&Known>) -> Option<Diagnostic> {
    let Some(known) = known else {
        let own = name.contains('.');
        return (!own).then(|| {
            Diagnostic::error(format!("this server has no setting `{name}`"))
                .sqlstate(CANNOT_CHANGE)
        });
    };
    let of_session = ["user", "superuser"].contains(&known.context.as_str());
    (!of_session).then(|| {
        let how = match known.context.as_str() {
            "internal" => "it is fixed when the server is built",
            "postmaster" => "changing it takes a restart of the server",
            "sighup" => "it is the same for the whole server",
            _ => "it is fixed when a session begins",
        };
        differs(name, wanted, Some(known)).note(how)
    })
}

/// Postgres let a setting not be set on a database.
pub fn refused(name: &str, wanted: &str, known: Option<&Known>, error: &SqlError) -> Diagnostic {
    let diagnostic = differs(name, wanted, known).note(format!(
        "Postgres: {} (SQLSTATE {})",
        error.message, error.sqlstate
    ));
    match error.sqlstate.as_str() {
        // As it is told of servers that are started.
        INVALID_VALUE => {
            Diagnostic::error(format!("Postgres says: {}", error.message)).sqlstate(INVALID_VALUE)
        }
        _ => diagnostic,
    }
}

/// Whether it would be refused by any server.
pub fn is_mistake(why: &Diagnostic) -> bool {
    why.sqlstate.as_deref() == Some(INVALID_VALUE)
}

fn differs(name: &str, wanted: &str, known: Option<&Known>) -> Diagnostic {
    let has = match known {
        Some(known) => format!("is `{}` on this server", known.shown),
        None => "is not set on this server".to_owned(),
    };
    Diagnostic::error(format!("`{name}` {has} and cannot be set to `{wanted}`"))
        .sqlstate(CANNOT_CHANGE)
}

/// What a setting has become that was set; only where it can be told that it is not what was wanted.
pub fn came_to_nothing(name: &str, wanted: &str, known: Option<&Known>) -> Option<Diagnostic> {
    let compared = ["bool", "integer", "real", "enum"];
    let known = known.filter(|known| compared.contains(&known.vartype.as_str()))?;
    (!known.has(wanted)).then(|| {
        differs(name, wanted, Some(known))
            .note("something goes before it: PGOPTIONS, or options of the URL")
    })
}

impl Known {
    /// Whether the setting has this value already, however it is written.
    pub fn has(&self, wanted: &str) -> bool {
        if self.setting == wanted || self.shown == wanted {
            return true;
        }
        match self.vartype.as_str() {
            "bool" => boolean(wanted).is_some_and(|wanted| Some(wanted) == boolean(&self.setting)),
            "integer" | "real" => {
                let has = self.setting.parse::<BigDecimal>().ok();
                has.is_some() && has == in_unit(wanted, &self.unit)
            }
            "enum" => self.setting.eq_ignore_ascii_case(wanted),
            _ => false,
        }
    }
}

/// Any beginning of these words that is no beginning of the other, as Postgres reads them.
fn boolean(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if begins("true", 1) || begins("yes", 1) || text == "on" || text == "1" {
        return Some(true);
    }
    let no = begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0";
    no.then_some(false)
}

/// Bytes, or microseconds, in one of a unit.
const UNITS: [(&str, i64); 12] = [
    ("B", 1),
    ("kB", 1 << 10),
    ("8kB", 8 << 10),
    ("MB", 1 << 20),
    ("16MB", 16 << 20),
    ("GB", 1 << 30),
    ("TB", 1 << 40),
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("min", 60_000_000),
    ("h", 3_600_000_000),
];
const DAY: i64 = 86_400_000_000;

/// A value of a setting as a number of its unit; without a unit of its own it is one already.
fn in_unit(text: &str, unit: &str) -> Option<BigDecimal> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || ['.', '-', '+'].contains(&c)))
        .unwrap_or(text.len());
    let number: BigDecimal = text[..end].parse().ok()?;
    let given = text[end..].trim();
    if given.is_empty() {
        return Some(number);
    }
    let size = |name: &str| {
        let known = UNITS.iter().find(|(known, _)| *known == name);
        known
            .map(|(_, size)| *size)
            .or((name == "d").then_some(DAY))
    };
    // kB of a time is no number of it.
    let is_time = |name: &str| ["us", "ms", "s", "min", "h", "d"].contains(&name);
    let (of_given, of_unit) = (size(given)?, size(unit)?);
    (is_time(given) == is_time(unit)).then(|| number * of_given / of_unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(setting: &str, unit: &str, vartype: &str, context: &str) -> Known {
        Known {
            shown: "as shown".into(),
            setting: setting.into(),
            unit: unit.into(),
            vartype: vartype.into(),
            context: context.into(),
        }
    }

    #[test]
    fn the_same_value_is_known_however_it_is_written() {
        for (setting, unit, vartype, wanted, same) in [
            ("16384", "8kB", "integer", "128MB", true),
            ("16384", "8kB", "integer", "131072kB", true),
            ("16384", "8kB", "integer", "16384", true),
            ("16384", "8kB", "integer", "0.125 GB", true),
            ("16384", "8kB", "integer", "129MB", false),
            ("16384", "8kB", "integer", "128 minutes", false),
            ("4096", "MB", "integer", "4GB", true),
            ("300", "s", "integer", "5min", true),
            ("86400", "s", "integer", "1d", true),
            ("300", "s", "integer", "300kB", false),
            ("4", "", "real", "4.0", true),
            ("100", "", "integer", "100", true),
            ("100", "", "integer", "100MB", false),
            ("on", "", "bool", "true", true),
            ("on", "", "bool", "1", true),
            ("off", "", "bool", "of", true),
            ("off", "", "bool", "on", false),
            ("replica", "", "enum", "REPLICA", true),
            ("a, b", "", "string", "A, b", false),
            ("x", "", "string", "as shown", true),
        ] {
            let known = known(setting, unit, vartype, "user");
            assert_eq!(known.has(wanted), same, "{setting} {unit} and {wanted}");
        }
    }

    #[test]
    fn a_list_of_names_is_set_as_a_list() {
        assert_eq!(
            set("\"d\"", "Search_Path", "\"it's\", public"),
            "ALTER ROLE CURRENT_USER IN DATABASE \"d\" SET \"Search_Path\" = 'it''s', 'public'"
        );
        assert_eq!(
            set("\"d\"", "a.b", "x, y"),
            "ALTER ROLE CURRENT_USER IN DATABASE \"d\" SET \"a\".\"b\" = 'x, y'"
        );
    }

    #[test]
    fn what_only_the_servers_owner_can_change_is_told_with_why() {
        for (context, why) in [
            ("user", None),
            ("superuser", None),
            ("sighup", Some("the same for the whole server")),
            ("postmaster", Some("a restart of the server")),
            ("internal", Some("when the server is built")),
            ("backend", Some("when a session begins")),
        ] {
            let known = known("1", "", "integer", context);
            let told = fixed("x", "2", Some(&known)).map(|told| told.render(false));
            assert_eq!(told.is_some(), why.is_some(), "{context}");
            if let Some((told, why)) = told.zip(why) {
                assert!(told.contains("`x` is `as shown` on this server"), "{told}");
                assert!(told.contains(why), "{told}");
            }
        }
        assert!(fixed("my.own", "2", None).is_none());
        assert!(fixed("none", "2", None).is_some());
    }
}
