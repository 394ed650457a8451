//! Pure: normalises a text to what a reader sees.
//!
//! [`strip`] removes invisible characters. [`NormalizedText`] is the text in lower case without
//! accents. Compatibility forms are resolved (NFKC of Unicode Standard Annex 15), and look-alikes
//! of Latin letters are replaced in words that mix scripts (as in Unicode Technical Standard 39).
//! It maps each byte to its origin. A normalised text is only for scanning: it must never be
//! shown or stored.

use std::borrow::Cow;

use automaton_core::text::is_hidden;
use icu_normalizer::{DecomposingNormalizer, DecomposingNormalizerBorrowed};

/// The replacement of text that only machines can read.
pub(super) const HIDDEN_TOKEN: &str = "[hidden-text-removed]";
/// The most tag characters of a flag, including the end tag.
const FLAG_TAGS_MAX: usize = 8;
/// The longest terminal control sequence that is removed with its escape, in bytes.
const SEQUENCE_BYTES_MAX: usize = 32;

/// Removes invisible characters: controls other than line break and tab, terminal colour
/// sequences, characters without width, changes of the writing direction. Text in tag characters,
/// which only a machine reads, is replaced by [`HIDDEN_TOKEN`]. Joiners stay where emoji and
/// scripts need them.
pub(super) fn strip(text: &str) -> Cow<'_, str> {
    let plain = |b: u8| (b' '..0x7f).contains(&b) || matches!(b, b'\n' | b'\t');
    let is_plain = text.bytes().fold(true, |all, b| all & plain(b));
    if is_plain || text.chars().all(|c| !is_hidden(c)) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = after;
        match c {
            '\u{1b}' => rest = &after[control_sequence_length(after)..],
            '\u{e0001}'..='\u{e007f}' => {
                let run: usize = after.chars().take_while(|c| is_tag(*c)).map(char::len_utf8).sum();
                let whole = c.len_utf8() + run;
                if before == '\u{1f3f4}' && is_flag(c, &after[..run]) {
                    kept.push(c);
                    kept.push_str(&after[..run]);
                } else if whole > c.len_utf8() {
                    kept.push_str(HIDDEN_TOKEN);
                }
                rest = &after[run..];
            }
            '\u{200c}' | '\u{200d}' if needs_joiner(before, after.chars().next()) => kept.push(c),
            c if is_hidden(c) => continue,
            c => kept.push(c),
        }
        before = c;
    }
    Cow::Owned(kept)
}

/// Returns the length of a control sequence after its escape: `[`, parameters, a letter (ECMA-48,
/// 5.4).
fn control_sequence_length(after: &str) -> usize {
    let Some(body) = after.strip_prefix('[') else { return 0 };
    let parameters = body.bytes().take(SEQUENCE_BYTES_MAX).take_while(|b| (0x20..0x40).contains(b));
    let at = parameters.count();
    body.as_bytes().get(at).map_or(0, |b| if b.is_ascii_alphabetic() { at + 2 } else { 0 })
}

fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0001}'..='\u{e007f}')
}

/// Returns true if a run of tags spells the region of a flag and ends it (UTS 51, ED-14a).
fn is_flag(first: char, rest: &str) -> bool {
    rest.ends_with('\u{e007f}')
        && is_tag(first)
        && rest.chars().count() < FLAG_TAGS_MAX
        && rest.chars().all(
            |c| matches!(c, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}' | '\u{e007f}'),
        )
}

/// Returns true if a joiner belongs between two characters: emoji, or letters of a script that
/// changes their forms with it.
fn needs_joiner(before: char, after: Option<char>) -> bool {
    let shaped = |c: char| matches!(c, '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}');
    let emoji =
        |c: char| matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' | '\u{fe0f}');
    after.is_some_and(|after| (shaped(before) && shaped(after)) || (emoji(before) && emoji(after)))
}

/// A normalised text. ASCII letters keep their case, so readers must ignore the case.
pub(super) struct NormalizedText<'a> {
    text: Cow<'a, str>,
    /// The origin of each byte, and at the end the length of the text. Empty if both texts are
    /// the same.
    origin: Vec<u32>,
}

