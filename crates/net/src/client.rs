//! Sends requests and reads answers, within deadlines, caps and the guard.
//!
//! A request is sent again only when its caller says that it may be, and an
//! origin that fails again and again is left alone for a while. Must never follow
//! a redirection, keep a cookie, or take a proxy or a certificate from the
//! environment: authorities of the operator's own come by [`PrivateAuthorities`].

pub(crate) mod resolve;

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use automaton_core::entropy::{Entropy, SystemEntropy};
use automaton_core::error::chain;
use bytes::Bytes;
use reqwest::Url;
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument as _, debug, debug_span};

use crate::breaker::BreakerVerdict;
use crate::error::{DeadlineKind, NetError};
use crate::limits::{CONNECT, RetryPolicy};
use crate::origin::{Origin, Scheme};
use crate::origin_breakers::{BreakerPermit, CircuitBreakers};
use crate::request::HttpRequest;
use crate::response::{BodyLimits, Countdown, FullResponse, HttpResponse};
use crate::retry::{REPEATS_MAX, Retry, back_off, is_retryable, retry_after};
use crate::ssrf::{AddressScope, classify};
use crate::trust::PrivateAuthorities;

use resolve::{ForbiddenAddressError, Resolver};

/// The configuration of a client.
#[derive(Clone)]
pub struct HttpClientConfig {
    /// Origins that the creator's configuration spells out. They may be
    /// unencrypted, on this machine or in a private network.
    pub allow_private_origins: Vec<Origin>,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// The longest time to make a connection.
    pub connect: Duration,
    /// The waits between repeats, and the rest of a failing origin.
    pub retry_policy: RetryPolicy,
    /// The randomness that spreads the waits before a request is sent again.
    pub entropy: Arc<dyn Entropy>,
    /// The certificate authorities that are trusted beside the public ones.
    pub authorities: PrivateAuthorities,
}

impl Default for HttpClientConfig {
    fn default() -> Self {
        Self {
            allow_private_origins: Vec::new(),
            user_agent: format!("automaton/{}", env!("CARGO_PKG_VERSION")),
            connect: CONNECT,
            retry_policy: RetryPolicy::default(),
            entropy: Arc::new(SystemEntropy),
            authorities: PrivateAuthorities::installed(),
        }
    }
}

/// The HTTP client. Cheap to clone; clones share their connections and what they
/// know of origins that fail.
#[derive(Clone)]
pub struct HttpClient {
    allowed: Arc<[Origin]>,
    /// For everything else: its resolver gives global addresses only.
    guarded: reqwest::Client,
    /// For the origins of the configuration. A client of its own, since a
    /// resolver sees a name without scheme and port.
    allowlisted: reqwest::Client,
    breakers: Arc<CircuitBreakers>,
    retry_policy: RetryPolicy,
    entropy: Arc<dyn Entropy>,
}

/// A request in the form in which it is sent, as often as it has to be.
struct PreparedRequest<'a> {
    client: &'a reqwest::Client,
    method: reqwest::Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
    limit_bytes: u64,
    empties_lists: bool,
    clock: Countdown,
}

/// A request that is sent until it has an answer that is one, or may not be repeated.
struct Sending<'a> {
    ready: PreparedRequest<'a>,
    retry: Retry,
    repeat: u32,
    repeats_max: u32,
}

