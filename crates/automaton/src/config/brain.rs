//! The model that an automaton thinks with: who names it, where it is, and with which key.
//!
//! Flags over environment over file, each value with its [`ValueSource`]. Pure, and no key is
//! ever sent to an origin that it is not for.

use automaton_core::error::ErrorClass;
use automaton_core::model::ModelId;
use automaton_core::secret::Secret;
use automaton_core::tier::ModelTier;
use automaton_inference::providers::http::ApiFormat;
use automaton_inference::providers::http::probe::ModelListing;
use automaton_inference::{ModelClaims, RequestDialect};
use serde::{Deserialize, Serialize};

use super::env::{self, Environment};
use super::file::{BrainFile, ConfigFile, LocalBrain};
use super::providers::{self, ProviderAccess};
use super::remote::{CONWAY_URL, CloudSources};
use super::resolve::{ValueSource, origin_of, secret_text};
use super::values::{PricesFile, Ranged};
use crate::args::{BrainArg, BrainFlags};
use crate::error::CliError;

/// The model that a cloud is asked for when nothing names one, and the one that stands in for
/// it when credits run low.
const DEFAULT_MODEL: &str = "gpt-5.2";
pub(crate) const DEFAULT_CHEAPER: &str = "gpt-5-mini";

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

/// A brain that is written into a new home.
#[derive(Debug)]
pub(crate) struct NewBrain {
    pub(crate) file: BrainFile,
    /// The most that it may spend on thinking in a day, where nobody was asked.
    pub(crate) daily_cents: Option<u64>,
    /// Sellers who are asked where that brain does not answer, by name.
    pub(crate) fallback_providers: Vec<String>,
}

/// A server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HttpBrain {
    /// Its address.
    pub(crate) url: String,
    /// The format that it speaks.
    pub(crate) format: ApiFormat,
    /// The version of Anthropic's format that it is asked in; the usual one where none is named.
    pub(crate) anthropic_version: Option<Box<str>>,
    /// The model.
    pub(crate) model: ModelId,
    /// True if somebody named that model for this server; else it is the default model.
    pub(crate) is_named: bool,
    /// True if the server accepts the name although it does not list it, as its creator says.
    pub(crate) unlisted: bool,
    /// Those that stand in for it.
    pub(crate) cheaper: FallbackModels,
    /// The key to it.
    #[serde(with = "secret_text")]
    pub(crate) key: Option<Secret>,
    /// Scheme of the key.
    pub(crate) scheme: KeyScheme,
    /// Source of the key.
    pub(crate) key_origin: Option<ValueSource>,
    /// Claims of its creator about the model.
    pub(crate) said: ModelClaims,
    /// Claims of the server about its models, once it was asked.
    pub(crate) served: ModelListing,
}

#[cfg(test)]
impl HttpBrain {
    /// A server that nobody says anything about.
    pub(super) fn of_test(url: &str, model: &str) -> Self {
        Self {
            url: url.to_owned(),
            format: ApiFormat::default(),
            anthropic_version: None,
            model: model.into(),
            is_named: true,
            unlisted: false,
            cheaper: FallbackModels::default(),
            key: None,
            scheme: KeyScheme::Bearer,
            key_origin: None,
            said: ModelClaims::default(),
            served: ModelListing::default(),
        }
    }
}

impl HttpBrain {
    /// Returns the seller, for people.
    pub(crate) fn seller(&self) -> &str {
        &self.url
    }
}

/// The models of a server that think when credits run low.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct FallbackModels {
    /// For the tier low_compute.
    pub(crate) low_compute: Option<ModelId>,
    /// For the tier critical.
    pub(crate) critical: Option<ModelId>,
}

impl FallbackModels {
    /// Reads the models from the file. The defaults belong together: with another default model
    /// on a server, or with a model of one's own, that model is used in every tier.
    fn of(file: &ConfigFile, usual: &ModelId, default: Option<(&str, &str)>) -> Self {
        let default = default.filter(|(model, _)| *model == usual.as_str());
        let strategy = file.model_strategy.as_ref();
        let or_default = |named: Option<String>| {
            let name = named.filter(|name| !name.is_empty());
            let name = name.or_else(|| default.map(|(_, cheaper)| cheaper.to_owned()));
            name.map(ModelId::from).filter(|name| name != usual)
        };
        Self {
            low_compute: or_default(strategy.and_then(|said| said.low_compute_model.clone())),
            critical: or_default(strategy.and_then(|said| said.critical_model.clone())),
        }
    }

