//! The signer as a program of its own beside the automaton, with no code but what it needs. It
//! does nothing for a person.

fn main() -> std::process::ExitCode {
    automaton::role::signer::main()
}
