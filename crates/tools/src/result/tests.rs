//! Cutting, and the number of a mark.

use super::*;
use proptest::prelude::*;

#[test]
fn a_long_text_loses_its_middle_and_says_how_much() {
    assert_eq!(cap("short", 5), "short");
    let text: String = ('a'..='z').cycle().take(200).collect();
    let cut = cap(&text, 100);
    assert!(cut.starts_with(&text[..26]) && cut.ends_with(&text[200 - 26..]), "{cut}");
    assert!(cut.contains("\n[148 characters omitted]\n"), "{cut}");
    assert_eq!(cap("ääää", 0), "");
}

#[test]
fn the_nonce_is_the_end_of_an_id() {
    assert_eq!(
        FrameNonce::from_id("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        FrameNonce("Q69G5FAV".to_owned())
    );
    assert_eq!(FrameNonce::from_id("äb"), FrameNonce("äb".to_owned()));
}

proptest! {
    #[test]
    fn a_cap_holds_and_keeps_the_ends(text in ".{0,300}", chars_max in 0..200_usize) {
        let cut = cap(&text, chars_max);
        prop_assert!(cut.chars().count() <= chars_max);
        if text.chars().count() <= chars_max {
            prop_assert_eq!(&cut, &text);
        } else if chars_max >= NOTE_CHARS {
            prop_assert!(cut.contains("characters omitted"));
        }
    }
}
