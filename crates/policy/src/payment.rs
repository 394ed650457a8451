//! Pure: checks payments against the creator's limits.
//!
//! The rules of [`crate::judge()`] see only the call. The limits here need numbers that only the
//! treasury knows: recent spending and the remaining balance. Refusals come before questions, and
//! an unknown amount never passes. The signer and the cloud count for themselves: no limit here
//! may be the only one.

use automaton_core::money::Microcents;
use automaton_core::money_defaults::{self, REQUEST_CENTS, credits};
use automaton_core::payment::Purpose;
use automaton_core::time::Span;

use crate::decision::ReasonCode;

/// The creator's limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentLimits {
    /// The largest single transfer.
    pub transfer_max: Microcents,
    /// The sum of transfers in an hour.
    pub transfer_hour: Microcents,
    /// The sum of transfers in a day.
    pub transfer_day: Microcents,
    /// The shortest time between two transfers.
    pub transfer_cooldown: Span,
    /// The most transfers of one turn.
    pub transfers_per_turn: u32,
    /// The largest payment for a request.
    pub x402_max: Microcents,
    /// The sum of payments for requests in an hour.
    pub x402_hour: Microcents,
    /// The sum of payments for requests in a day.
    pub x402_day: Microcents,
    /// Hosts that may be paid for a request: names, which include their subdomains, with the
    /// port if it is not the default, or whole origins.
    pub x402_hosts: Vec<String>,
    /// The smallest balance that must remain.
    pub reserve: Microcents,
    /// The amount above which the creator is asked.
    pub ask_above: Microcents,
    /// True if transfers on the automaton's own initiative need no approval.
    pub gives_alone: bool,
}

impl Default for PaymentLimits {
    /// Returns the amounts of [`money_defaults`], with no hosts to pay for requests.
    fn default() -> Self {
        Self {
            transfer_max: credits(money_defaults::TRANSFER_CENTS),
            transfer_hour: credits(money_defaults::TRANSFER_HOUR_CENTS),
            transfer_day: credits(money_defaults::TRANSFER_DAY_CENTS),
            transfer_cooldown: Span::ZERO,
            transfers_per_turn: 2,
            x402_max: credits(REQUEST_CENTS),
            x402_hour: credits(REQUEST_CENTS * money_defaults::REQUESTS_PER_HOUR),
            x402_day: credits(REQUEST_CENTS * money_defaults::REQUESTS_PER_DAY),
            x402_hosts: Vec::new(),
            reserve: credits(money_defaults::RESERVE_CENTS),
            ask_above: credits(money_defaults::ASK_ABOVE_CENTS),
            gives_alone: false,
        }
    }
}

/// The facts about a payment that is about to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentFacts {
    /// The purpose.
    pub purpose: Purpose,
    /// The amount.
    pub worth: Microcents,
    /// The balance that pays for it, or `None` if it is unknown.
    pub have: Option<Microcents>,
    /// The sum spent on the same purpose in the last hour.
    pub hour: Microcents,
    /// The sum spent on the same purpose in the last 24 hours.
    pub day: Microcents,
    /// The time since the last payment, or `None` if there was none.
    pub since_last: Option<Span>,
    /// The number of payments that the same turn has asked for.
    pub in_turn: u32,
    /// True if the creator has approved the very call that asks for it.
    pub approved: bool,
}

/// The verdict on a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentVerdict {
    /// The payment may be made.
    Allow,
    /// The creator is asked, for this reason.
    Ask(ReasonCode, String),
    /// The payment is refused, for this reason.
    Deny(ReasonCode, String),
}

impl PaymentLimits {
    /// Judges a payment. Purchases of credits are limited only by the price of their tier and the
    /// signer's ceilings, since they only move money between the automaton's own accounts.
    ///
    /// An approved call is not subject to the pace and is not asked about again. The ceilings and
    /// the reserve apply to it as to any other.
    #[must_use]
    pub fn judge(&self, facts: &PaymentFacts) -> PaymentVerdict {
        let pace = || self.check_pace(facts).filter(|_| facts.purpose == Purpose::Transfer);
        let objection = match facts.approved {
            true => self.hard_limit(facts),
            false => self.hard_limit(facts).or_else(pace),
        };
        if let Some((code, reason)) = objection {
            return PaymentVerdict::Deny(code, reason);
        }
        let is_asked = facts.purpose != Purpose::TopUp && facts.worth > self.ask_above;
        if is_asked && !facts.approved {
            let reason = format!(
                "{} is more than the {} that may be spent without asking.",
                facts.worth, self.ask_above
            );
            return PaymentVerdict::Ask(ReasonCode::ConfirmationRequired, reason);
        }
        PaymentVerdict::Allow
    }

