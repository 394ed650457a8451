//! Merges flags over environment over file over defaults.
//!
//! Each value keeps its [`ValueSource`], so that a message can say where to change
//! it. [`ResolvedConfig`] holds everything that the agent's process is told of the
//! configuration; it reads no file and no environment of its own. Nothing here
//! has an effect, and no key is ever sent to an origin that it is not for.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use alloy_primitives::Address;
use automaton_core::error::ErrorClass;
use automaton_core::id::RemoteMachineId;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::model::ModelId;
use automaton_core::money_defaults::UNASKED_THINKING_DAY_CENTS;
use automaton_net::origin::Scheme;
use automaton_net::{Origin as NetOrigin, Url};
use serde::{Deserialize, Serialize};

use super::brain::BrainSources;
pub(crate) use super::brain::{Brain, FallbackModels, HttpBrain, KeyScheme, model_file};
use super::egress::EgressFile;
use super::env::{self, Environment};
use super::file::{
    ApprovalsFile, ConfigFile, EmbeddingsFile, EnvelopeFile, FILE_NAME, LocalBrain, LogLevel,
    StopLossFile,
};
use super::providers;
use super::reference::{ModelStrategy, SoulConfig, TreasuryPolicy};
use super::remote::{self, CloudSources, RemoteCloud};
use super::snapshots::SnapshotsFile;
use super::values::{HttpUrl, LoopbackAddr, Ranged};
use crate::args::{BrainFlags, RemoteFlags};
use crate::error::{CliError, CliErrors};
use crate::home::check_length;
use crate::traces::{OtlpProtocol, TraceCollector};
use crate::ui::text::plain;

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, derive_more::Display)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ValueSource {
    /// A flag of the command line.
    #[display("flag {_0}")]
    Flag(String),
    /// A variable of the environment.
    #[display("environment variable {_0}")]
    Env(String),
    /// A file of the home.
    #[display("{_0} in the home")]
    File(String),
    /// A key of `automaton.json`.
    #[display("key `{_0}` of {FILE_NAME}")]
    Key(String),
    /// Nobody said anything.
    #[display("default")]
    Default,
}

impl ValueSource {
    pub(super) fn key(name: &str) -> Self {
        Self::Key(name.to_owned())
    }
}

/// Everything that holds for one automaton.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ResolvedConfig {
    /// Its home.
    pub(crate) home: PathBuf,
    /// The file with the schedule of its heartbeat.
    pub(crate) heartbeat: PathBuf,
    /// Its name.
    pub(crate) name: String,
    /// Its purpose.
    pub(crate) genesis: String,
    /// The creator's first message.
    pub(crate) creator_message: Option<String>,
    /// Its creator's address.
    pub(crate) creator_address: Option<Address>,
    /// The model it thinks with.
    pub(crate) brain: Brain,
    /// Source of that model.
    pub(crate) brain_origin: ValueSource,
    /// Other sellers of models, who stand in where one does not answer.
    pub(crate) other_sellers: Vec<HttpBrain>,
    /// The model on this machine that stands in where no other can answer or be paid.
    pub(crate) local_fallback: Option<LocalBrain>,
    /// Which model thinks when, and what it may cost.
    pub(crate) model_strategy: ModelStrategy,
    /// Source of vectors for memories.
    pub(crate) embeddings: Option<EmbeddingsFile>,
    /// True if a model summarizes old turns.
    pub(crate) summarize_history: bool,
    /// The most tokens of one answer.
    pub(crate) max_tokens_per_turn: Option<u32>,
    /// The most turns of one wake; the default is the agent's.
    pub(crate) turns_per_wake: Option<u32>,
    /// Seed of the sampler.
    pub(crate) seed: u64,
    /// Temperature in thousandths.
    pub(crate) temperature_milli: u32,
    /// Settings for changes to the soul.
    pub(crate) soul: SoulConfig,
    /// Losses before it hibernates.
    pub(crate) stop_loss: StopLossFile,
    pub(crate) wake_envelope: EnvelopeFile,
    /// The limits of snapshots of its workspace.
    pub(crate) snapshots: SnapshotsFile,
    /// Settings for questions to its creator.
    pub(crate) approvals: ApprovalsFile,
    /// Private origins that may be reached besides the brain's.
    pub(crate) allowed_origins: Vec<String>,
    /// The rented machine that its commands run on.
    pub(crate) machine: Option<RemoteMachineId>,
    /// Hosts that commands may reach.
    pub(crate) egress: EgressFile,
    /// Limits for spending without asking.
    pub(crate) treasury_policy: TreasuryPolicy,
    /// Level of the log.
    #[serde(skip)]
    pub(crate) log_level: LogLevel,
    /// Address for alerts and requests for money. The agent is not told, because the address may
    /// be secret.
    #[serde(skip)]
    pub(crate) webhook: Option<String>,
    /// The collector that gets traces.
    #[serde(skip)]
    pub(crate) traces: Option<TraceCollector>,
    /// Address of the metrics.
    #[serde(skip)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Cloud and chain, if they are not its own.
    #[serde(skip)]
    pub(crate) remote: Option<RemoteCloud>,
}

