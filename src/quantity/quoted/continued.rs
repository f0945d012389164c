//! Digits that a reader takes for one number with those that were read: `1 000`, `1’000`, `10^6`,
//! `1m30s`, `–5`. Reading their first digits alone would call a number right that is not the one in
//! the text, and rewriting them would mangle it; so they are refused, with what to write instead.

use super::suffix::is_space;
use super::{NumeralError, Reader, Written, malformed};
use std::ops::Range;

const GROUPS: &str = "group digits with a comma or a thin space";
const PRODUCT: &str = "write a product or a power as one number";
const UNSEEN: &str = "a character that is not seen stands among its digits";
const FRACTION: &str = "write a fraction as a decimal, and no digits but 0 to 9";
const LETTERS: &str = "letters stand among its digits; put spaces between numbers and units";
const MINUS: &str = "write a minus sign, `−` or `-`, right before the digits";

impl Reader<'_> {
    /// Whether the number from `start` to `at` ends there for a reader too.
    pub(super) fn not_continued(&self, start: usize, at: usize) -> Result<(), NumeralError> {
        let Some(next) = self.char_at(at) else {
            return Ok(());
        };
        let behind = at + next.len_utf8();
        let refused = |why| Err(malformed(self.text, why, start..self.digits_end(behind)));
        if next.is_numeric() && !next.is_ascii() {
            return refused(FRACTION);
        }
        if is_unseen(next) && self.number_follows(behind) {
            return refused(UNSEEN);
        }
        // Minutes and seconds of an angle, or of a time: `1′30″`.
        if matches!(next, '\'' | '’' | '٬' | '٫' | '′' | '″') && self.number_follows(behind)
        {
            return refused(GROUPS);
        }
        if matches!(next, ' ' | '\n') && self.group_follows(start..at, behind) {
            return refused(GROUPS);
        }
        let letters = self.letters_at(at).len();
        if letters > 0 && self.exponent(at).1 == at && self.place_follows(at + letters) {
            return refused(LETTERS);
        }
        self.no_product(start, at)
    }

    /// `1 × 10⁶`, `10^6`, `10**2`, `2 x 8`, `1 + 1`, `1 / 8`, `1 ½`.
    fn no_product(&self, start: usize, at: usize) -> Result<(), NumeralError> {
        let past_spaces = |at: usize| {
            let rest = self.rest(at);
            self.text.len() - rest.trim_start_matches(is_space).len()
        };
        let sign_at = past_spaces(at);
        let Some(sign) = self.char_at(sign_at) else {
            return Ok(());
        };
        if sign.is_numeric() && !sign.is_ascii() && !sign.is_alphabetic() {
            let end = sign_at + sign.len_utf8();
            return Err(malformed(self.text, FRACTION, start..end));
        }
        let why = match sign {
            '×' | 'x' | 'X' | '*' | '·' | '⋅' | '^' | '+' => PRODUCT,
            '/' | '⁄' | '÷' => "write a fraction as a decimal or a percentage",
            _ => return Ok(()),
        };
        let mut factor = sign_at + sign.len_utf8();
        if sign == '*' && self.rest(factor).starts_with('*') {
            factor += 1;
        }
        let factor = past_spaces(factor);
        if self.number_follows(factor) {
            return Err(malformed(self.text, why, start..self.digits_end(factor)));
        }
        Ok(())
    }

    /// `–5`, `‒5` and `minus 5` are less than nothing to a reader.
    pub(super) fn not_signed_otherwise(&self, written: &Written) -> Result<(), NumeralError> {
        let before = &self.text[..written.start];
        let dash = before
            .chars()
            .next_back()
            .filter(|c| matches!(c, '–' | '‒' | '－' | '﹣'))
            .map(|dash| written.start - dash.len_utf8())
            .filter(|&start| self.is_outside(start));
        let word = before
            .trim_end_matches(is_space)
            .len()
            .checked_sub("minus".len())
            .filter(|&start| {
                before
                    .get(start..start + "minus".len())
                    .is_some_and(|word| word.eq_ignore_ascii_case("minus"))
                    && self.is_outside(start)
            });
        match dash.or(word) {
            Some(start) => Err(malformed(self.text, MINUS, start..written.end)),
            None => Ok(()),
        }
    }

    /// Whether `number` and the three digits behind a space look like one number: `1 000`.
    fn group_follows(&self, number: Range<usize>, behind: usize) -> bool {
        let number = self.text[number].trim_start_matches(['+', '-', '−']);
        let group = self.rest(behind);
        let places = group.bytes().take_while(u8::is_ascii_digit).count();
        number.len() <= 3
            && number.bytes().all(|b| b.is_ascii_digit())
            && !number.starts_with('0')
            && places == 3
    }

    fn number_follows(&self, at: usize) -> bool {
        self.char_at(at).is_some_and(char::is_numeric)
    }

    fn digits_end(&self, at: usize) -> usize {
        let rest = self.rest(at);
        let length = rest.find(|c: char| !c.is_numeric()).unwrap_or(rest.len());
        at + length
    }
}

/// Soft hyphen, zero-width characters, marks of direction.
fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
    )
}
