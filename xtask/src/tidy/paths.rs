//! Pure: the paths that a file names, with the trees of `use` spelled out.

use crate::lexer::Token;

/// Words before `::` at which a path from the root begins, not goes on.
const KEYWORDS: [&str; 12] =
    ["as", "dyn", "else", "for", "if", "impl", "in", "match", "mut", "return", "use", "where"];

/// A path such as `std::fs::read`. A glob ends with `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPath<'a> {
    pub(crate) segments: Vec<&'a str>,
    /// The line of the last segment.
    pub(crate) line: usize,
}

impl NamedPath<'_> {
    /// Whether the path is `prefix` or lies below it.
    pub(crate) fn is_below(&self, prefix: &[&str]) -> bool {
        self.segments.starts_with(prefix)
    }

    /// Whether the path brings in a parent of `prefix`, through which all of it can be named.
    pub(crate) fn imports_parent_of(&self, prefix: &[&str]) -> bool {
        let (own, glob) = match self.segments.split_last() {
            Some((&("*" | "self"), rest)) => (rest, true),
            _ => (&self.segments[..], false),
        };
        prefix.starts_with(own) && own.len() < prefix.len() && (glob || own.len() > 1)
    }
}

/// Every path of the code. Generic arguments are paths of their own.
pub(crate) fn paths<'a>(tokens: &[Token<'a>]) -> Vec<NamedPath<'a>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if begins_path(tokens, at) {
            at = expand(tokens, at, &[], &mut found);
        } else {
            at += 1;
        }
    }
    found
}

fn begins_path(tokens: &[Token<'_>], at: usize) -> bool {
    let is_name = |token: &Token<'_>| token.is_word() && !KEYWORDS.contains(&token.text);
    if !is_name(&tokens[at]) {
        return false;
    }
    match at.checked_sub(1).map(|before| tokens[before].text) {
        Some(".") => false,
        // `::std::fs` begins at the root; `<T as A>::b` goes on.
        Some("::") => at < 2 || !(is_name(&tokens[at - 2]) || tokens[at - 2].text == ">"),
        _ => true,
    }
}

/// Reads a path, or the group of a use tree, and returns the index after it.
fn expand<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    prefix: &[&'a str],
    found: &mut Vec<NamedPath<'a>>,
) -> usize {
    let mut segments = prefix.to_vec();
    let mut line = tokens[at].line;
    loop {
        match tokens.get(at) {
            Some(token) if token.text == "{" => return expand_group(tokens, at, &segments, found),
            Some(token) if token.is_word() || token.text == "*" => {
                segments.push(token.text);
                line = token.line;
                at += 1;
            }
            _ => break,
        }
        if tokens.get(at).is_none_or(|token| token.text != "::") {
            break;
        }
        at += 1;
    }
    found.push(NamedPath { segments, line });
    at
}

fn expand_group<'a>(
    tokens: &[Token<'a>],
    open: usize,
    prefix: &[&'a str],
    found: &mut Vec<NamedPath<'a>>,
) -> usize {
    let mut at = open + 1;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "}" => return at + 1,
            "as" => at += 2,
            text if token.is_word() || text == "*" || text == "{" => {
                at = expand(tokens, at, prefix, found);
            }
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    fn check(code: &str, expected: &[&str]) {
        let tokens = tokens(code);
        let found: Vec<String> = paths(&tokens)
            .iter()
            .filter(|path| path.segments.len() > 1)
            .map(|path| path.segments.join("::"))
            .collect();
        assert_eq!(found, expected, "{code}");
    }

    #[test]
    fn use_trees_are_spelled_out() {
        check("use a::b;", &["a::b"]);
        check(
            "use a::{b, c::{d as e, self}, f::*};",
            &["a::b", "a::c::d", "a::c::self", "a::f::*"],
        );
        check("use ::a::b as c;", &["a::b"]);
        check("use {a::b, c::d};", &["a::b", "c::d"]);
    }

    #[test]
    fn expressions_and_types_have_paths() {
        check(
            "let x: a::B<c::D> = e::f::<g::H>(i.j::<k::L>());",
            &["a::B", "c::D", "e::f", "g::H", "k::L"],
        );
        check("<T as a::B>::c()", &["a::B"]);
        check("match x { a::B { c } => d::E }", &["a::B", "d::E"]);
    }

    #[test]
    fn parents_are_known() {
        let prefix = ["std", "time", "SystemTime"];
        let cases =
            [("std::time", true), ("std::*", true), ("std::time::*", true), ("std::fmt", false)];
        for (code, parent) in cases {
            let tokens = tokens(code);
            assert_eq!(paths(&tokens)[0].imports_parent_of(&prefix), parent, "{code}");
        }
    }
}
