//! Asks a server which models it has, and says why where it does not tell.
//!
//! It costs nothing. A server without a list may be a good one: then only a question to the
//! model tells whether it works.

use std::time::Duration;

use automaton_core::file_text;
use automaton_core::model::ModelId;
use automaton_net::{Deadlines, HttpClient, HttpMethod, HttpRequest, NetError, redact};
use serde_json::Value;

use super::probe::{ModelListing, list_of, nearest_of, read_list};
use super::{ApiAuth, ApiFormat};
use crate::error::InferenceError;

/// Time that a server may take to list its models.
const WITHIN: Duration = Duration::from_secs(5);

/// The longest list that is read, in bytes.
const BODY_BYTES_MAX: u64 = 8 << 20;

/// The answer of a server that was asked for its models.
#[derive(Debug)]
pub enum ModelList {
    /// The names of its models; there is at least one.
    Listed(ModelListing),
    /// It does not say; it may have no list, or want another key for it.
    Unknown,
    /// It sent a page for people, as a site does that is no model server.
    Page,
    /// It could not be asked now.
    Away(InferenceError),
}

/// Asks a server for the models that it has.
///
/// # Errors
/// [`InferenceError::BaseUrl`] when the base URL is none, and what is wrong with the request on
/// our side.
pub async fn ask_for_models(
    client: &HttpClient,
    base_url: &str,
    format: ApiFormat,
    auth: &ApiAuth,
) -> Result<ModelList, InferenceError> {
    let chat = format.url(base_url)?;
    let Some(url) = list_of(&chat) else { return Ok(ModelList::Unknown) };
    let name = redact::url(&url);
    let mut request = HttpRequest::new(HttpMethod::Get, url);
    request.headers.extend(auth.headers());
    request.deadlines = Deadlines { idle: WITHIN, total: WITHIN };
    request.body_bytes_max = BODY_BYTES_MAX;
    let on_the_way = |source: NetError| match InferenceError::on_the_way(&name, source) {
        away @ (InferenceError::Unreachable { .. }
        | InferenceError::TimedOut { .. }
        | InferenceError::Cut { .. }) => Ok(ModelList::Away(away)),
        // A redirection or an overlong body is an answer, and no list.
        InferenceError::Refused { source: source @ NetError::Untrusted { .. } } => {
            Err(InferenceError::Refused { source })
        }
        InferenceError::Refused { source: source @ NetError::NotEncrypted { .. } } => {
            Err(InferenceError::Refused { source })
        }
        InferenceError::Refused { source: source @ NetError::ForbiddenAddress { .. } } => {
            Err(InferenceError::Refused { source })
        }
        _ => Ok(ModelList::Unknown),
    };
    let response = match client.request(request).await {
        Ok(response) => response,
        Err(source) => return on_the_way(source),
    };
    let is_page = response.media_type().is_some_and(|kind| kind == "text/html");
    let is_good = (200..300).contains(&response.status);
    if is_page && is_good {
        return Ok(ModelList::Page);
    }
    if !is_good {
        return Ok(ModelList::Unknown);
    }
    let body = match response.body.read_to_end().await {
        Ok(body) => body,
        Err(source) => return on_the_way(source),
    };
    Ok(read(&body))
}

/// Reads the body of a list.
fn read(body: &[u8]) -> ModelList {
    // silent-ok: what is no text is no list.
    let Ok(text) = file_text::decode(body) else { return ModelList::Unknown };
    if text.trim_start().starts_with('<') {
        return ModelList::Page;
    }
    // silent-ok: what is no JSON is no list.
    let Ok(list) = serde_json::from_str::<Value>(text) else { return ModelList::Unknown };
    let mut listing = ModelListing::default();
    read_list(&list, &[], &mut listing);
    match listing.listed.is_empty() {
        true => ModelList::Unknown,
        false => ModelList::Listed(listing),
    }
}

