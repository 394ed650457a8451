//! Passes requests to exposed ports of machines and tunnels on, in both directions and unchanged.
//!
//! A port is reached under a host name of its own, `{port}-{machine}.{domain}`, or, by clients that
//! cannot resolve that, under the path `/_at/{machine}/{port}/`. Everything else is for our own
//! API. Our API keys must never be passed on, in whatever header. Under the path, where a program
//! shares our host, no cookie may pass in either direction. A port with a price must never get an
//! unpaid request, or a payment.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::chain;
use automaton_core::id::MachineId;
use automaton_core::money::MicroUsdc;
use automaton_core::wire::cloud::KEY_PREFIX;
use automaton_core::wire::x402::{PAYMENT_SIGNATURE, X_PAYMENT};
use automaton_net::proxy::of_this_hop;
use automaton_net::{Origin, Scheme};
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::timeout;

use crate::api::sale::{SaleFlow, SaleItem, SettledSale};
use crate::app::{App, MachineOffering};
use crate::billing::facilitator::SaleOffer;
use crate::config::PublicUrlForm;
use crate::db::Sale;
use crate::db::machines::Machine;
use crate::error::ApiError;
use crate::machines::driver::MachineStream;
use crate::machines::lifecycle;

/// The beginning of the paths of ports.
const AT: &str = "/_at/";
/// The longest wait for the head of an answer.
const HEAD_WITHIN: Duration = Duration::from_secs(120);
/// The longest time for an answer with its body, and for a connection that changed its protocol.
const ANSWER_MAX: Duration = Duration::from_secs(3600);
const UPGRADED_MAX: Duration = Duration::from_secs(24 * 3600);
/// Headers that we answer ourselves, or say better.
const OWN: [&str; 2] = ["forwarded", "x-real-ip"];

/// Under which names ports are reached.
#[derive(Debug, Clone)]
pub(crate) struct GatewayNames {
    /// The origin under which clients reach this cloud.
    pub(crate) origin: Origin,
    /// The domain that the host names of ports end with.
    pub(crate) domain: String,
    /// The form of URL that is shown for a port.
    pub(crate) public_url: PublicUrlForm,
}

/// A requested port.
#[derive(Debug, PartialEq, Eq)]
struct PortTarget {
    short_id: String,
    port: u16,
    /// The part of the path before the program's own.
    prefix: Option<String>,
}

impl GatewayNames {
    /// Returns the URL of a port that its owner is shown first.
    pub(crate) fn public_url(&self, short_id: &str, port: u16) -> String {
        match self.public_url {
            PublicUrlForm::Name => self.url(short_id, port),
            PublicUrlForm::Path => self.path_url(short_id, port),
        }
    }

    /// The URL of a port under a name of its own.
    pub(crate) fn url(&self, short_id: &str, port: u16) -> String {
        let (scheme, usual) = match self.origin.scheme() {
            Scheme::Http => ("http", 80),
            Scheme::Https => ("https", 443),
        };
        let name = format!("{scheme}://{port}-{short_id}.{}", self.domain);
        match self.origin.port() {
            at if at == usual => name,
            at => format!("{name}:{at}"),
        }
    }

    /// The URL of a port under our own.
    pub(crate) fn path_url(&self, short_id: &str, port: u16) -> String {
        format!("{}{AT}{short_id}/{port}/", self.origin)
    }

    fn port_target(&self, host: &str, path: &str) -> Option<PortTarget> {
        let host = host.rsplit_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
        let label = host.strip_suffix(&self.domain).and_then(|label| label.strip_suffix('.'));
        if let Some((port, short_id)) = label.and_then(|label| label.split_once('-')) {
            return parse_target(port, short_id, None);
        }
        let (short_id, rest) = path.strip_prefix(AT)?.split_once('/')?;
        let port = rest.split('/').next()?;
        parse_target(port, short_id, Some(format!("{AT}{short_id}/{port}")))
    }
}

fn parse_target(port: &str, short_id: &str, prefix: Option<String>) -> Option<PortTarget> {
    let is_plain = !short_id.is_empty() && short_id.bytes().all(|it| it.is_ascii_alphanumeric());
    // silent-ok: what is no number is no port.
    let port = port.parse().ok().filter(|port| *port > 0 && is_plain)?;
    Some(PortTarget { short_id: short_id.to_owned(), port, prefix })
}

/// The target behind a port.
enum Backend {
    Machine(MachineId),
    /// A sandbox of its owner's own.
    Tunnel(MachineId),
}

