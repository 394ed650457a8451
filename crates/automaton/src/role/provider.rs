//! The model that an automaton thinks with, from its configuration.
//!
//! A server is reached only at the origin that the configuration spells out, and asked for a
//! moment at the start what it says of its models;
//! a model file runs in the sandbox, without network. A file whose hash is not
//! the one that was written down is refused.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use automaton_core::error::ErrorClass;
use automaton_core::model::ModelId;
use automaton_core::tier::ModelTier;
use automaton_core::time::{Clock, Timestamp};
use automaton_core::wire::control::ModelStatus;
use automaton_inference::providers::http::probe::probe;
use automaton_inference::providers::http::{ApiAuth, Endpoint, HttpProvider, Remedies};
use automaton_inference::providers::local::{
    CONTEXT_TOKENS, LocalModel, LocalModelConfig, LocalModelFiles,
};
use automaton_inference::routing::RoutingMatrix;
use automaton_inference::{
    ModelClaims, ModelHosting, ModelInfo, Provider, ProviderRegistry, RegisteredModel, catalogue,
};
use automaton_net::{HttpClient, HttpClientConfig};
use automaton_sandbox::{Launcher, Probe};

use crate::config::env::AUTOMATON_BRAIN_KEY;
use crate::config::file::LocalBrain;
use crate::config::resolve::{Brain, HttpBrain, KeyScheme, ResolvedConfig, ValueSource, origin_of};
use crate::config::values::Ranged;
use crate::error::{CliError, CliErrors};
use crate::http::client;

/// The models of an automaton that asks them itself: the one that it is given, and where that is a
/// server's, the cheaper ones of that server, and what other sellers have whose keys are there.
///
/// # Errors
/// As [`start`].
pub(crate) async fn registry(
    resolved: &ResolvedConfig,
    launcher: &Launcher,
    probe: &Probe,
    clock: Arc<dyn Clock>,
) -> Result<ProviderRegistry, CliError> {
    let usual = start(resolved, launcher, probe, Arc::clone(&clock)).await?;
    let Brain::Http(http) = &resolved.brain else {
        return registry_of(usual, "this machine", resolved);
    };
    let now = clock.now();
    let mut providers = registry_of(usual, http.seller(), resolved)?;
    for (server, model) in served(http, resolved) {
        let mut roles = roles(server, model);
        // The first is there already.
        roles.retain(|role| *role != ModelTier::Usual || server.url != http.url);
        let provider = http_provider(server, model, resolved, Arc::clone(&clock))?;
        let seller = server.seller().to_owned();
        providers = providers.with(RegisteredModel { provider, seller, roles });
    }
    Ok(providers.with_prices(resolved.model_strategy.price_schedule(), now))
}

/// The models of all servers that may be asked, the usual one first.
fn served<'a>(
    usual: &'a HttpBrain,
    resolved: &'a ResolvedConfig,
) -> impl Iterator<Item = (&'a HttpBrain, &'a ModelId)> {
    let servers = std::iter::once(usual).chain(&resolved.other_sellers);
    servers.flat_map(|server| {
        std::iter::once(&server.model)
            .chain(server.cheaper.names())
            .map(move |model| (server, model))
    })
}

/// The models of other sellers that stand in for those of the brain.
pub(crate) fn stand_ins(resolved: &ResolvedConfig) -> impl Iterator<Item = (&HttpBrain, &ModelId)> {
    resolved.other_sellers.iter().flat_map(|server| {
        let all = std::iter::once(&server.model).chain(server.cheaper.names());
        let is_there = |name: &&ModelId| **name == server.model || server.served.lists(name);
        all.filter(is_there).map(move |name| (server, name))
    })
}

/// Returns the roles of a model of another seller.
pub(crate) fn roles_of_stand_in(resolved: &ResolvedConfig, model: &ModelId) -> Vec<ModelTier> {
    let mut found = stand_ins(resolved).filter(|(_, name)| *name == model);
    found.next().map_or_else(Vec::new, |(server, name)| roles(server, name))
}

/// Returns the roles of a model of a server.
fn roles(server: &HttpBrain, model: &ModelId) -> Vec<ModelTier> {
    let usual = (*model == server.model).then_some(ModelTier::Usual);
    usual.into_iter().chain(server.cheaper.roles(model)).collect()
}

