//! One running cloud: its parts put together, and the handle on it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use automaton_core::entropy::Entropy;
use automaton_core::faults::Faults;
use automaton_core::id::{IdGenerator, RequestId};
use automaton_core::money::Microcents;
use automaton_core::time::Clock;
use automaton_inference::providers::local::{LocalModel, LocalModelConfig};
use automaton_net::{HttpClient, HttpClientConfig, Origin};
use automaton_sandbox::{Feature, Launcher, probe};
use automaton_wallet::SignerClient;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::{self, Next};
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};

use crate::access::SignInContext;
use crate::api;
use crate::billing::chain::RpcSettlement;
use crate::billing::facilitator::PaymentTerms;
use crate::billing::settlement::Settlement;
use crate::billing::settler::{HEARD_MAX, PaymentQueue, Settler};
use crate::chat::{
    CallGate, ChatService, KeyRing, Upstream, UpstreamEntry, UpstreamHealth, UpstreamPool,
    UpstreamServer,
};
use crate::config::{self, CloudConfig, HttpUrl, MachinesConfig, UpstreamConfig, UpstreamKind};
use crate::db::Db;
use crate::db::machines::MachineQuota;
use crate::error::{CloudError, OperatorNotifier};
use crate::gateway::{GatewayNames, route_port_requests};
use crate::machines::driver::MachineDriver;
use crate::machines::egress::{CLOUD_INSIDE, reach_own};
use crate::machines::podman::PodmanDriver;
use crate::machines::process::{MachineHost, ProcessDriver};
use crate::machines::runs::interrupted;
use crate::machines::{MachineCapacity, Machines};
use crate::serve::{CONNECTIONS_EACH_MAX, serve};
use crate::shares::AddressShares;
use crate::tasks::TaskSet;
use crate::tunnels::Tunnels;
use tracing::warn;

/// The folder of the machines in the directory of the database.
const MACHINES: &str = "machines";

/// The file of the database in its directory.
pub const DATABASE: &str = "cloud.db";

/// The state that all requests share.
pub(crate) struct App {
    pub(crate) db: Db,
    pub(crate) access: SignInContext,
    pub(crate) terms: PaymentTerms,
    pub(crate) settler: Arc<Settler>,
    pub(crate) meter: Arc<ChatService>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdGenerator,
    pub(crate) report: OperatorNotifier,
    /// Scheme, host and port that clients use.
    pub(crate) public_url: String,
    /// The default transfer ceiling of a key in 24 hours.
    pub(crate) transfer_daily_cents: i64,
    /// The machines for rent, where there are any.
    pub(crate) rent: Option<MachineOffering>,
}

/// The machines for rent, and how they are offered.
pub(crate) struct MachineOffering {
    pub(crate) machines: Arc<Machines>,
    pub(crate) limits: MachineQuota,
    pub(crate) tunnels: Tunnels,
    pub(crate) region: String,
    pub(crate) names: GatewayNames,
}

/// The dependencies of a cloud, besides its configuration.
#[derive(Clone)]
pub struct CloudDeps {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Receives messages for the operator.
    pub report: OperatorNotifier,
    /// Fault points for crash tests.
    pub faults: Arc<dyn Faults>,
    /// Starts the sandboxes of a local model and of machines; without it there are none.
    pub launcher: Option<Launcher>,
}

/// The chain and the database of a cloud.
#[derive(Clone)]
pub struct CloudBackend {
    /// The way by which payments reach the chain.
    pub chain: Arc<dyn Settlement>,
    /// The database.
    pub db: Db,
}

/// A running cloud. It ends when this is dropped or stopped.
pub struct CloudServer {
    address: SocketAddr,
    url: String,
    stop: watch::Sender<bool>,
    served: tokio::task::JoinSet<()>,
    tasks: TaskSet,
    machines: Option<Arc<Machines>>,
    db: Db,
}

impl CloudServer {
    /// Starts a cloud on the chain that the configuration names. The gas is paid
    /// from `signer`, whose signer has to permit [`chain::CALLED`].
    ///
    /// # Errors
    /// See [`CloudError`]; nothing runs then.
    ///
    /// [`chain::CALLED`]: crate::billing::chain::CALLED
    pub async fn start(
        config: CloudConfig,
        deps: CloudDeps,
        signer: SignerClient,
    ) -> Result<Self, CloudError> {
        let chain = Self::settlement(&config, signer)?;
        Self::start_on(config, deps, chain).await
    }

