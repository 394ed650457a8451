//! Pure: what in a text is not seen by whoever reads it.
//!
//! It hides words from people, turns the order of others, and steers terminals. What
//! others wrote is shown without it.

/// Characters without a shape of their own (Default_Ignorable_Code_Point of the
/// Unicode Character Database, without variation selectors of emoji), and controls but
/// the end of a line and the tab.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' | '\u{fe0e}' | '\u{fe0f}' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => {
            true
        }
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0d}'
        | '\u{feff}'
        | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control(),
    }
}

/// A text without what is hidden in it.
#[must_use]
pub fn visible(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_not_seen_is_left() {
        let hidden = ['\u{1b}', '\r', '\u{9b}', '\u{200b}', '\u{200f}', '\u{202a}', '\u{202e}'];
        let more = ['\u{2060}', '\u{2066}', '\u{2069}', '\u{feff}', '\u{e0000}', '\u{e0041}'];
        for c in hidden.into_iter().chain(more) {
            assert_eq!(visible(&format!("a{c}b")), "ab", "{c:?}");
        }
        assert_eq!(visible("Grüße, שלום, 你好\n\t❤\u{fe0f}"), "Grüße, שלום, 你好\n\t❤\u{fe0f}");
    }
}
