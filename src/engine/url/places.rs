//! Where libpq looks for what a URL leaves open: environment variables ([`Environment`]), a service
//! file ([`service`]), a password file ([`password`]).

use crate::diagnostic::Diagnostic;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where servers of this machine have their sockets: Debian's and Fedora's place, then Postgres's
/// own.
pub const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// The environment variables of this process.
pub struct Environment<'e> {
    read: Box<Read<'e>>,
}

type Read<'e> = dyn Fn(&str) -> Option<String> + 'e;

impl<'e> Environment<'e> {
    pub fn new(read: impl Fn(&str) -> Option<String> + 'e) -> Self {
        Self {
            read: Box::new(read),
        }
    }

    pub fn of_process() -> Environment<'static> {
        Environment::new(|name| std::env::var(name).ok())
    }

    /// An empty one counts as none.
    pub fn variable(&self, name: &str) -> Option<String> {
        (self.read)(name).filter(|value| !value.is_empty())
    }

    /// Who runs this program.
    pub fn user(&self) -> Option<String> {
        self.variable("USER").or_else(|| self.variable("LOGNAME"))
    }

    pub fn in_home(&self, path: &str) -> Option<PathBuf> {
        Some(Path::new(&self.variable("HOME")?).join(path))
    }
}

/// The parameters of a service, from PGSERVICEFILE, `~/.pg_service.conf`, or the system's file.
pub fn service(
    name: &str,
    environment: &Environment<'_>,
) -> Result<BTreeMap<String, String>, Diagnostic> {
    let own = environment
        .variable("PGSERVICEFILE")
        .map(PathBuf::from)
        .or_else(|| environment.in_home(".pg_service.conf"));
    let of_system = environment
        .variable("PGSYSCONFDIR")
        .map(|folder| Path::new(&folder).join("pg_service.conf"));
    let files: Vec<PathBuf> = own.into_iter().chain(of_system).collect();
    let texts = files
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok());
    for text in texts {
        if let Some(parameters) = section(&text, name) {
            return Ok(parameters);
        }
    }
    let looked: Vec<String> = files
        .iter()
        .map(|file| format!("`{}`", file.display()))
        .collect();
    Err(
        Diagnostic::error(format!("there is no service `{name}`")).note(match looked.as_slice() {
            [] => "neither HOME nor PGSERVICEFILE says where services are described".to_owned(),
            looked => format!("looked in {}", looked.join(" and ")),
        }),
    )
}

/// `[name]`, then lines `parameter=value`.
fn section(text: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(header) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            if found.is_some() {
                break;
            }
            found = (header == name).then(BTreeMap::new);
        } else if let (Some(parameters), Some((key, value)), false) =
            (&mut found, line.split_once('='), line.starts_with('#'))
        {
            parameters.insert(key.trim().to_owned(), value.trim().to_owned());
        }
    }
    found
}

/// What a line of a password file has to fit.
pub struct Wanted<'w> {
    pub host: String,
    pub port: u16,
    pub database: &'w str,
    pub user: &'w str,
}

/// From `passfile`, or `~/.pgpass`. One that others may read is refused, where libpq would only
/// leave it aside.
pub fn password(
    passfile: Option<&str>,
    environment: &Environment<'_>,
    wanted: &Wanted<'_>,
) -> Result<Option<String>, Diagnostic> {
    let file = passfile
        .map(PathBuf::from)
        .or_else(|| environment.in_home(".pgpass"));
    let Some(file) = file else {
        return Ok(None);
    };
    let Ok(text) = std::fs::read_to_string(&file) else {
        return Ok(None);
    };
    let found = text.lines().find_map(|line| fitting(line, wanted));
    if found.is_some() && others_may_read(&file) {
        let file = file.display();
        return Err(
            Diagnostic::error(format!("the password file `{file}` can be read by others"))
                .hint(format!("make it yours alone: chmod 0600 {file}")),
        );
    }
    Ok(found)
}

fn others_may_read(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

/// The password of a line `host:port:database:user:password`, where `*` is anything and a backslash
/// takes the next character as it is.
fn fitting(line: &str, wanted: &Wanted<'_>) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut()?.extend(characters.next()),
            c => fields.last_mut()?.push(c),
        }
    }
    let [host, port, database, user, password] = fields.try_into().ok()?;
    // A socket in the usual place goes by the name of this machine.
    let usual = SOCKET_FOLDERS.contains(&wanted.host.as_str()) && host == "localhost";
    let fits = |field: &str, value: &str| field == "*" || field == value;
    let all = (usual || fits(&host, &wanted.host))
        && fits(&port, &wanted.port.to_string())
        && fits(&database, wanted.database)
        && fits(&user, wanted.user);
    all.then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_password_file_fits_or_not() {
        let wanted = |host: &str| Wanted {
            host: host.to_owned(),
            port: 5432,
            database: "d",
            user: "me",
        };
        for (line, host, password) in [
            ("h:5432:d:me:p", "h", Some("p")),
            ("*:*:*:*:p", "h", Some("p")),
            ("h:5432:d:me:a:b\\\\c", "h", Some("a:b\\c")),
            ("2001\\:db8\\:\\:1:*:*:me:p", "2001:db8::1", Some("p")),
            ("localhost:*:*:me:p", "/tmp", Some("p")),
            ("localhost:*:*:me:p", "/run/x", None),
            ("h:5433:d:me:p", "h", None),
            ("h:5432:e:me:p", "h", None),
            ("h:5432:d:you:p", "h", None),
            ("#h:5432:d:me:p", "h", None),
            ("h:5432:d:me", "h", None),
            ("", "h", None),
        ] {
            let found = fitting(line, &wanted(host));
            assert_eq!(found.as_deref(), password, "{line}");
        }
    }

    #[test]
    fn a_service_is_a_section() {
        let text =
            "# all\n[other]\nhost=x\n\n[mine]\n# mine\nhost = h\nport=6000\n[mine]\nport=1\n";
        let found = section(text, "mine").unwrap();
        assert_eq!(found["host"], "h");
        assert_eq!(found["port"], "6000");
        assert_eq!(found.len(), 2);
        assert_eq!(section(text, "none"), None);
    }

    #[test]
    fn a_password_file_of_others_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pass");
        std::fs::write(&file, "*:*:*:*:s3cret\n").unwrap();
        let wanted = Wanted {
            host: "h".into(),
            port: 5432,
            database: "d",
            user: "me",
        };
        let environment = Environment::new(|_| None);
        let path = file.to_str();
        for (mode, allowed) in [(0o600, true), (0o640, false)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            match password(path, &environment, &wanted) {
                Ok(found) => assert!(allowed && found.as_deref() == Some("s3cret")),
                Err(told) => assert!(!allowed && !told.render(false).contains("s3cret")),
            }
        }
        let nowhere = password(Some("/nowhere"), &environment, &wanted);
        assert_eq!(nowhere.unwrap(), None);
    }
}
