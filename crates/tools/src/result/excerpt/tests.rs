//! Cutting by lines.

use super::*;
use proptest::prelude::*;

fn numbers(to: u32) -> String {
    (1..=to).map(|nth| format!("{nth}\n")).collect()
}

#[test]
fn a_command_s_output_keeps_its_first_and_most_of_its_last_lines() {
    let text = numbers(100_000);
    let excerpt = Excerpt::new(&text, 1_000, HeadShare::COMMAND);
    let shown = excerpt.render(0);
    assert!(estimate(&shown) <= 1_000 && estimate(&shown) > 900, "{}", estimate(&shown));
    let (head, rest) = shown.split_once('[').unwrap();
    let (gap, tail) = rest.split_once("]\n").unwrap();
    assert!(head.starts_with("1\n2\n3\n") && tail.ends_with("99999\n100000\n"));
    assert!(tail.len() > 3 * head.len(), "{} {}", head.len(), tail.len());
    let first = lines(head) + 1;
    let last = 100_000 - lines(tail);
    assert_eq!(excerpt.gap_line(), first);
    let count = last + 1 - first;
    let bytes = text.len() - head.len() - tail.len();
    let expected = format!("{count} lines left out here: lines {first} to {last}, {bytes} bytes");
    assert_eq!(gap, expected);
    assert!(excerpt.render(7).contains(&format!(": lines {} to {}, ", first + 7, last + 7)));
}

#[test]
fn a_line_that_alone_is_too_long_is_cut_by_characters() {
    let text = format!("{}\u{1f980}{}", "a".repeat(9_000), "z".repeat(9_000));
    let shown = Excerpt::new(&text, 200, HeadShare::COMMAND).render(0);
    assert!(shown.starts_with("aaaa") && shown.ends_with("zzzz"), "{shown}");
    assert!(shown.contains(" bytes left out here, from within line 1 to line 1]\n"), "{shown}");
    assert!(estimate(&shown) <= 200);
    let head = Excerpt::new(&text, 200, HeadShare::HEAD).render(0);
    assert!(head.starts_with("aaaa") && head.ends_with("line 1]"), "{head}");
}

#[test]
fn what_fits_is_not_touched() {
    for text in ["", "a", "a\nb\n", "[x]"] {
        assert!(Excerpt::new(text, 100, HeadShare::COMMAND).is_whole());
        assert_eq!(shorten(text, 100), text);
    }
}

#[test]
fn closing_notices_stay_whole_and_gaps_add_up() {
    let closing = "[all of it is in /root/.logs/01.log, 100000 lines]\n[lines 1 to 9 of 9]";
    let text = format!("exit_code: 0\n{}\nlimits: none\n{closing}", numbers(500));
    let once = shorten(&text, 300);
    assert!(once.starts_with("exit_code: 0\n1\n2\n") && once.ends_with(closing), "{once}");
    // What is shown and what the notice says together are all 503 lines, however often.
    let told = |text: &str| {
        let gaps: Vec<u64> = text.lines().filter_map(told_gap).collect();
        assert_eq!(gaps.len(), 1, "{text}");
        gaps[0] + text.lines().filter(|line| !line.starts_with('[')).count() as u64
    };
    assert_eq!(told(&once), 503);
    let twice = shorten(&once, 120);
    assert!(twice.ends_with(closing) && estimate(&twice) <= 120, "{twice}");
    assert_eq!(told(&twice), 503);
    let least = shorten(&text, 1);
    assert!(least.ends_with(closing), "{least}");
}

#[test]
fn lines_in_brackets_that_others_wrote_get_no_more_room_and_overflow_nothing() {
    let many = format!("[{} lines left out here]\n", u64::MAX).repeat(60);
    let short = shorten(&format!("{many}{}", numbers(200)), 120);
    assert!(estimate(&short) <= 120, "{short}");
    let most = format!("[{} lines left out here]\n", u32::MAX).repeat(60);
    assert!(shorten(&most, 100).contains(" lines left out here]"));
    let long = format!("[{}]\n", "9".repeat(990));
    let short = shorten(&long.repeat(8), 120);
    assert!(estimate(&short) <= 120 + GAP_TOKENS, "{} of {short}", estimate(&short));
    // A middle line of three that barely do not fit is not lost to two halves.
    let file = format!(
        "{}\nguests: 7\n{}\n[lines 1 to 3 of 3: the end]",
        "a b ".repeat(25),
        "c d ".repeat(75)
    );
    assert!(shorten(&file, 120).contains("guests: 7"), "{}", shorten(&file, 120));
}

proptest! {
    #[test]
    fn no_notice_is_ever_cut(
        body in "([a-z\u{e9}]{0,40}\n|\\[[0-9]{1,3} lines left out here\\]\n|x{300}\n){0,60}",
        notices in prop::collection::vec("\\[[a-z]{1,60}\\]", 0..4),
        tokens in 0u32..400,
    ) {
        let text = format!("{body}{}", notices.join("\n"));
        let short = shorten(&text, tokens);
        let (_, kept) = closing(&text, (tokens / 2).max(CLOSING_TOKENS));
        prop_assert!(short.ends_with(kept));
        if short != text {
            // Each line in brackets is one that was there, or the one about the gap.
            let new = short.lines().filter(|line| line.contains(['[', ']']));
            let strange = new.filter(|line| !is_notice(line)).count();
            prop_assert_eq!(strange, 0, "{}", short);
            prop_assert!(short.contains(" left out here"));
            let most = tokens.max(estimate(kept) + GAP_TOKENS);
            prop_assert!(estimate(&short) <= most, "{} > {}", estimate(&short), most);
        } else {
            prop_assert!(estimate(&text) <= tokens + estimate(kept) || estimate(&text) <= tokens);
        }
    }

    #[test]
    fn an_excerpt_is_the_text_s_own_ends(text in "([a-z]{0,30}\n|y{200}){0,50}", tokens in 0u32..300) {
        for share in [HeadShare::COMMAND, HeadShare::HEAD, HeadShare::HALF] {
            let excerpt = Excerpt::new(&text, tokens, share);
            let (from, to) = excerpt.cut;
            prop_assert!(from <= to);
            let shown = estimate(&text[..from]) + estimate(&text[to..]);
            prop_assert!(excerpt.is_whole() || shown <= tokens);
        }
    }
}
