//! Where a link or an image may lead: our own schemes, a few safe ones, and files of the article's
//! folder.

use crate::article::{Article, ReferenceKind};
use crate::diagnostic::Diagnostic;
use crate::render::numbering::parse_reference;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::ops::Range;
use std::path::{Component, Path};

pub enum Destination<'a> {
    /// `claim:index_wal`
    Claim(&'a str),
    /// `chart:insert_wal`
    Reference(ReferenceKind, &'a str),
    /// `cite:source`
    Citation,
    Safe(String),
    Unsafe,
}

pub fn classify(destination: &str) -> Destination<'_> {
    if let Some(claim) = destination.strip_prefix("claim:") {
        return Destination::Claim(claim);
    }
    if let Some((kind, id)) = parse_reference(destination) {
        return Destination::Reference(kind, id);
    }
    if destination.starts_with("cite:") {
        return Destination::Citation;
    }
    // An autolink `<a@b.example>` has no scheme of its own.
    if is_address(destination) {
        return Destination::Safe(format!("mailto:{destination}"));
    }
    if is_safe(destination) {
        Destination::Safe(destination.to_owned())
    } else {
        Destination::Unsafe
    }
}

fn is_address(destination: &str) -> bool {
    destination.contains('@') && !destination.contains([':', '/', '#', '?'])
}

/// `http`, `https`, `mailto` or no scheme at all. Browsers skip control characters and spaces in
/// front of and inside a scheme, so none may stand there.
pub fn is_safe(destination: &str) -> bool {
    if destination.chars().any(|c| c.is_control()) || destination.starts_with([' ', '\\']) {
        return false;
    }
    let end_of_scheme = destination.find([':', '/', '?', '#']);
    match end_of_scheme {
        Some(end) if destination[end..].starts_with(':') => {
            let scheme = destination[..end].to_ascii_lowercase();
            matches!(scheme.as_str(), "http" | "https" | "mailto")
        }
        // `//host/path` takes the page's scheme.
        _ => true,
    }
}

/// An image of the article's folder as a `data:` URL, so that the page is one file. None: it is
/// not in the folder but elsewhere.
pub fn image(
    article: &Article,
    destination: &str,
    range: &Range<usize>,
) -> Result<Option<String>, Diagnostic> {
    let Some(path) = local_path(destination) else {
        return Ok(None);
    };
    let problem = |message: String| Diagnostic::error(message).at(&article.source, range.clone());
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    let media_type = match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "avif" => "image/avif",
        _ => {
            return Err(problem(format!("`{destination}` is not an image"))
                .hint("png, jpg, gif, svg, webp and avif are"));
        }
    };
    let bytes = read_inside(&article.directory, path)
        .map_err(|error| problem(format!("image `{destination}` cannot be read: {error}")))?;
    Ok(Some(format!(
        "data:{media_type};base64,{}",
        STANDARD.encode(bytes)
    )))
}

/// A relative path that stays below the folder. None: a URL, or a path that leaves.
pub fn local_path(destination: &str) -> Option<&Path> {
    if !is_safe(destination) || destination.contains([':', '?', '#', '\\']) {
        return None;
    }
    let path = Path::new(destination);
    let stays = (path.components())
        .all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
    (stays && !destination.is_empty()).then_some(path)
}

/// Symbolic links do not lead out of the folder either.
pub fn read_inside(directory: &Path, path: &Path) -> std::io::Result<Vec<u8>> {
    let directory = directory.canonicalize()?;
    let file = directory.join(path).canonicalize()?;
    if !file.starts_with(&directory) {
        return Err(std::io::Error::other("it is outside the article's folder"));
    }
    std::fs::read(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_destinations_are_linked() {
        for (destination, safe) in [
            ("https://example.org/a:b", true),
            ("HTTP://example.org", true),
            ("mailto:a@example.org", true),
            ("other.html#part:1", true),
            ("#part", true),
            ("//example.org/x", true),
            ("javascript:alert(1)", false),
            ("JaVaScRiPt:alert(1)", false),
            ("java\tscript:alert(1)", false),
            (" javascript:alert(1)", false),
            ("data:text/html,x", false),
            ("vbscript:x", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(is_safe(destination), safe, "{destination:?}");
        }
    }

    #[test]
    fn local_paths_stay_in_the_folder() {
        for (destination, local) in [
            ("plan.png", true),
            ("./figures/plan.png", true),
            ("../secret.png", false),
            ("figures/../../secret.png", false),
            ("/etc/plan.png", false),
            ("https://example.org/plan.png", false),
            ("", false),
        ] {
            assert_eq!(local_path(destination).is_some(), local, "{destination:?}");
        }
    }
}
