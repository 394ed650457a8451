//! The command line: what a person may type.
//!
//! Only the shape is checked here; nothing has an effect. The flags of the
//! reference runtime lead to our commands, see `translate`.

mod brain;
mod cloud;
mod payment;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use alloy_primitives::Address;
use automaton_core::wire::x402::ChainId;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};

pub(crate) use self::brain::{BrainArg, BrainFlags, KNOWN_PROVIDERS};
pub(crate) use self::cloud::RemoteFlags;
pub(crate) use self::payment::{FundArgs, PaymentArgs, TopUpArgs, usdc};
use crate::cmd::approvals::ApprovalsCommand;
use crate::cmd::audit::AuditCommand;
use crate::cmd::backup::{BackupArgs, RestoreArgs};
use crate::cmd::cloud::CloudArgs;
use crate::cmd::export_key::ExportKeyArgs;
use crate::cmd::guard::GuardCommand;
use crate::cmd::heartbeat::HeartbeatArgs;
use crate::cmd::limits::LimitsCommand;
use crate::cmd::logs::LogsArgs;
use crate::cmd::memory::MemoryCommand;
use crate::cmd::messages::MessagesArgs;
use crate::cmd::model::ModelCommand;
use crate::cmd::passphrase::{PassphraseArgs, location_from_flags};
use crate::cmd::pnl::PnlArgs;
use crate::cmd::policy::PolicyCommand;
use crate::cmd::sandbox::SandboxCommand;
use crate::cmd::send::{SendArgs, message};
use crate::cmd::soul::SoulCommand;
use crate::cmd::turn::TurnArgs;
use crate::cmd::workspace::WorkspaceCommand;
use crate::cmd::x402::X402Command;
use crate::config::env::Environment;
use crate::config::values::{EgressTarget, HttpUrl, Name, Prompt};
use crate::diagnostics::DiagnosticsArgs;
use crate::error::CliError;
use crate::role::signer::PassphraseLocation;
use crate::ui::Format;

/// A sovereign AI agent: it thinks, acts in a sandbox, remembers, sleeps and wakes.
#[derive(Debug, Parser)]
#[command(name = "automaton", version, propagate_version = true, max_term_width = 100)]
#[command(arg_required_else_help = true)]
pub(crate) struct Cli {
    /// The command.
    #[command(subcommand)]
    pub(crate) command: CliCommand,
    /// Options of every command.
    #[command(flatten)]
    pub(crate) globals: Globals,
}

impl Cli {
    /// Returns the output format.
    pub(crate) fn format(&self) -> Format {
        match &self.command {
            // Their words are the laboratory's to read, but for this.
            CliCommand::Drill(LabArgs { words }) | CliCommand::Bench(LabArgs { words }) => {
                Format::of(self.globals.json || asks_for_json(words))
            }
            _ => self.globals.format(),
        }
    }
}

/// Options of every command, also of the laboratory's.
#[derive(Debug, Args)]
pub struct Globals {
    /// The automaton's home [default: $AUTOMATON_HOME, else ~/.automaton]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub home: Option<PathBuf>,
    /// Answer in JSON: one document, or one event a line; a failure is one, too
    #[arg(long, global = true)]
    pub json: bool,
    /// Show times in UTC instead of the zone of this machine
    #[arg(long, global = true)]
    pub utc: bool,
}

impl Globals {
    /// Returns the output format.
    #[must_use]
    pub const fn format(&self) -> Format {
        Format::of(self.json)
    }
}