impl ModelListing {
    /// Returns true if the server accepts this name, as far as the list tells. Servers also
    /// accept variants of a listed name, such as `openai/gpt-5.2:nitro`.
    #[must_use]
    pub fn has(&self, model: &ModelId) -> bool {
        let name = model.as_str().strip_prefix("models/").unwrap_or(model.as_str());
        let base = name.rsplit_once(':').map(|(base, _)| base);
        let is_listed = |name: &str| {
            self.lists(&ModelId::from(name))
                || self.listed.iter().any(|known| known.eq_ignore_ascii_case(name))
        };
        // A tag of Ollama is another model, and its base is never listed without one.
        is_listed(name) || base.is_some_and(|base| self.listed.iter().any(|known| known == base))
    }

    /// The model that is meant where none is named: the only one that is not for embeddings.
    #[must_use]
    pub fn only_model(&self) -> Option<ModelId> {
        if let [only] = self.listed.as_slice() {
            return Some(ModelId::from(only.as_str()));
        }
        let mut talks =
            self.listed.iter().filter(|name| !name.to_ascii_lowercase().contains("embed"));
        let only = talks.next()?;
        talks.next().is_none().then(|| ModelId::from(only.as_str()))
    }

    /// A few of the names, those most like `wanted` first, and how many there are besides.
    #[must_use]
    pub fn excerpt(&self, wanted: &ModelId) -> (Vec<String>, usize) {
        let names = nearest_of(self.listed.clone(), wanted.as_str());
        let left = self.listed.len() - names.len();
        (names, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[&str]) -> ModelListing {
        let listed = names.iter().map(ToString::to_string).collect();
        ModelListing { listed, ..ModelListing::default() }
    }

    #[test]
    fn a_list_is_read_in_every_form_and_what_is_none_is_told_apart() {
        for body in [
            r#"{"data": [{"id": "a"}, {"id": "b"}]}"#,
            r#"{"models": [{"name": "models/a"}, {"name": "models/b"}]}"#,
            r#"[{"id": "a"}, {"id": "b"}]"#,
            "\u{feff}{\"data\": [{\"id\": \"a\"}, {\"id\": \"b\"}]}",
        ] {
            let ModelList::Listed(listing) = read(body.as_bytes()) else { panic!("{body}") };
            assert_eq!(listing.listed, ["a", "b"], "{body}");
        }
        for body in ["", "{}", r#"{"data": []}"#, r#"{"error": "no"}"#, "ok"] {
            assert!(matches!(read(body.as_bytes()), ModelList::Unknown), "{body}");
        }
        for body in ["<!doctype html>", "\n <html>"] {
            assert!(matches!(read(body.as_bytes()), ModelList::Page), "{body}");
        }
    }

    #[test]
    fn a_name_is_had_as_servers_take_it() {
        let all =
            listing(&["llama3:latest", "gpt-5.2", "claude-haiku-4-5-20251001", "o/x", "Qwen"]);
        for name in [
            "llama3",
            "llama3:latest",
            "gpt-5.2",
            "models/gpt-5.2",
            "claude-haiku-4-5",
            "o/x:free",
            "qwen",
        ] {
            assert!(all.has(&name.into()), "{name}");
        }
        for name in ["llama3:8b", "gpt-5", "claude-haiku", "nope", ""] {
            assert!(!all.has(&name.into()), "{name}");
        }
    }

    #[test]
    fn one_model_needs_no_name() {
        assert_eq!(listing(&["strong-1"]).only_model(), Some("strong-1".into()));
        assert_eq!(
            listing(&["strong-1", "nomic-embed-text"]).only_model(),
            Some("strong-1".into())
        );
        assert_eq!(listing(&["bge-embed"]).only_model(), Some("bge-embed".into()));
        for names in [&["a", "b"][..], &[], &["a-embed", "b-embed"]] {
            assert_eq!(listing(names).only_model(), None, "{names:?}");
        }
        let many: Vec<String> = (0..20).map(|nth| format!("model-{nth:02}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (names, left) = listing(&many).excerpt(&"model-07".into());
        assert_eq!((names[0].as_str(), names.len(), left), ("model-07", 8, 12));
    }
}