    /// Returns the roles of a model among them.
    pub(crate) fn roles(&self, model: &ModelId) -> Vec<ModelTier> {
        let named = |name: &Option<ModelId>| name.as_ref() == Some(model);
        let roles = [
            (ModelTier::LowCompute, named(&self.low_compute)),
            (ModelTier::Critical, named(&self.critical)),
        ];
        roles.into_iter().filter_map(|(role, is)| is.then_some(role)).collect()
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &ModelId> {
        let first = self.low_compute.as_ref();
        let second = self.critical.as_ref().filter(|name| Some(*name) != first);
        first.into_iter().chain(second)
    }
}

/// Scheme by which a key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyScheme {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// `Authorization: KEY`, as Conway wants it.
    Raw,
}

impl Brain {
    /// Returns true if a cloud of our own can resell it. A server that is a cloud already sells
    /// its own credits.
    pub(crate) fn can_be_sold(&self) -> bool {
        !matches!(self, Self::Http(http) if http.scheme == KeyScheme::Raw)
    }
}

/// Everybody who may name a brain.
#[derive(Clone, Copy)]
pub(super) struct BrainSources<'a> {
    pub(super) file: &'a ConfigFile,
    pub(super) flags: &'a BrainFlags,
    pub(super) environment: &'a Environment,
    pub(super) cloud: CloudSources<'a>,
}

