//! Pure: bounds the nesting of a script before it is parsed.
//!
//! The parser recurses, and a stack overflow ends the process. It also reads the inside of a
//! substitution again for each level around it. So everything that may open a level is counted
//! here without knowledge of the grammar. A bracket counts until its partner, if nothing
//! ambiguous is between them: then the parser also closes it there, whatever quoting it sees. An
//! ambiguous bracket, and each keyword, counts to the end of the script. The count may only be
//! too high.

use super::ScriptError;

/// The most levels of any kind. Each takes up to 6 KB of stack in an unoptimised build, and a
/// thread has 2 MB.
const LEVELS_MAX: usize = 64;
/// The most substitutions that are open at once.
const SUBSTITUTIONS_MAX: usize = 24;
/// The most work: the number of open substitutions, squared, times the length in bytes. The limit
/// is about 50 ms of an optimised build.
const WORK_MAX: usize = 2_000_000;
/// The most backticks without a certain partner. Each makes the parser try about half as often
/// again.
const TICKS_MAX: usize = 16;

/// The limit of braces squared times bytes: for each brace the parser searches its end. It is
/// about 40 ms of an optimised build.
const BRACES_MAX: usize = 1_000_000_000;
/// The most command ends. A list is as deep in the tree as it is long. Dropping the tree costs
/// about 130 bytes of stack for each.
const ENDS_MAX: usize = 2048;

/// Keywords after which the parser goes a level deeper.
const KEYWORDS: [&str; 11] =
    ["if", "elif", "while", "until", "for", "select", "case", "time", "coproc", "function", "else"];
/// Words after which another command begins.
const BEFORE_COMMAND: [&str; 9] =
    ["if", "then", "elif", "else", "do", "while", "until", "time", "!"];

/// Refuses a script with too much nesting. Returns the largest number of commands that it may
/// end.
pub(super) fn check(script: &str) -> Result<usize, ScriptError> {
    let mut open = OpenDelimiters::default();
    let mut ends = 0;
    let mut last = ' ';
    let work = |many: usize| many.saturating_pow(2).saturating_mul(script.len());
    if work(script.bytes().filter(|byte| *byte == b'{').count()) > BRACES_MAX {
        return Err(ScriptError::Nested);
    }
    let mut chars = script.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                let escaped = chars.next().map_or(' ', |(_, c)| c);
                if "'\"`(){}\\\n".contains(escaped) {
                    open.mark_ambiguous();
                }
            }
            '\'' | '"' | '`' => open.quote(c),
            '(' if chars.next_if(|(_, c)| *c == ')').is_some() => open.kept += 1,
            '(' => open.push(if "$<>=`".contains(last) { '$' } else { '(' }),
            '{' if last == '$' => open.push('{'),
            '{' if chars.peek().is_none_or(|(_, c)| c.is_whitespace()) => open.kept += 1,
            ')' => open.pop("($"),
            '}' => open.pop("{"),
            '#' if last.is_whitespace() => open.mark_ambiguous(),
            '!' if last.is_whitespace() && chars.peek().is_none_or(|(_, c)| c.is_whitespace()) => {
                open.kept += 1;
            }
            ';' | '&' | '|' | '\n' => ends += 1,
            c if c.is_ascii_alphabetic() && !is_name(last) => {
                let rest = script.get(at..).unwrap_or("");
                let word = rest.split(|c| !is_name(c)).next().unwrap_or("");
                if KEYWORDS.contains(&word) && begins_command(script.get(..at).unwrap_or("")) {
                    open.kept += 1 + usize::from(matches!(word, "function" | "coproc"));
                }
                if word == "case" {
                    open.mark_ambiguous();
                }
            }
            _ => {}
        }
        last = c;
        let deep = open.stack.len() + open.kept > LEVELS_MAX
            || open.substitutions > SUBSTITUTIONS_MAX
            || work(open.substitutions) > WORK_MAX;
        if deep || open.ticks > TICKS_MAX || ends > ENDS_MAX {
            return Err(ScriptError::Nested);
        }
    }
    Ok(ends)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-./".contains(c)
}

/// Returns true if a keyword may follow this text.
fn begins_command(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t']);
    let word = before.rsplit(|c| !is_name(c) && c != '!').next().unwrap_or("");
    before.is_empty()
        || before.ends_with(['\n', ';', '&', '|', '(', ')', '{', '}', '`', '\r'])
        || BEFORE_COMMAND.contains(&word)
}

