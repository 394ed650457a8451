//! Pure: thoughts that a server leaves in the text of an answer, apart from the words.
//!
//! They stand at the beginning of an answer, between marks that the model was taught, or before an end mark alone
//! where the chat template wrote the beginning. Marks further on are a quotation and stay. Must never give a part
//! of a thought as words, nor keep words back once it is known that they are some.

/// Marks at the beginning and end of a thought, in lower case.
const MARKS: [(&str, &str); 14] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    // Channels of one answer. The heading of the last one stands before the words.
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|end|>"),
    ("<|channel|>final", "<|message|>"),
    ("<|start|>assistant<|channel|>final", "<|message|>"),
];

/// Number of marks, from the first on, that may end a thought without a beginning.
const BARE_MARKS: usize = 10;

/// First characters of marks.
const MARK_STARTS: [char; 3] = ['<', '[', '◁'];

/// Characters beside an end mark that is quoted.
const QUOTES_BEFORE: [char; 7] = ['`', '"', '\'', '“', '„', '«', '('];
const QUOTES_AFTER: [char; 13] = ['`', '"', '\'', '”', '“', '»', ')', '.', ',', ';', ':', '?', '!'];

/// Possibility that an answer begins within a thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum BareEnds {
    /// An end mark alone is a word.
    #[default]
    Words,
    /// Words are given as they come, until an end mark says that they were a thought.
    Watched,
    /// Nothing is given until an end mark or the end of the answer.
    HeldBack,
}

#[derive(Debug, Default)]
enum SplitState {
    #[default]
    Beginning,
    /// Within a thought that ends so.
    Thought(&'static str),
    Words,
}

/// A place of a mark in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MarkPlace {
    begin: usize,
    end: usize,
}

/// Takes the text of one answer in pieces.
#[derive(Debug, Default)]
pub(super) struct ThoughtSplitter {
    state: SplitState,
    bare_ends: BareEnds,
    /// Text that may be a mark, and words that are held back.
    held: String,
    /// Length of the part that holds no mark.
    searched: usize,
    /// The words so far.
    words: String,
    /// Characters of thoughts.
    thought_chars: usize,
    /// True if words that were already given turned out to be a thought.
    has_retracted: bool,
    has_thoughts: bool,
}

impl ThoughtSplitter {
    pub(super) fn new(bare_ends: BareEnds) -> Self {
        Self { bare_ends, ..Self::default() }
    }

