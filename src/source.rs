//! A text that diagnostics point into: its name for people, its bytes, and the way from byte
//! offsets to lines and columns.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Byte offsets into a [`Source`], end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self::new(range.start, range.end)
    }
}

/// A value and the place it was written at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

impl<T> Spanned<T> {
    pub fn new(value: T, span: impl Into<Span>) -> Self {
        Self {
            value,
            span: span.into(),
        }
    }
}

/// One text file as it was read, not one byte changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// As diagnostics print it: relative to the working directory where possible.
    pub name: String,
    pub path: PathBuf,
    pub text: String,
    line_starts: Vec<usize>,
}

impl Source {
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>, text: String) -> Arc<Self> {
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Arc::new(Self {
            name: name.into(),
            path: path.into(),
            text,
            line_starts,
        })
    }

    /// The 1-based line and column (in characters) of a byte offset.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let start = self.line_starts[line - 1];
        (line, self.text[start..offset].chars().count() + 1)
    }

    pub fn slice(&self, span: Span) -> &str {
        &self.text[span.range()]
    }

    /// The word, or else the single character, that begins at `start`: what Postgres points at
    /// when it gives a position.
    pub fn word_at(&self, start: usize) -> Span {
        let start = start.min(self.text.len());
        let rest = &self.text[start..];
        let word: usize = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .map(char::len_utf8)
            .sum();
        let one = rest.chars().next().map_or(0, char::len_utf8);
        Span::new(start, start + word.max(one))
    }
}

/// Text taken out of a [`Source`] line by line (the content of a fenced block, which may stand
/// in a list or a block quote), with the way back for every byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extract {
    pub text: String,
    /// (offset in `text`, offset in the source), ascending; between two entries the bytes are the same.
    map: Vec<(usize, usize)>,
}

impl Extract {
    /// Appends a piece that stands at `at` in the source.
    pub fn push(&mut self, piece: &str, at: usize) {
        self.map.push((self.text.len(), at));
        self.text.push_str(piece);
    }

    /// The source offset of a byte of `text`; `text.len()` gives the end of the last piece.
    pub fn to_source(&self, offset: usize) -> usize {
        let index = self.map.partition_point(|&(start, _)| start <= offset);
        match index.checked_sub(1).map(|i| self.map[i]) {
            Some((start, source)) => source + (offset - start),
            None => 0,
        }
    }

    /// The source span of a range of `text`, never reaching over into a later piece.
    pub fn span(&self, range: Range<usize>) -> Span {
        let start = self.to_source(range.start);
        let end = if range.end > range.start {
            self.to_source(range.end - 1) + 1
        } else {
            start
        };
        Span::new(start, end)
    }

    /// A part of this extract that keeps the way back.
    pub fn slice(&self, range: Range<usize>) -> Extract {
        let mut part = Extract::default();
        let mut at = range.start;
        while at < range.end {
            let next = self.map.partition_point(|&(start, _)| start <= at);
            let end = self
                .map
                .get(next)
                .map_or(range.end, |&(start, _)| start.min(range.end));
            part.push(&self.text[at..end], self.to_source(at));
            at = end;
        }
        if part.map.is_empty() {
            part.map.push((0, self.to_source(range.start)));
        }
        part
    }
}

/// Where each byte of a text stands in the source, as far as it stands there as it is: not so a
/// character written as an entity or an escape, or the line break that was read as a space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// (offset in the text, offset in the source), ascending; up to the next the bytes are the same.
    map: Vec<(usize, Option<usize>)>,
}

impl Places {
    /// From the offset `at` of the text on: what stands at `source`, or what stands nowhere.
    pub fn push(&mut self, at: usize, source: Option<usize>) {
        let goes_on = match (self.to_source(at), source) {
            (Some(expected), Some(source)) => expected == source,
            (None, None) => !self.map.is_empty(),
            _ => false,
        };
        if !goes_on {
            self.map.push((at, source));
        }
    }

    /// Appends a range of another text's places, which is at `at` of this one.
    pub fn append(&mut self, at: usize, other: &Places, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.push(at, other.to_source(range.start));
        let first = other
            .map
            .partition_point(|&(start, _)| start <= range.start);
        for &(start, source) in &other.map[first..] {
            if start >= range.end {
                break;
            }
            self.push(at + start - range.start, source);
        }
    }

    /// Where a byte stands.
    pub fn to_source(&self, offset: usize) -> Option<usize> {
        let index = self.map.partition_point(|&(start, _)| start <= offset);
        let (start, source) = self.map[index.checked_sub(1)?];
        Some(source? + (offset - start))
    }

    /// From the first to the last byte of a range, with whatever stands between them.
    pub fn covering(&self, range: Range<usize>) -> Option<Span> {
        let start = self.to_source(range.start)?;
        let end = if range.is_empty() {
            start
        } else {
            self.to_source(range.end - 1)? + 1
        };
        (start <= end).then(|| Span::new(start, end))
    }

    /// Where a range stands byte for byte, if it does.
    pub fn verbatim(&self, range: Range<usize>) -> Option<Span> {
        let span = self.covering(range.clone())?;
        let index = self.map.partition_point(|&(start, _)| start <= range.start);
        let pieces = self.map[index..].iter();
        let others = pieces.take_while(|&&(start, _)| start < range.end).count();
        (others == 0).then_some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_back_where_the_bytes_are_the_same() {
        let mut places = Places::default();
        places.push(0, Some(10));
        places.push(3, Some(13));
        places.push(5, None);
        places.push(6, Some(30));
        let verbatim = |range| places.verbatim(range).map(|span| (span.start, span.end));
        assert_eq!(verbatim(1..5), Some((11, 15)));
        assert_eq!(verbatim(4..6), None);
        assert_eq!(verbatim(4..7), None);
        assert_eq!(verbatim(6..8), Some((30, 32)));
        assert_eq!(places.covering(4..8), Some(Span::new(14, 32)));
        let mut part = Places::default();
        part.append(0, &places, 4..7);
        part.append(3, &places, 6..8);
        assert_eq!(part.to_source(0), Some(14));
        assert_eq!(part.to_source(1), None);
        assert_eq!(part.verbatim(3..5), Some(Span::new(30, 32)));
        assert_eq!(Places::default().covering(0..1), None);
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let source = Source::new("a.md", "a.md", "ab\nµs x\n".into());
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(3), (2, 1));
        assert_eq!(source.line_column(5), (2, 2));
        assert_eq!(source.line_column(99), (3, 1));
    }

    #[test]
    fn an_extract_leads_back_to_every_byte() {
        let mut extract = Extract::default();
        extract.push("ab\n", 10);
        extract.push("cd\n", 20);
        assert_eq!(extract.to_source(1), 11);
        assert_eq!(extract.to_source(4), 21);
        assert_eq!(extract.span(1..5), Span::new(11, 22));
        let part = extract.slice(2..5);
        assert_eq!(part.text, "\ncd");
        assert_eq!(part.to_source(0), 12);
        assert_eq!(part.to_source(2), 21);
    }
}
