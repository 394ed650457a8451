//! The local provider with a real sandbox and a fake model in it.
//!
//! One executable in three roles, told apart by how it is called: the tests,
//! the sandbox's helper, and the program that runs inside in the place of
//! `automaton-llama`. So it cannot have the usual harness, whose `main` runs
//! first; it speaks as much of its command line as test runners use.
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what a test runner reads")]

mod cases;
mod fake;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = automaton_sandbox::helper_main_if_invoked() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--model") {
        return fake::run(&arguments);
    }
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if has("--ignored") {
        return ExitCode::SUCCESS;
    }
    if has("--list") {
        for (name, _) in cases::ALL {
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
    for (name, case) in cases::ALL.iter().filter(|(name, _)| chosen(name)) {
        eprintln!("test {name}");
        case();
    }
    ExitCode::SUCCESS
}
