//! The commands, one file each.
//!
//! A command gets what it needs as values and answers on stdout; what it fails
//! with goes back to `main`. No command may ask a question.

pub(crate) mod alerts;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod chat;
pub(crate) mod cloud;
pub(crate) mod devnet;
pub(crate) mod egress;
pub(crate) mod export_key;
pub(crate) mod guard;
pub(crate) mod heartbeat;
pub(crate) mod init;
pub(crate) mod lab;
pub(crate) mod limits;
pub mod live;
pub(crate) mod logs;
pub(crate) mod messages;
pub(crate) mod passphrase;
pub(crate) mod pnl;
pub(crate) mod policy;
pub(crate) mod preflight;
pub(crate) mod print;
pub(crate) mod prompt;
pub(crate) mod provision;
pub(crate) mod sandbox;
pub(crate) mod send;
pub(crate) mod status;
pub(crate) mod turn;
pub(crate) mod turns;
pub(crate) mod up;
pub mod wallet;
pub(crate) mod x402;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use automaton_core::entropy::SystemEntropy;
use automaton_core::faults::NoFaults;
use automaton_core::id::Mint;
use automaton_core::time::SystemClock;
use automaton_store::{Reader, Store};

use crate::args::{Cli, Command, Globals};
use crate::config::env::Environment;
use crate::config::file::ConfigFile;
use crate::config::resolve;
use crate::error::Failure;
use crate::home::{DATABASE, Scratch};
use crate::ui::pretty::{Pretty, Thoughts, Times};
use crate::ui::when::WallClock;
use crate::ui::{Format, Paint, Viewport};

/// What every command gets.
#[derive(Debug)]
pub struct Context {
    /// What the environment says.
    pub(crate) environment: Environment,
    /// `--home`.
    pub(crate) home_flag: Option<PathBuf>,
    /// How it answers.
    pub format: Format,
    /// Whether times are shown in UTC.
    pub(crate) utc: bool,
}

impl Context {
    /// With what the command line and the environment say.
    #[must_use]
    pub fn new(globals: Globals) -> Self {
        let (format, Globals { home: home_flag, utc, .. }) = (globals.format(), globals);
        Self { environment: Environment::read(), home_flag, format, utc }
    }

    /// A folder for a new home, which is thrown away with the value.
    ///
    /// # Errors
    /// As [`Scratch::new`].
    pub fn scratch(&self) -> Result<Scratch, Failure> {
        Scratch::new(self.environment.tmpdir.as_deref(), &mint())
    }

    /// What writes events to stdout for a person, each with its time.
    #[must_use]
    pub fn pretty(&self) -> Pretty<io::Stdout> {
        let paint = Paint::of_stdout(&self.environment);
        Pretty::new(io::stdout(), paint, Thoughts::Whole, Times::Shown).on(self.screen())
    }

    /// The home, as an absolute path.
    ///
    /// # Errors
    /// When nothing names one.
    pub(crate) fn home(&self) -> Result<PathBuf, Failure> {
        resolve::home(self.home_flag.as_deref(), &self.environment)
    }

    /// How times are shown to a person.
    pub(crate) fn clock(&self) -> WallClock {
        if self.utc { WallClock::utc() } else { WallClock::local(self.environment.tz.as_deref()) }
    }

    /// What a person sees of stdout.
    pub(crate) fn screen(&self) -> Viewport {
        Viewport::of_stdout(&self.environment, self.clock())
    }

    /// The home of an automaton, and its configuration.
    ///
    /// # Errors
    /// When none lives there, or its configuration is invalid.
    pub(crate) fn inhabited(&self) -> Result<(PathBuf, ConfigFile), Failure> {
        let home = self.home()?;
        let file = crate::home::read(&home)?;
        Ok((home, file))
    }

    /// The same with its record, for commands that only look.
    ///
    /// # Errors
    /// When no automaton lives there, or its record cannot be read.
    pub(crate) fn record(&self) -> Result<(PathBuf, ConfigFile, Reader), Failure> {
        let (home, file) = self.inhabited()?;
        if !home.join(DATABASE).exists() {
            let what = format!("the automaton in {} was not started yet", home.display());
            return Err(Failure::user(what).hint("start it with `automaton run`"));
        }
        let reader = Reader::open(&home.join(DATABASE))?;
        Ok((home, file, reader))
    }
}

/// Does something to a life that nobody lives: the caller holds the home's lock.
///
/// # Errors
/// When the store cannot be opened or closed, or the work fails.
pub(crate) fn with_store<T>(
    home: &Path,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    live::runtime()?.block_on(async {
        let store = Store::open(&home.join(DATABASE), mint(), Arc::new(NoFaults))?;
        let done = work(&store).await;
        store.close().await?;
        done
    })
}

/// Ids from the system's clock and chance.
#[must_use]
pub fn mint() -> Mint {
    Mint::new(Arc::new(SystemClock), Arc::new(SystemEntropy))
}

/// Runs one command.
///
/// # Errors
/// What the command fails with.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let context = Context::new(cli.globals);
    match cli.command {
        Command::Up(args) => up::run(&context, *args),
        Command::Run(args) => live::run(&context, args),
        Command::Init { name, genesis } => init::run(&context, (name.as_ref(), genesis.as_ref())),
        Command::Status => status::run(&context),
        Command::Logs(args) => logs::run(&context, &args),
        Command::Alerts { lines } => alerts::run(&context, lines),
        Command::Egress { lines } => egress::run(&context, lines),
        Command::Turns { lines } => turns::list(&context, lines),
        Command::Turn(args) => turn::run(&context, &args),
        Command::Heartbeat { task: None, .. } => heartbeat::list(&context),
        Command::Heartbeat { task: Some(task), lines } => heartbeat::runs(&context, &task, lines),
        Command::Prompt => prompt::run(&context),
        Command::Send(args) => send::run(&context, &args),
        Command::Chat { lines } => chat::run(&context, lines),
        Command::Messages(args) => messages::run(&context, &args),
        Command::Wake { reason } => send::wake(&context, &reason),
        Command::Stop => send::stop(&context),
        Command::Cloud(args) => cloud::run(&context, &args),
        Command::Devnet(args) => devnet::run(&context, args),
        Command::Wallet { command } => wallet::run(&context, &command),
        Command::Fund(args) => wallet::fund(&context, &args),
        Command::Provision(args) => provision::run(&context, &args),
        Command::Credits => provision::credits(&context),
        Command::Pnl(args) => pnl::run(&context, &args),
        Command::Limits { signer, command } => limits::run(&context, signer, &command),
        Command::Approvals { command } => approvals::run(&context, &command),
        Command::Audit { command } => audit::run(&context, &command),
        Command::Policy { command } => policy::run(&context, &command),
        Command::X402 { command } => x402::run(&context, &command),
        Command::ExportKey(args) => export_key::run(&context, &args),
        Command::Sandbox { command } => return sandbox::run(&context, &command),
        Command::Guard { command } => guard::run(&context, &command),
        Command::Drill(args) => return lab::run(&context, "drill", args),
        Command::Bench(args) => return lab::run(&context, "bench", args),
        Command::Topup(args) => wallet::top_up(&context, &args),
        Command::Constitution => print::constitution(),
        Command::Schema => print::schema(),
        Command::Completions { shell } => print::completions(shell),
    }?;
    Ok(ExitCode::SUCCESS)
}
