//! Money of the agent: its wallet, its account with a cloud, its treasury.
//!
//! The agent has a socket to its signer and an API key; it never has the key to
//! the wallet. Where there is no account yet it makes one, and an account that the
//! cloud has forgotten is made anew.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::keccak256;
use automaton_agent::treasury::PaymentContext;
use automaton_client::{CloudClient, CloudClientError};
use automaton_core::error::ErrorClass;
use automaton_core::event::Event;
use automaton_core::id::{AutomatonId, IdGenerator, RunId};
use automaton_core::model::ModelId;
use automaton_core::secret::Secret;
use automaton_core::time::Clock;
use automaton_core::wire::cloud::{ModelRow, ModelsReply};
use automaton_core::wire::x402::{ChainId, TokenDomain};
use automaton_inference::providers::http::{ApiAuth, Endpoint, HttpProvider, Remedies};
use automaton_inference::{ModelInfo, Provider, ProviderRegistry, RegisteredModel, catalogue};
use automaton_net::HttpClient;
use automaton_sandbox::process;
use automaton_signer::payload::RegistrationFields;
use automaton_wallet::{ChainClient, SignerClient};
use tokio::time::Instant;

use super::launch_config::{self, MoneyLaunchConfig};
use super::provider::{describe, is_here, registry_of, remedies, roles_of_stand_in};
use crate::account::{ApiAccount, KEY_FILE};
use crate::config::brain::DEFAULT_CHEAPER;
use crate::config::resolve::{Brain, HttpBrain, ResolvedConfig, ValueSource};
use crate::error::CliError;
use crate::http::{client, origin, url};

/// Time for which cloud and chain may be away while an agent starts, and the interval of tries.
const AWAY_MAX: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(200);

/// Characters of what a cloud is told of it at most.
const BIO_CHARS_MAX: usize = 500;

/// Identity of the automaton, for a cloud.
pub(crate) struct Identity<'a> {
    /// Its id.
    pub(crate) automaton: AutomatonId,
    /// Its configuration.
    pub(crate) resolved: &'a ResolvedConfig,
    /// The clock and the maker of ids.
    pub(crate) ids: &'a IdGenerator,
}

/// Context of purchases, and all models that the cloud sells.
pub(crate) type CloudAccess = (PaymentContext, Vec<ModelRow>);

/// Opens the wallet, finds or makes the account, and asks the cloud for its model.
///
/// # Errors
/// When the signer, the cloud or the chain cannot be used.
pub(crate) async fn open(
    config: &MoneyLaunchConfig,
    who: Identity<'_>,
    clock: Arc<dyn Clock>,
    tell: impl Fn(Event),
) -> Result<(ProviderRegistry, CloudAccess), CliError> {
    let socket = UnixStream::from(process::take_inherited(launch_config::SIGNER)?);
    let resolved = who.resolved;
    // Whole origins of those who may be paid are spelled out, too.
    let paid = resolved.treasury_policy.limits().x402_hosts;
    let paid = paid.iter().filter(|host| host.contains("://")).map(String::as_str);
    let net = client(paid.chain([config.cloud.as_str(), config.rpc.as_str()]))?;
    let cloud = CloudClient::new(net.clone(), &config.cloud)?;
    let signer = SignerClient::open(socket).await?;
    let account = async || account(config, &who, &cloud, &signer, &tell).await;
    let (key, models) = patiently(account).await?;
    let row = models.data.iter().find(|row| row.id == config.model).ok_or_else(|| {
        let what = format!("the cloud {} offers no model '{}'", config.cloud, config.model);
        CliError::new(ErrorClass::Config, what)
    })?;
    // Behind the cloud is the server that the configuration names.
    let remedies = remedies(&resolved.brain, &resolved.brain_origin, true);
    let known = describe(&resolved.brain)?;
    let info = |row: &ModelRow| model_as_sold(row, &known, &resolved.brain);
    let at_cloud = |row: &ModelRow| {
        provider(config, &key, net.clone(), remedies.clone(), info(row), Arc::clone(&clock))
    };
    // A weaker model is trusted with less than the tools that it would be given.
    let fits = |other: &&ModelRow| other.available && other.weak == row.weak;
    let found = |name: &ModelId| models.data.iter().find(|row| row.id == *name && fits(row));
    let mut providers = registry_of(at_cloud(row)?, seller(&config.cloud), resolved)?;
    for other in models.data.iter().filter(fits) {
        let mut roles = config.cheaper.roles(&other.id);
        if roles.is_empty() && other.id != row.id {
            roles = roles_of_stand_in(resolved, &other.id);
        }
        let seller = seller(&config.cloud);
        providers = providers.with(RegisteredModel { provider: at_cloud(other)?, seller, roles });
    }
    let lacking = wanted_stand_ins(config, resolved).filter(|name| found(name).is_none());
    let lacking: Vec<&str> = lacking.map(ModelId::as_str).collect();
    if !lacking.is_empty() {
        tell(Event::ErrorReported {
            kind: ErrorClass::Config,
            error: format!(
                "models for when credits run low are not to be had: {}",
                lacking.join(", ")
            ),
            hint: Some(
                "a dearer one thinks in their place; name others in `modelStrategy`".to_owned(),
            ),
        });
    }
    let rpc = url(&config.rpc)?;
    let chain_id = config.token.chain_id;
    let connect = async || Ok(ChainClient::connect(net.clone(), rpc.clone(), chain_id).await?);
    let chain = patiently(connect).await?.confirmed_by(config.confirmations);
    let token = TokenDomain {
        name: config.token.name.clone(),
        version: config.token.version.clone(),
        chain: ChainId(config.token.chain_id),
        contract: config.token.address,
    };
    let origin = origin(&config.cloud)?.to_string();
    let payment_context =
        PaymentContext { cloud, key: Some(key), origin, signer, chain, token, net };
    Ok((providers, (payment_context, models.data)))
}