    /// Returns the limit that a payment exceeds and that no approval raises, with the reason: a
    /// ceiling, the reserve, or half of the balance. Such a payment is refused before the creator
    /// is asked.
    #[must_use]
    pub fn hard_limit(&self, facts: &PaymentFacts) -> Option<(ReasonCode, String)> {
        match facts.purpose {
            Purpose::TopUp => None,
            Purpose::X402 => self
                .check_caps(facts, &[self.x402_max, self.x402_hour, self.x402_day])
                .or_else(|| self.check_reserve(facts)),
            Purpose::Transfer => self
                .check_caps(facts, &[self.transfer_max, self.transfer_hour, self.transfer_day])
                .or_else(|| self.check_reserve(facts))
                .or_else(|| check_half(facts)),
        }
    }

    /// Judges the rent of one more machine by the monthly cost of all machines, since rent
    /// continues every minute.
    #[must_use]
    pub fn judge_rent(&self, rented: Microcents, more: Microcents) -> PaymentVerdict {
        match rented.plus(more) {
            Ok(sum) if more >= Microcents::ZERO && sum <= self.ask_above => PaymentVerdict::Allow,
            _ => {
                let reason = format!(
                    "Machines cost {rented} a month, {more} more pass the {} that may be spent \
                     without asking.",
                    self.ask_above
                );
                PaymentVerdict::Deny(ReasonCode::SpendLimitExceeded, reason)
            }
        }
    }

    fn check_caps(
        &self,
        facts: &PaymentFacts,
        caps: &[Microcents; 3],
    ) -> Option<(ReasonCode, String)> {
        let [single, hour, day] = *caps;
        let PaymentFacts { worth, .. } = *facts;
        let over = |what: &str, spent: Microcents, cap: Microcents| {
            // A sum that overflows is more than any cap.
            let fits = spent.plus(worth).is_ok_and(|sum| sum <= cap);
            let reason = format!("{spent} were spent in the last {what}, {worth} more pass {cap}.");
            (!fits).then_some((ReasonCode::SpendLimitExceeded, reason))
        };
        if worth > single {
            let reason = format!("{worth} is more than the {single} of one payment.");
            return Some((ReasonCode::SpendLimitExceeded, reason));
        }
        over("hour", facts.hour, hour).or_else(|| over("24 hours", facts.day, day))
    }

    fn check_pace(&self, facts: &PaymentFacts) -> Option<(ReasonCode, String)> {
        if facts.in_turn >= self.transfers_per_turn {
            let reason = format!("A turn makes at most {} transfers.", self.transfers_per_turn);
            return Some((ReasonCode::TurnTransferLimit, reason));
        }
        let since = facts.since_last.filter(|since| *since < self.transfer_cooldown)?;
        let reason = format!(
            "The last transfer was {since} ago, and {} have to pass.",
            self.transfer_cooldown
        );
        Some((ReasonCode::TransferCooldown, reason))
    }

    fn check_reserve(&self, facts: &PaymentFacts) -> Option<(ReasonCode, String)> {
        let Some(have) = facts.have else {
            let reason = "What is there cannot be read, and what is unknown is not spent.";
            return Some((ReasonCode::BalanceUnknown, reason.to_owned()));
        };
        let left = have.minus(facts.worth);
        if left.is_ok_and(|left| left >= self.reserve) {
            return None;
        }
        let reason = format!(
            "{have} are there, {} would be spent, and {} have to be left.",
            facts.worth, self.reserve
        );
        Some((ReasonCode::MinimumReserve, reason))
    }
}

/// Returns true if a host, with its port if it is not the default, is on the list or is a
/// subdomain of an entry. An empty list permits nobody.
#[must_use]
pub fn may_be_paid(hosts: &[String], host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    hosts.iter().map(|known| known.trim().to_ascii_lowercase()).any(|known| {
        // An origin stands only for itself. The connecting code checks its scheme.
        if let Some((_, alone)) = known.split_once("://") {
            return host == alone;
        }
        let under = host.strip_suffix(&known).is_some_and(|rest| rest.ends_with('.'));
        !known.is_empty() && !known.starts_with('.') && (host == known || under)
    })
}

