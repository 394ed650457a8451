//! The model that an automaton thinks with, from its configuration.
//!
//! A server is reached only at the origin that the configuration spells out;
//! a model file runs in the sandbox, without network. A file whose hash is not
//! the one that was written down is refused.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use automaton_core::error::Kind;
use automaton_core::time::Clock;
use automaton_inference::providers::local::{CONTEXT_TOKENS, Local, LocalConfig, LocalFiles};
use automaton_inference::providers::openai_compatible::{Auth, Endpoint, OpenAiCompatible};
use automaton_inference::{ModelInfo, Provider, catalogue};
use automaton_net::{Client, ClientConfig};
use automaton_sandbox::{Launcher, Probe};

use crate::config::file::LocalBrain;
use crate::config::resolve::{Brain, HttpBrain, KeyScheme, Origin, Resolved, origin_of};
use crate::error::Failure;

/// Starts or reaches the model.
///
/// # Errors
/// When it cannot be used: a file that is missing or another one, a helper
/// that does not start, an address that is none.
pub(crate) async fn start(
    resolved: &Resolved,
    launcher: &Launcher,
    probe: &Probe,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Provider>, Failure> {
    let brain = match &resolved.brain {
        Brain::Local(brain) => brain,
        Brain::Http(http) => return reach(http, resolved, clock),
    };
    check_files(brain)?;
    let files = LocalFiles {
        model: brain.model.clone(),
        helper: brain.helper.clone(),
        sha256: brain.sha256.as_ref().map(|hash| hash.as_str().to_owned()),
    };
    let config = LocalConfig::of_machine(launcher.clone(), probe.clone(), files)?;
    Ok(Arc::new(Local::start(config, clock).await?))
}

/// Checks that both files are there.
///
/// # Errors
/// When one of them is missing or is no file.
pub(crate) fn check_files(brain: &LocalBrain) -> Result<(), Failure> {
    check_file(&brain.helper, "the program that runs the model").map_err(|failure| {
        failure.hint("`./up` builds it; or name it with --helper, or use --brain URL")
    })?;
    check_file(&brain.model, "the model file").map_err(|failure| {
        failure.hint("`./up` obtains one; or name a GGUF file with --model, or use --brain URL")
    })
}

fn check_file(path: &Path, what: &str) -> Result<(), Failure> {
    let unusable =
        || Failure::new(Kind::Config, format!("{what} cannot be used: {}", path.display()));
    let metadata = fs::metadata(path).map_err(|error| unusable().because(&error))?;
    if metadata.is_file() { Ok(()) } else { Err(unusable()) }
}

fn reach(
    brain: &HttpBrain,
    resolved: &Resolved,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Provider>, Failure> {
    let mut origins = vec![origin_of(&brain.url, &resolved.brain_origin)?];
    for origin in &resolved.allowed_origins {
        origins.push(origin_of(origin, &Origin::Key("allowedOrigins".to_owned()))?);
    }
    let client =
        Client::new(ClientConfig { allow_private_origins: origins, ..Default::default() })?;
    let auth = match (&brain.key, brain.scheme) {
        (None, _) => Auth::None,
        (Some(key), KeyScheme::Bearer) => Auth::Bearer(key.clone()),
        (Some(key), KeyScheme::Raw) => Auth::Raw(key.clone()),
    };
    let endpoint = Endpoint::new(&brain.url, auth, model_of(brain)?);
    Ok(Arc::new(OpenAiCompatible::new(client, endpoint, clock)?))
}

/// A server that may be reached without encryption is the creator's own.
fn model_of(brain: &HttpBrain) -> Result<ModelInfo, Failure> {
    let own = brain.url.starts_with("http://");
    Ok(if own { catalogue::own_model(&brain.model)? } else { catalogue::model(&brain.model)? })
}

/// What is known of the model without starting or reaching it.
///
/// # Errors
/// When the catalogue is damaged.
pub(crate) fn describe(brain: &Brain) -> Result<ModelInfo, Failure> {
    match brain {
        Brain::Local(local) => {
            let name = local.model.file_stem().unwrap_or_default().to_string_lossy();
            Ok(ModelInfo { context_tokens: CONTEXT_TOKENS, ..catalogue::own_model(&name)? })
        }
        Brain::Http(http) => model_of(http),
    }
}
