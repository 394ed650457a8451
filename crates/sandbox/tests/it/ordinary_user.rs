//! Everything again as a user without any privilege.

use automaton_testkit::unprivileged::run_again;

use crate::support::{PROGRAMS, attempt_program, helper};

#[test]
fn everything_holds_for_an_ordinary_user() {
    run_again(PROGRAMS, &[helper(), attempt_program()], "").unwrap();
}