impl Backend {
    /// A new connection to the port.
    async fn connect(
        &self,
        rent: &MachineOffering,
        port: u16,
    ) -> Result<Box<dyn MachineStream>, ApiError> {
        let connection = match self {
            Self::Machine(id) => {
                let connection = rent.machines.driver.connect(*id, port).await;
                connection.map_err(|error| chain(&error).to_string())
            }
            Self::Tunnel(id) => rent.tunnels.connect(*id, port).await.map_err(str::to_owned),
        };
        connection.map_err(|why| bad(&format!("the port {port}: {why}")))
    }
}

/// Passes on what is for a port, and leaves the rest to the API.
pub(crate) async fn route_port_requests(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(rent) = &app.rent else { return next.run(request).await };
    let uri = request.uri();
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = uri.authority().map(|it| it.as_str()).or(host).unwrap_or_default();
    match rent.names.port_target(host, uri.path()) {
        Some(asked) => {
            let host = host.to_owned();
            let passed = pass(&app, rent, asked, host, request).await;
            passed.unwrap_or_else(|error| error.into_response())
        }
        None => next.run(request).await,
    }
}

async fn pass(
    app: &Arc<App>,
    rent: &MachineOffering,
    asked: PortTarget,
    host: String,
    mut request: Request,
) -> Result<Response, ApiError> {
    let route = app.db.route(asked.short_id.clone(), asked.port).await;
    let route = route.map_err(|error| app.failed(&error))?;
    let (machine, port) = route.ok_or_else(|| {
        ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", "no port is exposed under this name")
    })?;
    let backend = behind(&machine)?;
    let permits =
        &rent.machines.live_machine(machine.id).connections[usize::from(port.price.is_some())];
    let permit = Arc::clone(permits).try_acquire_owned();
    let permit = permit.map_err(|_| ApiError::unavailable("too many use this sandbox's ports"))?;
    let way = GatewayRoute { asked, host, permit: Arc::new(permit) };
    let Some(price) = port.price else {
        let connection = backend.connect(rent, port.port).await?;
        return forward(rent, way, connection, request).await;
    };
    let ware = sale_item(rent, &machine, price, &way.asked, request.uri().path());
    let paid = match take_payment(app, rent, &backend, &ware, request.headers()).await? {
        ControlFlow::Continue(paid) => paid,
        ControlFlow::Break(answer) => return Ok(answer),
    };
    for name in [PAYMENT_SIGNATURE, X_PAYMENT] {
        request.headers_mut().remove(name);
    }
    let forwarded = async {
        // Who leaves until here is owed the request still.
        let connection = backend.connect(rent, port.port).await?;
        let own = Arc::clone(app);
        let id = paid.id;
        let (done, forwarded) = oneshot::channel();
        // From here on it is passed on, though they leave.
        rent.machines.tasks.spawn(async move {
            // silent-ok: whoever asked has gone.
            done.send(own.send_paid(id, way, connection, request).await).ok();
        });
        forwarded.await.unwrap_or_else(|_| Err(ApiError::unavailable("the cloud ends")))
    };
    let answer = forwarded.await.unwrap_or_else(ApiError::into_response);
    Ok(paid.add_receipt(answer))
}

impl App {
    /// Passes on a request that was paid for, once.
    async fn send_paid(
        &self,
        paid: i64,
        way: GatewayRoute,
        connection: Box<dyn MachineStream>,
        request: Request,
    ) -> Result<Response, ApiError> {
        let rent = self.rent()?;
        self.redeem(paid).await?;
        forward(rent, way, connection, request).await
    }
}

/// Takes the payment for a request, once it is on the chain. A connection is opened before, so
/// that no visitor pays for a program that does not listen.
async fn take_payment(
    app: &Arc<App>,
    rent: &MachineOffering,
    backend: &Backend,
    ware: &SaleItem,
    headers: &HeaderMap,
) -> SaleFlow<SettledSale> {
    let payment = match app.presented(ware, headers).await? {
        ControlFlow::Continue(payment) => payment,
        ControlFlow::Break(answer) => return Ok(ControlFlow::Break(answer)),
    };
    drop(backend.connect(rent, ware.sale.port).await?);
    app.settled_for(ware, &payment).await
}

