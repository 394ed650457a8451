//! A cloud and a chain of others: who is asked, who signs, and the checks before money is spent
//! automatically.
//!
//! It only looks. What a node or a cloud says of itself is compared with what the operator
//! chose, and never taken in its place.

use std::path::Path;

use alloy_primitives::Address;
use automaton_client::{CloudClient, CloudClientError};
use automaton_core::error::ErrorClass;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::secret::Secret;
use automaton_core::wire::cloud::ModelRow;
use automaton_core::wire::x402::{ChainId, TokenDomain};
use automaton_signer::SignerHome;
use automaton_signer::keystore::Keystore;
use automaton_wallet::{ChainClient, ChainError};

use crate::config::network::PaymentNetwork;
use crate::config::remote::RemoteCloud;
use crate::config::resolve::{Brain, FallbackModels, HttpBrain, ResolvedConfig};
use crate::error::{CliError, CliErrors};
use crate::http::{client, url};
use crate::role::launch_config::MoneyLaunchConfig;
use crate::role::money::refused_key;
use crate::role::provider;
use crate::role::signer::{PassphraseLocation, SignerLaunchConfig, TokenLaunchConfig, home_of};
use crate::stack::passphrase_file;

/// A cloud and a chain of others, and the wallet that pays there.
#[derive(Debug)]
pub(crate) struct RemoteBackend {
    cloud: RemoteCloud,
    wallet: Address,
    signer: SignerLaunchConfig,
}

/// Findings about cloud and chain.
#[derive(Debug)]
pub(crate) struct RemoteStatus {
    /// The wallet.
    pub(crate) wallet: Address,
    /// USDC that it holds, if the chain answers.
    pub(crate) usdc: Option<MicroUsdc>,
    /// The credits that are left, where there is an account and the cloud tells.
    pub(crate) credits: Option<Microcents>,
    /// The model, as the cloud sells it, likewise.
    pub(crate) model: Option<ModelRow>,
    /// Answers that are missing for now, and may come later.
    pub(crate) unknown: Vec<CliError>,
}

/// Looks at the wallet that pays, and makes nothing.
///
/// # Errors
/// When there is none, or nobody says where its passphrase is.
pub(crate) fn check_wallet(
    home: &Path,
    network: &PaymentNetwork,
    given: Option<&PassphraseLocation>,
) -> Result<Address, CliError> {
    let signer = home_of(home);
    let keystore = SignerHome::open(&signer).map(|signer| signer.keystore());
    let keystore = keystore.ok().filter(|keystore| keystore.exists()).ok_or_else(|| {
        let what = format!("the automaton in {} has no wallet to pay with", home.display());
        CliError::user(what).hint("make one with `automaton wallet new`, and fund it")
    })?;
    let address = Keystore::read(&keystore)?
        .address()
        .ok_or_else(|| CliError::user(format!("{} names no address", keystore.display())))?;
    passphrase(&signer, network, given)?;
    Ok(address)
}

/// Returns the place of the passphrase. A dev stack's passphrase lies beside its key, where
/// nothing has value.
fn passphrase(
    signer: &Path,
    network: &PaymentNetwork,
    given: Option<&PassphraseLocation>,
) -> Result<PassphraseLocation, CliError> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    match passphrase_file(signer) {
        Some(file) if network.chain_id.get() == ChainId::DEV.0 => {
            Ok(PassphraseLocation::File(file))
        }
        Some(file) => {
            let what = format!(
                "the wallet's passphrase lies beside its key, in {}: that is enough for a test \
                 chain, and not for {}",
                file.display(),
                network.name
            );
            Err(CliError::user(what).hint(
                "move it to where only you can read it, and name that with --passphrase-file FILE",
            ))
        }
        None => Err(CliError::user("nobody says where the wallet's passphrase is")
            .hint("give --passphrase-file FILE: a signer that is started again cannot ask for it")),
    }
}

impl RemoteBackend {
    /// Opens cloud, chain and wallet.
    ///
    /// # Errors
    /// As [`check_wallet`], and when the cloud's address is none.
    pub(crate) fn open(
        resolved: &ResolvedConfig,
        cloud: RemoteCloud,
        given: Option<&PassphraseLocation>,
    ) -> Result<Self, CliError> {
        let wallet = check_wallet(&resolved.home, &cloud.network, given)?;
        let signer = home_of(&resolved.home);
        let passphrase = passphrase(&signer, &cloud.network, given)?;
        let audience = CloudClient::new(client([cloud.url.as_str()])?, &cloud.url)?.audience()?;
        let signer = SignerLaunchConfig {
            home: signer,
            passphrase: Some(passphrase),
            tokens: vec![TokenLaunchConfig::from(&cloud.network)],
            // Sign-ins name Base, as every client's do.
            audiences: vec![(audience.domain, audience.uri, ChainId::BASE.0)],
            ..SignerLaunchConfig::default()
        };
        Ok(Self { cloud, wallet, signer })
    }

