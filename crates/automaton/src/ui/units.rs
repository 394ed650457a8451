//! Pure: numbers with their units as a person reads them.
//!
//! The same unit in the same way everywhere. An amount of money is never shown smaller
//! than it is where it is a price, nor larger where it is a balance; to the last digit it
//! is in `--json`, `pnl` and `turn`.

use std::fmt::Display;

use automaton_core::money::Microcents;
use automaton_core::time::Span;

/// Microcents in a dollar's tenth.
const TEN_CENTS: u64 = 10_000_000;

/// A length of time: `12 ms`, `1.5 s`, `45 s`, `2 min 30 s`, `3 h 5 min`, `2 days 4 h`.
pub(crate) fn span(span: Span) -> String {
    let millis = span.as_millis();
    let secs = millis / 1000;
    let tenth = millis % 1000 / 100;
    match secs {
        0 => format!("{millis} ms"),
        1..10 if tenth > 0 => format!("{secs}.{tenth} s"),
        1..60 => format!("{secs} s"),
        60..600 => pair(secs / 60, "min", secs % 60, "s"),
        600..3600 => format!("{} min", secs / 60),
        3600..86_400 => pair(secs / 3600, "h", secs % 3600 / 60, "min"),
        _ => {
            let days = secs / 86_400;
            pair(days, if days == 1 { "day" } else { "days" }, secs % 86_400 / 3600, "h")
        }
    }
}

fn pair(large: i64, unit: &str, small: i64, smaller: &str) -> String {
    match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {smaller}"),
    }
}

/// A number with a comma between thousands: `1,039`.
pub(crate) fn number(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `no calls`, `1 call`, `1,039 tokens`.
pub(crate) fn many(count: impl Into<u64>, one: &str) -> String {
    match count.into() {
        0 => format!("no {one}s"),
        1 => format!("1 {one}"),
        count => format!("{} {one}s", number(count)),
    }
}

/// Formats a cost: whole cents from ten on, below that two significant digits; rounded up.
pub(crate) fn price(cost: Microcents) -> String {
    let units = cost.units().unsigned_abs();
    let digits = units.checked_ilog10().unwrap_or_default();
    let cents = Microcents::PER_CENT.unsigned_abs();
    let step = if units >= TEN_CENTS { cents } else { 10_u64.pow(digits.saturating_sub(1)) };
    let rounded = units.div_ceil(step).saturating_mul(step);
    // silent-ok: what is too large to be rounded is shown as it is.
    let rounded = i64::try_from(rounded).unwrap_or(cost.units());
    Microcents::new(if cost.units() < 0 { -rounded } else { rounded }).to_string()
}

/// Formats a balance in whole cents, rounded down.
pub(crate) fn balance(credits: Microcents) -> String {
    // silent-ok: what is too large to be rounded is shown as it is.
    Microcents::from_cents(credits.cents_floor()).unwrap_or(credits).to_string()
}

/// A size: `73 bytes`, `89.6 KB`, `2.1 MB`.
pub(crate) fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit / (unit / 10));
    match bytes {
        1 => "1 byte".to_owned(),
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{} KB", tenths(1000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

/// Formats an amount that may be unknown.
pub(crate) fn or_unknown(amount: Option<impl Display>) -> String {
    amount.map_or_else(|| "unknown".to_owned(), |amount| amount.to_string())
}

/// An address or a hash by its beginning and end: `0x9b95…C302`.
pub(crate) fn brief(hex: &str) -> String {
    match (hex.get(..6), hex.len().checked_sub(4).and_then(|at| hex.get(at..))) {
        (Some(first), Some(last)) if hex.len() > 14 => format!("{first}…{last}"),
        _ => hex.to_owned(),
    }
}

/// A sentence with a capital at its beginning.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + chars.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_have_one_or_two_units() {
        let check = |millis: i64, text: &str| assert_eq!(span(Span::from_millis(millis)), text);
        check(0, "0 ms");
        check(999, "999 ms");
        check(1000, "1 s");
        check(1580, "1.5 s");
        check(45_900, "45 s");
        check(60_000, "1 min");
        check(150_000, "2 min 30 s");
        check(3_599_000, "59 min");
        check(3_600_000, "1 h");
        check(11_100_000, "3 h 5 min");
        check(86_400_000, "1 day");
        check(187_200_000, "2 days 4 h");
    }

    #[test]
    fn numbers_are_grouped_and_counted() {
        assert_eq!(number(1_234_567_u32), "1,234,567");
        assert_eq!(number(999_u32), "999");
        assert_eq!(
            [0_u32, 1, 1039].map(|n| many(n, "token")).join(", "),
            "no tokens, 1 token, 1,039 tokens"
        );
        assert_eq!(
            [73, 1, 89_600, 2_100_000].map(size),
            ["73 bytes", "1 byte", "89.6 KB", "2.1 MB"]
        );
        assert_eq!(brief("0x9b95Ceee0A5aEE6663E21929423dE818537aC302"), "0x9b95…C302");
        assert_eq!(
            (brief("short"), capital("first start")),
            ("short".into(), "First start".into())
        );
    }

    #[test]
    fn prices_are_rounded_up_and_balances_down() {
        let check = |units: i64, shown: &str| assert_eq!(price(Microcents::new(units)), shown);
        check(0, "$0.00");
        check(1, "$0.00000001");
        check(13_470, "$0.00014");
        check(12_000, "$0.00012");
        check(1_230_000, "$0.013");
        check(123_000_001, "$1.24");
        check(-13_470, "-$0.00014");
        assert_eq!(balance(Microcents::new(499_999_999)), "$4.99");
    }

    proptest! {
        #[test]
        fn a_price_is_never_shown_too_small(units in 0_i64..1 << 50) {
            let shown = price(Microcents::new(units));
            let digits = shown.trim_start_matches('$').replace('.', "");
            let places = shown.split_once('.').unwrap().1.len();
            let value = digits.parse::<i64>().unwrap() * 10_i64.pow(u32::try_from(8 - places).unwrap());
            prop_assert!(value >= units, "{shown} for {units}");
            prop_assert!(value - units <= units / 10 + 1_000_000, "{shown} for {units}");
        }

        #[test]
        fn commas_change_no_number(value in any::<u64>()) {
            prop_assert_eq!(number(value).replace(',', "").parse::<u64>(), Ok(value));
        }
    }
}
