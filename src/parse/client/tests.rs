use crate::article::{Article, Client, RepeatTransaction};
use crate::parse::KnownInstrument;
use crate::parse::{Known, parse};
use crate::source::Source;
use std::path::Path;

const HEAD: &str =
    "---\ntitle: T\npostgres: {version: \"16.15\"}\nparams: {rows: 5, clients: 2}\n---\n\n";

fn read(block: &str, folder: &Path) -> Result<Article, Vec<String>> {
    let text = format!("{HEAD}```sql experiment e\n{block}\n```\n");
    let source = Source::new("a.md", "a.md", text);
    let known = Known {
        versions: &["16.15".to_owned()],
        instruments: &[
            KnownInstrument::plain("time"),
            KnownInstrument::plain("wal"),
        ],
        charts: &[],
        lint_rules: &[],
    };
    parse(&source, "a", folder, &known).map_err(|problems| {
        let told = problems.iter().map(|problem| {
            let place = problem
                .place
                .as_ref()
                .map_or("", |place| place.source.slice(place.span));
            let hint = problem.hint.clone().unwrap_or_default();
            assert!(!hint.is_empty(), "{}", problem.message);
            format!("{place} | {}", problem.message)
        });
        told.collect()
    })
}

fn problems(block: &str) -> Vec<String> {
    read(block, Path::new("/nowhere")).err().unwrap_or_default()
}

fn measure(options: &str, sql: &str) -> Vec<String> {
    problems(&format!("--| measure: {{{options}}}\n{sql}"))
}