    /// Returns the settlement on the chain that the configuration names; see
    /// [`CloudServer::start`].
    ///
    /// # Errors
    /// Fails if the configuration names no token, or nobody can be asked at its node.
    pub fn settlement(
        config: &CloudConfig,
        signer: SignerClient,
    ) -> Result<Arc<dyn Settlement>, CloudError> {
        let rpc = &config.chain.rpc_url;
        Ok(Arc::new(RpcSettlement::new(
            client(rpc)?,
            rpc.url().clone(),
            config.chain.terms()?.token,
            signer,
            config.chain.confirmations(),
        )))
    }

    /// Starts a cloud that settles payments in this way.
    ///
    /// # Errors
    /// As [`CloudServer::start`].
    pub async fn start_on(
        config: CloudConfig,
        deps: CloudDeps,
        chain: Arc<dyn Settlement>,
    ) -> Result<Self, CloudError> {
        let db = open(&config.data, Arc::clone(&deps.clock))?;
        Self::start_over(config, deps, CloudBackend { chain, db }).await
    }

    /// Starts a cloud over a chain and a database that the caller may share.
    ///
    /// # Errors
    /// As [`CloudServer::start`].
    pub async fn start_over(
        config: CloudConfig,
        deps: CloudDeps,
        ground: CloudBackend,
    ) -> Result<Self, CloudError> {
        let CloudBackend { chain, db } = ground;
        // What a good end left behind was right when it was written.
        if !db.was_closed_cleanly() {
            let books = db.check_books().await?;
            if books.sum != Microcents::ZERO || books.faults > 0 {
                return Err(CloudError::Books(books));
            }
        }
        let released = db.release_open_holds().await?;
        if released > 0 {
            (deps.report)(format!("{released} calls were cut off and cost nothing"));
        }
        let (listener, address) = listen(config.listen).await?;
        let tasks = TaskSet::default();
        let held = db.clone();
        let app = Arc::new(
            assemble(&config, &deps, AppParts { db, chain, tasks: tasks.clone(), address }).await?,
        );
        tasks.spawn(Arc::clone(&app.settler).run());
        tasks.spawn(Arc::clone(&app.meter).unload_idle());
        let machines = app.rent.as_ref().map(|rent| Arc::clone(&rent.machines));
        if let Some(machines) = &machines {
            let cut_off = app.db.restart_machines(interrupted()).await?;
            if cut_off > 0 {
                (app.report)(format!("{cut_off} commands in machines were cut off"));
            }
            tasks.spawn(Arc::clone(machines).run_reconciler());
        }
        let (stop, stopped) = watch::channel(false);
        let url = app.public_url.clone();
        let stamped = middleware::from_fn_with_state(Arc::clone(&app), stamp);
        let gateway = middleware::from_fn_with_state(Arc::clone(&app), route_port_requests);
        let routes = api::routes(app).layer(stamped).layer(gateway);
        let mut served = tokio::task::JoinSet::new();
        let shares = AddressShares::new(CONNECTIONS_EACH_MAX, &config.proxies);
        served.spawn(serve(listener, routes, shares, stopped));
        Ok(Self { address, url, stop, served, tasks, machines, db: held })
    }

    /// Returns the address that the server listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that clients use, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Takes no more requests and waits for those under way, for so long. Calls that are
    /// late are cut off, and cost nothing.
    pub async fn stop(mut self, within: std::time::Duration) {
        self.stop.send_replace(true);
        // silent-ok: those that are late are cut off, as a crash would.
        tokio::time::timeout(within, self.served.join_next()).await.ok();
        self.tasks.end().await;
        // silent-ok: what stays open now, the next start releases.
        self.db.release_open_holds().await.ok();
        // silent-ok: what is not settled now, the next start checks.
        self.db.mark_clean_shutdown().await.ok();
    }
}

impl Drop for CloudServer {
    fn drop(&mut self) {
        self.tasks.abort();
        if let Some(machines) = &self.machines {
            machines.driver.leave();
        }
    }
}

