//! The agent's client of a cloud: sign-in, registration, models, credits, purchases.
//!
//! Each method is one request. It is retried only if it is idempotent. Nothing is signed or paid
//! here. Replies are typed, and a balance that cannot be read must never become a number. Keys
//! are sent only to the origin that issued them.

mod credits;
mod error;
mod machines;
mod purchase;
mod status;

use alloy_primitives::Address;
use automaton_core::secret::Secret;
use automaton_core::time::{Span, Timestamp};
use automaton_core::wire::cloud::{
    ApiKeyReply, ApiKeyRequest, BalanceReply, CallReply, ErrorBody, ModelsReply, NO_SUCH_CALL,
    NonceReply, RegisteredAutomaton, RegistrationReply, RegistrationRequest, VerifyReply,
    VerifyRequest,
};
use automaton_core::wire::sign_in::{STATEMENT, SignIn};
use automaton_net::{
    Header, HttpClient, HttpMethod, HttpRequest, HttpResponse, Retry, Url, redact,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::credits::{CreditTransferOutcome, HistoryPage, TransferRefusal};
pub use crate::error::CloudClientError;
pub use crate::machines::MachineRef;
pub use crate::purchase::{PurchaseChallenge, PurchaseOutcome};

/// The validity of a sign-in message.
const SIGN_IN_VALID: Span = Span::from_secs(5 * 60);
/// The most characters of a server's message that an error shows.
const WORDS_CHARS_MAX: usize = 300;

/// A client of a cloud at its base URL.
#[derive(Debug, Clone)]
pub struct CloudClient {
    client: HttpClient,
    base: Url,
}

/// The audience of a sign-in. No other server can use the signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInAudience {
    /// The host, with its port if it is not the default.
    pub domain: String,
    /// The URI that the signature is sent to.
    pub uri: String,
}

impl CloudClient {
    /// Creates a client for a base URL. Sends nothing yet.
    ///
    /// # Errors
    /// Returns [`CloudClientError::BaseUrl`] if the URL is not valid.
    pub fn new(client: HttpClient, base: &str) -> Result<Self, CloudClientError> {
        let unusable =
            || CloudClientError::BaseUrl { text: redact::text(base, &[], WORDS_CHARS_MAX) };
        let base: Url = base.parse().map_err(|_| unusable())?;
        let plain = base.query().is_none() && base.fragment().is_none() && base.has_host();
        if plain { Ok(Self { client, base }) } else { Err(unusable()) }
    }

    /// Returns the audience of a sign-in to this cloud.
    ///
    /// # Errors
    /// Returns [`CloudClientError::BaseUrl`] if the base URL has no path segments.
    pub fn audience(&self) -> Result<SignInAudience, CloudClientError> {
        let host = self.base.host_str().unwrap_or_default();
        let port = self.base.port().map_or_else(String::new, |port| format!(":{port}"));
        let uri = self.url(&["v1", "auth", "verify"])?.to_string();
        Ok(SignInAudience { domain: format!("{host}{port}"), uri })
    }

    /// Builds the message to sign for a sign-in. Its domain is the cloud's own host, so that no
    /// other server can use the signature.
    ///
    /// # Errors
    /// Returns [`CloudClientError::BaseUrl`] if the base URL has no path segments.
    pub fn sign_in(
        &self,
        address: Address,
        nonce: String,
        now: Timestamp,
        chain_id: u64,
    ) -> Result<SignIn, CloudClientError> {
        let SignInAudience { domain, uri } = self.audience()?;
        Ok(SignIn {
            domain,
            address,
            statement: Some(STATEMENT.to_owned()),
            uri,
            chain_id,
            nonce,
            issued_at: now,
            expiration: Some(now.after(SIGN_IN_VALID)),
            not_before: None,
            request_id: None,
            resources: Vec::new(),
        })
    }

