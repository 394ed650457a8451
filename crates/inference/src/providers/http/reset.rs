//! Pure: when a server that has too much to do wants to be asked again.

use std::time::Duration;

use automaton_core::time::{Timestamp, days_from_civil};

/// The limits of which servers tell when they are lifted, by the end of the header's name.
const LIMITS: [&str; 3] = ["-requests", "-tokens", ""];

/// Greater numbers are seconds, and these milliseconds, since the epoch.
const EPOCH_SECONDS_MIN: u64 = 1_000_000_000;
const EPOCH_MILLIS_MIN: u64 = 1_000_000_000_000;

/// Returns the wait that a server asks for in the headers of its refusal: an explicit wait, else
/// the reset of the exhausted limit.
pub(super) fn wait<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: Timestamp,
) -> Option<Duration> {
    let millis = || Some(Duration::from_millis(header("retry-after-ms")?.trim().parse().ok()?));
    let asked = || retry_after(header("retry-after"), header("date"), now);
    millis().or_else(asked).or_else(|| limits(&header, now))
}

/// Returns the time until the limits reset: the last one of those that are exhausted, else the
/// first of all.
fn limits<'a>(header: impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Option<Duration> {
    let known = LIMITS.iter().filter_map(|limit| {
        let reset = moment(header(&format!("x-ratelimit-reset{limit}"))?, now)?;
        let left = header(&format!("x-ratelimit-remaining{limit}"));
        Some((left.map(str::trim) == Some("0"), reset))
    });
    let known: Vec<(bool, Duration)> = known.collect();
    let used_up = known.iter().filter(|(is_used_up, _)| *is_used_up).map(|(_, reset)| *reset);
    used_up.max().or_else(|| known.iter().map(|(_, reset)| *reset).min())
}

/// Returns the time until a moment that is given as a span, or as seconds or milliseconds since
/// the epoch.
fn moment(text: &str, now: Timestamp) -> Option<Duration> {
    let until = |millis: u64| {
        let now = u64::try_from(now.as_millis()).unwrap_or(0);
        Duration::from_millis(millis.saturating_sub(now))
    };
    match text.trim().parse::<u64>() {
        Ok(millis) if millis > EPOCH_MILLIS_MIN => Some(until(millis)),
        Ok(seconds) if seconds > EPOCH_SECONDS_MIN => Some(until(seconds.saturating_mul(1000))),
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => duration(text),
    }
}

/// A span such as `1h2m3.5s`, `120ms` or `7.66`, which is seconds, without a float's arithmetic.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let micros = match unit {
            "h" => 3_600_000_000,
            "m" => 60_000_000,
            "" | "s" => 1_000_000,
            "ms" => 1_000,
            _ => return None,
        };
        total = total.checked_add(Duration::from_micros(scaled(number, micros)?))?;
        rest = after;
    }
    Some(total)
}

/// A decimal number of units, in parts of one.
fn scaled(number: &str, parts: u64) -> Option<u64> {
    let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
    let mut total = whole.parse::<u64>().ok()?.checked_mul(parts)?;
    let mut place = parts;
    for digit in rest.chars() {
        place /= 10;
        total = total.checked_add(u64::from(digit.to_digit(10)?).checked_mul(place)?)?;
    }
    Some(total)
}

/// Seconds, or a moment by the server's own clock, since ours may be another.
fn retry_after(header: Option<&str>, date: Option<&str>, now: Timestamp) -> Option<Duration> {
    let text = header?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let until = http_date(text)?;
    let from = date.and_then(http_date).unwrap_or(now.as_millis() / 1000);
    Some(Duration::from_secs(u64::try_from(until - from).unwrap_or(0)))
}

/// Seconds since the epoch of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = text.split_once(", ")?.1.split(' ');
    let mut part = || parts.next();
    let day = part()?.parse::<u8>().ok()?.into();
    let named = part()?;
    let month = i64::try_from(MONTHS.iter().position(|month| *month == named)?).ok()? + 1;
    let year = part()?.parse::<i64>().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut clock = part()?.split(':').map(|two| two.parse::<i64>().ok());
    let mut below = |most: i64| clock.next()?.filter(|it| (0..most).contains(it));
    let hour = below(24)?;
    let minute = below(60)?;
    let second = below(61)?;
    let days = days_from_civil(year, month, day)?;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_seconds_or_a_moment_of_the_servers_clock() {
        let now = Timestamp::from_millis(1_763_000_000_000);
        let wait = |header, date| retry_after(Some(header), date, now).map(|wait| wait.as_secs());
        assert_eq!(wait(" 7 ", None), Some(7));
        assert_eq!(wait("86400", None), Some(86_400));
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let later = "Sun, 06 Nov 1994 08:50:07 GMT";
        assert_eq!(wait(later, Some(date)), Some(30));
        assert_eq!(wait(date, Some(later)), Some(0), "it is over");
        assert_eq!(wait(date, None), Some(0));
        assert_eq!(http_date(date), Some(784_111_777));
        assert_eq!(http_date("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        for none in ["", "soon", "-1", "1.5", "Sun, 06 Nov", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            assert_eq!(wait(none, None), None, "{none}");
        }
        assert_eq!(retry_after(None, None, now), None);
    }

    #[test]
    fn a_limit_that_is_used_up_says_when_it_is_lifted() {
        let now = Timestamp::from_millis(1_763_000_000_000);
        let waited = |headers: &[(&str, &'static str)]| {
            let header =
                |name: &str| headers.iter().find(|(known, _)| *known == name).map(|it| it.1);
            wait(header, now).map(|wait| wait.as_millis())
        };
        let requests = "x-ratelimit-reset-requests";
        let tokens = "x-ratelimit-reset-tokens";
        assert_eq!(waited(&[("retry-after-ms", "250"), ("retry-after", "1")]), Some(250));
        assert_eq!(waited(&[("retry-after", "1"), (tokens, "9s")]), Some(1000));
        assert_eq!(waited(&[(requests, "6m0s"), (tokens, "120ms")]), Some(120));
        let left = ("x-ratelimit-remaining-requests", "0");
        assert_eq!(waited(&[(requests, "1h2m3.5s"), (tokens, "120ms"), left]), Some(3_723_500));
        assert_eq!(waited(&[(tokens, "7.66")]), Some(7660));
        assert_eq!(waited(&[("x-ratelimit-reset", "1763000030")]), Some(30_000));
        assert_eq!(waited(&[("x-ratelimit-reset", "1763000000500")]), Some(500));
        for none in ["", "soon", "-1", "1x", "s", ".", "99999999999999999999h"] {
            assert_eq!(waited(&[(tokens, none)]), None, "{none}");
        }
        assert_eq!(duration("34.074824224s"), Some(Duration::from_micros(34_074_824)));
    }
}
