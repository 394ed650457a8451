//! Pure: from the base URL that people write to the URL that is asked.
//!
//! Must never repeat a password that somebody wrote into a URL.

use automaton_net::{Origin, OriginError, Url, redact};

use super::ApiFormat;
use crate::error::InferenceError;

/// The URL that is asked below a base URL. A bare host gets the format's version; a base with a
/// path is taken as it is for `OpenAI`'s formats, whose paths differ, and gets the version for the
/// others where it does not end so, as their own clients have it; the full URL is taken, too. Where
/// the base is that of the chat completions of a server that speaks another format as well, that
/// one is asked in its own place.
pub(super) fn below(base_url: &str, format: ApiFormat) -> Result<Url, InferenceError> {
    let path = format.path();
    let version = format.version();
    let text = base_url.trim();
    let mut url = Url::parse(text).map_err(|_| InferenceError::BaseUrl {
        // What cannot be parsed cannot be cleaned: only its beginning is shown,
        // and nothing before an at sign.
        text: text.rsplit('@').next().unwrap_or_default().chars().take(80).collect(),
        source: None,
    })?;
    let refuse = |url: &Url, source: Option<OriginError>| InferenceError::BaseUrl {
        text: redact::url(url),
        source,
    };
    if let Err(source) = Origin::from_url(&url) {
        return Err(refuse(&url, Some(source)));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse(&url, None));
    }
    let base = url.path().trim_matches('/');
    let base = match format {
        ApiFormat::Ollama => base.strip_suffix("v1").unwrap_or(base),
        ApiFormat::Gemini => base.strip_suffix("/openai").unwrap_or(base),
        _ => base,
    };
    let base = base.trim_end_matches('/').to_owned();
    let is_versioned = matches!(format, ApiFormat::ChatCompletions | ApiFormat::Responses)
        || base.rsplit('/').next() == Some(version);
    let path = match base.as_str() {
        "" => format!("{version}/{path}"),
        full if full == path || full.ends_with(&format!("/{path}")) => base,
        _ if is_versioned => format!("{base}/{path}"),
        _ => format!("{base}/{version}/{path}"),
    };
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_base_urls_in_many_ways() {
        let check = |base: &str, url: &str| {
            assert_eq!(below(base, ApiFormat::ChatCompletions).unwrap().as_str(), url);
        };
        let local = "http://127.0.0.1:8080/v1/chat/completions";
        check("http://127.0.0.1:8080", local);
        check("http://127.0.0.1:8080/", local);
        check(" http://127.0.0.1:8080/v1 ", local);
        check("http://127.0.0.1:8080/v1//", local);
        check(local, local);
        check("https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/chat/completions");
        check("https://host/api", "https://host/api/chat/completions");
        check("http://2130706433:80", "http://127.0.0.1/v1/chat/completions");
        let check = |base: &str, url: &str| {
            assert_eq!(below(base, ApiFormat::AnthropicMessages).unwrap().as_str(), url);
        };
        let hosted = "https://api.anthropic.com/v1/messages";
        check("https://api.anthropic.com", hosted);
        check("https://api.anthropic.com/v1/", hosted);
        check(hosted, hosted);
        check("https://host/anthropic", "https://host/anthropic/v1/messages");
        let check = |base: &str, url: &str| {
            assert_eq!(below(base, ApiFormat::Ollama).unwrap().as_str(), url);
        };
        let local = "http://127.0.0.1:11434/api/chat";
        for base in ["", "/", "/v1", "/v1/", "/api", "/api/chat"] {
            check(&format!("http://127.0.0.1:11434{base}"), local);
        }
        check("https://host/ollama", "https://host/ollama/api/chat");
        let check = |base: &str, url: &str| {
            assert_eq!(below(base, ApiFormat::Gemini).unwrap().as_str(), url);
        };
        let hosted = "https://generativelanguage.googleapis.com/v1beta/models";
        for base in ["", "/v1beta", "/v1beta/openai/", "/v1beta/models"] {
            check(&format!("https://generativelanguage.googleapis.com{base}"), hosted);
        }
        check("https://host/google", "https://host/google/v1beta/models");
        let url = below("https://host", ApiFormat::Responses).unwrap();
        assert_eq!(url.as_str(), "https://host/v1/responses");
        let url = below("https://host/openai", ApiFormat::Responses).unwrap();
        assert_eq!(url.as_str(), "https://host/openai/responses");
    }

    #[test]
    fn what_is_no_base_url_is_refused_without_showing_a_password() {
        for base in [
            "",
            "127.0.0.1:8080",
            "localhost",
            "ftp://host",
            "https://me:hunter2@host/v1",
            "https://me:hunter2@host:bad/v1",
            "https://host/v1?key=hunter2",
            "https://host/v1#hunter2",
        ] {
            let error = below(base, ApiFormat::ChatCompletions).unwrap_err();
            let shown = automaton_core::error::chain(&error).to_string();
            assert!(matches!(error, InferenceError::BaseUrl { .. }), "{base}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
}