/// Returns the models by the configuration, without asking or starting any.
///
/// # Errors
/// When the catalogue is damaged.
pub(crate) fn configured(
    resolved: &ResolvedConfig,
    now: Timestamp,
) -> Result<Vec<ModelStatus>, CliError> {
    let row = |info: ModelInfo, seller: &str, roles: Vec<ModelTier>| ModelStatus {
        seller: seller.to_owned(),
        context_tokens: info.context_tokens,
        input_per_million: info.prices.input_per_million,
        output_per_million: info.prices.output_per_million,
        weak: info.weak,
        thinks: false,
        chosen: false,
        avoided: false,
        model: info.id,
        roles,
    };
    let Brain::Http(http) = &resolved.brain else {
        let info = describe(&resolved.brain)?;
        return Ok(vec![row(info, "this machine", vec![ModelTier::Usual])]);
    };
    let list = resolved.model_strategy.price_schedule();
    let rows = served(http, resolved).map(|(server, model)| {
        let info = served_by(server, model)?;
        let prices = list.at(model, now).unwrap_or(info.prices);
        Ok(row(ModelInfo { prices, ..info }, server.seller(), roles(server, model)))
    });
    rows.collect()
}

/// A registry with the usual model, under the rules of the configuration.
///
/// # Errors
/// When the built-in rules are damaged.
pub(crate) fn registry_of(
    usual: Arc<dyn Provider>,
    seller: impl Into<String>,
    resolved: &ResolvedConfig,
) -> Result<ProviderRegistry, CliError> {
    let strategy = &resolved.model_strategy;
    let matrix = RoutingMatrix::built_in()?.with(&strategy.routing);
    let providers = ProviderRegistry::new(usual, seller, matrix);
    Ok(if strategy.enable_model_fallback { providers } else { providers.without_fallback() })
}

