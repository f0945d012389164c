//! The url engine on a server that stands for a managed one: its binaries are the embedded engine's,
//! its data directory is this test's, its role may log in and make databases and nothing else. It
//! listens on a port of the loopback interface, with passwords and a certificate.

mod server;

use crate::project::{Project, Ran, claim, measured};
use server::{Existing, PASSWORD, certificate, free_port};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ARTICLE: &str = "---
title: It costs {{ written }}
postgres:
  version: \"16.15\"
  settings: {work_mem: 6MB, shared_buffers: 64MB, max_connections: 100}
---

There are [1000](claim:rows), with [12 B](claim:written) each; see [](table:counted),
[](table:unwritten) and [](chart:drawn).

```sql fixture src
CREATE TABLE src AS SELECT g AS id FROM generate_series(1, 1000) g;
```

```sql experiment count
--| fixture: src
--| instruments: [time]
--| matrix: {k: [1, 2]}
--| measure:
SELECT count(*) AS n, current_setting('work_mem') AS work_mem, current_user::text AS who,
       current_database()::text AS database FROM src;
```

```sql experiment written
--| caption: What it writes
--| fixture: src
--| measure:
INSERT INTO src SELECT * FROM src;
```

```sql experiment checkpointed
--| instruments: [time]
--| setup:
CHECKPOINT;
--| measure:
SELECT 1 AS one;
```

```sql experiment restarted
--| instruments: [time]
--| settings: {shared_buffers: 16MB}
SELECT 1 AS one;
```

```sql experiment reset
--| instruments: [time]
--| settings: {work_mem: 9MB, max_connections: 100}
SELECT current_setting('work_mem') AS work_mem;
```

```sql claims c
--| rows: {kind: exact}
SELECT max(n) FROM measured.count;
--| written: {unit: B, kind: exact}
SELECT max(wal_bytes) / 1000 FROM measured.written;
--| fast: {unit: ms, kind: noisy, tolerance: 30%}
SELECT median(elapsed_ms) FROM measured.count;
```

```sql table counted
SELECT k, n FROM measured.count ORDER BY k;
```

```sql table unwritten
--| caption: Nothing of {{ written }}
SELECT wal_bytes FROM measured.written;
```

```sql chart drawn
--| type: bar
--| x: one
--| y: elapsed_ms
--| alt: bars
SELECT one, elapsed_ms FROM measured.checkpointed;
```
";

#[tokio::test]
async fn an_article_is_measured_on_an_existing_server_and_nothing_is_left_on_it() {
    let server = Existing::start("16.15").await;
    let url = server.url("managed", "postgres");
    let before = server.databases();
    server.sql("ALTER ROLE managed SET work_mem = '64MB'");
    let project = Project::new(ARTICLE);
    let build = [
        "build",
        "a",
        "--server",
        &url,
        "--report",
        "json=report.json",
    ];
    let ran = server.run(&project, &build);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(server.databases(), before);
    // Only what was there before: the role's own, which goes before a database's.
    let settings = "SELECT string_agg(setconfig::text, ' ') FROM pg_db_role_setting";
    assert_eq!(server.sql(settings), "{work_mem=64MB}");

    let record = project.record();
    let environment = &record.environment;
    assert_eq!(environment.server.engine, "url");
    assert_eq!(environment.server.version, "16.15");
    assert_eq!(environment.server.digest, None);
    assert!(
        environment
            .host
            .cpu
            .starts_with("an existing server (system ")
    );
    assert_eq!(environment.host.cores, 0);
    assert_eq!(claim(&record, "rows"), "1000");
    assert_eq!(measured(&record, "count", "work_mem"), ["6MB", "6MB"]);
    assert_eq!(measured(&record, "count", "who"), ["managed", "managed"]);
    assert_eq!(measured(&record, "reset", "work_mem"), ["9MB"]);
    assert_eq!(record.experiments["reset"].settings["work_mem"], "9MB");
    let differing = &environment.server.differing;
    assert_eq!(differing.len(), 1, "{differing:?}");
    assert_eq!(differing["shared_buffers"].wanted, "64MB");
    assert_eq!(differing["shared_buffers"].has.as_deref(), Some("32MB"));

    skipped_is_shown_everywhere(&project, &ran);
    what_is_unpinned_is_not_reused_and_not_accepted(&server, &project, &url);
}

