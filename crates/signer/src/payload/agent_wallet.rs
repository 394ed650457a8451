//! Pure: the consent to be an agent's wallet, as EIP-712 `AgentWalletSet`.
//!
//! In ERC-8004 (<https://eips.ethereum.org/EIPS/eip-8004>) the owner of an agent gives its
//! wallet's address to a registry, and the wallet agrees with this signature. The wallet is
//! always this signer's, and the registry is one of the listed contracts.

use alloy_primitives::{Address, B256, U256, b256, keccak256};
use automaton_core::time::{Span, Timestamp};
use automaton_core::wire::x402::eip3009::typed_digest;
use automaton_core::wire::x402::{ChainId, TokenDomain};
use serde::{Deserialize, Serialize};

use super::Contract;
use crate::error::{SignerRefusal, SignerRefusalCode};

/// keccak256 of `AgentWalletSet(uint256 agentId,address newWallet,address owner, uint256
/// deadline)`.
const TYPEHASH: B256 = b256!("678b53cd718d595370ab070ebf48edfdcd834beac116bf23e625fc7f4d5b7d32");

/// The furthest deadline that registries accept.
pub const AGENT_WALLET_MAX: Span = Span::from_secs(300);

/// The consent of the wallet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentWalletSet {
    /// EIP-155 id of the registry's chain.
    pub chain_id: u64,
    /// The registry.
    pub registry: Address,
    /// The agent's number in it.
    pub agent_id: U256,
    /// The agent's owner in the registry.
    pub owner: Address,
    /// The expiry, in seconds since the epoch.
    pub deadline: u64,
}

/// A consent to a listed registry.
#[derive(Debug)]
pub(crate) struct Consent {
    wallet: Address,
    asked: AgentWalletSet,
}

impl Consent {
    pub(crate) fn new(
        wallet: Address,
        contracts: &[Contract],
        asked: &AgentWalletSet,
        now: Timestamp,
    ) -> Result<Self, SignerRefusal> {
        let AgentWalletSet { chain_id, registry, deadline, .. } = asked;
        if !contracts.iter().any(|it| (it.chain_id, it.address) == (*chain_id, *registry)) {
            let rule = "is not among the known contracts";
            let reason = format!("registry: {registry} on chain {chain_id} {rule}");
            return Err(SignerRefusal::new(SignerRefusalCode::Contract, reason));
        }
        let until = i64::try_from(*deadline).unwrap_or(i64::MAX).saturating_mul(1000);
        if until < now.as_millis() || until > now.after(AGENT_WALLET_MAX).as_millis() {
            let rule = format!("is not within {AGENT_WALLET_MAX} after now, {now}");
            return Err(SignerRefusal::new(
                SignerRefusalCode::Deadline,
                format!("deadline: {deadline} {rule}"),
            ));
        }
        Ok(Self { wallet, asked: asked.clone() })
    }

    pub(super) fn digest(&self) -> B256 {
        let AgentWalletSet { chain_id, registry, agent_id, owner, deadline } = &self.asked;
        // The same four fields as a token's domain.
        let domain = TokenDomain {
            name: "ERC8004IdentityRegistry".to_owned(),
            version: "1".to_owned(),
            chain: ChainId(*chain_id),
            contract: *registry,
        };
        let words = [
            TYPEHASH,
            (*agent_id).into(),
            self.wallet.into_word(),
            owner.into_word(),
            U256::from(*deadline).into(),
        ];
        typed_digest(domain.separator(), keccak256(words.concat()))
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::address;
    use alloy_sol_types::{Eip712Domain, SolStruct as _, sol};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_767_323_045_678);
    const REGISTRY: Address = address!("8004A169FB4a3325136EB29fA0ceB6D2e539a432");

    mod theirs {
        super::sol! {
            struct AgentWalletSet {
                uint256 agentId;
                address newWallet;
                address owner;
                uint256 deadline;
            }
        }
    }

    fn asked() -> AgentWalletSet {
        AgentWalletSet {
            chain_id: 8453,
            registry: REGISTRY,
            agent_id: U256::from(22),
            owner: Address::repeat_byte(3),
            deadline: 1_767_323_300,
        }
    }

    fn consent(asked: &AgentWalletSet) -> Result<Consent, SignerRefusal> {
        let listed = Contract { chain_id: 8453, address: REGISTRY, selectors: Vec::new() };
        Consent::new(Address::repeat_byte(2), &[listed], asked, NOW)
    }

    #[test]
    fn the_digest_is_that_of_another_library() {
        let theirs = theirs::AgentWalletSet {
            agentId: U256::from(22),
            newWallet: Address::repeat_byte(2),
            owner: Address::repeat_byte(3),
            deadline: U256::from(1_767_323_300),
        };
        let domain = Eip712Domain {
            name: Some("ERC8004IdentityRegistry".into()),
            version: Some("1".into()),
            chain_id: Some(U256::from(8453)),
            verifying_contract: Some(REGISTRY),
            salt: None,
        };
        assert_eq!(theirs.eip712_type_hash(), TYPEHASH);
        assert_eq!(consent(&asked()).unwrap().digest(), theirs.eip712_signing_hash(&domain));
    }

    #[test]
    fn what_breaks_a_rule_is_refused_by_name() {
        let check = |change: fn(&mut AgentWalletSet), code: SignerRefusalCode| {
            let mut broken = asked();
            change(&mut broken);
            assert_eq!(consent(&broken).unwrap_err().code, code, "{broken:?}");
        };
        check(|it| it.chain_id = 1, SignerRefusalCode::Contract);
        check(|it| it.registry = Address::ZERO, SignerRefusalCode::Contract);
        check(|it| it.deadline = 1_767_323_045, SignerRefusalCode::Deadline);
        check(|it| it.deadline = 1_767_323_346, SignerRefusalCode::Deadline);
        check(|it| it.deadline = u64::MAX, SignerRefusalCode::Deadline);
        for deadline in [1_767_323_046, 1_767_323_345] {
            consent(&AgentWalletSet { deadline, ..asked() }).unwrap();
        }
    }
}
