//! The ways out of a drill, all of them with their controls.
//!
//! For every attempt: it is refused under the full plan; with the defences
//! that it names off, it succeeds; with any single one of them on, it is
//! refused. So no defence on the list is there for nothing, and the list
//! says what each is for.

use automaton_sandbox::drill::{Attempt, AttemptTarget, ControlResult, Controls, Drill};
use automaton_sandbox::{Defence, Probe};

use crate::support::{attempt_program, launcher, machine, machine_without_cgroups};

fn drill(probe: &Probe) -> (Drill, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let drill = Drill::new(launcher(), attempt_program(), probe.clone(), folder.path()).unwrap();
    (drill, folder)
}

/// Tries every combination; says what was not as it should be.
fn try_list(drill: &Drill, list: &[Attempt]) {
    let mut wrong = Vec::new();
    for attempt in list {
        let judgement = drill.run_all_combinations(attempt, Controls::All).unwrap();
        let name = attempt.name;
        let control = &judgement.control;
        println!("{name:32} {:?}, {}, {control:?}", attempt.defences, judgement.said);
        wrong.extend(judgement.broken.into_iter().map(|how| format!("{name}: {how}")));
        if let ControlResult::Refused(said) = control {
            wrong.push(format!("{name}: refused with all that stops it off: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn try_subject(subject: AttemptTarget) {
    let (drill, _folder) = drill(machine());
    try_list(&drill, &drill.attempts(subject));
}

#[test]
fn files_of_the_host_are_out_of_reach() {
    try_subject(AttemptTarget::Files);
}

#[test]
fn processes_of_the_host_are_out_of_reach() {
    try_subject(AttemptTarget::Processes);
}

#[test]
fn sockets_of_the_host_are_out_of_reach() {
    try_subject(AttemptTarget::Sockets);
}

#[test]
fn the_kernel_is_out_of_reach() {
    try_subject(AttemptTarget::Kernel);
}

#[test]
fn limits_hold() {
    try_subject(AttemptTarget::Limits);
}

#[test]
fn limits_hold_without_control_groups() {
    let (drill, _folder) = drill(&machine_without_cgroups());
    try_list(&drill, &drill.attempts(AttemptTarget::Limits));
    let mut memory = drill.attempts(AttemptTarget::Kernel);
    memory.retain(|attempt| attempt.name == "read shared memory");
    assert_eq!(memory.len(), 1);
    try_list(&drill, &memory);
}

#[test]
fn there_are_at_least_seventy_attempts() {
    let (drill, _folder) = drill(machine());
    let list: Vec<Attempt> =
        AttemptTarget::ALL.into_iter().flat_map(|subject| drill.attempts(subject)).collect();
    assert!(list.len() >= 70, "{}", list.len());
    // Every layer stops something.
    for defence in Defence::ALL {
        let used = list.iter().any(|attempt| attempt.defences.contains(&defence));
        assert!(used, "{defence:?} stops nothing");
    }
}

#[test]
fn without_controls_no_attempt_is_made_unprotected() {
    let (drill, _folder) = drill(machine());
    for attempt in drill.attempts(AttemptTarget::Limits) {
        let judgement = drill.run_all_combinations(&attempt, Controls::Without).unwrap();
        assert_eq!(judgement.broken, Vec::<String>::new());
        assert!(matches!(judgement.control, ControlResult::Left(_)));
    }
    let memory = drill.attempts(AttemptTarget::Limits);
    let memory = memory.iter().find(|attempt| attempt.name == "use much memory").unwrap();
    let harmless = drill.run_all_combinations(memory, Controls::Harmless).unwrap();
    let reason = "it would take memory from your machine";
    assert_eq!(harmless.control, ControlResult::Left(reason));
}
