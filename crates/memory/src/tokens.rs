//! Pure: how many tokens a text will cost, roughly and rather too many.
//!
//! Every model counts differently and the true count is known only after the
//! call. Must never say 0 for a text that is not empty, and never less than a
//! quarter of its characters.

/// Estimates the tokens of a text, in quarters: an ASCII letter or blank is
/// one, since four of them make a token of English; a digit or a mark is two,
/// since tokenizers join few of them; anything else is two for each of its
/// UTF-8 bytes, since rare scripts fall apart into bytes.
#[must_use]
pub fn estimate(text: &str) -> u32 {
    // The bytes of a rare letter are never ASCII, so that what each byte costs is known by itself.
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b' ';
    let letters = text.as_bytes().iter().filter(|byte| is_letter(byte)).count();
    let quarters = text.len() * 2 - letters;
    u32::try_from(quarters.div_ceil(4)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn english_costs_a_quarter_and_the_rest_more() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("a"), 1);
        assert_eq!(estimate("four letters"), 3);
        assert_eq!(estimate("{\"a\":12}"), 4);
        assert_eq!(estimate("日本"), 3);
        assert_eq!(estimate("🦀"), 2);
    }

    proptest! {
        #[test]
        fn never_below_a_quarter_and_grows_with_the_text(one in ".{0,80}", two in ".{0,80}") {
            let quarter = one.chars().count().div_ceil(4);
            prop_assert!(estimate(&one) as usize >= quarter);
            let both = estimate(&format!("{one}{two}"));
            prop_assert!(both >= estimate(&one).max(estimate(&two)));
            prop_assert!(both <= estimate(&one) + estimate(&two));
        }
    }
}