impl Sending<'_> {
    /// Tells a diagnosis of what an attempt brought.
    fn note<B>(&self, outcome: &Result<HttpResponse<B>, NetError>) {
        match outcome {
            Ok(answer) => debug!(status = answer.status, attempt = self.repeat, "it answered"),
            Err(error) => debug!(error = %chain(error), attempt = self.repeat, "no answer"),
        }
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// A client.
    ///
    /// # Errors
    /// Fails if TLS cannot be set up.
    pub fn new(config: HttpClientConfig) -> Result<Self, NetError> {
        Ok(Self {
            guarded: build(&config, AddressScope::Global)?,
            allowlisted: build(&config, AddressScope::AllowlistedName)?,
            allowed: config.allow_private_origins.into(),
            breakers: CircuitBreakers::new(config.retry_policy.rest),
            retry_policy: config.retry_policy,
            entropy: config.entropy,
        })
    }

    /// Sends a request, again where it may be, and reads the head of its answer.
    /// Dropping the future or the answer closes the connection and ends the
    /// waiting.
    ///
    /// # Errors
    /// Fails if the guard refuses, the server cannot be reached, is late, redirects,
    /// declares a body beyond the cap or has failed too often. An error status is
    /// no error here: the last answer is given when all attempts had one.
    pub async fn request(&self, request: HttpRequest) -> Result<HttpResponse, NetError> {
        let origin = Origin::from_url(&request.url).map_err(|source| NetError::Url { source })?;
        // Never the path: it may hold a secret.
        let span = debug_span!("request", method = ?request.method, %origin);
        self.send(request, origin).instrument(span).await
    }

    /// Sends a request as [`HttpClient::request`] does, reads the whole answer, and sends the
    /// request again if the answer says that the server was too busy for it, whatever the
    /// status. `is_busy` decides that. The repeats are those of a status 429.
    ///
    /// # Errors
    /// As [`HttpClient::request`], and when the body breaks off or is too large. The last
    /// answer is given when all of them say that the server was too busy.
    pub async fn request_judged(
        &self,
        request: HttpRequest,
        is_busy: impl Fn(&FullResponse) -> bool + Send,
    ) -> Result<FullResponse, NetError> {
        let origin = Origin::from_url(&request.url).map_err(|source| NetError::Url { source })?;
        let span = debug_span!("request", method = ?request.method, %origin);
        self.send_judged(request, origin, is_busy).instrument(span).await
    }

    async fn send(&self, request: HttpRequest, origin: Origin) -> Result<HttpResponse, NetError> {
        let mut sending = self.prepare(request, origin)?;
        let mut pass = self.breakers.admit(&sending.ready.clock.origin)?;
        loop {
            let outcome = attempt(&sending.ready, pass).await;
            sending.note(&outcome);
            if !is_worth_repeating(&outcome, sending.retry) {
                return outcome;
            }
            let asked = outcome.as_ref().map_or(None, asked_wait);
            match self.wait_to_repeat(&mut sending, asked).await {
                Some(next) => pass = next,
                None => return outcome,
            }
        }
    }

    async fn send_judged(
        &self,
        request: HttpRequest,
        origin: Origin,
        is_busy: impl Fn(&FullResponse) -> bool + Send,
    ) -> Result<FullResponse, NetError> {
        let mut sending = self.prepare(request, origin)?;
        let mut pass = self.breakers.admit(&sending.ready.clock.origin)?;
        loop {
            let outcome = attempt(&sending.ready, pass).await;
            let outcome = match outcome {
                Ok(response) => response.read().await,
                Err(error) => Err(error),
            };
            sending.note(&outcome);
            let is_refused = outcome.as_ref().is_ok_and(&is_busy);
            if !is_refused && !is_worth_repeating(&outcome, sending.retry) {
                return outcome;
            }
            let asked = outcome.as_ref().map_or(None, asked_wait);
            match self.wait_to_repeat(&mut sending, asked).await {
                Some(next) => pass = next,
                None => return outcome,
            }
        }
    }

    fn prepare(&self, request: HttpRequest, origin: Origin) -> Result<Sending<'_>, NetError> {
        let repeats_max = if request.repeats()? { REPEATS_MAX } else { 0 };
        let ready = PreparedRequest {
            client: self.admit(&origin)?,
            method: request.method.into(),
            headers: request.header_map()?,
            url: request.url,
            body: request.body.into(),
            limit_bytes: request.body_bytes_max,
            empties_lists: request.empties_lists,
            clock: Countdown::start(origin, request.deadlines),
        };
        Ok(Sending { ready, retry: request.retry, repeat: 0, repeats_max })
    }

    /// Waits until a request may be sent again. `None` when it may not be: there were enough
    /// repeats, its deadline is nearer than that, or its origin is left alone by now.
    async fn wait_to_repeat(
        &self,
        sending: &mut Sending<'_>,
        asked: Option<Duration>,
    ) -> Option<BreakerPermit> {
        if sending.repeat == sending.repeats_max {
            return None;
        }
        let first_wait = self.retry_policy.first_wait;
        let wait = back_off(first_wait, sending.repeat, self.entropy.as_ref());
        let resume = Instant::now() + wait.max(asked.unwrap_or_default());
        if !sending.ready.clock.reaches(resume) {
            return None;
        }
        sleep_until(resume).await;
        sending.repeat += 1;
        // silent-ok: that its origin is left alone by now says less than how it failed.
        self.breakers.admit(&sending.ready.clock.origin).ok()
    }

    /// Chooses the client for an origin. A host in digits is judged here, since
    /// no resolver is asked about it; a name is judged when it is resolved.
    fn admit(&self, origin: &Origin) -> Result<&reqwest::Client, NetError> {
        let allowlisted = self.allowed.contains(origin);
        if origin.scheme() == Scheme::Http && !allowlisted {
            return Err(NetError::NotEncrypted { origin: origin.clone() });
        }
        if let Some(address) = origin.address() {
            let scope =
                if allowlisted { AddressScope::AllowlistedAddress } else { AddressScope::Global };
            let class = classify(address);
            if !scope.permits(class) {
                return Err(NetError::ForbiddenAddress { origin: origin.clone(), address, class });
            }
        }
        Ok(if allowlisted { &self.allowlisted } else { &self.guarded })
    }
}

