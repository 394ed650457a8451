//! A world for integration tests: a home of its own, the built program, its
//! events as they come, and a hand that kills.
//!
//! Blocking and bounded: every wait has a deadline, every process of a world
//! ends with it. A world must never touch the home, the environment or the
//! directory of whoever runs the tests.

mod run;
mod temp;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use automaton_core::error::Classified;

pub use run::{ProcessOutput, ProcessRun};
pub use temp::TempDir;

use automaton_script::fault::{self, FaultError};

/// How long a command may take that is not waited for with a limit of its own.
pub const COMMAND_TIME_MAX: Duration = Duration::from_secs(60);

/// Where programs are found; the tests' own search path is of no consequence.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A world that cannot be made, or a process in it that did not do its part.
#[derive(Debug, thiserror::Error, Classified)]
#[class(Internal)]
pub enum WorldError {
    /// A file or directory of the world could not be made.
    #[error("cannot make '{path}' for a test")]
    Make {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The home could not be made.
    #[error("cannot make the home of a test")]
    Home(#[from] FaultError),
    /// The program could not be started.
    #[error("cannot start '{program}'")]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A process could not be watched or killed.
    #[error("cannot {what} process {pid}")]
    Process {
        /// What was to be done.
        what: &'static str,
        /// The process.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
    /// The supervisor has no agent at this moment.
    #[error("process {pid} has no agent as its child")]
    NoAgent {
        /// The supervisor.
        pid: u32,
    },
    /// What was waited for did not come in time, or cannot come any more.
    #[error("waited for {what} in vain ({why}){transcript}")]
    InVain {
        /// What was waited for.
        what: &'static str,
        /// Why there is no use in waiting.
        why: String,
        /// The last lines of both outputs.
        transcript: String,
    },
}

/// A home, a program, and how the program is started.
#[derive(Debug)]
pub struct World {
    program: PathBuf,
    home: PathBuf,
    arguments: Vec<OsString>,
    /// Where whoever starts the program stands, see [`World::standing_in`].
    stand: Option<PathBuf>,
    /// Variables of the environment beside those of every world.
    variables: Vec<(&'static str, OsString)>,
    /// Shared with every run, so that no process loses its home.
    dir: Arc<TempDir>,
}

impl World {
    /// A world around the built program, which tests find with
    /// `env!("CARGO_BIN_EXE_automaton")`. Its home is made for rehearsal.
    ///
    /// # Errors
    /// The home cannot be made.
    pub fn new(program: impl Into<PathBuf>) -> Result<Self, WorldError> {
        let dir = Arc::new(TempDir::new()?);
        let home = dir.path().join("home");
        fault::mark_home(&home)?;
        Ok(Self {
            program: program.into(),
            home,
            arguments: Vec::new(),
            stand: None,
            variables: Vec::new(),
            dir,
        })
    }

    /// Has the automaton think with a story, given as text.
    ///
    /// # Errors
    /// The story cannot be written to a file.
    pub fn story(self, text: &str) -> Result<Self, WorldError> {
        let path = self.dir.path().join("story.toml");
        write(&path, text)?;
        let mut brain = OsString::from("script:");
        brain.push(&path);
        Ok(self.arg("--brain").arg(brain))
    }

    /// Has the automaton think with the server at an address.
    #[must_use]
    pub fn brain(self, url: &str) -> Self {
        self.arg("--brain").arg(url)
    }

    /// Adds an argument to every [`World::up`].
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Has everything be started as by somebody who stands in a folder, calls it home and
    /// looks for programs there first.
    #[must_use]
    pub fn standing_in(mut self, folder: PathBuf) -> Self {
        self.stand = Some(folder);
        self
    }

    /// Sets a variable of the environment of everything that is started.
    #[must_use]
    pub fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The home of the automaton.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The directory around the home, for other files of a test. It is also
    /// the `$HOME` of every process of this world.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The automaton's database; open it with the store's read-only `Reader`.
    #[must_use]
    pub fn state_db(&self) -> PathBuf {
        self.home.join("state.db")
    }

    /// Writes a file into the home, such as a configuration.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_home(&self, name: &str, text: &str) -> Result<(), WorldError> {
        write(&self.home.join(name), text)
    }

    /// Starts `up --json` with the arguments of this world and these. A second
    /// call goes on with the same automaton.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn up(&self, arguments: &[&str]) -> Result<ProcessRun, WorldError> {
        let mut command = self.program(&["up", "--json"]);
        command.args(&self.arguments).args(arguments);
        ProcessRun::start(command, Arc::clone(&self.dir))
    }

    /// Starts any command.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(&self, arguments: &[&str]) -> Result<ProcessRun, WorldError> {
        ProcessRun::start(self.program(arguments), Arc::clone(&self.dir))
    }

    /// Runs any command to its end, for at most [`COMMAND_TIME_MAX`].
    ///
    /// # Errors
    /// The program cannot be started or does not end.
    pub fn command(&self, arguments: &[&str]) -> Result<ProcessOutput, WorldError> {
        self.start(arguments)?.finish()
    }

    /// Starts any command with a text on its standard input, which ends there.
    ///
    /// # Errors
    /// The text cannot be kept, or the program cannot be started.
    pub fn fed(
        &self,
        arguments: &[&str],
        input: impl AsRef<[u8]>,
    ) -> Result<ProcessRun, WorldError> {
        let path = self.dir.path().join("stdin");
        let failed = |source| WorldError::Make { path: path.clone(), source };
        fs::write(&path, input).map_err(failed)?;
        let mut command = self.program(arguments);
        command.stdin(fs::File::open(&path).map_err(failed)?);
        ProcessRun::start(command, Arc::clone(&self.dir))
    }

    #[expect(clippy::disallowed_methods, reason = "tests start the program as a person would")]
    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let stand = self.stand.as_deref().unwrap_or(self.dir.path());
        let mut path = OsString::from(PATH);
        if let Some(first) = &self.stand {
            path = first.join(":").into_os_string();
            path.push(PATH);
        }
        command
            .args(arguments)
            .env_clear()
            .env("PATH", path)
            .env("HOME", stand)
            .env("TMPDIR", self.dir.path())
            .env("AUTOMATON_HOME", &self.home)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(stand)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

fn write(path: &Path, text: &str) -> Result<(), WorldError> {
    fs::write(path, text).map_err(|source| WorldError::Make { path: path.to_owned(), source })
}
