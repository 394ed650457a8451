//! Limits of single processes.
//!
//! They are only ever lowered, and hard: the program cannot raise them.

use nix::sys::resource::{self, getrlimit, setrlimit};

use super::{Named as _, Problem};
use crate::plan::{Resource, ResourceLimit};

/// Lowers each limit to its value, or leaves it where it is lower already.
pub(crate) fn apply(limits: &[ResourceLimit]) -> Result<(), Problem> {
    for limit in limits {
        let resource = match limit.resource {
            Resource::Core => resource::Resource::RLIMIT_CORE,
            Resource::FileSize => resource::Resource::RLIMIT_FSIZE,
            Resource::OpenFiles => resource::Resource::RLIMIT_NOFILE,
            Resource::Cpu => resource::Resource::RLIMIT_CPU,
            Resource::Data => resource::Resource::RLIMIT_DATA,
            Resource::Processes => resource::Resource::RLIMIT_NPROC,
        };
        let step = || format!("limit {:?}", limit.resource);
        let (_, hard) = getrlimit(resource).step(step())?;
        let value = limit.value.min(hard);
        setrlimit(resource, value, value).step(step())?;
    }
    Ok(())
}