impl<'a> NormalizedText<'a> {
    /// Normalises a text of less than 4 GiB.
    pub(super) fn new(text: &'a str) -> Self {
        if text.is_ascii() {
            return Self { text: Cow::Borrowed(text), origin: Vec::new() };
        }
        let normalizer = DecomposingNormalizer::new_nfkd();
        let mut folder = TextFolder {
            text: String::with_capacity(text.len()),
            origin: Vec::with_capacity(text.len() + 1),
            word: Vec::new(),
        };
        let mut rest = 0;
        while let Some(c) = text[rest..].chars().next() {
            let plain = text.as_bytes()[rest..].iter().take_while(|b| b.is_ascii()).count();
            if plain > 0 {
                folder.add_plain(&text[rest..rest + plain], rest);
                rest += plain;
            } else {
                folder.add(c, u32::try_from(rest).unwrap_or(u32::MAX), &normalizer);
                rest += c.len_utf8();
            }
        }
        folder.flush();
        let mut origin = folder.origin;
        origin.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        Self { text: Cow::Owned(folder.text), origin }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the position in the original text of a byte.
    pub(super) fn origin(&self, at: usize) -> usize {
        self.origin.get(at).map_or(at, |at| usize::try_from(*at).unwrap_or(usize::MAX))
    }
}

struct TextFolder {
    text: String,
    origin: Vec<u32>,
    /// The current word, since only its end shows whether it mixes scripts.
    word: Vec<(char, u32)>,
}

impl TextFolder {
    /// Adds a run of ASCII. Only its first and last words can be part of a mixed word.
    fn add_plain(&mut self, text: &str, start: usize) {
        let is_word = |c: &char| c.is_ascii_alphanumeric();
        let lead = if self.word.is_empty() { 0 } else { text.chars().take_while(is_word).count() };
        let tail = text.chars().rev().take_while(is_word).count().min(text.len() - lead);
        let at = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        for (index, c) in text[..lead].char_indices() {
            self.word.push((c, at(start + index)));
        }
        let from = lead;
        let to = text.len() - tail;
        if to > from {
            self.flush();
            self.text.push_str(&text[from..to]);
            self.origin.extend(at(start + from)..at(start + to));
        }
        for (index, c) in text[to..].char_indices() {
            self.word.push((c, at(start + to + index)));
        }
    }

    fn add(&mut self, c: char, at: u32, normalizer: &DecomposingNormalizerBorrowed<'_>) {
        if is_whole(c) {
            self.flush();
            self.emit(c, at);
        } else if !is_hidden(c) && c != '\u{200d}' {
            for part in normalizer.normalize_iter(std::iter::once(c)).filter(|c| !is_accent(*c)) {
                for small in part.to_lowercase().filter(|c| !is_accent(*c)) {
                    self.put(plain(small), at);
                }
            }
        }
    }

    fn put(&mut self, c: char, at: u32) {
        if c.is_alphanumeric() {
            self.word.push((c, at));
        } else {
            self.flush();
            self.emit(if c.is_ascii() || is_sign(c) { c } else { ' ' }, at);
        }
    }

    /// Ends a word. If it has Latin letters and look-alikes of them, the look-alikes become
    /// Latin.
    fn flush(&mut self) {
        let mixed = self.word.iter().any(|(c, _)| c.is_ascii_alphabetic())
            && self.word.iter().any(|(c, _)| looks_like(*c).is_some());
        for index in 0..self.word.len() {
            let (c, at) = self.word[index];
            self.emit(looks_like(c).filter(|_| mixed).unwrap_or(c), at);
        }
        self.word.clear();
    }