/// Refuses a transfer of more than half of the balance.
fn check_half(facts: &PaymentFacts) -> Option<(ReasonCode, String)> {
    let twice = facts.worth.plus(facts.worth);
    if facts.have.is_some_and(|have| twice.is_ok_and(|twice| twice <= have)) {
        return None;
    }
    let reason = format!("{} is more than half of what is there.", facts.worth);
    Some((ReasonCode::SpendLimitExceeded, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cents(cents: i64) -> Microcents {
        Microcents::from_cents(cents).unwrap()
    }

    fn facts(purpose: Purpose, worth: i64) -> PaymentFacts {
        PaymentFacts {
            purpose,
            worth: cents(worth),
            have: Some(cents(1_000_000)),
            hour: Microcents::ZERO,
            day: Microcents::ZERO,
            since_last: None,
            in_turn: 0,
            approved: false,
        }
    }

    fn code(limits: &PaymentLimits, facts: &PaymentFacts) -> &'static str {
        match limits.judge(facts) {
            PaymentVerdict::Allow => "allow",
            PaymentVerdict::Ask(code, _) => code.name(),
            PaymentVerdict::Deny(code, _) => {
                assert_ne!(code, ReasonCode::ConfirmationRequired);
                code.name()
            }
        }
    }

    #[test]
    fn every_limit_of_a_transfer_holds_to_the_cent() {
        let limits =
            PaymentLimits { transfer_cooldown: Span::from_secs(60), ..PaymentLimits::default() };
        let one = facts(Purpose::Transfer, 1);
        let far = Some(Span::from_secs(60));
        for (facts, expected) in [
            (facts(Purpose::Transfer, 1_000), "allow"),
            (facts(Purpose::Transfer, 1_001), "CONFIRMATION_REQUIRED"),
            (facts(Purpose::Transfer, 5_000), "CONFIRMATION_REQUIRED"),
            (facts(Purpose::Transfer, 5_001), "SPEND_LIMIT_EXCEEDED"),
            (PaymentFacts { hour: cents(9_999), ..one }, "allow"),
            (PaymentFacts { hour: cents(10_000), ..one }, "SPEND_LIMIT_EXCEEDED"),
            (PaymentFacts { day: cents(24_999), ..one }, "allow"),
            (PaymentFacts { day: cents(25_000), ..one }, "SPEND_LIMIT_EXCEEDED"),
            (PaymentFacts { day: Microcents::new(i64::MAX), ..one }, "SPEND_LIMIT_EXCEEDED"),
            (PaymentFacts { in_turn: 1, ..one }, "allow"),
            (PaymentFacts { in_turn: 2, ..one }, "TURN_TRANSFER_LIMIT"),
            (PaymentFacts { since_last: far, ..one }, "allow"),
            (
                PaymentFacts { since_last: Some(Span::from_millis(59_999)), ..one },
                "TRANSFER_COOLDOWN",
            ),
            (PaymentFacts { have: Some(cents(101)), ..one }, "allow"),
            (PaymentFacts { have: Some(cents(100)), ..one }, "MINIMUM_RESERVE"),
            (PaymentFacts { have: None, ..one }, "BALANCE_UNKNOWN"),
        ] {
            assert_eq!(code(&limits, &facts), expected, "{facts:?}");
        }
        let free = PaymentLimits { reserve: Microcents::ZERO, ..limits };
        let rich = PaymentFacts { have: Some(cents(200)), ..facts(Purpose::Transfer, 100) };
        assert_eq!(code(&free, &rich), "allow");
        let poor = PaymentFacts { have: Some(cents(199)), ..rich };
        assert_eq!(code(&free, &poor), "SPEND_LIMIT_EXCEEDED", "not more than half");
    }

    #[test]
    fn an_approval_lifts_the_pace_and_the_question_and_no_ceiling() {
        let limits =
            PaymentLimits { transfer_cooldown: Span::from_secs(60), ..PaymentLimits::default() };
        let approved = |worth| PaymentFacts { approved: true, ..facts(Purpose::Transfer, worth) };
        let late = PaymentFacts { in_turn: 2, since_last: Some(Span::ZERO), ..approved(1_001) };
        for (facts, expected) in [
            (approved(5_000), "allow"),
            (late, "allow"),
            (approved(5_001), "SPEND_LIMIT_EXCEEDED"),
            (PaymentFacts { hour: cents(10_000), ..approved(1) }, "SPEND_LIMIT_EXCEEDED"),
            (PaymentFacts { have: Some(cents(100)), ..approved(1) }, "MINIMUM_RESERVE"),
            (PaymentFacts { have: Some(cents(5_000)), ..approved(3_000) }, "SPEND_LIMIT_EXCEEDED"),
            (PaymentFacts { have: None, ..approved(1) }, "BALANCE_UNKNOWN"),
        ] {
            assert_eq!(code(&limits, &facts), expected, "{facts:?}");
            let is_hard = limits.hard_limit(&PaymentFacts { approved: false, ..facts }).is_some();
            assert_eq!(is_hard, expected != "allow", "{facts:?}: told before the question");
        }
    }

    #[test]
    fn a_request_has_a_cap_windows_and_the_reserve_but_no_pace() {
        let limits = PaymentLimits::default();
        let one = facts(Purpose::X402, 1);
        for (facts, expected) in [
            (facts(Purpose::X402, 100), "allow"),
            (facts(Purpose::X402, 101), "SPEND_LIMIT_EXCEEDED"),
            (PaymentFacts { hour: cents(1_000), ..one }, "SPEND_LIMIT_EXCEEDED"),
            (PaymentFacts { day: cents(5_000), ..one }, "SPEND_LIMIT_EXCEEDED"),
            (PaymentFacts { have: Some(cents(100)), ..one }, "MINIMUM_RESERVE"),
            (PaymentFacts { have: None, ..one }, "BALANCE_UNKNOWN"),
            (PaymentFacts { in_turn: 99, since_last: Some(Span::ZERO), ..one }, "allow"),
        ] {
            assert_eq!(code(&limits, &facts), expected, "{facts:?}");
        }
        let x402_max = cents(5_000);
        let x402_hour = cents(5_000);
        let wide = PaymentLimits { x402_max, x402_hour, ..limits };
        assert_eq!(code(&wide, &facts(Purpose::X402, 1_001)), "CONFIRMATION_REQUIRED");
        let top_up = PaymentFacts { have: None, ..facts(Purpose::TopUp, 250_000) };
        assert_eq!(code(&wide, &top_up), "allow", "its price is that of its tier");
    }

    #[test]
    fn only_listed_hosts_and_what_lies_under_them_are_paid() {
        let hosts =
            ["conway.tech", " Pay.Example ", "local.test:8402", "http://lone.test", "", "."]
                .map(str::to_owned);
        for host in
            ["conway.tech", "api.conway.tech", "PAY.example", "local.test:8402", "lone.test"]
        {
            assert!(may_be_paid(&hosts, host), "{host}");
        }
        for host in [
            "",
            ".",
            "conway.tech.evil.example",
            "evilconway.tech",
            "conway.tech:8080",
            "tech",
            "local.test",
            "local.test:84021",
        ] {
            assert!(!may_be_paid(&hosts, host), "{host}");
        }
        assert!(!may_be_paid(&[], "conway.tech"));
    }

    #[test]
    fn machines_are_rented_up_to_what_may_be_spent_in_a_month_without_asking() {
        let limits = PaymentLimits::default();
        let most = Microcents::new(i64::MAX);
        assert_eq!(limits.judge_rent(cents(500), cents(500)), PaymentVerdict::Allow);
        for (rented, more) in [(cents(500), cents(501)), (most, most), (cents(0), cents(-1))] {
            let refused = limits.judge_rent(rented, more);
            assert!(matches!(refused, PaymentVerdict::Deny(..)), "{rented} {more}");
        }
    }

    proptest! {
        /// A new automaton with the defaults can transfer what its creator orders after its first
        /// inference is paid: up to half of its balance, and above the reserve.
        #[test]
        fn the_default_reserve_never_forbids_a_gift_out_of_the_first_purchase(
            thought in 0_i64..100, worth in 1_i64..200,
        ) {
            let have = i64::from(money_defaults::FIRST_PURCHASE_CENTS) - thought;
            let facts = PaymentFacts { have: Some(cents(have)), ..facts(Purpose::Transfer, worth) };
            prop_assert_eq!(PaymentLimits::default().judge(&facts), PaymentVerdict::Allow);
            let request = PaymentFacts { purpose: Purpose::X402, worth: cents(worth.min(100)), ..facts };
            prop_assert_eq!(PaymentLimits::default().judge(&request), PaymentVerdict::Allow);
        }

        #[test]
        fn a_question_by_default_is_about_a_payment_that_a_yes_makes(
            worth in 1_i64..20_000, have in 0_i64..60_000,
        ) {
            let limits = PaymentLimits::default();
            let facts = PaymentFacts { have: Some(cents(have)), ..facts(Purpose::Transfer, worth) };
            if let PaymentVerdict::Ask(..) = limits.judge(&facts) {
                prop_assert!(have - worth >= i64::from(money_defaults::RESERVE_CENTS));
                prop_assert!(worth * 2 <= have && worth <= i64::from(money_defaults::TRANSFER_CENTS));
            }
        }

        #[test]
        fn nothing_allowed_passes_a_limit(
            worth in 0_i64..20_000, hour in 0_i64..20_000, more in 0_i64..40_000,
            have in proptest::option::of(0_i64..60_000), in_turn in 0_u32..4,
        ) {
            let limits = PaymentLimits::default();
            let day = cents(hour + more);
            let base = facts(Purpose::Transfer, worth);
            let have = have.map(cents);
            let facts = PaymentFacts { hour: cents(hour), day, have, in_turn, ..base };
            if limits.judge(&facts) == PaymentVerdict::Allow {
                prop_assert!(worth <= 1_000 && hour + worth <= 10_000);
                prop_assert!(hour + more + worth <= 25_000 && in_turn < 2);
                prop_assert!(have.is_some_and(|have| have.cents_floor() - worth >= 100));
            }
        }
    }
}
