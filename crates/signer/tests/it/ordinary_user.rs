//! Runs all tests again as a user without privileges, who may lock 8 pages.

use automaton_testkit::unprivileged::run_again;

use crate::support::{PROGRAMS, program};

#[test]
fn everything_holds_for_an_ordinary_user() {
    // The shell lowers the limit while it still may.
    run_again(PROGRAMS, &[program()], "ulimit -l 32 &&").unwrap();
}
