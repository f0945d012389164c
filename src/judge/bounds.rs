//! Between what a value must lie, and by how much it does not. All comparisons are exact: quote
//! and claim are taken to a common unit by multiplication alone.

use crate::article::Tolerance;
use crate::quantity::format::{integer_digits, round, significant, thousands};
use crate::quantity::{Conversion, Shape, Unit};
use bigdecimal::{BigDecimal, One, Zero};

/// The unit that a figure is compared in. A number in it, times `numerator`, and a number in the
/// claim's unit, times `denominator`, are in one common unit.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    pub conversion: Conversion,
    pub unit: Option<Unit>,
}

impl Scale {
    /// The claim's own unit.
    pub fn of_claim(unit: Option<Unit>) -> Self {
        Self {
            conversion: Conversion::identity(),
            unit,
        }
    }

    pub fn quote_to_common(&self, number: &BigDecimal) -> BigDecimal {
        number * &self.conversion.numerator
    }

    pub fn claim_to_common(&self, number: &BigDecimal) -> BigDecimal {
        number * &self.conversion.denominator
    }

    /// A number in the common unit, in the quote's.
    pub fn common_to_quote(&self, common: &BigDecimal) -> BigDecimal {
        if self.conversion.numerator.is_one() {
            return common.clone();
        }
        common / &self.conversion.numerator
    }

    /// A number of the claim, in the quote's unit.
    pub fn claim_to_quote(&self, number: &BigDecimal) -> BigDecimal {
        if self.conversion.numerator == self.conversion.denominator {
            return number.clone();
        }
        self.common_to_quote(&self.claim_to_common(number))
    }

    pub fn attach(&self, number: &str) -> String {
        match &self.unit {
            Some(unit) => unit.attach(number),
            None => number.to_owned(),
        }
    }
}

/// An interval, both ends in it, in the common unit of a [`Scale`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub low: Option<BigDecimal>,
    pub high: Option<BigDecimal>,
}

impl Bounds {
    fn between(low: BigDecimal, high: BigDecimal) -> Self {
        Self {
            low: Some(low),
            high: Some(high),
        }
    }

    /// What the quote allows by itself: half of its last digit either way, or its range.
    pub fn of_quote(shape: &Shape, scale: &Scale) -> Self {
        let (low, high) = match shape {
            Shape::Point { value, step } => {
                let half = step.half();
                (value - &half, value + &half)
            }
            Shape::Range { low, high } => (low.clone(), high.clone()),
            Shape::Mask { low, high } => ordered(low, high),
        };
        Self::between(scale.quote_to_common(&low), scale.quote_to_common(&high))
    }

    /// What a tolerance allows around a quoted (or recorded) shape.
    pub fn of_tolerance(tolerance: &Tolerance, shape: &Shape, scale: &Scale) -> Self {
        let (low, high) = ends(shape);
        let (low, high) = (scale.quote_to_common(&low), scale.quote_to_common(&high));
        match tolerance {
            Tolerance::Relative(share) => {
                Self::between(&low - low.abs() * share, &high + high.abs() * share)
            }
            Tolerance::Absolute(amount) => {
                let amount = scale.claim_to_common(amount);
                Self::between(&low - &amount, &high + &amount)
            }
            _ => Self::of_limits(tolerance, scale).unwrap_or(Self {
                low: None,
                high: None,
            }),
        }
    }

    /// The limits that a tolerance names by itself, without a quote.
    pub fn of_limits(tolerance: &Tolerance, scale: &Scale) -> Option<Self> {
        let (low, high) = match tolerance {
            Tolerance::Range(low, high) => (Some(low), Some(high)),
            Tolerance::AtLeast(low) => (Some(low), None),
            Tolerance::AtMost(high) => (None, Some(high)),
            Tolerance::Relative(_) | Tolerance::Absolute(_) => return None,
        };
        let common = |end: Option<&BigDecimal>| end.map(|end| scale.claim_to_common(end));
        Some(Self {
            low: common(low),
            high: common(high),
        })
    }

