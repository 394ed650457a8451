//! Pure: texts with placeholders for tool results.
//!
//! `{{exec}}`, `{{exec after 'sum is '}}`, `{{exec after 'is ' before ','}}`. There are no
//! computations: a model that repeats what it read needs none.

use std::fmt;

/// The longest text taken from a result, in characters.
const TAKEN_CHARS_MAX: usize = 2_000;

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Template(Vec<TemplatePiece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    Place(Placeholder),
}

/// A placeholder, and the part of a result that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Placeholder {
    tool: String,
    after: Option<String>,
    before: Option<String>,
}

/// A text is not a valid template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    #[error("'{{{{' without '}}}}' (write '{{{{{{{{' for two braces)")]
    Unclosed,
    #[error("'{{{{{0}}}}}' is no place: write TOOL, and after it `after 'TEXT'`, `before 'TEXT'`")]
    Place(String),
}

impl Template {
    /// Parses a template.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, found)) = rest.split_once("{{") {
            push_text(&mut pieces, before);
            if let Some(escaped) = found.strip_prefix("{{") {
                push_text(&mut pieces, "{{");
                rest = escaped;
                continue;
            }
            let (inner, after) = found.split_once("}}").ok_or(TemplateError::Unclosed)?;
            let place =
                Placeholder::parse(inner).ok_or_else(|| TemplateError::Place(inner.to_owned()))?;
            pieces.push(TemplatePiece::Place(place));
            rest = after;
        }
        push_text(&mut pieces, rest);
        Ok(Self(pieces))
    }

    /// Returns true if the text is always empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fills every placeholder from the tools' last results.
    pub(crate) fn fill<'a>(
        &self,
        result: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                TemplatePiece::Text(fixed) => text.push_str(fixed),
                TemplatePiece::Place(place) => text.push_str(&place.take(&result)?),
            }
        }
        Ok(text)
    }
}

fn push_text(pieces: &mut Vec<TemplatePiece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(TemplatePiece::Text(before)) => before.push_str(text),
        _ => pieces.push(TemplatePiece::Text(text.to_owned())),
    }
}

impl Placeholder {
    fn parse(inner: &str) -> Option<Self> {
        let inner = inner.trim();
        let end = inner.find(' ').unwrap_or(inner.len());
        let (tool, rest) = inner.split_at(end);
        let (after, rest) = quoted(rest, "after")?;
        let (before, rest) = quoted(rest, "before")?;
        let named =
            !tool.is_empty() && tool.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        (named && rest.trim().is_empty()).then(|| Self { tool: tool.to_owned(), after, before })
    }

    fn take<'a>(&self, result: impl Fn(&str) -> Option<&'a str>) -> Result<String, String> {
        let tool = &self.tool;
        let whole =
            result(tool).ok_or_else(|| format!("there was no result of {tool} to quote"))?;
        let absent = |text: &str| format!("the result of {tool} did not contain '{text}' to quote");
        let mut part = whole;
        if let Some(after) = &self.after {
            part = part.split_once(after.as_str()).ok_or_else(|| absent(after))?.1;
        }
        part = match (&self.before, &self.after) {
            (Some(before), _) => part.split_once(before.as_str()).ok_or_else(|| absent(before))?.0,
            (None, Some(_)) => part.lines().next().unwrap_or_default(),
            (None, None) => part,
        };
        Ok(part.trim().chars().take(TAKEN_CHARS_MAX).collect())
    }
}

/// Parses `KEYWORD 'TEXT'` if it is there. Returns it with the rest. Returns `None` if the
/// keyword has no text.
fn quoted<'a>(text: &'a str, keyword: &str) -> Option<(Option<String>, &'a str)> {
    let Some(rest) = text.trim_start().strip_prefix(keyword) else {
        return Some((None, text));
    };
    let (quoted, rest) = rest.trim_start().strip_prefix('\'')?.split_once('\'')?;
    (!quoted.is_empty()).then(|| (Some(quoted.to_owned()), rest))
}

impl fmt::Display for Template {
    /// Formats the template as it is written in a story.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.0 {
            match piece {
                TemplatePiece::Text(text) => f.write_str(&text.replace("{{", "{{{{"))?,
                TemplatePiece::Place(Placeholder { tool, after, before }) => {
                    write!(f, "{{{{{tool}")?;
                    for (keyword, text) in [("after", after), ("before", before)] {
                        if let Some(text) = text {
                            write!(f, " {keyword} '{text}'")?;
                        }
                    }
                    f.write_str("}}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(template: &str, result: &str, expected: &str) {
        let parsed = Template::parse(template).unwrap();
        assert_eq!(parsed.fill(|tool| (tool == "exec").then_some(result)).unwrap(), expected);
    }

    #[test]
    fn takes_a_whole_result_or_a_part_of_it() {
        let result = "exit_code: 0\nstdout: The sum is 5050, says sh\nstderr: \n";
        check("{{exec after 'sum is ' before ','}}!", result, "5050!");
        check("{{exec after 'stdout: '}}", result, "The sum is 5050, says sh");
        check("{{exec before '\n'}}", result, "exit_code: 0");
        check("<{{ exec }}>", " whole\n", "<whole>");
        check("a {{{{ b }} {{exec}}", "c", "a {{ b }} c");
    }

    #[test]
    fn says_what_cannot_be_quoted() {
        let fill = |template: &str| {
            Template::parse(template).unwrap().fill(|t| (t == "exec").then_some("x")).unwrap_err()
        };
        assert_eq!(fill("{{read_file}}"), "there was no result of read_file to quote");
        assert_eq!(fill("{{exec after 'y'}}"), "the result of exec did not contain 'y' to quote");
    }

    #[test]
    fn refuses_what_is_no_place() {
        for bad in ["{{", "{{exec", "{{}}", "{{a b}}", "{{exec after}}", "{{exec after ''}}"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
        let error = Template::parse("a {{one two}}").unwrap_err().to_string();
        assert!(error.starts_with("'{{one two}}' is no place: write TOOL"), "{error}");
        assert!(TemplateError::Unclosed.to_string().starts_with("'{{' without '}}' (write '{{{{'"));
    }

    proptest! {
        #[test]
        fn any_text_is_kept_or_refused_and_what_is_printed_means_the_same(text in ".{0,40}|[{}a' ]{0,30}") {
            if !text.contains("{{") {
                let parsed = Template::parse(&text).unwrap();
                prop_assert_eq!(parsed.fill(|_| None).unwrap(), text.clone());
            }
            if let Ok(parsed) = Template::parse(&text) {
                prop_assert_eq!(Template::parse(&parsed.to_string()), Ok(parsed));
            }
        }
    }
}
