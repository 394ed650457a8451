//! Pure: the machine features that each layer needs.
//!
//! A layer that is on and lacks a feature must be refused here, by name and with a remedy. No
//! later code checks again.

use super::PlanRefusal;
use crate::probe::Probe;
use crate::spec::{Defence, SandboxSpec};

const USER_NAMESPACES: &str = "Permit user namespaces: sysctl user.max_user_namespaces above 0, \
    kernel.unprivileged_userns_clone=1 on older Debian, and on Ubuntu an AppArmor profile with \
    `userns` for this program and for automaton-sandbox beside it; in a container, a seccomp profile that permits them.";
const MOUNTS: &str = "Permit mounts in user namespaces: on Ubuntu an AppArmor profile with \
    `userns` for this program and for automaton-sandbox beside it; in a container, permit mount and pivot_root.";
const NEWER_LINUX: &str = "Use Linux 5.13 or later.";
const OTHER_NAMESPACES: &str = "Use a kernel with CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS and \
    CONFIG_UTS_NS, as every distribution's is.";
const UNMASKED_PROC: &str = "Run outside of a container, or in one whose /proc is not masked \
    (Docker: --security-opt systempaths=unconfined).";
const LANDLOCK: &str = "Use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK, and name \
    `landlock` in the kernel's `lsm=` parameter.";
const SECCOMP: &str = "Use a kernel with CONFIG_SECCOMP_FILTER on x86_64 or aarch64.";

/// Refuses a specification that this machine cannot protect.
pub(super) fn check(spec: &SandboxSpec, probe: &Probe) -> Result<(), PlanRefusal> {
    let user = probe.user_namespace.missing();
    let mount = probe.mount_namespace.missing();
    let interface = probe.mount_interface.missing();
    let process = probe.process_namespace.missing();
    let network = probe.network_namespace.missing();
    let host_name = probe.host_name_namespace.missing();
    let needs = [
        (Defence::Users, "user namespaces", user, USER_NAMESPACES),
        (Defence::Files, "mount namespaces", mount, MOUNTS),
        (Defence::Files, "the mount interface of Linux 5.12", interface, NEWER_LINUX),
        (Defence::Processes, "process namespaces", process, OTHER_NAMESPACES),
        (Defence::Processes, "a /proc of its own", probe.private_proc.missing(), UNMASKED_PROC),
        (Defence::Network, "network namespaces", network, OTHER_NAMESPACES),
        (Defence::Ipc, "IPC namespaces", probe.ipc_namespace.missing(), OTHER_NAMESPACES),
        (Defence::HostName, "host name namespaces", host_name, OTHER_NAMESPACES),
        (Defence::Seccomp, "seccomp filters", probe.seccomp.missing(), SECCOMP),
        (Defence::Landlock, "Landlock", probe.landlock_abi.missing(), LANDLOCK),
    ];
    for (defence, feature, missing, remedy) in needs {
        if let (true, Some(reason)) = (spec.defences.has(defence), missing) {
            return Err(PlanRefusal::MissingFeature { feature, remedy, reason: reason.to_owned() });
        }
    }
    Ok(())
}
