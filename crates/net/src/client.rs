//! Sends requests and reads answers, within deadlines, caps and the guard.
//!
//! Each request is one attempt: whoever knows whether it may be repeated
//! repeats it. Must never follow a redirection, keep a cookie, or take a proxy
//! or a certificate from the environment.

mod resolve;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use automaton_core::secret::Secret;
use bytes::Bytes;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::time::{Instant, timeout_at};

use crate::error::{Late, NetError};
use crate::limits::{BODY_BYTES_MAX, CONNECT, Deadlines};
use crate::origin::{Origin, Scheme};
use crate::redact;
use crate::ssrf::{Reach, classify};

use resolve::{Forbidden, Resolver};

/// What a client may do.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Origins that the creator's configuration spells out. They may be
    /// unencrypted, on this machine or in a private network.
    pub allow_private_origins: Vec<Origin>,
    /// What the client calls itself.
    pub user_agent: String,
    /// How long a connection may take to come about.
    pub connect: Duration,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            allow_private_origins: Vec::new(),
            user_agent: format!("automaton/{}", env!("CARGO_PKG_VERSION")),
            connect: CONNECT,
        }
    }
}

/// The HTTP client. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    allowed: Arc<[Origin]>,
    /// For everything else: its resolver gives global addresses only.
    guarded: reqwest::Client,
    /// For the origins of the configuration. A client of its own, since a
    /// resolver sees a name without scheme and port.
    spelled: reqwest::Client,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// To be told something.
    Get,
    /// To have something done.
    Post,
}

/// One header of a request. The value of a secret one is never printed.
#[derive(Debug, Clone)]
pub enum Header {
    /// A value that everybody may see.
    Open(&'static str, String),
    /// A credential.
    Secret(&'static str, Secret),
}

/// One request.
#[derive(Clone)]
pub struct Request {
    /// What is asked for.
    pub method: Method,
    /// Where.
    pub url: Url,
    /// The headers besides those that every request has.
    pub headers: Vec<Header>,
    /// The body; empty for none.
    pub body: Vec<u8>,
    /// How long it may take.
    pub deadlines: Deadlines,
    /// The largest body that the answer may have, in bytes.
    pub body_bytes_max: u64,
}

impl Request {
    /// A request without headers and body, with the default limits.
    #[must_use]
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: Vec::new(),
            body: Vec::new(),
            deadlines: Deadlines::default(),
            body_bytes_max: BODY_BYTES_MAX,
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &redact::url(&self.url))
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// The head of an answer, and its body still to be read.
#[derive(Debug)]
pub struct Response {
    /// The status code; never that of a redirection.
    pub status: u16,
    headers: HeaderMap,
    /// The body.
    pub body: Body,
}

impl Response {
    /// The media type of the body in lower case, without its parameters.
    #[must_use]
    pub fn media_type(&self) -> Option<String> {
        // silent-ok: a media type that is no text is as good as none.
        let value = self.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }
}

impl Response {
    /// The value of a header, when it is there once and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().filter(|_| values.next().is_none());
        // silent-ok: a value that is no text is as good as none.
        value?.to_str().ok()
    }
}

/// The body of an answer, read piece by piece under the request's limits.
#[derive(Debug)]
pub struct Body {
    response: reqwest::Response,
    clock: Countdown,
    left_bytes: u64,
    limit_bytes: u64,
}

impl Body {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// When a deadline passes, the body grows beyond its cap or breaks off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        let read = self.clock.within(self.response.chunk()).await?;
        let origin = &self.clock.origin;
        let chunk = read.map_err(|source| NetError::BrokenOff {
            origin: origin.clone(),
            source: source.without_url(),
        })?;
        if let Some(chunk) = &chunk {
            let read_bytes = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            self.left_bytes = self.left_bytes.checked_sub(read_bytes).ok_or_else(|| {
                NetError::TooLarge { origin: origin.clone(), limit_bytes: self.limit_bytes }
            })?;
        }
        Ok(chunk)
    }

    /// All that is left of the body.
    ///
    /// # Errors
    /// As [`Body::chunk`].
    pub async fn whole(mut self) -> Result<Vec<u8>, NetError> {
        let mut whole = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole)
    }
}

/// The deadlines of one request, running.
#[derive(Debug)]
struct Countdown {
    origin: Origin,
    deadlines: Deadlines,
    end: Instant,
}

impl Countdown {
    fn start(origin: Origin, deadlines: Deadlines) -> Self {
        Self { origin, deadlines, end: Instant::now() + deadlines.total }
    }

