//! Pure: the output of programs that is known before they run.
//!
//! Commands can be hidden in the output of `echo`, `printf` or a decoder. Only certain output is
//! returned. Otherwise the result is `None`.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::ShellCommand;

/// Base64 as decoders read it, padded or not.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The longest `printf` output that is computed, in bytes, since it repeats its format.
const FORMATTED_BYTES_MAX: usize = 64 * 1024;
/// The most characters of a `tr` set.
const CLASS_CHARS_MAX: usize = 256;

/// Returns the output of a command, if it is known. `input` is its standard input.
pub(super) fn output(command: &ShellCommand, input: Option<&str>) -> Option<String> {
    let arguments = command.arguments();
    let has = |flags: &[&str]| arguments.iter().any(|a| flags.contains(&a.as_str()));
    match command.program() {
        "" | ":" | "true" | "cd" | "export" | "alias" | "set" | "read" => Some(String::new()),
        "echo" => {
            let is_flag = |word: &&String| {
                word.len() > 1
                    && word.starts_with('-')
                    && word[1..].chars().all(|c| "neE".contains(c))
            };
            let flags: String = arguments.iter().take_while(is_flag).map(String::as_str).collect();
            let words: Vec<&str> =
                arguments.iter().skip_while(is_flag).map(String::as_str).collect();
            let text = words.join(" ");
            let text = if flags.contains('e') { unescape(&text) } else { text };
            Some(if flags.contains('n') { text } else { text + "\n" })
        }
        "printf" => {
            let (format, values) = arguments.split_first()?;
            printf_output(format, values)
        }
        "cat" | "tee" if arguments.iter().all(|word| command.program() == "tee" || word == "-") => {
            input.map(str::to_owned)
        }
        "base64" if has(&["-d", "-D", "--decode", "-di"]) => base64_decoded(input?),
        "openssl" if has(&["-d"]) && has(&["base64", "-base64", "-a"]) => base64_decoded(input?),
        "xxd" if has(&["-r", "-rp", "-pr"]) => {
            let digits: String = input?.split_whitespace().collect();
            String::from_utf8(hex::decode(digits).ok()?).ok()
        }
        "ls" => ls_output(arguments),
        "rev" => Some(input?.lines().map(|l| l.chars().rev().collect::<String>() + "\n").collect()),
        "tr" => tr_output(input?, arguments.first()?, arguments.get(1)?),
        _ => None,
    }
}

/// Returns the output of `ls`: everything in the folder, or the given patterns.
fn ls_output(arguments: &[String]) -> Option<String> {
    let names: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let is_pattern = |name: &&String| name.contains(['*', '?', '[']);
    match names.is_empty() {
        true => Some("*\n".to_owned()),
        false if names.iter().all(is_pattern) => {
            Some(names.iter().map(|name| format!("{name}\n")).collect())
        }
        false => None,
    }
}

fn base64_decoded(text: &str) -> Option<String> {
    let digits: String = text.split_whitespace().collect();
    String::from_utf8(LENIENT.decode(digits).ok()?).ok()
}

/// Returns the output of `printf`. Every conversion takes the next argument as text.
fn printf_output(format: &str, values: &[String]) -> Option<String> {
    let mut text = String::new();
    let mut values = values.iter();
    loop {
        let before = values.len();
        let mut rest = format;
        while let Some((plain, conversion)) = rest.split_once('%') {
            text.push_str(&unescape(plain));
            let end = conversion.find(|c: char| c.is_ascii_alphabetic() || c == '%');
            let at = end.unwrap_or(conversion.len());
            match conversion.get(at..=at) {
                Some("%") => text.push('%'),
                Some("b") => text.push_str(&unescape(values.next().map_or("", String::as_str))),
                _ => text.push_str(values.next().map_or("", String::as_str)),
            }
            rest = conversion.get(at + 1..).unwrap_or("");
        }
        text.push_str(&unescape(rest));
        // The format is repeated while arguments remain.
        if values.len() == 0 || values.len() == before {
            return Some(text);
        }
        if text.len() > FORMATTED_BYTES_MAX {
            return None;
        }
    }
}

/// Resolves `
/// `, `\x41`, `\101` and similar escapes.
fn unescape(text: &str) -> String {
    let mut made = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            made.push(c);
            continue;
        }
        let (radix, digits_max) = match rest.peek() {
            Some('x') => (16, 2),
            Some('0') => (8, 4),
            Some('1'..='7') => (8, 3),
            _ => (0, 0),
        };
        if radix == 0 {
            match rest.next() {
                Some('n') => made.push('\n'),
                Some('t') => made.push('\t'),
                Some('\\') | None => made.push('\\'),
                Some(other) => made.extend(['\\', other]),
            }
            continue;
        }
        rest.next_if_eq(&'x');
        let mut code = 0;
        for _ in 0..digits_max {
            let Some(digit) = rest.peek().and_then(|c| c.to_digit(radix)) else { break };
            code = code * radix + digit;
            rest.next();
        }
        made.extend(char::from_u32(code));
    }
    made
}

/// Returns the output of `tr`: each character of one set becomes that of the other.
fn tr_output(text: &str, from: &str, to: &str) -> Option<String> {
    let from = set_members(from)?;
    let to = set_members(to)?;
    let translate = |c: char| match from.iter().position(|known| *known == c) {
        Some(at) => to.get(at).or(to.last()).copied().unwrap_or(c),
        None => c,
    };
    Some(text.chars().map(translate).collect())
}

/// Returns the characters of a set such as `a-zA-Z`.
fn set_members(set: &str) -> Option<Vec<char>> {
    let given: Vec<char> = set.chars().collect();
    let mut found = Vec::new();
    let mut rest = given.as_slice();
    while found.len() <= CLASS_CHARS_MAX {
        rest = match rest {
            [first, '-', last, rest @ ..] if first.is_ascii() && last.is_ascii() => {
                found.extend(*first..=*last);
                rest
            }
            [one, rest @ ..] => {
                found.push(*one);
                rest
            }
            [] => return Some(found),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str], input: Option<&str>) -> Option<String> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        output(&ShellCommand { words, ..ShellCommand::default() }, input)
    }

    #[test]
    fn what_is_certain_is_told() {
        let check = |words: &[&str], input, expected: &str| {
            assert_eq!(said(words, input).as_deref(), Some(expected), "{words:?}");
        };
        check(&["echo", "a", "b"], None, "a b\n");
        check(&["echo", "-ne", "\\x72m"], None, "rm");
        check(&["printf", "\\162\\x6d %s-%5s\\n", "a", "b"], None, "rm a-b\n");
        check(&["printf", "%s,", "a", "b"], None, "a,b,");
        check(&["printf", "100%%"], None, "100%");
        check(&["cat"], Some("x"), "x");
        check(&["base64", "-d"], Some("cm0gLXJmIH4\n"), "rm -rf ~");
        check(&["openssl", "enc", "-base64", "-d"], Some("cm0="), "rm");
        check(&["xxd", "-r", "-p"], Some("72 6d\n"), "rm");
        check(&["rev"], Some("mr"), "rm\n");
        check(&["tr", "A-Za-z", "N-ZA-Mn-za-m"], Some("ez"), "rm");
        for unknown in
            [["base64", "-d"], ["xxd", "-r"], ["cat", "file"], ["date", ""], ["printf", ""]]
        {
            let expected = if unknown[0] == "printf" { Some(String::new()) } else { None };
            assert_eq!(said(&unknown, None), expected, "{unknown:?}");
        }
        assert_eq!(said(&["base64", "-d"], Some("!")), None);
    }
}
