//! The commands, one file each.
//!
//! A command gets what it needs as values and answers on stdout; what it fails
//! with goes back to `main`. No command may ask a question but a restore of the workspace, which
//! then says what it would change.

pub(crate) mod alerts;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod chat;
pub(crate) mod cloud;
pub(crate) mod devnet;
mod dry_run;
pub(crate) mod egress;
pub(crate) mod export_key;
pub(crate) mod guard;
pub(crate) mod heartbeat;
pub(crate) mod init;
pub(crate) mod lab;
pub(crate) mod limits;
pub mod live;
pub(crate) mod logs;
pub(crate) mod memory;
pub(crate) mod messages;
pub mod model;
pub(crate) mod new_brain;
pub(crate) mod passphrase;
mod payment;
pub(crate) mod pnl;
pub(crate) mod policy;
pub(crate) mod preflight;
pub(crate) mod print;
pub(crate) mod prompt;
pub(crate) mod provision;
mod pull;
pub(crate) mod sandbox;
mod schema;
pub(crate) mod send;
pub(crate) mod soul;
pub(crate) mod status;
pub(crate) mod turn;
pub(crate) mod turns;
pub(crate) mod up;
pub mod wallet;
pub(crate) mod worklog;
pub(crate) mod workspace;
pub(crate) mod x402;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use automaton_core::entropy::SystemEntropy;
use automaton_core::faults::NoFaults;
use automaton_core::id::IdGenerator;
use automaton_core::time::SystemClock;
use automaton_store::{Reader, Store};

use self::model::ModelCommand;
use crate::args::{BrainFlags, Cli, CliCommand, Globals, RemoteFlags};
use crate::config::env::Environment;
use crate::config::file::ConfigFile;
use crate::config::resolve::{self, ResolvedConfig};
use crate::error::CliError;
use crate::home::{DATABASE, Scratch};
use crate::process;
use crate::ui::pretty::{EventPrinter, ThoughtDisplay, TimeColumn};
use crate::ui::when::WallClock;
use crate::ui::{ColorMode, Format, Viewport};

/// Context of every command.
#[derive(Debug)]
pub struct CommandContext {
    /// Values of the environment.
    pub(crate) environment: Environment,
    /// `--home`.
    pub(crate) home_flag: Option<PathBuf>,
    /// Output format.
    pub format: Format,
    /// True if times are shown in UTC.
    pub(crate) utc: bool,
}

impl CommandContext {
    /// With what the command line and the environment say.
    #[must_use]
    pub fn new(globals: Globals) -> Self {
        let format = globals.format();
        let Globals { home: home_flag, utc, .. } = globals;
        Self { environment: Environment::read(), home_flag, format, utc }
    }

    /// A folder for a new home, which is thrown away with the value.
    ///
    /// # Errors
    /// As [`Scratch::new`].
    pub fn scratch(&self) -> Result<Scratch, CliError> {
        Scratch::new(self.environment.tmpdir.as_deref(), &id_generator())
    }

    /// Returns a printer of events with times, to stdout.
    #[must_use]
    pub fn pretty(&self) -> EventPrinter<io::Stdout> {
        let paint = ColorMode::of_stdout(&self.environment);
        EventPrinter::new(io::stdout(), paint, ThoughtDisplay::Whole, TimeColumn::Shown)
            .on(self.screen())
    }

    /// The home, as an absolute path.
    ///
    /// # Errors
    /// When nothing names one.
    pub(crate) fn home(&self) -> Result<PathBuf, CliError> {
        resolve::home(self.home_flag.as_deref(), &self.environment)
    }

    /// Returns the clock for people.
    pub(crate) fn clock(&self) -> WallClock {
        if self.utc { WallClock::utc() } else { WallClock::local(self.environment.tz.as_deref()) }
    }

    /// Returns the width and colours of stdout.
    pub(crate) fn screen(&self) -> Viewport {
        Viewport::of_stdout(&self.environment, self.clock())
    }

    /// Returns the folder in which an automaton lives.
    ///
    /// # Errors
    /// When none lives there, its configuration is invalid, or its record is gone.
    pub fn inhabited_folder(&self) -> Result<PathBuf, CliError> {
        self.inhabited().map(|(home, _)| home)
    }

    /// The home of an automaton, and its configuration.
    ///
    /// # Errors
    /// When none lives there, its configuration is invalid, or its record is gone.
    pub(crate) fn inhabited(&self) -> Result<(PathBuf, ConfigFile), CliError> {
        let home = self.home()?;
        let file = crate::home::read(&home)?;
        crate::home::check_record(&home)?;
        crate::home::check_workspace(&home)?;
        Ok((home, file))
    }

