//! Which server is meant: a URL, with what it leaves open taken from a service file and from the
//! environment variables of libpq, in libpq's order, and the password from where libpq finds it.
//! Entry: [`Target::new`]. Nothing here connects, and nothing here prints a password.

use super::places::{self, Environment};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::exit_code::Failure;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::config::ChannelBinding;

/// An existing server, and who to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub host: TargetHost,
    pub port: u16,
    pub user: String,
    /// Where the first connection goes; nothing is done in it.
    pub database: String,
    pub password: Option<Secret>,
    pub encryption: Encryption,
    pub root_certificates: RootCertificates,
    /// Certificate and key that the server may ask for.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    pub channel_binding: ChannelBinding,
    pub options: Option<String>,
    pub connect_timeout: Duration,
    pub consent: Consent,
    password_in_url: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetHost {
    Name(String),
    /// The folder of a socket of this machine.
    Socket(PathBuf),
}

/// libpq's `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    Disable,
    /// Encrypted where the server can; whoever it is.
    Prefer,
    /// Encrypted; whoever it is.
    Require,
    /// A server that one of the root certificates vouches for.
    VerifyCa,
    /// And that has the name it is reached by.
    VerifyFull,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootCertificates {
    /// libpq's `~/.postgresql/root.crt`, where it is there.
    Default(Option<PathBuf>),
    File(PathBuf),
    /// Those that this system trusts.
    System,
}

/// What is done only for who asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// The article's SQL may run as a role that can reach more than its own databases.
    pub powerful_role: bool,
    /// A server of another major version than the article's.
    pub any_version: bool,
}

/// A password: printed by nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Consent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = [
            (self.powerful_role, " --trust"),
            (self.any_version, " --any-version"),
        ];
        let given = flags.into_iter().filter(|(given, _)| *given);
        given
            .into_iter()
            .try_for_each(|(_, flag)| f.write_str(flag))
    }
}

/// As `--server` takes it, without the password.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match &self.host {
            TargetHost::Name(name) if name.contains(':') => format!("[{name}]"),
            TargetHost::Name(name) => encoded(name),
            TargetHost::Socket(folder) => encoded(&folder.to_string_lossy()),
        };
        let (user, database) = (encoded(&self.user), encoded(&self.database));
        write!(f, "postgresql://{user}@{host}:{}/{database}", self.port)?;
        match self.encryption {
            Encryption::Prefer => Ok(()),
            encryption => write!(f, "?sslmode={}", encryption.name()),
        }
    }
}

impl Encryption {
    const ALL: [Self; 5] = [
        Self::Disable,
        Self::Prefer,
        Self::Require,
        Self::VerifyCa,
        Self::VerifyFull,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    fn parse(text: &str) -> Result<Self, Diagnostic> {
        let names = || Self::ALL.map(Self::name).into_iter();
        let found = Self::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| {
            let all = names().collect::<Vec<_>>().join(", ");
            Diagnostic::error(format!("`sslmode={text}` is not known"))
                .hint(did_you_mean(text, names()).unwrap_or_else(|| format!("there are {all}")))
        })
    }
}

impl Target {
    /// `url`: None where the environment names the server.
    pub fn new(
        url: Option<&str>,
        consent: Consent,
        environment: &Environment<'_>,
    ) -> Result<Self, Failure> {
        resolve(url, consent, environment).map_err(Failure::article)
    }

    /// What to say to who gave the password where others can read it.
    pub fn warning(&self) -> Option<Diagnostic> {
        self.password_in_url.then(|| {
            Diagnostic::warning("the password stands in `--server`")
                .note("process lists of this machine and the shell's history show it")
                .hint("leave it out: PGPASSWORD, PGPASSFILE or ~/.pgpass may hold it")
        })
    }

    /// `db.example.org:5432`
    pub fn address(&self) -> String {
        match &self.host {
            TargetHost::Name(name) if name.contains(':') => format!("[{name}]:{}", self.port),
            TargetHost::Name(name) => format!("{name}:{}", self.port),
            TargetHost::Socket(folder) => format!("{}:{}", folder.display(), self.port),
        }
    }
}

