//! Machines that are containers of a real podman, and of an image with `busybox` in it: what is
//! so for all machines, and what is so for these.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

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
    ("peers::podman_outlives_the_cloud", || over(containers::outlived)),
    ("peers::podman_is_refused_where_it_cannot_be", || over(containers::refused)),
];

/// What the image is called.
pub(crate) const IMAGE: &str = "localhost/automaton-machine";
/// An image of one program, and the service over a store of its own.
const SERVE: &str = r#"
cd "$1" || exit
shift
mkdir -p image/bin image/dev image/etc image/proc image/sys image/tmp root run
cp /bin/busybox image/bin || exit
for name in $(/bin/busybox --list); do [ -e "image/bin/$name" ] || ln -s busybox "image/bin/$name"; done
tar -C image -cf image.tar . || exit
timeout 60 podman "$@" import -q image.tar localhost/automaton-machine || exit
# What podman leaves of each program that it ran stays for minutes otherwise.
printf '[engine]\nexit_command_delay = 1\n' >containers.conf
CONTAINERS_CONF="$PWD/containers.conf" exec podman "$@" system service --time=30 "unix://$PWD/sock" 2>log
"#;

/// A podman that is ours alone.
pub(crate) struct Podman {
    home: tempfile::TempDir,
    service: Child,
}

#[expect(clippy::disallowed_methods, reason = "a test starts what it compares with")]
fn command(program: &str) -> Command {
    Command::new(program)
}

/// Where it keeps everything, and what works whatever the host's control groups are.
fn options(home: &Path) -> Vec<String> {
    let at = |folder: &str| home.join(folder).display().to_string();
    let words = ["--runtime", "runc", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"];
    let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    words.extend(["--root".to_owned(), at("root"), "--runroot".to_owned(), at("run")]);
    words
}

impl Podman {
    fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut serve = command("sh");
        serve.args(["-c", SERVE, "sh"]).arg(home.path()).args(options(home.path()));
        let service = serve.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let mut started = Self { home, service };
        for _ in 0..600 {
            if started.socket().exists() {
                return started;
            }
            assert_eq!(started.service.try_wait().unwrap(), None, "podman does not serve");
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("podman does not serve");
    }

    fn socket(&self) -> PathBuf {
        self.home.path().join("sock")
    }
}

fn ask(home: &Path, words: &[&str]) -> Output {
    let mut asked = command("timeout");
    asked.args(["60", "podman"]).args(options(home)).args(words);
    asked.stdin(Stdio::null()).output().unwrap()
}

/// What it answers whoever asks it by hand.
pub(crate) fn podman(words: &[&str]) -> String {
    let output = ask(town::CONTAINERS.get().unwrap().parent().unwrap(), words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl Drop for Podman {
    fn drop(&mut self) {
        ask(self.home.path(), &["rm", "--force", "--all", "--time", "0"]);
        // Until it has left nothing behind that would write into its folder.
        std::thread::sleep(Duration::from_millis(1500));
        self.service.kill().unwrap();
        self.service.wait().unwrap();
    }
}

/// What a configuration says of machines that are containers, after something else.
pub(crate) fn rents(socket: &Path, image: &str) -> String {
    format!(r#","podman":{{"socket":"{}","image":"{image}"}}"#, socket.display())
}

/// Tells a story where machines are containers.
fn over(story: fn()) {
    let started = Podman::start();
    town::CONTAINERS.set(started.socket()).unwrap();
    story();
}
