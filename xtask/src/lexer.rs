//! Pure: tells the code of a Rust file from its comments and literals.
//!
//! Just enough of the lexical grammar for textual rules: nested comments, raw
//! and byte strings, character literals against lifetimes. It must never judge
//! syntax: text that does not compile still gets an answer.

/// What a stretch of source text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Comment,
    Text,
    Char,
}

/// A comment or literal, as a byte range of the source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) class: Class,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// An identifier, number, lifetime or punctuation of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// Counted from 1.
    pub(crate) line: usize,
    /// Offset of the first byte in the file.
    pub(crate) start: usize,
}

impl Token<'_> {
    /// Whether this is an identifier, a keyword or a number.
    pub(crate) fn is_word(&self) -> bool {
        self.text.bytes().next().is_some_and(is_word)
    }
}

/// Finds every comment and literal, in order.
pub(crate) fn pieces(source: &str) -> Vec<Piece> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (class, length) = match rest {
            [b'/', b'/', ..] => (Some(Class::Comment), line_length(rest)),
            [b'/', b'*', ..] => (Some(Class::Comment), block_comment_length(rest)),
            [b'"', ..] => (Some(Class::Text), quoted_length(rest, b'"')),
            [b'\'', ..] => match char_length(rest) {
                Some(length) => (Some(Class::Char), length),
                None => (None, 1),
            },
            [first, ..] if is_word(*first) => word_or_literal(rest),
            _ => (None, 1),
        };
        if let Some(class) = class {
            found.push(Piece { class, start: at, end: at + length });
        }
        at += length;
    }
    found
}

/// The source with comments and literals blanked: same length, same lines.
/// A string leaves its outermost quotes behind, so that it is still a token.
pub(crate) fn code_only(source: &str, pieces: &[Piece]) -> String {
    let mut bytes = source.as_bytes().to_vec();
    for piece in pieces {
        for byte in &mut bytes[piece.start..piece.end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        if piece.class == Class::Text {
            bytes[piece.start] = b'"';
            bytes[piece.end - 1] = b'"';
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Splits blanked code into tokens. Joins only the punctuation that rules look at.
pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest {
            [b'\n', ..] => {
                line += 1;
                at += 1;
                continue;
            }
            [first, ..] if first.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            [first, ..] if is_word(*first) => word_length(rest),
            [b'\'', next, ..] if is_word(*next) => 1 + word_length(&rest[1..]),
            [b':', b':', ..] | [b'-' | b'=', b'>', ..] | [b'=' | b'!' | b'<' | b'>', b'=', ..] => 2,
            _ => 1,
        };
        found.push(Token { text: &code[at..at + length], line, start: at });
        at += length;
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn word_length(rest: &[u8]) -> usize {
    rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len())
}

fn line_length(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

fn block_comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Length of a literal from its opening quote through the first unescaped one.
fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of a character literal, or nothing when the quote begins a lifetime.
fn char_length(rest: &[u8]) -> Option<usize> {
    let first = *rest.get(1)?;
    if first == b'\\' {
        return Some(quoted_length(rest, b'\''));
    }
    let width = match first {
        0..=0x7f => 1,
        0x80..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

/// A word, or the string literal that its letters are the prefix of.
fn word_or_literal(rest: &[u8]) -> (Option<Class>, usize) {
    let word = word_length(rest);
    let after = &rest[word..];
    match (&rest[..word], after.first()) {
        (b"b" | b"c", Some(b'"')) => (Some(Class::Text), word + quoted_length(after, b'"')),
        (b"b", Some(b'\'')) => (Some(Class::Char), word + quoted_length(after, b'\'')),
        (b"r" | b"br" | b"cr", Some(b'"' | b'#')) => match raw_length(after) {
            Some(length) => (Some(Class::Text), word + length),
            None => (None, word),
        },
        _ => (None, word),
    }
}

/// Length of `#*"…"#*`, or nothing for a raw identifier.
fn raw_length(rest: &[u8]) -> Option<usize> {
    let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
    if rest.get(hashes) != Some(&b'"') {
        return None;
    }
    let mut closing = vec![b'"'];
    closing.resize(hashes + 1, b'#');
    let body = &rest[hashes + 1..];
    let end = body.windows(closing.len()).position(|window| window == closing);
    Some(end.map_or(rest.len(), |end| hashes + 1 + end + closing.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, code: &str) {
        let blanked = code_only(source, &pieces(source));
        assert_eq!(blanked.len(), source.len(), "{source:?} must keep its length");
        let words: Vec<&str> = tokens(&blanked).iter().map(|token| token.text).collect();
        assert_eq!(words.join(" "), code, "in {source:?}");
    }

    #[test]
    fn comments_are_no_code() {
        check("a // b\nc", "a c");
        check("a /* b /* c */ d */ e", "a e");
        check("a /* never closed", "a");
        check("//! doc\nmod x;", "mod x ;");
    }

    #[test]
    fn literals_are_no_code() {
        check(r#"f("a // b", c)"#, r#"f ( " " , c )"#);
        check(r#"f("a \" b", c)"#, r#"f ( " " , c )"#);
        check("f(r\"\\\", c)", r#"f ( " " , c )"#);
        check("f(r##\"a \"# b\"##, c)", r#"f ( " " , c )"#);
        check("f(b\"a\", br#\"b\"#, c)", r#"f ( " " , " " , c )"#);
        check("let q = '\"'; let e = '\\''; let u = 'é';", "let q = ; let e = ; let u = ;");
        check("b'\\'' x", "x");
    }

    #[test]
    fn lifetimes_and_raw_names_are_code() {
        check("fn f<'a>(x: &'a str)", "fn f < 'a > ( x : & 'a str )");
        check("r#async x", "r # async x");
        check("a::b => c == d", "a :: b => c == d");
    }

    #[test]
    fn tokens_know_their_line() {
        let source = "a\n\"x\ny\" b\n";
        let blanked = code_only(source, &pieces(source));
        let lines: Vec<usize> = tokens(&blanked).iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 3, 3]);
    }

    #[test]
    fn text_that_is_not_rust_still_gets_an_answer() {
        for source in ["\"", "'", "r#\"", "/*", "b'", "r####", "\\", "é'é"] {
            assert_eq!(code_only(source, &pieces(source)).len(), source.len());
        }
    }
}