/// Returns the seller of the models, for people.
fn seller(cloud: &str) -> String {
    if is_here(cloud) { "its own cloud".to_owned() } else { cloud.to_owned() }
}

/// Tries until it is done, or fails for good: cloud and chain may be away for a moment,
/// and are started again then.
async fn patiently<T>(attempt: impl AsyncFn() -> Result<T, CliError>) -> Result<T, CliError> {
    let began = Instant::now();
    loop {
        match attempt().await {
            Err(failure) if failure.kind == ErrorClass::Transient && began.elapsed() < AWAY_MAX => {
                tokio::time::sleep(AGAIN).await;
            }
            done => return done,
        }
    }
}

/// The API key, and what the cloud offers with it.
async fn account(
    config: &MoneyLaunchConfig,
    who: &Identity<'_>,
    cloud: &CloudClient,
    signer: &SignerClient,
    tell: impl Fn(Event),
) -> Result<(Secret, ModelsReply), CliError> {
    let home = &who.resolved.home;
    // One that the creator gave is the creator's to correct.
    if let Brain::Http(HttpBrain { key: Some(key), key_origin: Some(from), .. }) =
        &who.resolved.brain
        && !matches!(from, ValueSource::File(name) if name == KEY_FILE)
    {
        cloud.balance(key).await.map_err(|error| refused_key(error, from))?;
        return Ok((key.clone(), cloud.models(key).await?));
    }
    let ours = |account: &ApiAccount| {
        (account.cloud.as_str(), account.wallet) == (config.cloud.as_str(), signer.address())
    };
    if let Some(account) = ApiAccount::read(home)?.filter(ours) {
        match cloud.models(&account.key).await {
            Ok(models) => {
                let account = registered(account, who, cloud, signer, &tell).await?;
                return Ok((account.key, models));
            }
            Err(CloudClientError::Refused { status: 401, .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let now = who.ids.now();
    let chain = config.sign_in_chain;
    let account = ApiAccount::open(cloud, &config.cloud, signer, now, chain).await?;
    account.write(home)?;
    let at = origin(&config.cloud)?.to_string();
    let address = signer.address().to_string();
    tell(Event::AccountOpened { cloud: at, address });
    let account = registered(account, who, cloud, signer, &tell).await?;
    let models = cloud.models(&account.key).await?;
    Ok((account.key, models))
}

/// Makes the automaton known to the cloud of an account, unless that was done before: an account
/// may have been opened by hand. A cloud that refuses is told of, and asked again at the next start.
async fn registered(
    account: ApiAccount,
    who: &Identity<'_>,
    cloud: &CloudClient,
    signer: &SignerClient,
    tell: impl Fn(Event),
) -> Result<ApiAccount, CliError> {
    let Some(whom) = registration(who).filter(|_| !account.registered) else { return Ok(account) };
    match account.register(cloud, signer, whom).await {
        Ok(()) => {
            let account = ApiAccount { registered: true, ..account };
            account.write(&who.resolved.home)?;
            Ok(account)
        }
        Err(failure) => {
            let error =
                format!("the cloud does not know who made this automaton: {}", failure.line());
            tell(Event::ErrorReported { kind: failure.kind, error, hint: failure.remedy });
            Ok(account)
        }
    }
}

/// A key that the cloud does not know, with the place where it stands.
pub(crate) fn refused_key(error: CloudClientError, from: &ValueSource) -> CliError {
    let is_key = matches!(error, CloudClientError::Refused { status: 401, .. });
    let failure = CliError::from(error);
    if !is_key {
        return failure;
    }
    failure.hint(format!("correct the {from}; or remove it, and the wallet signs in by itself"))
}

/// Returns its registration; `None` if its creator has no address.
fn registration(who: &Identity<'_>) -> Option<RegistrationFields> {
    let Identity { automaton, resolved, ids } = who;
    Some(RegistrationFields {
        automaton_id: automaton.to_string(),
        creator_address: resolved.creator_address?.to_string(),
        name: resolved.name.clone(),
        bio: bio(resolved.creator_message.as_deref()),
        genesis_prompt_hash: Some(keccak256(resolved.genesis.as_bytes())),
        nonce: ids.id::<RunId>().to_string(),
    })
}

/// Returns the description for the cloud: its creator's first message, as far as it fits.
fn bio(message: Option<&str>) -> String {
    message.unwrap_or_default().chars().take(BIO_CHARS_MAX).collect()
}

/// Returns the models for when credits run low that somebody named. The usual one is nobody's wish:
/// a cloud that does not sell it lacks nothing.
fn wanted_stand_ins<'a>(
    config: &'a MoneyLaunchConfig,
    resolved: &ResolvedConfig,
) -> impl Iterator<Item = &'a ModelId> {
    let strategy = &resolved.model_strategy;
    let names_none = strategy.low_compute_model.is_none() && strategy.critical_model.is_none();
    config.cheaper.names().filter(move |name| !names_none || name.as_str() != DEFAULT_CHEAPER)
}

/// A model as its cloud sells it, which knows neither what was left to guess nor what its
/// creator says of the server behind it.
fn model_as_sold(row: &ModelRow, known: &ModelInfo, brain: &Brain) -> ModelInfo {
    let info = catalogue::served(row);
    let said = match brain {
        Brain::Http(http) => http.said.dialect,
        Brain::Local(_) => None,
    };
    match row.id == known.id {
        true => ModelInfo {
            compact: matches!(brain, Brain::Local(_)),
            note: info.note.or_else(|| known.note.clone()),
            dialect: said.unwrap_or(info.dialect),
            ..info
        },
        false => info,
    }
}

fn provider(
    config: &MoneyLaunchConfig,
    key: &Secret,
    net: HttpClient,
    remedies: Remedies,
    info: ModelInfo,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Provider>, CliError> {
    let endpoint = Endpoint::new(&config.cloud, ApiAuth::Raw(key.clone()), info);
    let endpoint = Endpoint { remedies, ..endpoint };
    Ok(Arc::new(HttpProvider::new(net, endpoint, clock)?))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Fails with a kind so often, then is done; how often it was tried.
    async fn tried(kind: ErrorClass, failures: u32) -> (bool, u32) {
        let tries = Cell::new(0);
        let attempt = async || {
            tries.set(tries.get() + 1);
            if tries.get() <= failures { Err(CliError::new(kind, "away")) } else { Ok(()) }
        };
        (patiently(attempt).await.is_ok(), tries.get())
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_away_for_a_moment_is_waited_for_and_nobody_for_ever() {
        assert_eq!(tried(ErrorClass::Transient, 3).await, (true, 4));
        assert_eq!(tried(ErrorClass::Config, 3).await, (false, 1), "that does not pass");
        let (done, tries) = tried(ErrorClass::Transient, u32::MAX).await;
        assert!(!done && (100..=102).contains(&tries), "{tries} in twenty seconds");
    }
}