fn build(config: &HttpClientConfig, reach: AddressScope) -> Result<reqwest::Client, NetError> {
    let setup = |source: reqwest::Error| NetError::Setup { source: Box::new(source) };
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls(&config.authorities)?)
        .dns_resolver(Resolver::new(reach))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .user_agent(&config.user_agent)
        .connect_timeout(config.connect)
        .build()
        .map_err(setup)
}

/// TLS over ring, which needs no more than a C compiler, with Mozilla's roots
/// compiled in. The machine's own store is missing in small containers and can be widened
/// by other programs; whom an agent with money believes is part of the program, and what
/// its operator adds by name. The price is that a changed root comes with the next version.
pub(crate) fn tls(authorities: &PrivateAuthorities) -> Result<rustls::ClientConfig, NetError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let setup = |source: rustls::Error| NetError::Setup { source: Box::new(source) };
    for certificate in authorities.certificates() {
        roots.add(certificate.into_owned()).map_err(setup)?;
    }
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(setup)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Sends a request once and reads the head of its answer.
async fn attempt(
    ready: &PreparedRequest<'_>,
    pass: BreakerPermit,
) -> Result<HttpResponse, NetError> {
    let PreparedRequest { client, method, url, headers, body, clock, .. } = ready;
    let sent = client
        .request(method.clone(), url.clone())
        .headers(headers.clone())
        .body(body.clone())
        .send();
    let answer = match clock.within(sent).await {
        Ok(answer) => answer.map_err(|error| explain(&clock.origin, error)),
        Err(late) => Err(late),
    };
    pass.judge(match &answer {
        Ok(response) if is_failure(response.status().as_u16()) => BreakerVerdict::Fails,
        Ok(_) => BreakerVerdict::Works,
        Err(NetError::Unreachable { .. } | NetError::TimedOut { .. }) => BreakerVerdict::Fails,
        Err(_) => BreakerVerdict::Unknown,
    });
    let response = answer?;
    let origin = &clock.origin;
    let status = response.status();
    if status.is_redirection() {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let origin = origin.clone();
        let location = location.map(str::to_owned);
        return Err(NetError::Redirected { origin, status: status.as_u16(), location });
    }
    let limits = BodyLimits::new(ready.limit_bytes, ready.empties_lists);
    if response.content_length().is_some_and(|declared| declared > limits.arriving_bytes) {
        let limit_bytes = limits.arriving_bytes;
        return Err(NetError::TooLarge { origin: origin.clone(), limit_bytes });
    }
    Ok(HttpResponse::new(response, clock.clone(), limits))
}

/// Returns whether a status says that the server does not work. One that had too many requests
/// does.
const fn is_failure(status: u16) -> bool {
    status != 429 && is_retryable(status)
}

/// Returns whether the same request may succeed later: the answer says so, or there is none.
const fn is_worth_repeating<B>(outcome: &Result<HttpResponse<B>, NetError>, retry: Retry) -> bool {
    match outcome {
        Ok(response) => is_retryable(response.status),
        Err(_) if matches!(retry, Retry::WhenRefused) => false,
        Err(error) => matches!(error, NetError::Unreachable { .. } | NetError::TimedOut { .. }),
    }
}

/// The wait that an answer asks for.
fn asked_wait<B>(answer: &HttpResponse<B>) -> Option<Duration> {
    retry_after(answer.header(RETRY_AFTER.as_str()))
}

/// Returns the innermost error that I/O errors wrap, which their sources do not show.
fn unwrapped<'a>(
    mut error: &'a (dyn std::error::Error + 'static),
) -> &'a (dyn std::error::Error + 'static) {
    while let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        error = inner;
    }
    error
}

/// Tells the guard's refusals, a certificate that is not trusted and a late connection from
/// an unreachable host.
fn explain(origin: &Origin, error: reqwest::Error) -> NetError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(found) = cause {
        if let Some(ForbiddenAddressError { address, class }) = found.downcast_ref() {
            let address = *address;
            let class = *class;
            return NetError::ForbiddenAddress { origin: origin.clone(), address, class };
        }
        if let Some(rustls::Error::InvalidCertificate(_)) = unwrapped(found).downcast_ref() {
            return NetError::Untrusted { origin: origin.clone(), source: error.without_url() };
        }
        cause = found.source();
    }
    if error.is_timeout() {
        return NetError::TimedOut { origin: origin.clone(), late: DeadlineKind::Connect };
    }
    NetError::Unreachable { origin: origin.clone(), source: error.without_url() }
}