fn skipped_is_shown_everywhere(project: &Project, ran: &Ran) {
    let record = project.record();
    let reason = |what: &str| record.skipped[what].as_str();
    assert!(reason("experiment `written`").contains("pg_walinspect"));
    assert!(reason("experiment `checkpointed`").contains("42501"));
    assert!(reason("experiment `restarted`").contains("`shared_buffers` is `32MB` on this server"));
    for what in ["claim `written`", "table `unwritten`", "chart `drawn`"] {
        assert!(reason(what).contains("was skipped"), "{what}");
    }
    assert_eq!(record.skipped.len(), 6);
    for id in ["written", "checkpointed", "restarted"] {
        assert!(!record.experiments.contains_key(id));
    }
    assert!(!record.claims.contains_key("written"));
    assert!(
        ran.stdout.contains("1 holds, 0 do not hold, 2 skipped"),
        "{}",
        ran.stdout
    );
    let page = project.read("out/a/index.html");
    let markdown = project.read("out/a/article.md").replace('\\', "");
    let report = project.read("report.json");
    for text in [&page, &markdown, &ran.stdout.replace("\n  ", " "), &report] {
        let text = text.replace("&#39;", "'").replace("&quot;", "\"");
        for said in [
            "Measured on an existing server of Postgres 16.15, not on the one that is pinned",
            "setting shared_buffers is 32MB, the article has 64MB",
            "permission denied to execute CHECKPOINT command (SQLSTATE 42501)",
            "changing it takes a restart of the server",
            "experiment `written` was skipped on this server",
        ] {
            assert!(text.contains(said), "{said} is not in:\n{text}");
        }
        assert!(!text.contains(PASSWORD) && !text.contains("localhost"));
    }
    assert!(page.contains("It costs (not measured)"));
    assert!(page.contains("unpinned: an existing server"));
    assert!(report.contains("\"unpinned\": ["));
}

fn what_is_unpinned_is_not_reused_and_not_accepted(
    server: &Existing,
    project: &Project,
    url: &str,
) {
    // Kept for this server, and for no other engine.
    let status = server.run(project, &["status", "a", "--server", url]);
    assert!(status.stdout.contains("count: fresh"), "{}", status.stdout);
    let status = project.run(&["status", "a"]);
    assert!(
        status.stdout.contains("count: would run"),
        "{}",
        status.stdout
    );
    let refused = |arguments: &[&str], says: &str| {
        let ran = server.run(project, arguments);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
        assert!(!project.path("articles/a/record.json").exists());
    };
    let accept = ["accept", "a", "--server", url];
    refused(
        &[&accept[..], &["--unpinned"]].concat(),
        "was skipped on this server",
    );
    // The whole article, as far as this server lets it be measured.
    let text = project.read("articles/a/article.md");
    let whole: String = text
        .split("```sql experiment written")
        .next()
        .unwrap()
        .replace("It costs {{ written }}", "T")
        .replace(", with [12 B](claim:written) each; see [](table:counted),\n[](table:unwritten) and [](chart:drawn)", "")
        + "```sql claims c\n--| rows: {kind: exact}\nSELECT max(n) FROM measured.count;\n\
           --| fast: {unit: ms, kind: noisy, tolerance: 30%}\n\
           SELECT median(elapsed_ms) FROM measured.count;\n```\n";
    project.write("articles/a/article.md", &whole);
    let built = server.run(project, &["build", "a", "--server", url]);
    assert_eq!(built.code, 0, "{}", built.stderr);
    assert!(
        built.stderr.contains("kept: nothing it depends on changed"),
        "{}",
        built.stderr
    );
    refused(&accept, "accept --unpinned");
    let accepted = server.run(project, &[&accept[..], &["--unpinned"]].concat());
    assert_eq!(accepted.code, 0, "{}", accepted.stderr);
    assert!(!project.read("articles/a/record.json").contains(PASSWORD));
    // On the pinned Postgres its times are another machine's, and are not judged.
    let ran = project.build();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("an existing server (system"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout
            .contains("noisy: of this machine, not judged here"),
        "{}",
        ran.stdout
    );
}