#[test]
fn what_psql_may_be_told_is_read_and_the_rest_refused_at_its_place() {
    for (sql, expected) in [
        ("SELECT 1;", ""),
        (
            "\\copy t FROM 'rows.csv'\n\\copy (SELECT a FROM t) TO data/x.csv WITH (FORMAT csv)",
            "",
        ),
        (
            "\\copy t (a, b) from 'rows.csv' with (delimiter E'\\t')",
            "",
        ),
        (
            "\\timing on\nSELECT 1 \\g\nSELECT 2 \\gexec\nSELECT 3 AS x \\gset p_\nSELECT :'p_x';",
            "",
        ),
        (
            "\\set n 5\nSELECT :n, :rows;\n\\if :n\n\\echo yes\n\\endif",
            "",
        ),
        ("COPY t FROM stdin;\n1\t\\N\n\\.\nSELECT 1;", ""),
        ("SELECT E'a\\nb', '\\d+', '\\s+', $$\\w$$ \\; SELECT 2;", ""),
        ("SELECT :nope;", ":nope | unknown variable `:nope`"),
        (
            "\\! id",
            "\\! | `\\!` is refused: an article runs no programs",
        ),
        (
            "\\c - postgres",
            "\\c | `\\c` is refused: an article has the connection that it is given",
        ),
        ("\\connect x", "\\connect | `\\connect` is refused"),
        ("\\o |id", "\\o | `\\o` is refused"),
        ("\\o /etc/x", "\\o | `\\o` is refused"),
        ("\\w x", "\\w | `\\w` is refused"),
        ("\\cd /", "\\cd | `\\cd` is refused"),
        ("\\setenv PATH x", "\\setenv | `\\setenv` is refused"),
        (
            "\\lo_import '/etc/passwd'",
            "\\lo_import | `\\lo_import` is refused",
        ),
        ("\\e", "\\e | `\\e` is refused: an article runs no programs"),
        ("\\q", "\\q | `\\q` is refused"),
        (
            "\\dt",
            "\\dt | `\\dt` is no command that psql is given here",
        ),
        ("\\timeing", "\\timeing | `\\timeing` is no command"),
        (
            "SELECT 1 \\g |id",
            "|id | `\\g` takes nothing behind it here",
        ),
        (
            "SELECT 1 \\g x.txt",
            "x.txt | `\\g` takes nothing behind it here",
        ),
        ("\\echo `id`", "` | this would be a program"),
        ("\\set x `id`", "` | this would be a program"),
        (
            "\\echo a \\! id",
            "\\ | this would be a second command on the line",
        ),
        (
            "\\copy (SELECT a::int, :rows FROM t) TO 'x'",
            ":rows | psql fills no variables in",
        ),
        (
            "\\copy t FROM program 'id'",
            "program | `\\copy … program` is refused",
        ),
        (
            "\\copy t from PROGRAM 'id'",
            "PROGRAM | `\\copy … program` is refused",
        ),
        (
            "\\copy (select $$) $$) to program 'id'",
            "program | `\\copy … program` is refused",
        ),
        (
            "\\copy t FROM '/etc/passwd'",
            "'/etc/passwd | `/etc/passwd` is no file of the run's folder",
        ),
        (
            "\\copy t FROM /etc/passwd",
            "/etc/passwd | `/etc/passwd` is no file",
        ),
        ("\\copy t TO '../x'", "'../x | `../x` is no file"),
        (
            "\\copy t TO 'a/../../x'",
            "'a/../../x | `a/../../x` is no file",
        ),
        ("\\copy t FROM '~/x'", "'~/x | `~/x` is no file"),
        (
            "\\i /etc/passwd",
            "/etc/passwd | `/etc/passwd` is no file of the article's folder",
        ),
        ("\\i ../x.sql", "../x.sql | `../x.sql` is no file"),
        ("\\i :rows", ":rows | `:rows` is no file"),
        (
            "\\i .remeasure/measure.sql",
            ".remeasure/measure.sql | `.remeasure/measure.sql` is no file",
        ),
        ("\\i x.sql", "x.sql | cannot read `x.sql`"),
        // Where it stands is up to psql: a statement can change how a backslash is read.
        (
            "SET standard_conforming_strings = off; SELECT 'a\\'' ; \\! id '",
            "\\! | `\\!` may not stand here",
        ),
        (
            "SELECT ' \\c - postgres ';",
            "\\c | `\\c` may not stand here",
        ),
        ("-- \\! id", "\\! | `\\!` may not stand here"),
        (
            "SELECT $$ \\copy t from 'x' $$;",
            "\\copy | `\\copy` may not stand here",
        ),
        (
            "COPY t FROM stdin;\n\\! id\n\\.",
            "\\! | `\\!` may not stand here",
        ),
        (
            "SELECT ' \\echo `id` ';",
            "\\echo | `\\echo` may not stand here",
        ),
        // A value that is read again as if it stood in the script.
        (
            "SELECT E'\\\\! id' AS x \\gset\n:x",
            ":x | `:x` cannot be filled in as it is",
        ),
        (
            "SELECT * FROM t \\gset\nSELECT ':rows';",
            ":rows | `:rows` cannot be filled in as it is",
        ),
        (
            "SELECT 1 AS U&\"ro\\0077s\" \\gset\nSELECT :rows;",
            ":rows | `:rows` cannot be filled in as it is",
        ),
        (
            "SELECT 1 AS a \\gset\n\\set b :a\nSELECT :b;",
            ":b | `:b` cannot be filled in as it is",
        ),
        (
            "SELECT 1 AS a \\gset\nSELECT x::a, :::a;",
            ":a | `:a` cannot be filled in as it is",
        ),
        (
            "\\set ON_ERROR_STOP off",
            "ON_ERROR_STOP | `ON_ERROR_STOP` is the tool's to set",
        ),
        (
            "\\set a-b 1",
            "a-b | `a-b` cannot be the name of a variable",
        ),
        ("SELECT 'x", "' | unterminated string"),
        ("\\gset", "\\gset | `\\gset` has no statement before it"),
        ("", "measure | phase `measure` has no SQL"),
    ] {
        let found = measure("via: psql", sql);
        match expected {
            "" => assert_eq!(found, Vec::<String>::new(), "{sql}"),
            _ => assert!(
                found.iter().any(|problem| problem.starts_with(expected)),
                "{sql}: {found:?}"
            ),
        }
    }
}