impl BrainSources<'_> {
    /// The brain, and who named it.
    ///
    /// # Errors
    /// When nobody named one, or there is no key to it.
    pub(super) fn brain(self) -> Result<(Brain, ValueSource), CliError> {
        let Self { file, flags, .. } = self;
        if let Some(BrainArg::Provider(name)) = &flags.brain {
            let known = providers::accesses(file, self.environment)?;
            let url = providers::access_by_name(&known, name)?.url;
            return self.server(&url, ValueSource::Flag("--brain".to_owned()));
        }
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
        let accesses = providers::accesses(file, environment)?;
        let known = accesses.iter().find(|access| same(&access.url));
        let mut scheme = KeyScheme::Bearer;
        let FileServer { model, mut key, said, format, unlisted } = self.in_file(same);
        let usual = || match known {
            Some(access) => access.provider.format,
            None if ollama(file, flags, environment).is_some_and(|(url, _)| same(&url)) => {
                ApiFormat::Ollama
            }
            None => ApiFormat::default(),
        };
        let format = format.unwrap_or_else(usual);
        // Keys that have an owner of their own go to that owner alone.
        if key.is_none() && same(cloud.url().0) {
            key = cloud.key();
            scheme = KeyScheme::Raw;
        } else if key.is_none() {
            key = known.and_then(|access| access.key.clone());
        }
        let key = key.filter(|(key, _)| !key.reveal().is_empty());
        // Whoever has a wallet and a node signs in.
        let signs_in = scheme == KeyScheme::Raw && cloud.rpc().is_some();
        let sells = same(CONWAY_URL) || known.is_some_and(|it| same(&it.provider.url));
        if key.is_none() && !signs_in && sells {
            return Err(no_key(url, &origin, known));
        }
        let is_flag = matches!(origin, ValueSource::Flag(_));
        let is_named = model.is_some() || (!is_flag && names_model(file));
        let model = model.or_else(|| flags.only_model.clone());
        let model = model.unwrap_or_else(|| model_name(file, known, &accesses));
        let url = url.to_owned();
        let model = ModelId::from(model);
        let default = match known {
            Some(ProviderAccess { provider, .. }) => {
                Some((provider.model.as_str(), provider.cheaper_model.as_str()))
            }
            None if scheme == KeyScheme::Raw || url.starts_with("https://") => {
                Some((DEFAULT_MODEL, DEFAULT_CHEAPER))
            }
            None => None,
        };
        let cheaper = FallbackModels::of(file, &model, default);
        let (key, key_origin) = key.unzip();
        let served = ModelListing::default();
        let anthropic_version = anthropic_version(file, format)?;
        let brain = HttpBrain {
            url,
            format,
            anthropic_version,
            model,
            is_named,
            unlisted,
            cheaper,
            key,
            scheme,
            key_origin,
            said,
            served,
        };
        Ok((Brain::Http(brain), origin))
    }

    /// Returns the values of flags, environment and file for a server with this origin.
    fn in_file(self, same: impl Fn(&str) -> bool) -> FileServer {
        let Self { file, flags, environment, .. } = self;
        let of_brain = || ValueSource::Env(env::AUTOMATON_BRAIN_KEY.to_owned());
        let key = environment.brain_key.clone().map(|key| (key, of_brain()));
        let mut found = FileServer {
            model: flags.brain_model.clone(),
            key,
            said: ModelClaims::default(),
            format: None,
            unlisted: false,
        };
        if let Some(BrainFile::Http {
            url,
            format,
            model: named,
            api_key,
            context_tokens,
            max_output_tokens,
            prices,
            dialect,
            unlisted,
        }) = &file.brain
            && same(url.as_str())
        {
            let in_file = || Some((api_key.clone()?, ValueSource::key("brain.apiKey")));
            found.key = found.key.or_else(in_file);
            found.format = format.map(ApiFormat::from);
            found.unlisted = unlisted.unwrap_or_default();
            // What is said of a model belongs to that model.
            if found.model.is_none() || found.model == *named {
                found.said = ModelClaims {
                    context_tokens: context_tokens.map(Ranged::get_u32),
                    max_output_tokens: max_output_tokens.map(Ranged::get_u32),
                    prices: prices.map(PricesFile::prices),
                    dialect: dialect.map(RequestDialect::from),
                };
            }
            found.model = found.model.or_else(|| named.clone());
        }
        let said = found.said;
        let said = ModelClaims {
            context_tokens: flags.context_tokens.or(said.context_tokens),
            max_output_tokens: flags.max_output_tokens.or(said.max_output_tokens),
            prices: flags.prices.map(PricesFile::prices).or(said.prices),
            dialect: flags.dialect.map(RequestDialect::from).or(said.dialect),
        };
        FileServer { said, ..found }
    }

    /// Returns the brain by the keys that are found if nobody names one: a cloud's first, then
    /// the known providers', then Ollama.
    fn hosted(self) -> Result<(Brain, ValueSource), CliError> {
        let Self { file, flags, environment, cloud } = self;
        let known = providers::accesses(file, environment)?;
        let named = flags.brain_model.clone().or_else(|| named_model(file));
        let ollama = ollama(file, flags, environment);
        let found = providers::first_with_key(&known, named.as_deref());
        let (url, origin) = if let Some((_, key_from)) = cloud.key() {
            let (url, from) = cloud.url();
            (url, if from == ValueSource::Default { key_from } else { from })
        } else if let Some((url, from)) = cloud.address().filter(|_| cloud.has_chain()) {
            (url, from)
        } else if let Some(found) = &found {
            (found.url.as_str(), found.url_from.clone())
        } else if let Some((url, from)) = &ollama {
            (url.as_str(), from.clone())
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

impl BrainSources<'_> {
    /// The sellers that the file names to stand in for the one that thinks, as far as there is a
    /// key to them. No other key that is found is spent.
    ///
    /// # Errors
    /// When one is not known.
    pub(super) fn other_sellers(self, brain: &Brain) -> Result<Vec<HttpBrain>, CliError> {
        let Some(strategy) = &self.file.model_strategy else { return Ok(Vec::new()) };
        let (Brain::Http(usual), true) = (brain, strategy.enable_model_fallback) else {
            return Ok(Vec::new());
        };
        let known = providers::accesses(self.file, self.environment)?;
        let mut others = Vec::new();
        for name in &strategy.fallback_providers {
            let access = providers::access_by_name(&known, name).map_err(|failure| {
                failure.hint("`modelStrategy.fallbackProviders` in automaton.json names it")
            })?;
            if let Some(key) = access.key.clone().filter(|_| access.url != usual.url) {
                let version = anthropic_version(self.file, access.provider.format)?;
                others.push(server_of(access, key, version));
            }
        }
        Ok(others)
    }
}

/// A seller with its own models.
fn server_of(
    access: ProviderAccess,
    (key, key_from): (Secret, ValueSource),
    anthropic_version: Option<Box<str>>,
) -> HttpBrain {
    let ProviderAccess { provider, url, .. } = access;
    let cheaper = Some(provider.cheaper_model);
    HttpBrain {
        url,
        format: provider.format,
        anthropic_version,
        model: provider.model,
        is_named: false,
        unlisted: false,
        cheaper: FallbackModels { low_compute: cheaper.clone(), critical: cheaper },
        key: Some(key),
        scheme: KeyScheme::Bearer,
        key_origin: Some(key_from),
        said: ModelClaims::default(),
        served: ModelListing::default(),
    }
}

/// Returns the address of Ollama and its source. The variable for its own client counts only if a
/// model of it is named, since it is meant for other programs.
pub(crate) fn ollama(
    file: &ConfigFile,
    flags: &BrainFlags,
    environment: &Environment,
) -> Option<(String, ValueSource)> {
    let of = |name: &str| ValueSource::Env(name.to_owned());
    let is_named = || flags.brain_model.is_some() || named_model(file).is_some();
    if let Some(url) = &environment.ollama_base_url {
        Some((url.clone(), of(env::OLLAMA_BASE_URL)))
    } else if let Some(url) = &file.ollama_base_url {
        Some((url.as_str().to_owned(), ValueSource::key("ollamaBaseUrl")))
    } else {
        let host = environment.ollama_host.as_deref().filter(|_| is_named())?;
        Some((ollama_url(host), of(env::OLLAMA_HOST)))
    }
}

/// The version of Anthropic's format that the file names, where it is asked for.
fn anthropic_version(file: &ConfigFile, format: ApiFormat) -> Result<Option<Box<str>>, CliError> {
    let strategy = file.model_strategy.as_ref().map(|it| it.anthropic_api_version.clone());
    let named = strategy.filter(|_| format == ApiFormat::AnthropicMessages);
    let is_version = |text: &String| {
        !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
    };
    match named {
        Some(text) if !is_version(&text) => {
            let what = format!("`modelStrategy.anthropicApiVersion` is no version: '{text}'");
            Err(CliError::new(ErrorClass::Config, what).hint("write it like 2023-06-01"))
        }
        named => Ok(named.map(String::into_boxed_str)),
    }
}

/// The URL that Ollama's own client makes of `OLLAMA_HOST`: scheme, host and port may each lack.
fn ollama_url(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, place) = host.split_once("://").unwrap_or(("http", host));
    let (authority, path) = match place.split_once('/') {
        Some((authority, path)) => (authority, format!("/{path}")),
        None => (place, String::new()),
    };
    let authority = match authority.rsplit_once(':') {
        // An address of six in brackets has colons of its own.
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (authority, ""),
    };
    let name = match authority.0 {
        // Where it listens everywhere, it is here.
        "" | "0.0.0.0" => "127.0.0.1",
        name => name,
    };
    let port = match (authority.1, host.contains("://")) {
        ("", true) => String::new(),
        ("", false) => ":11434".to_owned(),
        (port, _) => format!(":{port}"),
    };
    format!("{scheme}://{name}{port}{path}")
}

