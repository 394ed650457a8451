//! Machines as containers of podman, over the socket of its API.
//!
//! A machine is the container `automaton-<id>` over the image that the configuration names. Its
//! files are the layer above that image: they stay when it is stopped, and its processes stay when
//! the cloud ends. It has a loopback interface and no other, no capability, and nothing of the
//! host's; one address of that interface leads to the cloud's API. Must never open a path of a machine on the host: whatever is done with its files is
//! done by programs inside.

mod files;
mod run;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use automaton_core::error::chain;
use automaton_core::id::MachineId;
use automaton_core::wire::cloud::ExecReply;
use automaton_net::proxy::pass_all_on;
use automaton_sandbox::{Netns, PROXY_PORT, fs};
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, HostConfig, ResourcesUlimits,
};
use bollard::query_parameters as query;
use bollard::{ClientVersion, Docker};
use futures_util::StreamExt as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tracing::warn;

use super::dial::{CONNECT_WITHIN, Dialer, apart};
use super::disk::failed;
use super::driver::{
    BootRequest, DriverError, DriverFuture, DriverResult, FileRead, FileWrite, FolderListing,
    MachineCommand, MachineDriver, MachineStream, MachineUsage, PROCESSES,
};
use super::egress::{CLOUD_INSIDE, CLOUD_VARIABLE};
use super::tier::MachineTierSpec;
use crate::config::PodmanConfig;
use crate::error::CloudError;
use crate::tasks::TaskSet;

/// The label of our containers; its value is the folder of their cloud.
const LABEL: &str = "automaton.cloud";
/// The template of all containers. Their first process waits, and reaps orphans.
const BODY: &str = include_str!("podman/container.json");
/// The longest wait for the head of podman's answer, in seconds.
const ANSWER_SECS: u64 = 30;
/// The version of the API that is spoken, which podman has from its version 4 on.
const VERSION: ClientVersion = ClientVersion { major_version: 1, minor_version: 41 };

/// The driver.
pub(crate) struct PodmanDriver {
    api: Docker,
    image: String,
    /// The value of the label.
    cloud: String,
    /// The folder in which podman keeps the files of containers.
    store: PathBuf,
    dialer: Dialer,
    /// The address of the cloud's own API.
    api_address: SocketAddr,
    tasks: TaskSet,
    /// The ways of machines to the cloud by the first process of each. A way is served until it
    /// is dropped.
    // A std mutex, since nothing is awaited while it is held.
    ways: Mutex<HashMap<MachineId, (u32, oneshot::Sender<()>)>>,
}

impl PodmanDriver {
    /// Machines of the cloud whose folder this is.
    ///
    /// # Errors
    /// Fails if nobody answers at the socket, or the image cannot be a machine's.
    pub(crate) async fn open(
        PodmanConfig { socket, image }: PodmanConfig,
        folder: &Path,
        (api_address, tasks): (SocketAddr, TaskSet),
    ) -> Result<Self, CloudError> {
        let wrong = |why: String| CloudError::Config(format!("machines.podman: {why}"));
        let silent = |error: Error| {
            let remedy = "start podman's service (`podman system service`), or correct the socket";
            wrong(format!("nobody answers at {}: {error}; {remedy}", socket.display()))
        };
        let api = Docker::connect_with_unix(&socket.to_string_lossy(), ANSWER_SECS, &VERSION);
        let api = api.map_err(silent)?;
        let store = api.info().await.map_err(silent)?.docker_root_dir;
        let store = store.ok_or_else(|| wrong("podman does not say where its store is".into()))?;
        let found = api.inspect_image(&image).await.map_err(|error| {
            let remedy = "get it with `podman pull`, and name it as `podman images` does";
            wrong(format!("the image '{image}' cannot be had: {error}; {remedy}"))
        })?;
        // What is in a volume is in no layer: it would be in no count.
        if found.config.and_then(|it| it.volumes).is_some_and(|volumes| !volumes.is_empty()) {
            return Err(wrong(format!("the image '{image}' has volumes: name one without")));
        }
        let cloud = folder.canonicalize();
        let cloud = cloud.map_err(|source| CloudError::File { path: folder.into(), source })?;
        // The image itself, whatever is called so later.
        let image = found.id.unwrap_or(image);
        let cloud = cloud.display().to_string();
        let store = store.into();
        let dialer = Dialer::default();
        let ways = Mutex::default();
        Ok(Self { api, image, cloud, store, dialer, api_address, tasks, ways })
    }