/// Starts or reaches the usual model.
///
/// # Errors
/// When it cannot be used: a file that is missing or another one, a helper
/// that does not start, an address that is none.
async fn start(
    resolved: &ResolvedConfig,
    launcher: &Launcher,
    probe: &Probe,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Provider>, CliError> {
    let brain = match &resolved.brain {
        Brain::Local(brain) => brain,
        Brain::Http(http) => return http_provider(http, &http.model, resolved, clock),
    };
    let mut wrong = CliErrors::default();
    check_files(brain, &mut wrong);
    wrong.end(Some(()))?;
    let config = LocalModelConfig::of_machine(launcher.clone(), probe.clone(), files_of(brain))?;
    Ok(Arc::new(LocalModel::start(config, clock).await?))
}

/// The same models, and last the one on this machine that stands in where no other can. A file
/// that cannot be used is told of, and keeps nobody from thinking.
pub(crate) async fn with_local_fallback(
    providers: ProviderRegistry,
    resolved: &ResolvedConfig,
    launcher: &Launcher,
    probe: &Probe,
    clock: Arc<dyn Clock>,
) -> Result<ProviderRegistry, CliError> {
    let Some(local) = &resolved.local_fallback else { return Ok(providers) };
    let config = LocalModelConfig::of_machine(launcher.clone(), probe.clone(), files_of(local))?;
    let model = Arc::new(LocalModel::on_demand(config, clock).await?);
    let seller = "this machine".to_owned();
    let roles = vec![ModelTier::Usual];
    Ok(providers.with(RegisteredModel { provider: model, seller, roles }))
}

/// Returns the files of a local model.
fn files_of(brain: &LocalBrain) -> LocalModelFiles {
    LocalModelFiles {
        model: brain.model.clone(),
        helper: brain.helper.clone(),
        sha256: brain.sha256.as_ref().map(|hash| hash.as_str().to_owned()),
        context_tokens: brain.context_tokens.map(Ranged::get_u32),
    }
}

/// Checks that both files are there.
pub(crate) fn check_files(brain: &LocalBrain, wrong: &mut CliErrors) {
    wrong.take(check_file(&brain.helper, "the program that runs the model").map_err(|failure| {
        failure.hint("`./up` builds it; or name it with --helper, or use --brain URL")
    }));
    wrong.take(check_file(&brain.model, "the model file").map_err(|failure| {
        failure.hint(
            "`./up` obtains one, and `automaton model list` knows others; or name a GGUF file with \
             --model, or use --brain URL",
        )
    }));
}

fn check_file(path: &Path, what: &str) -> Result<(), CliError> {
    let unusable =
        || CliError::new(ErrorClass::Config, format!("{what} cannot be used: {}", path.display()));
    let metadata = fs::metadata(path).map_err(|error| unusable().because(&error))?;
    if metadata.is_file() { Ok(()) } else { Err(unusable()) }
}

pub(super) fn http_provider(
    brain: &HttpBrain,
    model: &ModelId,
    resolved: &ResolvedConfig,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Provider>, CliError> {
    let mut origins = vec![origin_of(&brain.url, &resolved.brain_origin)?];
    for origin in &resolved.allowed_origins {
        origins.push(origin_of(origin, &ValueSource::Key("allowedOrigins".to_owned()))?);
    }
    let client =
        HttpClient::new(HttpClientConfig { allow_private_origins: origins, ..Default::default() })?;
    let info = served_by(brain, model)?;
    let remedies = remedies(&Brain::Http(brain.clone()), &resolved.brain_origin, false);
    let format = brain.format;
    let endpoint = Endpoint { format, remedies, ..Endpoint::new(&brain.url, auth(brain), info) };
    Ok(Arc::new(HttpProvider::new(client, endpoint, clock)?))
}

pub(super) fn auth(brain: &HttpBrain) -> ApiAuth {
    match (&brain.key, brain.scheme) {
        (Some(key), KeyScheme::Raw) => ApiAuth::Raw(key.clone()),
        (key, _) => ApiAuth::usual(brain.format, key.clone())
            .with_version(brain.anthropic_version.as_deref()),
    }
}

/// Returns the remedies for refusals of the model's server.
pub(crate) fn remedies(brain: &Brain, named_by: &ValueSource, behind_cloud: bool) -> Remedies {
    let window = "say the model's window with `brain.contextTokens` in automaton.json, or \
                  --context-tokens; or use a model with a larger one";
    let Brain::Http(http) = brain else {
        return Remedies { window: Some(window.to_owned()), behind_cloud, ..Remedies::default() };
    };
    let key = match &http.key_origin {
        Some(ValueSource::Env(name)) => {
            format!("set the environment variable {name} to a key that the server accepts")
        }
        Some(ValueSource::Key(key)) => {
            format!("set `{key}` in automaton.json to a key that the server accepts")
        }
        _ => format!(
            "no key was sent: set the environment variable {AUTOMATON_BRAIN_KEY}, or \
             `brain.apiKey` in automaton.json"
        ),
    };
    let model = match named_by {
        ValueSource::Flag(_) => "name another model with --brain-model",
        ValueSource::Key(key) if key == "brain" => {
            "name another model with `brain.model` in automaton.json"
        }
        _ => "name another model with `inferenceModel` in automaton.json",
    };
    let key = Some(key);
    let model = Some(model.to_owned());
    let window = Some(window.to_owned());
    Remedies { key, behind_cloud, model, window }
}

/// Returns true if a server is on this machine.
pub(crate) fn is_here(url: &str) -> bool {
    hosting_of(url) == ModelHosting::Here
}

/// Returns the location of a server, which decides whose claims are believed.
fn hosting_of(url: &str) -> ModelHosting {
    let of_here = |origin: &automaton_net::Origin| match origin.address() {
        Some(address) => address.is_loopback(),
        None => origin.host() == "localhost",
    };
    match origin_of(url, &ValueSource::Default) {
        Ok(origin) if of_here(&origin) => ModelHosting::Here,
        // What may be reached without encryption is the creator's own.
        _ if url.starts_with("http://") => ModelHosting::Own,
        _ => ModelHosting::Hosted,
    }
}

/// Returns the known properties of a server's model, without asking it.
///
/// # Errors
/// When the catalogue is damaged.
pub(crate) fn served_by(brain: &HttpBrain, model: &ModelId) -> Result<ModelInfo, CliError> {
    let nobody = ModelClaims::default();
    // What the creator says is said of the usual model alone.
    let said = if *model == brain.model { &brain.said } else { &nobody };
    Ok(catalogue::merge_claims(
        model.as_str(),
        hosting_of(&brain.url),
        said,
        &brain.served.claims_of(model),
    )?)
}

/// Asks the server for its models: their names, windows and prices. One that does not say
/// in time is no failure, since the catalogue and the configuration remain.
pub(crate) async fn discover_models(brain: &mut Brain) {
    if let Brain::Http(http) = brain {
        discover_models_of(http).await;
    }
}

/// The same of one server.
pub(crate) async fn discover_models_of(http: &mut HttpBrain) {
    // silent-ok: what is wrong with the address is told when the model is asked.
    let Ok(client) = client([http.url.as_str()]) else { return };
    let models = std::iter::once(&http.model).chain(http.cheaper.names());
    let models: Vec<&str> = models.map(ModelId::as_str).collect();
    let auth = auth(http);
    let place = hosting_of(&http.url);
    let asked = probe(&client, &http.url, http.format, &auth, place, &models).await;
    http.served = asked.unwrap_or_default();
}

/// Returns the known properties of the model, without starting or reaching it.
///
/// # Errors
/// When the catalogue is damaged.
pub(crate) fn describe(brain: &Brain) -> Result<ModelInfo, CliError> {
    match brain {
        Brain::Local(local) => {
            let name = local.model.file_stem().unwrap_or_default().to_string_lossy();
            let context_tokens = local.context_tokens.map_or(CONTEXT_TOKENS, Ranged::get_u32);
            Ok(ModelInfo { context_tokens, compact: true, ..catalogue::own_model(&name)? })
        }
        Brain::Http(http) => served_by(http, &http.model),
    }
}

#[cfg(test)]
mod tests {
    use automaton_inference::providers::http::ApiFormat;
    use automaton_inference::providers::http::probe::ModelListing;

    use super::*;
    use crate::config::resolve::FallbackModels;

    #[test]
    fn only_a_server_on_this_machine_is_believed_everything() {
        for (url, wanted) in [
            ("http://127.0.0.1:11434/v1", ModelHosting::Here),
            ("http://localhost:8080", ModelHosting::Here),
            ("https://127.0.0.1:8443/v1", ModelHosting::Here),
            ("http://[::1]:8080/v1", ModelHosting::Here),
            ("http://192.168.1.5:11434/v1", ModelHosting::Own),
            ("http://gpu.lan:8000/v1", ModelHosting::Own),
            ("https://api.openai.com/v1", ModelHosting::Hosted),
            ("https://localhost.example.com/v1", ModelHosting::Hosted),
            ("https://127.0.0.1.example.com/v1", ModelHosting::Hosted),
        ] {
            assert_eq!(hosting_of(url), wanted, "{url}");
        }
    }

    #[test]
    fn a_remedy_names_the_place_of_the_key_that_was_used() {
        let brain = |key_origin| {
            Brain::Http(HttpBrain {
                url: "https://h/v1".to_owned(),
                format: ApiFormat::default(),
                anthropic_version: None,
                model: "m".into(),
                is_named: true,
                unlisted: false,
                cheaper: FallbackModels::default(),
                key: None,
                scheme: KeyScheme::Bearer,
                key_origin,
                said: ModelClaims::default(),
                served: ModelListing::default(),
            })
        };
        let key = |origin| {
            let remedies = remedies(&brain(origin), &ValueSource::Key("brain".to_owned()), true);
            assert!(remedies.window.unwrap().contains("`brain.contextTokens`"));
            assert!(remedies.model.unwrap().contains("`brain.model`"));
            remedies.key.unwrap()
        };
        let env = Some(ValueSource::Env(AUTOMATON_BRAIN_KEY.to_owned()));
        assert!(key(env).contains("environment variable AUTOMATON_BRAIN_KEY"));
        assert!(key(Some(ValueSource::Key("openaiApiKey".to_owned()))).contains("`openaiApiKey`"));
        assert!(key(None).contains("no key was sent"));
    }
}
