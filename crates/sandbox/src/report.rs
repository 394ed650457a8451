//! Pure: what launcher and helper say to each other.
//!
//! The launcher passes one [`HelperRequest`] in a sealed file; the helper answers
//! with [`HelperReport`]s, one a packet. The program never sees either descriptor.

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
/// The first of the descriptors meant for the program, in the plan's order.
pub(crate) const INHERIT_FD: i32 = 6;

/// What the helper is asked to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HelperRequest {
    /// Run a program.
    Run {
        script: Box<HelperScript>,
        /// The numbers inside of the descriptors from [`INHERIT_FD`] on.
        targets: Vec<i32>,
    },
    /// Try every feature, and with this workspace what depends on where it is.
    Probe { workspace: Option<PathBuf> },
}

/// What the first process of a session is asked, by its launcher, over the socket on which
/// it reports. The order is in a sealed file, the first descriptor of its packet.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SessionRequest {
    /// Start a program. With it come its standard streams, the socket on which its end is
    /// told, and its lifeline.
    Run {
        exec: ProgramExec,
        /// Whether its standard input is a terminal that it has to itself.
        terminal: bool,
    },
    /// Connect to a port of the loopback. With it comes the socket for the answer.
    Connect { port: u16 },
}

/// A step that failed: which, and what was met.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StepFailure {
    pub(crate) step: String,
    pub(crate) problem: String,
}

/// What the helper has to say.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HelperReport {
    /// The listening socket of the proxy, which comes with this packet.
    Proxy,
    /// The program has been executed, or orders are awaited.
    Started,
    /// A socket that is connected, or about to be, which comes with this packet.
    Connected,
    /// A step failed; nothing was run.
    Failed(StepFailure),
    /// The program ended.
    Ended(ExitStatus),
    /// What the control group counted, after the end of the tree.
    Usage { memory_kills: u64 },
    /// The answer to [`HelperRequest::Probe`].
    Features(Box<Probe>),
}

/// The largest packet: a probe with its reasons.
pub(crate) const PACKET_BYTES_MAX: usize = 16 << 10;
