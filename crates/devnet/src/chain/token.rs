//! Pure: the faucet's account and the token, which exist from the beginning.
//!
//! The faucet deploys the token before block 0, and owns it. On a chain with the id of one where
//! USDC has a published address, the token is at that address. On all others it has one fixed
//! address. No key of the faucet exists: [`FAUCET`] is the end of a hash, and its transactions
//! carry no valid signature. The token reads the chain's properties from the EVM.

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

/// The token's address: that of a contract which the faucet deploys with nonce 0.
const USDC: Address = address!("0x04ecCF5dF31B99A977c632831f9D0979E1f4BD59");

/// Returns the token's address on a chain.
pub(crate) const fn usdc_of(chain: ChainId) -> Address {
    match chain.usdc() {
        Some(published) => published,
        None => USDC,
    }
}

/// The faucet's initial balance, in wei: 10⁹ ether.
pub(crate) const FAUCET_WEI: u128 = 1_000_000_000 * ETHER;

/// Wei in one ether.
pub(crate) const ETHER: u128 = 1_000_000_000_000_000_000;

/// Returns the bytecode that creates the token, compiled by `contracts/build.sh`.
///
/// # Errors
/// Fails if the embedded file is not hexadecimal.
pub(crate) fn creation_code() -> Result<Bytes, ChainRefusal> {
    let code = hex::decode(include_str!("../../contracts/UsdCoin.hex").trim_end());
    code.map(Bytes::from).map_err(|error| ChainRefusal::Evm(error.to_string()))
}

/// Returns the digest that identifies the version of the token's code.
///
/// # Errors
/// As [`creation_code`].
pub(crate) fn token_digest() -> Result<B256, ChainRefusal> {
    creation_code().map(keccak256)
}

/// Returns the input of a call that mints.
pub(crate) fn mint_input(to: Address, units: u64) -> Bytes {
    mintCall { to, value: U256::from(units) }.abi_encode().into()
}