    /// Returns the configurations of agent and signer.
    ///
    /// # Errors
    /// When the model is damaged in the catalogue.
    pub(crate) fn configs(
        self,
        brain: &Brain,
    ) -> Result<(MoneyLaunchConfig, SignerLaunchConfig), CliError> {
        let RemoteCloud { url, rpc, network } = self.cloud;
        let cheaper = match brain {
            Brain::Http(http) => http.cheaper.clone(),
            Brain::Local(_) => FallbackModels::default(),
        };
        let money = MoneyLaunchConfig {
            cloud: url,
            model: provider::describe(brain)?.id,
            cheaper,
            rpc,
            token: TokenLaunchConfig::from(&network),
            confirmations: network.confirmations.get(),
            sign_in_chain: ChainId::BASE.0,
        };
        Ok((money, self.signer))
    }

    /// Compares chain and cloud with what the operator chose.
    ///
    /// # Errors
    /// All that is wrong; what could only not be asked is none.
    pub(crate) async fn check(&self, resolved: &ResolvedConfig) -> Result<RemoteStatus, CliError> {
        let RemoteCloud { url: cloud, rpc, network } = &self.cloud;
        let net = client([cloud.as_str(), rpc.as_str()])?;
        let mut wrong = CliErrors::default();
        let mut unknown = Vec::new();
        let mut take = |failure: CliError| match failure.kind {
            ErrorClass::Transient => unknown.push(failure),
            _ => _ = wrong.take(Err::<(), _>(failure)),
        };
        let chain = ChainClient::connect(net.clone(), url(rpc)?, network.chain_id.get()).await;
        let usdc = match chain.map_err(|error| other_chain(error, network)) {
            Ok(chain) => match check_token(&chain, &network.token()).await {
                Ok(()) => chain.balance(network.usdc, self.wallet).await.map_err(CliError::from),
                Err(failure) => Err(failure),
            },
            Err(failure) => Err(failure),
        };
        let usdc = usdc.map_err(&mut take).ok();
        let mut credits = None;
        let mut model = None;
        if let Brain::Http(http) = &resolved.brain
            && let Some(key) = &http.key
        {
            let client = CloudClient::new(net, cloud)?;
            match at_cloud(&client, key, http).await {
                Ok((balance, row)) => (credits, model) = (balance, Some(row)),
                Err(failure) => take(failure),
            }
        }
        wrong.end(Some(RemoteStatus { wallet: self.wallet, usdc, credits, model, unknown }))
    }
}

/// A node of another chain than the wallet's, with the network that it would be.
fn other_chain(error: ChainError, network: &PaymentNetwork) -> CliError {
    let ChainError::OtherChain { found, .. } = &error else { return error.into() };
    let hint = match PaymentNetwork::of_chain(*found, &[]) {
        Ok(known) => format!("name a node of {}, or set `network` to {}", network.name, known.name),
        Err(_) => format!(
            "name a node of {}, or add that chain to `networks` in automaton.json",
            network.name
        ),
    };
    CliError::from(error).hint(hint)
}

/// Checks that the token is the one that will be signed for.
async fn check_token(chain: &ChainClient, token: &TokenDomain) -> Result<(), CliError> {
    let found = match chain.domain_separator(token.contract).await {
        Ok(found) => found,
        Err(error @ (ChainError::Malformed { .. } | ChainError::Refused { .. })) => {
            let what = format!("there is no USDC at {} on {}", token.contract, token.chain);
            return Err(CliError::new(ErrorClass::Config, what)
                .because(&error)
                .hint("correct `usdc` of that row in `networks` in automaton.json"));
        }
        Err(error) => return Err(error.into()),
    };
    if found == token.separator() {
        return Ok(());
    }
    let what = format!(
        "the token {} does not call itself '{}', version '{}', on {}",
        token.contract, token.name, token.version, token.chain
    );
    Err(CliError::new(ErrorClass::Config, what)
        .hint("correct `tokenName` and `tokenVersion` of that row in `networks` in automaton.json"))
}

/// Asks the cloud about the account and the model.
async fn at_cloud(
    client: &CloudClient,
    key: &Secret,
    http: &HttpBrain,
) -> Result<(Option<Microcents>, ModelRow), CliError> {
    let refused = |error: CloudClientError| match &http.key_origin {
        Some(from) => refused_key(error, from),
        None => error.into(),
    };
    // Whoever asks for models alone may need no key.
    let balance = client.balance(key).await.map_err(refused)?;
    let models = client.models(key).await?;
    let names: Vec<String> = models.data.iter().map(|row| row.id.to_string()).collect();
    let row = models.data.into_iter().find(|row| row.id == http.model).ok_or_else(|| {
        let what = format!("the cloud {} offers no model '{}'", http.url, http.model);
        CliError::new(ErrorClass::Config, what)
            .hint(format!("set `inferenceModel` in automaton.json to one of: {}", names.join(", ")))
    })?;
    let credits = balance.cents().and_then(|cents| Microcents::from_cents(cents).ok());
    Ok((credits, row))
}