    /// How far outside a value (in the common unit) is: `77.04 is 0.54 above 75.5 to 76.5`.
    pub fn difference(&self, value: &BigDecimal, scale: &Scale) -> Option<String> {
        let (off, side) = match (&self.low, &self.high) {
            (Some(low), _) if value < low => (low - value, "below"),
            (_, Some(high)) if value > high => (value - high, "above"),
            _ => return None,
        };
        let off = scale.common_to_quote(&off);
        // Three digits of the difference, and as many decimals of the value, so that the two and
        // the bound add up to the eye.
        let decimals = (3 - integer_digits(&off)).max(0);
        Some(format!(
            "{} is {} {side} {}",
            thousands(&round(&scale.common_to_quote(value), decimals)),
            thousands(&round(&off, decimals)),
            self.text(scale)
        ))
    }

    /// `75.5 to 76.5`, or the one end there is.
    pub fn text(&self, scale: &Scale) -> String {
        let ends = [&self.low, &self.high];
        ends.into_iter()
            .flatten()
            .map(|end| exact(&scale.common_to_quote(end)))
            .collect::<Vec<_>>()
            .join(" to ")
    }
}

/// The ends of what a quote says, without any slack.
pub(super) fn ends(shape: &Shape) -> (BigDecimal, BigDecimal) {
    match shape {
        Shape::Point { value, .. } => (value.clone(), value.clone()),
        Shape::Range { low, high } => (low.clone(), high.clone()),
        Shape::Mask { low, high } => ordered(low, high),
    }
}

/// A mask of a negative number goes down.
fn ordered(low: &BigDecimal, high: &BigDecimal) -> (BigDecimal, BigDecimal) {
    if low <= high {
        (low.clone(), high.clone())
    } else {
        (high.clone(), low.clone())
    }
}

/// Every digit, as long as a person can read them; what a division made endless is cut.
pub(super) fn exact(number: &BigDecimal) -> String {
    const READABLE: u64 = 40;
    if number.is_zero() || number.normalized().digits() <= READABLE {
        thousands(number)
    } else {
        significant(number, 6.max(integer_digits(number).max(0) as u32))
    }
}

/// A tolerance for people.
pub(super) fn tolerance_text(tolerance: &Tolerance, unit: Option<&Unit>) -> String {
    let with_unit = |number: &BigDecimal| match unit {
        Some(unit) => unit.attach(&exact(number)),
        None => exact(number),
    };
    match tolerance {
        Tolerance::Relative(share) => format!("±{}%", exact(&(share * BigDecimal::from(100)))),
        Tolerance::Absolute(amount) => format!("±{}", with_unit(amount)),
        Tolerance::Range(low, high) => format!("{} to {}", exact(low), with_unit(high)),
        Tolerance::AtLeast(low) => format!("≥ {}", with_unit(low)),
        Tolerance::AtMost(high) => format!("≤ {}", with_unit(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_says_value_distance_side_and_bounds() {
        #[rustfmt::skip]
        let table = [
            ("77.04", Some("75.5"), Some("76.5"), Some("77.04 is 0.54 above 75.5 to 76.5")),
            ("76.5034", Some("75.5"), Some("76.5"), Some("76.5034 is 0.0034 above 75.5 to 76.5")),
            ("76.5", Some("75.5"), Some("76.5"), None),
            ("75.5", Some("75.5"), Some("76.5"), None),
            ("75.49999", Some("75.5"), Some("76.5"), Some("75.49999 is 0.00001 below 75.5 to 76.5")),
            ("8439.123456", Some("75.5"), Some("76.5"), Some("8,439 is 8,363 above 75.5 to 76.5")),
            ("2.9", Some("3"), None, Some("2.9 is 0.1 below 3")),
            ("11", None, Some("10"), Some("11 is 1 above 10")),
            ("-5", Some("-4"), Some("-3"), Some("-5 is 1 below -4 to -3")),
            ("436300", Some("753500"), Some("754500"), Some("436,300 is 317,200 below 753,500 to 754,500")),
        ];
        for (value, low, high, expected) in table {
            let read = |text: &str| text.parse::<BigDecimal>().unwrap();
            let bounds = Bounds {
                low: low.map(read),
                high: high.map(read),
            };
            let found = bounds.difference(&read(value), &Scale::of_claim(None));
            assert_eq!(found.as_deref(), expected, "{value}");
        }
    }
}
