//! The model that an automaton thinks with, from its configuration.
//!
//! A server is reached only at the origin that the configuration spells out;
//! a model file runs in the sandbox, without network. A file whose hash is not
//! the one that was written down is refused.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::Kind;
use automaton_core::secret::Secret;
use automaton_core::time::Clock;
use automaton_inference::providers::local::{CONTEXT_TOKENS, Local, LocalConfig, LocalFiles};
use automaton_inference::providers::openai_compatible::{
    Auth, Endpoint, OpenAiCompatible, chat_url,
};
use automaton_inference::{ModelInfo, Provider, catalogue};
use automaton_net::{Client, ClientConfig, Deadlines, Header, Method, Request};
use automaton_sandbox::{Launcher, Probe};
use serde::Deserialize;

use crate::cmd::wallet::{client, url};
use crate::config::file::LocalBrain;
use crate::config::resolve::{Brain, HttpBrain, KeyScheme, Origin, Resolved, origin_of};
use crate::error::{Failure, Findings};

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
    let mut wrong = Findings::default();
    check_files(brain, &mut wrong);
    wrong.end(Some(()))?;
    let files = LocalFiles {
        model: brain.model.clone(),
        helper: brain.helper.clone(),
        sha256: brain.sha256.as_ref().map(|hash| hash.as_str().to_owned()),
    };
    let config = LocalConfig::of_machine(launcher.clone(), probe.clone(), files)?;
    Ok(Arc::new(Local::start(config, clock).await?))
}

/// Checks that both files are there.
pub(crate) fn check_files(brain: &LocalBrain, wrong: &mut Findings) {
    wrong.take(check_file(&brain.helper, "the program that runs the model").map_err(|failure| {
        failure.hint("`./up` builds it; or name it with --helper, or use --brain URL")
    }));
    wrong.take(check_file(&brain.model, "the model file").map_err(|failure| {
        failure.hint("`./up` obtains one; or name a GGUF file with --model, or use --brain URL")
    }));
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
    served_by(brain, &brain.model)
}

/// What is known of a model of a server, without asking it.
///
/// # Errors
/// When the catalogue is damaged.
pub(crate) fn served_by(brain: &HttpBrain, model: &str) -> Result<ModelInfo, Failure> {
    let own = brain.url.starts_with("http://");
    Ok(if own { catalogue::own_model(model)? } else { catalogue::model(model)? })
}

/// How long a server may take to list its models.
const LISTS_WITHIN: Deadlines =
    Deadlines { idle: Duration::from_secs(5), total: Duration::from_secs(5) };

/// The models that a server lists.
///
/// # Errors
/// When it does not, or cannot be reached.
pub(crate) async fn listed(brain: &HttpBrain) -> Result<Vec<String>, Failure> {
    #[derive(Deserialize)]
    struct Listed {
        data: Vec<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    let chat = chat_url(&brain.url)?.to_string();
    let to = url(&format!("{}/models", chat.trim_end_matches("/chat/completions")))?;
    let mut request = Request { deadlines: LISTS_WITHIN, ..Request::new(Method::Get, to) };
    if let Some(key) = &brain.key {
        let bearer = Secret::new(format!("Bearer {}", key.reveal()));
        request.headers.push(Header::Secret("authorization", bearer));
    }
    let response = client([brain.url.as_str()])?.request(request).await?;
    let body = response.body.whole().await?;
    let listed: Listed = serde_json::from_slice(&body).map_err(|error| {
        Failure::new(Kind::Upstream, "that is no list of models").because(&error)
    })?;
    Ok(listed.data.into_iter().map(|model| model.id).collect())
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
