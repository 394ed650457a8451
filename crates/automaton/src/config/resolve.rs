//! What holds: flags over environment over file over defaults.
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
use automaton_core::model::ModelId;
use automaton_core::secret::Secret;
use automaton_inference::providers::openai_compatible::probe::ModelListing;
use automaton_inference::{ModelClaims, RequestDialect};
use automaton_net::origin::Scheme;
use automaton_net::{Origin as NetOrigin, Url};
use serde::{Deserialize, Serialize};

use super::egress::EgressFile;
use super::env::{self, Environment};
use super::file::{
    ApprovalsFile, BrainFile, ConfigFile, EnvelopeFile, FILE_NAME, LocalBrain, LogLevel,
    StopLossFile,
};
use super::reference::TreasuryPolicy;
use super::remote::{self, CONWAY_URL, CloudSources, RemoteCloud};
use super::values::{HttpUrl, LoopbackAddr, PricesFile, Ranged};
use crate::args::{BrainArg, BrainFlags, RemoteFlags};
use crate::error::{CliError, CliErrors};
use crate::home::check_length;

/// The address of `OpenAI`'s models.
const OPENAI_URL: &str = "https://api.openai.com/v1";
/// The model that a hosted brain is asked for when nothing names one.
const DEFAULT_MODEL: &str = "gpt-5.2";
/// The model that stands in for that one when credits run low.
const DEFAULT_CHEAPER: &str = "gpt-5-mini";

/// Where a value came from.
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

/// The model to think with.
#[derive(Debug, Clone, Serialize, Deserialize, derive_more::Display)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Brain {
    /// A model file on this machine.
    #[display("{} on this machine", _0.model.display())]
    Local(LocalBrain),
    /// A server.
    #[display("{} at {}", _0.model, _0.url)]
    Http(HttpBrain),
}

/// A server that speaks the chat-completions format.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HttpBrain {
    /// Its address.
    pub(crate) url: String,
    /// The model.
    pub(crate) model: ModelId,
    /// Those that stand in for it.
    pub(crate) cheaper: FallbackModels,
    /// The key to it.
    #[serde(with = "secret_text")]
    pub(crate) key: Option<Secret>,
    /// How the key is sent.
    pub(crate) scheme: KeyScheme,
    /// Who named the key.
    pub(crate) key_origin: Option<ValueSource>,
    /// What its creator says of the model.
    pub(crate) said: ModelClaims,
    /// What the server says of its models, once it was asked.
    pub(crate) served: ModelListing,
}

/// The models of a server that think when credits run low.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct FallbackModels {
    /// Of one that is poor.
    pub(crate) low_compute: Option<ModelId>,
    /// Of one that is nearly out of credits.
    pub(crate) critical: Option<ModelId>,
}

impl FallbackModels {
    /// What the file says. The defaults go together: who names another usual model on a
    /// server, or has one of its own, thinks with it in any tier.
    fn of(file: &ConfigFile, url: &str, usual: &ModelId) -> Self {
        let default = usual.as_str() == DEFAULT_MODEL && url.starts_with("https://");
        let default = default.then(|| DEFAULT_CHEAPER.to_owned());
        let strategy = file.model_strategy.as_ref();
        let or_default = |named: Option<String>| {
            let name = named.filter(|name| !name.is_empty()).or_else(|| default.clone());
            name.map(ModelId::from).filter(|name| name != usual)
        };
        Self {
            low_compute: or_default(strategy.and_then(|said| said.low_compute_model.clone())),
            critical: or_default(strategy.and_then(|said| said.critical_model.clone())),
        }
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &ModelId> {
        let first = self.low_compute.as_ref();
        let second = self.critical.as_ref().filter(|name| Some(*name) != first);
        first.into_iter().chain(second)
    }
}

/// How a key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyScheme {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// `Authorization: KEY`, as Conway wants it.
    Raw,
}