    /// Requests a nonce for a sign-in.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn nonce(&self) -> Result<String, CloudClientError> {
        let mut request = self.request(HttpMethod::Post, &["v1", "auth", "nonce"], None)?;
        request.retry = Retry::Question;
        self.json::<NonceReply>(request).await.map(|reply| reply.nonce)
    }

    /// Returns the result of the model call that was sent with this call key, or `None` if the
    /// cloud never received it.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn call(
        &self,
        key: &Secret,
        call: &str,
    ) -> Result<Option<CallReply>, CloudClientError> {
        let request = self.request(HttpMethod::Get, &["v1", "calls", call], Some(key.clone()))?;
        let response = self.client.request(request).await?;
        let status = response.status;
        let body = response.body.read_to_end().await?;
        if status == 404 {
            // silent-ok: a cloud without this method answers with another code.
            let told: Option<ErrorBody> = serde_json::from_slice(&body).ok();
            if told.is_some_and(|told| told.code == NO_SUCH_CALL) {
                return Ok(None);
            }
        }
        if status != 200 {
            return Err(self.malformed(format!("it answered with status {status}")));
        }
        serde_json::from_slice(&body).map(Some).map_err(|error| self.malformed(error.to_string()))
    }

    /// Signs in. Returns the token for creating an API key.
    ///
    /// # Errors
    /// Returns [`CloudClientError`]. A nonce is valid for one attempt: after a failure, request
    /// another one.
    pub async fn verify(
        &self,
        message: &SignIn,
        signature: &str,
    ) -> Result<Secret, CloudClientError> {
        let body = VerifyRequest {
            message: message.to_string(),
            signature: signature.to_owned(),
            chain_type: None,
        };
        let request = self.request(HttpMethod::Post, &["v1", "auth", "verify"], None)?;
        let reply: VerifyReply = self.json(with_body(request, &body)?).await?;
        Ok(Secret::new(reply.access_token))
    }

    /// Creates an API key with the token of a sign-in.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn create_key(&self, token: &Secret, name: &str) -> Result<Secret, CloudClientError> {
        let bearer = Secret::new(format!("Bearer {}", token.reveal()));
        let request = self.request(HttpMethod::Post, &["v1", "auth", "api-keys"], Some(bearer))?;
        let body = ApiKeyRequest { name: name.to_owned() };
        let reply: ApiKeyReply = self.json(with_body(request, &body)?).await?;
        Ok(Secret::new(reply.key))
    }

    /// Returns the balance of the key's account.
    ///
    /// # Errors
    /// Returns [`CloudClientError`]. Then the balance is unknown.
    pub async fn balance(&self, key: &Secret) -> Result<BalanceReply, CloudClientError> {
        let reply: BalanceReply = self.question(&["v1", "credits", "balance"], key).await?;
        match reply.cents() {
            Some(_) => Ok(reply),
            None => Err(self.malformed("it names no balance".to_owned())),
        }
    }

    /// Returns the available models with their prices.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn models(&self, key: &Secret) -> Result<ModelsReply, CloudClientError> {
        self.question(&["v1", "models"], key).await
    }

    /// Registers the automaton under its name. Repeating the same registration is safe. One with
    /// other content is refused with status 409.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn register(
        &self,
        key: &Secret,
        signed: &RegistrationRequest,
    ) -> Result<RegisteredAutomaton, CloudClientError> {
        let path = ["v1", "automatons", "register"];
        let request = self.request(HttpMethod::Post, &path, Some(key.clone()))?;
        let reply: RegistrationReply = self.json(with_body(request, signed)?).await?;
        Ok(reply.automaton)
    }

    /// Returns the URL of a path of this cloud.
    ///
    /// # Errors
    /// Returns [`CloudClientError::BaseUrl`] if the base URL has no path segments.
    pub fn url(&self, segments: &[&str]) -> Result<Url, CloudClientError> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| CloudClientError::BaseUrl { text: redact::url(&self.base) })?
            .pop_if_empty()
            .extend(segments);
        Ok(url)
    }

    fn request(
        &self,
        method: HttpMethod,
        path: &[&str],
        key: Option<Secret>,
    ) -> Result<HttpRequest, CloudClientError> {
        let mut request = HttpRequest::new(method, self.url(path)?);
        request.headers.extend(key.map(|key| Header::Secret("authorization", key)));
        Ok(request)
    }

    /// The answer to what only asks, and so is asked again.
    async fn question<T: DeserializeOwned>(
        &self,
        path: &[&str],
        key: &Secret,
    ) -> Result<T, CloudClientError> {
        let mut request = self.request(HttpMethod::Get, path, Some(key.clone()))?;
        request.retry = Retry::Idempotent;
        self.json(request).await
    }

    async fn json<T: DeserializeOwned>(&self, request: HttpRequest) -> Result<T, CloudClientError> {
        let body = self.reply(request).await?;
        serde_json::from_slice(&body).map_err(|error| self.malformed(error.to_string()))
    }

    /// Returns the body of a successful reply.
    async fn reply(&self, request: HttpRequest) -> Result<Vec<u8>, CloudClientError> {
        let response = self.client.request(request).await?;
        match response.status {
            200..=299 => Ok(response.body.read_to_end().await?),
            _ => Err(self.refused(response).await?),
        }
    }

    async fn refused(&self, response: HttpResponse) -> Result<CloudClientError, CloudClientError> {
        let status = response.status;
        let body = response.body.read_to_end().await?;
        // silent-ok: a refusal in another format is shown as it is.
        let told = serde_json::from_slice::<ErrorBody>(&body).ok();
        let (code, text) = told.map_or_else(
            || (String::new(), String::from_utf8_lossy(&body).into_owned()),
            |told| (told.code, told.error),
        );
        let text = redact::text(&text, &[], WORDS_CHARS_MAX);
        Ok(CloudClientError::Refused { cloud: redact::url(&self.base), status, code, text })
    }

    fn malformed(&self, what: String) -> CloudClientError {
        CloudClientError::Malformed { cloud: redact::url(&self.base), what }
    }
}

fn with_body<T: Serialize>(
    mut request: HttpRequest,
    body: &T,
) -> Result<HttpRequest, CloudClientError> {
    request.body =
        serde_json::to_vec(body).map_err(|source| CloudClientError::Encode { source })?;
    request.headers.push(Header::Open("content-type", "application/json".to_owned()));
    Ok(request)
}

#[cfg(test)]
mod tests;
