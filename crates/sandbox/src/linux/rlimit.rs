//! Limits of single processes.
//!
//! They are only lowered, and hard limits: the program cannot raise them.

use nix::sys::resource::{self, getrlimit, setrlimit};

use super::{StepContext as _, StepFailure};
use crate::plan::{NO_CORES, ResourceKind, ResourceLimit};

/// Sets the core dump limit to the value that also starts no core handler. If the limit is
/// already lower, only root may raise it.
pub(crate) fn forbid_core_dumps() -> Result<(), StepFailure> {
    let cores = resource::Resource::RLIMIT_CORE;
    let (_, hard) = getrlimit(cores).step("read the limit of core images")?;
    let set = setrlimit(cores, NO_CORES, NO_CORES);
    // An ordinary user whose limit is 0 keeps it: then no file is written.
    if hard < NO_CORES { Ok(()) } else { set.step("limit core images") }
}

/// Lowers each limit to its value. A lower limit stays as it is.
pub(crate) fn apply(limits: &[ResourceLimit]) -> Result<(), StepFailure> {
    for limit in limits {
        let resource = match limit.resource {
            ResourceKind::Core => resource::Resource::RLIMIT_CORE,
            ResourceKind::FileSize => resource::Resource::RLIMIT_FSIZE,
            ResourceKind::OpenFiles => resource::Resource::RLIMIT_NOFILE,
            ResourceKind::Cpu => resource::Resource::RLIMIT_CPU,
            ResourceKind::Data => resource::Resource::RLIMIT_DATA,
            ResourceKind::Processes => resource::Resource::RLIMIT_NPROC,
            ResourceKind::PendingSignals => resource::Resource::RLIMIT_SIGPENDING,
        };
        let step = || format!("limit {:?}", limit.resource);
        let (_, hard) = getrlimit(resource).step(step())?;
        let value = limit.value.min(hard);
        setrlimit(resource, value, value).step(step())?;
    }
    Ok(())
}
