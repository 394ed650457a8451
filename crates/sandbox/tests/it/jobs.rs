//! Features that ordinary programs need: a loopback, terminals, owners, configuration.

use std::fs;

use automaton_sandbox::{ExitStatus, Network, RunOutcome, SandboxSpec};

use crate::support::{attempt, machine_without_cgroups, run, run_on, shell};

/// Runs a line where sockets of the loopback are permitted.
fn run_line(line: &str) -> RunOutcome {
    let workspace = tempfile::tempdir().unwrap();
    run(&SandboxSpec { network: Network::Loopback, ..shell(line, workspace.path()) })
}

fn said(line: &str) -> String {
    let outcome = run_line(line);
    format!("{}{}", outcome.stdout.text_lossy(), outcome.stderr.text_lossy())
}

#[test]
fn the_loopback_is_the_only_interface() {
    let workspace = tempfile::tempdir().unwrap();
    let interfaces = |network| {
        let spec = SandboxSpec { network, ..attempt(&["interfaces"], workspace.path()) };
        run(&spec).stdout.text_lossy()
    };
    assert_eq!(interfaces(Network::Loopback), "lo\n");
    assert_eq!(interfaces(Network::Proxied), "lo\n");
    // Without network sockets, no interfaces are listed either.
    assert_eq!(interfaces(Network::None), "");
    assert_eq!(said("cat /etc/resolv.conf"), "");
}

#[test]
fn a_change_of_owner_is_answered_as_done_and_changes_nothing() {
    let line = "touch f && chown 1000:1000 f && chgrp 5 f && chown -h nobody:staff f && \
                install -o www-data -g users f g && cp -p f h && mkdir d && chown -R daemon d && \
                stat -c '%u %g' f g h d | sort -u";
    assert_eq!(said(line), "0 0\n");
}

#[test]
fn a_change_of_owner_that_the_kernel_can_judge_is_judged_by_it() {
    let line = "touch f && chown 0:0 f && echo own; chown 0:0 missing 2>/dev/null || echo missing; \
                chown 0:0 /usr 2>/dev/null || echo sealed";
    assert_eq!(said(line), "own\nmissing\nsealed\n");
}

#[test]
fn an_archive_of_others_files_unpacks() {
    let line = "mkdir a && echo text > a/f && tar --owner=builder:1000 --group=builder:1000 -cf t a \
                && rm -r a && tar xpf t && cat a/f";
    assert_eq!(said(line), "text\n");
}

#[test]
fn an_archive_with_a_set_user_id_file_unpacks_without_that_right() {
    let workspace = tempfile::tempdir().unwrap();
    // A header of an archive: a file of mode 4755, and two blocks of zeros at the end.
    let field = |text: &str, size: usize| format!("{text:\0<size$}");
    let head = [
        field("tool", 100),
        field("0004755", 8),
        field("0001750", 8),
        field("0001750", 8),
        field("00000000000", 12),
        field("00000000000", 12),
    ];
    let head = head.concat();
    let rest = field("0", 512 - 148 - 8);
    let sum: u32 = head.bytes().chain(rest.bytes()).map(u32::from).sum();
    let archive = format!("{head}{:06o}\0 {rest}{}", sum + 8 * 32, "\0".repeat(1024));
    fs::write(workspace.path().join("a.tar"), archive).unwrap();
    let outcome = run(&shell("tar xf a.tar && stat -c %a tool", workspace.path()));
    assert_eq!(outcome.stdout.text_lossy(), "755\n", "{}", outcome.stderr.text_lossy());
}

#[test]
fn terminals_are_the_sandboxs_own_and_few() {
    let workspace = tempfile::tempdir().unwrap();
    let made = |count: &str| run(&attempt(&["terminals", count], workspace.path()));
    let first = made("1");
    assert_eq!(first.stdout.text_lossy(), "/dev/pts/0\n", "{}", first.stderr.text_lossy());
    assert_eq!(made("32").status, ExitStatus::Exited(0));
    assert_eq!(made("33").status, ExitStatus::Exited(1));
    assert_eq!(said("ls /dev/pts"), "ptmx\n");
}

#[test]
fn programs_without_a_network_are_told_so_at_once() {
    let retries = |network| {
        let workspace = tempfile::tempdir().unwrap();
        let line = "echo $NPM_CONFIG_FETCH_RETRIES $PIP_RETRIES $CARGO_NET_RETRY";
        run(&SandboxSpec { network, ..shell(line, workspace.path()) }).stdout.text_lossy()
    };
    assert_eq!(retries(Network::Loopback), "0 0 0\n");
    assert_eq!(retries(Network::Proxied), "\n");
    // A name is asked for nowhere, and the answer is there at once.
    assert_eq!(said("getent hosts example.com; echo $?"), "2\n");
}

#[test]
fn configuration_is_shown_and_secrets_are_not() {
    let line = "for f in /etc/shadow /etc/ssh /etc/ssl/private /etc/machine-id /etc/gitconfig \
                /etc/maven/settings.xml /etc/npmrc /etc/environment; do [ -e $f ] && echo $f; done; \
                id -u daemon www-data; tail -n 1 /etc/shells";
    assert_eq!(said(line), "1\n33\n/bin/bash\n");
    for shown in ["/etc/fonts", "/etc/alternatives", "/etc/ssl/openssl.cnf"] {
        let there = said(&format!("[ -r {shown} ] && echo there"));
        assert_eq!(there == "there\n", fs::metadata(shown).is_ok(), "{shown}");
    }
}

#[test]
fn a_crash_starts_no_handler_of_core_images() {
    assert_eq!(said("grep -c 'core file size *1 *1 ' /proc/self/limits"), "1\n");
}

#[test]
fn without_control_groups_zeros_are_read_from_a_file_and_shared_memory_is_refused() {
    let machine = machine_without_cgroups();
    let workspace = tempfile::tempdir().unwrap();
    let line = "head -c 300000 /dev/zero | tr -d '\\0' | wc -c; head -c 300000 /dev/zero | wc -c; \
                dd if=/dev/zero of=f bs=64k count=4 2>/dev/null; stat -c %s f";
    let outcome = run_on(&shell(line, workspace.path()), &machine);
    assert_eq!(outcome.stdout.text_lossy(), "0\n300000\n262144\n");
    let little = attempt(&["sandbox-attempt", "share-memory", "4096"], workspace.path());
    assert_eq!(run_on(&little, &machine).status, ExitStatus::Exited(1));
    // Much at once ends the program as its memory limit does, in a run and in a session.
    let much = attempt(&["sandbox-attempt", "share-memory", "8388608"], workspace.path());
    assert_eq!(run_on(&much, &machine).status, ExitStatus::MemoryExceeded);
    let counted = attempt(&["sandbox-attempt", "share-memory", "8388608"], workspace.path());
    let with_groups = run(&counted).status;
    let has_groups = crate::support::machine().cgroup.is_available();
    assert_eq!(with_groups == ExitStatus::Exited(0), has_groups, "{with_groups}");
}
