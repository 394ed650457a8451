//! Machines for rent: making and ending them, commands, files and ports.
//!
//! What changes something is sent under a key of the caller's, so that a reply that was lost
//! costs nothing twice. A command is waited for as long as it may run, and longer: its reply
//! begins at once and ends when it does. A reply that names no machine is no machine.

use std::time::Duration;

use automaton_core::id::RemoteMachineId;
use automaton_core::secret::Secret;
use automaton_core::wire::cloud::{
    AckReply, CreateMachineRequest, ExecReply, ExecRequest, ExposePortRequest, FilesReply,
    MachineReply, MachinesReply, PortReply, PricingReply, TUNNEL_PROTOCOL, TunnelReply,
};
use automaton_net::{Deadlines, Header, HttpMethod, HttpRequest, Retry, Upgraded};

use crate::{CloudClient, CloudClientError, with_body};

/// How much longer than the command its reply may take.
const MARGIN: Duration = Duration::from_secs(30);
/// The largest reply to a command: two outputs, each capped by the cloud.
const EXEC_BYTES_MAX: u64 = 4 << 20;
/// How long the making of a machine may take.
const BOOT_MAX: Duration = Duration::from_secs(120);

/// A machine and the key of the account that has it.
#[derive(Debug, Clone, Copy)]
pub struct MachineRef<'a> {
    /// The account's key.
    pub key: &'a Secret,
    /// The machine.
    pub id: &'a RemoteMachineId,
}

impl CloudClient {
    /// Rents a machine. The same request under the same key is the same machine.
    ///
    /// # Errors
    /// [`CloudClientError`]; then it is unknown whether there is one.
    pub async fn create_machine(
        &self,
        key: &Secret,
        wanted: &CreateMachineRequest,
        idempotency_key: &str,
    ) -> Result<MachineReply, CloudClientError> {
        let request = self.request(HttpMethod::Post, &["v1", "sandboxes"], Some(key.clone()))?;
        let mut request = once(with_body(request, wanted)?, idempotency_key);
        request.deadlines = Deadlines { idle: BOOT_MAX, total: BOOT_MAX };
        self.json(request).await
    }

