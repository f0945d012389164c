//! Reads dates and timestamps as Postgres prints them in its ISO style, for a time axis.

/// Milliseconds since 1970 in UTC; a timestamp without a time zone is taken as UTC. None: infinity,
/// a year before our era, or no timestamp at all.
pub fn milliseconds(text: &str) -> Option<f64> {
    let (date, time) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let mut parts = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (
        parts.next()?.ok()?,
        parts.next()?.ok()?,
        parts.next()?.ok()?,
    );
    let is_date =
        (1..=294_276).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date {
        return None;
    }
    let (clock, offset) = match time.find(['+', '-']) {
        Some(at) => (&time[..at], offset_seconds(&time[at..])?),
        None => (time, 0.0),
    };
    let seconds = clock_seconds(clock)? - offset;
    Some((days_since_1970(year, month, day) as f64 * 86_400.0 + seconds) * 1000.0)
}

/// `12:34:56.789`
fn clock_seconds(clock: &str) -> Option<f64> {
    let mut parts = clock.splitn(3, ':');
    let hours: u32 = parts.next()?.parse().ok()?;
    let minutes: u32 = parts.next()?.parse().ok()?;
    let seconds: f64 = match parts.next() {
        Some(seconds) if seconds.starts_with(|c: char| c.is_ascii_digit()) => {
            seconds.parse().ok()?
        }
        Some(_) => return None,
        None => 0.0,
    };
    (hours <= 24 && minutes < 60 && seconds <= 60.0)
        .then(|| f64::from(hours) * 3600.0 + f64::from(minutes) * 60.0 + seconds)
}

/// `+02`, `-03:30`, `+00:19:32`
fn offset_seconds(offset: &str) -> Option<f64> {
    let sign = if offset.starts_with('-') { -1.0 } else { 1.0 };
    let clock = &offset[1..];
    let seconds = if clock.contains(':') {
        clock_seconds(clock)?
    } else {
        f64::from(clock.parse::<u32>().ok()?) * 3600.0
    };
    Some(sign * seconds)
}

/// Howard Hinnant's `days_from_civil`: years begin in March, so that the leap day comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn timestamps_are_read_as_postgres_prints_them() {
        for (text, expected) in [
            ("1970-01-01", Some(0.0)),
            ("1970-01-02 00:00:00", Some(86_400_000.0)),
            ("2026-11-30 12:00:00.123", Some(1_796_040_000_123.0)),
            ("2026-11-30 12:00:00+00", Some(1_796_040_000_000.0)),
            ("2026-11-30 12:00:00+02", Some(1_796_032_800_000.0)),
            ("2026-11-30 12:00:00-03:30", Some(1_796_052_600_000.0)),
            ("2000-02-29", Some(951_782_400_000.0)),
            ("1969-12-31 23:59:59", Some(-1000.0)),
            ("infinity", None),
            ("-infinity", None),
            ("0044-03-15 BC", None),
            ("2026-13-01", None),
            ("2026-11-30 aa", None),
            ("", None),
        ] {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }
}
