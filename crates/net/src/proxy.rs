//! The one way out of the sandbox.
//!
//! Serves the listener of one command for as long as it runs: requests in absolute form
//! over plain HTTP, and tunnels by CONNECT, one request a connection. Each is read
//! strictly ([`head`]), judged and recorded by the [`Gate`] before anything is sent, and
//! connected to exactly the addresses that were checked. Nothing may pass that the gate
//! has not let through; a redirection is never followed and a 402 never paid. Credentials
//! go in here and must never come back in a header; what a server repeats in a body is
//! not looked at.

mod dial;
mod direct;
mod exchange;
mod forward;
pub mod head;
mod meter;
mod tunnel;

use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use automaton_core::egress::EgressOutcome;
use automaton_core::secret::Secret;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;

pub use self::direct::pass_all_on;
pub use self::forward::{is_of_one_hop, of_this_hop};
use crate::client::tls;
use crate::error::NetError;
use crate::limits::{Allowance, EGRESS_CONNECTIONS_MAX, EGRESS_REQUESTS_PER_DAY};
use crate::origin::Origin;
use crate::trust::PrivateAuthorities;
use reqwest::Url;

pub use futures_util::future::BoxFuture;

/// The pause after the system could give no connection.
const NO_CONNECTION: Duration = Duration::from_millis(100);

/// The window of [`Allowance::requests_per_minute`].
const MINUTE: Duration = Duration::from_secs(60);
/// The window of [`EGRESS_REQUESTS_PER_DAY`].
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A request that a program in the sandbox wants to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRequest {
    /// The method; `CONNECT` for a tunnel.
    pub method: String,
    /// The target. Of a tunnel only its origin is known.
    pub url: Url,
    /// The origin of that.
    pub origin: Origin,
}

/// A request that may be sent.
#[derive(Debug)]
pub struct AllowedRequest<T> {
    /// The gate's ticket.
    pub ticket: T,
    /// The origin to send it to: the requested one, or the same host over TLS.
    pub to: Origin,
    /// The creator's configuration spells the origin out, so it may be on this machine or in a
    /// private network.
    pub allowlisted: bool,
    /// Headers that are put in, whatever the program sent under their names. Never into a
    /// tunnel.
    pub headers: Vec<(String, Secret)>,
}

/// A request that may not be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRefusal {
    /// The rule that says so.
    pub rule: String,
    /// The refusal and its remedy, in plain words on one line.
    pub sentence: String,
}

/// Judges requests and records their ends.
pub trait Gate: Send + Sync + 'static {
    /// The gate's identification of an allowed request.
    type Ticket: Send + Sync;

    /// Judges a request, and has written down that it will be sent when it says so.
    fn judge(
        &self,
        asked: EgressRequest,
    ) -> BoxFuture<'_, Result<AllowedRequest<Self::Ticket>, EgressRefusal>>;

    /// Takes what came of one that it let through.
    fn ended(&self, ticket: Self::Ticket, came: EgressOutcome) -> BoxFuture<'_, ()>;

    /// Returns the counter for [`Allowance::bytes_per_run`], for a gate that keeps the count from
    /// run to run.
    fn spent(&self) -> Arc<AtomicU64> {
        Arc::default()
    }
}

/// Resolves names to addresses.
pub trait NameResolver: Send + Sync {
    /// All addresses of a name.
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(crate::client::resolve::lookup(name))
    }
}

/// The person and the setting that can allow more, to complete a refusal.
#[derive(Debug, Clone, Copy)]
pub struct EgressRemedy {
    /// More requests in a minute.
    pub rate: &'static str,
    /// A place that is not public.
    pub origins: &'static str,
}

impl EgressRemedy {
    /// For the commands of an automaton.
    const CREATOR: Self = Self {
        rate: "the creator can raise egress.requestsPerMinute in automaton.json",
        origins: "the creator can spell the origin out under `egress.origins` in automaton.json",
    };
}

/// The proxy of one automaton, or of one machine. Cheap to clone; clones share their rate.
#[derive(Clone)]
pub struct Proxy {
    allowance: Allowance,
    remedy: EgressRemedy,
    names: Arc<dyn NameResolver>,
    tls: TlsConnector,
    /// The requests of the minute, and of the day.
    rates: Arc<Mutex<[RequestCounter; 2]>>,
    /// The server behind the proxy's own address.
    own_server: Option<SocketAddr>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("allowance", &self.allowance).finish_non_exhaustive()
    }
}

