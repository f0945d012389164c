//! How many times faster one thing is than another, and whether it is at all: a ratio of medians
//! with its 95 % interval, as the composite type `comparison` on the analysis database.
//!
//! The interval is the one that the Mann-Whitney test gives when it is inverted: of all ratios of
//! one value of the first sample to one of the second, in order, the k-th from either end (Lehmann,
//! "Nonparametric Confidence Intervals for a Shift Parameter", 1963; Hollander, Wolfe and Chicken,
//! "Nonparametric Statistical Methods", section 4.3, taken of ratios in place of differences). It is
//! exact for few runs, asks nothing of how timings are distributed, and draws no random numbers; the
//! level of a bootstrap's is only approximate for few runs. It includes 1 exactly where
//! the two-sided test at 5 % finds no difference. Three runs against three can never show one; there
//! the interval is all that is above zero.

use crate::quantity::{Number, Value};
use crate::record::Comparison;

/// Run once, in order, after the functions that it uses.
pub const SQL: &[&str] = &[
    "CREATE TYPE comparison AS \
     (ratio numeric, low numeric, high numeric, first_runs integer, second_runs integer)",
    // The largest k with 2 P(U < k) <= 0.05, U being Mann and Whitney's under no difference; 0 where
    // there is none. Of two samples of m and n values the counts of U are the coefficients of the
    // Gaussian binomial, the product of (1 - q^(n+i)) / (1 - q^i) for i from 1 to m (Andrews, "The
    // Theory of Partitions", chapter 3). Beyond 400 pairs the normal approximation with continuity
    // correction differs from it by one at most.
    "CREATE FUNCTION comparison_rank(m integer, n integer) RETURNS integer LANGUAGE plpgsql \
     IMMUTABLE PARALLEL SAFE AS $$ \
     DECLARE \
       counts numeric[]; pairs bigint := m::bigint * n; middle integer; \
       allowed numeric := 1; below numeric := 0; \
     BEGIN \
       IF pairs > 400 THEN \
         RETURN greatest(0, floor(pairs / 2.0 + 0.5 \
           - 1.959964 * sqrt(pairs * (m + n + 1) / 12.0)))::integer; \
       END IF; \
       middle := pairs / 2; \
       counts := array_fill(0::numeric, ARRAY[middle + 1], ARRAY[0]); \
       counts[0] := 1; \
       FOR i IN 1..m LOOP \
         FOR u IN REVERSE middle..n + i LOOP counts[u] := counts[u] - counts[u - n - i]; END LOOP; \
         FOR u IN i..middle LOOP counts[u] := counts[u] + counts[u - i]; END LOOP; \
         allowed := allowed * (n + i) / i; \
       END LOOP; \
       allowed := allowed * 0.025; \
       FOR u IN 0..middle LOOP \
         below := below + counts[u]; \
         IF below > allowed THEN RETURN u; END IF; \
       END LOOP; \
       RETURN middle; \
     END $$",
    "CREATE FUNCTION compare(first numeric[], second numeric[]) RETURNS comparison \
     LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$ \
     DECLARE \
       a numeric[] := ARRAY(SELECT v FROM unnest(first) AS v WHERE v IS NOT NULL); \
       b numeric[] := ARRAY(SELECT v FROM unnest(second) AS v WHERE v IS NOT NULL); \
       m integer := cardinality(a); n integer := cardinality(b); \
       rank integer; ratio numeric; low numeric := 0; high numeric := 'Infinity'; \
     BEGIN \
       IF m = 0 OR n = 0 THEN RETURN NULL; END IF; \
       IF EXISTS (SELECT FROM unnest(a || b) AS v WHERE NOT (v > 0 AND v < 'Infinity')) THEN \
         RAISE EXCEPTION 'only values above zero have a ratio to compare' \
           USING ERRCODE = 'data_exception'; \
       END IF; \
       IF m::bigint * n > 1000000 THEN \
         RAISE EXCEPTION '% values against % are too many to compare', m, n \
           USING ERRCODE = 'program_limit_exceeded', \
             HINT = 'compare runs, 1,000 against 1,000 at most'; \
       END IF; \
       ratio := median_of(a) / median_of(b); \
       rank := comparison_rank(m, n); \
       IF rank > 0 THEN \
         SELECT x / y INTO low FROM unnest(a) AS x, unnest(b) AS y \
           ORDER BY 1 OFFSET rank - 1 LIMIT 1; \
         SELECT x / y INTO high FROM unnest(a) AS x, unnest(b) AS y \
           ORDER BY 1 DESC OFFSET rank - 1 LIMIT 1; \
       END IF; \
       RETURN (trim_scale(ratio), trim_scale(least(low, ratio)), trim_scale(greatest(high, ratio)), \
         m, n)::comparison; \
     END $$",
    // In a body that is text, types are resolved at each call: arrays of any numbers will do.
    "CREATE FUNCTION times_faster(slow anycompatiblearray, fast anycompatiblearray) \
     RETURNS comparison LANGUAGE sql IMMUTABLE PARALLEL SAFE \
     AS 'SELECT compare($1::numeric[], $2::numeric[])'",
    "CREATE FUNCTION times_more(more anycompatiblearray, less anycompatiblearray) \
     RETURNS comparison LANGUAGE sql IMMUTABLE PARALLEL SAFE \
     AS 'SELECT compare($1::numeric[], $2::numeric[])'",
    "CREATE TYPE compared AS (first numeric[], second numeric[])",
    "CREATE FUNCTION compared_with(compared, anynonarray, boolean) RETURNS compared \
     LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT CASE \
       WHEN $3 THEN ROW(array_append(($1).first, $2::numeric), ($1).second)::compared \
       WHEN NOT $3 THEN ROW(($1).first, array_append(($1).second, $2::numeric))::compared \
       ELSE $1 END'",
    "CREATE FUNCTION compare_all(compared) RETURNS comparison LANGUAGE sql IMMUTABLE PARALLEL SAFE \
     RETURN compare(($1).first, ($1).second)",
    "CREATE AGGREGATE times_faster(anynonarray, boolean) \
     (SFUNC = compared_with, STYPE = compared, FINALFUNC = compare_all, INITCOND = '({},{})')",
    "CREATE AGGREGATE times_more(anynonarray, boolean) \
     (SFUNC = compared_with, STYPE = compared, FINALFUNC = compare_all, INITCOND = '({},{})')",
];

