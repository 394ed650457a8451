//! Pure: the messages between launcher and helper.
//!
//! The launcher passes one [`HelperRequest`] in a sealed file. The helper answers with
//! [`HelperReport`]s, one a packet. The program never sees either descriptor.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::outcome::ExitStatus;
use crate::plan::{HelperScript, ProgramExec};
use crate::probe::Probe;

/// The descriptor from which the helper reads its request.
pub(crate) const REQUEST_FD: i32 = 3;
/// The socket on which the helper reports.
pub(crate) const REPORT_FD: i32 = 4;
/// The pipe whose other end closes when the run has to end.
pub(crate) const LIFELINE_FD: i32 = 5;
/// The first descriptor for the program, in the plan's order.
pub(crate) const INHERIT_FD: i32 = 6;

/// A request to the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HelperRequest {
    /// Run a program.
    Run {
        script: Box<HelperScript>,
        /// The numbers inside of the descriptors from [`INHERIT_FD`] on.
        targets: Vec<i32>,
    },
    /// Try every feature, and with a workspace the features that depend on its place.
    Probe { workspace: Option<PathBuf> },
}

/// An order of the launcher to the first process of a session, over the socket on which it
/// reports. The order is in a sealed file, the first descriptor of its packet.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SessionRequest {
    /// Start a program. Its standard streams, its report socket and its lifeline come with it.
    Run {
        exec: ProgramExec,
        /// True if its standard input is a terminal that it has to itself.
        terminal: bool,
    },
    /// Connect to a port of the loopback. The socket for the answer comes with it.
    Connect { port: u16 },
}

/// A failed step and its error.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StepFailure {
    pub(crate) step: String,
    pub(crate) problem: String,
}

/// A report of the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HelperReport {
    /// The listening socket of the proxy comes with this packet.
    Proxy,
    /// The program has been executed, or the session waits for orders.
    Started,
    /// A socket that is connected, or about to be, comes with this packet.
    Connected,
    /// A step failed. Nothing was run.
    Failed(StepFailure),
    /// The program ended.
    Ended(ExitStatus),
    /// The counts of the control group, after the end of the tree.
    Usage { memory_kills: u64 },
    /// The answer to [`HelperRequest::Probe`].
    Features(Box<Probe>),
}

/// The largest packet: a probe with its reasons.
pub(crate) const PACKET_BYTES_MAX: usize = 16 << 10;