/// Values for one server.
struct FileServer {
    model: Option<String>,
    key: Option<(Secret, ValueSource)>,
    said: ModelClaims,
    format: Option<ApiFormat>,
    unlisted: bool,
}

/// There is no key to a server that serves nobody without one.
fn no_key(url: &str, origin: &ValueSource, known: Option<&ProviderAccess>) -> CliError {
    let variable =
        known.map_or(env::AUTOMATON_BRAIN_KEY, |access| access.provider.key_variable.as_str());
    let what = format!("the models at {url} ({origin}) are not served without a key");
    CliError::new(ErrorClass::Config, what)
        .hint(format!("set the environment variable {variable} to yours"))
}

/// A model file: flags over file over what `up` falls back to.
fn local(
    flags: &BrainFlags,
    in_file: Option<&LocalBrain>,
) -> Result<(Brain, ValueSource), CliError> {
    let local = model_file(flags, in_file).ok_or_else(|| {
        if let Some(missing) = flags.model.as_ref().filter(|model| !model.exists()) {
            let what = format!("there is no model file {}", missing.display());
            return CliError::user(what).hint(
                "check the path; `automaton model list` names the models that are on this machine",
            );
        }
        CliError::user("a local model needs both its file and the program that runs it")
            .hint("give --model FILE.gguf and --helper PROGRAM; `./up --brain local` brings both")
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

/// The model that the file names.
fn named_model(file: &ConfigFile) -> Option<String> {
    let strategy = file.model_strategy.as_ref().map(|strategy| strategy.inference_model.clone());
    file.inference_model.clone().or(strategy).filter(|name| !name.is_empty())
}

/// Returns true if the file names a model for any server. The default is no name.
fn names_model(file: &ConfigFile) -> bool {
    file.inference_model.as_ref().is_some_and(|name| !name.is_empty())
        || named_model(file).is_some_and(|name| name != DEFAULT_MODEL)
}

/// The model that a server is asked for: the one that the file names, unless that is known to
/// be another seller's.
fn model_name(
    file: &ConfigFile,
    known: Option<&ProviderAccess>,
    accesses: &[ProviderAccess],
) -> String {
    let may_be = |name: &String| {
        known.is_none_or(|it| !providers::is_of_another(accesses, &it.provider, name))
    };
    let default = || known.map_or(DEFAULT_MODEL, |access| access.provider.model.as_str());
    named_model(file).filter(may_be).unwrap_or_else(|| default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_ollama_serves_is_read_as_its_own_client_reads_it() {
        for (host, url) in [
            ("", "http://127.0.0.1:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            (":5000", "http://127.0.0.1:5000"),
            ("1.2.3.4", "http://1.2.3.4:11434"),
            ("gpu.lan:5000", "http://gpu.lan:5000"),
            ("http://1.2.3.4", "http://1.2.3.4"),
            ("https://host:56/ollama/", "https://host:56/ollama"),
            ("[::1]", "http://[::1]:11434"),
            ("[::1]:9", "http://[::1]:9"),
        ] {
            assert_eq!(ollama_url(host), url, "{host}");
        }
    }
}