impl Brain {
    /// Whether a cloud of our own can stand before it. One that is a cloud already
    /// sells its own credits.
    pub(crate) fn can_be_sold(&self) -> bool {
        !matches!(self, Self::Http(http) if http.scheme == KeyScheme::Raw)
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
    /// What its creator says to it at birth.
    pub(crate) creator_message: Option<String>,
    /// Its creator's address.
    pub(crate) creator_address: Option<Address>,
    /// The model it thinks with.
    pub(crate) brain: Brain,
    /// Who named that model.
    pub(crate) brain_origin: ValueSource,
    /// The most tokens of one answer.
    pub(crate) max_tokens_per_turn: Option<u32>,
    /// The most turns of one wake; the default is the agent's.
    pub(crate) turns_per_wake: Option<u32>,
    /// Seed of the sampler.
    pub(crate) seed: u64,
    /// Temperature in thousandths.
    pub(crate) temperature_milli: u32,
    /// What it may lose before it hibernates.
    pub(crate) stop_loss: StopLossFile,
    pub(crate) wake_envelope: EnvelopeFile,
    /// How its creator is asked.
    pub(crate) approvals: ApprovalsFile,
    /// Private origins that may be reached besides the brain's.
    pub(crate) allowed_origins: Vec<String>,
    /// The rented machine that its commands run on.
    pub(crate) machine: Option<RemoteMachineId>,
    /// Where its commands may send requests.
    pub(crate) egress: EgressFile,
    /// What it may spend without asking.
    pub(crate) treasury_policy: TreasuryPolicy,
    /// What is logged.
    #[serde(skip)]
    pub(crate) log_level: LogLevel,
    /// Where alerts and pleas are posted. The agent is not told: the address may be secret.
    #[serde(skip)]
    pub(crate) webhook: Option<String>,
    /// The collector that gets traces.
    #[serde(skip)]
    pub(crate) traces: Option<String>,
    /// Where metrics are served.
    #[serde(skip)]
    pub(crate) metrics: Option<SocketAddr>,
    /// What it lives from, where that is not its own.
    #[serde(skip)]
    pub(crate) remote: Option<RemoteCloud>,
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
        CliError::new(
            ErrorClass::Config,
            format!("{} names no `{key}`", home.join(FILE_NAME).display()),
        )
        .hint(format!("add the key `{key}`"))
    };
    let mut wrong = CliErrors::default();
    wrong.take(check_database(home, file, environment));
    let account = wrong.take(remote::account(home, file, environment)).flatten();
    let cloud = CloudSources { flags: remote, file, environment, account: account.as_ref() };
    let brain = wrong.take(BrainSources { file, flags, environment, cloud }.brain());
    let remote =
        brain.as_ref().and_then(|(brain, _)| wrong.take(remote::remote_of(brain, cloud))).flatten();
    for origin in &file.allowed_origins {
        wrong.take(origin_of(origin.as_str(), &ValueSource::key("allowedOrigins")));
    }
    let name = wrong.take(file.name.as_ref().ok_or_else(|| missing("name")));
    let genesis = wrong.take(file.genesis_prompt.as_ref().ok_or_else(|| missing("genesisPrompt")));
    let heartbeat = wrong.take(heartbeat(home, file, environment));
    let webhook = wrong.take(told_to(file, "webhookUrl", file.webhook_url.as_ref()));
    let traces = wrong.take(told_to(file, "otlpEndpoint", file.otlp_endpoint.as_ref()));
    let machine = wrong.take(remote::machine(file)).flatten();
    let creator_address = wrong.take(creator(file)).flatten();
    let found = (brain.zip(name), genesis.zip(heartbeat), webhook.zip(traces));
    let (Some(((brain, brain_origin), name)), Some((genesis, heartbeat)), Some((webhook, traces))) =
        found
    else {
        return wrong.end(None);
    };
    let strategy = file.model_strategy.as_ref().map(|strategy| strategy.max_tokens_per_turn);
    let tokens = file.max_tokens_per_turn.or(strategy);
    let sampling = file.sampling.as_ref();
    wrong.end(Some(ResolvedConfig {
        home: home.to_owned(),
        heartbeat,
        name: name.as_str().to_owned(),
        genesis: genesis.as_str().to_owned(),
        creator_message: file.creator_message.clone().filter(|text| !text.is_empty()),
        creator_address,
        brain,
        brain_origin,
        max_tokens_per_turn: tokens.map(Ranged::get_u32),
        turns_per_wake: file.max_turns_per_cycle.map(Ranged::get_u32),
        seed: sampling.map_or(0, |sampling| sampling.seed),
        temperature_milli: sampling
            .and_then(|sampling| sampling.temperature_milli)
            .map_or(0, Ranged::get_u32),
        stop_loss: file.stop_loss,
        wake_envelope: file.wake_envelope,
        approvals: file.approvals,
        allowed_origins: file.allowed_origins.iter().map(|url| url.as_str().to_owned()).collect(),
        machine,
        egress: file.egress.clone(),
        treasury_policy: file.treasury_policy.clone(),
        log_level: file.log_level.unwrap_or_default(),
        webhook,
        traces,
        metrics: file.metrics_addr.map(LoopbackAddr::get),
        remote,
    }))
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

/// Everybody who may name a brain.
#[derive(Clone, Copy)]
struct BrainSources<'a> {
    file: &'a ConfigFile,
    flags: &'a BrainFlags,
    environment: &'a Environment,
    cloud: CloudSources<'a>,
}

