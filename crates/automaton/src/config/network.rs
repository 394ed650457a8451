//! Pure: the chains that a wallet can be on, each with its USDC.
//!
//! A row says all that has to be known of a chain before anything is signed for it; the node
//! to ask is the operator's choice. Nothing of a row may ever come from a node, or from who
//! asks to be paid.

use alloy_primitives::Address;
use automaton_core::error::ErrorClass;
use automaton_core::wire::x402::{ChainId, TokenDomain, USDC_NAME, USDC_VERSION};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{HttpUrl, Ranged};
use crate::error::CliError;

/// The networks that are known without being told.
const NETWORKS_TEXT: &str = include_str!("../../assets/networks.json");

/// The network of a wallet where nobody names one.
pub(crate) const USUAL_NETWORK: &str = "base";

/// A chain of Ethereum's kind, and the USDC on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PaymentNetwork {
    /// Name in `network` and `--network`.
    pub(crate) name: String,
    /// Its id, by EIP-155.
    pub(crate) chain_id: Ranged<1, { i64::MAX as u64 }>,
    /// The contract of USDC, or of a token that works as it does.
    #[schemars(with = "String")]
    pub(crate) usdc: Address,
    /// The name in the EIP-712 domain of that contract; `USD Coin` by default.
    #[serde(default = "usdc_name")]
    pub(crate) token_name: String,
    /// The version in that domain; `2` by default.
    #[serde(default = "usdc_version")]
    pub(crate) token_version: String,
    /// Blocks that must follow a block before it counts as final; 2 by default.
    #[serde(default = "usual_confirmations")]
    pub(crate) confirmations: Ranged<0, 10_000>,
    /// A site that shows transactions, below `/tx/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) explorer: Option<HttpUrl>,
}

fn usdc_name() -> String {
    USDC_NAME.to_owned()
}

fn usdc_version() -> String {
    USDC_VERSION.to_owned()
}

fn usual_confirmations() -> Ranged<0, 10_000> {
    Ranged::clamped(2)
}

impl PaymentNetwork {
    /// The network of this name: one of the operator's own, else one that is known.
    ///
    /// # Errors
    /// When nobody knows it.
    pub(crate) fn by_name(name: &str, own: &[Self]) -> Result<Self, CliError> {
        let all = Self::all(own)?;
        all.iter().find(|network| network.name == name).cloned().ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|network| network.name.as_str()).collect();
            CliError::new(ErrorClass::Config, format!("there is no network '{name}'")).hint(
                format!(
                    "take one of {}, or add it to `networks` in automaton.json",
                    names.join(", ")
                ),
            )
        })
    }

    /// The network with this id, likewise.
    ///
    /// # Errors
    /// When nobody knows it.
    pub(crate) fn of_chain(id: u64, own: &[Self]) -> Result<Self, CliError> {
        let mut all = Self::all(own)?.into_iter();
        all.find(|network| network.chain_id.get() == id).ok_or_else(|| {
            CliError::new(ErrorClass::Config, format!("no network has the chain id {id}"))
                .hint("add it to `networks` in automaton.json, with the contract of its USDC")
        })
    }

    /// A network of which only its chain's id and the contract are known.
    pub(crate) fn of_flags(id: u64, usdc: Address) -> Self {
        Self {
            name: ChainId(id).to_string(),
            chain_id: Ranged::clamped(id),
            usdc,
            token_name: usdc_name(),
            token_version: usdc_version(),
            confirmations: Ranged::clamped(ChainId(id).confirmations()),
            explorer: None,
        }
    }

    fn all(own: &[Self]) -> Result<Vec<Self>, CliError> {
        let known: Vec<Self> = serde_json::from_str(NETWORKS_TEXT)
            .map_err(|error| CliError::internal("the list of networks is damaged", &error))?;
        Ok(own.iter().cloned().chain(known).collect())
    }

    /// Returns the token that is signed for on it.
    pub(crate) fn token(&self) -> TokenDomain {
        TokenDomain {
            name: self.token_name.clone(),
            version: self.token_version.clone(),
            chain: ChainId(self.chain_id.get()),
            contract: self.usdc,
        }
    }

    /// Returns the address at which a person can see a transaction.
    pub(crate) fn transaction_url(&self, hash: &str) -> Option<String> {
        let explorer = self.explorer.as_ref()?;
        Some(format!("{}/tx/{hash}", explorer.as_str().trim_end_matches('/')))
    }
}

#[cfg(test)]
mod tests {
    use automaton_devnet::Devnet;

    use super::*;

    #[test]
    fn the_known_networks_are_those_of_the_wire() {
        for chain in [ChainId::BASE, ChainId::BASE_SEPOLIA] {
            let network = PaymentNetwork::of_chain(chain.0, &[]).unwrap();
            assert_eq!(network.token(), TokenDomain::usdc(chain, chain.usdc().unwrap()));
            assert_eq!(network.confirmations.get(), chain.confirmations());
            assert_eq!(PaymentNetwork::by_name(&chain.v1_name(), &[]).unwrap(), network);
        }
        let dev = PaymentNetwork::by_name("dev", &[]).unwrap();
        assert_eq!(dev.token(), TokenDomain::usdc(ChainId::DEV, Devnet::usdc()));
        assert_eq!(dev.confirmations.get(), 0);
        assert!(PaymentNetwork::by_name(USUAL_NETWORK, &[]).is_ok());
    }

    #[test]
    fn an_operator_adds_rows_and_those_come_first() {
        let own: Vec<PaymentNetwork> = serde_json::from_str(
            r#"[{"name": "base", "chainId": 7, "usdc": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
                "explorer": "https://e.example/"}]"#,
        )
        .unwrap();
        let network = PaymentNetwork::by_name("base", &own).unwrap();
        assert_eq!((network.chain_id.get(), network.token_name.as_str()), (7, USDC_NAME));
        assert_eq!(network.transaction_url("0x1").unwrap(), "https://e.example/tx/0x1");
        let unknown = PaymentNetwork::by_name("mars", &own).unwrap_err().line();
        assert!(unknown.contains("no network 'mars'"), "{unknown}");
        assert!(PaymentNetwork::of_chain(99, &own).unwrap_err().line().contains("99"));
        for bad in [r#"{"name": "x", "chainId": 0, "usdc": "0x00"}"#, r#"{"name": "x"}"#] {
            assert!(serde_json::from_str::<PaymentNetwork>(bad).is_err(), "{bad}");
        }
    }
}
