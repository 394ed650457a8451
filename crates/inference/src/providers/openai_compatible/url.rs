//! Pure: from the base URL that people write to the URL that is asked.
//!
//! Must never repeat a password that somebody wrote into a URL.

use automaton_net::{Origin, OriginError, Url, redact};

use crate::error::InferenceError;

/// What is asked below a base.
const PATH: &str = "chat/completions";

/// The URL of the chat completions below a base URL. A bare host gets `/v1`; a
/// base with a path is taken as it is; the full URL is taken, too.
///
/// # Errors
/// [`InferenceError::BaseUrl`] when it is no http or https URL, or holds
/// credentials or a query.
pub fn chat_url(base_url: &str) -> Result<Url, InferenceError> {
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
    if let Err(source) = Origin::of(&url) {
        return Err(refuse(&url, Some(source)));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse(&url, None));
    }
    let base = url.path().trim_matches('/').to_owned();
    let path = match base.as_str() {
        "" => format!("v1/{PATH}"),
        full if full.ends_with(PATH) => base,
        _ => format!("{base}/{PATH}"),
    };
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_base_urls_in_many_ways() {
        let check = |base: &str, url: &str| assert_eq!(chat_url(base).unwrap().as_str(), url);
        let local = "http://127.0.0.1:8080/v1/chat/completions";
        check("http://127.0.0.1:8080", local);
        check("http://127.0.0.1:8080/", local);
        check(" http://127.0.0.1:8080/v1 ", local);
        check("http://127.0.0.1:8080/v1//", local);
        check(local, local);
        check("https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/chat/completions");
        check("https://host/api", "https://host/api/chat/completions");
        check("http://2130706433:80", "http://127.0.0.1/v1/chat/completions");
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
            let error = chat_url(base).unwrap_err();
            let shown = automaton_core::error::chain(&error).to_string();
            assert!(matches!(error, InferenceError::BaseUrl { .. }), "{base}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
}
