//! Code in an agent's sandbox cannot reach the agent's signer.

use std::io::{Read as _, pipe};

use automaton_sandbox::process::{ProcessCommand, Stdio, spawn};
use automaton_signer::SignerConnection;

use crate::support::{PASSPHRASE, World, program};

#[test]
fn sandboxed_code_reaches_neither_socket() {
    let world = World::new();
    let (_process, agent) = world.start_with(PASSPHRASE, None);
    SignerConnection::connect(agent.try_clone().unwrap()).unwrap();
    // Both times by a process that was given the agent's socket.
    let reached = |word: &str| {
        let (mut told, stdout) = pipe().unwrap();
        let command = ProcessCommand::new(&program())
            .arg(word)
            .arg(world.home().creator_socket())
            .descriptor(agent.try_clone().unwrap().into(), 3)
            .stdout(Stdio::Descriptor(stdout.into()));
        let mut child = spawn(command).unwrap();
        let mut text = String::new();
        told.read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().is_success(), "{word}");
        text
    };
    assert_eq!(reached("reach"), "the creator's socket, descriptor 3\n");
    assert_eq!(reached("reach-sandboxed"), "\n");
}
