//! Pure: the signer's permits in a form that is shown, compared and hashed.
//!
//! Each token and function has one line. Two sets of rules are equal if their lines are equal. A
//! line must never depend on anything but its rule.

use std::collections::BTreeSet;

use alloy_primitives::{Address, B256};
use sha2::{Digest as _, Sha256};

use crate::ceiling::SigningLimits;
use crate::process::SigningPermits;

/// The lines, sorted.
pub(crate) type RuleLines = BTreeSet<String>;

/// Returns the lines of a signer's permits: tokens and functions. Sign-ins and gas limits are
/// left out, since they give nobody money.
pub(crate) fn permit_lines(permits: &SigningPermits) -> RuleLines {
    let SigningPermits { assets, contracts, .. } = permits;
    let tokens = assets.iter().map(|token| {
        let chain = token.chain.0;
        let address = token.contract;
        // Quoted, so that no name can look like another line.
        format!("token {chain} {address} {:?} {:?}", token.name, token.version)
    });
    let calls = contracts.iter().flat_map(|it| {
        let call = move |selector| {
            format!("call {} {} 0x{}", it.chain_id, it.address, hex::encode(selector))
        };
        it.selectors.iter().map(call)
    });
    tokens.chain(calls).collect()
}

/// Returns the SHA-256 over the lines, each with a line break.
pub(crate) fn hash(lines: &RuleLines) -> B256 {
    let mut hash = Sha256::new();
    for line in lines {
        hash.update(line.as_bytes());
        hash.update(b"\n");
    }
    B256::from_slice(&hash.finalize())
}

/// Returns the hash of all rules: lines, ceilings and creator.
pub(crate) fn hash_of_all(
    lines: &RuleLines,
    limits: &SigningLimits,
    creator: Option<Address>,
) -> B256 {
    let SigningLimits { per_payment, per_hour, per_day, per_payee, lifetime, payments_max } =
        limits;
    let amounts = [per_payment, per_hour, per_day, per_payee, lifetime];
    let amounts: Vec<String> = amounts.iter().map(|it| it.units().to_string()).collect();
    let creator = creator.map_or_else(|| "none".to_owned(), |creator| creator.to_string());
    let mut all = lines.clone();
    all.insert(format!("ceilings {} {payments_max}", amounts.join(" ")));
    all.insert(format!("creator {creator}"));
    hash(&all)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{address, b256};
    use automaton_core::money::MicroUsdc;

    use super::*;
    use crate::payload::{Contract, GasRules, usdc};

    const CREATOR: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");

    fn permits() -> SigningPermits {
        let address = usdc().contract;
        let selectors = vec![[0xe3, 0xee, 0x16, 0x0e]];
        SigningPermits {
            assets: vec![usdc()],
            audiences: Vec::new(),
            contracts: vec![Contract { chain_id: 8453, address, selectors }],
            gas: GasRules::default(),
        }
    }

    #[test]
    fn the_lines_of_some_rules() {
        let lines: Vec<String> = permit_lines(&permits()).into_iter().collect();
        assert_eq!(
            lines,
            [
                "call 8453 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913 0xe3ee160e",
                r#"token 8453 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913 "USD Coin" "2""#,
            ]
        );
        assert!(permit_lines(&SigningPermits::default()).is_empty());
    }

    #[test]
    fn the_hash_is_that_of_the_lines_and_changes_with_each_rule() {
        // printf 'one\ntwo\n' | sha256sum
        let two = ["one".to_owned(), "two".to_owned()].into_iter().collect();
        let expected = b256!("c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8");
        assert_eq!(hash(&two), expected);

        let usdc = MicroUsdc::new;
        let limits = SigningLimits {
            per_payment: usdc(1),
            per_hour: usdc(2),
            per_day: usdc(3),
            per_payee: usdc(4),
            lifetime: usdc(5),
            payments_max: 6,
        };
        let rules = permit_lines(&permits());
        let mut seen = vec![
            hash_of_all(&rules, &limits, None),
            hash_of_all(&rules, &limits, Some(CREATOR)),
            hash_of_all(&RuleLines::new(), &limits, None),
        ];
        let changes: [fn(&mut SigningLimits); 6] = [
            |it| it.per_payment = MicroUsdc::ZERO,
            |it| it.per_hour = MicroUsdc::ZERO,
            |it| it.per_day = MicroUsdc::ZERO,
            |it| it.per_payee = MicroUsdc::ZERO,
            |it| it.lifetime = MicroUsdc::ZERO,
            |it| it.payments_max = 0,
        ];
        for change in changes {
            let mut other = limits;
            change(&mut other);
            seen.push(hash_of_all(&rules, &other, None));
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
