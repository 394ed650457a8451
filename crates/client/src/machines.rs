//! Machines for rent: making and ending them, commands, files and ports.
//!
//! What changes something is sent under a key of the caller's, so that a reply that was lost
//! costs nothing twice. A command is waited for as long as it may run, and longer: its reply
//! begins at once and ends when it does. A reply that names no machine is no machine.

use std::time::Duration;

use automaton_core::id::MachineId;
use automaton_core::secret::Secret;
use automaton_core::wire::cloud::{
    CreateMachine, DoneReply, ExecReply, ExecRequest, ExposePort, FilesReply, MachineReply,
    MachinesReply, PortReply, PricingReply, TUNNEL_PROTOCOL, TunnelReply,
};
use automaton_net::{Deadlines, Header, Method, Request, Retry, Upgraded};

use crate::{ClientError, Cloud, with_body};

/// How much longer than the command its reply may take.
const MARGIN: Duration = Duration::from_secs(30);
/// The largest reply to a command: two outputs, each capped by the cloud.
const EXEC_BYTES_MAX: u64 = 4 << 20;
/// How long the making of a machine may take.
const BOOT_MAX: Duration = Duration::from_secs(120);

/// A machine and the key of the account that has it.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// The account's key.
    pub key: &'a Secret,
    /// The machine.
    pub id: MachineId,
}

impl Cloud {
    /// Rents a machine. The same request under the same key is the same machine.
    ///
    /// # Errors
    /// [`ClientError`]; then it is unknown whether there is one.
    pub async fn create_machine(
        &self,
        key: &Secret,
        wanted: &CreateMachine,
        idempotency_key: &str,
    ) -> Result<MachineReply, ClientError> {
        let request = self.request(Method::Post, &["v1", "sandboxes"], Some(key.clone()))?;
        let mut request = once(with_body(request, wanted)?, idempotency_key);
        request.deadlines = Deadlines { idle: BOOT_MAX, total: BOOT_MAX };
        self.json(request).await
    }

    /// What machines there are for rent, and their prices.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn pricing(&self, key: &Secret) -> Result<PricingReply, ClientError> {
        self.question(&["v1", "credits", "pricing"], key).await
    }

    /// The machines of the account.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn machines(&self, key: &Secret) -> Result<MachinesReply, ClientError> {
        self.question(&["v1", "sandboxes"], key).await
    }

    /// Ends a machine with all that is on it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_machine(&self, machine: Machine<'_>) -> Result<(), ClientError> {
        self.reply(self.of(Method::Delete, machine, &[])?).await.map(drop)
    }

    /// Runs a command on a machine, once under this key.
    ///
    /// # Errors
    /// [`ClientError`]; then it is unknown what became of the command.
    pub async fn exec(
        &self,
        machine: Machine<'_>,
        asked: &ExecRequest,
        idempotency_key: &str,
    ) -> Result<ExecReply, ClientError> {
        let request = with_body(self.of(Method::Post, machine, &["exec"])?, asked)?;
        let mut request = once(request, idempotency_key);
        let total = Duration::from_millis(asked.timeout.unwrap_or_default()) + MARGIN;
        request.deadlines = Deadlines { total, ..Deadlines::default() };
        request.body_bytes_max = EXEC_BYTES_MAX;
        self.json(request).await
    }

    /// The bytes of a file on a machine; a longer one is an error.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn read_file(
        &self,
        machine: Machine<'_>,
        path: &str,
        bytes_max: u64,
    ) -> Result<Vec<u8>, ClientError> {
        let mut request = self.of(Method::Get, machine, &["files", "download"])?;
        request.url.query_pairs_mut().append_pair("path", path);
        (request.body_bytes_max, request.retry) = (bytes_max, Retry::Idempotent);
        self.reply(request).await
    }

    /// Replaces a file on a machine.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn write_file(
        &self,
        machine: Machine<'_>,
        path: &str,
        bytes: Vec<u8>,
    ) -> Result<(), ClientError> {
        let mut request = self.of(Method::Put, machine, &["files", "upload"])?;
        request.url.query_pairs_mut().append_pair("path", path);
        request.body = bytes;
        self.reply(request).await.map(drop)
    }

    /// What is in one folder of a machine.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list_folder(
        &self,
        machine: Machine<'_>,
        path: &str,
    ) -> Result<FilesReply, ClientError> {
        let mut request = self.of(Method::Get, machine, &["files", "list"])?;
        request.url.query_pairs_mut().append_pair("path", path);
        request.retry = Retry::Idempotent;
        self.json(request).await
    }

    /// Opens a port of a machine to everybody.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn expose_port(
        &self,
        machine: Machine<'_>,
        wanted: &ExposePort,
    ) -> Result<PortReply, ClientError> {
        let request = self.of(Method::Post, machine, &["ports", "expose"])?;
        self.json(with_body(request, wanted)?).await
    }

    /// Closes it again.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn remove_port(
        &self,
        machine: Machine<'_>,
        port: u16,
    ) -> Result<DoneReply, ClientError> {
        self.json(self.of(Method::Delete, machine, &["ports", &port.to_string()])?).await
    }

    /// The tunnel of the account: a place whose ports are opened like a machine's, and lead to
    /// whoever takes its visitors.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn tunnel(&self, key: &Secret) -> Result<TunnelReply, ClientError> {
        let mut request = self.request(Method::Post, &["v1", "tunnels"], Some(key.clone()))?;
        // There is one at most.
        request.retry = Retry::Question;
        self.json(request).await
    }

    /// A connection that waits for a visitor of the tunnel's ports, as
    /// [`TUNNEL_PROTOCOL`] says.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn await_visitor(&self, tunnel: Machine<'_>) -> Result<Upgraded, ClientError> {
        let (id, key) = (tunnel.id.to_string(), tunnel.key.clone());
        let path = ["v1", "tunnels", &id, "connections"];
        let mut request = self.request(Method::Post, &path, Some(key))?;
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
        method: Method,
        machine: Machine<'_>,
        what: &[&str],
    ) -> Result<Request, ClientError> {
        let id = machine.id.to_string();
        let path = [&["v1", "sandboxes", &id], what].concat();
        self.request(method, &path, Some(machine.key.clone()))
    }
}

/// Has the cloud do it once, however often it is sent.
fn once(mut request: Request, idempotency_key: &str) -> Request {
    request.idempotency_key = Some(idempotency_key.to_owned());
    request.retry = Retry::Idempotent;
    request
}
