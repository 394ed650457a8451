//! Pure: the parts of a text that get a vector each.
//!
//! What somebody asks for later is often one sentence of many, of which a vector of the whole says
//! little, and sometimes what all of them are about, of which no sentence says much. A text of one
//! or two sentences must stay whole, and nothing of a text may be lost.

use automaton_core::memory::MemoryItem;

/// The least characters of a part, so that a sentence is with what it needs to be understood.
const PART_CHARS_MIN: usize = 60;

/// Parts of a text at most; those of a longer one are longer.
const PARTS_MAX: usize = 6;

/// What of an item vectors are made of: its text, and the parts of it where there are more than one,
/// each after the item's name, where it has one.
#[must_use]
pub fn embedded_texts(item: &MemoryItem) -> Vec<String> {
    let name = item.name.replace(['_', '-'], " ");
    let named = |part: &str| match name.as_str() {
        "" => part.to_owned(),
        name => format!("{name}: {part}"),
    };
    let parts = parts(&item.body.text);
    let parts = if parts.len() > 1 { parts } else { Vec::new() };
    [item.body.text.as_str()].into_iter().chain(parts).map(named).collect()
}

/// Returns a part by the number of its vector, or `None` for the vector of the whole.
pub(crate) fn part(text: &str, number: u32) -> Option<&str> {
    let place = usize::try_from(number).ok()?.checked_sub(1)?;
    parts(text).get(place).copied()
}

/// Returns the sentences and lines of a text. None of them is empty.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut left = text.char_indices().peekable();
    while let Some((_, c)) = left.next() {
        let next = left.peek().copied();
        let end = next.map_or(text.len(), |(end, _)| end);
        if next.is_none_or(|(_, after)| is_end(c, after)) {
            found.extend(text.get(start..end).map(str::trim).filter(|it| !it.is_empty()));
            start = end;
        }
    }
    found
}

/// Returns true if a sentence or a line ends with a character, before this next one.
const fn is_end(c: char, after: char) -> bool {
    match c {
        '\n' | '。' | '！' | '？' => true,
        '.' | '!' | '?' | ';' => after.is_whitespace(),
        _ => false,
    }
}

/// The parts of a text, which end where a sentence or a line does. There is always one.
fn parts(text: &str) -> Vec<&str> {
    let least = PART_CHARS_MIN.max(text.chars().count().div_ceil(PARTS_MAX));
    let mut starts = vec![0];
    let mut chars = 0;
    let mut left = text.char_indices().peekable();
    while let Some((_, c)) = left.next() {
        chars += 1;
        let Some((next, after)) = left.peek() else { break };
        if is_end(c, *after) && chars >= least {
            starts.push(*next);
            chars = 0;
        }
    }
    if chars < least && starts.len() > 1 {
        // What is left is too short for itself.
        starts.pop();
    }
    let ends = starts[1..].iter().copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| text[*start..end].trim()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_text_is_cut_at_its_sentences_and_a_short_one_is_not() {
        let short = "I moved. To Bergen, no. 4! Do you know it?";
        assert_eq!(parts(short), [short]);
        let one =
            "I have been thinking about the garden of my grandmother in spring, and of its roses";
        let text = format!(
            "{one}. By the way, my sister Runa keeps bees in Alta; she has nine hives\nBye."
        );
        let second = "By the way, my sister Runa keeps bees in Alta; she has nine hives\nBye.";
        assert_eq!(parts(&text), [&format!("{one}."), second]);
        assert_eq!(parts(""), [""]);
        let japanese = "私の妹はアルタで蜂を飼っています。".repeat(8);
        assert_eq!(parts(&japanese).len(), 2);
    }

    #[test]
    fn sentences_end_at_their_marks_and_at_lines() {
        let text = "I moved to no. 4! Why? 私は蜂。飼う\n\n- a line; and more";
        let all = ["I moved to no.", "4!", "Why?", "私は蜂。", "飼う", "- a line;", "and more"];
        assert_eq!(sentences(text), all);
        assert!(sentences(" \n ").is_empty());
    }

    #[test]
    fn a_part_is_found_by_the_number_of_its_vector() {
        let text = "One is a sentence that is long enough to be a part by itself, I think. Two is \
                    another sentence that is long enough to be a part by itself, too.";
        assert_eq!(part(text, 0), None);
        assert!(part(text, 1).unwrap().starts_with("One"));
        assert!(part(text, 2).unwrap().starts_with("Two"));
        assert_eq!(part(text, 3), None);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_there_are_not_too_many(text in "([a-zé。 \n]{0,30}[.!?;\n] ?){0,60}") {
            let parts = parts(&text);
            prop_assert!((1..=PARTS_MAX).contains(&parts.len()), "{}", parts.len());
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(letters(&parts.concat()), letters(&text));
            let is_long = |part: &&str| part.trim().chars().count() > 0;
            prop_assert!(parts.len() == 1 || parts.iter().all(is_long));
        }
    }
}
