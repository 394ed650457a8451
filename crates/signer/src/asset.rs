//! Pure: the tokens that payments may be made in.
//!
//! An asset names the EIP-712 domain of its contract, which is never taken from
//! whoever wants to be paid: a token of the same name elsewhere is another one.

use std::borrow::Cow;

use alloy_primitives::{Address, U256, address};
use alloy_sol_types::Eip712Domain;

/// A token with EIP-3009 and 6 decimals on one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// EIP-155 id of the chain.
    pub chain_id: u64,
    /// The token's contract.
    pub address: Address,
    /// The name in the contract's EIP-712 domain.
    pub name: Cow<'static, str>,
    /// The version in the contract's EIP-712 domain.
    pub version: Cow<'static, str>,
}

impl Asset {
    /// USDC on Base.
    pub const BASE_USDC: Self = Self {
        chain_id: 8453,
        address: address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
        name: Cow::Borrowed("USD Coin"),
        version: Cow::Borrowed("2"),
    };

    /// USDC on the test chain Base Sepolia, whose contract calls itself otherwise.
    pub const BASE_SEPOLIA_USDC: Self = Self {
        chain_id: 84532,
        address: address!("036CbD53842c5426634e7929541eC2318f3dCF7e"),
        name: Cow::Borrowed("USDC"),
        version: Cow::Borrowed("2"),
    };

    /// The domain that authorizations of this token are signed for.
    pub(crate) fn domain(&self) -> Eip712Domain {
        Eip712Domain {
            name: Some(self.name.clone()),
            version: Some(self.version.clone()),
            chain_id: Some(U256::from(self.chain_id)),
            verifying_contract: Some(self.address),
            salt: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domains_are_those_of_the_contracts() {
        let check = |asset: Asset, separator: &str| {
            assert_eq!(asset.domain().separator().to_string(), separator);
        };
        check(
            Asset::BASE_USDC,
            "0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f",
        );
        check(
            Asset::BASE_SEPOLIA_USDC,
            "0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818",
        );
    }
}