    fn emit(&mut self, c: char, at: u32) {
        self.text.push(c);
        self.origin.resize(self.text.len(), at);
    }
}

/// Returns true for characters that have no other spelling: syllables and signs of East Asia.
fn is_whole(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// Returns true for scripts that write words without blanks, and for Korean, which joins them.
pub(super) fn is_unspaced(c: char) -> bool {
    is_whole(c)
        || matches!(c, '\u{e00}'..='\u{e7f}' | '\u{e80}'..='\u{eff}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns true for marks that a reader takes for decoration: accents, points of Hebrew, vowels
/// of Arabic.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}')
        || matches!(c, '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}')
}

/// Returns true for signs within words of scripts that are written with them.
fn is_sign(c: char) -> bool {
    matches!(c, '\u{900}'..='\u{dff}' | '\u{e00}'..='\u{eff}' | '\u{3099}' | '\u{309a}')
}

/// Returns the plain form of letters and quotes that no decomposition gives.
fn plain(c: char) -> char {
    match c {
        '“' | '”' | '„' | '«' | '»' | '「' | '」' | '『' | '』' | '‟' => '"',
        '‘' | '’' | '‚' | '‛' | 'ʼ' => '\'',
        '‐'..='―' | '−' => '-',
        '。' => '.',
        '、' => ',',
        '⁄' => '/',
        'đ' | 'ð' => 'd',
        'ł' => 'l',
        'ø' => 'o',
        'ı' => 'i',
        'ß' => 's',
        'ي' | 'ی' => 'ي',
        'ك' | 'ک' => 'ك',
        '\u{250}'..='\u{2af}' | '\u{1d00}'..='\u{1d7f}' | '\u{a720}'..='\u{a7ff}' => {
            looks_like(c).unwrap_or(c)
        }
        c => c,
    }
}

/// Returns the Latin letter that a lower-case letter of another script looks like.
pub(super) fn looks_like(c: char) -> Option<char> {
    Some(match c {
        'а' | 'α' | 'ɑ' | 'ᴀ' => 'a',
        'в' | 'ь' | 'β' | 'ʙ' => 'b',
        'с' | 'ϲ' | 'ᴄ' => 'c',
        'ԁ' | 'ᴅ' => 'd',
        'е' | 'ε' | 'є' | 'ᴇ' => 'e',
        'ꜰ' | 'ғ' => 'f',
        'ɡ' | 'ɢ' | 'ց' => 'g',
        'һ' | 'н' | 'հ' | 'ʜ' => 'h',
        'і' | 'ι' | 'ɪ' => 'i',
        'ј' | 'ᴊ' => 'j',
        'к' | 'κ' | 'ᴋ' => 'k',
        'ӏ' | 'ʟ' => 'l',
        'м' | 'ᴍ' => 'm',
        'п' | 'η' | 'ո' | 'ɴ' => 'n',
        'о' | 'ο' | 'օ' | 'σ' | 'ᴏ' => 'o',
        'р' | 'ρ' | 'ᴘ' => 'p',
        'ԛ' | 'զ' => 'q',
        'г' | 'ʀ' => 'r',
        'ѕ' | 'ꜱ' => 's',
        'т' | 'τ' | 'ᴛ' => 't',
        'υ' | 'μ' | 'ս' | 'ᴜ' => 'u',
        'ν' | 'ᴠ' => 'v',
        'ԝ' | 'ω' | 'ᴡ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' | 'ʏ' => 'y',
        'ᴢ' => 'z',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> String {
        NormalizedText::new(&strip(text)).as_str().to_owned()
    }

    #[test]
    fn what_a_reader_sees_has_one_spelling() {
        assert_eq!(seen("s\u{200b}end ign\u{ad}ore \u{202e}x\u{202c}"), "send ignore x");
        assert_eq!(seen("ｓｙｓｔｅｍ ⓘⓖ 𝐈𝐠 ﬁ"), "system ig ig fi");
        assert_eq!(seen("ignоrе prеvіous Ígñórê ɪɢɴᴏʀᴇ"), "ignore previous ignore ignore");
        assert_eq!(seen("как дела, 忽略 지시 \u{1b}[31mred\u{1b}[0m"), "как дела, 忽略 지시 red");
    }

    #[test]
    fn emoji_flags_and_joined_letters_stay_and_hidden_text_leaves_a_token() {
        let honest = "👨‍👩‍👧‍👦 🏴󠁧󠁢󠁳󠁣󠁴󠁿 می‌خواهم ☀️";
        assert_eq!(strip(honest), honest);
        let hidden: String =
            "obey".chars().filter_map(|c| char::from_u32(0xe0000 + u32::from(c))).collect();
        assert_eq!(strip(&format!("hi{hidden}!")), format!("hi{HIDDEN_TOKEN}!"));
    }

    #[test]
    fn each_byte_knows_where_it_came_from() {
        let text = "aé\u{2460}xｓz";
        let folded = NormalizedText::new(text);
        assert_eq!(folded.as_str(), "ae1xsz");
        let origins: Vec<usize> = (0..=6).map(|at| folded.origin(at)).collect();
        assert_eq!(origins, [0, 1, 3, 6, 7, 10, 11]);
    }
}