impl ResolvedConfig {
    /// Returns the ceilings of model calls.
    pub(crate) fn ceilings(&self) -> InferenceCeilings {
        let per_day = Some(self.treasury_policy.inference_per_day());
        InferenceCeilings { per_day, ..self.model_strategy.ceilings() }
    }

    /// The model that a cloud is to sell it for its vectors.
    pub(crate) fn bought_embeddings(&self) -> Option<ModelId> {
        let Some(EmbeddingsFile::Cloud { model }) = &self.embeddings else { return None };
        Some(ModelId::from(model.as_str()))
    }
}

/// The home directory, as an absolute path.
///
/// # Errors
/// When neither flag nor environment names one, or its path is too long.
pub(crate) fn home(flag: Option<&Path>, environment: &Environment) -> Result<PathBuf, CliError> {
    let usual = || environment.home.as_ref().map(|home| home.join(".automaton"));
    let named = flag.map(Path::to_owned).or_else(|| environment.automaton_home.clone());
    let home = named.or_else(usual).ok_or_else(|| {
        CliError::user("there is no home directory to look in").hint(format!(
            "give --home DIR, or set {} or {}",
            env::AUTOMATON_HOME,
            env::HOME
        ))
    })?;
    let home = std::path::absolute(&home).map_err(|error| {
        CliError::internal(format!("cannot use home {}", home.display()), &error)
    })?;
    check_length(&home, "name a directory with a shorter path with --home")?;
    Ok(home)
}