/// Commands of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Make an automaton if there is none, and run it
    Up(Box<UpArgs>),
    /// Run the automaton that was made before
    Run(RunArgs),
    /// Make an automaton without running it
    Init {
        /// Its name [default: Automaton]
        #[arg(long, value_name = "NAME")]
        name: Option<Name>,
        /// Its purpose
        #[arg(long, value_name = "TEXT")]
        genesis: Option<Prompt>,
        /// Cloud and chain
        #[command(flatten)]
        remote: RemoteFlags,
    },
    /// Show how the automaton is doing
    Status,
    /// Show what happened
    Logs(LogsArgs),
    /// List what is wrong now, and what was earlier
    Alerts {
        /// Number of alerts to show
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        lines: u32,
    },
    /// List the network requests of its commands
    Egress {
        /// Number of requests to show
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        lines: u32,
    },
    /// List its turns
    Turns {
        /// Number of turns to show
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        lines: u32,
    },
    /// Show everything about one turn
    Turn(TurnArgs),
    /// List the tasks that it runs on a schedule, or the last runs of one
    Heartbeat(HeartbeatArgs),
    /// Show or choose the models that it thinks with, and what they cost
    Model {
        /// The command
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// Show what the model would see now
    Prompt,
    /// Send it a message
    Send(SendArgs),
    /// Talk with it
    Chat {
        /// Number of earlier messages to show first
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
        lines: u32,
    },
    /// List what you and it said to each other
    Messages(MessagesArgs),
    /// Search, correct and take along what it remembers
    Memory {
        /// The command
        #[command(subcommand)]
        command: MemoryCommand,
    },
    /// Show or change what it thinks of itself
    Soul {
        /// The command
        #[command(subcommand)]
        command: SoulCommand,
    },
    /// Show what it notes for itself between its wakes
    Worklog,
    /// Bring files of its workspace back from snapshots
    Workspace {
        /// What to do
        #[command(subcommand)]
        command: WorkspaceCommand,
    },
    /// Wake it
    Wake {
        /// Reason, which the automaton is told
        #[arg(default_value = "your creator woke you")]
        reason: String,
    },
    /// Stop it, after the step it is in
    Stop,
    /// Run a cloud for automatons: credits, models, sign-in
    Cloud(CloudArgs),
    /// Run a test chain to try payments on, with a dollar token and a faucet
    Devnet(DevnetArgs),
    /// Make the automaton's wallet, or show it
    Wallet {
        /// The command
        #[command(subcommand)]
        command: WalletCommand,
    },
    /// Give the wallet USDC from a test chain's faucet, or show where to send it
    Fund(FundArgs),
    /// Make an account with a cloud: sign in with the wallet, keep the API key
    Provision(ProvisionArgs),
    /// Show the credits that are left with the cloud
    Credits,
    /// Buy credits from a cloud, with USDC from the wallet
    Topup(TopUpArgs),
    /// Show what it earned and spent
    Pnl(PnlArgs),
    /// Show or set how much the wallet may spend
    Limits {
        /// The folder of another wallet's key, such as that of a cloud's gas
        #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
        signer: Option<PathBuf>,
        /// The command
        #[command(subcommand)]
        command: LimitsCommand,
    },
    /// Answer the questions that need your approval
    Approvals {
        /// The command
        #[command(subcommand)]
        command: ApprovalsCommand,
    },
    /// Show the record of what was decided and done, and check that nobody changed it
    Audit {
        /// The command
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Show what the automaton may do, and try your own rules
    Policy {
        /// The command
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Request a URL that may ask for money
    X402 {
        /// The command
        #[command(subcommand)]
        command: X402Command,
    },
    /// Keep its life and its key in one encrypted file, while it lives on
    Backup(BackupArgs),
    /// Bring a life back from its backup
    Restore(RestoreArgs),
    /// Print the wallet's private key
    ExportKey(ExportKeyArgs),
    /// Test what is promised, on throw-away automatons
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Drill(LabArgs),
    /// Run your own commands in the automaton's sandbox
    Sandbox {
        /// The command
        #[command(subcommand)]
        command: SandboxCommand,
    },
    /// Check a text for attempts to take control of the model
    Guard {
        /// The command
        #[command(subcommand)]
        command: GuardCommand,
    },
    /// Measure how fast it is on this machine
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Bench(LabArgs),
    /// Print the constitution that every automaton starts with
    Constitution,
    /// Print the JSON Schema of automaton.json, or of what a command prints with --json
    Schema(SchemaArgs),
    /// Print command-line completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Print the schema of this command's output, such as `status` or `approvals-list`
    #[arg(long, value_name = "NAME")]
    pub(crate) output: Option<String>,
    /// List the names of all outputs
    #[arg(long, conflicts_with = "output")]
    pub(crate) list: bool,
}

/// Arguments of `drill` and `bench`, which `automaton-lab` reads.
#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    /// The drill or the measurement
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}

/// Arguments of `devnet`.
#[derive(Debug, Args)]
pub(crate) struct DevnetArgs {
    /// Address to listen at; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8545")]
    pub(crate) listen: SocketAddr,
    /// The folder that keeps the chain [default: it is gone at the end]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<PathBuf>,
    /// Its id, by EIP-155
    #[arg(long, value_name = "ID", default_value_t = ChainId::DEV.0)]
    pub(crate) chain_id: u64,
    /// Diagnostics.
    #[command(flatten)]
    pub(crate) diagnostics: DiagnosticsArgs,
    /// Rehearse a crash at a point, on a folder made for that.
    #[arg(long, hide = true, value_name = "POINT[:N]", requires = "data")]
    pub(crate) fault: Option<String>,
}

/// Commands for the wallet.
#[derive(Debug, Subcommand)]
pub(crate) enum WalletCommand {
    /// Make a new key and encrypt it with a passphrase
    New {
        /// A file with the passphrase, which only you can read [default: ask at the terminal]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        passphrase_file: Option<PathBuf>,
        /// Your own address, whose signature can raise the limits
        #[arg(long, value_name = "ADDRESS")]
        creator: Option<Address>,
    },
    /// Take the key from another wallet's keystore file, with the passphrase of that file
    Import {
        /// The file: a keystore of version 3, as geth, cast or ethers write it
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// A file with the passphrase, which only you can read [default: ask at the terminal]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        passphrase_file: Option<PathBuf>,
        /// Your own address, whose signature can raise the limits
        #[arg(long, value_name = "ADDRESS")]
        creator: Option<Address>,
    },
    /// Show its address
    Show,
}

/// Arguments of `provision`.
#[derive(Debug, Args)]
pub(crate) struct ProvisionArgs {
    /// The cloud [default: $CONWAY_API_URL, else `conwayApiUrl` of automaton.json]
    #[arg(long, value_name = "URL")]
    pub(crate) cloud: Option<HttpUrl>,
    /// The chain that the sign-in names
    #[arg(long, value_name = "ID", default_value_t = ChainId::BASE.0)]
    pub(crate) chain: u64,
    /// The passphrase.
    #[command(flatten)]
    pub(crate) passphrase: PassphraseArgs,
}

/// Arguments of `up`.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Its name, when it is made
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<Name>,
    /// Its purpose, when it is made
    #[arg(long, value_name = "TEXT")]
    pub(crate) genesis: Option<Prompt>,
    /// Your first message to it
    #[arg(long, value_name = "TEXT", value_parser = message)]
    pub(crate) ask: Option<String>,
    /// The brain.
    #[command(flatten)]
    pub(crate) flags: BrainFlags,
    /// Use a new home, and delete it at the end
    #[arg(long, conflicts_with = "home")]
    pub(crate) scratch: bool,
    /// Limits of the run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Arguments of every command that lets an automaton live.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// Stop after so many turns, or when all is answered; it sleeps at most a second at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) turns: Option<u32>,
    /// Ask the model directly: no chain, no cloud, no wallet, no payments
    #[arg(long)]
    pub(crate) direct: bool,
    /// Show what it would pay in a day, and end
    #[arg(long, conflicts_with = "direct")]
    pub(crate) dry_run: bool,
    /// Cloud and chain.
    #[command(flatten)]
    pub(crate) remote: RemoteFlags,
    /// A file with the wallet's passphrase, for a wallet that was made by hand
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    passphrase_file: Option<PathBuf>,
    /// A host, as pypi.org or *.pythonhosted.org, or an origin, as http://10.0.0.7:8000, that
    /// machines rented from its own cloud may reach; may be given more than once
    #[arg(long, value_name = "HOST_OR_ORIGIN", conflicts_with = "direct")]
    pub(crate) machine_egress: Vec<EgressTarget>,
    /// The name of the systemd credential with the wallet's passphrase
    #[arg(long, value_name = "NAME", conflicts_with = "passphrase_file")]
    passphrase_credential: Option<String>,
    /// Diagnostics.
    #[command(flatten)]
    pub(crate) diagnostics: DiagnosticsArgs,
    /// Rehearse a crash at a point, on a home made for that.
    #[arg(long, hide = true, value_name = "POINT[:N]")]
    pub(crate) fault: Option<String>,
}