fn open(data: &Path, clock: Arc<dyn Clock>) -> Result<Db, CloudError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data);
    made.map_err(|source| CloudError::File { path: data.to_owned(), source })?;
    Ok(Db::open(&data.join(DATABASE), clock)?)
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), CloudError> {
    let failed = |source| CloudError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// The parts that [`assemble`] takes besides the configuration.
struct AppParts {
    db: Db,
    chain: Arc<dyn Settlement>,
    tasks: TaskSet,
    address: SocketAddr,
}

async fn assemble(
    config: &CloudConfig,
    deps: &CloudDeps,
    parts: AppParts,
) -> Result<App, CloudError> {
    let AppParts { db, chain, tasks, address } = parts;
    let CloudDeps { clock, entropy, report, faults, launcher } = deps.clone();
    let ids = IdGenerator::new(Arc::clone(&clock), Arc::clone(&entropy));
    let origin = match &config.public_url {
        Some(url) => url.origin().clone(),
        None => parse_origin(&format!("http://{address}"), "listen")?,
    };
    let public_url = origin.to_string();
    let parts = (db.clone(), tasks.clone(), origin.clone(), address);
    let rent = rent(config, deps, parts).await?;
    let mut fresh = [0; 32];
    entropy.fill(&mut fresh);
    let access = SignInContext {
        secret: db.secret(fresh).await?,
        db: db.clone(),
        report: Arc::clone(&report),
        entropy,
        origin,
        inside: rent.as_ref().map(|_| parse_origin(CLOUD_INSIDE, "machines")).transpose()?,
        domains: config.sign_in_domains.clone(),
    };
    let settler = Arc::new(Settler {
        db: db.clone(),
        chain,
        gas: config.chain.fee_policy(),
        clock: Arc::clone(&clock),
        ids: ids.clone(),
        report: Arc::clone(&report),
        faults,
        fresh: PaymentQueue::default(),
        unpaid_gas: Mutex::default(),
        changes: broadcast::Sender::new(HEARD_MAX),
    });
    let minimum = i64::from(config.minimum_balance_cents);
    let upstreams = upstreams(config, launcher, &clock).await?;
    let meter = Arc::new(ChatService {
        db: db.clone(),
        models: config.models.iter().map(|model| upstreams.offered(model.clone())).collect(),
        upstreams,
        minimum: Microcents::from_cents(minimum)
            .map_err(|error| CloudError::Config(error.to_string()))?,
        ids: ids.clone(),
        started: clock.now(),
        tasks,
        report: Arc::clone(&report),
        calls: CallGate::new(config.call_limits),
    });
    let terms = config.chain.terms()?;
    let transfer_daily_cents = config.transfer_daily_cents.into();
    Ok(App {
        db,
        access,
        terms,
        settler,
        meter,
        clock,
        ids,
        report,
        public_url,
        transfer_daily_cents,
        rent,
    })
}

/// Reads an origin that a key of the configuration leads to.
fn parse_origin(text: &str, key: &str) -> Result<Origin, CloudError> {
    text.parse()
        .map_err(|error: automaton_net::OriginError| CloudError::Config(format!("{key}: {error}")))
}

/// The machines for rent, where the configuration and the host have some.
async fn rent(
    config: &CloudConfig,
    deps: &CloudDeps,
    parts: (Db, TaskSet, Origin, SocketAddr),
) -> Result<Option<MachineOffering>, CloudError> {
    let (db, tasks, origin, address) = parts;
    let clock = Arc::clone(&deps.clock);
    let Some(driver) = machine_driver(config, deps, reach_own(address), &tasks).await? else {
        return Ok(None);
    };
    let MachinesConfig {
        per_owner,
        in_all,
        disk_gib,
        free_gib_min,
        domain,
        public_url,
        region,
        ..
    } = config.machines.clone();
    let bounds = MachineCapacity { in_all, free_min: free_gib_min.map(|gib| u64::from(gib) << 30) };
    let report = Arc::clone(&deps.report);
    let machines = Machines::new(db, driver, clock, report, tasks, bounds);
    let limits = MachineQuota { per_owner, in_all, disk_gib, has_room: true };
    let names = GatewayNames { origin, domain, public_url };
    let tunnels = Tunnels::default();
    Ok(Some(MachineOffering { machines, tunnels, limits, region, names }))
}

/// Returns the driver of the machines, if the configuration and the host have one. `cloud` is the
/// address of this cloud's API.
async fn machine_driver(
    config: &CloudConfig,
    deps: &CloudDeps,
    cloud: SocketAddr,
    tasks: &TaskSet,
) -> Result<Option<Arc<dyn MachineDriver>>, CloudError> {
    let MachinesConfig { enabled, egress, template, podman, .. } = config.machines.clone();
    let wrong = |why: &str| Err(CloudError::Config(why.to_owned()));
    match (podman, deps.launcher.clone()) {
        _ if !enabled => Ok(None),
        (Some(_), _) if !egress.leads_nowhere() => {
            wrong("machines.egress: containers have no way out; leave out it or machines.podman")
        }
        (Some(_), _) if template.is_some() => {
            wrong("machines.template: containers begin with their image; put the files into that")
        }
        (Some(podman), _) => {
            let driver = PodmanDriver::open(podman, &config.data, (cloud, tasks.clone())).await?;
            Ok(Some(Arc::new(driver)))
        }
        (None, Some(launcher)) => {
            let limits = probe(&launcher).cgroup;
            if !matches!(&limits, Feature::Available(base) if base.limits_cpus()) {
                warn!("machines are not held to their number of processors here");
            }
            let file = |path: &Path| {
                let path = path.to_owned();
                move |source| CloudError::File { path, source }
            };
            if let Some(template) = &template {
                std::fs::read_dir(template).map_err(file(template))?;
            }
            // The folders of a sandbox are named from the root of the file system.
            let folder = config.data.join(MACHINES);
            let folder = std::path::absolute(&folder).map_err(file(&folder))?;
            let host = MachineHost { folder, template, egress, cloud };
            Ok(Some(Arc::new(ProcessDriver::new(launcher, host, tasks.clone()))))
        }
        (None, None) => Ok(None),
    }
}

/// Those who think, in their order.
async fn upstreams(
    config: &CloudConfig,
    launcher: Option<Launcher>,
    clock: &Arc<dyn Clock>,
) -> Result<UpstreamPool, CloudError> {
    let is_one = config.upstreams().count() == 1;
    let mut entries = Vec::new();
    for file in config.upstreams() {
        let name = match (&file.name, &file.kind) {
            (Some(name), _) => format!("the upstream '{name}'"),
            (None, UpstreamKind::Server(server)) if !is_one => {
                format!("the upstream {}", server.base_url.origin())
            }
            (None, _) => "the upstream".to_owned(),
        };
        entries.push(UpstreamEntry {
            name,
            models: file.models.clone(),
            ids: file.upstream_ids.clone(),
            upstream: upstream(file, launcher.clone(), Arc::clone(clock)).await?,
            health: UpstreamHealth::default(),
        });
    }
    Ok(UpstreamPool { entries, clock: Arc::clone(clock) })
}

async fn upstream(
    config: &UpstreamConfig,
    launcher: Option<Launcher>,
    clock: Arc<dyn Clock>,
) -> Result<Upstream, CloudError> {
    let wrong = CloudError::Config;
    match &config.kind {
        UpstreamKind::Server(server) => {
            let url = server.format.url(server.base_url.url().as_str())?;
            let keys = server.key_files.iter().map(|file| config::secret(file));
            Ok(Upstream::Server(Box::new(UpstreamServer {
                client: client(&server.base_url)?,
                format: server.format,
                anthropic_version: server.anthropic_version.clone(),
                url,
                keys: KeyRing::new(keys.collect::<Result<_, _>>()?),
                limit_name: server.token_limit_name,
                idle: server.idle,
            })))
        }
        UpstreamKind::Local(files) => {
            let launcher = launcher
                .ok_or_else(|| wrong("upstream.local: there is no sandbox here".to_owned()))?;
            let probe = probe(&launcher);
            let config = LocalModelConfig::of_machine(launcher, probe, files.clone())?;
            Ok(Upstream::Local(Box::new(LocalModel::start(config, clock).await?)))
        }
    }
}

/// A client that may go to one configured place, private or not.
fn client(url: &HttpUrl) -> Result<HttpClient, CloudError> {
    let allow_private_origins = vec![url.origin().clone()];
    Ok(HttpClient::new(HttpClientConfig { allow_private_origins, ..HttpClientConfig::default() })?)
}

/// Gives every answer the id of its request.
async fn stamp(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let id: RequestId = app.ids.id();
    let mut response = next.run(request).await;
    // silent-ok: 26 letters and digits are always a header's value.
    if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert("x-request-id", value);
    }
    response
}
