//! Pure: just enough of Rust's items for the rules: attributes, brackets, ends.

use crate::lexer::Token;

/// The index after the closing bracket that matches the opening one at `open`.
pub(crate) fn after_group(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, token) in tokens[open..].iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return open + offset + 1;
        }
    }
    tokens.len()
}

/// The tokens inside the attribute that begins at `at`, and the index after it.
pub(crate) fn attribute<'t, 'a>(
    tokens: &'t [Token<'a>],
    at: usize,
) -> Option<(&'t [Token<'a>], usize)> {
    if tokens.get(at)?.text != "#" {
        return None;
    }
    let open = if tokens.get(at + 1)?.text == "!" { at + 2 } else { at + 1 };
    if tokens.get(open)?.text != "[" {
        return None;
    }
    let end = after_group(tokens, open);
    Some((&tokens[open + 1..(end - 1).max(open + 1)], end))
}

/// Whether an attribute leaves its item to tests alone.
pub(crate) fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    let has = |word: &str| attribute.iter().any(|token| token.text == word);
    match attribute.first() {
        Some(first) if first.text == "cfg" => has("test") && !has("not") && !has("any"),
        Some(first) => first.text == "test" && attribute.len() == 1,
        None => false,
    }
}

/// Whether an attribute leaves its item to a feature, which no product build has.
pub(crate) fn is_for_lab(attribute: &[Token<'_>]) -> bool {
    let has = |word: &str| attribute.iter().any(|token| token.text == word);
    attribute.first().is_some_and(|first| first.text == "cfg") && has("feature") && !has("not")
}

/// The first and last line of each item that only tests compile.
pub(crate) fn test_ranges(tokens: &[Token<'_>]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some((inner, end)) = attribute(tokens, at) else {
            at += 1;
            continue;
        };
        if !is_for_tests(inner) {
            at = end;
            continue;
        }
        let whole_file = tokens[at + 1].text == "!";
        let end = if whole_file { tokens.len() } else { item_end(tokens, end) };
        let first = if whole_file { 1 } else { tokens[at].line };
        found.push((first, tokens[end - 1].line));
        at = end;
    }
    found
}

/// The index after the item that begins at `at`, its further attributes included.
fn item_end(tokens: &[Token<'_>], mut at: usize) -> usize {
    while let Some((_, end)) = attribute(tokens, at) {
        at = end;
    }
    let ends_with_braces = !is_statement(&tokens[at..]);
    while at < tokens.len() {
        match tokens[at].text {
            ";" => return at + 1,
            "{" if ends_with_braces => return after_group(tokens, at),
            "(" | "[" | "{" => at = after_group(tokens, at),
            _ => at += 1,
        }
    }
    tokens.len()
}

/// Whether an item ends with a semicolon even when braces come before it.
fn is_statement(item: &[Token<'_>]) -> bool {
    let mut words = item.iter().filter(|token| token.is_word()).map(|token| token.text);
    let keyword = words.find(|word| !["pub", "crate", "super", "in", "self"].contains(word));
    match keyword {
        Some("use" | "static" | "let") => true,
        // `const fn` is a function all the same.
        Some("const") => !matches!(words.next(), Some("fn" | "unsafe" | "async" | "extern")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    #[test]
    fn finds_what_only_tests_compile() {
        let cases: [(&str, &[(usize, usize)]); 10] = [
            ("fn a() {}\n", &[]),
            ("#[cfg(test)]\nmod a {\n fn b() {}\n}\nfn c() {}", &[(1, 4)]),
            ("#[cfg(test)]\n#[path = \"x\"]\npub(crate) mod a;\nfn c() {}", &[(1, 3)]),
            ("#[cfg(test)]\nuse a::{\n b, c\n};\nfn d() {}", &[(1, 4)]),
            ("#[cfg(test)]\nconst A: B = B {\n c: 1\n};\nfn d() {}", &[(1, 4)]),
            ("#[cfg(test)]\nconst fn a() {\n}\nfn d() {}", &[(1, 3)]),
            ("#[cfg(not(test))]\nmod a {\n}", &[]),
            ("#[cfg(all(test, unix))]\nfn a(b: [u8; 3]) -> c {\n}\n", &[(1, 3)]),
            ("#[cfg(test)]\nfn a<const N: usize>() {\n}\nfn b() {}", &[(1, 3)]),
            ("mod a;\n#![cfg(test)]\nmod b;\n", &[(1, 3)]),
        ];
        for (code, ranges) in cases {
            assert_eq!(test_ranges(&tokens(code)), ranges, "{code}");
        }
    }

    #[test]
    fn brackets_that_never_close_end_with_the_file() {
        let code = tokens("#[cfg(test)] mod a { (");
        assert_eq!(test_ranges(&code), [(1, 1)]);
        assert_eq!(test_ranges(&tokens("#[cfg(test)")).len(), 1);
    }
}
