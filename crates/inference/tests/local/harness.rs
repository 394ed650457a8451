//! One executable in three roles, told apart by how it is called: the tests,
//! the sandbox's helper, and the program that runs inside in the place of
//! `automaton-llama`. So it cannot have the usual harness, whose `main` runs
//! first; it speaks as much of its command line as test runners use.

use std::process::ExitCode;

use crate::fake;

/// Plays the role that the program was called for; its tests are `cases`.
pub(crate) fn main(cases: &[(&str, fn())]) -> ExitCode {
    if let Some(code) = automaton_sandbox::helper_main_if_invoked() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--model") {
        return fake::run(&arguments);
    }
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    // Tests beside programs of others are for those who ask.
    let asked = |name: &str| name.starts_with("peers::") == has("--ignored");
    let cases = cases.iter().filter(|(name, _)| asked(name));
    if has("--list") {
        for (name, _) in cases {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let wanted = arguments.iter().find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| {
        wanted.is_none_or(|wanted| {
            if has("--exact") { name == wanted } else { name.contains(wanted.as_str()) }
        })
    };
    for (name, case) in cases.filter(|(name, _)| chosen(name)) {
        eprintln!("test {name}");
        case();
    }
    ExitCode::SUCCESS
}
