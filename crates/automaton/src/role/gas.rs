//! The signer of the account that pays a cloud's gas: a process of its own beside
//! the cloud's, which ends with it.
//!
//! It signs one function of one contract, the transfer of tokens that their owner
//! authorized, within the operator's limits. The cloud never has the key.

use std::path::Path;
use std::time::Duration;

use automaton_cloud::CloudConfig;
use automaton_cloud::billing::chain::{CALLED, GAS_MAX};
use automaton_core::error::ErrorClass;
use automaton_signer::payload::{Contract, GasRules};
use automaton_wallet::SignerClient;

use super::signer::{self, PassphraseLocation, RunningSigner, SignerLaunchConfig};
use crate::error::CliError;

/// Interval at which the signer is checked.
const WATCHED_EVERY: Duration = Duration::from_millis(500);

/// Starts the signer that a cloud's configuration names.
///
/// # Errors
/// When the process cannot be started, or the configuration names no token.
pub fn start(executable: &Path, config: &CloudConfig) -> Result<RunningSigner, CliError> {
    let chain = &config.chain;
    let address = chain.token()?;
    let contract = Contract { chain_id: chain.id, address, selectors: vec![CALLED] };
    let config = SignerLaunchConfig {
        home: chain.gas_signer.home.clone(),
        passphrase: chain.gas_signer.passphrase_file.clone().map(PassphraseLocation::File),
        contracts: vec![contract],
        gas: GasRules {
            limit_max: GAS_MAX,
            fee_max: chain.fee_max_wei,
            per_day: chain.gas_per_day_wei,
        },
        ..SignerLaunchConfig::default()
    };
    signer::start(executable, &config)
}

/// Joins a cloud to its signer, once that is unlocked; then what tells of its end.
///
/// # Errors
/// When the signer cannot be unlocked.
pub async fn join(
    signer: RunningSigner,
) -> Result<(SignerClient, impl Future<Output = CliError>), CliError> {
    let RunningSigner { mut child, socket } = signer;
    let signer = SignerClient::open(socket).await?;
    let ended = async move {
        loop {
            tokio::time::sleep(WATCHED_EVERY).await;
            let how = match child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => status.to_string(),
                Err(error) => error.to_string(),
            };
            let what = format!("the signer of the gas account has ended: {how}");
            return CliError::new(ErrorClass::Internal, what);
        }
    };
    Ok((signer, ended))
}
