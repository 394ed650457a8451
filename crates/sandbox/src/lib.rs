//! Runs untrusted programs, and hardens our own.
//!
//! Nothing that an agent, a skill or a model asks for runs on the bare host: [`plan::plan`] turns
//! a [`SandboxSpec`] into ordered steps, and a [`Launcher`] executes them in a helper process. If
//! the kernel lacks a layer, planning fails with [`plan::PlanRefusal`]: there is no weaker level
//! to fall back to. This is the only crate with `unsafe`. So it also provides the operating
//! system functions of the other crates: file handles beneath the workspace ([`fs`]), our own
//! children ([`process`]), snapshots of the workspace ([`snapshot`]), and the hardening of our own
//! processes ([`harden()`]). It must never use tokio.

mod boot;
mod capture;
#[cfg(feature = "drill")]
pub mod drill;
pub mod fs;
mod harden;
mod holes;
mod launch;
mod lines;
mod linux;
mod netns;
mod outcome;
pub mod path;
pub mod plan;
mod probe;
pub mod process;
mod pump;
mod report;
mod running;
mod session;
pub mod snapshot;
mod spec;
mod terminal;
mod vault;

pub use boot::SystemBootClock;
pub use capture::{CaptureBuffer, CapturedOutput};
pub use fs::{AtomicFile, FileKind, FolderEntry, FsError, ListOptions, Listing, WorkspaceDir};
pub use harden::{HardenError, harden};
pub use holes::next_data;
pub use launch::{LaunchError, Launcher};
pub use lines::{LineRange, LinesRead, TextLine, read_lines};
pub use linux::helper::{ARG0, helper_main_if_invoked};
pub use netns::Netns;
pub use outcome::{CgroupVersion, Enforcement, ExitStatus, RunOutcome, SessionUsage};
pub use path::{PathError, WorkspacePath};
pub use plan::{Plan, PlanRefusal, plan};
pub use probe::{CgroupBase, Feature, Probe, probe, probe_with};
pub use running::{KillHandle, RunHandle};
pub use session::Session;
pub use spec::{
    Bind, Capture, Defence, Defences, HOME_INSIDE, Inherit, Network, PROXY_INSIDE, PROXY_PORT,
    Program, RunLimits, SandboxSpec, SessionProgram,
};
pub use terminal::{converse, terminal_columns};
pub use vault::{LockedBytes, VaultError, confine_key_holder};
