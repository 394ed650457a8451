//! Pure: the words by which a text is found again, in the form that an index and a question share.
//!
//! Accents are dropped, umlauts may be written in two letters, and the commonest endings of English,
//! German, Spanish and French are cut: both sides of a comparison lose the same, so that a wrong
//! cut costs precision and never a find. A word of a German question has several forms, and a
//! German compound is found by its parts, too. It must never fail on any text, and gives the same
//! words on every machine.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use crate::compounds::{compound_parts, without_link};
use crate::terms::{FIRST_UNSPACED, split, stem};

/// Stands between the forms of one asked word; no word has it.
pub const FORM_MARK: char = '|';

/// Letters of a part of a compound by which a question looks, at least.
const ASKED_PART_MIN: usize = 4;

/// Words that say nothing about what a text is about, by language. English comes first: of
/// languages that fit alike it is taken.
const STOP_WORDS: [(Language, &str); 4] = [
    (Language::English, include_str!("stop_words.txt")),
    (Language::German, include_str!("stop_words_de.txt")),
    (Language::French, include_str!("stop_words_fr.txt")),
    (Language::Spanish, include_str!("stop_words_es.txt")),
];

/// The language of a text, as far as its small words tell. Any other counts as English.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    English,
    German,
    French,
    Spanish,
}

impl Language {
    /// Returns the language whose small words a text has most of.
    fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        let mut hits = STOP_WORDS.map(|(language, _)| {
            usize::from(language == Self::German && lower.contains(['ä', 'ö', 'ü', 'ß']))
        });
        for word in lower.split(|c: char| !c.is_alphanumeric()) {
            for language in small_words().get(word).into_iter().flatten() {
                hits[*language as usize] += 1;
            }
        }
        let mut best = (Self::English, 0);
        for ((language, _), hits) in STOP_WORDS.into_iter().zip(hits) {
            if hits > best.1 {
                best = (language, hits);
            }
        }
        best.0
    }

    /// Returns true if a lower-case word says nothing in this language. French and Spanish
    /// questions keep their small words: among texts of several languages they find more by them.
    fn is_small(self, word: &str) -> bool {
        let counted = match self {
            Self::German => Self::German,
            Self::English | Self::French | Self::Spanish => Self::English,
        };
        small_words().get(word).is_some_and(|languages| languages.contains(&counted))
    }
}

/// The small words of all languages, with the languages of each.
fn small_words() -> &'static HashMap<&'static str, Vec<Language>> {
    static WORDS: LazyLock<HashMap<&str, Vec<Language>>> = LazyLock::new(|| {
        let mut words: HashMap<&str, Vec<Language>> = HashMap::new();
        for (language, of_it) in STOP_WORDS {
            for word in of_it.split_whitespace() {
                words.entry(word).or_default().push(language);
            }
        }
        words
    });
    &WORDS
}

/// Returns the words of a text for an index: each in its form, and after them the parts of what
/// may be compounds, where the text is German.
#[must_use]
pub fn index_terms(text: &str) -> Vec<String> {
    let mut words = split(text, form);
    if Language::of(text) == Language::German {
        words.extend(parts_of_compounds(text));
    }
    words
}

/// Returns the words of a question that say what it is about, each once, in their order, or all
/// of them where none does. The forms of one word are joined by [`FORM_MARK`].
#[must_use]
pub fn asked_terms(text: &str, most: usize) -> Vec<String> {
    let language = Language::of(text);
    let lower = text.to_lowercase();
    let runs = lower.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    let runs: Vec<&str> = runs.collect();
    let telling: Vec<&str> = runs.iter().copied().filter(|run| !language.is_small(run)).collect();
    let mut seen = BTreeSet::new();
    let kept = if telling.is_empty() { runs } else { telling };
    let words = kept.into_iter().flat_map(|run| split(run, |word| forms(word, language)));
    words.filter(|word| seen.insert(word.clone())).take(most).collect()
}