impl RunArgs {
    /// Returns the place of the wallet's passphrase, if a flag names it.
    ///
    /// # Errors
    /// When a credential is named where there are none.
    pub(crate) fn passphrase(
        &self,
        env: &Environment,
    ) -> Result<Option<PassphraseLocation>, CliError> {
        location_from_flags(
            self.passphrase_file.as_deref(),
            self.passphrase_credential.as_deref(),
            env,
        )
    }
}

/// Meaning of a flag of the reference.
#[derive(Debug, Clone, Copy)]
enum Alias {
    /// These words.
    Words(&'static [&'static str]),
    /// Nothing, and this is what to do instead.
    Instead(&'static str),
}

/// The reference's flags, in the order in which it heeds them.
const ALIASES: [(&str, Alias); 8] = [
    ("-v", Alias::Words(&["--version"])),
    ("--init", Alias::Words(&["init", "--json"])),
    ("--provision", Alias::Words(&["provision"])),
    ("--status", Alias::Words(&["status"])),
    ("--setup", Alias::Words(&["init"])),
    (
        "--pick-model",
        Alias::Instead(
            "name the model with `automaton up --model FILE.gguf` or `automaton up --brain URL \
             --brain-model NAME`, or with the key `brain` of automaton.json",
        ),
    ),
    (
        "--configure",
        Alias::Instead(
            "edit automaton.json in the automaton's home; `automaton schema` prints what it may hold",
        ),
    ),
    ("--run", Alias::Words(&["run"])),
];

