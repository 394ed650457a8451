//! Snapshots of plans, and invalid specifications.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::*;
use crate::probe::CgroupBase;
use crate::spec::{Bind, RunLimits};

/// Returns a machine with all features.
fn machine() -> Probe {
    let there = || Feature::Available(());
    Probe {
        user_namespace: there(),
        mount_namespace: there(),
        mount_interface: there(),
        process_namespace: there(),
        private_proc: there(),
        own_user: there(),
        network_namespace: there(),
        ipc_namespace: there(),
        host_name_namespace: there(),
        landlock_abi: Feature::Available(7),
        seccomp: there(),
        cgroup: Feature::Available(CgroupBase::V2 {
            parent: "/sys/fs/cgroup/app".into(),
            cpu: true,
        }),
    }
}

fn exec() -> SandboxSpec {
    SandboxSpec {
        workspace: Some("/home/someone/.automaton/workspace".into()),
        sealed: vec![".logs".to_owned()],
        ..SandboxSpec::new(Program::Shell("make && ./report".to_owned()))
    }
}

#[test]
fn an_exec_with_a_control_group() {
    let plan = plan(&exec(), &machine()).unwrap();
    assert_eq!(plan.enforcement.to_string(), "cgroup v2");
    insta::assert_json_snapshot!(plan.script);
}

#[test]
fn only_who_is_held_to_processors_is_in_their_hierarchies() {
    let cpu = Some(["/cg/cpu".into(), "/cg/cpuacct".into()]);
    let base = |cpu| CgroupBase::V1 { memory: "/cg/memory".into(), pids: "/cg/pids".into(), cpu };
    let of = |base: CgroupBase, cpus| {
        let spec = SandboxSpec { limits: RunLimits { cpus, ..RunLimits::default() }, ..exec() };
        let probe = Probe { cgroup: Feature::Available(base), ..machine() };
        let group = plan(&spec, &probe).unwrap().script.cgroup.unwrap();
        (group.base, group.cpus)
    };
    assert_eq!(of(base(cpu.clone()), Some(2)), (base(cpu.clone()), Some(2)));
    assert_eq!(of(base(cpu), None), (base(None), None));
    assert_eq!(of(base(None), Some(2)), (base(None), None), "nothing limits them");
}

#[test]
fn an_exec_without_a_control_group_differs_in_its_limits_only() {
    let without = Probe { cgroup: Feature::Missing("none".to_owned()), ..machine() };
    let with = plan(&exec(), &machine()).unwrap().script;
    let plan = plan(&exec(), &without).unwrap();
    assert_eq!(plan.enforcement, Enforcement::Rlimits);
    let script = plan.script;
    assert_eq!(script.namespaces, with.namespaces);
    let other_nodes: Vec<RootNode> =
        nodes_of(&script).into_iter().filter(|node| !nodes_of(&with).contains(node)).collect();
    assert_eq!(other_nodes, [RootNode::Zeros { path: "/dev/zero".into() }]);
    assert_eq!(nodes_of(&script).len(), nodes_of(&with).len());
    let without_root = |script: &HelperScript| -> Vec<Setup> {
        let steps = script.setup.iter();
        steps.filter(|step| !matches!(step, Setup::Root(_))).cloned().collect()
    };
    assert_eq!(without_root(&script), without_root(&with));
    let changed: Vec<&Confine> =
        script.confine.iter().filter(|step| !with.confine.contains(step)).collect();
    insta::assert_json_snapshot!((&script.cgroup, &script.watch, changed));
}

/// Returns the root nodes of a script.
fn nodes_of(script: &HelperScript) -> Vec<RootNode> {
    let roots = script.setup.iter().filter_map(|step| match step {
        Setup::Root(nodes) => Some(nodes.clone()),
        _ => None,
    });
    roots.flatten().collect()
}

