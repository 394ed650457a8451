//! A podman of a test's own, and an image with `busybox` in it. The tests of the built program use
//! it, too.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The name of the image.
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
# It ends by itself where its test was killed, and never while a test waits for something else.
CONTAINERS_CONF="$PWD/containers.conf" exec podman "$@" system service --time=900 "unix://$PWD/sock" 2>log
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

/// Returns options for a folder of its own, which work with all control groups of a host.
fn options(home: &Path) -> Vec<String> {
    let at = |folder: &str| home.join(folder).display().to_string();
    let words = ["--runtime", "runc", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"];
    let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    words.extend(["--root".to_owned(), at("root"), "--runroot".to_owned(), at("run")]);
    words
}

impl Podman {
    pub(crate) fn start() -> Self {
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

    pub(crate) fn socket(&self) -> PathBuf {
        self.home.path().join("sock")
    }
}

pub(crate) fn ask(home: &Path, words: &[&str]) -> Output {
    let mut asked = command("timeout");
    asked.args(["60", "podman"]).args(options(home)).args(words);
    asked.stdin(Stdio::null()).output().unwrap()
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