/// The delimiters that may be open.
#[derive(Default)]
struct OpenDelimiters {
    /// Brackets and quotes whose partner may still come.
    stack: Vec<char>,
    /// The number of entries, from the bottom, whose partner cannot be recognised.
    doubted: usize,
    /// The levels without a bracket.
    kept: usize,
    /// The number of substitutions in the stack.
    substitutions: usize,
    /// The backticks without a certain partner.
    ticks: usize,
}

impl OpenDelimiters {
    fn unambiguous(&self) -> &[char] {
        self.stack.get(self.doubted..).unwrap_or(&[])
    }

    fn push(&mut self, c: char) {
        self.stack.push(c);
        self.substitutions += usize::from(c == '$' || c == '`');
    }

    fn pop(&mut self, partners: &str) {
        if self.unambiguous().last().is_some_and(|c| partners.contains(*c)) {
            let popped = self.stack.pop();
            self.substitutions -= usize::from(matches!(popped, Some('$' | '`')));
        }
    }

    fn quote(&mut self, c: char) {
        if self.unambiguous().last() == Some(&c) {
            return self.pop(c.encode_utf8(&mut [0; 4]));
        }
        if self.unambiguous().contains(&c) {
            self.mark_ambiguous();
        }
        self.push(c);
    }

    /// Marks everything open as ambiguous, since it may or may not be quoted from here on. Quotes
    /// are dropped: they are not levels.
    fn mark_ambiguous(&mut self) {
        self.ticks += self.stack.iter().filter(|c| **c == '`').count();
        self.stack.retain(|c| !"'\"`".contains(*c));
        self.doubted = self.stack.len();
        self.substitutions = self.stack.iter().filter(|c| **c == '$').count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_scripts_of_any_length_pass() {
        let lines = [
            "for f in *.txt; do if [ -s \"$f\" ]; then wc -l \"$f\"; fi; done\n",
            "echo \"it's $(date) for (all) of you\" >> log.txt\n",
            "x=$(curl -H \"A: $(cat token.txt)\" http://x | jq '.a[] | {b: (.c)}')\n",
            "python3 -c 'print(\"a\" + str(len(\"b\")))'\n",
        ];
        for line in lines {
            assert!(check(line).is_ok(), "{line}");
        }
        assert!(check(&lines[2].repeat(200)).is_ok());
        assert!(check(&lines[3].repeat(200)).is_ok());
        assert!(check(&lines[0].repeat(30)).is_ok());
        assert_eq!(check("a; b && c | d &\n"), Ok(6));
    }

    #[test]
    fn depth_is_bounded_however_it_is_hidden() {
        let openers = [
            "$(",
            "(",
            "{ ",
            "if ",
            "while ",
            "`$(",
            "<(",
            "f() ",
            "case x in (x) ",
            "${x:-",
            "$(a ')' ",
            "$(a \\) ",
            "a $(: # )\n",
            "if true; then echo fi; ",
            "\"$(",
            "$((",
            "until ! ",
            "[[ ! ",
            "a;",
            "a\n",
            "a | ",
            "echo fi; if ",
            "function f if ",
            "$(case x in x) ",
            "`${x:-",
            "${x:-E\n`",
        ];
        for opener in openers {
            assert_eq!(check(&opener.repeat(3000)), Err(ScriptError::Nested), "{opener}");
        }
    }

    proptest! {
        // A stack overflow would end the test's process.
        #[test]
        fn what_passes_is_parsed_on_a_small_stack(script in "(\\$\\(|\\(|\\)|\\{ |; \\}|`|\"|'|if |; then |; fi|while |; do |; done|case x in |x\\) |;; |esac|\\$\\{x:-|\\}|a|f\\(\\) |\\\\|\n|# |<\\(|! |&&|\\||<<E\n|\\$'|\\[\\[ |a;a;a;a;){0,400}") {
            if check(&script).is_ok() {
                let parse = move || drop(rable::parse(&script, false));
                let thread = std::thread::Builder::new().stack_size(1024 * 1024);
                prop_assert!(thread.spawn(parse).unwrap().join().is_ok());
            }
        }
    }
}
