//! Pure: lines broken between words, so that they fit the window.
//!
//! No word is ever lost or changed; one that is wider than the window is cut. Where
//! nothing has a width, as in a pipe, nothing is broken.

/// The narrowest window that lines are broken for, in columns.
const WIDTH_MIN: usize = 20;

/// Breaks text as it comes. Every line begins with a margin.
#[derive(Debug)]
pub(crate) struct TextWrapper {
    width: Option<usize>,
    /// Prefix of the first line.
    first: String,
    /// Prefix of every further line.
    next: String,
    /// Columns of the line so far; nothing when the line has not begun.
    column: Option<usize>,
    /// Blanks that wait for a word.
    gap: usize,
    word: String,
    word_width: usize,
}

impl TextWrapper {
    /// A flow into lines of so many columns.
    pub(crate) fn new(width: Option<usize>, first: &str, next: &str) -> Self {
        let width = width.map(|width| width.max(WIDTH_MIN).max(columns(next) + WIDTH_MIN / 2));
        let first = first.to_owned();
        let next = next.to_owned();
        Self { width, first, next, column: None, gap: 0, word: String::new(), word_width: 0 }
    }

    /// Takes text, and appends what can be shown of it already.
    pub(crate) fn push(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            match c {
                '\n' => {
                    self.word_ends(out);
                    if self.column.take().is_none() {
                        out.push_str(self.first.trim_end());
                        self.first.clone_from(&self.next);
                    }
                    out.push('\n');
                    self.gap = 0;
                }
                ' ' => {
                    self.word_ends(out);
                    self.gap += 1;
                }
                c => {
                    let wide = width_of(c);
                    let room = self.width.map(|width| width - columns(&self.next));
                    if room.is_some_and(|room| self.word_width + wide > room) {
                        self.word_ends(out);
                    }
                    self.word.push(c);
                    self.word_width += wide;
                }
            }
        }
    }

    /// Appends what waited; whether a line has begun that no newline ended.
    pub(crate) fn end(&mut self, out: &mut String) -> bool {
        self.word_ends(out);
        self.column.is_some()
    }

    fn word_ends(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let column = match self.column {
            None => self.line_begins(out),
            Some(column) => column,
        };
        let gap = std::mem::take(&mut self.gap);
        let fits = self.width.is_none_or(|width| column + gap + self.word_width <= width);
        let column = if fits {
            out.extend(std::iter::repeat_n(' ', gap));
            column + gap
        } else if column > columns(&self.next) {
            out.push('\n');
            self.line_begins(out)
        } else {
            // Blanks at the beginning of a line that leave no room for its first word.
            column
        };
        out.push_str(&self.word);
        self.column = Some(column + self.word_width);
        self.word.clear();
        self.word_width = 0;
    }

    fn line_begins(&mut self, out: &mut String) -> usize {
        out.push_str(&self.first);
        let begun = columns(&self.first);
        self.first.clone_from(&self.next);
        begun
    }
}

/// Text in lines of so many columns, without a newline at the end.
pub(crate) fn wrapped(text: &str, width: Option<usize>, first: &str, next: &str) -> String {
    let mut out = String::new();
    let mut flow = TextWrapper::new(width, first, next);
    flow.push(text.trim_end_matches('\n'), &mut out);
    flow.end(&mut out);
    out
}

/// A sentence in lines of so many columns, where its further lines are indented.
pub(crate) fn hanging(text: &str, width: Option<usize>) -> String {
    let lead = text.len() - text.trim_start_matches(' ').len();
    let lines: Vec<String> =
        text.split('\n').map(|line| wrapped(line, width, "", &" ".repeat(lead + 2))).collect();
    lines.join("\n")
}

/// Columns that a text takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// Columns of one character: two for the scripts of East Asia and for emoji, none for marks
/// that join the character before them.
const fn width_of(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_break_between_words_and_go_on_indented() {
        let text = "  → write_file path: notes.txt, content: This report is about the files";
        assert_eq!(
            hanging(text, Some(40)),
            "  → write_file path: notes.txt, content:\n    This report is about the files"
        );
        assert_eq!(hanging(text, None), text);
        assert_eq!(wrapped("one\n\n  two", Some(20), "│ ", "│ "), "│ one\n│\n│   two");
        assert_eq!(
            wrapped("报告报告报告报告报告报告", Some(20), "", ""),
            "报告报告报告报告报告\n报告"
        );
        assert_eq!(
            wrapped(&"x".repeat(25), Some(20), "a ", "  "),
            format!("a {}\n  {}", "x".repeat(18), "x".repeat(7))
        );
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_no_word_is_lost(
            text in "[a-zß报 \\n]{0,200}", width in 20_usize..130, cuts in prop::collection::vec(0_usize..200, 0..4),
        ) {
            let whole = wrapped(&text, Some(width), "  │ ", "  │ ");
            for line in whole.lines() {
                prop_assert!(columns(line) <= width, "{line:?} is wider than {width}");
            }
            let words = |text: &str| text.replace('│', " ").split_whitespace().collect::<String>();
            prop_assert_eq!(words(&whole), words(&text));
            // In pieces it comes out the same.
            let chars: Vec<char> = text.trim_end_matches('\n').chars().collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(chars.len())).collect();
            cuts.extend([0, chars.len()]);
            cuts.sort_unstable();
            let mut flow = TextWrapper::new(Some(width), "  │ ", "  │ ");
            let mut out = String::new();
            for pair in cuts.windows(2) {
                flow.push(&chars[pair[0]..pair[1]].iter().collect::<String>(), &mut out);
            }
            flow.end(&mut out);
            prop_assert_eq!(out, whole);
        }
    }
}
