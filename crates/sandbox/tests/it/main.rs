//! Tests of the sandbox's promises on this machine, as the current user and, if that is root, as
//! an ordinary user too.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a test says what it skips and what it measured")]
#![expect(clippy::disallowed_methods, reason = "these tests are about processes and their time")]

mod children;
mod escapes;
mod jobs;
mod ordinary_user;
mod own_user;
mod runs;
mod sealed;
mod sessions;
mod small;
mod support;
mod workspace;