    /// Opens a machine's way to the cloud, unless it is open. A host on which we may not join
    /// the network of a container has none.
    async fn open_way(&self, id: MachineId) -> DriverResult<()> {
        let Some(first) = self.first(id).await? else { return Ok(()) };
        let known = self.ways().get(&id).map(|(of, _)| *of);
        if known == Some(first) {
            return Ok(());
        }
        let network = Netns::of_process(first);
        // So it was that process's, whose id nobody else has got meanwhile.
        if self.first(id).await? != Some(first) {
            return Ok(());
        }
        let opened = apart(move || {
            let listener = network.and_then(|network| network.listen(PROXY_PORT));
            listener.map_err(unjoined)
        });
        let listener = match opened.await {
            Ok(listener) => TcpListener::from_std(listener).map_err(failed("serve the way"))?,
            Err(error) => {
                warn!(machine = %id, error = %chain(&error), "a machine does not reach the cloud");
                return Ok(());
            }
        };
        let (end, ended) = oneshot::channel();
        self.ways().insert(id, (first, end));
        let server = self.api_address;
        // That the sender is gone is what is waited for.
        self.tasks.spawn(async move {
            pass_all_on(listener, server, async { drop(ended.await) }).await;
        });
        Ok(())
    }

    fn ways(&self) -> MutexGuard<'_, HashMap<MachineId, (u32, oneshot::Sender<()>)>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A machine's container, if there is one.
    async fn inspect(
        &self,
        id: MachineId,
        sized: bool,
    ) -> DriverResult<Option<ContainerInspectResponse>> {
        let asked = query::InspectContainerOptionsBuilder::new().size(sized).build();
        absent("find the container", self.api.inspect_container(&name(id), Some(asked)).await)
    }

    /// The first process of a machine as the host sees it, if that is up.
    async fn first(&self, id: MachineId) -> DriverResult<Option<u32>> {
        let state = self.inspect(id, false).await?.and_then(|it| it.state);
        let pid = state.filter(|it| it.running == Some(true)).and_then(|it| it.pid);
        Ok(pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0))
    }

    /// Returns the description of a machine's container.
    fn body(&self, tier: MachineTierSpec) -> DriverResult<ContainerCreateBody> {
        let read = serde_json::from_str(BODY).map_err(failed("describe the container"));
        let mut body: ContainerCreateBody = read?;
        let [memory, disk] = [tier.memory_bytes(), tier.disk_bytes()].map(|it| it.try_into().ok());
        let file = ResourcesUlimits { name: Some("fsize".to_owned()), soft: disk, hard: disk };
        body.image = Some(self.image.clone());
        body.env.get_or_insert_default().push(format!("{CLOUD_VARIABLE}={CLOUD_INSIDE}"));
        body.labels = Some(HashMap::from([(LABEL.to_owned(), self.cloud.clone())]));
        body.host_config = body.host_config.map(|host| HostConfig {
            memory,
            memory_swap: memory,
            nano_cpus: Some(i64::from(tier.vcpu) * 1_000_000_000),
            pids_limit: Some(PROCESSES.saturating_mul(tier.vcpu).into()),
            ulimits: host.ulimits.map(|rest| [rest, vec![file]].concat()),
            ..host
        });
        Ok(body)
    }

    /// Ends the processes of a machine, if there is one.
    async fn end(&self, id: MachineId) -> DriverResult<()> {
        self.ways().remove(&id);
        let at_once = query::StopContainerOptionsBuilder::new().t(0).build();
        let stopped = self.api.stop_container(&name(id), Some(at_once)).await;
        absent("stop the container", stopped).map(drop)
    }
}

