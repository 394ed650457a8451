//! Pure: payments, as EIP-3009 `TransferWithAuthorization`.
//!
//! The nonce is derived from the intent (<https://eips.ethereum.org/EIPS/eip-3009>). So an intent
//! can move money only once, whatever is signed again.

use alloy_primitives::{Address, B256, U256, keccak256};
use automaton_core::id::PaymentId;
use automaton_core::money::MicroUsdc;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::{Authorization, ChainId, TokenDomain};
use serde::{Deserialize, Serialize};

use crate::error::{SignerRefusal, SignerRefusalCode};

/// The latest expiry of an authorization, in seconds from now.
pub const DEADLINE_MAX_S: u32 = 600;

/// The start of an authorization, in seconds before now, so that a chain whose clock is behind
/// accepts it. Other x402 clients use the same value.
pub const BEGINS_BEFORE_S: u64 = 600;

/// The prefix of the hashed nonce, so that no other hash equals one.
const NONCE_TAG: &[u8] = b"automaton eip-3009 nonce v1";

/// A payment to be signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaymentIntent {
    /// The intent. Each intent has one payment.
    pub intent: PaymentId,
    /// EIP-155 id of the chain.
    pub chain_id: u64,
    /// The token's contract.
    pub asset: Address,
    /// The payee.
    pub payee: Address,
    /// The amount, greater than zero.
    pub amount: MicroUsdc,
    /// The validity in seconds from now, 1 to [`DEADLINE_MAX_S`].
    pub deadline_s: u32,
}

/// Returns the nonce of an intent: `keccak256(tag ‖ wallet ‖ chain id ‖ intent id)`. Each part
/// has a fixed length, so no two intents share a nonce.
#[must_use]
pub fn nonce(wallet: Address, chain_id: u64, intent: PaymentId) -> B256 {
    let intent = intent.to_string();
    keccak256([NONCE_TAG, wallet.as_slice(), &chain_id.to_be_bytes(), intent.as_bytes()].concat())
}

/// A payment in a listed token that keeps every rule except the ceilings.
#[derive(Debug)]
pub(crate) struct ValidatedTransfer {
    asset: TokenDomain,
    authorization: Authorization,
}

impl ValidatedTransfer {
    pub(crate) fn new(
        wallet: Address,
        assets: &[TokenDomain],
        intent: &PaymentIntent,
        now: Timestamp,
    ) -> Result<Self, SignerRefusal> {
        let wanted = (ChainId(intent.chain_id), intent.asset);
        let mut known = assets.iter();
        let asset = known.find(|it| (it.chain, it.contract) == wanted).ok_or_else(|| {
            let address = intent.asset;
            let chain = intent.chain_id;
            let reason = format!("asset: {address} on chain {chain} is not among the known ones");
            SignerRefusal::new(SignerRefusalCode::Asset, reason)
        })?;
        if intent.payee.is_zero() || intent.payee == wallet {
            let reason = format!("payee: {} can be nobody who is owed money", intent.payee);
            return Err(SignerRefusal::new(SignerRefusalCode::Payee, reason));
        }
        if intent.amount == MicroUsdc::ZERO {
            return Err(SignerRefusal::new(
                SignerRefusalCode::Amount,
                "amount: must be more than nothing",
            ));
        }
        let deadline = intent.deadline_s;
        if !(1..=DEADLINE_MAX_S).contains(&deadline) {
            let reason =
                format!("deadline_s: {deadline} is not between 1 and {DEADLINE_MAX_S} seconds");
            return Err(SignerRefusal::new(SignerRefusalCode::Deadline, reason));
        }
        let now = u64::try_from(now.as_millis() / 1000).map_err(|_| {
            SignerRefusal::new(SignerRefusalCode::Deadline, "the signer's clock is before 1970")
        })?;
        let authorization = Authorization {
            from: wallet,
            to: intent.payee,
            value: U256::from(intent.amount.units()),
            valid_after: U256::from(now.saturating_sub(BEGINS_BEFORE_S)),
            valid_before: U256::from(now.saturating_add(u64::from(deadline))),
            nonce: nonce(wallet, intent.chain_id, intent.intent),
        };
        Ok(Self { asset: asset.clone(), authorization })
    }

    pub(crate) const fn authorization(&self) -> &Authorization {
        &self.authorization
    }

    /// Replaces the nonce: a planted defect that a rehearsal has to find.
    #[cfg(any(test, feature = "rehearsal"))]
    pub(crate) fn with_nonce(mut self, nonce: B256) -> Self {
        self.authorization.nonce = nonce;
        self
    }

    pub(super) fn digest(&self) -> B256 {
        self.asset.transfer_digest(&self.authorization)
    }
}

/// USDC on Base.
#[cfg(test)]
pub(crate) fn usdc() -> TokenDomain {
    TokenDomain::usdc(
        ChainId::BASE,
        alloy_primitives::address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
    )
}

#[cfg(test)]
mod tests {
    use alloy_primitives::address;
    use proptest::prelude::*;

    use super::*;
    use crate::key::golden;
    use crate::payload::Payload;

    const PAYEE: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");
    const NOW: Timestamp = Timestamp::from_millis(1_767_323_105_678);

    fn intent() -> PaymentIntent {
        PaymentIntent {
            intent: "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(),
            chain_id: 8453,
            asset: usdc().contract,
            payee: PAYEE,
            amount: MicroUsdc::new(5_000_000),
            deadline_s: 300,
        }
    }