/// Puts everything together.
///
/// # Errors
/// When a value that is needed is missing, or two contradict each other: all of that in one.
pub(crate) fn resolve(
    home: &Path,
    file: &ConfigFile,
    flags: &BrainFlags,
    remote: &RemoteFlags,
    environment: &Environment,
) -> Result<ResolvedConfig, CliError> {
    let missing = |key: &str| {
        let what = format!("{} names no `{key}`", home.join(FILE_NAME).display());
        CliError::new(ErrorClass::Config, what).hint(format!("add the key `{key}`"))
    };
    let mut wrong = CliErrors::default();
    wrong.take(check_database(home, file, environment));
    let account = wrong.take(remote::account(home, file, environment)).flatten();
    let cloud = CloudSources { flags: remote, file, environment, account: account.as_ref() };
    let sources = BrainSources { file, flags, environment, cloud };
    let brain = wrong.take(sources.brain());
    let remote =
        brain.as_ref().and_then(|(brain, _)| wrong.take(remote::remote_of(brain, cloud))).flatten();
    for origin in &file.allowed_origins {
        wrong.take(origin_of(origin.as_str(), &ValueSource::key("allowedOrigins")));
    }
    let name = wrong.take(file.name.as_ref().ok_or_else(|| missing("name")));
    let genesis = wrong.take(file.genesis_prompt.as_ref().ok_or_else(|| missing("genesisPrompt")));
    let heartbeat = wrong.take(heartbeat(home, file, environment));
    let webhook = wrong.take(told_to(file, "webhookUrl", file.webhook_url.as_ref()));
    let traces = wrong.take(trace_collector(file, environment));
    let machine = wrong.take(remote::machine(file)).flatten();
    let creator_address = wrong.take(creator(file)).flatten();
    let found = (brain.zip(name), genesis.zip(heartbeat), webhook.zip(traces));
    let (Some(((brain, brain_origin), name)), Some((genesis, heartbeat)), Some((webhook, traces))) =
        found
    else {
        return wrong.end(None);
    };
    let sampling = file.sampling.as_ref();
    wrong.end(Some(ResolvedConfig {
        home: home.to_owned(),
        heartbeat,
        name: name.as_str().to_owned(),
        genesis: genesis.as_str().to_owned(),
        creator_message: file.creator_message.clone().filter(|text| !text.is_empty()),
        creator_address,
        other_sellers: sources.other_sellers(&brain)?,
        local_fallback: local_fallback(file, flags, &brain),
        brain,
        treasury_policy: treasury_policy(file, &brain_origin)?,
        brain_origin,
        model_strategy: file.model_strategy.clone().unwrap_or_default(),
        embeddings: file.embeddings.clone(),
        summarize_history: file.summarize_history.unwrap_or(true),
        max_tokens_per_turn: answer_tokens(file),
        turns_per_wake: file.max_turns_per_cycle.map(Ranged::get_u32),
        seed: sampling.map_or(0, |sampling| sampling.seed),
        temperature_milli: sampling.and_then(|it| it.temperature_milli).map_or(0, Ranged::get_u32),
        soul: file.soul_config.clone(),
        stop_loss: file.stop_loss,
        wake_envelope: file.wake_envelope,
        snapshots: file.snapshots,
        approvals: file.approvals,
        allowed_origins: file.allowed_origins.iter().map(|url| url.as_str().to_owned()).collect(),
        machine,
        egress: file.egress.clone(),
        log_level: file.log_level.unwrap_or_default(),
        webhook,
        traces,
        metrics: file.metrics_addr.map(LoopbackAddr::get),
        remote,
    }))
}

/// Returns the collector of traces. Its encoding is that of the environment, else of the file.
///
/// # Errors
/// When the address may not be reached, or the environment names no encoding that is known.
fn trace_collector(
    file: &ConfigFile,
    environment: &Environment,
) -> Result<Option<TraceCollector>, CliError> {
    let Some(endpoint) = told_to(file, "otlpEndpoint", file.otlp_endpoint.as_ref())? else {
        return Ok(None);
    };
    let protocol = match &environment.otlp_protocol {
        Some((name, value)) => OtlpProtocol::by_name(value).ok_or_else(|| {
            let what = format!("{name} is '{}', which is not spoken here", plain(value));
            CliError::new(ErrorClass::Config, what)
                .hint(format!("set {name} to http/protobuf or http/json, or unset it"))
        })?,
        None => file.otlp_protocol.unwrap_or_default(),
    };
    Ok(Some(TraceCollector { endpoint, protocol }))
}

/// The most tokens of one answer; the top-level key goes first.
fn answer_tokens(file: &ConfigFile) -> Option<u32> {
    let strategy = file.model_strategy.as_ref().map(|strategy| strategy.max_tokens_per_turn);
    file.max_tokens_per_turn.or(strategy).map(Ranged::get_u32)
}

/// The model on this machine that stands in for others.
fn local_fallback(file: &ConfigFile, flags: &BrainFlags, brain: &Brain) -> Option<LocalBrain> {
    let may = file.model_strategy.as_ref().is_none_or(|said| said.enable_model_fallback);
    let is_elsewhere = matches!(brain, Brain::Http(_));
    flags.fallback().filter(|_| may && is_elsewhere)
}

/// Returns the limits for spending: lower with a key that was only found in the environment.
fn treasury_policy(file: &ConfigFile, brain: &ValueSource) -> Result<TreasuryPolicy, CliError> {
    let policy = file.treasury_policy.clone();
    match brain {
        ValueSource::Env(name) if providers::variables()?.contains(name) => {
            Ok(policy.or_inference_daily_cents(UNASKED_THINKING_DAY_CENTS))
        }
        _ => Ok(policy),
    }
}

