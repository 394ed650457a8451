//! Pure: rules for spending money.
//!
//! The signer limits sums and counts every payment. These rules refuse what no sum makes
//! acceptable. No rule may look at a balance: an unknown balance buys nothing, and the purchase
//! itself checks that.

use automaton_core::intent::Intent;
use automaton_core::wire::cloud::TIERS_USD;

use super::{LiftedBy, Rule, deny_if, quoted};
use crate::decision::{ReasonCode, RuleId};
use crate::facts::CreatorAddress;
use crate::payment::may_be_paid;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: RuleId::new("financial.tier"),
        code: ReasonCode::ValidationFailed,
        sentence: "Credits are sold for 5, 25, 100, 500, 1000 or 2500 US dollars.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Intent::TopUp { usd } = intent else { return Ok(None) };
            deny_if(!TIERS_USD.contains(usd), || format!("This one asks for {usd}."))
        },
    },
    Rule {
        id: RuleId::new("financial.transfer"),
        code: ReasonCode::ValidationFailed,
        sentence: "A transfer names an address and a whole number of cents above zero.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Intent::Transfer { to, cents } = intent else { return Ok(None) };
            // This type holds any address of 20 bytes, whoever owns it.
            let wrong = *cents == 0 || to.parse::<CreatorAddress>().is_err();
            deny_if(wrong, || format!("This one gives {cents} cents to {}.", quoted(to)))
        },
    },
    Rule {
        id: RuleId::new("financial.x402_domain"),
        code: ReasonCode::DomainNotAllowed,
        sentence: "Only hosts of the creator's list are paid for requests.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, facts| {
            let Intent::FetchPaid { url, .. } = intent else { return Ok(None) };
            let allowed = authority(url).is_some_and(|host| may_be_paid(&facts.paid_hosts, host));
            deny_if(!allowed, || format!("{} is of none of them.", quoted(url)))
        },
    },
];

/// Returns the host of a URL, with its port if there is one. The treasury and the connecting code
/// parse the URL again. An unusual URL has no host here.
fn authority(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest.get(..end)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    let fine = matches!(scheme, "http" | "https") && !host.is_empty() && host.bytes().all(plain);
    fine.then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{answering, objections};
    use automaton_core::trust::Label;

    #[test]
    fn only_tiers_are_bought() {
        for usd in TIERS_USD {
            let ids = objections(&Intent::TopUp { usd }, &answering(Label::Creator));
            assert!(ids.is_empty(), "{usd}: {ids:?}");
        }
        for usd in [0, 1, 6, 2501, u32::MAX] {
            let ids = objections(&Intent::TopUp { usd }, &answering(Label::Creator));
            assert_eq!(ids, ["financial.tier"], "{usd}");
        }
    }

    #[test]
    fn a_transfer_names_somebody_and_something() {
        let to = "0x2222222222222222222222222222222222222222";
        let transfer = |to: &str, cents| Intent::Transfer { to: to.to_owned(), cents };
        assert!(objections(&transfer(to, 1), &answering(Label::Creator)).is_empty());
        let zero = format!("0x{}", "0".repeat(40));
        for (to, cents) in [(to, 0), ("", 1), ("creator", 1), (&to[..41], 1), (&zero, 1)] {
            let ids = objections(&transfer(to, cents), &answering(Label::Creator));
            assert_eq!(ids.first(), Some(&"financial.transfer"), "{to} {cents}");
        }
    }

    #[test]
    fn only_hosts_of_the_list_are_paid() {
        let fetch = |url: &str| Intent::FetchPaid { url: url.to_owned(), cap_cents: 1 };
        for url in [
            "https://pay.example",
            "https://api.pay.example/x?y=https://evil.example",
            "http://127.0.0.1:4021/weather",
        ] {
            assert!(objections(&fetch(url), &answering(Label::Own)).is_empty(), "{url}");
            let held = objections(&fetch(url), &answering(Label::Peer));
            assert_eq!(held, ["authority.untrusted_input"], "{url}");
        }
        for url in [
            "",
            "pay.example",
            "ftp://pay.example",
            "https://pay.example.evil.example",
            "https://pay.example@evil.example",
            "https://evil.example#pay.example",
            "https://evil.example\\pay.example",
            "https://pay.example:8443/",
            "http://127.0.0.1/",
        ] {
            let ids = objections(&fetch(url), &answering(Label::Creator));
            assert_eq!(ids, ["financial.x402_domain"], "{url}");
        }
    }
}