impl BrainSources<'_> {
    fn brain(self) -> Result<(Brain, ValueSource), CliError> {
        let Self { file, flags, .. } = self;
        if let Some(BrainArg::Url(url)) = &flags.brain {
            return self.server(url.as_str(), ValueSource::Flag("--brain".to_owned()));
        }
        let local_wanted = flags.model.is_some() || flags.brain == Some(BrainArg::Local);
        if self.cloud.flags.cloud.is_some() && !local_wanted {
            return self.hosted();
        }
        match &file.brain {
            Some(BrainFile::Local(in_file)) => local(flags, Some(in_file)),
            _ if local_wanted => local(flags, None),
            Some(BrainFile::Http { url, .. }) => {
                self.server(url.as_str(), ValueSource::key("brain"))
            }
            None => self.hosted(),
        }
    }

    /// A server that a flag or the file spells out.
    fn server(self, url: &str, origin: ValueSource) -> Result<(Brain, ValueSource), CliError> {
        let Self { file, flags, environment, cloud } = self;
        let place = origin_of(url, &origin)?;
        let same =
            |other: &str| origin_of(other, &ValueSource::Default).is_ok_and(|other| other == place);
        let (mut scheme, mut model) = (KeyScheme::Bearer, flags.brain_model.clone());
        let of_brain = || ValueSource::Env(env::AUTOMATON_BRAIN_KEY.to_owned());
        let mut key = environment.brain_key.clone().map(|key| (key, of_brain()));
        let mut said = ModelClaims::default();
        if let Some(BrainFile::Http {
            url,
            model: named,
            api_key,
            context_tokens,
            max_output_tokens,
            prices,
            dialect,
        }) = &file.brain
            && same(url.as_str())
        {
            key = key.or_else(|| Some((api_key.clone()?, ValueSource::key("brain.apiKey"))));
            // What is said of a model belongs to that model.
            if model.is_none() || model == *named {
                said = ModelClaims {
                    context_tokens: context_tokens.map(Ranged::get_u32),
                    max_output_tokens: max_output_tokens.map(Ranged::get_u32),
                    prices: prices.map(PricesFile::prices),
                    dialect: dialect.map(RequestDialect::from),
                };
            }
            model = model.or_else(|| named.clone());
        }
        let said = ModelClaims {
            context_tokens: flags.context_tokens.or(said.context_tokens),
            max_output_tokens: flags.max_output_tokens.or(said.max_output_tokens),
            prices: flags.prices.map(PricesFile::prices).or(said.prices),
            dialect: flags.dialect.map(RequestDialect::from).or(said.dialect),
        };
        // Keys that have an owner of their own go to that owner alone.
        if key.is_none() && same(cloud.url().0) {
            key = cloud.key();
            scheme = KeyScheme::Raw;
        } else if key.is_none() && same(OPENAI_URL) {
            key = file.openai_api_key.clone().map(|key| (key, ValueSource::key("openaiApiKey")));
        }
        let key = key.filter(|(key, _)| !key.reveal().is_empty());
        // Whoever has a wallet and a node signs in.
        let signs_in = scheme == KeyScheme::Raw && cloud.rpc().is_some();
        if key.is_none() && !signs_in && [OPENAI_URL, CONWAY_URL].into_iter().any(same) {
            let what = format!("the models at {url} ({origin}) are not served without a key");
            return Err(CliError::new(ErrorClass::Config, what).hint(format!(
                "set the environment variable {} to yours",
                env::AUTOMATON_BRAIN_KEY
            )));
        }
        let (url, model) =
            (url.to_owned(), ModelId::from(model.unwrap_or_else(|| model_name(file))));
        let cheaper = FallbackModels::of(file, &url, &model);
        let (key, key_origin) = key.unzip();
        let served = ModelListing::default();
        let brain = HttpBrain { url, model, cheaper, key, scheme, key_origin, said, served };
        Ok((Brain::Http(brain), origin))
    }

    /// What the reference's keys say when nothing names a brain: the first of
    /// Conway, `OpenAI` and Ollama that the configuration has access to.
    fn hosted(self) -> Result<(Brain, ValueSource), CliError> {
        let Self { file, flags, environment, cloud } = self;
        let (url, origin) = if let Some((_, key_from)) = cloud.key() {
            let (url, from) = cloud.url();
            (url, if from == ValueSource::Default { key_from } else { from })
        } else if let Some((url, from)) = cloud.named().filter(|_| cloud.has_chain()) {
            (url, from)
        } else if file.openai_api_key.as_ref().is_some_and(|key| !key.reveal().is_empty()) {
            (OPENAI_URL, ValueSource::key("openaiApiKey"))
        } else if let Some(url) = &environment.ollama_base_url {
            (url.as_str(), ValueSource::Env(env::OLLAMA_BASE_URL.to_owned()))
        } else if let Some(url) = &file.ollama_base_url {
            (url.as_str(), ValueSource::key("ollamaBaseUrl"))
        } else if flags.fallback().is_some() {
            return local(flags, None);
        } else {
            let what = "the automaton has no model to think with: neither a flag nor automaton.json \
                        names one";
            return Err(CliError::new(ErrorClass::Config, what).hint(
                "run `./up`, which brings a small model; or `automaton up --brain URL \
                 --brain-model NAME` for any OpenAI-compatible server; or put \"brain\": {\"kind\": \
                 \"http\", \"url\": URL, \"model\": NAME} into automaton.json, for `automaton run`",
            ));
        };
        self.server(url, origin)
    }
}