    /// What machines there are for rent, and their prices.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn pricing(&self, key: &Secret) -> Result<PricingReply, CloudClientError> {
        self.question(&["v1", "credits", "pricing"], key).await
    }

    /// The machines of the account.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn machines(&self, key: &Secret) -> Result<MachinesReply, CloudClientError> {
        self.question(&["v1", "sandboxes"], key).await
    }

    /// Ends a machine with all that is on it.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn delete_machine(&self, machine: MachineRef<'_>) -> Result<(), CloudClientError> {
        self.reply(self.of(HttpMethod::Delete, machine, &[])?).await.map(drop)
    }

    /// Ends the programs of a machine; its files stay, and it costs nothing any more.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn stop_machine(&self, machine: MachineRef<'_>) -> Result<(), CloudClientError> {
        self.reply(self.of(HttpMethod::Post, machine, &["stop"])?).await.map(drop)
    }

    /// Starts a machine that was stopped, with its files.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn start_machine(&self, machine: MachineRef<'_>) -> Result<(), CloudClientError> {
        let mut request = self.of(HttpMethod::Post, machine, &["start"])?;
        request.deadlines = Deadlines { idle: BOOT_MAX, total: BOOT_MAX };
        self.reply(request).await.map(drop)
    }

    /// Runs a command on a machine, once under this key.
    ///
    /// # Errors
    /// [`CloudClientError`]; then it is unknown what became of the command.
    pub async fn exec(
        &self,
        machine: MachineRef<'_>,
        asked: &ExecRequest,
        idempotency_key: &str,
    ) -> Result<ExecReply, CloudClientError> {
        let request = with_body(self.of(HttpMethod::Post, machine, &["exec"])?, asked)?;
        let mut request = once(request, idempotency_key);
        let total = Duration::from_millis(asked.timeout.unwrap_or_default()) + MARGIN;
        request.deadlines = Deadlines { total, ..Deadlines::default() };
        request.body_bytes_max = EXEC_BYTES_MAX;
        self.json(request).await
    }

    /// The bytes of a file on a machine; a longer one is an error.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn read_file(
        &self,
        machine: MachineRef<'_>,
        path: &str,
        bytes_max: u64,
    ) -> Result<Vec<u8>, CloudClientError> {
        let mut request = self.of(HttpMethod::Get, machine, &["files", "download"])?;
        request.url.query_pairs_mut().append_pair("path", path);
        (request.body_bytes_max, request.retry) = (bytes_max, Retry::Idempotent);
        self.reply(request).await
    }

    /// Replaces a file on a machine.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn write_file(
        &self,
        machine: MachineRef<'_>,
        path: &str,
        bytes: Vec<u8>,
    ) -> Result<(), CloudClientError> {
        let mut request = self.of(HttpMethod::Put, machine, &["files", "upload"])?;
        request.url.query_pairs_mut().append_pair("path", path);
        request.body = bytes;
        self.reply(request).await.map(drop)
    }

    /// What is in one folder of a machine.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn list_folder(
        &self,
        machine: MachineRef<'_>,
        path: &str,
    ) -> Result<FilesReply, CloudClientError> {
        let mut request = self.of(HttpMethod::Get, machine, &["files", "list"])?;
        request.url.query_pairs_mut().append_pair("path", path);
        request.retry = Retry::Idempotent;
        self.json(request).await
    }

    /// Opens a port of a machine to everybody.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn expose_port(
        &self,
        machine: MachineRef<'_>,
        wanted: &ExposePortRequest,
    ) -> Result<PortReply, CloudClientError> {
        let request = self.of(HttpMethod::Post, machine, &["ports", "expose"])?;
        self.json(with_body(request, wanted)?).await
    }

    /// Closes it again.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn remove_port(
        &self,
        machine: MachineRef<'_>,
        port: u16,
    ) -> Result<AckReply, CloudClientError> {
        self.json(self.of(HttpMethod::Delete, machine, &["ports", &port.to_string()])?).await
    }

    /// The tunnel of the account: a place whose ports are opened like a machine's, and lead to
    /// whoever takes its visitors.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn tunnel(&self, key: &Secret) -> Result<TunnelReply, CloudClientError> {
        let mut request = self.request(HttpMethod::Post, &["v1", "tunnels"], Some(key.clone()))?;
        // There is one at most.
        request.retry = Retry::Question;
        self.json(request).await
    }

    /// A connection that waits for a visitor of the tunnel's ports, as
    /// [`TUNNEL_PROTOCOL`] says.
    ///
    /// # Errors
    /// [`CloudClientError`].
    pub async fn await_visitor(
        &self,
        tunnel: MachineRef<'_>,
    ) -> Result<Upgraded, CloudClientError> {
        let (id, key) = (tunnel.id.to_string(), tunnel.key.clone());
        let path = ["v1", "tunnels", &id, "connections"];
        let mut request = self.request(HttpMethod::Post, &path, Some(key))?;
        let upgrade = [("connection", "upgrade"), ("upgrade", TUNNEL_PROTOCOL)];
        request.headers.extend(upgrade.map(|(name, value)| Header::Open(name, value.to_owned())));
        let response = self.client.request(request).await?;
        match response.status {
            101 => Ok(response.upgrade().await?),
            _ => Err(self.refused(response).await?),
        }
    }

    fn of(
        &self,
        method: HttpMethod,
        machine: MachineRef<'_>,
        what: &[&str],
    ) -> Result<HttpRequest, CloudClientError> {
        let id = machine.id.to_string();
        let path = [&["v1", "sandboxes", &id], what].concat();
        self.request(method, &path, Some(machine.key.clone()))
    }
}

/// Has the cloud do it once, however often it is sent.
fn once(mut request: HttpRequest, idempotency_key: &str) -> HttpRequest {
    request.idempotency_key = Some(idempotency_key.to_owned());
    request.retry = Retry::Idempotent;
    request
}
