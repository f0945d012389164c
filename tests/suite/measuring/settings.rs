//! Server settings, session settings, extensions.

use crate::project::{built, experiment, measured};

#[test]
fn settings_are_reloaded_or_restarted_read_back_and_undone() {
    let record = built(
        "
---
title: T
postgres: {version: \"16.15\", settings: {work_mem: 5MB, shared_buffers: 32MB}}
params: {memory: 7MB}
---

```sql experiment before
SELECT current_setting('work_mem') AS work_mem, current_setting('shared_buffers') AS shared_buffers,
       pg_postmaster_start_time()::text AS started, current_setting('wal_level') AS wal_level;
```

```sql experiment reloaded
--| settings: {work_mem: \":memory\", full_page_writes: off}
SELECT current_setting('work_mem') AS work_mem, current_setting('shared_buffers') AS shared_buffers,
       pg_postmaster_start_time()::text AS started, current_setting('full_page_writes') AS fpw;
```

```sql experiment between
SELECT current_setting('work_mem') AS work_mem, current_setting('full_page_writes') AS fpw,
       pg_postmaster_start_time()::text AS started;
```

```sql experiment restarted
--| settings: {shared_buffers: 16MB, wal_level: minimal, max_wal_senders: 0, work_mem: 6144kB}
SELECT current_setting('work_mem') AS work_mem, current_setting('shared_buffers') AS shared_buffers,
       pg_postmaster_start_time()::text AS started, current_setting('wal_level') AS wal_level;
```

```sql experiment after
SELECT current_setting('work_mem') AS work_mem, current_setting('shared_buffers') AS shared_buffers,
       current_setting('wal_level') AS wal_level;
```

```sql experiment session
--| session: {work_mem: 3MB, enable_seqscan: \"off\", my.own: \"of :memory\"}
--| measure:
SELECT current_setting('work_mem') AS work_mem, current_setting('enable_seqscan') AS seqscan,
       current_setting('my.own') AS own;
--| collect:
SELECT current_setting('work_mem') AS observers;
```
",
    );
    let of = |id: &str, name: &str| measured(&record, id, name).remove(0);
    assert_eq!(of("before", "work_mem"), "5MB");
    assert_eq!(of("before", "shared_buffers"), "32MB");

    assert_eq!(of("reloaded", "work_mem"), "7MB");
    assert_eq!(of("reloaded", "fpw"), "off");
    assert_eq!(of("reloaded", "started"), of("before", "started"));
    let read_back = &experiment(&record, "reloaded").settings;
    assert_eq!(read_back["work_mem"], "7MB");
    assert_eq!(read_back["full_page_writes"], "off");
    assert_eq!(of("between", "work_mem"), "5MB");
    assert_eq!(of("between", "fpw"), "on");

    assert_eq!(of("restarted", "shared_buffers"), "16MB");
    assert_eq!(of("restarted", "wal_level"), "minimal");
    assert_ne!(of("restarted", "started"), of("between", "started"));
    // What the server says, not what was asked for.
    assert_eq!(experiment(&record, "restarted").settings["work_mem"], "6MB");
    assert_eq!(of("after", "work_mem"), "5MB");
    assert_eq!(of("after", "shared_buffers"), "32MB");
    assert_eq!(of("after", "wal_level"), "replica");

    assert_eq!(of("session", "work_mem"), "3MB");
    assert_eq!(of("session", "seqscan"), "off");
    assert_eq!(of("session", "own"), "of 7MB");
    assert_eq!(of("session", "observers"), "5MB");
}

#[test]
fn extensions_are_there_and_their_versions_are_recorded() {
    let record = built(
        "
---
title: T
postgres: {version: \"18.6\", extensions: [pageinspect, hstore]}
---

```sql fixture src
CREATE TABLE src AS SELECT 1 AS a;
```

```sql experiment e
--| fixture: src
SELECT count(*) AS items, 'a=>1'::hstore AS h FROM heap_page_items(get_raw_page('src', 0));
```
",
    );
    assert_eq!(measured(&record, "e", "items"), ["1"]);
    assert_eq!(measured(&record, "e", "h"), ["\"a\"=>\"1\""]);
    let extensions = &record.environment.server.extensions;
    assert!(
        extensions["pageinspect"].starts_with("1."),
        "{extensions:?}"
    );
    assert!(extensions.contains_key("hstore"));
    assert_eq!(record.environment.server.version, "18.6");
}

#[test]
fn settings_that_an_experiment_gives_its_role_are_not_seen_by_the_next() {
    let record = built(
        "
```sql experiment first
--| setup:
ALTER ROLE CURRENT_USER SET work_mem = '64MB';
--| measure:
SELECT 1 AS one;
```

```sql experiment second
SELECT current_setting('work_mem') AS work_mem;
```
",
    );
    assert_eq!(measured(&record, "second", "work_mem"), ["4MB"]);
}
