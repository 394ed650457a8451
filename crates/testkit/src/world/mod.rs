//! A world for integration tests: a home, the built program, its events, and a way to kill it.
//!
//! All calls block with a limit: every wait has a deadline, and every process of a world ends
//! with it. A world must never touch the home, the environment or the working directory of the
//! person who runs the tests.

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

/// The time limit of a command without its own limit.
pub const COMMAND_TIME_MAX: Duration = Duration::from_secs(60);

/// The search path of programs. The tests' own search path does not matter.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A world cannot be created, or one of its processes failed.
#[derive(Debug, thiserror::Error, Classified)]
#[class(Internal)]
pub enum WorldError {
    /// A file or directory of the world could not be created.
    #[error("cannot make '{path}' for a test")]
    Make {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
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
        /// The system's error.
        source: io::Error,
    },
    /// A process could not be watched or killed.
    #[error("cannot {what} process {pid}")]
    Process {
        /// The failed action.
        what: &'static str,
        /// The process.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },
    /// The supervisor currently has no agent.
    #[error("process {pid} has no agent as its child")]
    NoAgent {
        /// The supervisor.
        pid: u32,
    },
    /// An expected event did not come in time, or cannot come any more.
    #[error("waited for {what} in vain ({why}){transcript}")]
    InVain {
        /// The expected event.
        what: &'static str,
        /// The reason why waiting ended.
        why: String,
        /// The last lines of both outputs.
        transcript: String,
    },
}

/// A home, a program, and the program's start options.
#[derive(Debug)]
pub struct World {
    program: PathBuf,
    home: PathBuf,
    arguments: Vec<OsString>,
    /// The folder that processes start in, see [`World::starting_in`].
    stand: Option<PathBuf>,
    /// Environment variables in addition to those of every world.
    variables: Vec<(&'static str, OsString)>,
    /// Shared with every run, so that no process loses its home.
    dir: Arc<TempDir>,
}

impl World {
    /// Creates a world with the built program, which tests find with
    /// `env!("CARGO_BIN_EXE_automaton")`. Its home is marked for rehearsal.
    ///
    /// # Errors
    /// Fails if the home cannot be created.
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

    /// Makes the automaton use a story, given as text, as its model.
    ///
    /// # Errors
    /// Fails if the story cannot be written to a file.
    pub fn story(self, text: &str) -> Result<Self, WorldError> {
        let path = self.dir.path().join("story.toml");
        write(&path, text)?;
        let mut brain = OsString::from("script:");
        brain.push(&path);
        Ok(self.arg("--brain").arg(brain))
    }

    /// Makes the automaton use the model server at an address.
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

    /// Starts all processes in a folder that is also their home and the first entry of their
    /// search path.
    #[must_use]
    pub fn starting_in(mut self, folder: PathBuf) -> Self {
        self.stand = Some(folder);
        self
    }

    /// Sets an environment variable of all processes.
    #[must_use]
    pub fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Returns the home of the automaton.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the directory around the home, for other files of a test. It is also the `$HOME`
    /// of every process of this world.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the path of the automaton's database. Open it with the store's read-only `Reader`.
    #[must_use]
    pub fn state_db(&self) -> PathBuf {
        self.home.join("state.db")
    }

    /// Writes a file into the home, such as a configuration.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn write_home(&self, name: &str, text: &str) -> Result<(), WorldError> {
        write(&self.home.join(name), text)
    }

    /// Starts `up --json` with the arguments of this world and these. A second call continues
    /// with the same automaton.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub fn up(&self, arguments: &[&str]) -> Result<ProcessRun, WorldError> {
        let mut command = self.program(&["up", "--json"]);
        command.args(&self.arguments).args(arguments);
        ProcessRun::start(command, Arc::clone(&self.dir))
    }

    /// Starts any command.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub fn start(&self, arguments: &[&str]) -> Result<ProcessRun, WorldError> {
        ProcessRun::start(self.program(arguments), Arc::clone(&self.dir))
    }

    /// Runs any command to its end, for at most [`COMMAND_TIME_MAX`].
    ///
    /// # Errors
    /// Fails if the program cannot be started or does not end.
    pub fn command(&self, arguments: &[&str]) -> Result<ProcessOutput, WorldError> {
        self.start(arguments)?.finish()
    }

    /// Starts any command with a text as its standard input.
    ///
    /// # Errors
    /// Fails if the text cannot be stored, or the program cannot be started.
    pub fn start_with_stdin(
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
