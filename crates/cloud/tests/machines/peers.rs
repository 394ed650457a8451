//! Machines that are containers of a real podman, and of an image with `busybox` in it: what is
//! so for all machines, and what is so for these.

use std::path::Path;

pub(crate) use crate::podman::IMAGE;
use crate::podman::{Podman, ask};
use crate::{commands, containers, files, lives, town};

pub(crate) const ALL: &[(&str, fn())] = &[
    ("peers::podman_makes_a_machine_once_and_for_its_owner_alone", || over(lives::made)),
    ("peers::podman_keeps_the_files_of_one_that_cannot_be_paid", || over(lives::broke)),
    ("peers::podman_runs_a_command_once_under_its_name", || over(commands::joined)),
    ("peers::podman_lets_the_head_of_an_answer_out_first", || over(commands::flushed)),
    ("peers::podman_takes_and_gives_files_as_they_were", || over(files::round_trip)),
    ("peers::podman_follows_no_link_out_of_a_machine", || over(files::beneath)),
    ("peers::podman_takes_and_gives_files_below_tmp", || over(files::through_tmp)),
    ("peers::podman_holds_the_limits_of_what_runs", || over(containers::held)),
    ("peers::podman_serves_stops_and_removes", || over(containers::served)),
    ("peers::podman_reaches_its_cloud_without_a_proxy", || over(containers::reached)),
    ("peers::podman_outlives_the_cloud", || over(containers::outlived)),
    ("peers::podman_is_refused_where_it_cannot_be", || over(containers::refused)),
];

/// Returns podman's answer to a command by hand.
pub(crate) fn podman(words: &[&str]) -> String {
    let output = ask(town::CONTAINERS.get().unwrap().parent().unwrap(), words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the configuration of machines that are containers, to append to another.
pub(crate) fn rents(socket: &Path, image: &str) -> String {
    format!(r#","podman":{{"socket":"{}","image":"{image}"}}"#, socket.display())
}

/// Tells a story where machines are containers.
fn over(story: fn()) {
    let started = Podman::start();
    town::CONTAINERS.set(started.socket()).unwrap();
    story();
}
