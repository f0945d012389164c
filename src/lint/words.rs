//! The words that tell figures from other numbers, as posts about databases use them.

/// Words that number things: `Figure 1`, `step 3`, `port 5432`.
#[rustfmt::skip]
pub(super) const LABELS: &[&str] = &[
    "figure", "figures", "fig", "figs", "table", "chart", "charts", "listing", "section", "sections", "chapter",
    "chapters", "part", "step", "steps", "page", "line", "lines", "run", "round", "level", "stage", "phase", "layer",
    "appendix", "footnote", "note", "item", "question", "rule", "option", "case", "experiment", "example", "equation",
    "issue", "bug", "ticket", "commit", "patch", "port", "day", "week", "row", "column", "slot", "block", "no", "nr",
    "number", "lesson", "tip", "version", "versions", "release", "releases", "beta", "rc", "alpha", "pr", "rfc", "iso",
    "cve", "errno", "code", "id", "oid", "pid", "attempt", "test", "claim", "quarter", "tier", "priority", "variant", "schema",
    "stability", "revision", "rev", "generation", "gen", "fd", "class", "type", "category", "model", "series", "edition",
    "volume", "vol", "episode", "slide", "since",
];

/// Names that stand before a version also at the start of a sentence.
#[rustfmt::skip]
pub(super) const PRODUCTS: &[&str] = &[
    "postgres", "postgresql", "pg", "pgbench", "psql", "pgbouncer", "postgis", "timescaledb", "citus", "mysql", "mariadb",
    "sqlite", "oracle", "docker", "podman", "kubernetes", "linux", "kernel", "ubuntu", "debian", "alpine", "fedora",
    "rhel", "macos", "windows", "python", "rust", "go", "java", "node", "ruby", "php", "glibc", "icu", "llvm", "gcc",
    "clang", "zfs", "openssl", "redis", "kafka", "graviton", "xeon", "epyc", "ryzen", "core", "apple", "npm", "yarn",
    "node.js", "rustc", "msrv", "cargo", "django", "rails", "hibernate", "libpq", "pgvector", "pgbackrest", "patroni",
    "cockroachdb", "duckdb", "clickhouse", "mongodb", "sqlstate", "http",
];

/// Words that a heading writes with a capital all the same.
#[rustfmt::skip]
pub(super) const FUNCTION_WORDS: &[&str] = &[
    "a", "an", "the", "at", "of", "in", "on", "to", "with", "by", "from", "for", "and", "or", "is", "are", "was", "were",
    "per", "than", "about", "only", "over", "under", "up", "all", "every", "each", "after", "before", "between", "cost",
    "costs", "just", "nearly", "almost", "around", "some", "into", "it", "its", "has", "have", "takes", "took", "got",
    "not", "but", "as", "if", "when", "why", "how", "what", "that", "this", "these", "those", "they", "we", "i", "you",
    "then", "so", "with", "without", "adding", "writing", "inserting", "updating", "deleting", "loading", "first", "last",
];

/// What posts about databases count: a number before one of these is never a year or a label.
#[rustfmt::skip]
pub(super) const COUNTED: &[&str] = &[
    "rows", "row", "tuples", "pages", "page", "blocks", "buffers", "records", "images", "indexes", "indices", "columns",
    "tables", "partitions", "transactions", "connections", "clients", "sessions", "threads", "workers", "cores", "cpus",
    "vcpus", "locks", "segments", "files", "inserts", "updates", "deletes", "queries", "statements", "writes", "reads",
    "hits", "misses", "fetches", "scans", "keys", "values", "entries", "samples", "runs", "rounds", "times", "iterations",
    "percent", "bytes", "points", "seconds", "minutes", "hours", "days", "weeks", "months", "years", "children", "parents",
    "orders", "customers", "users", "events", "dead", "extra", "more", "fewer", "million", "billion", "thousand",
];

/// `64-bit`, `1-based`, `2-phase` name a kind, they give no amount.
#[rustfmt::skip]
pub(super) const NO_FIGURES: &[&str] = &["bit", "bits", "length", "based", "indexed", "way", "phase", "tier", "stage", "part", "step", "dimensional"];

/// What leads from a name to the version or the value it has.
#[rustfmt::skip]
pub(super) const LEADS: &[&str] = &[
    "to", "from", "at", "of", "is", "in", "the", "with", "was", "set", "stays", "stay", "being", "now", "a", "an", "default",
    "defaults", "currently",
];

/// In a clause with one of these a bare number is a version.
#[rustfmt::skip]
pub(super) const VERSIONING: &[&str] = &[
    "msrv", "rustc", "upgrade", "upgrades", "upgraded", "upgrading", "bump", "bumps", "bumped", "bumping", "downgrade",
    "downgraded", "downgrading", "deprecated", "backported", "version", "versions", "release", "released", "releases",
];

/// Joins a second version to a first.
#[rustfmt::skip]
pub(super) const JOINS: &[&str] = &[
    "and", "or", "to", "through", "–", "-", "/", "&", ", and", ", or", "vs", "vs.", "versus", "as on", "as in", "as with",
    "and on", "and in", "or on", "or in", "nor", "nor on", "than", "than on", "than in", "not", "but not", "then", "→", "->",
    "up to", "until", "instead of", "rather than", "before", "after",
];

/// Heads of columns whose numbers name things.
#[rustfmt::skip]
pub(super) const HEADS: &[&str] = &[
    "version", "versions", "release", "releases", "postgres", "postgresql", "pg", "rust", "rustc", "msrv", "python", "kernel",
    "year", "date", "day", "id", "oid", "pid", "port", "no", "nr", "step", "rank", "issue", "line", "chapter", "section",
    "status", "code", "tier", "level",
];

/// Settings that posts name; their values are set and not measured.
#[rustfmt::skip]
pub(super) const SETTINGS: &[&str] = &[
    "fillfactor", "work_mem", "maintenance_work_mem", "autovacuum_work_mem", "hash_mem_multiplier", "shared_buffers",
    "temp_buffers", "wal_buffers", "huge_pages", "effective_cache_size", "effective_io_concurrency", "io_workers",
    "max_wal_size", "min_wal_size", "wal_segment_size", "wal_keep_size", "wal_writer_delay", "wal_compression", "wal_level",
    "checkpoint_timeout", "checkpoint_completion_target", "commit_delay", "commit_siblings", "synchronous_commit", "fsync",
    "full_page_writes", "max_connections", "max_locks_per_transaction", "max_worker_processes", "max_parallel_workers",
    "max_parallel_workers_per_gather", "max_parallel_maintenance_workers", "min_parallel_table_scan_size",
    "min_parallel_index_scan_size", "parallel_setup_cost", "parallel_tuple_cost", "random_page_cost", "seq_page_cost",
    "cpu_tuple_cost", "jit_above_cost", "default_statistics_target", "autovacuum_naptime", "autovacuum_max_workers",
    "autovacuum_vacuum_scale_factor", "autovacuum_vacuum_threshold", "autovacuum_vacuum_cost_delay",
    "autovacuum_vacuum_cost_limit", "autovacuum_freeze_max_age", "vacuum_cost_limit", "vacuum_freeze_min_age",
    "bgwriter_delay", "bgwriter_lru_maxpages", "statement_timeout", "lock_timeout", "deadlock_timeout",
    "idle_in_transaction_session_timeout", "from_collapse_limit", "join_collapse_limit", "geqo_threshold",
    "track_activity_query_size", "gin_pending_list_limit", "gin_fuzzy_search_limit", "logical_decoding_work_mem",
];
