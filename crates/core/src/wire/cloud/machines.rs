//! Pure: machines for rent: `/v1/sandboxes` with commands, files and ports.
//!
//! Clients in the field differ in their spelling, so requests are read in both and replies
//! have both where a reader would otherwise miss something. An id that is missing or blank
//! must never be read as a machine, least of all as the one that we run on.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::RemoteMachineId;
use crate::money::Microcents;
use crate::time::Timestamp;

/// Message for a machine that does not exist or belongs to somebody else. It is the same for
/// both, so that nobody finds out which.
pub const NO_SUCH_MACHINE: &str = "Sandbox not found or access denied";
/// Message if no machine can be made now.
pub const NO_WORKERS: &str = "No healthy workers available";
/// The code of the refusal of what a machine's disk has no room for.
pub const DISK_FULL: &str = "DISK_FULL";

/// The body of `POST /v1/sandboxes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CreateMachineRequest {
    /// Its name, for people.
    pub name: String,
    /// Processors, at least.
    #[serde(deserialize_with = "at_most_u32")]
    pub vcpu: u32,
    /// Memory in MiB, at least.
    #[serde(alias = "memoryMb", deserialize_with = "at_most_u32")]
    pub memory_mb: u32,
    /// Disk in GiB, at least.
    #[serde(alias = "diskGb", deserialize_with = "at_most_u32")]
    pub disk_gb: u32,
    /// Requested region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

/// A size. One that does not fit is more than there is, and is answered as that.
fn at_most_u32<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    u64::deserialize(from).map(|size| u32::try_from(size).unwrap_or(u32::MAX))
}

impl Default for CreateMachineRequest {
    fn default() -> Self {
        Self { name: String::new(), vcpu: 1, memory_mb: 512, disk_gb: 5, region: None }
    }
}

/// A machine, as every reply shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineReply {
    /// Its id.
    #[serde(alias = "sandbox_id")]
    pub id: RemoteMachineId,
    /// A label for its host names.
    #[serde(default)]
    pub short_id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// State of the machine; `running` means that it can be used.
    #[serde(default = "unknown")]
    pub status: String,
    /// Region.
    #[serde(default)]
    pub region: String,
    /// Processors.
    #[serde(default)]
    pub vcpu: u32,
    /// Memory in MiB.
    #[serde(default)]
    pub memory_mb: u32,
    /// Disk in GiB.
    #[serde(default)]
    pub disk_gb: u32,
    /// The price of a month in which it runs throughout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_cents: Option<i64>,
    /// Cost so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed_microcents: Option<Microcents>,
    /// Reason of a stop or failure that nobody asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time of the request, in ISO 8601.
    #[serde(default)]
    pub created_at: String,
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The reply to `GET /v1/sandboxes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachinesReply {
    /// The machines of the wallet that are not deleted, newest first.
    #[serde(alias = "data")]
    pub sandboxes: Vec<MachineReply>,
}

/// The body of `POST /v1/sandboxes/{id}/exec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecRequest {
    /// A command line for the machine's shell.
    pub command: String,
    /// Timeout in milliseconds.
    #[serde(default, alias = "timeout_ms", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

/// The reply to it, which may come after any number of spaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecReply {
    /// Standard output; of a long one the beginning and the end.
    #[serde(default)]
    pub stdout: String,
    /// The same of its standard error.
    #[serde(default)]
    pub stderr: String,
    /// Exit code as shells have it: 124 for the time limit, 137 for a kill, 125 for a command
    /// that could not be run or followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The same, for readers of the other spelling.
    #[serde(rename = "exitCode", default, skip_serializing_if = "Option::is_none")]
    pub exit_code_too: Option<i32>,
    /// True if no text of others can reach the machine: it has no way out and no exposed port.
    /// Only our server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolated: Option<bool>,
}

impl ExecReply {
    /// A reply in both spellings.
    #[must_use]
    pub const fn new(stdout: String, stderr: String, code: i32) -> Self {
        Self { stdout, stderr, exit_code: Some(code), exit_code_too: Some(code), isolated: None }
    }

    /// Returns the exit code; -1 if the reply has none, which is no success.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.exit_code.or(self.exit_code_too).unwrap_or(-1)
    }
}

/// The body of `POST /v1/sandboxes/{id}/files/upload/json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadRequest {
    /// Path of the file.
    pub path: String,
    /// The whole new content.
    pub content: String,
}

/// The reply to it, and to an upload of bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadReply {
    /// `true`.
    pub success: bool,
    /// The file as the machine sees it.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// The reply to `GET /v1/sandboxes/{id}/files/list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesReply {
    /// The folder.
    pub path: String,
    /// Entries, by name.
    pub files: Vec<FileEntry>,
    /// True if there are more entries than are listed.
    pub truncated: bool,
}

/// One thing in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
    /// Kind of the entry.
    #[serde(rename = "type")]
    pub kind: FileEntryKind,
    /// The size of a file.
    pub size: u64,
}

/// Kind of an entry in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileEntryKind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link, which is never followed from outside.
    Link,
    /// A device, pipe or socket.
    Special,
}

