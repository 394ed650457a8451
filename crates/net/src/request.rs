//! Pure: what is sent: method, headers, body, limits, and how often.
//!
//! A header that somebody else named must never be one by which a request says
//! who sends it, what pays for it, or where it ends.

use std::fmt;

use automaton_core::secret::Secret;
use automaton_core::wire::cloud::IDEMPOTENCY_KEY;
use automaton_core::wire::x402::{PAYMENT_SIGNATURE, X_PAYMENT};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::error::NetError;
use crate::limits::{BODY_BYTES_MAX, Deadlines};
use crate::redact;
use crate::retry::Retry;

/// Headers that only this program may set: those of one connection (RFC 9110,
/// § 7.6.1), those that say where a request goes and where its body ends, and
/// credentials.
const OWN: [&str; 13] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    IDEMPOTENCY_KEY,
    "keep-alive",
    "sign-in-with-x",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// The beginnings of header names that only this program may set: those for proxies, and those that
/// pay.
const OWN_BEGIN: [&str; 3] = ["proxy-", "x-payment", "payment-"];
/// Characters of a name that an error shows.
const NAME_CHARS_MAX: usize = 80;

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// To be told something.
    Get,
    /// To be told only the head of it.
    Head,
    /// To have something done.
    Post,
    /// To have something be as the body says.
    Put,
    /// To have something changed.
    Patch,
    /// To have something be no more.
    Delete,
}

impl From<HttpMethod> for reqwest::Method {
    fn from(method: HttpMethod) -> Self {
        match method {
            HttpMethod::Get => Self::GET,
            HttpMethod::Head => Self::HEAD,
            HttpMethod::Post => Self::POST,
            HttpMethod::Put => Self::PUT,
            HttpMethod::Patch => Self::PATCH,
            HttpMethod::Delete => Self::DELETE,
        }
    }
}

/// One header of a request. The value of a secret one is never printed.
#[derive(Debug, Clone)]
pub enum Header {
    /// A value that everybody may see.
    Open(&'static str, String),
    /// A credential.
    Secret(&'static str, Secret),
    /// A header that somebody else named, such as a model: refused when it is one
    /// that only this program may set.
    Named(String, String),
}

impl Header {
    fn parts(&self) -> (&str, &str) {
        match self {
            Self::Open(name, value) => (name, value.as_str()),
            Self::Secret(name, secret) => (name, secret.reveal()),
            Self::Named(name, value) => (name.as_str(), value.as_str()),
        }
    }

    /// Returns whether the header pays, in either version of x402. A header that somebody else
    /// named never does: it is refused.
    fn pays(&self) -> bool {
        let ours = !matches!(self, Self::Named(..));
        ours && [X_PAYMENT, PAYMENT_SIGNATURE]
            .iter()
            .any(|name| self.parts().0.eq_ignore_ascii_case(name))
    }
}

/// One request.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: HttpMethod,
    /// The URL.
    pub url: Url,
    /// The headers besides those that every request has.
    pub headers: Vec<Header>,
    /// By this, sent as `Idempotency-Key`, the server knows the request when it
    /// comes again.
    pub idempotency_key: Option<String>,
    /// The body; empty for none.
    pub body: Vec<u8>,
    /// The deadlines, over all repeats.
    pub deadlines: Deadlines,
    /// The largest body that the answer may have, in bytes.
    pub body_bytes_max: u64,
    /// Empties lists in a JSON body as they arrive. The cap then counts only the rest, and the body
    /// may have [`UNLISTED_BYTES_MAX`] bytes before.
    ///
    /// [`UNLISTED_BYTES_MAX`]: crate::limits::UNLISTED_BYTES_MAX
    pub empties_lists: bool,
    /// The rule for repeats.
    pub retry: Retry,
}

impl HttpRequest {
    /// A request without headers and body, with the default limits, sent once.
    #[must_use]
    pub fn new(method: HttpMethod, url: Url) -> Self {
        Self {
            method,
            url,
            headers: Vec::new(),
            idempotency_key: None,
            body: Vec::new(),
            deadlines: Deadlines::default(),
            body_bytes_max: BODY_BYTES_MAX,
            empties_lists: false,
            retry: Retry::Never,
        }
    }

    /// Returns whether the request holds a payment.
    pub(crate) fn pays(&self) -> bool {
        self.headers.iter().any(Header::pays)
    }

    /// Returns whether the request is sent again when it fails.
    ///
    /// # Errors
    /// [`NetError::NotRepeatable`] when its caller wants that of a request whose
    /// effect would be doubled.
    pub(crate) fn repeats(&self) -> Result<bool, NetError> {
        let asks = matches!(self.method, HttpMethod::Get | HttpMethod::Head);
        let why = match self.retry {
            Retry::Never => return Ok(false),
            _ if self.pays() => "it holds a payment",
            Retry::Idempotent if !asks && self.idempotency_key.is_none() => {
                "it changes something and has no idempotency key"
            }
            Retry::Idempotent | Retry::Question | Retry::WhenRefused => return Ok(true),
        };
        Err(NetError::NotRepeatable { url: redact::url(&self.url), why })
    }

