//! Cleans what ECharts drew, so that it is well formed, safe and fit to stand beside other charts
//! on one page. Entry: [`clean`].
//!
//! ECharts escapes texts but not every attribute, and numbers its ids and classes the same way in
//! every drawing. So each tag is read; elements and attributes that a drawing has no use for
//! (scripts, links, style sheets for hovering, its own data attributes) are left out or refused, and
//! ids get the chart's own prefix.

use std::borrow::Cow;
use std::fmt::Write;

/// What the SVG says to readers who cannot see it.
pub struct Description<'a> {
    /// Prefix of every id; unique in a page.
    pub id: &'a str,
    pub title: Option<&'a str>,
    pub description: &'a str,
}

const ELEMENTS: &[&str] = &[
    "svg",
    "g",
    "defs",
    "path",
    "rect",
    "circle",
    "ellipse",
    "line",
    "polyline",
    "polygon",
    "text",
    "tspan",
    "clipPath",
    "mask",
    "pattern",
    "linearGradient",
    "radialGradient",
    "stop",
];

#[derive(Debug, PartialEq)]
struct Tag<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
    closing: bool,
    empty: bool,
}

/// The drawing made fit for a page. The error says what is wrong with it.
pub fn clean(svg: &str, about: &Description) -> Result<String, String> {
    let mut output = String::with_capacity(svg.len());
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    loop {
        let tag_start = rest.find('<').unwrap_or(rest.len());
        let text = &rest[..tag_start];
        if !text.trim().is_empty() {
            output.push_str(checked_text(text)?);
        }
        rest = &rest[tag_start..];
        if rest.is_empty() {
            break;
        }
        if rest.starts_with("<style") {
            let end = rest.find("</style>").ok_or("a style sheet without end")?;
            rest = &rest[end + "</style>".len()..];
            continue;
        }
        let (tag, after) = read_tag(rest)?;
        rest = after;
        if !ELEMENTS.contains(&tag.name) {
            return Err(format!("a drawing has no use for `<{}>`", tag.name));
        }
        if tag.closing {
            if open.pop() != Some(tag.name) {
                return Err(format!("`</{}>` closes nothing", tag.name));
            }
            let _ = writeln!(output, "</{}>", tag.name);
            continue;
        }
        if is_invisible(&tag) && rest.starts_with("</path>") {
            rest = &rest["</path>".len()..];
            continue;
        }
        write_tag(&mut output, &tag, open.is_empty(), about)?;
        if !tag.empty {
            open.push(tag.name);
        }
    }
    match open.last() {
        Some(name) => Err(format!("`<{name}>` is never closed")),
        None => Ok(output),
    }
}

/// Areas that only listen to the mouse.
fn is_invisible(tag: &Tag) -> bool {
    let has = |name, value| tag.attributes.contains(&(name, value));
    tag.name == "path"
        && (has("fill", "transparent") && !tag.attributes.iter().any(|(name, _)| *name == "stroke")
            || has("fill-opacity", "0") && has("stroke-width", "0"))
}

fn write_tag(
    output: &mut String,
    tag: &Tag,
    is_root: bool,
    about: &Description,
) -> Result<(), String> {
    let _ = write!(output, "<{}", tag.name);
    if is_root {
        let labels = match about.title {
            Some(_) => format!("{0}-title {0}-desc", about.id),
            None => format!("{}-desc", about.id),
        };
        let _ = write!(output, " role=\"img\" aria-labelledby=\"{labels}\"");
    }
    for (name, value) in &tag.attributes {
        if let Some(value) = kept(name, value, about.id)? {
            let _ = write!(output, " {name}=\"{value}\"");
        }
    }
    output.push_str(if tag.empty { "/>" } else { ">" });
    if is_root {
        if let Some(title) = about.title {
            let _ = write!(
                output,
                "\n<title id=\"{}-title\">{}</title>",
                about.id,
                escape(title)
            );
        }
        let description = escape(about.description);
        let _ = writeln!(
            output,
            "\n<desc id=\"{}-desc\">{description}</desc>",
            about.id
        );
    } else if tag.empty {
        output.push('\n');
    }
    Ok(())
}

/// The attribute as it is written, None: left out.
fn kept<'a>(name: &str, value: &'a str, id: &str) -> Result<Option<Cow<'a, str>>, String> {
    if name == "class" || name.starts_with("ecmeta") || name == "baseProfile" || name == "version" {
        return Ok(None);
    }
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("on") || lower.ends_with("href") {
        return Err(format!("a drawing has no use for the attribute `{name}`"));
    }
    let value_lower = value.to_ascii_lowercase();
    let local = value_lower.replace("url(#", "");
    if local.contains("url(") || local.contains("javascript:") {
        return Err(format!("`{name}` refers to something outside the drawing"));
    }
    checked_text(value)?;
    // ECharts names its clip paths, gradients and patterns `zr0-c0`, `zr0-g1` ….
    if name == "id" {
        return Ok(Some(
            format!("{id}-{}", value.trim_start_matches("zr0-")).into(),
        ));
    }
    Ok(Some(if value.contains("url(#zr0-") {
        value.replace("url(#zr0-", &format!("url(#{id}-")).into()
    } else {
        value.into()
    }))
}

