//! Pure: whether a request may be sent again, and when.
//!
//! A request that may have had its effect must never be sent again unless that
//! makes no difference: a lost reply says nothing about what the server did.

use std::time::Duration;

use automaton_core::entropy::Entropy;

use crate::limits::RETRY_AFTER_MAX;

/// The most repeats of a request.
pub(crate) const REPEATS_MAX: u32 = 3;
/// The longest wait that no server asked for.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The rule for repeats of a request that failed, or was answered with 429, 500, 502, 503 or 504:
/// at most three, within its deadline. A caller that reads more of an answer than its status uses
/// [`HttpClient::request_judged`].
///
/// [`HttpClient::request_judged`]: crate::HttpClient::request_judged
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It is sent once.
    Never,
    /// It may, since its method is GET or HEAD or it has an idempotency key.
    /// With neither the request is refused.
    Idempotent,
    /// It may, since it only asks, whatever its method: a question over JSON-RPC.
    Question,
    /// It may, but only after an answer: one of these statuses, or a body that says the same. A
    /// server that cannot be reached is not asked again.
    WhenRefused,
}

/// Returns whether a status says that the same request may be answered better later.
pub(crate) const fn is_retryable(status: u16) -> bool {
    matches!(status, 429 | 500 | 502 | 503 | 504)
}

/// Returns the wait before a repeat, of which the first is 0: `first · 2ⁿ · u`, at most 30 s, with
/// u from 0.5 up to but not 1.5, so that clients that failed together do not come back together.
pub(crate) fn back_off(first: Duration, repeat: u32, entropy: &dyn Entropy) -> Duration {
    let factor = 2_u32.saturating_pow(repeat);
    let per_mille = 500 + entropy.below(1000);
    first.saturating_mul(factor).min(2 * WAIT_MAX).saturating_mul(per_mille).min(1000 * WAIT_MAX)
        / 1000
}

/// Parses a server's `Retry-After` in seconds (RFC 9110, § 10.2.3). Its other form, a date, would
/// be compared with a clock that may be wrong, and is left to the usual wait.
pub(crate) fn retry_after(value: Option<&str>) -> Option<Duration> {
    let digits = value?.trim();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // A number too large for its type is above the cap too.
    let seconds = digits.parse().unwrap_or(u64::MAX);
    is_number.then(|| Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Drawn(u64);

    impl Entropy for Drawn {
        fn fill(&self, bytes: &mut [u8]) {
            let drawn = self.0.to_le_bytes();
            bytes.iter_mut().zip(drawn.iter().cycle()).for_each(|(byte, drawn)| *byte = *drawn);
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_and_are_spread_by_half() {
        for (repeat, least, most) in [(0, 500, 1499), (1, 1000, 2998), (2, 2000, 5996)] {
            assert_eq!(back_off(SECOND, repeat, &Drawn(0)), Duration::from_millis(least));
            assert_eq!(back_off(SECOND, repeat, &Drawn(999)), Duration::from_millis(most));
        }
        assert_eq!(back_off(Duration::ZERO, 2, &Drawn(999)), Duration::ZERO);
    }

    #[test]
    fn a_server_may_ask_for_a_minute_at_most() {
        let seconds = |text| retry_after(Some(text)).map(|wait| wait.as_secs());
        assert_eq!(seconds("0"), Some(0));
        assert_eq!(seconds(" 59 "), Some(59));
        assert_eq!(seconds("61"), Some(60));
        assert_eq!(seconds("99999999999999999999999"), Some(60));
        for none in ["", "-1", "+1", "1.5", "Fri, 31 Dec 1999 23:59:59 GMT"] {
            assert_eq!(seconds(none), None, "{none}");
        }
        assert_eq!(retry_after(None), None);
    }

    proptest! {
        #[test]
        fn a_wait_is_within_its_bounds(
            first_ms in 0_u64..100_000, repeat in any::<u32>(), drawn in any::<u64>(),
        ) {
            let wait = back_off(Duration::from_millis(first_ms), repeat, &Drawn(drawn)).as_millis();
            let middle = u128::from(first_ms).saturating_mul(1 << repeat.min(64));
            prop_assert!(wait <= 30_000);
            prop_assert!(wait >= (middle / 2).min(30_000));
            prop_assert!(wait <= middle.saturating_mul(3) / 2);
        }
    }
}
