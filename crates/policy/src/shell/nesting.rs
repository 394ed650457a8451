//! Pure: how much of a script may be open at once, bounded before it is parsed.
//!
//! The parser recurses, and a stack that overflows ends the process; and it reads the
//! inside of a substitution anew for each level around it. So what may open a level is
//! counted here without knowing the grammar: a bracket counts until its partner comes
//! with nothing doubtful between them, so that whatever quoting the parser sees, it
//! closes there too; one that is doubtful, and each keyword, counts to the end of the
//! script. The count may only be too high.

use super::ScriptError;

/// Levels of any kind. Each takes up to 6 KB of stack in a build without optimisation, and a
/// thread has 2 MB.
const LEVELS_MAX: usize = 64;
/// Substitutions that are open at once.
const SUBSTITUTIONS_MAX: usize = 24;
/// Substitutions that are open at once, squared, times bytes: about 50 ms of an optimised
/// build.
const WORK_MAX: usize = 2_000_000;
/// Backticks without a certain partner: each makes the parser try about half as often again.
const TICKS_MAX: usize = 16;

/// Braces squared, times bytes: for each the parser looks for its end, in the words so far.
/// About 40 ms of an optimised build.
const BRACES_MAX: usize = 1_000_000_000;
/// Ends of commands. A list is as deep in the tree as it is long, which costs about 130
/// bytes of stack each when the tree is dropped.
const ENDS_MAX: usize = 2048;

/// Words after which the parser goes a level deeper.
const KEYWORDS: [&str; 11] =
    ["if", "elif", "while", "until", "for", "select", "case", "time", "coproc", "function", "else"];
/// Words after which another command begins.
const BEFORE_COMMAND: [&str; 9] =
    ["if", "then", "elif", "else", "do", "while", "until", "time", "!"];

/// Refuses a script of which too much may be open at once. Gives how many commands it
/// may end.
pub(super) fn check(script: &str) -> Result<usize, ScriptError> {
    let mut open = OpenDelimiters::default();
    let (mut ends, mut last) = (0, ' ');
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
                    open.doubt();
                }
            }
            '\'' | '"' | '`' => open.quote(c),
            '(' if chars.next_if(|(_, c)| *c == ')').is_some() => open.kept += 1,
            '(' => open.push(if "$<>=`".contains(last) { '$' } else { '(' }),
            '{' if last == '$' => open.push('{'),
            '{' if chars.peek().is_none_or(|(_, c)| c.is_whitespace()) => open.kept += 1,
            ')' => open.pop("($"),
            '}' => open.pop("{"),
            '#' if last.is_whitespace() => open.doubt(),
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
                    open.doubt();
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

/// Whether a keyword may stand after this text.
fn begins_command(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t']);
    let word = before.rsplit(|c| !is_name(c) && c != '!').next().unwrap_or("");
    before.is_empty()
        || before.ends_with(['\n', ';', '&', '|', '(', ')', '{', '}', '`', '\r'])
        || BEFORE_COMMAND.contains(&word)
}

/// What may be open.
#[derive(Default)]
struct OpenDelimiters {
    /// Brackets and quotes whose partner may still come.
    stack: Vec<char>,
    /// Those of them, from the bottom, whose partner nobody would recognise.
    doubted: usize,
    /// Levels without a bracket.
    kept: usize,
    /// How much of the stack is a substitution.
    substitutions: usize,
    /// Backticks whose partner was in doubt.
    ticks: usize,
}

impl OpenDelimiters {
    fn certain(&self) -> &[char] {
        self.stack.get(self.doubted..).unwrap_or(&[])
    }

    fn push(&mut self, c: char) {
        self.stack.push(c);
        self.substitutions += usize::from(c == '$' || c == '`');
    }

    fn pop(&mut self, partners: &str) {
        if self.certain().last().is_some_and(|c| partners.contains(*c)) {
            let popped = self.stack.pop();
            self.substitutions -= usize::from(matches!(popped, Some('$' | '`')));
        }
    }

    fn quote(&mut self, c: char) {
        if self.certain().last() == Some(&c) {
            return self.pop(c.encode_utf8(&mut [0; 4]));
        }
        if self.certain().contains(&c) {
            self.doubt();
        }
        self.push(c);
    }

    /// From here on nobody knows whether what is open is quoted. Quotes are forgotten:
    /// they are no levels.
    fn doubt(&mut self) {
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
        // A stack that overflows would end the test's process.
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
