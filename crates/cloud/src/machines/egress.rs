//! The way out of machines: what the operator lists, and the gate that holds their programs to it.
//!
//! Each machine has a count and a rate of its own, which go on when it is started again. What
//! was asked for and what came of it goes into the log of the cloud. Must never log more of a
//! URL than its origin: the rest is between a tenant and the host.

use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use automaton_core::egress::EgressOutcome;
use automaton_core::id::MachineId;
use automaton_core::wire::cloud::EgressMetrics;
use automaton_net::proxy::{
    AllowedRequest, BoxFuture, EgressRefusal, EgressRemedy, EgressRequest, Gate, Proxy,
    SystemResolver,
};
use automaton_net::{Allowance, NetError, Origin, host_pattern};
use automaton_policy::Reachable;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tracing::info;

/// The address at which the cloud's API answers inside of each machine. No proxy is needed for it.
pub(crate) const CLOUD_INSIDE: &str = automaton_sandbox::PROXY_INSIDE;
/// The variable that names it to programs in a machine.
pub(super) const CLOUD_VARIABLE: &str = "CONWAY_API_URL";

/// Returns the address of a cloud's API as the cloud itself reaches it. One that listens at all
/// addresses is reached at the loopback.
pub(crate) fn reach_own(listens: SocketAddr) -> SocketAddr {
    let own = match listens {
        SocketAddr::V4(address) if address.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(address) if address.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other.ip(),
    };
    SocketAddr::new(own, listens.port())
}

/// The default limits of one request in each direction, in bytes.
const BYTES_PER_REQUEST: u64 = 256 << 20;
/// The default limits of a machine's day in each direction, in bytes.
const BYTES_PER_DAY: u64 = 4 << 30;
/// After so long it is counted anew.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Places that a refusal names.
const NAMED_MAX: usize = 12;
/// The sentence on who can allow more.
const REMEDY: EgressRemedy = EgressRemedy {
    rate: "the operator of the cloud can raise `machines.egress.requests_per_minute`",
    origins: "the operator of the cloud can spell the origin out under `machines.egress.origins`",
};

/// The hosts that programs in machines may reach, and the limits of traffic. By default only the
/// cloud itself can be reached.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "MachineEgressFile")]
pub struct MachineEgressConfig {
    reachable: Arc<Reachable>,
    allowance: Allowance,
}

/// As it is written: hosts as `pypi.org` or `*.pythonhosted.org`, origins as
/// `http://10.0.0.7:8000`, and what each machine may send.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MachineEgressFile {
    hosts: Vec<String>,
    origins: Vec<String>,
    requests_per_minute: Option<u32>,
    bytes_per_request: Option<u64>,
    bytes_per_day: Option<u64>,
}

impl TryFrom<MachineEgressFile> for MachineEgressConfig {
    type Error = String;

    fn try_from(file: MachineEgressFile) -> Result<Self, String> {
        let host = |text: &String| {
            host_pattern(text).ok_or_else(|| {
                format!(
                    "'{text}' is no host such as pypi.org, or *.pythonhosted.org for all under it"
                )
            })
        };
        let origin = |text: &String| text.parse::<Origin>().map(|origin| origin.to_string());
        let hosts = file.hosts.iter().map(host).collect::<Result<_, _>>()?;
        let origins = file.origins.iter().map(origin).collect::<Result<_, _>>();
        let origins = origins.map_err(|error| error.to_string())?;
        let usual = Allowance::default();
        let allowance = Allowance {
            requests_per_minute: file.requests_per_minute.unwrap_or(usual.requests_per_minute),
            bytes_per_request: file.bytes_per_request.unwrap_or(BYTES_PER_REQUEST),
            bytes_per_run: file.bytes_per_day.unwrap_or(BYTES_PER_DAY),
            ..usual
        };
        Ok(Self { reachable: Arc::new(Reachable { hosts, origins }), allowance })
    }
}

impl MachineEgressConfig {
    /// Returns whether nothing is listed.
    pub(crate) fn leads_nowhere(&self) -> bool {
        self.reachable.hosts.is_empty() && self.reachable.origins.is_empty()
    }