    async fn within<T>(&self, step: impl Future<Output = T>) -> Result<T, NetError> {
        let idle = Instant::now() + self.deadlines.idle;
        let late = if idle < self.end {
            Late::Idle(self.deadlines.idle)
        } else {
            Late::Total(self.deadlines.total)
        };
        let done = timeout_at(idle.min(self.end), step).await;
        done.map_err(|_| NetError::TimedOut { origin: self.origin.clone(), late })
    }
}

impl Client {
    /// A client.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(config: ClientConfig) -> Result<Self, NetError> {
        Ok(Self {
            guarded: build(&config, Reach::Global)?,
            spelled: build(&config, Reach::SpelledName)?,
            allowed: config.allow_private_origins.into(),
        })
    }

    /// Sends a request and reads the head of its answer. Dropping the future or
    /// the answer closes the connection.
    ///
    /// # Errors
    /// When the guard refuses, the server cannot be reached, is late, redirects
    /// or declares a body beyond the cap. An error status is no error here.
    pub async fn request(&self, request: Request) -> Result<Response, NetError> {
        let origin = Origin::of(&request.url).map_err(|source| NetError::Url { source })?;
        let client = self.admit(&origin)?;
        let limit_bytes = request.body_bytes_max;
        let clock = Countdown::start(origin, request.deadlines);
        let sent = client
            .request(method(request.method), request.url)
            .headers(header_map(&request.headers)?)
            .body(request.body)
            .send();
        let response = clock.within(sent).await?.map_err(|error| explain(&clock.origin, error))?;
        let origin = &clock.origin;
        let status = response.status();
        if status.is_redirection() {
            return Err(NetError::Redirected { origin: origin.clone(), status: status.as_u16() });
        }
        if response.content_length().is_some_and(|declared| declared > limit_bytes) {
            return Err(NetError::TooLarge { origin: origin.clone(), limit_bytes });
        }
        Ok(Response {
            status: status.as_u16(),
            headers: response.headers().clone(),
            body: Body { response, clock, left_bytes: limit_bytes, limit_bytes },
        })
    }

    /// Chooses the client for an origin. A host in digits is judged here, since
    /// no resolver is asked about it; a name is judged when it is resolved.
    fn admit(&self, origin: &Origin) -> Result<&reqwest::Client, NetError> {
        let spelled = self.allowed.contains(origin);
        if origin.scheme() == Scheme::Http && !spelled {
            return Err(NetError::NotEncrypted { origin: origin.clone() });
        }
        if let Some(address) = origin.address() {
            let reach = if spelled { Reach::SpelledAddress } else { Reach::Global };
            let class = classify(address);
            if !reach.permits(class) {
                return Err(NetError::ForbiddenAddress { origin: origin.clone(), address, class });
            }
        }
        Ok(if spelled { &self.spelled } else { &self.guarded })
    }
}

fn build(config: &ClientConfig, reach: Reach) -> Result<reqwest::Client, NetError> {
    let setup = |source: reqwest::Error| NetError::Setup { source: Box::new(source) };
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls()?)
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
/// compiled in. The machine's own store would follow the environment
/// (`SSL_CERT_FILE`), is missing in small containers and can be widened by
/// other programs; whom an agent with money believes is part of the program.
/// The price is that a changed root comes with the next version of it.
fn tls() -> Result<rustls::ClientConfig, NetError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|source| NetError::Setup { source: Box::new(source) })?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn method(method: Method) -> reqwest::Method {
    match method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
    }
}

fn header_map(headers: &[Header]) -> Result<HeaderMap, NetError> {
    let mut map = HeaderMap::new();
    for header in headers {
        let (name, text, sensitive) = match header {
            Header::Open(name, text) => (*name, text.as_str(), false),
            Header::Secret(name, secret) => (*name, secret.reveal(), true),
        };
        let mut value = HeaderValue::from_str(text).map_err(|_| NetError::Header { name })?;
        value.set_sensitive(sensitive);
        map.insert(name, value);
    }
    Ok(map)
}

/// Tells the guard's refusals and a late connection from an unreachable host.
fn explain(origin: &Origin, error: reqwest::Error) -> NetError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(found) = cause {
        if let Some(Forbidden { address, class }) = found.downcast_ref() {
            let (address, class) = (*address, *class);
            return NetError::ForbiddenAddress { origin: origin.clone(), address, class };
        }
        cause = found.source();
    }
    if error.is_timeout() {
        return NetError::TimedOut { origin: origin.clone(), late: Late::Connect };
    }
    NetError::Unreachable { origin: origin.clone(), source: error.without_url() }
}