/// Returns the words of a statement that say what it is about, in the form of the index: those
/// that are no small words of English or German.
#[must_use]
pub fn subject_terms(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let runs = lower.split(|c: char| !c.is_alphanumeric());
    // "Son" is a small word in French, and the subject of an English statement.
    let is_small = |run: &str| Language::English.is_small(run) || Language::German.is_small(run);
    let telling = runs.filter(|run| !run.is_empty() && !is_small(run));
    telling.flat_map(|run| split(run, form)).collect()
}

/// Returns the pairs of words of which an asked word may be made, for whoever knows which of them
/// there are. Only words of a German question have any; each pair has the forms of its words.
#[must_use]
pub fn asked_parts(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    if Language::of(text) != Language::German {
        return Vec::new();
    }
    let lower = text.to_lowercase();
    let runs = lower.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    let of_word = |run: &str| {
        let folded = fold(run);
        let pair = |(first, second): (&str, &str)| {
            let long = |part: &str| part.len() >= ASKED_PART_MIN;
            (long(first) && long(second)).then(|| {
                let mut firsts: Vec<String> = vec![cut(first)];
                firsts.extend(without_link(first).map(cut));
                (joined(firsts), cut(second))
            })
        };
        let pairs = compound_parts(&folded).into_iter().filter_map(pair).collect();
        (forms(run, Language::German), pairs)
    };
    runs.map(of_word).filter(|(_, pairs): &(_, Vec<_>)| !pairs.is_empty()).collect()
}

/// Returns which of these words stand in a text, by their places in the list: those of which a
/// form is one of [`index_terms`], without making all of them.
#[must_use]
pub fn found_terms(text: &str, asked: &[&str]) -> Vec<usize> {
    let forms: Vec<(usize, &str)> = (0..)
        .zip(asked)
        .flat_map(|(place, word)| word.split(FORM_MARK).map(move |form| (place, form)))
        .collect();
    let begins: BTreeSet<char> = forms.iter().filter_map(|(_, form)| form.chars().next()).collect();
    let mut found = vec![false; asked.len()];
    let mut mark = |word: &str| {
        let places = forms.iter().filter(|(_, form)| *form == word);
        places.for_each(|(place, _)| found[*place] = true);
    };
    let lower = text.to_lowercase();
    for run in lower.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        // A word keeps its first letter, but for its accent.
        let may_be = match run.chars().next() {
            Some(first) if first.is_ascii() => {
                begins.contains(&first) || !run.chars().all(|c| c < FIRST_UNSPACED)
            }
            _ => true,
        };
        if may_be {
            split(run, form).iter().for_each(|word| mark(word));
        }
    }
    if Language::of(text) == Language::German {
        parts_of_compounds(text).iter().for_each(|part| mark(part));
    }
    (0..asked.len()).filter(|place| found[*place]).collect()
}

/// Returns the forms of the parts of each word of a text that may be a compound.
fn parts_of_compounds(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let mut parts = BTreeSet::new();
    for run in lower.split(|c: char| !c.is_alphanumeric()) {
        for (first, second) in compound_parts(&fold(run)) {
            parts.extend(without_link(first).chain([first, second]).map(cut));
        }
    }
    parts
}

/// Returns a word in the form of the index.
fn form(word: &str) -> String {
    cut(&fold(word))
}

/// Returns the forms of an asked word: with and without the ending of a German verb.
fn forms(word: &str, language: Language) -> String {
    let form = form(word);
    if language != Language::German || !form.is_ascii() || form.len() < 4 {
        return form;
    }
    let mut all = vec![form.clone()];
    match form.strip_suffix('t') {
        Some(kept) => {
            all.push(kept.to_owned());
            match kept.strip_prefix("ge").filter(|kept| kept.len() >= 3) {
                Some(kept) => all.extend([kept.to_owned(), format!("{kept}t")]),
                None => all.push(format!("ge{form}")),
            }
        }
        None => {
            all.push(format!("{form}t"));
            all.push(format!("ge{form}t"));
        }
    }
    joined(all)
}