    /// Returns the reason why a machine may not reach this origin.
    fn not_listed(&self, origin: &Origin) -> EgressRefusal {
        let Reachable { hosts, origins } = &*self.reachable;
        if self.leads_nowhere() {
            let sentence = format!(
                "{origin} was refused: the operator of the cloud lets machines reach nothing but \
                 the cloud itself."
            );
            return EgressRefusal { rule: "egress.hosts".to_owned(), sentence };
        }
        let named: Vec<&str> =
            hosts.iter().chain(origins).map(String::as_str).take(NAMED_MAX).collect();
        let more = if hosts.len() + origins.len() > NAMED_MAX { " and others" } else { "" };
        let named = named.join(", ");
        let sentence = format!(
            "{origin} was refused: the operator of the cloud lets machines reach {named}{more}, \
             and nothing else."
        );
        EgressRefusal { rule: "egress.hosts".to_owned(), sentence }
    }
}

/// The way out of one machine.
pub(super) struct MachineEgress {
    id: MachineId,
    egress: MachineEgressConfig,
    proxy: Proxy,
    /// Bytes of the day, in both directions.
    bytes: Arc<AtomicU64>,
    // A std mutex, since nothing is awaited while it is held.
    day: Mutex<DailyUsage>,
}

/// The usage of a day.
struct DailyUsage {
    since: Instant,
    requests: u64,
    refused: u64,
}

impl DailyUsage {
    fn new() -> Self {
        Self { since: Instant::now(), requests: 0, refused: 0 }
    }
}

impl MachineEgress {
    /// The way of a machine to what is listed, and to the cloud's API at this address.
    pub(super) fn new(
        id: MachineId,
        egress: MachineEgressConfig,
        cloud: SocketAddr,
    ) -> Result<Self, NetError> {
        let proxy = Proxy::new(egress.allowance, Arc::new(SystemResolver))?;
        let proxy = proxy.with_remedy(REMEDY).with_own_server(cloud);
        Ok(Self { id, egress, proxy, bytes: Arc::default(), day: Mutex::new(DailyUsage::new()) })
    }

    /// Serves the machine's programs until `over`.
    pub(super) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        over: impl Future<Output = ()>,
    ) {
        self.proxy.clone().serve(listener, self, over).await;
    }

    /// Returns the traffic of the day.
    pub(super) fn used(&self) -> EgressMetrics {
        let day = self.today();
        EgressMetrics {
            requests: day.requests,
            refused: day.refused,
            bytes: self.bytes.load(Ordering::Relaxed),
            bytes_limit: self.egress.allowance.bytes_per_run,
        }
    }

    /// The count of the day, a new one if the last is over.
    fn today(&self) -> MutexGuard<'_, DailyUsage> {
        let mut day = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        if day.since.elapsed() >= DAY {
            *day = DailyUsage::new();
            self.bytes.store(0, Ordering::Relaxed);
        }
        day
    }

    fn decide(&self, origin: &Origin) -> Result<(), EgressRefusal> {
        let mut day = self.today();
        let max = self.egress.allowance.bytes_per_run;
        let decided = match () {
            () if !self.egress.reachable.allows(&origin.to_string()) => {
                Err(self.egress.not_listed(origin))
            }
            () if self.bytes.load(Ordering::Relaxed) >= max => {
                let sentence = format!("The machine sent and received {max} bytes in a day: wait.");
                Err(EgressRefusal { rule: "egress.bytes".to_owned(), sentence })
            }
            () => Ok(()),
        };
        *if decided.is_ok() { &mut day.requests } else { &mut day.refused } += 1;
        decided
    }
}

impl Gate for MachineEgress {
    type Ticket = EgressRequest;

    fn judge(
        &self,
        asked: EgressRequest,
    ) -> BoxFuture<'_, Result<AllowedRequest<EgressRequest>, EgressRefusal>> {
        Box::pin(async move {
            let machine = self.id;
            let method = &asked.method;
            let origin = &asked.origin;
            self.decide(origin).inspect_err(|EgressRefusal { rule, .. }| {
                info!(%machine, %method, %origin, %rule, "a machine's request was refused");
            })?;
            info!(%machine, %method, %origin, "a machine's request is sent");
            let allowlisted = self.egress.reachable.lists_origin(&origin.to_string());
            let to = origin.clone();
            Ok(AllowedRequest { ticket: asked, to, allowlisted, headers: Vec::new() })
        })
    }

    fn ended(
        &self,
        EgressRequest { method, origin, .. }: EgressRequest,
        came: EgressOutcome,
    ) -> BoxFuture<'_, ()> {
        let machine = self.id;
        let end = came.end.name();
        let EgressOutcome { status, bytes_up, bytes_down, .. } = came;
        info!(%machine, %method, %origin, status, bytes_up, bytes_down, end, "it ended");
        Box::pin(std::future::ready(()))
    }

    fn spent(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes)
    }
}
