//! The network as the creator spells it out: URLs, servers, and clients that may reach them.
//!
//! It belongs to no command and must know none; a client reaches nothing that was not named.

use automaton_net::{HttpClient, HttpClientConfig, Origin, Url};

use crate::error::CliError;

/// A client that may reach these, private or not: the creator spelled them out.
///
/// # Errors
/// When one of them names no server.
pub fn client<'a>(spelled: impl IntoIterator<Item = &'a str>) -> Result<HttpClient, CliError> {
    let origins = spelled.into_iter().map(origin).collect::<Result<Vec<_>, _>>()?;
    Ok(HttpClient::new(HttpClientConfig { allow_private_origins: origins, ..Default::default() })?)
}

/// A URL as it is typed.
///
/// # Errors
/// When it is none.
pub fn url(text: &str) -> Result<Url, CliError> {
    text.parse().map_err(|_| CliError::user(format!("'{text}' is no URL")))
}

/// The server that a URL as it is typed names.
///
/// # Errors
/// When it is none.
pub(crate) fn origin(text: &str) -> Result<Origin, CliError> {
    Origin::from_url(&url(text)?)
        .map_err(|error| CliError::user(format!("'{text}' names no server")).because(&error))
}
