//! The automaton. All of it is in the library, which the laboratory uses too.

fn main() -> std::process::ExitCode {
    automaton::main()
}