impl MachineDriver for PodmanDriver {
    fn boot(&self, BootRequest { id, tier, is_new }: BootRequest) -> DriverFuture<'_, ()> {
        Box::pin(async move {
            if self.inspect(id, false).await?.is_none() {
                if !is_new {
                    return Err(DriverError::Gone);
                }
                let named = query::CreateContainerOptionsBuilder::new().name(&name(id)).build();
                let made = self.api.create_container(Some(named), self.body(tier)?).await;
                made.map_err(failed("make the container"))?;
            }
            let started = self.api.start_container(&name(id), None).await;
            started.map_err(failed("start the container"))?;
            self.open_way(id).await?;
            self.ask(id, &["prepare"], "the image").await
        })
    }

    fn is_up(&self, id: MachineId) -> DriverFuture<'_, bool> {
        Box::pin(async move { Ok(self.first(id).await?.is_some()) })
    }

    fn exec(&self, id: MachineId, command: MachineCommand) -> DriverFuture<'_, ExecReply> {
        Box::pin(async move {
            // The containers stay up when the cloud is started again.
            self.open_way(id).await?;
            self.command(id, command).await
        })
    }

    fn shows_what_is_down(&self) -> bool {
        false
    }

    fn read(&self, id: MachineId, path: String) -> DriverFuture<'_, FileRead> {
        Box::pin(self.read_file(id, path))
    }

    fn write(&self, id: MachineId, file: FileWrite) -> DriverFuture<'_, (String, u64)> {
        Box::pin(self.write_file(id, file))
    }

    fn list(&self, id: MachineId, path: String) -> DriverFuture<'_, FolderListing> {
        Box::pin(self.list_folder(id, path))
    }

    fn connect(&self, id: MachineId, port: u16) -> DriverFuture<'_, Box<dyn MachineStream>> {
        Box::pin(async move {
            let first = self.first(id).await?.ok_or(DriverError::Down)?;
            // What is ours on its loopback is no port of its own.
            if port == PROXY_PORT {
                return Err(DriverError::Refused);
            }
            let network = Netns::of_process(first).map_err(unjoined)?;
            // So it was that process's, whose id nobody else has got meanwhile.
            if self.first(id).await? != Some(first) {
                return Err(DriverError::Down);
            }
            let open = move || network.connect(port, CONNECT_WITHIN).map_err(unjoined);
            self.dialer.dial(id, open).await
        })
    }

    fn usage(&self, id: MachineId) -> DriverFuture<'_, MachineUsage> {
        Box::pin(async move {
            let once = query::StatsOptionsBuilder::new().stream(false).one_shot(true).build();
            let told = self.api.stats(&name(id), Some(once)).next().await;
            let told = told.ok_or(DriverError::Down)?.map_err(failed("ask what it uses"))?;
            let cpu = told.cpu_stats.and_then(|it| it.cpu_usage?.total_usage);
            Ok(MachineUsage {
                memory_bytes: told.memory_stats.and_then(|it| it.usage),
                cpu: cpu.map(Duration::from_nanos),
                processes: told.pids_stats.and_then(|it| it.current),
                egress: None,
            })
        })
    }

    fn disk(&self, id: MachineId) -> DriverFuture<'_, u64> {
        Box::pin(async move {
            let found = self.inspect(id, true).await?.ok_or(DriverError::Gone)?;
            // What is not told is too much.
            Ok(found.size_rw.and_then(|size| u64::try_from(size).ok()).unwrap_or(u64::MAX))
        })
    }

    fn disk_room(&self) -> DriverFuture<'_, (u64, u64)> {
        let told = fs::disk_space(&self.store).map_err(failed("ask for the room on podman's disk"));
        Box::pin(std::future::ready(told))
    }

    fn stop(&self, id: MachineId) -> DriverFuture<'_, ()> {
        Box::pin(self.end(id))
    }

    fn delete(&self, id: MachineId) -> DriverFuture<'_, ()> {
        Box::pin(async move {
            let whole = query::RemoveContainerOptionsBuilder::new().force(true).v(true).build();
            let removed = self.api.remove_container(&name(id), Some(whole)).await;
            absent("remove the container", removed).map(drop)
        })
    }

    fn set_aside(&self, id: MachineId) -> DriverFuture<'_, Option<String>> {
        Box::pin(async move {
            self.end(id).await?;
            // The label stays, but what is called so is no machine's.
            let aside = format!("automaton-lost-{id}");
            let to = query::RenameContainerOptionsBuilder::new().name(&aside).build();
            let renamed = self.api.rename_container(&name(id), to).await;
            Ok(absent("rename the container", renamed)?.map(|()| format!("the container {aside}")))
        })
    }

    fn existing(&self) -> DriverFuture<'_, Vec<MachineId>> {
        Box::pin(async move {
            let ours = HashMap::from([("label", vec![format!("{LABEL}={}", self.cloud)])]);
            let asked = query::ListContainersOptionsBuilder::new().all(true).filters(&ours).build();
            let found = self.api.list_containers(Some(asked)).await;
            let found = found.map_err(failed("list the containers"))?.into_iter();
            Ok(found.filter_map(|it| machine(it.names?.first()?)).collect())
        })
    }

    fn leads_out(&self) -> bool {
        false
    }

    fn leave(&self) {}
}

