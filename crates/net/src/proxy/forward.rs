//! A request in absolute form: sent on to its host, and the answer back.
//!
//! The first line that the host gets is made from what was judged, never from what was
//! read a second time. Headers that are about one connection stay on it, the body is
//! framed anew in both directions, and what the gate put in is taken out of the answer's
//! headers again.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use automaton_core::egress::EgressEndReason;
use automaton_core::secret::Secret;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::dial::ByteStream;
use super::exchange::{ExchangeFailure, ParsedRequest};
use super::meter::TrafficMeter;
use super::{AllowedRequest, Proxy};
use crate::limits::EGRESS_HEADERS_MAX;
use crate::origin::{Origin, Scheme};

/// Headers that are about one connection (RFC 9110, 7.6.1), and those that only one side
/// of a proxy may set.
const OF_ONE_HOP: [&str; 9] = [
    "connection",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The header that only the proxy itself sets.
const REFUSED: &str = "x-automaton-refused";

/// The replacement for a credential.
const HIDDEN: &str = "***";

/// Sends a request on and its answer back.
pub(super) async fn run<T>(
    proxy: &Proxy,
    client: &mut TcpStream,
    upstream: impl ByteStream + 'static,
    opened: ParsedRequest,
    pass: &AllowedRequest<T>,
    meter: &Arc<TrafficMeter>,
) -> Result<(), ExchangeFailure> {
    let to = &pass.to;
    let no_way = |error: &dyn std::fmt::Display| {
        let sentence = format!("{to} cannot be spoken to: {error}.");
        ExchangeFailure::with_sentence(EgressEndReason::Unreachable, sentence)
    };
    let upstream: Box<dyn ByteStream> = match to.scheme() {
        Scheme::Http => Box::new(upstream),
        Scheme::Https => proxy.encrypt(to, upstream).await.map_err(|error| no_way(&error))?,
    };
    let connected = hyper::client::conn::http1::handshake(TokioIo::new(upstream)).await;
    let (sender, connection) = connected.map_err(|error| no_way(&error))?;
    let head = &opened.head;
    let sender = Mutex::new(Some(sender));
    let service = service_fn(|request: Request<Incoming>| {
        let sender = sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        let asking = async move {
            let request = outward(request, &head.url, to, &pass.headers).ok()?;
            // One request a connection; the server below asks no second time.
            sender?.send_request(request).await.ok()
        };
        async move {
            // What would follow a change of protocol is no HTTP, and was not asked for.
            let switches = |it: &Response<_>| it.status() == StatusCode::SWITCHING_PROTOCOLS;
            Ok::<_, Infallible>(match asking.await.filter(|answer| !switches(answer)) {
                Some(answer) => {
                    meter.answered(answer.status().as_u16());
                    inward(answer, &pass.headers)
                }
                None => broken(to, meter),
            })
        }
    });
    let (reading, writing) = client.split();
    // What was read already is read again.
    let client = tokio::io::join(opened.bytes.as_slice().chain(reading), writing);
    let mut server = hyper::server::conn::http1::Builder::new();
    server.keep_alive(false).half_close(true).max_headers(EGRESS_HEADERS_MAX);
    let serving = server.serve_connection(TokioIo::new(client), service);
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        // The host has closed; what it sent is still to be passed on.
        _ = connection => serving.await,
    };
    served.map_err(io::Error::other)?;
    // What was answered in the host's place is not its answer.
    meter
        .status()
        .map(|_| ())
        .ok_or(ExchangeFailure { end: EgressEndReason::Broken, sentence: None })
}

/// The request as the host gets it.
fn outward(
    request: Request<Incoming>,
    url: &reqwest::Url,
    to: &Origin,
    credentials: &[(String, Secret)],
) -> Result<Request<Incoming>, hyper::http::Error> {
    let (parts, body) = request.into_parts();
    let mut headers = parts.headers;
    let whole = headers.get("content-length").cloned();
    of_this_hop(&mut headers);
    // Whatever a program says of its connection, the length of its body stays.
    if let Some(whole) = whole {
        headers.insert("content-length", whole);
    }
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let shown = to.to_string();
    let host = shown.split_once("://").map_or(shown.as_str(), |(_, host)| host);
    headers.insert(HOST, HeaderValue::from_str(host)?);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    for (name, value) in credentials {
        let mut value = HeaderValue::from_str(value.reveal())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes())?, value);
    }
    let mut request = Request::builder().method(parts.method).uri(target).body(body)?;
    *request.headers_mut() = headers;
    Ok(request)
}

type ProxyResponse = Response<Either<Incoming, Full<Bytes>>>;

/// The answer as the program gets it.
fn inward(answer: Response<Incoming>, credentials: &[(String, Secret)]) -> ProxyResponse {
    let (mut parts, body) = answer.into_parts();
    of_this_hop(&mut parts.headers);
    parts.headers.remove(REFUSED);
    for value in parts.headers.values_mut() {
        for (_, secret) in credentials {
            redact(value, secret.reveal());
        }
    }
    parts.extensions.clear();
    Response::from_parts(parts, Either::Left(body))
}

/// Takes a secret out of a header; the whole value where it is not text.
fn redact(value: &mut HeaderValue, secret: &str) {
    let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
    if secret.is_empty() || !text.contains(secret) {
        return;
    }
    let hidden = HeaderValue::from_str(&text.replace(secret, HIDDEN));
    *value = hidden.unwrap_or(HeaderValue::from_static(HIDDEN));
}

/// Returns whether a header, in lower case, concerns one connection and is never passed on.
#[must_use]
pub fn is_of_one_hop(name: &str) -> bool {
    OF_ONE_HOP.contains(&name) || name.starts_with("proxy-")
}

/// Removes what is about one connection: what is known to be, and what `Connection` names.
pub fn of_this_hop(headers: &mut HeaderMap) {
    let named: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| {
            String::from_utf8_lossy(value.as_bytes())
                .split(',')
                .map(|name| name.trim().to_ascii_lowercase())
                .collect::<Vec<_>>()
        })
        .collect();
    let all: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in all {
        let text = name.as_str();
        if is_of_one_hop(text) || named.iter().any(|named| named == text) {
            headers.remove(&name);
        }
    }
}

/// Returns the response for an unusable answer of the host, or for a request that was cut off.
fn broken(to: &Origin, meter: &TrafficMeter) -> ProxyResponse {
    let (status, why) = match meter.cut() {
        Some(EgressEndReason::RequestBytes | EgressEndReason::RunBytes) => {
            (StatusCode::PAYLOAD_TOO_LARGE, "was sent more than may be sent")
        }
        _ => (StatusCode::BAD_GATEWAY, "broke off before it had answered"),
    };
    let mut answer = Response::new(Either::Right(Full::new(format!("{to} {why}.\n").into())));
    *answer.status_mut() = status;
    let rule = format!("egress.{}", meter.cut().unwrap_or(EgressEndReason::Broken).name());
    if let Ok(rule) = HeaderValue::from_str(&rule) {
        answer.headers_mut().insert(REFUSED, rule);
    }
    answer
}