#[tokio::test]
async fn a_killed_run_leaves_databases_that_the_next_one_drops() {
    let server = Existing::start("18.6").await;
    let url = server.url("managed", "postgres");
    // What only looks like ours is left alone: no comment, another's, or another run's.
    for (name, comment) in [
        ("remeasure_0123456789ab_tool", "NULL"),
        (
            "remeasure_1123456789ab_tool",
            "'remeasure run 0123456789ab: of another'",
        ),
        ("remeasure_notes", "'remeasure run 0123456789ab: notes'"),
    ] {
        server.sql(&format!("CREATE DATABASE {name} OWNER managed"));
        server.sql(&format!("COMMENT ON DATABASE {name} IS {comment}"));
    }
    let before = server.databases();
    let project = Project::new(
        "---\ntitle: T\npostgres: {version: \"18.6\"}\n---\n\n```sql experiment slow\n\
         --| instruments: [time]\n--| matrix: {k: [1, 2, 3]}\n--| measure:\n\
         SELECT pg_sleep(CASE :k WHEN 1 THEN 0 ELSE 60 END)::text AS slept;\n```\n",
    );
    // The role owns what looks like ours, which is more than its own databases.
    let build = ["build", "a", "--server", &url, "--trust"];
    let mut command = project.command(&build);
    command.env("PGPASSWORD", PASSWORD);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !server.databases().contains("_cell_1") {
        assert!(Instant::now() < deadline, "{}", server.databases());
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(50));
    }
    // A run that lives loses nothing to another one.
    let quick = Project::new(
        "---\ntitle: T\npostgres: {version: \"18.6\"}\n---\n\n```sql experiment quick\n\
         --| instruments: [time]\nSELECT 1 AS one;\n```\n",
    );
    let ran = server.run(&quick, &build);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(server.databases().contains("_cell_1"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(server.databases(), before);
    let ran = server.run(&quick, &[&build[..], &["--force"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("of a run that died"), "{}", ran.stderr);
    assert_eq!(server.databases(), before);
    // `clean` does so without a run.
    server.sql("CREATE DATABASE remeasure_2123456789ab_cell_1 OWNER managed");
    server.sql(
        "COMMENT ON DATABASE remeasure_2123456789ab_cell_1 IS 'remeasure run 2123456789ab: left'",
    );
    let ran = server.run(&quick, &["clean", "--server", &url]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let removed = "removed database remeasure_2123456789ab_cell_1";
    assert!(ran.stdout.contains(removed), "{}", ran.stdout);
    assert_eq!(server.databases(), before);
}

#[tokio::test]
async fn what_keeps_a_server_from_being_measured_on_is_told_with_what_to_do() {
    let server = Existing::start("16.15").await;
    server.sql("CREATE DATABASE closed");
    server.sql(&format!("CREATE ROLE poor LOGIN PASSWORD '{PASSWORD}'"));
    server.sql(&format!(
        "CREATE ROLE owner LOGIN CREATEDB PASSWORD '{PASSWORD}'"
    ));
    server.sql("CREATE DATABASE shop OWNER owner");
    server.sql(&format!(
        "CREATE ROLE chief LOGIN SUPERUSER PASSWORD '{PASSWORD}'"
    ));
    let project =
        Project::new("```sql experiment e\n--| instruments: [time]\nSELECT 1 AS one;\n```\n");
    let managed = |rest: &str| server.url("managed", rest);
    let nowhere = format!("postgresql://managed@localhost:{}/postgres", free_port());
    let roots = server.certificate();
    for (url, says) in [
        (managed("no_such"), "has no database `no_such`"),
        (managed("closed"), "pg_hba.conf"),
        (nowhere, "cannot be reached"),
        (
            "postgresql://managed@no-such-host.invalid/postgres".to_owned(),
            "cannot be reached",
        ),
        (
            server.url("poor", "postgres"),
            "hint: ALTER ROLE poor CREATEDB",
        ),
        (server.url("chief", "postgres"), "it is a superuser"),
        (server.url("owner", "postgres"), "it may drop shop"),
        (
            managed("postgres?sslmode=verify-full"),
            "no root certificate",
        ),
        (
            managed("postgres?sslmode=verify-ca&sslrootcert=/nowhere"),
            "cannot read the certificates",
        ),
        (
            format!(
                "postgresql://managed@127.0.0.1:{}/postgres?sslmode=verify-full&sslrootcert={roots}",
                server.port
            ),
            "not valid for name",
        ),
    ] {
        let ran = server.run(&project, &["build", "a", "--server", &url]);
        assert_eq!(ran.code, 4, "{url}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{url}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("hint: ") || says.contains("cannot "),
            "{}",
            ran.stderr
        );
    }
    // Passwords: none, a wrong one, one in the URL.
    let with = |variable: Option<&str>, url: &str| {
        let mut command = project.command(&["build", "a", "--server", url]);
        command
            .env_remove("PGPASSWORD")
            .env("HOME", project.path("home"));
        if let Some(password) = variable {
            command.env("PGPASSWORD", password);
        }
        Ran::from(command.output().unwrap())
    };
    let url = managed("postgres");
    for (password, says) in [(None, "~/.pgpass"), (Some("wr0ng"), "is it this role's?")] {
        let ran = with(password, &url);
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        assert!(
            ran.stderr.contains(says) && !ran.stderr.contains("wr0ng"),
            "{}",
            ran.stderr
        );
    }
    let told = format!(
        "postgresql://managed:{PASSWORD}@localhost:{}/postgres",
        server.port
    );
    let ran = with(None, &told);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("process lists of this machine"),
        "{}",
        ran.stderr
    );
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(PASSWORD));
    assert!(!project.read("out/a/record.json").contains(PASSWORD));
    // A superuser when that is asked for; the article's SQL is then a superuser's.
    let chief = server.url("chief", "postgres");
    let ran = server.run(
        &project,
        &["build", "a", "--server", &chief, "--trust", "--force"],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for wrong in [
        ["build", "a", "--engine", "docker", "--server", &url],
        ["build", "a", "--engine", "embedded", "--server", &url],
    ] {
        let ran = server.run(&project, &wrong);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("takes no `--server`"), "{}", ran.stderr);
    }
}

#[tokio::test]
async fn a_server_is_verified_as_far_as_its_url_asks() {
    let server = Existing::start("16.15").await;
    // Only encrypted connections, so that none goes without by chance.
    let data = server.folder.path().join("data");
    let rules = "local all postgres trust\nhostssl all all all scram-sha-256\n";
    fs::write(data.join("pg_hba.conf"), rules).unwrap();
    server.sql("SELECT pg_reload_conf()");
    let other = tempfile::tempdir().unwrap();
    certificate(other.path());
    let other = other.path().join("server.crt").display().to_string();
    let own = server.certificate();
    let project = Project::new(
        "```sql experiment e\n--| instruments: [time]\n\
         SELECT ssl::text AS ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid();\n```\n",
    );
    let port = server.port;
    for (host, parameters, code) in [
        ("localhost", "sslmode=prefer".to_owned(), 0),
        (
            "localhost",
            "sslmode=require&channel_binding=require".to_owned(),
            0,
        ),
        ("127.0.0.1", "sslmode=require".to_owned(), 0),
        (
            "127.0.0.1",
            format!("sslmode=verify-ca&sslrootcert={own}"),
            0,
        ),
        (
            "localhost",
            format!("sslmode=verify-full&sslrootcert={own}"),
            0,
        ),
        (
            "localhost",
            format!("sslmode=verify-ca&sslrootcert={other}"),
            4,
        ),
        (
            "localhost",
            format!("sslmode=require&sslrootcert={other}"),
            4,
        ),
        (
            "127.0.0.1",
            format!("sslmode=verify-full&sslrootcert={own}"),
            4,
        ),
        ("localhost", "sslmode=disable".to_owned(), 4),
    ] {
        let url = format!("postgresql://managed@{host}:{port}/postgres?{parameters}");
        let ran = server.run(&project, &["build", "a", "--server", &url, "--force"]);
        assert_eq!(ran.code, code, "{url}: {}", ran.stderr);
        if code == 0 {
            assert_eq!(measured(&project.record(), "e", "ssl"), ["true"]);
        }
    }
}

#[tokio::test]
async fn a_server_of_another_version_is_measured_when_that_is_asked_for_and_says_so() {
    let server = Existing::start("18.6").await;
    let url = server.url("managed", "postgres");
    let project =
        Project::new("```sql experiment e\n--| instruments: [time]\nSELECT 1 AS one;\n```\n");
    let build = ["build", "a", "--server", &url];
    let ran = server.run(&project, &build);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the article is about 16.15"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("--any-version"), "{}", ran.stderr);
    let ran = server.run(&project, &[&build[..], &["--any-version"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.record().environment.server.version, "18.6");
    let says = "Its version differs: the article is about 16.15, every figure here is of 18.6.";
    assert!(project.read("out/a/index.html").contains(says));
    assert!(
        ran.stdout.replace("\n  ", " ").contains(says),
        "{}",
        ran.stdout
    );
    let accept = [
        "accept",
        "a",
        "--server",
        &url,
        "--any-version",
        "--unpinned",
    ];
    let ran = server.run(&project, &accept);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("not the article's 16.15"),
        "{}",
        ran.stderr
    );
    assert!(!project.path("articles/a/record.json").exists());
}

#[tokio::test]
async fn what_the_owner_grants_is_measured_the_next_time() {
    let server = Existing::start("16.15").await;
    let url = server.url("managed", "postgres");
    let project = Project::new(
        "```sql experiment e\n--| setup:\nCREATE TABLE t (a int);\nCHECKPOINT;\n--| measure:\n\
         INSERT INTO t VALUES (1);\n```\n",
    );
    let build = ["build", "a", "--server", &url];
    let ran = server.run(&project, &build);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("e: skipped: instrument `wal`"),
        "{}",
        ran.stderr
    );
    server.sql("GRANT pg_checkpoint, pg_monitor TO managed");
    let in_every_new_database = Command::new(server.programs.join("psql"))
        .args(["-X", "-q", "-U", "postgres", "-d", "template1"])
        .args(["-p", &server.port.to_string(), "-h"])
        .arg(server.folder.path())
        .args(["-c", "CREATE EXTENSION pg_walinspect"])
        .args([
            "-c",
            "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO managed",
        ])
        .status()
        .unwrap();
    assert!(in_every_new_database.success());
    let ran = server.run(&project, &build);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("tried again"), "{}", ran.stderr);
    let record = project.record();
    assert!(record.skipped.is_empty(), "{:?}", record.skipped);
    assert_ne!(measured(&record, "e", "wal_bytes"), ["0"]);
}

#[tokio::test]
async fn a_fixture_that_cannot_be_copied_is_built_again() {
    let server = Existing::start("16.15").await;
    let url = server.url("managed", "postgres");
    let project = Project::new(
        "```sql fixture base\nCREATE TABLE base AS SELECT g AS a FROM generate_series(1, 10) g;\n```\n\
         ```sql fixture src\n--| from: base\nINSERT INTO base SELECT a + 10 FROM base;\n```\n\
         ```sql experiment e\n--| fixture: src\n--| instruments: [time]\n\
         SELECT count(*) AS n, sum(a) AS total FROM base;\n```\n",
    );
    let mut command = project.command(&["build", "a", "--server", &url]);
    command
        .env("PGPASSWORD", PASSWORD)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // What watches over the server, and is the owner's, stays connected to what is to be copied.
    let of_fixture = "SELECT datname FROM pg_database WHERE datname LIKE '%_fixture_src'";
    let deadline = Instant::now() + Duration::from_secs(120);
    let database = loop {
        let name = server.sql(of_fixture);
        if !name.is_empty() {
            break name;
        }
        assert!(Instant::now() < deadline);
        assert!(child.try_wait().unwrap().is_none());
    };
    let mut watching = Command::new(server.programs.join("psql"))
        .args(["-X", "-U", "postgres", "-d", &database])
        .args([
            "-p",
            &server.port.to_string(),
            "-c",
            "SELECT pg_sleep(600)",
            "-h",
        ])
        .arg(server.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let copied = format!(
        "SELECT count(*) FROM pg_database WHERE datname = '{}'",
        database.replace("fixture_src", "cell_0")
    );
    while server.sql(&copied) == "0" && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline + Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(20));
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
    server.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep'");
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(measured(&project.record(), "e", "n"), ["20"]);
    assert_eq!(measured(&project.record(), "e", "total"), ["210"]);
    assert!(!server.databases().contains("remeasure"));
}

const TOGETHER: &str = "---
title: T
postgres: {version: \"16.15\"}
---

```sql experiment blocked
--| instruments: [time]
--| setup:
CREATE TABLE t AS SELECT 1 AS a;
--| measure: {in: blocker}
BEGIN;
LOCK TABLE t;
--| measure: {in: blocker, background: true, wait_until: \"EXISTS (SELECT FROM pg_locks WHERE pid = :subject_pid AND NOT granted)\"}
COMMIT;
--| measure:
UPDATE t SET a = a + 1;
--| sample: {every: 5ms, as: waits}
SELECT count(*) AS n FROM pg_locks WHERE NOT granted;
--| collect:
SELECT a FROM t;
```

```sql experiment cells
--| instruments: [time]
--| matrix: {memory: [5MB, 7MB]}
--| settings: {work_mem: \":memory\"}
SELECT current_setting('work_mem') AS work_mem;
```

```sql experiment kept
--| instruments: [time]
--| fresh: never
--| matrix: {memory: [5MB, 7MB]}
--| settings: {work_mem: \":memory\"}
SELECT current_setting('work_mem') AS work_mem;
```

```sql experiment loaded
--| instruments: [time]
--| measure: {via: pgbench, args: \"-t 1\"}
SELECT 1;
```
";

#[tokio::test]
async fn sessions_and_settings_of_cells_work_on_an_existing_server_and_programs_are_skipped() {
    let server = Existing::start("16.15").await;
    let url = server.url("managed", "postgres");
    let before = server.databases();
    let project = Project::new(TOGETHER);
    let ran = server.run(&project, &["build", "a", "--server", &url]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(server.databases(), before);
    let record = project.record();
    assert_eq!(measured(&record, "blocked", "a"), ["2"]);
    assert_eq!(measured(&record, "cells", "work_mem"), ["5MB", "7MB"]);
    let why = |id: &str| record.skipped_because("experiment", id).unwrap();
    assert!(
        why("loaded").starts_with("pgbench is that of"),
        "{}",
        why("loaded")
    );
    assert!(why("kept").contains("`fresh: never`"), "{}", why("kept"));

    let several = TOGETHER.replace("version: \"16.15\"", "versions: [\"16.15\", \"18.6\"]");
    let project = Project::new(&several);
    let ran = server.run(&project, &["build", "a", "--server", &url]);
    assert_eq!(ran.code, 2, "{}\n{}", ran.stdout, ran.stderr);
    let told = "an existing server is of one version";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert_eq!(server.databases(), before);
}