/// Returns the name of a machine's container.
fn name(id: MachineId) -> String {
    format!("automaton-{id}")
}

/// The machine whose container is called so, as podman tells it.
fn machine(name: &str) -> Option<MachineId> {
    // silent-ok: any other name is nobody's business here.
    name.trim_start_matches('/').strip_prefix("automaton-")?.parse().ok()
}

/// Turns an answer of "not found" into nothing.
fn absent<T>(what: &'static str, answer: Result<T, Error>) -> DriverResult<Option<T>> {
    match answer {
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
        answer => answer.map(Some).map_err(failed(what)),
    }
}

fn unjoined(error: io::Error) -> DriverError {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return failed("join the machine's network, for which the cloud has to run as root")(error);
    }
    // Whatever else kept it, nobody is reached there.
    DriverError::Refused
}

#[cfg(test)]
mod tests {
    use super::super::tier::TIERS;
    use super::*;

    fn unreached() -> PodmanDriver {
        PodmanDriver {
            api: Docker::connect_with_unix("/dev/null", 1, &VERSION).unwrap(),
            image: "sha256:1".to_owned(),
            cloud: "/cloud".to_owned(),
            store: "/nowhere".into(),
            dialer: Dialer::default(),
            api_address: SocketAddr::from(([127, 0, 0, 1], 1)),
            tasks: TaskSet::default(),
            ways: Mutex::default(),
        }
    }

    #[test]
    fn a_container_is_a_machine_by_its_name_alone() {
        let id: MachineId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        assert_eq!(machine(&format!("/{}", name(id))), Some(id));
        for other in [format!("automaton-lost-{id}"), id.to_string(), "automaton-x".to_owned()] {
            assert_eq!(machine(&other), None, "{other}");
        }
    }

    #[test]
    fn a_container_has_limits_and_nothing_of_the_hosts() {
        let body = unreached().body(TIERS[2]).unwrap();
        assert_eq!(body.image.as_deref(), Some("sha256:1"));
        let host = body.host_config.unwrap();
        assert_eq!((host.memory, host.memory_swap), (Some(2 << 30), Some(2 << 30)));
        assert_eq!((host.nano_cpus, host.pids_limit), (Some(2_000_000_000), Some(1024)));
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(host.cap_drop.unwrap(), ["ALL"]);
        assert_eq!(host.security_opt.unwrap(), ["no-new-privileges"]);
        assert!(host.binds.is_none() && host.mounts.is_none() && host.privileged.is_none());
        let limits: Vec<_> = host.ulimits.unwrap().into_iter().map(|it| it.name.unwrap()).collect();
        assert_eq!(limits, ["core", "nofile", "nproc", "fsize"]);
    }

    #[tokio::test]
    async fn where_podman_does_not_answer_nothing_is_known() {
        let id: MachineId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        let podman = unreached();
        assert!(podman.is_up(id).await.is_err(), "it may be up");
        assert!(podman.disk(id).await.is_err() && podman.disk_room().await.is_err());
        let boot = BootRequest { id, tier: TIERS[0], is_new: true };
        assert!(matches!(podman.boot(boot).await, Err(DriverError::Failed { .. })));
    }

    #[test]
    fn where_we_may_not_join_it_is_said_and_elsewhere_nobody_listens() {
        let of = |kind: io::ErrorKind| unjoined(kind.into());
        assert!(of(io::ErrorKind::PermissionDenied).to_string().contains("run as root"));
        assert!(matches!(of(io::ErrorKind::NotFound), DriverError::Refused));
    }
}
