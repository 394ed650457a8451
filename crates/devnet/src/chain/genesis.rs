//! Pure: the contracts of the first block, beside the token.
//!
//! Programs that know a chain by its id call these at addresses that are the same on every chain.
//! All are compiled from the sources in `contracts/`.

use alloy_primitives::{Address, Bytes, address, hex};
use automaton_core::wire::x402::ChainId;
use revm::bytecode::Bytecode;
use revm::state::AccountInfo;

use super::refusal::ChainRefusal;

/// The contracts: their addresses, and their code in hexadecimal digits.
const CONTRACTS: [(Address, &str); 4] = [
    (
        address!("0x4e59b44847b379578588920cA78FbF26c0B4956C"),
        include_str!("../../contracts/Create2Deployer.hex"),
    ),
    (
        address!("0xcA11bde05977b3631167028862bE2a173976CA11"),
        include_str!("../../contracts/Multicall3.hex"),
    ),
    (
        address!("0x000000000022D473030F116dDEE9F6B43aC78BA3"),
        include_str!("../../contracts/Permit2.hex"),
    ),
    // The spender of payments over x402 by Permit2.
    (
        address!("0x402085c248EeA27D92E8b30b2C58ed07f9E20001"),
        include_str!("../../contracts/ExactPermit2Proxy.hex"),
    ),
];

/// Contracts of Base that are missing here, with their names. A transaction to an address without
/// code succeeds and does nothing, which callers would take for a registration.
const PUBLISHED_ON_BASE: [(Address, &str); 2] = [
    (address!("0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"), "the identity registry of ERC-8004"),
    (address!("0x8004BAa17C55a88189AE136b182e5fdA19dE9b63"), "the reputation registry of ERC-8004"),
];

/// The same for Base's test network.
const PUBLISHED_ON_BASE_SEPOLIA: [(Address, &str); 2] = [
    (address!("0x8004A818BFB912233c491871b3d84c89A494BD9e"), "the identity registry of ERC-8004"),
    (address!("0x8004B663056A597Dffe9eCcC1965A193B7388713"), "the reputation registry of ERC-8004"),
];

/// Returns the contracts of the first block, as accounts.
///
/// # Errors
/// Fails if an embedded file is not hexadecimal, or not valid code.
pub(super) fn contracts() -> Result<Vec<(Address, AccountInfo)>, ChainRefusal> {
    CONTRACTS.into_iter().map(|(address, digits)| Ok((address, account(digits)?))).collect()
}

fn account(digits: &str) -> Result<AccountInfo, ChainRefusal> {
    let wrong = |error: String| ChainRefusal::Evm(error);
    let code = hex::decode(digits.trim_end()).map_err(|error| wrong(error.to_string()))?;
    let code = Bytecode::new_raw_checked(Bytes::from(code));
    let code = code.map_err(|error| wrong(error.to_string()))?;
    // A contract's nonce starts at 1, by EIP-161.
    Ok(AccountInfo {
        nonce: 1,
        code_hash: code.hash_slow(),
        code: Some(code),
        ..AccountInfo::default()
    })
}

/// Returns the name of a contract that the real chain with this id has at an address and this
/// chain lacks.
pub(super) fn name_of_missing(chain: ChainId, address: Address) -> Option<&'static str> {
    let published: &[(Address, &str)] = match chain {
        ChainId::BASE => &PUBLISHED_ON_BASE,
        ChainId::BASE_SEPOLIA => &PUBLISHED_ON_BASE_SEPOLIA,
        ChainId(_) => &[],
    };
    published.iter().find(|(place, _)| *place == address).map(|(_, name)| *name)
}