    /// Takes the next piece and gives the words that are new.
    pub(super) fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        self.split(false)
    }

    /// Ends the answer, as far as it came, and gives the words that were held back.
    pub(super) fn finish(&mut self) -> String {
        self.split(true)
    }

    /// All words.
    pub(super) fn words(&self) -> &str {
        &self.words
    }

    /// Characters that are thoughts.
    pub(super) const fn thought_chars(&self) -> usize {
        self.thought_chars
    }

    /// Returns true if the answer began within a thought.
    pub(super) const fn began_in_thought(&self) -> bool {
        self.has_retracted
    }

    fn split(&mut self, is_end: bool) -> String {
        let mut given = String::new();
        loop {
            let goes_on = match self.state {
                SplitState::Beginning => self.begin(is_end),
                SplitState::Thought(end) => self.think(end, is_end),
                SplitState::Words => self.speak(&mut given, is_end),
            };
            if !goes_on {
                return given;
            }
        }
    }

    /// Looks for a mark at the beginning of the answer, or behind a thought.
    fn begin(&mut self, is_end: bool) -> bool {
        let start = self.held.trim_start().as_bytes();
        let blank = self.held.len() - start.len();
        let mark = MARKS.iter().find(|(begin, _)| starts_with_mark(start, begin.as_bytes()));
        if let Some((begin, end)) = mark {
            self.held.drain(..blank + begin.len());
            self.state = SplitState::Thought(end);
            self.has_thoughts = true;
            return true;
        }
        let may_be_mark = MARKS.iter().any(|(begin, _)| starts_with_mark(begin.as_bytes(), start));
        if may_be_mark && !is_end {
            return false;
        }
        if self.has_thoughts {
            self.held.drain(..blank);
        }
        self.state = SplitState::Words;
        !self.held.is_empty()
    }

    /// Leaves a thought out, up to its end.
    fn think(&mut self, end: &'static str, is_end: bool) -> bool {
        let (thought, is_over) = match find(&self.held, end) {
            Some(place) => (place, true),
            None if is_end => (MarkPlace { begin: self.held.len(), end: self.held.len() }, false),
            None => {
                let kept = self.held.len() - partial_mark(&self.held, &[end]);
                (MarkPlace { begin: kept, end: kept }, false)
            }
        };
        self.thought_chars += self.held[..thought.begin].chars().count();
        self.held.drain(..thought.end);
        if is_over {
            self.state = SplitState::Beginning;
        }
        is_over && !self.held.is_empty()
    }

    /// Gives words, and looks for the end of a thought that had no beginning.
    fn speak(&mut self, given: &mut String, is_end: bool) -> bool {
        if self.bare_ends == BareEnds::Words || self.has_thoughts {
            self.give(self.held.len(), given);
            return false;
        }
        if !self.held[self.searched..].contains(MARK_STARTS) {
            if self.bare_ends == BareEnds::HeldBack && !is_end {
                self.searched = self.held.len();
            } else {
                self.give(self.held.len(), given);
            }
            return false;
        }
        let first = |marks: &[&str]| {
            let rest = &self.held[self.searched..];
            let places = marks.iter().filter_map(|mark| find(rest, mark));
            let first = places.min_by_key(|place| place.begin);
            first.map(|it| MarkPlace {
                begin: it.begin + self.searched,
                end: it.end + self.searched,
            })
        };
        let begin = first(&MARKS.map(|(begin, _)| begin));
        let end = first(&MARKS.map(|(_, end)| end)[..BARE_MARKS]);
        match (begin, end) {
            (Some(begin), end) if end.is_none_or(|end| begin.begin < end.begin) => {
                // A quotation: nothing behind it ends a thought that this answer began with.
                self.bare_ends = BareEnds::Words;
                true
            }
            (_, Some(place)) => self.end_bare_thought(place, given, is_end),
            _ if is_end => {
                self.give(self.held.len(), given);
                false
            }
            _ if self.bare_ends == BareEnds::HeldBack => {
                let lengths = MARKS.iter().flat_map(|(begin, end)| [begin.len(), end.len()]);
                let marks_max = lengths.max().unwrap_or(0);
                let searched = self.held.len().saturating_sub(marks_max).max(self.searched);
                self.searched = self.held.floor_char_boundary(searched);
                false
            }
            _ => {
                let marks: Vec<&str> =
                    MARKS.iter().flat_map(|(begin, end)| [*begin, *end]).collect();
                // A quotation mark before a mark is looked at together with it.
                let partial = partial_mark(&self.held, &marks);
                let kept = self.held.len() - partial;
                let before = self.held[..kept].chars().next_back().map_or(0, char::len_utf8);
                self.give(if partial > 0 { kept - before } else { kept }, given);
                false
            }
        }
    }

    /// Decides what an end mark without a beginning is.
    fn end_bare_thought(&mut self, place: MarkPlace, given: &mut String, is_end: bool) -> bool {
        let after = self.held[place.end..].chars().next();
        if after.is_none() && !is_end {
            return false;
        }
        let before = self.held[..place.begin].chars().next_back();
        let before = before.or_else(|| self.words.chars().next_back());
        let is_quoted = before.is_some_and(|it| it == ' ' || QUOTES_BEFORE.contains(&it))
            || after.is_some_and(|it| QUOTES_AFTER.contains(&it));
        if is_quoted && self.bare_ends == BareEnds::HeldBack {
            self.searched = place.end;
            return true;
        }
        if is_quoted {
            self.give(place.end, given);
            return !self.held.is_empty();
        }
        self.thought_chars += self.words.chars().count() + self.held[..place.begin].chars().count();
        self.held.drain(..place.end);
        self.searched = 0;
        self.words.clear();
        given.clear();
        self.has_retracted = true;
        self.has_thoughts = true;
        self.state = SplitState::Beginning;
        true
    }

    fn give(&mut self, bytes: usize, given: &mut String) {
        self.searched = 0;
        let rest = self.held.split_off(bytes);
        let words = std::mem::replace(&mut self.held, rest);
        self.words.push_str(&words);
        given.push_str(&words);
    }
}

/// The first place of a mark, in any case.
fn find(text: &str, mark: &str) -> Option<MarkPlace> {
    let mut places = text.char_indices().map(|(at, _)| at);
    let begin = places.find(|at| starts_with_mark(&text.as_bytes()[*at..], mark.as_bytes()))?;
    Some(MarkPlace { begin, end: begin + mark.len() })
}

fn starts_with_mark(text: &[u8], mark: &[u8]) -> bool {
    text.get(..mark.len()).is_some_and(|it| it.eq_ignore_ascii_case(mark))
}