/// A model file: flags over file over what `up` falls back to.
fn local(
    flags: &BrainFlags,
    in_file: Option<&LocalBrain>,
) -> Result<(Brain, ValueSource), CliError> {
    let local = model_file(flags, in_file).ok_or_else(|| {
        CliError::user("a local model needs both its file and the program that runs it")
            .hint("give --model FILE.gguf and --helper PROGRAM; `./up` finds both by itself")
    })?;
    let origin = match (&flags.model, in_file) {
        (Some(_), _) => ValueSource::Flag("--model".to_owned()),
        (None, Some(_)) => ValueSource::key("brain"),
        (None, None) => ValueSource::Default,
    };
    Ok((Brain::Local(local), origin))
}

/// The same, when both the model and the program have a name.
pub(crate) fn model_file(flags: &BrainFlags, in_file: Option<&LocalBrain>) -> Option<LocalBrain> {
    let known = in_file.cloned().or_else(|| flags.fallback());
    let model = flags.model.clone().or_else(|| known.as_ref().map(|known| known.model.clone()))?;
    let helper =
        flags.helper.clone().or_else(|| known.as_ref().map(|known| known.helper.clone()))?;
    // The hash belongs to the file that the configuration names, not to another.
    let same = known.filter(|known| known.model == model);
    let (sha256, window) = same.map_or((None, None), |same| (same.sha256, same.context_tokens));
    let context_tokens = flags.context_tokens.map(|n| Ranged::clamped(n.into())).or(window);
    Some(LocalBrain { model, sha256, helper, context_tokens })
}

fn model_name(file: &ConfigFile) -> String {
    let strategy = file.model_strategy.as_ref().map(|strategy| strategy.inference_model.clone());
    let named = file.inference_model.clone().or(strategy).filter(|name| !name.is_empty());
    named.unwrap_or_else(|| DEFAULT_MODEL.to_owned())
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
    NetOrigin::of(&parsed).map_err(|error| bad().because(&error))
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
