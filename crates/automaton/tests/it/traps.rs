//! What an automaton leaves in its workspace is run and read as configuration by nobody.
//!
//! A trap is a file that some program outside would run or heed: a hook, a profile, settings
//! of an editor, a program with a known name. Whoever reads one is seen by the time at which
//! it was last read.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::world;

const LIMIT: Duration = Duration::from_secs(120);

/// Files that programs outside heed where they stand, or in the home of who starts them.
const HEEDED: [&str; 58] = [
    ".git/HEAD",
    ".git/config",
    ".git/hooks/post-checkout",
    ".git/hooks/pre-commit",
    ".git/hooks/fsmonitor-watchman",
    ".git/info/attributes",
    ".gitattributes",
    ".gitconfig",
    ".gitmodules",
    ".config/git/config",
    ".bashrc",
    ".bash_profile",
    ".bash_logout",
    ".profile",
    ".zshenv",
    ".zshrc",
    ".config/fish/config.fish",
    ".inputrc",
    ".tmux.conf",
    ".vimrc",
    ".exrc",
    ".emacs",
    ".dir-locals.el",
    ".editorconfig",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".devcontainer/devcontainer.json",
    ".envrc",
    ".env",
    ".tool-versions",
    ".mise.toml",
    ".mcp.json",
    ".npmrc",
    ".yarnrc.yml",
    "package.json",
    ".cargo/config.toml",
    "rust-toolchain.toml",
    "build.rs",
    "Makefile",
    "pyproject.toml",
    "setup.py",
    "sitecustomize.py",
    ".pythonrc",
    ".pip/pip.conf",
    ".curlrc",
    ".netrc",
    ".wgetrc",
    ".gdbinit",
    ".ssh/config",
    ".ssh/rc",
    ".docker/config.json",
    ".config/autostart/trap.desktop",
    // Its own.
    "automaton.json",
    "heartbeat.yml",
    "policy.cedar",
    "prices.json",
    ".automaton/automaton.json",
];

/// Programs and libraries that are looked for by name.
const NAMED: [&str; 16] = [
    "sh",
    "bash",
    "env",
    "git",
    "ssh",
    "bwrap",
    "python3",
    "node",
    "curl",
    "automaton",
    "tmux",
    "systemctl",
    "podman",
    "docker",
    "libc.so.6",
    "libgcc_s.so.1",
];

/// A workspace full of traps.
struct Traps {
    folder: PathBuf,
    /// Made by whatever is run.
    sprung: PathBuf,
}

impl Traps {
    fn set(folder: PathBuf, sprung: PathBuf) -> Self {
        let script = format!("#!/bin/sh\n/usr/bin/touch {}\n", sprung.display());
        for name in HEEDED.into_iter().chain(NAMED) {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let traps = Self { folder, sprung };
        traps.rest();
        traps
    }

    /// As if nobody had read them since they were written.
    fn rest(&self) {
        let hour = Duration::from_secs(3600);
        let written = fs::metadata(&self.folder).unwrap().modified().unwrap() - hour;
        let times = FileTimes::new().set_modified(written).set_accessed(written - hour);
        for name in HEEDED.into_iter().chain(NAMED) {
            File::open(self.folder.join(name)).unwrap().set_times(times).unwrap();
        }
    }

    /// Which were read, and whether one was run.
    fn told(&self) -> (Vec<&'static str>, bool) {
        let is_read = |name: &&str| {
            let about = fs::metadata(self.folder.join(name)).unwrap();
            about.accessed().unwrap() > about.modified().unwrap()
        };
        (HEEDED.into_iter().chain(NAMED).filter(is_read).collect(), self.sprung.exists())
    }
}

fn run(program: &Path) {
    #[expect(clippy::disallowed_methods, reason = "a trap has to be stepped into once")]
    let ended = std::process::Command::new(program).status().unwrap();
    assert!(ended.success());
}

#[test]
fn what_it_leaves_is_run_and_heeded_by_nobody_outside() {
    let story = "title = \"traps\"\n[[step]]\nsay = \"I am.\"\n[[step]]\nsay = \"On.\"\n\
        [[step.call]]\ntool = \"exec\"\narguments = { command = \"/bin/true\" }\n\
        [[step.call]]\ntool = \"write_file\"\narguments = { path = \"own\", content = \"x\" }\n\
        [[step.call]]\ntool = \"list_files\"\narguments = {}\n\
        [[step.call]]\ntool = \"start_process\"\narguments = { command = \"/bin/sleep 60\" }\n\
        [[step]]\nsay = \"I rest.\"\n";
    let world = world().story(story).unwrap();
    let born = world.up(&["--turns", "1"]).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(born.code, Some(0), "{born:?}");
    let workspace = world.home().join("workspace");
    let traps = Traps::set(workspace.clone(), world.dir().join("sprung"));
    let world = world.starting_in(workspace.clone());

    let lived = world.up(&["--turns", "2"]).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(lived.code, Some(0), "{lived:?}");
    assert!(workspace.join("own").exists(), "{lived:?}");
    let commands: [&[&str]; 16] = [
        &["status"],
        &["logs"],
        &["alerts"],
        &["egress"],
        &["turns"],
        &["turn", "1"],
        &["heartbeat"],
        &["prompt"],
        &["send", "Hello."],
        &["pnl"],
        &["limits", "show"],
        &["approvals", "list"],
        &["audit", "verify"],
        &["policy", "show"],
        &["sandbox", "probe"],
        &["sandbox", "run", "/bin/true"],
    ];
    for command in commands {
        let ended = world.command(command).unwrap();
        // Some have nothing to show without a wallet; none may break.
        assert!(matches!(ended.code, Some(0..=2)), "{command:?}: {ended:?}");
        assert_eq!(traps.told(), (Vec::new(), false), "{command:?}");
    }

    // They are traps: whoever reads one is seen, and so is whoever runs one.
    fs::read(workspace.join(".bashrc")).unwrap();
    assert_eq!(traps.told(), (vec![".bashrc"], false));
    traps.rest();
    run(&workspace.join(".git/hooks/post-checkout"));
    assert_eq!(traps.told(), (vec![".git/hooks/post-checkout"], true));
}