/// Returns the forms of one word as an asked word.
fn joined(forms: Vec<String>) -> String {
    let mut forms = forms;
    forms.dedup();
    forms.join(&FORM_MARK.to_string())
}

/// Returns a lower-case word without accents, and without the second letter of an umlaut that is
/// written in two.
fn fold(word: &str) -> String {
    // Of one letter the accent is what tells "à" from "a".
    if word.chars().nth(1).is_none() {
        return word.to_owned();
    }
    let mut folded = String::with_capacity(word.len());
    for letter in word.chars() {
        match unaccented(letter) {
            Some(letters) => folded.push_str(letters),
            None => folded.push(letter),
        }
    }
    if !folded.is_ascii() || folded.bytes().any(|b| b.is_ascii_digit()) {
        return folded;
    }
    let letters = folded.as_bytes();
    let is_second = |at: usize| {
        let before = at.checked_sub(2).map_or(b' ', |before| letters[before]);
        // In "neue" and "Quelle" these are no umlaut, and neither are they at an English end.
        letters[at] == b'e'
            && matches!(letters[at - 1], b'a' | b'o' | b'u')
            && at + 1 < letters.len()
            && !matches!(before, b'a' | b'e' | b'i' | b'o' | b'u' | b'q')
    };
    let kept = (0..letters.len()).filter(|at| *at == 0 || !is_second(*at));
    kept.map(|at| char::from(letters[at])).collect()
}

/// Returns a letter without its accent, or `None` if it has none.
const fn unaccented(letter: char) -> Option<&'static str> {
    Some(match letter {
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ā' | 'ă' | 'ą' => "a",
        'æ' => "ae",
        'ç' | 'ć' | 'č' => "c",
        'ď' | 'đ' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ę' | 'ě' => "e",
        'ğ' => "g",
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'ı' => "i",
        'ł' => "l",
        'ñ' | 'ń' | 'ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' | 'ō' | 'ő' => "o",
        'œ' => "oe",
        'ř' => "r",
        'ś' | 'š' | 'ş' | 'ș' => "s",
        'ß' => "ss",
        'ť' | 'ţ' | 'ț' => "t",
        'ù' | 'ú' | 'û' | 'ü' | 'ū' | 'ů' | 'ű' => "u",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => return None,
    })
}

