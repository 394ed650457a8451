//! Machines for rent: creating and deleting them, commands, files and ports.
//!
//! Requests that change something carry an idempotency key of the caller, so that a lost reply
//! costs nothing twice. A command's timeout is its own limit plus a margin: its reply begins at
//! once and ends with the command. A reply that names no machine is an error.

use std::time::Duration;

use automaton_core::id::RemoteMachineId;
use automaton_core::secret::Secret;
use automaton_core::wire::cloud::{
    AckReply, CreateMachineRequest, ExecReply, ExecRequest, ExposePortRequest, FilesReply,
    MachineReply, MachinesReply, PortReply, PricingReply, TUNNEL_PROTOCOL, TunnelReply,
};
use automaton_net::{Deadlines, Header, HttpMethod, HttpRequest, Retry, Upgraded};

use crate::{CloudClient, CloudClientError, with_body};

/// The extra time for the reply after a command's own limit.
const MARGIN: Duration = Duration::from_secs(30);
/// The largest reply to a command: two outputs, each capped by the cloud.
const EXEC_BYTES_MAX: u64 = 4 << 20;
/// The timeout of creating a machine.
const BOOT_MAX: Duration = Duration::from_secs(120);

/// A machine with the key of its account.
#[derive(Debug, Clone, Copy)]
pub struct MachineRef<'a> {
    /// The account's key.
    pub key: &'a Secret,
    /// The machine.
    pub id: &'a RemoteMachineId,
}

impl CloudClient {
    /// Rents a machine. The same request under the same key returns the same machine.
    ///
    /// # Errors
    /// Returns [`CloudClientError`]. Then it is unknown whether a machine was created.
    pub async fn create_machine(
        &self,
        key: &Secret,
        wanted: &CreateMachineRequest,
        idempotency_key: &str,
    ) -> Result<MachineReply, CloudClientError> {
        let request = self.request(HttpMethod::Post, &["v1", "sandboxes"], Some(key.clone()))?;
        let mut request = idempotent(with_body(request, wanted)?, idempotency_key);
        request.deadlines = Deadlines { idle: BOOT_MAX, total: BOOT_MAX };
        self.json(request).await
    }

    /// Returns the machines for rent, and their prices.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn pricing(&self, key: &Secret) -> Result<PricingReply, CloudClientError> {
        self.question(&["v1", "credits", "pricing"], key).await
    }

    /// Returns the machines of the account.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn machines(&self, key: &Secret) -> Result<MachinesReply, CloudClientError> {
        self.question(&["v1", "sandboxes"], key).await
    }

    /// Deletes a machine with everything on it.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn delete_machine(&self, machine: MachineRef<'_>) -> Result<(), CloudClientError> {
        self.reply(self.machine_request(HttpMethod::Delete, machine, &[])?).await.map(drop)
    }

    /// Stops a machine. Its files stay, and it costs nothing from then on.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn stop_machine(&self, machine: MachineRef<'_>) -> Result<(), CloudClientError> {
        self.reply(self.machine_request(HttpMethod::Post, machine, &["stop"])?).await.map(drop)
    }

    /// Starts a stopped machine, with its files.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn start_machine(&self, machine: MachineRef<'_>) -> Result<(), CloudClientError> {
        let mut request = self.machine_request(HttpMethod::Post, machine, &["start"])?;
        request.deadlines = Deadlines { idle: BOOT_MAX, total: BOOT_MAX };
        self.reply(request).await.map(drop)
    }

    /// Runs a command on a machine, once under this key.
    ///
    /// # Errors
    /// Returns [`CloudClientError`]. Then the outcome of the command is unknown.
    pub async fn exec(
        &self,
        machine: MachineRef<'_>,
        asked: &ExecRequest,
        idempotency_key: &str,
    ) -> Result<ExecReply, CloudClientError> {
        let request =
            with_body(self.machine_request(HttpMethod::Post, machine, &["exec"])?, asked)?;
        let mut request = idempotent(request, idempotency_key);
        let total = Duration::from_millis(asked.timeout.unwrap_or_default()) + MARGIN;
        request.deadlines = Deadlines { total, ..Deadlines::default() };
        request.body_bytes_max = EXEC_BYTES_MAX;
        self.json(request).await
    }

    /// Reads a file on a machine. A longer file is an error.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn read_file(
        &self,
        machine: MachineRef<'_>,
        path: &str,
        bytes_max: u64,
    ) -> Result<Vec<u8>, CloudClientError> {
        let mut request = self.machine_request(HttpMethod::Get, machine, &["files", "download"])?;
        request.url.query_pairs_mut().append_pair("path", path);
        (request.body_bytes_max, request.retry) = (bytes_max, Retry::Idempotent);
        self.reply(request).await
    }

    /// Replaces a file on a machine.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn write_file(
        &self,
        machine: MachineRef<'_>,
        path: &str,
        bytes: Vec<u8>,
    ) -> Result<(), CloudClientError> {
        let mut request = self.machine_request(HttpMethod::Put, machine, &["files", "upload"])?;
        request.url.query_pairs_mut().append_pair("path", path);
        request.body = bytes;
        self.reply(request).await.map(drop)
    }

    /// Lists a folder of a machine.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn list_folder(
        &self,
        machine: MachineRef<'_>,
        path: &str,
    ) -> Result<FilesReply, CloudClientError> {
        let mut request = self.machine_request(HttpMethod::Get, machine, &["files", "list"])?;
        request.url.query_pairs_mut().append_pair("path", path);
        request.retry = Retry::Idempotent;
        self.json(request).await
    }

    /// Opens a port of a machine to everybody.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn expose_port(
        &self,
        machine: MachineRef<'_>,
        wanted: &ExposePortRequest,
    ) -> Result<PortReply, CloudClientError> {
        let request = self.machine_request(HttpMethod::Post, machine, &["ports", "expose"])?;
        self.json(with_body(request, wanted)?).await
    }

    /// Closes a port of a machine.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn remove_port(
        &self,
        machine: MachineRef<'_>,
        port: u16,
    ) -> Result<AckReply, CloudClientError> {
        self.json(self.machine_request(
            HttpMethod::Delete,
            machine,
            &["ports", &port.to_string()],
        )?)
        .await
    }

    /// Returns the tunnel of the account. Its ports are opened like a machine's, and lead to the
    /// client that accepts its visitors.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn tunnel(&self, key: &Secret) -> Result<TunnelReply, CloudClientError> {
        let mut request = self.request(HttpMethod::Post, &["v1", "tunnels"], Some(key.clone()))?;
        // There is at most one.
        request.retry = Retry::Question;
        self.json(request).await
    }

    /// Waits for a visitor of the tunnel's ports, by [`TUNNEL_PROTOCOL`]. Returns the connection.
    ///
    /// # Errors
    /// Returns [`CloudClientError`].
    pub async fn await_visitor(
        &self,
        tunnel: MachineRef<'_>,
    ) -> Result<Upgraded, CloudClientError> {
        let id = tunnel.id.to_string();
        let key = tunnel.key.clone();
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

    fn machine_request(
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

/// Makes a request idempotent, so that it may be retried.
fn idempotent(mut request: HttpRequest, idempotency_key: &str) -> HttpRequest {
    request.idempotency_key = Some(idempotency_key.to_owned());
    request.retry = Retry::Idempotent;
    request
}