/// A request to a port, as it is for sale: the owner of the machine is paid.
fn sale_item(
    rent: &MachineOffering,
    machine: &Machine,
    price: MicroUsdc,
    asked: &PortTarget,
    path: &str,
) -> SaleItem {
    let url = match asked.prefix {
        None => format!("{}{path}", rent.names.url(&asked.short_id, asked.port)),
        Some(_) => format!("{}{path}", rent.names.origin),
    };
    let description = "one request".to_owned();
    let offer = SaleOffer { url, description, mime_type: "*/*", pay_to: machine.owner, price };
    SaleItem { sale: Sale { machine: machine.id, port: asked.port }, offer }
}

/// On the way to a program.
struct GatewayRoute {
    asked: PortTarget,
    host: String,
    permit: Arc<OwnedSemaphorePermit>,
}

/// Sends a request to a program, and brings its answer.
async fn forward(
    rent: &MachineOffering,
    GatewayRoute { asked, host, permit }: GatewayRoute,
    connection: Box<dyn MachineStream>,
    mut request: Request,
) -> Result<Response, ApiError> {
    let theirs = hyper::upgrade::on(&mut request);
    let (upgrade, sent) = outgoing(rent, &asked, &host, request)?;
    let shaken = http1::handshake(TokioIo::new(connection)).await;
    let (mut sender, link) = shaken.map_err(|error| bad(&error.to_string()))?;
    let held = Arc::clone(&permit);
    rent.machines.tasks.spawn(async move {
        // silent-ok: whoever waits for the answer is told.
        timeout(ANSWER_MAX, link.with_upgrades()).await.ok();
        drop(held);
    });
    let answer = timeout(HEAD_WITHIN, sender.send_request(sent)).await;
    let answer = answer.map_err(|_| {
        ApiError::new(StatusCode::GATEWAY_TIMEOUT, "TIMEOUT", "the program gave no answer")
    })?;
    let mut answer = answer.map_err(|error| bad(&error.to_string()))?;
    let switched = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
    if switched {
        let ours = hyper::upgrade::on(&mut answer);
        rent.machines.tasks.spawn(async move {
            if let (Ok(theirs), Ok(ours)) = (theirs.await, ours.await) {
                let mut theirs = TokioIo::new(theirs);
                let mut ours = TokioIo::new(ours);
                // silent-ok: either side may break it off.
                timeout(UPGRADED_MAX, copy_bidirectional(&mut theirs, &mut ours)).await.ok();
            }
            drop(permit);
        });
    }
    strip(answer.headers_mut(), asked.prefix.is_some());
    if let (true, Some(upgrade)) = (switched, upgrade) {
        upgraded(answer.headers_mut(), upgrade);
    }
    Ok(answer.map(Body::new))
}

/// Returns the target behind the ports of a running machine.
fn behind(machine: &Machine) -> Result<Backend, ApiError> {
    if machine.is_tunnel {
        return Ok(Backend::Tunnel(machine.id));
    }
    if machine.state != lifecycle::MachineState::Running {
        return Err(bad(&format!("the sandbox is {}", machine.state.name())));
    }
    Ok(Backend::Machine(machine.id))
}

/// The request as the program gets it, and what it is to be upgraded to.
fn outgoing(
    rent: &MachineOffering,
    asked: &PortTarget,
    host: &str,
    request: Request,
) -> Result<(Option<HeaderValue>, Request), ApiError> {
    let (mut parts, body) = request.into_parts();
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|it| it.0.ip().to_string());
    let upgrade = parts.headers.get(header::UPGRADE).cloned();
    strip(&mut parts.headers, asked.prefix.is_some());
    let scheme = match rent.names.origin.scheme() {
        Scheme::Http => "http",
        Scheme::Https => "https",
    };
    let told = [
        ("host", Some(host)),
        ("x-forwarded-for", peer.as_deref()),
        ("x-forwarded-host", Some(host)),
        ("x-forwarded-proto", Some(scheme)),
        ("x-forwarded-prefix", asked.prefix.as_deref()),
    ];
    for (name, value) in told {
        // silent-ok: what was a header's value, or an address, is one again.
        match value.and_then(|value| HeaderValue::from_str(value).ok()) {
            Some(value) => drop(parts.headers.insert(name, value)),
            None => drop(parts.headers.remove(name)),
        }
    }
    if let Some(upgrade) = &upgrade {
        upgraded(&mut parts.headers, upgrade.clone());
    }
    let whole = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let rest = asked.prefix.as_deref().map_or(whole, |prefix| &whole[prefix.len()..]);
    let path = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    parts.uri = Uri::try_from(path).map_err(|error| ApiError::invalid(error.to_string()))?;
    let method = parts.method;
    let uri = parts.uri;
    let headers = parts.headers;
    let mut sent = Request::new(body);
    (*sent.method_mut(), *sent.uri_mut(), *sent.headers_mut()) = (method, uri, headers);
    *sent.version_mut() = Version::HTTP_11;
    Ok((upgrade, sent))
}

