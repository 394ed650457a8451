//! The log of a transaction that belongs to an authorization, and estimates that are refused.

use alloy_primitives::{address, b256};
use proptest::prelude::*;

use super::*;

const TOKEN: Address = address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913");

fn paid(from: u8, value: u64, nonce: u8) -> Authorization {
    Authorization {
        from: Address::repeat_byte(from),
        to: Address::repeat_byte(0xEE),
        value: U256::from(value),
        valid_after: U256::ZERO,
        valid_before: U256::MAX,
        nonce: B256::repeat_byte(nonce),
    }
}

fn log(address: Address, at: usize, (topics, data): (Vec<B256>, Vec<u8>)) -> Log {
    Log {
        address,
        topics,
        data: data.into(),
        transaction_hash: b256!("1111111111111111111111111111111111111111111111111111111111111111"),
        log_index: at as u64,
    }
}

fn used(paid: &Authorization) -> (Vec<B256>, Vec<u8>) {
    let event = Token::AuthorizationUsed { authorizer: paid.from, nonce: paid.nonce };
    (event.encode_topics().into_iter().map(|topic| topic.0).collect(), event.encode_data())
}

fn moved(paid: &Authorization) -> (Vec<B256>, Vec<u8>) {
    let event = Token::Transfer { from: paid.from, to: paid.to, value: paid.value };
    (event.encode_topics().into_iter().map(|topic| topic.0).collect(), event.encode_data())
}

/// Finds the transfer of an authorization among logs, as the chain's own look-up does.
fn find(logs: &[Log], wanted: &Authorization) -> Option<u64> {
    let (topics, _) = used(wanted);
    let used = logs.iter().find(|log| log.address == TOKEN && log.topics == topics)?;
    transfer_after(TOKEN, used.log_index, logs, wanted)
}

#[test]
fn a_transfer_belongs_to_the_authorization_before_it() {
    let mine = paid(1, 5, 1);
    let other = paid(1, 7, 2);
    // The payer's nonce moved another amount; an equal transfer without it is nobody's.
    let logs =
        [log(TOKEN, 3, moved(&mine)), log(TOKEN, 4, used(&mine)), log(TOKEN, 5, moved(&other))];
    assert_eq!(find(&logs, &mine), None);
    // Logs of other contracts in between change nothing, whatever they say.
    let foreign = Address::repeat_byte(0x66);
    let logs = [
        log(TOKEN, 10, used(&mine)),
        log(foreign, 11, moved(&other)),
        log(TOKEN, 12, moved(&mine)),
        log(foreign, 13, moved(&mine)),
    ];
    assert_eq!(find(&logs, &mine), Some(12));
    // Nor does another contract's transfer stand in for the token's.
    let logs = [log(TOKEN, 1, used(&mine)), log(foreign, 2, moved(&mine))];
    assert_eq!(find(&logs, &mine), None);
}

proptest! {
    #[test]
    fn no_two_authorizations_have_one_log(
        payments in prop::collection::vec((1_u8..3, 1_u64..3), 1..8),
        first in 0_usize..50,
        reversed in any::<bool>(),
    ) {
        // Many have the same payer, payee and amount; the nonce alone tells them apart.
        let all: Vec<_> =
            payments.iter().zip(1_u8..).map(|(&(from, value), nonce)| paid(from, value, nonce)).collect();
        let mut logs = Vec::new();
        for (at, payment) in all.iter().enumerate() {
            logs.push(log(TOKEN, first + 2 * at, used(payment)));
            logs.push(log(TOKEN, first + 2 * at + 1, moved(payment)));
        }
        if reversed {
            logs.reverse();
        }
        let found: Vec<_> = all.iter().map(|payment| find(&logs, payment)).collect();
        let wanted: Vec<_> =
            (0..all.len()).map(|at| Some((first + 2 * at + 1) as u64)).collect();
        prop_assert_eq!(found, wanted);
    }
}

#[test]
fn an_estimate_that_no_transfer_takes_is_not_stored() {
    assert_eq!(gas_for(65_536).unwrap(), GAS_MIN);
    assert_eq!(gas_for(0).unwrap(), GAS_MIN);
    assert_eq!(gas_for(110_000).unwrap(), 132_000);
    assert_eq!(gas_for(250_000).unwrap(), GAS_MAX);
    for lie in [250_001, 30_000_000, u64::MAX] {
        let error = gas_for(lie).unwrap_err();
        // Not a refusal: the payment waits, and the node is asked anew.
        assert!(matches!(error, SettlementError::Unavailable(_)), "{lie}");
    }
}

#[test]
fn a_busy_node_has_refused_no_payment() {
    let node = "node".to_owned();
    let words = "over rate limit".to_owned();
    let busy = ChainError::Busy { node, method: "eth_estimateGas", words };
    assert!(matches!(busy.into(), SettlementError::Unavailable(_)));
}
