//! Open messages have their room, and the oldest leave it first.

use automaton_core::time::Timestamp;
use automaton_policy::guard::Guard;
use proptest::prelude::*;

use super::*;

fn message(nth: usize, words: usize) -> OpenMessage {
    OpenMessage {
        id: format!("0000000000000000000000{nth:04}").parse().unwrap(),
        text: format!("{nth}: {}", "word ".repeat(words)),
        at: Timestamp::EPOCH,
        seen: true,
        seq: None,
        file: None,
    }
}

fn filed(open: &[OpenMessage], room: u32) -> Vec<usize> {
    let guard = Guard::new().unwrap();
    let manner = MessageStyle { guard: &guard, weak: false, ends: 100 };
    let out = too_long(open, room, manner);
    out.iter().map(|it| open.iter().position(|one| one.id == it.id).unwrap()).collect()
}

#[test]
fn the_oldest_go_to_files_and_one_that_is_too_large_goes_at_once() {
    let five: Vec<_> = (0..5).map(|nth| message(nth, 300)).collect();
    assert_eq!(filed(&five, 10_000), [0_usize; 0]);
    assert_eq!(filed(&five, 1500), [0, 1]);
    assert_eq!(filed(&[message(1, 50), message(2, 9000), message(3, 50)], 5000), [1]);
    let known = OpenMessage { file: Some("x".to_owned()), ..message(1, 9000) };
    assert_eq!(filed(&[known], 1000), [0_usize; 0], "it is in its file already");
}

#[test]
fn what_is_not_even_shown_is_counted() {
    let guard = Guard::new().unwrap();
    let manner = MessageStyle { guard: &guard, weak: false, ends: 100 };
    let in_file = |nth| OpenMessage { file: Some("x".to_owned()), ..message(nth, 60) };
    let many: Vec<_> = (0..9).map(in_file).collect();
    let many: Vec<&OpenMessage> = many.iter().collect();
    let text = render(&many, 400, manner);
    assert!(
        text.contains("[7 older messages are open, too; read them in /root/.messages]"),
        "{text}"
    );
    assert!(text.contains("8: word") && !text.contains("6: word"), "{text}");
    assert_eq!(render(&[], 400, manner), "");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn they_never_have_more_than_their_room(
        words in prop::collection::vec(0_usize..1200, 0..12),
        room in 300_u32..9000,
    ) {
        let guard = Guard::new().unwrap();
        let manner = MessageStyle { guard: &guard, weak: false, ends: 100 };
        let mut open: Vec<_> =
            words.iter().enumerate().map(|(nth, words)| message(nth, *words)).collect();
        let filed = too_long(&open, room, manner);
        for one in &mut open {
            one.file = filed.iter().any(|it| it.id == one.id).then(|| file_of(one));
        }
        let whole: u32 = open.iter().filter(|it| it.file.is_none()).map(|it| cost(it, manner)).sum();
        prop_assert!(whole <= room);
        let all: Vec<&OpenMessage> = open.iter().collect();
        let text = render(&all, room, manner);
        prop_assert!(tokens::estimate(&text) <= room);
        for one in open.iter().filter(|it| it.file.is_none()) {
            prop_assert!(text.contains(one.text.trim_end()), "{} vanished", one.id);
        }
    }
}