/// libpq's name of each parameter that is understood, with its environment variable.
const PARAMETERS: [(&str, &str); 16] = [
    ("channel_binding", "PGCHANNELBINDING"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("dbname", "PGDATABASE"),
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("options", "PGOPTIONS"),
    ("passfile", "PGPASSFILE"),
    ("password", "PGPASSWORD"),
    ("port", "PGPORT"),
    ("service", "PGSERVICE"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("user", "PGUSER"),
];

/// Said by clients, and without meaning here.
const WITHOUT_MEANING: [&str; 4] = [
    "application_name",
    "client_encoding",
    "fallback_application_name",
    "gssencmode",
];

type Parameters = BTreeMap<String, String>;

fn resolve(
    url: Option<&str>,
    consent: Consent,
    environment: &Environment<'_>,
) -> Result<Target, Diagnostic> {
    let of_url = match url {
        Some(url) => read_url(url)?,
        None => Parameters::new(),
    };
    let variable = |name: &str| {
        let found = PARAMETERS.iter().find(|(parameter, _)| *parameter == name);
        found.and_then(|(_, variable)| environment.variable(variable))
    };
    let service = match of_url
        .get("service")
        .cloned()
        .or_else(|| variable("service"))
    {
        Some(name) => places::service(&name, environment)?,
        None => Parameters::new(),
    };
    let names_a_server = url.is_some() || !service.is_empty();
    if !names_a_server && variable("host").is_none() && variable("hostaddr").is_none() {
        return Err(Diagnostic::error("engine `url` needs a server").hint(
            "name it: --server postgresql://user@host:port/database, or set PGHOST or PGSERVICE",
        ));
    }
    let value = |name: &str| {
        let given = of_url.get(name).or_else(|| service.get(name)).cloned();
        given
            .or_else(|| variable(name))
            .filter(|text| !text.is_empty())
    };
    let port = match value("port") {
        None => 5432,
        Some(text) => text.parse().map_err(|_| {
            // Not repeated: behind a `:` there may be a part of a password.
            Diagnostic::error("the server's port is no number").hint(ESCAPED)
        })?,
    };
    let user = value("user")
        .or_else(|| environment.user())
        .ok_or_else(|| {
            Diagnostic::error("the server's URL names no user")
                .hint("name the role: --server postgresql://user@host:port/database, or set PGUSER")
        })?;
    let database = value("dbname").unwrap_or_else(|| user.clone());
    let host = host(&value, port)?;
    let root_certificates = match value("sslrootcert").as_deref() {
        None => RootCertificates::Default(environment.in_home(".postgresql/root.crt")),
        Some("system") => RootCertificates::System,
        Some(file) => RootCertificates::File(file.into()),
    };
    let encryption = encryption(&value, &host, &root_certificates)?;
    let connect_timeout = match value("connect_timeout").map(|text| text.parse::<u64>()) {
        None | Some(Ok(0)) => Duration::from_secs(15),
        Some(Ok(seconds)) => Duration::from_secs(seconds.max(2)),
        Some(Err(_)) => {
            return Err(Diagnostic::error(
                "`connect_timeout` is a number of seconds",
            ));
        }
    };
    let password_in_url = of_url.contains_key("password");
    let password = password(&value, environment, (&host, port), (&database, &user))?;
    let client_certificate = match (value("sslcert"), value("sslkey")) {
        (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
        (None, None) => None,
        _ => return Err(Diagnostic::error("`sslcert` and `sslkey` go together")),
    };
    Ok(Target {
        host,
        port,
        user,
        database,
        password: password.map(Secret),
        encryption,
        root_certificates,
        client_certificate,
        channel_binding: channel_binding(&value)?,
        options: value("options"),
        connect_timeout,
        consent,
        password_in_url,
    })
}

/// Given, or from a password file.
fn password(
    value: &dyn Fn(&str) -> Option<String>,
    environment: &Environment<'_>,
    (host, port): (&TargetHost, u16),
    (database, user): (&str, &str),
) -> Result<Option<String>, Diagnostic> {
    if let Some(given) = value("password") {
        return Ok(Some(given));
    }
    let host = match host {
        TargetHost::Name(name) => name.clone(),
        TargetHost::Socket(folder) => folder.to_string_lossy().into_owned(),
    };
    let wanted = places::Wanted {
        host,
        port,
        database,
        user,
    };
    places::password(value("passfile").as_deref(), environment, &wanted)
}

/// A socket's folder, a name, or the address that a name would lead to.
fn host(value: &dyn Fn(&str) -> Option<String>, port: u16) -> Result<TargetHost, Diagnostic> {
    let named = value("host").or_else(|| value("hostaddr"));
    match named {
        Some(list) if list.contains(',') => {
            Err(Diagnostic::error("the server's URL names several hosts")
                .note("figures of several servers are no figures of one")
                .hint("name the one to measure on"))
        }
        Some(path) if path.starts_with('/') => Ok(TargetHost::Socket(path.into())),
        Some(name) => Ok(TargetHost::Name(name)),
        None => {
            let socket = format!(".s.PGSQL.{port}");
            let folder = places::SOCKET_FOLDERS
                .into_iter()
                .map(PathBuf::from)
                .find(|folder| folder.join(&socket).exists());
            Ok(match folder {
                Some(folder) => TargetHost::Socket(folder),
                None => TargetHost::Name("localhost".to_owned()),
            })
        }
    }
}

/// As libpq has it: what is verified follows from the root certificates where the mode leaves it
/// open, and a socket is never encrypted.
fn encryption(
    value: &dyn Fn(&str) -> Option<String>,
    host: &TargetHost,
    roots: &RootCertificates,
) -> Result<Encryption, Diagnostic> {
    if let Some(other) = value("target_session_attrs")
        .filter(|attributes| !["any", "read-write", "primary"].contains(&attributes.as_str()))
    {
        return Err(Diagnostic::error(format!(
            "`target_session_attrs={other}` cannot be measured on: a database is made"
        )));
    }
    let given = value("sslmode").map(|text| Encryption::parse(&text));
    let mode = match (given.transpose()?, roots) {
        (Some(mode), RootCertificates::System) if mode != Encryption::VerifyFull => {
            return Err(Diagnostic::error(format!(
                "`sslrootcert=system` with `sslmode={}`: anybody can have a certificate that the \
                 system trusts",
                mode.name()
            ))
            .hint("use `sslmode=verify-full`"));
        }
        (None, RootCertificates::System) => Encryption::VerifyFull,
        (Some(Encryption::Require), RootCertificates::File(_)) => Encryption::VerifyCa,
        (Some(mode), _) => mode,
        (None, _) => Encryption::Prefer,
    };
    Ok(match host {
        TargetHost::Socket(_) => Encryption::Disable,
        TargetHost::Name(_) => mode,
    })
}

/// Whether the login has to be bound to the encrypted connection.
fn channel_binding(value: &dyn Fn(&str) -> Option<String>) -> Result<ChannelBinding, Diagnostic> {
    match value("channel_binding").as_deref() {
        None | Some("prefer") => Ok(ChannelBinding::Prefer),
        Some("require") => Ok(ChannelBinding::Require),
        Some("disable") => Ok(ChannelBinding::Disable),
        Some(other) => Err(
            Diagnostic::error(format!("`channel_binding={other}` is not known"))
                .hint("there are disable, prefer, require"),
        ),
    }
}

// ---- the URL ------------------------------------------------------------------------------------

/// What a password may not hold as it is.
const ESCAPED: &str =
    "in a password `/`, `?`, `#` and `@` are written %2F, %3F, %23 and %40; better is PGPASSWORD";

/// `postgresql://[user[:password]@][host][:port][/database][?parameter=value&…]`. No message repeats
/// the URL: there may be a password in it.
fn read_url(url: &str) -> Result<Parameters, Diagnostic> {
    const FORM: &str = "it is written postgresql://user@host:port/database?sslmode=…";
    let wrong = |what: &str| Diagnostic::error(format!("`--server`: {what}")).hint(FORM);
    let rest = ["postgresql://", "postgres://"]
        .into_iter()
        .find_map(|scheme| url.strip_prefix(scheme))
        .ok_or_else(|| wrong("this is no URL of a Postgres server"))?;
    let decode = |text: &str| decoded(text).ok_or_else(|| wrong("a `%` in it is no escape"));
    let mut parameters = Parameters::new();
    let mut put = |name: &str, text: &str| -> Result<(), Diagnostic> {
        if !text.is_empty() {
            parameters.insert(name.to_owned(), decode(text)?);
        }
        Ok(())
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    if database.contains('@') {
        return Err(wrong("there is an `@` behind its host").hint(ESCAPED));
    }
    put("dbname", database)?;
    let (who, place) = match authority.rsplit_once('@') {
        Some((who, place)) => (who, place),
        None => ("", authority),
    };
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    put("user", user)?;
    put("password", password)?;
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (address, after) = rest
                .split_once(']')
                .ok_or_else(|| wrong("the `[` of its address has no `]`"))?;
            (address, after.strip_prefix(':').unwrap_or(after))
        }
        None => place.rsplit_once(':').unwrap_or((place, "")),
    };
    put("host", host)?;
    put("port", port)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, text) = pair
            .split_once('=')
            .ok_or_else(|| wrong("a parameter of it has no value"))?;
        let name = decode(name)?;
        if WITHOUT_MEANING.contains(&name.as_str()) {
            continue;
        }
        let known = || PARAMETERS.iter().map(|(parameter, _)| *parameter);
        if !name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            return Err(wrong("a parameter of it has no name").hint(ESCAPED));
        }
        if !known().any(|parameter| parameter == name) {
            let all = known().collect::<Vec<_>>().join(", ");
            return Err(
                Diagnostic::error(format!("`--server` has no parameter `{name}`"))
                    .hint(did_you_mean(&name, known()).unwrap_or(format!("there are {all}"))),
            );
        }
        put(&name, text)?;
    }
    Ok(parameters)
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment<'e>(pairs: &'e [(&'e str, &'e str)]) -> Environment<'e> {
        Environment::new(move |name| {
            let found = pairs.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn target(url: &str, pairs: &[(&str, &str)]) -> Result<Target, String> {
        let url = (!url.is_empty()).then_some(url);
        Target::new(url, Consent::default(), &environment(pairs)).map_err(|failure| match failure {
            Failure::Article(all) => all[0].render(false),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn a_url_is_read_as_libpq_reads_it() {
        for (url, shown) in [
            (
                "postgresql://me:s3cret@db.example.org:6000/d?sslmode=require",
                "postgresql://me@db.example.org:6000/d?sslmode=require",
            ),
            (
                "postgres://me@db.example.org",
                "postgresql://me@db.example.org:5432/me",
            ),
            (
                "postgresql://m%40e@[2001:db8::1]:6000/a%2Fb",
                "postgresql://m%40e@[2001:db8::1]:6000/a%2Fb",
            ),
            (
                "postgresql://me@%2Fvar%2Frun%2Fx/d?sslmode=require",
                "postgresql://me@%2Fvar%2Frun%2Fx:5432/d?sslmode=disable",
            ),
            (
                "postgresql:///d?host=h&user=me&application_name=x",
                "postgresql://me@h:5432/d",
            ),
            (
                "postgresql://me@h/d?sslrootcert=system",
                "postgresql://me@h:5432/d?sslmode=verify-full",
            ),
            (
                "postgresql://me@h/d?sslmode=require&sslrootcert=/r.crt",
                "postgresql://me@h:5432/d?sslmode=verify-ca",
            ),
        ] {
            assert_eq!(target(url, &[]).unwrap().to_string(), shown, "{url}");
        }
    }

    #[test]
    fn what_the_url_leaves_open_the_environment_says() {
        let found = target(
            "",
            &[
                ("PGHOST", "h"),
                ("PGPORT", "6000"),
                ("PGUSER", "me"),
                ("PGPASSWORD", "s3cret"),
                ("PGSSLMODE", "verify-full"),
                ("PGDATABASE", "d"),
            ],
        )
        .unwrap();
        assert_eq!(
            found.to_string(),
            "postgresql://me@h:6000/d?sslmode=verify-full"
        );
        assert_eq!(found.password.as_ref().unwrap().reveal(), "s3cret");
        assert_eq!(found.warning(), None);
        let found = target(
            "postgresql://you@h2/d2",
            &[("PGUSER", "me"), ("PGHOST", "h")],
        );
        assert_eq!(found.unwrap().to_string(), "postgresql://you@h2:5432/d2");
        let found = target("postgresql://h/", &[("USER", "me")]).unwrap();
        assert_eq!(found.to_string(), "postgresql://me@h:5432/me");
    }

    #[test]
    fn a_password_is_printed_by_nothing() {
        let found = target("postgresql://me:s3cr%40t@h/d", &[]).unwrap();
        assert_eq!(found.password.as_ref().unwrap().reveal(), "s3cr@t");
        let warning = found.warning().unwrap().render(false);
        for text in [found.to_string(), format!("{found:?}"), warning] {
            assert!(!text.contains("s3cr"), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_without_the_url() {
        for (url, says) in [
            ("mysql://me:s3cret@h/d", "no URL of a Postgres server"),
            ("host=h password=s3cret", "no URL of a Postgres server"),
            ("postgresql://me:s3cr%zzet@h/d", "a `%` in it is no escape"),
            ("postgresql://me:s3cret@[::1/d", "has no `]`"),
            ("postgresql://me@h:s3cret/d", "port is no number"),
            ("postgresql://me:s3cr/et@h/d", "an `@` behind its host"),
            ("postgresql://me:1/s3cret@h/d", "an `@` behind its host"),
            ("postgresql://me:1?s3cret@h/d?a=b", "has no name"),
            ("postgresql://me:1?s3cret@h/d", "has no value"),
            ("postgresql://me:s3cret@h,i/d", "names several hosts"),
            (
                "postgresql://me:s3cret@h/d?sslmod=x",
                "did you mean `sslmode`?",
            ),
            (
                "postgresql://me:s3cret@h/d?sslmode=verify",
                "did you mean `verify-",
            ),
            ("postgresql://me:s3cret@h/d?sslmode", "has no value"),
            (
                "postgresql://me:s3cret@h/d?sslrootcert=system&sslmode=require",
                "use `sslmode=verify-full`",
            ),
            ("postgresql://me:s3cret@h/d?sslcert=/x", "go together"),
            (
                "postgresql://me:s3cret@h/d?target_session_attrs=standby",
                "a database is made",
            ),
            ("postgresql://h/d", "names no user"),
            ("", "needs a server"),
        ] {
            let told = target(url, &[]).unwrap_err();
            assert!(told.contains(says), "{url}: {told}");
            assert!(!told.contains("s3cr"), "{told}");
        }
    }
}