/// The composite type as `format_type` names it.
pub const TYPE_NAME: &str = "comparison";

/// Reads what Postgres prints for a `comparison`: `(1.5,1.2,1.9,8,8)`. All of its fields are
/// numbers, so nothing in it is quoted.
pub fn read(text: &str) -> Option<(Value, Comparison)> {
    let fields: Vec<&str> = text
        .strip_prefix('(')?
        .strip_suffix(')')?
        .split(',')
        .collect();
    let [ratio, low, high, first, second] = fields.as_slice() else {
        return None;
    };
    let number = |text: &str| text.parse::<Number>().ok();
    let comparison = Comparison {
        interval: (number(low)?, number(high)?),
        runs: (first.parse().ok()?, second.parse().ok()?),
    };
    Some((Value::Number(number(ratio)?), comparison))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_read_as_postgres_prints_it() {
        let (value, comparison) = read("(1.5,0,Infinity,3,8)").unwrap();
        assert_eq!(value.to_string(), "1.5");
        assert_eq!(
            comparison,
            Comparison {
                interval: (Number::Finite(0.into()), Number::Infinity),
                runs: (3, 8),
            }
        );
        for broken in [
            "",
            "1.5",
            "(1.5)",
            "(1.5,1,2,3,)",
            "(,1,2,3,4)",
            "(1,2,3,4,5,6)",
        ] {
            assert_eq!(read(broken), None, "{broken}");
        }
    }
}