    #[test]
    fn golden_vector() {
        let key = golden();
        let authorization = Authorization {
            from: key.address(),
            to: PAYEE,
            value: U256::from(5_000_000),
            valid_after: U256::from(1_767_323_045),
            valid_before: U256::from(1_767_323_405),
            nonce: B256::repeat_byte(0x11),
        };
        let transfer = ValidatedTransfer { asset: usdc(), authorization };
        let signature = key.sign(&Payload::Transfer(transfer)).unwrap();
        assert_eq!(
            signature.to_string(),
            "0x6090be6a4c050076f578c4a878d676ebccf44fc969c1ebe3137c1d7705307dd0085ff6724161c296\
             d1e6bbb263d17fb8085cb963762bb8ad841f52f07569af591b"
        );
    }

    #[test]
    fn the_window_is_at_most_the_deadline() {
        let transfer =
            ValidatedTransfer::new(golden().address(), &[usdc()], &intent(), NOW).unwrap();
        let authorization = transfer.authorization();
        assert_eq!(authorization.valid_after, U256::from(1_767_323_105 - 600));
        assert_eq!(authorization.valid_before, U256::from(1_767_323_105 + 300));
        assert_eq!(authorization.value, U256::from(5_000_000));
    }

    #[test]
    fn what_breaks_a_rule_is_refused_by_name() {
        let wallet = golden().address();
        let check = |change: fn(&mut PaymentIntent), code: SignerRefusalCode, words: &str| {
            let mut broken = intent();
            change(&mut broken);
            let refusal = ValidatedTransfer::new(wallet, &[usdc()], &broken, NOW).unwrap_err();
            assert_eq!(refusal.code, code, "{refusal}");
            assert!(refusal.reason.contains(words), "{refusal}");
        };
        check(|it| it.chain_id = 1, SignerRefusalCode::Asset, "on chain 1 is not");
        check(|it| it.asset = PAYEE, SignerRefusalCode::Asset, "asset: 0x70997970");
        check(|it| it.payee = Address::ZERO, SignerRefusalCode::Payee, "payee: 0x0000");
        check(|it| it.payee = golden().address(), SignerRefusalCode::Payee, "payee: 0xf39F");
        check(|it| it.amount = MicroUsdc::ZERO, SignerRefusalCode::Amount, "amount");
        check(|it| it.deadline_s = 0, SignerRefusalCode::Deadline, "deadline_s: 0");
        check(|it| it.deadline_s = 601, SignerRefusalCode::Deadline, "deadline_s: 601");
        check(|it| it.deadline_s = 315_360_000, SignerRefusalCode::Deadline, "315360000");
        let early = Timestamp::from_millis(-1_000);
        let refusal = ValidatedTransfer::new(wallet, &[usdc()], &intent(), early).unwrap_err();
        assert_eq!(refusal.code, SignerRefusalCode::Deadline);
    }

    #[test]
    fn amounts_are_whole_numbers_without_sign() {
        let json = serde_json::to_string(&intent()).unwrap();
        assert_eq!(serde_json::from_str::<PaymentIntent>(&json).unwrap(), intent());
        for bad in ["5.5", "-5000000", "\"5000000\"", "5e6", "99999999999999999999"] {
            let broken = json.replace("5000000", bad);
            assert!(serde_json::from_str::<PaymentIntent>(&broken).is_err(), "{bad}");
        }
        let more = json.replace("{\"intent\"", "{\"nonce\":\"0x11\",\"intent\"");
        assert!(serde_json::from_str::<PaymentIntent>(&more).is_err());
    }

    #[test]
    fn the_nonce_never_changes() {
        // Computed by another program. Another value would let an intent that was signed before
        // an update be paid twice.
        let nonce = nonce(golden().address(), 8453, intent().intent);
        assert_eq!(
            nonce.to_string(),
            "0xc371f0bf6e885ed9fda931e4ef8ddc20740ffa9c1514ec62dfd7264ab7637508"
        );
    }

    fn id(bits: u128) -> PaymentId {
        const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        let digit = |place: u32| {
            let digit = usize::try_from(bits >> (5 * place) & 31).unwrap();
            char::from(DIGITS[digit])
        };
        (0..26).rev().map(digit).collect::<String>().parse().unwrap()
    }

    proptest! {
        #[test]
        fn the_nonce_is_injective(
            one in (any::<[u8; 20]>(), any::<u64>(), any::<u128>()),
            other in (any::<[u8; 20]>(), any::<u64>(), any::<u128>()),
            same in (any::<bool>(), any::<bool>(), any::<bool>()),
        ) {
            let other = (
                if same.0 { one.0 } else { other.0 },
                if same.1 { one.1 } else { other.1 },
                if same.2 { one.2 } else { other.2 },
            );
            let of = |it: ([u8; 20], u64, u128)| nonce(it.0.into(), it.1, id(it.2));
            prop_assert_eq!(of(one) == of(other), one == other);
        }

        #[test]
        fn a_deadline_is_never_further_than_ten_minutes(
            deadline_s in any::<u32>(), millis in 0..i64::MAX,
        ) {
            let now = Timestamp::from_millis(millis);
            let asked = PaymentIntent { deadline_s, ..intent() };
            if let Ok(it) = ValidatedTransfer::new(golden().address(), &[usdc()], &asked, now) {
                let window = it.authorization().valid_before - U256::from(millis / 1000);
                prop_assert!((U256::from(1)..=U256::from(600)).contains(&window));
            }
        }
    }
}
