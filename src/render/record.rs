//! `record.json`: what the page shows, as it was recorded.

use super::{Filled, OutputFile, Page};
use crate::diagnostic::Diagnostic;
use crate::record;

pub fn render(page: &Page, _filled: &Filled) -> Result<Vec<OutputFile>, Diagnostic> {
    let json = record::to_json(page.measured).into_bytes();
    Ok(vec![OutputFile::new("record.json", json)])
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use crate::record::Record;

    #[test]
    fn the_record_comes_back_from_its_file() {
        let sample = Sample::new();
        let json = sample.file("record.json");
        assert_eq!(
            serde_json::from_str::<Record>(&json).unwrap(),
            sample.record
        );
        assert!(json.ends_with("}\n") && !json.contains('\r'));
    }
}
