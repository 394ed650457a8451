//! Pure: what the chain is born with: the faucet's account and the token.
//!
//! The faucet deploys the token before block 0, and owns it. On a chain with the id of one
//! where USDC has a published address, it is there; on every other at one address. Nobody holds a key of the faucet:
//! [`FAUCET`] is the end of a hash, and its transactions carry no valid
//! signature. What the token says of the chain, it asks the EVM.

use alloy_primitives::{Address, B256, Bytes, U256, address, hex, keccak256};
use alloy_sol_types::{SolCall, sol};
use automaton_core::wire::x402::ChainId;

use super::ChainRefusal;

sol! {
    /// `UsdCoin.mint`, which only the owner may call.
    function mint(address to, uint256 value) external;
}

/// The account that funds others: the last 20 bytes of
/// `keccak256("automaton devnet faucet")`.
pub(crate) const FAUCET: Address = address!("0xaf977E377dD4929d8fE21a377C7B00D9d03c5444");

/// The token: what the faucet deploys with its nonce 0.
const USDC: Address = address!("0x04ecCF5dF31B99A977c632831f9D0979E1f4BD59");

/// Where the token is on a chain of an id.
pub(crate) const fn usdc_of(chain: ChainId) -> Address {
    match chain.usdc() {
        Some(published) => published,
        None => USDC,
    }
}

/// What the faucet owns at the beginning, in wei: 10⁹ ether.
pub(crate) const FAUCET_WEI: u128 = 1_000_000_000 * ETHER;

/// Wei in one ether.
pub(crate) const ETHER: u128 = 1_000_000_000_000_000_000;

/// The bytecode that creates the token, compiled by `contracts/build.sh`.
///
/// # Errors
/// When the file that was compiled in is no hexadecimal text.
pub(crate) fn creation_code() -> Result<Bytes, ChainRefusal> {
    let code = hex::decode(include_str!("../../contracts/UsdCoin.hex").trim_end());
    code.map(Bytes::from).map_err(|error| ChainRefusal::Evm(error.to_string()))
}

/// What tells this token's code from another version's.
///
/// # Errors
/// As [`creation_code`].
pub(crate) fn token_digest() -> Result<B256, ChainRefusal> {
    creation_code().map(keccak256)
}

/// The input of a call that mints.
pub(crate) fn mint(to: Address, units: u64) -> Bytes {
    mintCall { to, value: U256::from(units) }.abi_encode().into()
}