#[test]
fn what_pgbench_may_be_told_is_read_and_the_rest_refused_at_its_place() {
    for (args, sql, expected) in [
        ("-S -T 2 -c 8 -j 8 -R 5000 -P 1 -r -L 10", "", ""),
        ("-Sn -c8 --jobs=2 -t10", "", ""),
        ("-c :clients --time=:rows", "", ""),
        (
            "-t 10 -M prepared -D x=5",
            "\\set id random(1, :rows)\nSELECT :id, :x, '10:30';",
            "",
        ),
        ("-b select-only@2 -b simple-update@1 -t 5", "", ""),
        ("-t 10 -T 2", "", "-T | `-t` and `-T` both say when to end"),
        ("-c 0", "", "0 | `0` cannot be the value of `-c`"),
        ("-c", "", "-c | `-c` has no value"),
        ("-c 1 -c 2", "", "-c | `-c` comes twice"),
        ("-c :nope", "", ":nope | unknown variable `:nope`"),
        ("-R fast", "", "fast | `fast` cannot be the value of `-R`"),
        (
            "-M binary",
            "",
            "binary | `binary` cannot be the value of `-M`",
        ),
        ("-h localhost", "", "-h | `-h` cannot be given here"),
        ("-U postgres", "", "-U | `-U` cannot be given here"),
        ("-Upostgres", "", "-Upostgres | `-U` cannot be given here"),
        ("-d x", "", "-d | `-d` cannot be given here"),
        ("-f /etc/passwd", "", "-f | `-f` cannot be given here"),
        ("--file=x", "", "--file=x | `--file` cannot be given here"),
        (
            "--log-prefix=/tmp/x",
            "",
            "--log-prefix=/tmp/x | `--log-prefix` cannot be given here",
        ),
        ("-l", "", "-l | `-l` cannot be given here"),
        (
            "--no-such",
            "",
            "--no-such | pgbench has no option `--no-such`",
        ),
        ("postgres", "", "postgres | `postgres` is no option"),
        ("-i -s 10", "", "\"-i -s 10\" | `-i` makes pgbench's tables"),
        ("-F 50", "", "-F | `-F` is an option of `-i` only"),
        ("-S", "SELECT 1;", "-S | `-S` is a script of pgbench's own"),
        ("-t 1", "SELECT :nope;", ":nope | unknown variable `:nope`"),
        ("-t 1", "\\shell id", "\\shell | `\\shell` is refused"),
        (
            "-t 1",
            "\\setshell x id",
            "\\setshell | `\\setshell` is refused",
        ),
        ("-t 1", "\\SHELL id", "\\SHELL | `\\SHELL` is refused"),
        ("-t 1", "\\ shell id", "\\ shell | `\\shell` is refused"),
        (
            "-t 1",
            "SELECT '\\shell id';",
            "\\shell | `\\shell` is refused",
        ),
        (
            "-t 1",
            "\\sleeep 1 ms",
            "\\sleeep | pgbench has no command `\\sleeep`",
        ),
        (
            "-t 1",
            "\\copy t from 'x'",
            "\\copy | pgbench has no command `\\copy`",
        ),
    ] {
        let found = measure(&format!("via: pgbench, args: \"{args}\""), sql);
        match expected {
            "" => assert_eq!(found, Vec::<String>::new(), "{args} {sql}"),
            _ => assert!(
                found.iter().any(|problem| problem.starts_with(expected)),
                "{args} {sql}: {found:?}"
            ),
        }
    }
}

#[test]
fn wrong_uses_of_a_client_are_told_at_their_place() {
    for (block, expected) in [
        ("--| measure: {repeat: 10}\nSELECT 1;", ""),
        (
            "--| measure: {repeat: 200_000, transaction: one}\nSELECT :rows;",
            "",
        ),
        ("--| measure: {repeat: \":rows\"}\nSELECT 1;", ""),
        (
            "--| measure: {repeat: 0}\nSELECT 1;",
            "0 | `0` is no number of repetitions",
        ),
        (
            "--| measure: {repeat: -1}\nSELECT 1;",
            "-1 | `-1` is no number",
        ),
        (
            "--| measure: {repeat: many}\nSELECT 1;",
            "many | `many` is no number",
        ),
        (
            "--| measure: {repeat: 99999999}\nSELECT 1;",
            "99999999 | `99999999` is no number",
        ),
        (
            "--| measure: {repeat: \":nope\"}\nSELECT 1;",
            "\":nope\" | unknown variable",
        ),
        (
            "--| measure: {repeat: 5}\nSELECT 1;\nSELECT 2;",
            "SELECT 2 | a repetition is of one statement",
        ),
        (
            "--| measure: {repeat: 5}\nSELECT 'x' \\gexec",
            "SELECT 'x' | what is repeated",
        ),
        (
            "--| measure: {repeat: 5}",
            "measure | phase `measure` has no SQL",
        ),
        (
            "--| measure: {transaction: one}\nSELECT 1;",
            "one | `transaction` says how",
        ),
        (
            "--| measure: {repeat: 5, transaction: both}\nSELECT 1;",
            "both | expected one of",
        ),
        (
            "--| measure: {repeat: 5, via: psql}\nSELECT 1;",
            "5 | `repeat` is of the tool's own session",
        ),
        (
            "--| measure: {args: \"-c 1\"}\nSELECT 1;",
            "\"-c 1\" | `args` are those of a program",
        ),
        (
            "--| measure: {via: pqsl}\nSELECT 1;",
            "pqsl | no program of the server's is `pqsl`",
        ),
        ("--| measure: {via: psql, args: \"-1\"}\nSELECT 1;", ""),
        (
            "--| measure: {via: psql, args: \"-U postgres\"}\nSELECT 1;",
            "-U | psql cannot be given `-U` here",
        ),
        (
            "--| measure: {via: pgbench, args: \"-t 1\"}\n--| collect: {via: psql}\nSELECT 1;",
            "psql | `collect` asks on a session",
        ),
        (
            "--| setup: {via: pgbench, args: \"-i -s 2\"}\n--| measure: {via: pgbench, args: \"-S -t 1\"}",
            "",
        ),
        (
            "--| setup: {via: pgbench, args: \"-i -s 2\"}\nCREATE INDEX ON pgbench_accounts (bid);\n--| measure:\nSELECT 1;",
            "",
        ),
        (
            "--| setup: {via: pgbench, args: \"-i -c 2\"}\n--| measure:\nSELECT 1;",
            "-c | `-c` is no option of `-i`",
        ),
        (
            "--| setup: {repeat: 5}\nSELECT 1;\n--| measure:\nSELECT 1;",
            "5 | `setup: {repeat: …}` is not supported",
        ),
        (
            "--| expect_error: \"23505\"\n--| measure: {via: pgbench, args: \"-t 1\"}\nSELECT 1;",
            "\"23505\" | pgbench tells no SQLSTATE",
        ),
        (
            "--| timeout: 1min\n--| measure: {via: pgbench, args: \"-S -T 60\"}",
            "60 | pgbench is to run for 60 s",
        ),
        (
            "--| setup:\n--| measure:\nSELECT 1;",
            "setup | phase `setup` has no SQL",
        ),
    ] {
        let found = problems(block);
        match expected {
            "" => assert_eq!(found, Vec::<String>::new(), "{block}"),
            _ => assert!(
                found.iter().any(|problem| problem.starts_with(expected)),
                "{block}: {found:?}"
            ),
        }
    }
}