/// Returns the number of bytes at the end of a text that may be the beginning of a mark.
fn partial_mark(text: &str, marks: &[&str]) -> usize {
    let is_partial = |tail: &str| {
        let begins = |mark: &&str| {
            tail.len() < mark.len()
                && mark.as_bytes()[..tail.len()].eq_ignore_ascii_case(tail.as_bytes())
        };
        marks.iter().any(begins)
    };
    let longest = marks.iter().map(|mark| mark.len()).max().unwrap_or(0);
    let places = text.char_indices().map(|(at, _)| &text[at..]);
    let tail = places.filter(|tail| tail.len() < longest).find(|tail| is_partial(tail));
    tail.map_or(0, str::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The words of an answer, those that were shown, and the characters that are thoughts.
    fn split(text: &str, size: usize, bare_ends: BareEnds) -> (String, String, usize) {
        let mut splitter = ThoughtSplitter::new(bare_ends);
        let all: Vec<char> = text.chars().collect();
        let mut shown = String::new();
        for piece in all.chunks(size) {
            shown.push_str(&splitter.push(&piece.iter().collect::<String>()));
        }
        shown.push_str(&splitter.finish());
        (splitter.words().to_owned(), shown, splitter.thought_chars())
    }

    #[test]
    fn thoughts_at_the_beginning_are_no_words_however_they_are_cut() {
        for (text, wanted) in [
            ("<think>\nplan\n</think>\n\nIt is noon.", "It is noon."),
            ("\n<THINK>plan</Think>It is noon.", "It is noon."),
            ("<think>a</think>\n<thinking>b</thinking> It is noon.", "It is noon."),
            ("[THINK]plan[/THINK]It is noon.", "It is noon."),
            ("◁think▷plan◁/think▷It is noon.", "It is noon."),
            ("<seed:think>plan < 3 </think></seed:think>It is noon.", "It is noon."),
            (
                "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>final<|message|>It is noon.",
                "It is noon.",
            ),
            ("It is noon.<|end|>", "It is noon.<|end|>"),
            ("<think>plan</think>", ""),
            ("<think>plan", ""),
            ("<think></think>It is <think> noon.", "It is <think> noon."),
            ("Put it between <think> and </think>.", "Put it between <think> and </think>."),
            ("Put it before </think> and wait.", "Put it before </think> and wait."),
            ("`</think>` ends it.", "`</think>` ends it."),
            ("<b>It</b> is noon.", "<b>It</b> is noon."),
            ("<thin", "<thin"),
            ("  It is noon.", "  It is noon."),
        ] {
            for bare_ends in [BareEnds::Words, BareEnds::Watched, BareEnds::HeldBack] {
                for size in 1..=text.chars().count() {
                    let (words, shown, thoughts) = split(text, size, bare_ends);
                    assert_eq!(
                        (words.as_str(), shown.as_str()),
                        (wanted, wanted),
                        "{text:?} {size} {bare_ends:?}"
                    );
                    let is_thoughtful =
                        !text.trim_start().eq(wanted.trim_start()) && text.contains("plan");
                    assert_eq!(
                        thoughts > 0,
                        is_thoughtful || text.contains(">a<"),
                        "{text:?} {size}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_end_alone_makes_what_stands_before_it_a_thought() {
        for (text, wanted) in [
            ("plan `x`\n</think>\n\nIt is noon.", "It is noon."),
            ("plan.</think>It is noon.", "It is noon."),
            ("plan about `</think>` marks\n</think>\nIt is noon.", "It is noon."),
            ("plan\n[/THINK]It is noon.", "It is noon."),
            ("plan\n</think>", ""),
            ("plan\n</think>\n<think>more</think>It is noon.", "It is noon."),
        ] {
            for size in 1..=text.chars().count() {
                let (words, shown, thoughts) = split(text, size, BareEnds::HeldBack);
                assert_eq!((words.as_str(), shown.as_str()), (wanted, wanted), "{text:?} {size}");
                assert!(thoughts >= 4, "{text:?} {size}");
                assert_eq!(split(text, size, BareEnds::Watched).0, wanted, "{text:?} {size}");
                assert_eq!(split(text, size, BareEnds::Words).0, text, "{text:?} {size}");
            }
        }
        let mut splitter = ThoughtSplitter::new(BareEnds::Watched);
        assert_eq!(splitter.push("plan\n"), "plan\n");
        assert!(!splitter.began_in_thought());
        assert_eq!(splitter.push("</think>\nIt"), "It");
        assert!(splitter.began_in_thought());
    }

    proptest! {
        #[test]
        fn words_are_the_same_however_they_are_cut(
            text in "(<think>|</think>|[ab`. \n<>/é]|think){0,12}", size in 1_usize..6,
        ) {
            for bare_ends in [BareEnds::Words, BareEnds::Watched, BareEnds::HeldBack] {
                let (whole, _, thoughts) = split(&text, text.len().max(1), bare_ends);
                let (words, shown, again) = split(&text, size, bare_ends);
                prop_assert_eq!((&words, again), (&whole, thoughts));
                if bare_ends != BareEnds::Watched {
                    prop_assert_eq!(shown, words);
                }
            }
        }

        #[test]
        fn text_without_marks_is_words(text in "[a-z <>/`\n]{0,30}", size in 1_usize..6) {
            prop_assume!(!text.contains("think>") && !text.contains("thought") && !text.contains("reasoning"));
            let (words, shown, thoughts) = split(&text, size, BareEnds::HeldBack);
            prop_assert_eq!((words, shown, thoughts), (text.clone(), text, 0));
        }
    }
}