    /// The headers as they are sent.
    ///
    /// # Errors
    /// [`NetError::Header`] and [`NetError::HeaderRefused`].
    pub(crate) fn header_map(&self) -> Result<HeaderMap, NetError> {
        let mut map = HeaderMap::new();
        let key = self.idempotency_key.clone().map(|key| Header::Open(IDEMPOTENCY_KEY, key));
        for header in self.headers.iter().chain(&key) {
            let (name, text) = header.parts();
            let unsendable = || NetError::Header { name: redact_name(name) };
            let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable())?;
            if matches!(header, Header::Named(..)) && is_own(&parsed) {
                return Err(NetError::HeaderRefused { name: redact_name(name) });
            }
            let mut value = HeaderValue::from_str(text).map_err(|_| unsendable())?;
            value.set_sensitive(matches!(header, Header::Secret(..)));
            map.insert(parsed, value);
        }
        Ok(map)
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &redact::url(&self.url))
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Returns whether only this program may set a header. The name is in lower case.
fn is_own(name: &HeaderName) -> bool {
    let name = name.as_str();
    OWN.contains(&name) || OWN_BEGIN.iter().any(|begin| name.starts_with(begin))
}

fn redact_name(name: &str) -> String {
    redact::text(name, &[], NAME_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(method: HttpMethod) -> HttpRequest {
        HttpRequest::new(method, Url::parse("https://example.com/x?key=1").unwrap())
    }

    #[test]
    fn only_what_can_be_doubled_is_repeated() {
        use HttpMethod::{Delete, Get, Head, Patch, Post, Put};
        let repeats = |method, retry, key: Option<&str>| {
            let key = key.map(str::to_owned);
            HttpRequest { retry, idempotency_key: key, ..request(method) }.repeats().ok()
        };
        for method in [Get, Head, Post, Put, Patch, Delete] {
            let asks = matches!(method, Get | Head);
            assert_eq!(repeats(method, Retry::Never, Some("k")), Some(false), "{method:?}");
            assert_eq!(repeats(method, Retry::Idempotent, Some("k")), Some(true), "{method:?}");
            assert_eq!(repeats(method, Retry::Idempotent, None), asks.then_some(true));
            assert_eq!(repeats(method, Retry::Question, None), Some(true), "{method:?}");
        }
    }

    #[test]
    fn a_payment_is_never_repeated() {
        for name in [X_PAYMENT, PAYMENT_SIGNATURE, "X-Payment"] {
            let mut paying = request(HttpMethod::Get);
            paying.headers.push(Header::Secret(name, Secret::new("e30=".to_owned())));
            assert_eq!(paying.repeats().ok(), Some(false));
            for retry in [Retry::Idempotent, Retry::Question] {
                let error = HttpRequest { retry, ..paying.clone() }.repeats().unwrap_err();
                assert!(error.to_string().contains("it holds a payment"), "{error}");
                assert!(!error.to_string().contains("key=1"), "{error}");
            }
        }
    }

    #[test]
    fn others_name_no_header_that_is_ours() {
        let sent = |name: &str, value: &str| {
            let mut request = request(HttpMethod::Get);
            request.headers.push(Header::Named(name.to_owned(), value.to_owned()));
            request.header_map()
        };
        for name in OWN.into_iter().chain([
            "Authorization",
            "HOST",
            "Transfer-Encoding",
            "proxy-authorization",
            "Proxy-Connection",
            "X-PAYMENT",
            "x-payment-response",
            "PAYMENT-SIGNATURE",
            "payment-identifier",
        ]) {
            let error = sent(name, "x").unwrap_err();
            assert!(matches!(error, NetError::HeaderRefused { .. }), "{name}: {error}");
        }
        for (name, value) in [("", "x"), ("a b", "x"), ("x\r\nhost", "x"), ("x", "a\r\nhost: b")] {
            let error = sent(name, value).unwrap_err();
            assert!(matches!(error, NetError::Header { .. }), "{name}: {error}");
        }
        assert_eq!(sent("X-Request-Kind", "small").unwrap()["x-request-kind"], "small");
    }

    proptest! {
        #[test]
        fn no_spelling_gets_around_the_list(
            index in 0..OWN.len(), upper in any::<u64>(), around in "[ \t\r\n:]{0,2}",
        ) {
            let spelled = OWN[index].chars().enumerate().map(|(place, letter)| {
                if upper >> (place % 64) & 1 == 1 { letter.to_ascii_uppercase() } else { letter }
            });
            let name = format!("{}{around}", spelled.collect::<String>());
            let mut request = request(HttpMethod::Get);
            request.headers.push(Header::Named(name, "x".to_owned()));
            prop_assert!(request.header_map().is_err());
        }
    }
}
