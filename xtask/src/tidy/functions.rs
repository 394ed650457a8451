//! Pure: the functions of a file and their lengths.

use crate::lexer::Token;

use super::items::after_group;

/// A function with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of its signature.
    pub(crate) line: usize,
    /// Lines from the signature through the closing brace.
    pub(crate) lines: usize,
}

/// Every function with a body, nested ones too.
pub(crate) fn functions(tokens: &[Token<'_>]) -> Vec<Function> {
    let starts = tokens.windows(2).enumerate().filter(|(_, pair)| {
        // `fn(` is a type.
        pair[0].text == "fn" && pair[1].is_word()
    });
    starts.filter_map(|(at, pair)| function(tokens, at, pair[1].text)).collect()
}

fn function(tokens: &[Token<'_>], start: usize, name: &str) -> Option<Function> {
    let mut at = start;
    loop {
        match tokens.get(at)?.text {
            ";" => return None,
            "{" => break,
            "(" | "[" => at = after_group(tokens, at),
            _ => at += 1,
        }
    }
    let last = tokens[after_group(tokens, at) - 1].line;
    let line = tokens[start].line;
    Some(Function { name: name.to_owned(), line, lines: last + 1 - line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    #[test]
    fn measures_functions_with_bodies() {
        let code = "\
trait A { fn none(&self); fn one(&self) -> [u8; 2] { [1, 2] } }
fn three<T>(a: fn(u8) -> u8) -> T
where T: B {
}
fn outer() {
    fn inner() {
    }
}
";
        let found = functions(&tokens(code));
        let lengths: Vec<(&str, usize, usize)> =
            found.iter().map(|one| (one.name.as_str(), one.line, one.lines)).collect();
        assert_eq!(lengths, [("one", 1, 1), ("three", 2, 3), ("outer", 5, 4), ("inner", 6, 2)]);
    }
}