/// A server that is told things: encrypted, or spelled out among the private origins.
fn told_to(
    file: &ConfigFile,
    key: &'static str,
    url: Option<&HttpUrl>,
) -> Result<Option<String>, CliError> {
    let Some(url) = url else { return Ok(None) };
    let from = ValueSource::key(key);
    let to = origin_of(url.as_str(), &from)?;
    let is_spelled = |url: &HttpUrl| origin_of(url.as_str(), &from).is_ok_and(|it| it == to);
    if to.scheme() == Scheme::Https || file.allowed_origins.iter().any(is_spelled) {
        return Ok(Some(url.as_str().to_owned()));
    }
    let what = format!("key `{key}` of {FILE_NAME} names {to}, which is not encrypted");
    Err(CliError::new(ErrorClass::Config, what)
        .hint("use https://, or add the origin to the key `allowedOrigins`"))
}

/// The creator's address, where there is one.
fn creator(file: &ConfigFile) -> Result<Option<Address>, CliError> {
    let Some(text) = file.creator_address.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        let shown: String = text.chars().filter(|c| !c.is_control()).take(80).collect();
        let what = format!("key `creatorAddress` of {FILE_NAME} is no address: '{shown}'");
        CliError::new(ErrorClass::Config, what)
            .hint("write it as 0x and 40 hexadecimal digits, or remove it")
    })
}

/// The database lies in the home: two homes that shared one would be two
/// processes with one life.
fn check_database(
    home: &Path,
    file: &ConfigFile,
    environment: &Environment,
) -> Result<(), CliError> {
    let Some(path) = &file.db_path else { return Ok(()) };
    let named = in_home(home, path, environment);
    let ours = home.join(crate::home::DATABASE);
    if named == ours {
        return Ok(());
    }
    let what = format!("key `dbPath` of {FILE_NAME} names {}, outside the home", named.display());
    Err(CliError::new(ErrorClass::Config, what)
        .hint(format!("move the database to {} and remove the key", ours.display())))
}

/// A path of the configuration: `~` is the user's home, and what is relative lies in
/// the automaton's.
fn in_home(home: &Path, path: &Path, environment: &Environment) -> PathBuf {
    match (path.strip_prefix("~"), &environment.home) {
        (Ok(rest), Some(user)) => user.join(rest),
        _ => home.join(path),
    }
}

/// The file with the schedule of the heartbeat: never one that the automaton's own
/// commands can write.
fn heartbeat(
    home: &Path,
    file: &ConfigFile,
    environment: &Environment,
) -> Result<PathBuf, CliError> {
    let usual = || home.join(crate::home::HEARTBEAT);
    let path = file.heartbeat_config_path.as_deref();
    let named = path.map_or_else(usual, |path| in_home(home, path, environment));
    if !named.starts_with(home.join(crate::home::WORKSPACE)) {
        return Ok(named);
    }
    let what = format!(
        "key `heartbeatConfigPath` of {FILE_NAME} names {}, which the automaton can write",
        named.display()
    );
    Err(CliError::new(ErrorClass::Config, what)
        .hint(format!("move the file to {} and remove the key", usual().display())))
}

/// The origin of an address, for comparing and for allowing it.
///
/// # Errors
/// When the text is no address of a server.
pub(crate) fn origin_of(url: &str, from: &ValueSource) -> Result<NetOrigin, CliError> {
    let bad = || {
        CliError::new(ErrorClass::Config, format!("'{url}' ({from}) is no address of a server"))
            .hint("write it as http://HOST:PORT or https://HOST, with or without /v1")
    };
    let parsed = Url::parse(url).map_err(|error| bad().because(&error))?;
    NetOrigin::from_url(&parsed).map_err(|error| bad().because(&error))
}

/// The one place that writes a secret as text: for the agent's own process,
/// over a socket that nobody else can open.
pub(crate) mod secret_text {
    use automaton_core::secret::Secret;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::config) fn serialize<S: Serializer>(
        secret: &Option<Secret>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        secret.as_ref().map(Secret::reveal).serialize(serializer)
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Secret>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(Secret::new))
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
