//! The functions that authors have beside Postgres's own, in plain SQL on the analysis database.

/// Run once, in order.
pub const SQL: &[&str] = &[
    "CREATE SCHEMA measured",
    // percentile_cont() works in double precision; these medians are exact.
    "CREATE FUNCTION median_of(numeric[]) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE \
     RETURN (SELECT CASE WHEN count(*) % 2 = 1 THEN (array_agg(v ORDER BY v))[(count(*) + 1) / 2] \
       ELSE ((array_agg(v ORDER BY v))[count(*) / 2] + (array_agg(v ORDER BY v))[count(*) / 2 + 1]) \
         / 2 END FROM unnest($1) AS v WHERE v IS NOT NULL)",
    "CREATE FUNCTION median_of(double precision[]) RETURNS double precision LANGUAGE sql IMMUTABLE \
     PARALLEL SAFE RETURN (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM unnest($1) AS v)",
    "CREATE AGGREGATE median(numeric) \
     (SFUNC = array_append, STYPE = numeric[], FINALFUNC = median_of, INITCOND = '{}')",
    "CREATE AGGREGATE median(double precision) \
     (SFUNC = array_append, STYPE = double precision[], FINALFUNC = median_of, INITCOND = '{}')",
    // Without these an integer would take the double precision one: it is the preferred type.
    "CREATE FUNCTION append(numeric[], bigint) RETURNS numeric[] LANGUAGE sql IMMUTABLE \
     PARALLEL SAFE RETURN array_append($1, $2::numeric)",
    "CREATE FUNCTION append(numeric[], integer) RETURNS numeric[] LANGUAGE sql IMMUTABLE \
     PARALLEL SAFE RETURN array_append($1, $2::numeric)",
    "CREATE AGGREGATE median(bigint) \
     (SFUNC = append, STYPE = numeric[], FINALFUNC = median_of, INITCOND = '{}')",
    "CREATE AGGREGATE median(integer) \
     (SFUNC = append, STYPE = numeric[], FINALFUNC = median_of, INITCOND = '{}')",
    // (max - min) / median: the full spread as a share of the middle.
    "CREATE FUNCTION spread_of(numeric[]) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE \
     RETURN (SELECT (max(v) - min(v)) / nullif(median_of($1), 0) FROM unnest($1) AS v)",
    "CREATE FUNCTION spread_of(double precision[]) RETURNS double precision LANGUAGE sql IMMUTABLE \
     PARALLEL SAFE RETURN (SELECT (max(v) - min(v)) / nullif(median_of($1), 0) FROM unnest($1) AS v)",
    "CREATE AGGREGATE spread(numeric) \
     (SFUNC = array_append, STYPE = numeric[], FINALFUNC = spread_of, INITCOND = '{}')",
    "CREATE AGGREGATE spread(double precision) \
     (SFUNC = array_append, STYPE = double precision[], FINALFUNC = spread_of, INITCOND = '{}')",
    "CREATE AGGREGATE spread(integer) \
     (SFUNC = append, STYPE = numeric[], FINALFUNC = spread_of, INITCOND = '{}')",
    "CREATE AGGREGATE spread(bigint) \
     (SFUNC = append, STYPE = numeric[], FINALFUNC = spread_of, INITCOND = '{}')",
];

/// For `remeasure list functions`.
pub const DOCUMENTATION: &[(&str, &str)] = &[
    (
        "median(x)",
        "the middle value; of an even count the mean of the middle two; exact for numeric and \
         integers; NULLs are left out",
    ),
    (
        "spread(x)",
        "(max - min) / median: the full spread as a share of the median",
    ),
    (
        "times_faster(x, is_slow)",
        "aggregate: how many times faster it is where `is_slow` is false than where it is true: the \
         ratio of the medians of `x`, with a 95 % interval. A claim of it, and every quote of the \
         claim, is refused while that interval includes 1; below 4 runs of each it always does. \
         Gives `comparison (ratio, low, high, first_runs, second_runs)`, so that \
         `(times_faster(…)).low > 2` is a boolean claim",
    ),
    (
        "times_faster(slow[], fast[])",
        "the same of two arrays, such as `array_agg(elapsed_ms) FILTER (WHERE …)`",
    ),
    (
        "times_more(x, is_more), times_more(more[], less[])",
        "the same for rates, counts and sizes: how many times more `x` is where `is_more` is true",
    ),
];