/// Returns true if a command line that cannot be parsed asks for JSON.
pub(crate) fn asks_for_json(argv: &[OsString]) -> bool {
    argv.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// The sentence of a parser of numbers, as a person says it.
pub(crate) fn in_plain_words(what: &str) -> String {
    const SENTENCES: [(&str, &str); 5] = [
        ("invalid digit found in string", "it is no whole number"),
        ("cannot parse integer from empty string", "it is no whole number"),
        ("number too large to fit in target type", "the number is too large"),
        ("number too small to fit in target type", "the number is too small"),
        ("invalid socket address syntax", "it is no address such as 127.0.0.1:8545"),
    ];
    SENTENCES.iter().fold(what.to_owned(), |text, (said, plain)| text.replace(said, plain))
}

/// A mistake in the command line as a failure: what is wrong, and how it is right.
pub(crate) fn mistake(error: &clap::Error) -> CliError {
    let text = error.to_string();
    let mut parts = text.split("\n\n").map(|part| {
        let lines: Vec<&str> = part.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
        lines.join(" ")
    });
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand
    ) {
        return CliError::user("no command was given").hint("`--help` lists what may follow");
    }
    let what = in_plain_words(&parts.next().unwrap_or_default());
    let rest: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    let failure = CliError::user(what.strip_prefix("error: ").unwrap_or(&what));
    if rest.is_empty() { failure } else { failure.hint(rest.join(" ")) }
}

/// Replaces a flag of the reference by our command, unless a command of ours
/// is there. The first flag in the reference's order holds.
///
/// # Errors
/// When the flag has no counterpart.
pub(crate) fn translate(argv: Vec<OsString>) -> Result<Vec<OsString>, CliError> {
    let command = Cli::command();
    let ours = |word: &OsString| command.get_subcommands().any(|sub| word == sub.get_name());
    let mut words = argv.iter().skip(1);
    let alias = ALIASES.iter().find(|(flag, _)| argv.iter().skip(1).any(|word| word == flag));
    let (flag, alias) = match alias {
        Some(alias) if !words.any(ours) => alias,
        _ => return Ok(argv),
    };
    match alias {
        Alias::Instead(sentence) => {
            Err(CliError::user(format!("this automaton has no {flag}")).hint(*sentence))
        }
        Alias::Words(words) => {
            let known = |word: &OsString| ALIASES.iter().any(|(flag, _)| word == flag);
            let mut argv = argv.into_iter();
            let program = argv.next();
            let others = argv.filter(|word| !known(word));
            Ok(program.into_iter().chain(words.iter().map(OsString::from)).chain(others).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let argv = line.split(' ').map(OsString::from).collect();
        let words: Vec<String> =
            translate(argv).unwrap().into_iter().map(|word| word.into_string().unwrap()).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn flags_of_the_reference_become_commands() {
        check("automaton --run", "automaton run");
        check("automaton --home /h --run", "automaton run --home /h");
        check("automaton --run --status", "automaton status");
        check("automaton --init", "automaton init --json");
        check("automaton -v", "automaton --version");
        check("automaton --provision --cloud http://c", "automaton provision --cloud http://c");
        let error = translate(vec!["automaton".into(), "--configure".into()]).unwrap_err();
        assert_eq!(error.line(), "this automaton has no --configure");
        check("automaton send --run", "automaton send --run");
        check("automaton up --turns 1", "automaton up --turns 1");
    }

    #[test]
    fn a_mistake_says_what_is_wrong_and_how_it_is_right() {
        let mistake = |line: &str| mistake(&Cli::try_parse_from(line.split(' ')).unwrap_err());
        let flag = mistake("automaton up --fly");
        assert_eq!(flag.what, "unexpected argument '--fly' found");
        assert!(flag.remedy.unwrap().starts_with("Usage: automaton up [OPTIONS] For more"));
        assert_eq!(mistake("automaton").what, "no command was given");
        for given in ["abc", "1.5", ""] {
            let turns = mistake(&format!("automaton up --turns={given}")).what;
            let wanted =
                format!("invalid value '{given}' for '--turns <N>': it is no whole number");
            assert_eq!(turns, wanted);
        }
        let large = mistake("automaton up --turns 99999999999").what;
        assert!(large.contains("99999999999") && !large.contains("target type"), "{large}");
        assert!(Cli::try_parse_from(["automaton", "help", "up"]).is_err_and(|help| {
            help.kind() == ErrorKind::DisplayHelp && help.to_string().contains("--brain-model")
        }));
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(asks_for_json(&words("automaton up --fly --json")));
        assert!(!asks_for_json(&words("automaton sandbox run -- ls --json")));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