fn upgraded(headers: &mut HeaderMap, to: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, to);
}

/// Takes out what is for one connection alone, what nobody but us may see, and, of what shares
/// our host, cookies.
fn strip(headers: &mut HeaderMap, shares_our_host: bool) {
    of_this_hop(headers);
    let cookies = [header::COOKIE, header::SET_COOKIE];
    let cookies = cookies.into_iter().filter(|_| shares_our_host);
    let secret = headers.iter().filter(|(_, value)| is_secret(value)).map(|(name, _)| name.clone());
    let secret: Vec<HeaderName> = secret.collect();
    let own = OWN.map(HeaderName::from_static);
    for name in cookies.chain(secret).chain(own) {
        headers.remove(name);
    }
}

/// Returns whether a header holds one of our API keys.
fn is_secret(value: &HeaderValue) -> bool {
    value.as_bytes().windows(KEY_PREFIX.len()).any(|it| it == KEY_PREFIX.as_bytes())
}

fn bad(why: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_GATEWAY, "BAD_GATEWAY", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(origin: &str, domain: &str) -> GatewayNames {
        let origin = origin.parse().unwrap();
        let domain = domain.to_owned();
        GatewayNames { origin, domain, public_url: PublicUrlForm::Name }
    }

    #[test]
    fn a_port_is_named_in_its_host_or_in_its_path() {
        let names = names("http://127.0.0.1:4402", "localhost");
        assert_eq!(names.url("abc", 80), "http://80-abc.localhost:4402");
        assert_eq!(names.path_url("abc", 80), "http://127.0.0.1:4402/_at/abc/80/");
        assert_eq!(names.public_url("abc", 80), names.url("abc", 80));
        let by_path = GatewayNames { public_url: PublicUrlForm::Path, ..names.clone() };
        assert_eq!(by_path.public_url("abc", 80), names.path_url("abc", 80));
        let asked =
            |host, path| names.port_target(host, path).map(|it| (it.short_id, it.port, it.prefix));
        let abc = |port| Some(("abc".to_owned(), port, None));
        assert_eq!(asked("80-abc.localhost:4402", "/x"), abc(80));
        assert_eq!(asked("80-ABC.LOCALHOST", "/"), abc(80));
        let by_path = Some(("abc".to_owned(), 81, Some("/_at/abc/81".to_owned())));
        assert_eq!(asked("127.0.0.1:4402", "/_at/abc/81/x/y"), by_path);
        assert_eq!(asked("127.0.0.1:4402", "/_at/abc/81"), by_path);
        assert_eq!(asked("80-abc.localhost", "/_at/other/81/"), abc(80), "the program's own path");
        for (host, path) in [
            ("127.0.0.1:4402", "/v1/models"),
            ("localhost:4402", "/"),
            ("abc.localhost", "/"),
            ("0-abc.localhost", "/"),
            ("65536-abc.localhost", "/"),
            ("80-abc.localhost.example.org", "/"),
            ("80-abc.notlocalhost", "/"),
            ("80-.localhost", "/"),
            ("80-a.b.localhost", "/"),
            ("localhost", "/_at/abc"),
            ("localhost", "/_at//80/"),
            ("localhost", "/_at/abc/x/"),
        ] {
            assert_eq!(asked(host, path), None, "{host} {path}");
        }
    }

    #[test]
    fn a_usual_port_is_left_out() {
        let names = names("https://cloud.example.org", "life.example.org");
        assert_eq!(names.url("abc", 8080), "https://8080-abc.life.example.org");
        assert!(names.port_target("8080-abc.life.example.org", "/").is_some());
    }

    #[test]
    fn what_is_ours_or_of_one_connection_stays_here() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "cnwy_k_secret"),
            ("x-api-key", "Bearer cnwy_k_other"),
            ("connection", "close, X-Private"),
            ("x-private", "1"),
            ("transfer-encoding", "chunked"),
            ("cookie", "a=1"),
            ("accept", "*/*"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let mut shared = headers.clone();
        strip(&mut headers, false);
        let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["cookie", "accept"]);
        strip(&mut shared, true);
        assert_eq!(shared.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
        headers.insert("authorization", HeaderValue::from_static("Basic of the program"));
        strip(&mut headers, false);
        assert!(headers.contains_key("authorization"), "the program's own");
    }
}