/// Text or an attribute's value as XML wants it: every `&` begins an entity that XML itself knows.
fn checked_text(text: &str) -> Result<&str, String> {
    for (at, _) in text.match_indices('&') {
        let entity = text[at + 1..].split_once(';').map_or("", |(name, _)| name);
        let known = matches!(entity, "lt" | "gt" | "amp" | "quot" | "apos")
            || entity.strip_prefix('#').is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|b| b.is_ascii_alphanumeric())
            });
        if !known {
            return Err("a bare `&`".to_owned());
        }
    }
    if text.contains('<') {
        return Err("a bare `<`".to_owned());
    }
    match text.chars().find(|&c| is_forbidden(c)) {
        Some(c) => Err(format!("the character U+{:04X}", u32::from(c))),
        None => Ok(text),
    }
}

/// What XML 1.0 cannot hold, not even as an entity.
fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Text without the characters that no SVG can hold.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(is_forbidden) {
        text.replace(is_forbidden, "\u{fffd}").into()
    } else {
        text.into()
    }
}

fn read_tag(text: &str) -> Result<(Tag<'_>, &str), String> {
    let mut rest = &text[1..];
    let closing = rest.starts_with('/');
    rest = rest.strip_prefix('/').unwrap_or(rest);
    let name_end = rest
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(rest.len());
    let (name, mut rest) = rest.split_at(name_end);
    let mut attributes: Vec<(&str, &str)> = Vec::new();
    loop {
        let trimmed = rest.trim_start();
        if let Some(after) = trimmed.strip_prefix('>') {
            let tag = Tag {
                name,
                attributes,
                closing,
                empty: false,
            };
            return Ok((tag, after));
        }
        if let Some(after) = trimmed.strip_prefix("/>") {
            let tag = Tag {
                name,
                attributes,
                closing,
                empty: true,
            };
            return Ok((tag, after));
        }
        let broken = || format!("`<{name}>` is broken");
        if trimmed.len() == rest.len() {
            return Err(broken());
        }
        let (attribute, after) = trimmed.split_once("=\"").ok_or_else(broken)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_:".contains(c);
        if attribute.is_empty() || !attribute.chars().all(is_name) {
            return Err(broken());
        }
        let (value, after) = after.split_once('"').ok_or_else(broken)?;
        if attributes.iter().any(|(name, _)| *name == attribute) {
            return Err(format!("`<{name}>` has `{attribute}` twice"));
        }
        attributes.push((attribute, value));
        rest = after;
    }
}

/// Text for the inside of an XML element.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: Description = Description {
        id: "chart-a",
        title: Some("A < B"),
        description: "x & y",
    };

    #[test]
    fn ids_are_prefixed_and_ballast_is_left_out() {
        let svg = concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" version="1.1" viewBox="0 0 1 1">"#,
            r#"<clipPath id="zr0-c0"><rect class="zr0-cls-1" width="1"/></clipPath>"#,
            r#"<path fill="transparent" d="M0 0"></path>"#,
            r#"<g clip-path="url(#zr0-c0)"><text ecmeta_x="1">a &amp; b</text></g>"#,
            "<style ><![CDATA[.x:hover{}]]></style></svg>",
        );
        assert_eq!(
            clean(svg, &ABOUT).unwrap().replace('\n', ""),
            concat!(
                r#"<svg role="img" aria-labelledby="chart-a-title chart-a-desc" "#,
                r#"xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1">"#,
                r#"<title id="chart-a-title">A &lt; B</title>"#,
                r#"<desc id="chart-a-desc">x &amp; y</desc>"#,
                r#"<clipPath id="chart-a-c0"><rect width="1"/></clipPath>"#,
                r#"<g clip-path="url(#chart-a-c0)"><text>a &amp; b</text></g></svg>"#,
            )
        );
    }

    #[test]
    fn what_is_unsafe_or_broken_is_refused() {
        for (svg, why) in [
            ("<svg><script>1</script></svg>", "`<script>`"),
            ("<svg><image x=\"1\"/></svg>", "`<image>`"),
            ("<svg><foreignObject/></svg>", "`<foreignObject>`"),
            ("<svg onload=\"x\"></svg>", "`onload`"),
            ("<svg><g xlink:href=\"#a\"/></svg>", "`xlink:href`"),
            ("<svg fill=\"url(http://a.example/)\"></svg>", "outside"),
            ("<svg><g></svg>", "closes nothing"),
            ("<svg><g>", "never closed"),
            ("<svg>a & b</svg>", "bare `&`"),
            ("<svg>a &nbsp; b</svg>", "bare `&`"),
            ("<svg a=\"1\"b=\"2\"></svg>", "broken"),
            ("<svg a=\"1\" a=\"2\"></svg>", "twice"),
            ("<svg a=\"<\"></svg>", "bare `<`"),
            ("<svg a></svg>", "broken"),
            ("<svg>\u{1}</svg>", "U+0001"),
        ] {
            let error = clean(svg, &ABOUT).unwrap_err();
            assert!(error.contains(why), "{svg}: {error}");
        }
    }
}
