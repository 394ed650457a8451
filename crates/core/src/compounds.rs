//! Pure: places where a German word may be made of two.
//!
//! There is no list of words here: a place is one where the second part could begin a word of its
//! own and both parts have a vowel. That gives parts that are no words, too, which nobody asks for.

/// Letters of a word that may be a compound, at least.
const COMPOUND_CHARS_MIN: usize = 7;

/// Letters of each part, at least.
const PART_CHARS_MIN: usize = 3;

/// Groups of consonants with which a German word begins.
const ONSETS: &str = "b bl br c ch chr d dr f fl fr g gl gn gr h j k kl kn kr l m n p pf pfl pfr \
    ph pl pr qu r s sch schl schm schn schr schw sk sp spr st str t th tr v w wr z zw";

/// Letters that join two words, longest first.
const LINKS: [&str; 5] = ["es", "en", "er", "s", "n"];

const fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// Returns the two parts of a word at each place where it may be divided. The word has lower-case
/// ASCII letters alone; another has no parts.
pub(crate) fn compound_parts(word: &str) -> Vec<(&str, &str)> {
    if word.len() < COMPOUND_CHARS_MIN || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return Vec::new();
    }
    let places = PART_CHARS_MIN..=word.len() - PART_CHARS_MIN;
    let divided = places.filter_map(|place| word.split_at_checked(place));
    divided.filter(|(first, second)| ends_word(first) && begins_word(second)).collect()
}

/// Returns a first part without the letters that join it to the second, once for each way.
pub(crate) fn without_link(first: &str) -> impl Iterator<Item = &str> {
    let kept = LINKS.iter().filter_map(|link| first.strip_suffix(link));
    kept.filter(|kept| kept.len() > PART_CHARS_MIN)
}

fn ends_word(part: &str) -> bool {
    part.bytes().any(is_vowel)
}

/// Returns true if a part begins as a German word does: with a vowel or a usual group of
/// consonants.
fn begins_word(part: &str) -> bool {
    let onset = part.bytes().take_while(|letter| !is_vowel(*letter)).count();
    match part.split_at_checked(onset) {
        Some((_, "")) | None => false,
        Some(("", _)) => true,
        // In "qu" the vowel belongs to the group.
        Some(("q", rest)) => rest.starts_with('u'),
        Some((onset, _)) => ONSETS.split(' ').any(|usual| usual == onset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_compound_is_divided_where_its_words_meet() {
        for (first, second) in [
            ("zahnarzt", "termin"),
            ("router", "passwort"),
            ("versicherungs", "nummer"),
            ("haus", "tur"),
            ("kuchen", "schublade"),
        ] {
            let word = format!("{first}{second}");
            assert!(compound_parts(&word).contains(&(first, second)), "{word}");
        }
        // No word begins with these.
        let all = compound_parts("routerpasswort");
        assert!(all.iter().all(|(_, second)| !second.starts_with("rp")), "{all:?}");
        assert!(compound_parts("haus").is_empty() && compound_parts("straße7x").is_empty());
    }

    #[test]
    fn letters_that_join_are_no_part_of_a_word() {
        let kept: Vec<&str> = without_link("versicherungs").collect();
        assert_eq!(kept, ["versicherung"]);
        assert_eq!(without_link("hauses").collect::<Vec<_>>(), ["haus", "hause"]);
        assert_eq!(without_link("aus").count(), 0);
    }

    proptest! {
        #[test]
        fn parts_are_the_word(word in "[a-zäß]{0,24}") {
            for (first, second) in compound_parts(&word) {
                prop_assert_eq!(format!("{first}{second}"), word.clone());
                prop_assert!(first.len() >= PART_CHARS_MIN && second.len() >= PART_CHARS_MIN);
            }
        }
    }
}