    /// Its configuration as it holds for commands that name no model and no cloud.
    ///
    /// # Errors
    /// When a value is missing, or two contradict each other.
    pub(crate) fn resolve(
        &self,
        home: &Path,
        file: &ConfigFile,
    ) -> Result<ResolvedConfig, CliError> {
        let brain = BrainFlags::default();
        let remote = RemoteFlags::default();
        resolve::resolve(home, file, &brain, &remote, &self.environment)
    }

    /// The same with its record, for commands that only look.
    ///
    /// # Errors
    /// When no automaton lives there, or its record cannot be read.
    pub(crate) fn record(&self) -> Result<(PathBuf, ConfigFile, Reader), CliError> {
        let (home, file) = self.inhabited()?;
        if !home.join(DATABASE).exists() {
            let what = format!("the automaton in {} was not started yet", home.display());
            return Err(CliError::user(what).hint("start it with `automaton run`"));
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
    work: impl AsyncFnOnce(&Store) -> Result<T, CliError>,
) -> Result<T, CliError> {
    crate::home::check_record(home)?;
    process::runtime()?.block_on(async {
        let store = Store::open(&home.join(DATABASE), id_generator(), Arc::new(NoFaults))?;
        let done = work(&store).await;
        store.close().await?;
        done
    })
}

/// Ids from the system's clock and chance.
#[must_use]
pub fn id_generator() -> IdGenerator {
    IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy))
}

/// Runs one command.
///
/// # Errors
/// What the command fails with.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, CliError> {
    let context = CommandContext::new(cli.globals);
    context.environment.authorities()?.install();
    match cli.command {
        CliCommand::Up(args) => up::run(&context, *args),
        CliCommand::Run(args) => live::run(&context, args),
        CliCommand::Init { name, genesis, remote } => {
            init::run(&context, name.as_ref(), genesis.as_ref(), &remote)
        }
        CliCommand::Status => status::run(&context),
        CliCommand::Logs(args) => logs::run(&context, &args),
        CliCommand::Alerts { lines } => alerts::run(&context, lines),
        CliCommand::Egress { lines } => egress::run(&context, lines),
        CliCommand::Turns { lines } => turns::list(&context, lines),
        CliCommand::Turn(args) => turn::run(&context, &args),
        CliCommand::Heartbeat(args) => heartbeat::run(&context, &args),
        CliCommand::Model { command: ModelCommand::Bench(mut args) } => {
            args.words.insert(0, "model".into());
            return lab::run(&context, "bench", args);
        }
        CliCommand::Model { command } => model::run(&context, &command),
        CliCommand::Prompt => prompt::run(&context),
        CliCommand::Send(args) => send::run(&context, &args),
        CliCommand::Chat { lines } => chat::run(&context, lines),
        CliCommand::Messages(args) => messages::run(&context, &args),
        CliCommand::Memory { command } => memory::run(&context, &command),
        CliCommand::Soul { command } => soul::run(&context, &command),
        CliCommand::Worklog => worklog::run(&context),
        CliCommand::Workspace { command } => workspace::run(&context, &command),
        CliCommand::Wake { reason } => send::wake(&context, &reason),
        CliCommand::Stop => send::stop(&context),
        CliCommand::Cloud(args) => cloud::run(&context, &args),
        CliCommand::Devnet(args) => devnet::run(&context, args),
        CliCommand::Wallet { command } => wallet::run(&context, &command),
        CliCommand::Fund(args) => wallet::fund(&context, &args),
        CliCommand::Provision(args) => provision::run(&context, &args),
        CliCommand::Credits => provision::credits(&context),
        CliCommand::Pnl(args) => pnl::run(&context, &args),
        CliCommand::Limits { signer, command } => limits::run(&context, signer, &command),
        CliCommand::Approvals { command } => approvals::run(&context, &command),
        CliCommand::Audit { command } => audit::run(&context, &command),
        CliCommand::Policy { command } => policy::run(&context, &command),
        CliCommand::X402 { command } => x402::run(&context, &command),
        CliCommand::Backup(args) => backup::make(&context, args),
        CliCommand::Restore(args) => backup::restore(&context, args),
        CliCommand::ExportKey(args) => export_key::run(&context, &args),
        CliCommand::Sandbox { command } => return sandbox::run(&context, &command),
        CliCommand::Guard { command } => guard::run(&context, &command),
        CliCommand::Drill(args) => return lab::run(&context, "drill", args),
        CliCommand::Bench(args) => return lab::run(&context, "bench", args),
        CliCommand::Topup(args) => wallet::top_up(&context, &args),
        CliCommand::Constitution => print::constitution(),
        CliCommand::Schema(args) => schema::run(&context, &args),
        CliCommand::Completions { shell } => print::completions(shell),
    }?;
    Ok(ExitCode::SUCCESS)
}