/// The requests of a span of time.
struct RequestCounter {
    span: Duration,
    since: Instant,
    requests: u32,
}

impl RequestCounter {
    fn new(span: Duration) -> Self {
        Self { span, since: Instant::now(), requests: 0 }
    }

    /// Returns whether one more request fits, in a new span if the last one is over.
    fn has_room(&mut self, max: u32) -> bool {
        if self.since.elapsed() >= self.span {
            *self = Self::new(self.span);
        }
        self.requests < max
    }
}

/// The state that the connections of one command share.
struct ProxyRun<G> {
    proxy: Proxy,
    gate: Arc<G>,
    /// Bytes of all its requests.
    bytes: Arc<AtomicU64>,
    /// Becomes true when the command has ended.
    ended: watch::Receiver<bool>,
}

impl Proxy {
    /// A proxy with these limits and this resolver.
    ///
    /// # Errors
    /// Fails if TLS cannot be set up.
    pub fn new(allowance: Allowance, names: Arc<dyn NameResolver>) -> Result<Self, NetError> {
        let rates = [RequestCounter::new(MINUTE), RequestCounter::new(DAY)];
        let rates = Arc::new(Mutex::new(rates));
        let tls = Arc::new(tls(&PrivateAuthorities::installed())?).into();
        let remedy = EgressRemedy::CREATOR;
        Ok(Self { allowance, remedy, names, tls, rates, own_server: None })
    }

    /// The same for others than the commands of an automaton.
    #[must_use]
    pub fn with_remedy(self, remedy: EgressRemedy) -> Self {
        Self { remedy, ..self }
    }

    /// The same with a server that answers what is asked of the proxy's own address. The gate is
    /// not asked about these connections.
    #[must_use]
    pub fn with_own_server(self, server: SocketAddr) -> Self {
        Self { own_server: Some(server), ..self }
    }

    /// Serves one command's listener until `over`; what is under way then is cut off, and
    /// its end is told to the gate before this returns.
    pub async fn serve<G: Gate>(
        &self,
        listener: TcpListener,
        gate: Arc<G>,
        over: impl Future<Output = ()>,
    ) {
        let (end, ended) = watch::channel(false);
        let bytes = gate.spent();
        let run = Arc::new(ProxyRun { proxy: self.clone(), gate, bytes, ended });
        let mut open: JoinSet<()> = JoinSet::new();
        let mut over = std::pin::pin!(over);
        loop {
            // Each arm is cancel-safe: a connection that is not taken stays in the queue.
            tokio::select! {
                biased;
                () = &mut over => break,
                // silent-ok: a connection that broke down has lost nothing but itself.
                Some(_) = open.join_next() => {}
                taken = listener.accept(), if open.len() < EGRESS_CONNECTIONS_MAX => match taken {
                    Ok((client, _)) => {
                        open.spawn(serve_connection(Arc::clone(&run), client));
                    }
                    Err(_) => sleep(NO_CONNECTION).await,
                },
            }
        }
        drop(listener);
        end.send_replace(true);
        while open.join_next().await.is_some() {}
    }

    /// Counts a request, unless there were too many.
    fn admit(&self) -> Result<(), EgressRefusal> {
        let max = self.allowance.requests_per_minute;
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let sentence = match [rates[0].has_room(max), rates[1].has_room(EGRESS_REQUESTS_PER_DAY)] {
            [true, true] => {
                rates.iter_mut().for_each(|counted| counted.requests += 1);
                return Ok(());
            }
            [false, _] => {
                format!("More than {max} requests in a minute: wait, or {}.", self.remedy.rate)
            }
            [true, false] => {
                format!("More than {EGRESS_REQUESTS_PER_DAY} requests in a day: wait.")
            }
        };
        Err(EgressRefusal { rule: "egress.rate".to_owned(), sentence })
    }
}

/// Serves one connection, to the server behind the proxy's own address or to another one.
async fn serve_connection<G: Gate>(run: Arc<ProxyRun<G>>, client: TcpStream) {
    let mut ended = run.ended.clone();
    if let Some(server) = run.proxy.own_server {
        let direct = async {
            let asks_us = direct::is_direct(&client).await;
            if asks_us {
                direct::pass_on(client, server).await;
                return None;
            }
            Some(client)
        };
        let client = tokio::select! {
            biased;
            _ = ended.wait_for(|ended| *ended) => return,
            client = direct => client,
        };
        if let Some(client) = client {
            exchange::serve(run, client).await;
        }
        return;
    }
    exchange::serve(run, client).await;
}
