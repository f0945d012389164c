//! Every kind of mistake, with its place, its message and its hint.

use super::{HEAD, fenced, parse_text};

/// `place message (hint)` of every problem.
fn problems(text: &str) -> Vec<String> {
    let found = match parse_text(text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems,
    };
    found
        .iter()
        .map(|problem| {
            let place = problem.location().unwrap_or_default();
            let hint = problem.hint.as_deref().unwrap_or("no hint");
            format!(
                "{} {} ({hint})",
                place.trim_start_matches("a.md:"),
                problem.message
            )
        })
        .collect()
}

#[test]
fn mistakes_of_the_front_matter_are_told() {
    let cases: &[(&str, &[&str])] = &[
        (
            "# No front matter\n",
            &[
                "1:1 the article does not begin with its front matter (begin with a line `---`, then `title: …` and `postgres: {version: \"…\"}`, then a line `---`)",
            ],
        ),
        (
            "---\ntitle: T\n",
            &["1:1 the front matter is not closed (end it with a line `---`)"],
        ),
        (
            "---\n---\n",
            &[
                "1:1 the article has no `title` (add `title: …`)",
                "1:1 the article names no version of Postgres (add `postgres: {version: \"…\"}`; pins.yaml holds `16.15` and `18.6`)",
            ],
        ),
        (
            "---\ntitel: T\npostgres: {verison: 16.15}\ntitle: T\n---\n",
            &[
                "2:1 unknown key `titel` (did you mean `title`?)",
                "3:11 the article names no version of Postgres (add `postgres: {version: \"…\"}`; pins.yaml holds `16.15` and `18.6`)",
                "3:12 unknown key `verison` (did you mean `version`?)",
            ],
        ),
        (
            "---\ntitle: T\npostgres: {version: 16.14}\n---\n",
            &[
                "3:21 Postgres `16.14` is not pinned (did you mean `16.15`? pins.yaml holds `16.15` and `18.6`)",
            ],
        ),
        (
            "---\ntitle: [a]\ndate: 2026-02-30\ndraft: yes\nseed: 3\npostgres: {version: 18.6}\n---\n",
            &[
                "2:8 expected a text, found a list (write one text; quote it where it holds `: ` or begins with `[` or `{`)",
                "3:7 `2026-02-30` is not a date (write a date of the calendar as `YYYY-MM-DD`)",
                "4:8 expected true or false, found `yes` (write `true` or `false`)",
                "5:7 `seed` has to lie between -1 and 1, found `3` (it goes to Postgres's `setseed()`)",
            ],
        ),
        (
            "---\ntitle: T\ntitle: U\npostgres: {version: 18.6, versions: [1]}\n---\n",
            &[
                "3:1 duplicate key `title` (keep one of the two)",
                "4:21 `version` and `versions` in one article (`versions: [\"16.15\", \"18.6\"]` runs every experiment on each: keep one of the two)",
                "4:38 Postgres `1` is not pinned (did you mean `18.6`? pins.yaml holds `16.15` and `18.6`)",
            ],
        ),
        (
            "---\ntitle: T\npostgres: {version: 18.6, platform: arm64}\n---\n",
            &[
                "3:37 `arm64` is no platform of an image (write it as `linux/amd64` or `linux/arm64`)",
            ],
        ),
        (
            "---\ntitle: T\npostgres: {version: 18.6, platform: linux/arm64/V8}\n---\n",
            &[
                "3:37 `linux/arm64/V8` is no platform of an image (write it as `linux/amd64` or `linux/arm64`)",
            ],
        ),
        (
            "---\ntitle: {{ x }} y\npostgres: {version: 18.6}\n---\n",
            &["2:9 a key has to be a word (quote a text that holds `{{ … }}`: `\"{{ … }}\"`)"],
        ),
        (
            "---\ntitle: T\npostgres: {version: 18.6}\nparams: {a: [1], b: 010, c: .inf, 1x: 2}\n---\n",
            &[
                "4:13 expected a number, a text, true or false, found a list (write one value)",
                "4:21 `010` may be an octal number or a decimal one (leave out the leading zero, or quote it to have a text)",
                "4:29 expected a number, a text, true or false, found `.inf` (quote it to have a text)",
                "4:35 `1x` cannot be the name of a param (a name is made of letters, digits and `_`, and begins with a letter)",
            ],
        ),
        (
            "---\ntitle: T\npostgres: {version: 18.6}\nparams: {rows: 1}\nprofiles: {quick: {row: 2, runs: none}}\nlint: {unbund: warn, unused: never}\n---\n",
            &[
                "5:20 unknown key `row` (did you mean `rows`?)",
                "5:34 expected a number, found `none` (write digits alone, without quotes or unit)",
                "6:8 unknown key `unbund` (did you mean `unbound`?)",
                "6:30 expected one of `ignore`, `warn` and `error`, found `never` (write one of `ignore`, `warn` and `error`)",
            ],
        ),
        (
            "---\ntitle: a: b\npostgres: {version: 18.6}\n---\n",
            &[
                "2:9 not valid YAML: mapping values are not allowed in this context (quote a text that holds `: `, ` #`, or begins with one of `[]{}>|*&!%@`)",
            ],
        ),
        (
            "---\ntitle: T\npostgres: {version: 18.6}\nparams: {a: &x 1, b: *x}\n---\n",
            &[
                "4:16 YAML anchors and aliases are not read (write the value out, or quote a text that begins with `&` or `*`)",
            ],
        ),
        (
            "---\ntitle: \"{{ tilte }}\"\npostgres: {version: 18.6}\ndescription: a {{ b\n---\n",
            &[
                "2:12 unknown name `tilte` (claims, params, `server` and `host` can be filled in)",
                "4:16 `{{` is not closed on its line (close it with `}}` on the same line, or write `\\{{` for the braces themselves)",
            ],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(problems(text), *expected, "{text}");
    }
}

#[test]
fn mistakes_in_blocks_are_told() {
    let e = |content: &str| fenced("experiment e", content);
    let cases: Vec<(String, Vec<&str>)> = vec![
        (
            e("--| fixtrue: src\nSELECT 1;"),
            vec!["7:5 unknown key `fixtrue` (did you mean `fixture`?)"],
        ),
        (
            e("--| fixture: src\nSELECT 1;"),
            vec!["7:14 unknown fixture `src` (write a block ` ```sql fixture … `)"],
        ),
        (
            e("--| runs: [1]\n--| warmup: x\nSELECT 1;"),
            vec![
                "7:11 expected a mapping, found a list (write a number, or `{min: 3, max: 12, until: 2%}`)",
                "8:13 expected a number, found `x` (write digits alone, without quotes or unit)",
            ],
        ),
        (
            e("--| runs: 0\nSELECT 1;"),
            vec![
                "7:11 expected a whole number of at least 1, found `0` (write a number such as `3`)",
            ],
        ),
        (
            e("--| runs: {min: 3, max: 12}\nSELECT 1;"),
            vec![
                "7:11 `runs` needs `min`, `max` and `until` (write a number, or `{min: 3, max: 12, until: 2%}`)",
            ],
        ),
        (
            e("--| runs: {min: 3, max: 2, until: 0.02}\nSELECT 1;"),
            vec!["7:35 expected a percentage, found `0.02` (write it as `2%`)"],
        ),
        (
            e("--| timeout: 10\nSELECT 1;"),
            vec![
                "7:14 expected a time above zero with its unit, found `10` (write it as `500ms`, `30s`, `10min` or `1h`)",
            ],
        ),
        (
            e("--| fresh: cells\nSELECT 1;"),
            vec![
                "7:12 expected one of `cell`, `run` and `never`, found `cells` (did you mean `cell`?)",
            ],
        ),
        (
            e("--| expect_error: unique\nSELECT 1;"),
            vec![
                "7:19 `unique` is not an SQLSTATE (it has five digits or capital letters, such as `23505` for a unique violation)",
            ],
        ),
        (
            e("--| runs: 1\nSELECT 1;\n--| runs: 2"),
            vec!["9:5 duplicate key `runs` (keep one of the two)"],
        ),
        (
            e("--| setup:\nSELECT 1;"),
            vec![
                "6:8 experiment `e` has no `measure` phase (begin the SQL that is measured with `--| measure:`)",
            ],
        ),
        (
            e("--| setup:\n--| measure:\nSELECT 1;"),
            vec![
                "7:5 phase `setup` has no SQL (the SQL of a phase stands below its line, up to the next `--|` line)",
            ],
        ),
        (
            e("SELECT 1;\n--| collect:\nSELECT 2;\n--| measure:\nSELECT 3;"),
            vec![
                "7:1 this SQL belongs to no phase (begin it with `--| measure:`, or with the phase it is)",
            ],
        ),
        (
            e("--| measure:\nSELECT 1;\n--| measure:\nSELECT 2;"),
            vec![
                "9:5 a second `measure` phase (an experiment has one of each, any number of `collect` and `sample`, and more of them with `in:` on sessions of their own)",
            ],
        ),
        (
            e("--| measure: {background: true}\nSELECT 1;"),
            vec![
                "7:14 `background` is for a session of its own (name a session for it: `{in: writer, background: true}`)",
            ],
        ),
        (
            e(
                "--| measure:\nSELECT 1;\n--| measure: {in: b, repeat: 5}\nSELECT 2;\n--| setup: {via: psql, in: a}\nSELECT 3;",
            ),
            vec![
                "9:19 what is repeated runs on the measuring session (leave `in: b` out)",
                "11:28 psql and pgbench open sessions of their own, and are waited for (leave `in: a` out)",
            ],
        ),
        (
            e("--| measure: fast\nSELECT 1;"),
            vec![
                "7:14 expected a mapping, found `fast` (write `measure:` alone, or options as in `measure: {in: blocker}`)",
            ],
        ),
        (
            e("--| measure:\nSELECT 1;\n--| sample:\nSELECT 2;"),
            vec![
                "9:5 `sample` says neither how often it is asked nor what its table is called (write `sample: {every: 100ms, as: waits}`)",
            ],
        ),
        (
            e("--| measure:\nSELECT 1;\n--| sample: {every: 100ms, in: x}\nSELECT 2;"),
            vec![
                "9:13 `sample` needs both `every` and `as` (write `sample: {every: 100ms, as: waits}`)",
                "9:28 unknown key `in` (a phase has `as` and `every`)",
            ],
        ),
        (
            e("--| measure:\nSELECT 1;\n--| collect: {in: other, background: true}\nSELECT 2;"),
            vec![
                "9:26 `collect` cannot be in the background: nothing comes after it (`setup`, `warmup` and `measure` can)",
            ],
        ),
        (
            e(
                "--| setup: {background: true}\nSELECT 0;\n--| measure: {expect_error: 23505}\nSELECT 1;\n--| setup: {in: observer}\nSELECT 2;",
            ),
            vec![
                "7:12 `background` is for a session of its own (name a session for it: `{in: writer, background: true}`)",
                "9:14 `expect_error` is for a session of its own (what `measure` must raise is an option of the experiment: `--| expect_error: …`)",
                "11:5 a second `setup` phase (an experiment has one of each, any number of `collect` and `sample`, and more of them with `in:` on sessions of their own)",
                "11:17 `observer` is the session that `collect` asks on (give the session another name)",
            ],
        ),
        (
            e(
                "--| setup:\nSELECT 0;\n--| setup:\nSELECT 1;\n--| setup: {in: b}\nSELECT 2;\n--| setup:\nSELECT 3;\n--| measure:\nSELECT :b_pid, :subject_pid;",
            ),
            vec![
                "9:5 a second `setup` phase (an experiment has one of each, any number of `collect` and `sample`, and more of them with `in:` on sessions of their own)",
                "16:16 unknown variable `:subject_pid` (known here: `rows`, `name`, `b_pid`; add it under `params:` or in the experiment's `matrix:`)",
            ],
        ),
        (
            e(
                "--| order: shuffle\n--| setup: {in: w, background: true}\nSELECT 0;\n--| measure:\nSELECT 1;",
            ),
            vec![
                "8:5 this would run in the background of all cells at once (take `order: sequential`, or begin it with each run: `measure: {in: …, background: true}`)",
            ],
        ),
        (
            e("--| instruments: [tmie, cpu, {time: {a: 1}}, bogus]\nSELECT 1;"),
            vec![
                "7:19 unknown instrument `tmie` (did you mean `time`?)",
                "7:25 unknown instrument `cpu` (there are `time`, `wal`, `hot` and `tuples`)",
                "7:38 unknown option `a` of instrument `time` (`time` has no options)",
                "7:46 unknown instrument `bogus` (there are `time`, `wal`, `hot` and `tuples`)",
            ],
        ),
        (
            e("--| matrix: {run: [1], a: [1, 1.0], b: 5, c: []}\nSELECT 1;"),
            vec![
                "7:14 `run` is a column of every measured table already (give the matrix column another name)",
                "7:31 `1.0` comes twice (every value makes a cell of its own; `runs:` repeats one)",
                "7:40 expected a list, found `5` (write `{indexes: [0, 1, 2]}`)",
                "7:46 `c` has no value, so there is nothing to run (write `{indexes: [0, 1, 2]}`)",
            ],
        ),
        (
            e("--| cases: [{a: 1}, {b: 2}]\nSELECT :a;"),
            vec!["7:21 every case names `a` (give all of them the same names)"],
        ),
        (
            e("--| matrix: {a: [1]}\n--| cases: [{a: 1}]\nSELECT 1;"),
            vec![
                "8:5 `matrix` and `cases` in one experiment (`cases` lists what `matrix` combines: keep one of the two)",
            ],
        ),
        (
            e("--| runs: 2\n  --| fresh: run\nSELECT 1;"),
            vec![
                "8:3 `--|` is not at the beginning of its line (move it to the beginning of the line)",
            ],
        ),
        (
            e("SELECT :rwos, :rows;"),
            vec!["7:8 unknown variable `:rwos` (did you mean `rows`?)"],
        ),
        (
            e("SELECT 1 AS x \\gset p_\nSELECT :p_x, :q_x;"),
            vec!["8:14 unknown variable `:q_x` (did you mean `p_x`?)"],
        ),
        (
            e("--| derive: {a: :nope}\n--| settings: {work_mem: :nope}\nSELECT 1;"),
            vec![
                "7:17 unknown variable `:nope` (did you mean `name`?)",
                "8:26 unknown variable `:nope` (did you mean `name`?)",
            ],
        ),
        (
            e(
                "--| matrix: {k: [1, 2]}\n--| derive: {a: :k + 1}\n--| settings: {work_mem: \":k\"}\n--| session: {work_mem: \":k\"}\n--| order: shuffle\nSELECT 1;",
            ),
            vec![
                "8:17 `:k` has another value in each cell (a column is named without the colon)",
                "9:26 `:k` has another value in each cell (the server's settings change from cell to cell only with `order: sequential`; those of a session stand under `session:`)",
            ],
        ),
        (
            format!(
                "{}{}{}",
                fenced(&format!("fixture {}", "f".repeat(56)), "SELECT 1;"),
                fenced(&format!("experiment {}", "e".repeat(53)), "SELECT 1;"),
                fenced(
                    &format!("experiment {}", "e".repeat(52)),
                    &format!("--| matrix: {{{}: [1]}}\nSELECT 1;", "k".repeat(64))
                ),
            ),
            vec![
                "6:16 `fixture_ffffffffffffffffffffffffffffffffffffffffffffffffffffffff` is too long: a name in Postgres has 63 bytes at most (give it a shorter name)",
                "9:19 `eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee_statements` is too long: a name in Postgres has 63 bytes at most (give it a shorter name)",
                "13:14 `kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk` is too long: a name in Postgres has 63 bytes at most (give it a shorter name)",
            ],
        ),
        (
            e("SELECT 'x;"),
            vec!["7:8 unterminated string (close it with `'`)"],
        ),
        (
            e("SELECT 1;\n\\timing"),
            vec![
                "8:1 unknown backslash command `\\timing` (time is measured without it; `\\gexec` and `\\gset [prefix]` are the ones there are)",
            ],
        ),
        (
            e(""),
            vec!["6:8 experiment `e` has no SQL (write it below the `--|` lines)"],
        ),
        (
            fenced("fixture a", "--| from: b\nSELECT 1;")
                + &fenced("fixture b", "--| from: a\nSELECT 1;"),
            vec![
                "7:11 fixtures build on one another in a circle: `a` and `b` (take one `from:` out)",
            ],
        ),
        (
            fenced("fixture a", "SELECT 1;") + &fenced("fixture a", "SELECT 1;"),
            vec!["9:16 duplicate id `a` (ids are unique in an article; give this block another)"],
        ),
        (
            fenced("experimnt x", "SELECT 1;"),
            vec!["6:8 unknown role `experimnt` (did you mean `experiment`?)"],
        ),
        (
            fenced("fixture", "SELECT 1;"),
            vec!["6:4 a `fixture` block needs an id (write ` ```sql fixture some_name `)"],
        ),
        (
            fenced("fixture A-b", "SELECT 1;"),
            vec![
                "6:16 `A-b` cannot be an id (an id is made of lower-case letters, digits and `_`, and begins with a letter)",
            ],
        ),
        (
            fenced("fixture a runs=2", "SELECT 1;"),
            vec![
                "6:18 `runs=2` behind the block's id (options stand inside the block, in lines that begin with `--|`)",
            ],
        ),
        (
            "```sql fixture a\nSELECT 1;\n".to_owned(),
            vec!["6:1 the block is not closed (end it with a line of ```)"],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(problems(&format!("{HEAD}{text}")), expected, "{text}");
    }
}

#[test]
fn mistakes_in_claims_tables_and_charts_are_told() {
    let experiment = fenced(
        "experiment e",
        "--| measure:\nSELECT 1;\n--| collect: {as: w}\nSELECT 2;",
    );
    let cases: Vec<(String, Vec<&str>)> = vec![
        (
            fenced("claims c", "--| a: {knid: exact, kind: exakt}\nSELECT 1;"),
            vec![
                "13:9 unknown key `knid` (did you mean `kind`?)",
                "13:28 expected one of `exact`, `bounded` and `noisy`, found `exakt` (did you mean `exact`?)",
            ],
        ),
        (
            fenced("claims c", "--| a: {tolerance: about}\nSELECT 1;"),
            vec![
                "13:20 expected a tolerance, found `about` (write `1%`, `0.5`, `[70, 80]`, `>= 3` or `<= 10`)",
            ],
        ),
        (
            fenced("claims c", "--| a: {tolerance: [2, 1]}\nSELECT 1;"),
            vec!["13:21 the range ends below its beginning (exchange the two numbers)"],
        ),
        (
            fenced("claims c", "--| a: {}\n--| b: {}\nSELECT 1;"),
            vec![
                "13:5 claim `a` has no query (the query of a claim stands below its line, up to the next `--|` line)",
            ],
        ),
        (
            fenced("claims c", "--| a: {}\nSELECT 1; SELECT 2;"),
            vec!["14:11 claim `a` has more than one statement (a figure comes from one query)"],
        ),
        (
            fenced("claims c", "--| a: {}\n-- none"),
            vec!["13:5 claim `a` has no query (write one `SELECT` below it)"],
        ),
        (
            fenced("claims c", "--| a: {}\nSELECT 1 AS x \\gset"),
            vec![
                "14:1 the query of claim `a` ends in a backslash command (`\\gexec` and `\\gset` are for fixtures and experiments)",
            ],
        ),
        (
            fenced("claims c", "SELECT 1;\n--| a: {}\nSELECT 1;"),
            vec![
                "13:1 this query belongs to no claim (name the claim above it: `--| name: {unit: B, kind: bounded}`)",
            ],
        ),
        (
            fenced("claims c", "--| a: {}\nSELECT 1;\n--| a: {}\nSELECT 2;"),
            vec![
                "15:5 duplicate claim `a` (claim names are unique in an article; give this one another)",
            ],
        ),
        (
            fenced("claims c", "--| rows: {}\nSELECT 1;"),
            vec![
                "13:5 claim `rows` has the name of a param (`{{ rows }}` could be either; give the claim another name)",
            ],
        ),
        (
            fenced("claims c", "--| a: {profile: quik}\nSELECT 1;"),
            vec!["13:18 unknown profile `quik` (there is `full`)"],
        ),
        (
            fenced(
                "claims c",
                "--| a: {}\nSELECT 1 FROM measured.e, measured.e_w, measured.e_wal, measured.e_statements, measured.ee;",
            ),
            vec!["14:89 no experiment gives `measured.ee` (did you mean `e`?)"],
        ),
        (
            fenced(
                "claims c",
                "--| a: {}\nSELECT 1 FROM measured.zzzz WHERE x = :indexes;",
            ),
            vec![
                "14:24 no experiment gives `measured.zzzz` (experiments are `e`; `collect: {as: name}` gives `measured.<experiment>_name`)",
                "14:39 unknown variable `:indexes` (known here: `rows`, `name`; add it under `params:` or in the experiment's `matrix:`)",
            ],
        ),
        (
            fenced("table t", "--| captoin: x\nSELECT 1;"),
            vec!["13:5 unknown key `captoin` (did you mean `caption`?)"],
        ),
        (
            fenced("table t", "--| columns: {a: {lable: x}}\nSELECT 1;"),
            vec!["13:19 unknown key `lable` (did you mean `label`?)"],
        ),
        (
            fenced("chart c", "--| type: bar\nSELECT 1;"),
            vec![
                "12:8 chart `c` has no `x` (name the query's column that goes along the horizontal axis)",
                "12:8 chart `c` has no `y` (name the query's column, or a list of them, that is drawn)",
                "12:8 chart `c` has no `alt` (say in words what the picture shows: it is read out to whoever cannot see it)",
            ],
        ),
        (
            fenced(
                "chart c",
                "--| {type: pie, x: a, y: b, alt: x, caption: x, log: z, error: [a]}\nSELECT 1;",
            ),
            vec![
                "13:12 unknown chart type `pie` (there are `bar`, `line` and `scatter`)",
                "13:34 `alt` says the same as `caption` (let `alt` say what the picture shows, for whoever cannot see it)",
                "13:54 expected one of `x` and `y`, found `z` (write one of `x` and `y`)",
                "13:64 expected two columns, found 1 (write `error: [low, high]`, the columns of the bar's two ends)",
            ],
        ),
        (
            fenced(
                "chart c",
                "--| {type: heatmap, x: a, y: [], alt: x}\nSELECT 1;",
            ),
            vec![
                "13:12 chart type `heatmap` is not supported yet by this version (leave it out for now)",
                "13:30 `y` names no column (name at least one, or write it without brackets)",
            ],
        ),
        (
            fenced("experiment e_w", "SELECT 1;"),
            vec![
                "12:19 `measured.e_w` would be two tables (another experiment, a `collect` or an instrument gives a table of that name already; rename one)",
            ],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(
            problems(&format!("{HEAD}{experiment}{text}")),
            expected,
            "{text}"
        );
    }
}

#[test]
fn mistakes_in_prose_are_told() {
    let claims = fenced("claims c", "--| index_wal: {}\nSELECT 1;");
    let cases: &[(&str, &[&str])] = &[
        (
            "[76](claim:index_wall)",
            &["11:12 unknown claim `index_wall` (did you mean `index_wal`?)"],
        ),
        (
            "[76](claim: index_wal) and [1](chart: x)",
            &[
                "11:6 this is not a link to Markdown (write the destination without spaces, `(claim:index_wal)`, right behind `[…]`)",
                "11:32 this is not a link to Markdown (write the destination without spaces, `(chart:x)`, right behind `[…]`)",
            ],
        ),
        (
            "[76][claim:index_wal]",
            &[
                "11:1 `claim:index_wal` is not defined (write the destination in parentheses: `[…](claim:index_wal)`)",
            ],
        ),
        (
            "| a |\n|---|\n| [1|2](claim:index_wal) |",
            &[
                "13:9 this is not a link to Markdown (its brackets do not match; in a table a `|` ends the cell, so write `\\|`)",
            ],
        ),
        (
            "[76][index_wal] and [index_wal] and [a][b]",
            &[
                "11:1 `index_wal` is not defined (write the destination in parentheses: `[…](claim:index_wal)`)",
            ],
        ),
        (
            "[](claim:index_wal) <claim:index_wal>",
            &[
                "11:1 a quote without a text (write what is claimed, `[76 bytes](claim:index_wal)`, or have it filled in, `{{ index_wal }}`)",
                "11:21 a quote without a text (write what is claimed, `[76 bytes](claim:index_wal)`, or have it filled in, `{{ index_wal }}`)",
            ],
        ),
        (
            "[{{ index_wal }} B](claim:index_wal)",
            &[
                "11:2 a quote's text cannot be filled in (write the number itself, or leave out the link: `{{ index_wal }}`)",
            ],
        ),
        (
            "![76](claim:index_wal)",
            &["11:1 an image cannot show `claim:index_wal` (take out the `!` before the bracket)"],
        ),
        (
            "[](chart:c) [](table:nope) [](experiment:nope)",
            &[
                "11:10 unknown chart `c` (write a block ` ```sql chart … `)",
                "11:22 unknown table `nope` (write a block ` ```sql table … `)",
                "11:42 unknown experiment `nope` (write a block ` ```sql experiment … `)",
            ],
        ),
        (
            "[1](cite:source) [2](cite:sauce)",
            &[
                "11:10 the front matter names no `source` that could be cited (add `source: {title: …, url: …, author: …, date: …}`)",
                "11:27 unknown citation `sauce` (`cite:source` is the one there is: the `source:` of the front matter)",
            ],
        ),
        (
            "{{ index_val | fixed(n=1) }} {{ rows + nope.x }}",
            &[
                "11:4 unknown name `index_val` (did you mean `index_wal`?)",
                "11:40 unknown name `nope` (did you mean `name`?)",
            ],
        ),
        (
            "a {{ index_wal",
            &[
                "11:3 `{{` is not closed on its line (close it with `}}` on the same line, or write `\\{{` for the braces themselves)",
            ],
        ),
        (
            "a {{ }} b",
            &[
                "11:3 nothing to fill in (name a claim or a param between the braces, or write `\\{{` for the braces themselves)",
            ],
        ),
        (
            "[a](https://example.org/{{ rows }}) {{ rows }}",
            &[
                "11:25 nothing can be filled in here (values go into text, headings, link texts and alt texts, not into a link's destination)",
            ],
        ),
        (
            "a <b title=\"{{ rows }}\">x</b>",
            &["11:13 nothing can be filled in inside raw HTML (write this part in Markdown)"],
        ),
        (
            "<div>\n[76](claim:a)\n</div>\n\n<!--\n[76](claim:nope) {{ nope }}\n-->\n\na <!-- [76](claim:nope) --> `[76](claim:nope)`",
            &["12:4 nothing can be quoted inside raw HTML (write this part in Markdown)"],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(
            problems(&format!("{HEAD}\n{claims}{text}\n")),
            *expected,
            "{text}"
        );
    }
}

#[test]
fn faulty_yaml_is_told_once_and_the_rest_goes_on() {
    let text = format!(
        "{HEAD}{}{}[1](claim:b) [2](claim:c)\n",
        fenced(
            "claims c1",
            "--| a: {unit: [\nSELECT 1;\n--| b: {}\nSELECT 'x;"
        ),
        fenced("experiment e", "--| runs: {\nSELECT 1;\n--| freshh: run"),
    );
    let found = problems(&text);
    assert_eq!(
        found,
        [
            "7:15 not valid YAML: unclosed bracket `[` (quote a text that holds `: `, ` #`, or begins with one of `[]{}>|*&!%@`)",
            "10:8 unterminated string (close it with `'`)",
            "13:11 not valid YAML: unclosed bracket `{` (quote a text that holds `: `, ` #`, or begins with one of `[]{}>|*&!%@`)",
            "15:5 unknown key `freshh` (did you mean `fresh`?)",
        ]
    );
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = format!("---\ntitle: {}\n---\n", "[".repeat(100_000));
    assert_eq!(problems(&deep).len(), 1);
    let text = format!("{HEAD}{}", "> ".repeat(50_000));
    assert!(parse_text(&text).is_ok());
}