/// The body of `POST /v1/sandboxes/{id}/ports/expose`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExposePortRequest {
    /// The port inside the machine.
    pub port: u16,
    /// Price of each request in USDC, as a decimal such as `0.01`; `None` or zero if it is free.
    #[serde(default, alias = "priceUsdc", skip_serializing_if = "Option::is_none")]
    pub price_usdc: Option<String>,
}

/// An exposed port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortReply {
    /// The port inside the machine.
    pub port: u16,
    /// Public address.
    #[serde(alias = "publicUrl", alias = "url")]
    pub public_url: String,
    /// Address for clients that cannot resolve that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_url: Option<String>,
    /// Price of each request in USDC, as a decimal; `None` if it is free.
    #[serde(default, alias = "priceUsdc", skip_serializing_if = "Option::is_none")]
    pub price_usdc: Option<String>,
}

/// The reply to `GET /v1/sandboxes/{id}/ports`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortsReply {
    /// The exposed ports, lowest first.
    pub ports: Vec<PortReply>,
}

/// The reply to what is just done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AckReply {
    /// `true`.
    pub success: bool,
    /// Description of the change.
    pub message: String,
}

/// Protocol to which a connection that waits for a tunnel's visitor is upgraded. The cloud sends
/// a port in digits with a line feed. The answer is [`TUNNEL_TAKEN`], after which the visitor's
/// bytes follow in both directions, or [`TUNNEL_NOBODY`].
pub const TUNNEL_PROTOCOL: &str = "automaton-tunnel/1";
/// The port answers.
pub const TUNNEL_TAKEN: u8 = b'+';
/// It does not, or is none that anybody may visit.
pub const TUNNEL_NOBODY: u8 = b'-';

/// The reply to `POST /v1/tunnels`: the caller's own sandbox, as a place of ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TunnelReply {
    /// Id that stands for the machine in the routes of exposed ports.
    pub id: RemoteMachineId,
    /// The label of its host names.
    pub short_id: String,
}

/// The reply to `GET /v1/sandboxes/{id}/metrics`. What is not known is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsReply {
    /// Memory in use, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Memory that it may use.
    pub memory_limit_bytes: u64,
    /// Processor time since it started, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Its files, when they were last counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Limit of its disk, in bytes.
    pub disk_limit_bytes: u64,
    /// Minutes that were charged.
    pub billed_minutes: u64,
    /// Charge for them.
    pub billed_microcents: Microcents,
    /// Until when it is paid for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid_until_ms: Option<Timestamp>,
    /// Outgoing traffic; `None` if it has no way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<EgressMetrics>,
}

/// Outgoing traffic of a machine's programs since the start of the last day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EgressMetrics {
    /// Requests that were let through.
    pub requests: u64,
    /// Requests that were not, for where they went to.
    pub refused: u64,
    /// Bytes in both directions.
    pub bytes: u64,
    /// Bytes that it may send and receive in a day.
    pub bytes_limit: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read() {
        let usual: CreateMachineRequest = serde_json::from_str(r#"{"name":"a"}"#).unwrap();
        assert_eq!((usual.vcpu, usual.memory_mb, usual.disk_gb), (1, 512, 5));
        let camel: CreateMachineRequest =
            serde_json::from_str(r#"{"name":"a","memoryMb":1024,"diskGb":10}"#).unwrap();
        assert_eq!((camel.memory_mb, camel.disk_gb), (1024, 10));
        for text in [r#"{"command":"ls","timeout":5}"#, r#"{"command":"ls","timeout_ms":5}"#] {
            assert_eq!(serde_json::from_str::<ExecRequest>(text).unwrap().timeout, Some(5));
        }
        for name in ["public_url", "publicUrl", "url"] {
            let text = format!(r#"{{"port":80,"{name}":"http://a"}}"#);
            assert_eq!(serde_json::from_str::<PortReply>(&text).unwrap().public_url, "http://a");
        }
        let free = ExposePortRequest { port: 80, price_usdc: None };
        assert_eq!(serde_json::to_string(&free).unwrap(), r#"{"port":80}"#);
        for name in ["price_usdc", "priceUsdc"] {
            let text = format!(r#"{{"port":80,"{name}":"0.01"}}"#);
            let asked = serde_json::from_str::<ExposePortRequest>(&text).unwrap();
            assert_eq!(asked.price_usdc.as_deref(), Some("0.01"));
        }
    }

    #[test]
    fn a_machine_without_an_id_is_none() {
        for id in [r#""id":"""#, r#""id":"null""#, r#""id":null"#, r#""name":"a""#] {
            let text = format!(r#"{{{id},"status":"running"}}"#);
            assert!(serde_json::from_str::<MachineReply>(&text).is_err(), "{id}");
        }
        let text = r#"{"sandbox_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}"#;
        let read: MachineReply = serde_json::from_str(text).unwrap();
        assert_eq!(read.status, "unknown");
    }

    #[test]
    fn an_exit_code_has_both_names() {
        let reply = ExecReply::new("a".to_owned(), String::new(), 3);
        let text = r#"{"stdout":"a","stderr":"","exit_code":3,"exitCode":3}"#;
        assert_eq!(serde_json::to_string(&reply).unwrap(), text);
        let code = |text: &str| serde_json::from_str::<ExecReply>(text).unwrap().code();
        assert_eq!((code(r#"{"exitCode":2}"#), code("{}")), (2, -1));
    }
}
