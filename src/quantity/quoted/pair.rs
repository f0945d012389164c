//! Two numerals that are one: the ends of a range (`1.3–1.8 µs`, `500 to 2k`), the minutes and
//! seconds of a time (`1 min 23 s`).

use super::suffix::{Suffix, is_space};
use super::{Digits, NumeralError, Part, QuotedNumeral, Reader, Shape, Written, malformed};
use crate::quantity::unit::Conversion;
use bigdecimal::{BigDecimal, One, Signed};

impl Reader<'_> {
    /// A second numeral that makes a range of the two.
    pub(super) fn second(
        &self,
        first: &Written,
        end: usize,
    ) -> Result<Option<(Written, Suffix)>, NumeralError> {
        let rest = self.rest(end);
        let spaced = rest.trim_start_matches(is_space);
        let between = self.text[..first.start].to_lowercase().contains("between");
        let joined = [
            "–", "—", "…", "...", "..", "-", "to ", "to\u{a0}", "up to ", "through ",
        ]
        .into_iter()
        .find_map(|joiner| spaced.strip_prefix(joiner))
        .or_else(|| spaced.strip_prefix("and ").filter(|_| between));
        let Some(after) = joined else {
            return Ok(None);
        };
        let after = after.trim_start_matches(is_space);
        let start = self.text.len() - after.len();
        let unsigned = after.strip_prefix(['+', '-', '−']).unwrap_or(after);
        let unsigned = unsigned.strip_prefix('.').unwrap_or(unsigned);
        if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        let second = self.written(start)?;
        let suffix = self.suffix(second.end);
        if self.rest(suffix.end).starts_with('-') && self.place_follows(suffix.end + 1) {
            let why = "a date is no figure";
            let end = self.places(suffix.end + 1, usize::MAX, &mut Digits::default());
            return Err(malformed(self.text, why, first.start..end));
        }
        Ok(Some((second, suffix)))
    }

    pub(super) fn range(
        &self,
        first: Written,
        first_suffix: Suffix,
        second: Written,
        second_suffix: Suffix,
    ) -> Result<QuotedNumeral, NumeralError> {
        let range = first.start..second_suffix.end;
        let failure = |why| malformed(self.text, why, range.clone());
        let one = BigDecimal::from(1);
        let second_by = second_suffix.multiplier.as_ref().unwrap_or(&one);
        let high = second.masked_end.as_ref().unwrap_or(&second.value) * second_by;
        // In `1 to 2 million` the first is a million too; in `500 to 2k` it is not.
        let shared = first_suffix.multiplier.is_none()
            && first_suffix.unit.is_none()
            && &first.value * second_by <= high;
        let first_by = match &first_suffix.multiplier {
            Some(by) => by,
            None if shared => second_by,
            None => &one,
        };
        let mut factor = Conversion {
            numerator: first_by.clone(),
            denominator: one.clone(),
        };
        let unit = second_suffix.unit.or_else(|| first_suffix.unit.clone());
        if let (Some(own), Some(unit)) = (&first_suffix.unit, &unit) {
            let conversion = own
                .conversion(unit)
                .ok_or_else(|| failure("its ends have different units"))?;
            factor.numerator *= conversion.numerator;
            factor.denominator = conversion.denominator;
        }
        // A third of a minute has no exact decimal in minutes.
        let scaled = &first.value * &factor.numerator;
        let low = &scaled / &factor.denominator;
        if &low * &factor.denominator != scaled {
            return Err(failure("give both ends the same unit"));
        }
        if first.masked_end.is_some() {
            return Err(failure("the lower end of a range shows all its digits"));
        }
        if low > high {
            return Err(failure(
                "the ends of a range ascend; quote two figures each on its own",
            ));
        }
        Ok(QuotedNumeral {
            shape: Shape::Range { low, high },
            unit,
            digits: first.start..second_suffix.multiplier_end,
            range,
            parts: vec![
                Part {
                    range: first.start..first.end,
                    factor,
                },
                second.part(second_by.clone()),
            ],
        })
    }
}

// ---- lengths of time --------------------------------------------------------------------------

impl Reader<'_> {
    /// `1 min 23 s`, `1 h and 5 min`: a whole number of one unit of time, and more of a smaller one.
    pub(super) fn length_of_time(
        &self,
        first: &Written,
        suffix: &Suffix,
    ) -> Result<Option<QuotedNumeral>, NumeralError> {
        let Some(large) = suffix.unit.as_ref().filter(|unit| unit.is_time()) else {
            return Ok(None);
        };
        let rest = self.rest(suffix.end).trim_start_matches(is_space);
        let rest = rest.strip_prefix("and ").unwrap_or(rest);
        let start = self.text.len() - rest.len();
        let whole = suffix.multiplier.is_none()
            && first.masked_end.is_none()
            && first.step.is_one()
            && !first.value.is_negative();
        if !whole || !self.place_follows(start) {
            return Ok(None);
        }
        let second = self.written(start)?;
        let second_suffix = self.suffix(second.end);
        let Some(small) = second_suffix.unit.as_ref().filter(|unit| unit.is_time()) else {
            return Ok(None);
        };
        let factor = large.conversion(small);
        let Some(factor) = factor.filter(|factor| {
            second_suffix.multiplier.is_none()
                && second.masked_end.is_none()
                && &second.value * &factor.denominator < factor.numerator
        }) else {
            return Ok(None);
        };
        let range = first.start..second_suffix.end;
        if self.second(&second, range.end)?.is_some() {
            let why = "write a range of times in one unit";
            return Err(malformed(self.text, why, range));
        }
        // A unit of time is so many whole ones of a smaller.
        let total = &first.value * &factor.numerator / &factor.denominator + &second.value;
        Ok(Some(QuotedNumeral {
            shape: Shape::Point {
                value: total,
                step: second.step.clone(),
            },
            digits: range.clone(),
            range,
            parts: vec![
                Part {
                    range: first.start..first.end,
                    factor,
                },
                second.part(1.into()),
            ],
            unit: second_suffix.unit,
        }))
    }
}