/// Returns a folded word without its endings: first the English ones, then those of German (the
/// light stemmer of Savoy 2006), then the last vowel of Spanish words.
fn cut(word: &str) -> String {
    let word = stem(word);
    if !word.is_ascii() || word.bytes().any(|b| b.is_ascii_digit()) {
        return word;
    }
    let cut = |word: &str, least: usize, end: &str| -> Option<usize> {
        (word.len() >= least && word.ends_with(end)).then(|| word.len() - end.len())
    };
    let first = cut(&word, 6, "ern")
        .or_else(|| ["em", "en", "er", "es"].iter().find_map(|end| cut(&word, 5, end)))
        .or_else(|| cut(&word, 4, "e"))
        .or_else(|| cut(&word, 6, "eln").map(|at| at + 2))
        .or_else(|| cut(&word, 5, "a").or_else(|| cut(&word, 5, "o")));
    let word = first.and_then(|at| word.get(..at)).unwrap_or(&word);
    let second =
        cut(word, 6, "est").or_else(|| ["er", "en"].iter().find_map(|end| cut(word, 6, end)));
    second.and_then(|at| word.get(..at)).unwrap_or(word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_found(text: &str, question: &str) -> bool {
        let asked = asked_terms(question, 24);
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let found = found_terms(text, &asked);
        let indexed = index_terms(text);
        let is_indexed =
            |word: &&str| word.split(FORM_MARK).any(|form| indexed.iter().any(|it| it == form));
        let in_index: Vec<usize> = (0..asked.len()).filter(|at| is_indexed(&asked[*at])).collect();
        assert_eq!(found, in_index, "the index and the text say the same");
        !found.is_empty()
    }

    #[test]
    fn a_question_is_what_it_is_about() {
        assert_eq!(
            asked_terms("Where do we deploy the weather API to?", 9),
            ["deploy", "weath", "api"]
        );
        assert_eq!(asked_terms("what is the", 9), ["what", "is", "the"]);
        assert_eq!(asked_terms("apples apples pears", 1), ["appl"]);
        let german = asked_terms("Wo steht mein Fahrrad?", 9);
        assert_eq!(german, ["fahrrad|fahrradt|gefahrradt"]);
        // A small word of one language is a word in another.
        assert_eq!(asked_terms("When did the old man die?", 9), ["old", "man", "die"]);
    }

    #[test]
    fn german_rules_are_for_german_texts() {
        for text in [
            "Le quinze de chaque mois, je convertis une partie des gains du stream.",
            "Le mot de passe du routeur est sous la table.",
            "¿Qué día es la reunión con el hermano de mi jefe?",
            "La contraseña del enrutador es larga, y está en la pared.",
        ] {
            assert_ne!(Language::of(text), Language::German, "{text}");
            assert!(asked_parts(text).is_empty(), "{text}");
            assert_eq!(index_terms(text), split(text, form), "{text}");
        }
        assert_eq!(
            asked_terms("Où est la clé du garage ?", 9),
            ["ou", "est", "la", "cle", "du", "garag"]
        );
        assert_eq!(Language::of("Where is my son's bicycle?"), Language::English);
        assert_eq!(Language::of("Wo ist der Schlüssel?"), Language::German);
        assert!(subject_terms("My son is 12.").contains("son"));
    }

    #[test]
    fn inflected_words_are_found() {
        for (text, question) in [
            ("Meine Brüder wohnen in Lübeck.", "Wo wohnt der Bruder?"),
            ("Die Äpfel sind in der Garage.", "Wo ist der Apfel?"),
            ("Ich habe ein Rad gekauft.", "Was kaufte ich?"),
            ("Ich kaufe bei Brock.", "Wo habe ich gekauft?"),
            ("Der Kaesehaendler ist alt.", "Wie alt ist der Käsehändler?"),
            ("Mi hermana vive en Cádiz.", "¿Quién vive en cadiz?"),
        ] {
            assert!(is_found(text, question), "{text}");
        }
        assert!(!is_found("Der Hund schläft.", "Wo ist die Katze?"));
    }

    #[test]
    fn a_compound_is_found_by_its_words_and_finds_them() {
        assert!(is_found("Das Routerpasswort klebt am Kasten.", "Wo ist das Passwort?"));
        assert!(is_found("Die Versicherungsnummer ist 4711.", "Welche Versicherung habe ich?"));
        let parts = asked_parts("Wie lautet meine Versicherungsnummer?");
        let (_, pairs) = &parts[0];
        let is_wanted = |(first, second): &(String, String)| {
            first.split(FORM_MARK).any(|form| form == "versicherung") && second == "numm"
        };
        assert!(pairs.iter().any(is_wanted), "{pairs:?}");
        assert!(asked_parts("What is my insurancenumber?").is_empty());
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_the_index_has(
            text in ".{0,60}|([a-z]{0,6}(ing|ed|s|ly|ies|e|nned|en|er|ern)? ){0,9}|(東|京|a|é| ){0,12}|(der |mein )?([a-zäöüß]{0,18} ){0,5}",
            question in "([a-z]{1,5}(ing|ed|en)? ?|東|京|東京|é|wo ){0,6}",
        ) {
            is_found(&text, &question);
        }

        #[test]
        fn no_text_breaks_it_and_no_word_is_empty(text in ".{0,60}|[a-zäöüßàé]{0,12}(ing|ed|s|ly|ies|en|ern|e){0,3}") {
            let words = index_terms(&text).into_iter().chain(asked_terms(&text, 24));
            let ok = |word: String| !word.is_empty() && !word.contains([' ', '"']);
            prop_assert!(words.into_iter().all(ok));
            for (_, pairs) in asked_parts(&text) {
                prop_assert!(pairs.iter().all(|(a, b)| !a.is_empty() && !b.is_empty()));
            }
        }
    }
}