#[test]
fn clients_and_their_scripts_are_what_stands_in_the_block() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("lib")).unwrap();
    std::fs::write(
        folder.path().join("lib/a.sql"),
        "SELECT :rows;\n\\ir b.sql\n",
    )
    .unwrap();
    std::fs::write(
        folder.path().join("lib/b.sql"),
        "\\copy t FROM 'rows.csv'\n",
    )
    .unwrap();
    std::fs::write(folder.path().join("rows.csv"), "1\n").unwrap();
    let article = read(
        "--| measure: {via: psql}\n\\timing on\nSELECT 1,\n  :rows;\n\\copy t TO 'later.csv'\n\\i lib/a.sql",
        folder.path(),
    )
    .unwrap();
    let experiment = article.experiments().next().unwrap();
    let Client::Psql(script) = &experiment.measure.client else {
        panic!("{:?}", experiment.measure.client)
    };
    assert_eq!(
        script.text(),
        "          \nSELECT 1,\n  :rows;\n\\copy t TO 'later.csv'\n\\i lib/a.sql\n"
    );
    let texts: Vec<&str> = experiment
        .measure
        .script
        .statements
        .iter()
        .map(|statement| statement.text.text.as_str())
        .collect();
    assert_eq!(texts, ["SELECT 1,\n  :rows"]);
    let files: Vec<(&str, bool)> = article
        .files
        .iter()
        .map(|(name, file)| (name.as_str(), file.script.is_some()))
        .collect();
    assert_eq!(
        files,
        [
            ("lib/a.sql", true),
            ("lib/b.sql", true),
            ("rows.csv", false)
        ]
    );
    assert_eq!(article.files["lib/a.sql"].variables, ["rows"]);

    std::fs::write(folder.path().join("lib/b.sql"), "\\! id\n").unwrap();
    let told = read("--| measure: {via: psql}\n\\i lib/a.sql", folder.path()).unwrap_err();
    assert_eq!(
        told,
        ["\\! | `\\!` is refused: an article runs no programs"]
    );

    let article = read(
        "--| measure: {repeat: 7, transaction: one}\nSELECT 1;",
        folder.path(),
    );
    let article = article.unwrap();
    let experiment = article.experiments().next().unwrap();
    let Client::Repeat(repeat) = &experiment.measure.client else {
        panic!("{:?}", experiment.measure.client)
    };
    assert_eq!(repeat.times.value, "7");
    assert_eq!(repeat.transaction, RepeatTransaction::One);
}