#[test]
fn a_service_with_a_model_and_a_socket() {
    let bind = |host: &str, inside: &str| Bind { host: host.into(), inside: inside.into() };
    let socket: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let spec = SandboxSpec {
        read_only: vec![
            bind("/usr/libexec/brain", "/opt/brain"),
            bind("/var/models/small.gguf", "/opt/model.gguf"),
        ],
        inherit: vec![Inherit { descriptor: Arc::new(socket), target: 3 }],
        limits: RunLimits::service(),
        ..SandboxSpec::new(Program::Argv(vec!["/opt/brain".into(), "/opt/model.gguf".into()]))
    };
    let script = plan(&spec, &machine()).unwrap().script;
    let exec_plan = plan(&exec(), &machine()).unwrap().script;
    let nodes = nodes_of(&script);
    let usual = nodes_of(&exec_plan);
    let own: Vec<&RootNode> = nodes.iter().filter(|node| !usual.contains(node)).collect();
    insta::assert_json_snapshot!((own, &script.confine, &script.exec));
}

#[test]
fn confinement_ends_with_what_cannot_be_undone() {
    let confine = plan(&exec(), &machine()).unwrap().script.confine;
    let place = |wanted: fn(&Confine) -> bool| confine.iter().position(wanted).unwrap();
    let privileges = place(|step| matches!(step, Confine::NoNewPrivileges));
    let landlock = place(|step| matches!(step, Confine::Landlock(_)));
    let seccomp = place(|step| matches!(step, Confine::Seccomp(_)));
    let capabilities = place(|step| matches!(step, Confine::DropCapabilities));
    assert!(privileges < landlock && landlock < seccomp && seccomp < capabilities);
}

#[test]
fn a_name_is_looked_up_inside_and_a_path_is_not() {
    let candidates = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        plan(&SandboxSpec::new(Program::Argv(words)), &machine())
            .unwrap()
            .script
            .exec
            .unwrap()
            .candidates
    };
    assert_eq!(candidates(&["ls", "-l"])[0], ["/usr/local/sbin/ls", "-l"]);
    assert_eq!(candidates(&["ls", "-l"]).len(), PATH_INSIDE.split(':').count());
    assert_eq!(candidates(&["./ls"]), [["./ls"]]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |spec: SandboxSpec| plan(&spec, &machine()).unwrap_err();
    let shell = |line: &str| SandboxSpec::new(Program::Shell(line.to_owned()));
    assert_eq!(refused(shell("")), PlanRefusal::NoProgram);
    assert_eq!(refused(SandboxSpec::new(Program::Argv(Vec::new()))), PlanRefusal::NoProgram);
    assert_eq!(refused(shell("a\0b")), PlanRefusal::NulByte);
    assert!(matches!(refused(shell(&"x".repeat(200_000))), PlanRefusal::TooLong { .. }));
    for name in ["", "A=B"] {
        let env = vec![(name.to_owned(), String::new())];
        let refusal = refused(SandboxSpec { env, ..shell("true") });
        assert!(matches!(refusal, PlanRefusal::VariableName { .. }));
    }
    let refusal = refused(SandboxSpec { workspace: Some("here".into()), ..shell("true") });
    assert!(matches!(refusal, PlanRefusal::RelativePath { .. }));
    let reserved = ["relative", "/", "/usr/x", "/etc", "/tmp/x", "/opt/../etc", "/root/x", "/dev"];
    for inside in reserved {
        let read_only = vec![Bind { host: "/x".into(), inside: inside.into() }];
        let refusal = refused(SandboxSpec { read_only, ..shell("true") });
        assert!(matches!(refusal, PlanRefusal::BindTarget { .. }), "{inside}");
    }
    for name in ["", ".", "..", "a/b", "/a", "a/"] {
        let refusal = refused(SandboxSpec { sealed: vec![name.to_owned()], ..shell("true") });
        assert!(matches!(refusal, PlanRefusal::BindTarget { .. }), "{name}");
    }
    for targets in [vec![2], vec![64], vec![5, 5]] {
        let socket: Arc<OwnedFd> = Arc::new(std::fs::File::open("/dev/null").unwrap().into());
        let inherit = targets.into_iter();
        let inherit =
            inherit.map(|target| Inherit { descriptor: Arc::clone(&socket), target }).collect();
        let refusal = refused(SandboxSpec { inherit, ..shell("true") });
        assert!(matches!(refusal, PlanRefusal::DescriptorNumber { .. }));
    }
}
