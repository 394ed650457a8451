//! `run`: lets the automaton of a home live. `up` ends here too.

use std::path::Path;

use automaton_core::error::ErrorClass;
use automaton_core::event::Event;
use automaton_core::wire::x402::ChainId;
use automaton_sandbox::process::Signals;

use super::preflight::{self, PreflightRequest};
use super::{CommandContext, dry_run};
use crate::args::{BrainFlags, RunArgs};
use crate::backup;
use crate::config::file::{ConfigFile, FILE_NAME};
use crate::config::named_brain::NamedBrain;
use crate::config::resolve::{self, ResolvedConfig};
use crate::error::CliError;
use crate::event_exporters::EventExporters;
use crate::home;
use crate::log::EventLog;
use crate::metrics;
use crate::operator;
use crate::process::{executable, runtime};
use crate::remote_backend::RemoteBackend;
use crate::role::launch_config::{InitialMessage, LaunchConfig};
use crate::role::provider;
use crate::services::PaymentBackend;
use crate::stack::{self, Stack};
use crate::story_driver::StoryDriver;
use crate::supervisor::Supervisor;
use crate::ui::console::Console;
use crate::ui::{self, Format, text, wrap};
use crate::workspace::{self, WorkingTimes, WorkspaceFiles, WorkspaceSummary};

/// Lets the automaton of a home live.
pub(crate) fn run(context: &CommandContext, args: RunArgs) -> Result<(), CliError> {
    args.diagnostics.start(&context.environment, "supervisor")?;
    let signals = Signals::receive()?;
    let home = context.home()?;
    // First of all: a directory without an automaton is not touched.
    if !home.join(FILE_NAME).exists() {
        return Err(home::no_automaton(&home));
    }
    let lock = home::lock_if_made(&home)?;
    let mut flags = BrainFlags::default();
    let findings = preflight::check(PreflightRequest {
        environment: &context.environment,
        home: &home,
        file: home::read(&home),
        flags: &flags,
        run: &args,
        signals: &signals,
        has_stack: |home, _| stack::is_there(home),
    })?;
    findings.report();
    flags.only_model = findings.only_model.map(|model| model.to_string());
    home::make_private(&home)?;
    let _lock = lock.map_or_else(|| home::lock(&home), Ok)?;
    let file = home::read(&home)?;
    warn_of_config(&home, &file);
    let resolved = resolve::resolve(&home, &file, &flags, &args.remote, &context.environment)?;
    // A dry run opens no stack, since that may write.
    let has_stack = !args.dry_run && stack::is_there(&home);
    let backend = backend(context, &resolved, &args, has_stack)?;
    if args.dry_run {
        return dry_run::show(context, &resolved, backend.as_ref());
    }
    let again = "run".to_owned();
    let life = RunSpec { resolved, backend, args, ask: None, scratch: false, again, named: None };
    runtime()?.block_on(run_life(context, life, None, &signals))
}

/// Returns the cloud and chain: others' if the configuration names them, else its own if it
/// `has_stack`.
///
/// # Errors
/// When there is no wallet that can pay, or the stack cannot be opened.
pub(super) fn backend(
    context: &CommandContext,
    resolved: &ResolvedConfig,
    args: &RunArgs,
    has_stack: bool,
) -> Result<Option<PaymentBackend>, CliError> {
    if args.direct {
        return Ok(None);
    }
    let passphrase = args.passphrase(&context.environment)?;
    if let Some(remote) = &resolved.remote {
        let opened = RemoteBackend::open(resolved, remote.clone(), passphrase.as_ref())?;
        return Ok(Some(PaymentBackend::Remote(Box::new(opened))));
    }
    let own = has_stack.then(|| Stack::open(&resolved.home, passphrase)).transpose()?;
    let reach = args.machine_egress.clone();
    Ok(own.map(|stack| PaymentBackend::Own(Box::new(stack.letting_machines_reach(reach)))))
}

/// Settings of a run.
#[derive(Debug)]
pub(crate) struct RunSpec {
    /// The configuration as it holds.
    pub(crate) resolved: ResolvedConfig,
    /// Cloud and chain; without them thinking costs nothing.
    pub(crate) backend: Option<PaymentBackend>,
    /// Limits of the run.
    pub(crate) args: RunArgs,
    /// A first message of the creator.
    pub(crate) ask: Option<InitialMessage>,
    /// True if its home is deleted at the end.
    pub(crate) scratch: bool,
    /// The command that starts it again.
    pub(crate) again: String,
    /// The brain that the command line named, to be kept when it has answered.
    pub(crate) named: Option<NamedBrain>,
}

/// Furnishes the home and supervises the agent to its end.
///
/// # Errors
/// When the agent cannot live, or the story is not told.
pub(crate) async fn run_life(
    context: &CommandContext,
    life: RunSpec,
    telling: Option<StoryDriver>,
    signals: &Signals,
) -> Result<(), CliError> {
    let RunSpec { mut resolved, backend, args, ask, scratch, again, named } = life;
    // The model of a story is for it alone, and says nothing of itself.
    if telling.is_none() {
        provider::discover_models(&mut resolved.brain).await;
        for other in &mut resolved.other_sellers {
            provider::discover_models_of(other).await;
        }
    }
    if !matches!(backend, Some(PaymentBackend::Own(_))) && !args.machine_egress.is_empty() {
        let what = "--machine-egress is for machines of an automaton's own cloud, and it has none";
        return Err(CliError::user(what).hint("say it to the cloud that it lives from"));
    }
    home::create_missing_files(&resolved.home)?;
    let log = EventLog::open(&resolved.home, resolved.log_level);
    let mut console = Console::new(context.format, &context.environment, context.screen(), log);
    let metrics = match resolved.metrics {
        Some(at) => Some(metrics::serve(at, &resolved.home).await?),
        None => None,
    };
    if let Some(metrics) = &metrics {
        console.report(Event::MetricsServed { url: metrics.url.clone() })?;
    }
    check_remote(backend.as_ref(), &resolved, &args, &mut console).await?;
    let outlets = EventExporters::open(&resolved)?;
    let workspace = resolved.home.join(home::WORKSPACE);
    let before = WorkspaceFiles::read(&workspace);
    let record = resolved.home.join(home::DATABASE);
    let config = LaunchConfig {
        egress: resolved.egress.gather(&resolved.home)?,
        operator: operator::begin(&resolved.home)?,
        resolved,
        executable: executable()?,
        turns_max: args.turns,
        ask,
        fault: args.fault,
        money: None,
    };
    let supervisor = Supervisor::new(config, console, telling)
        .with_exporters(outlets)
        .with_named_brain(named.clone());
    let ended = supervisor.run(signals, backend).await;
    if context.format == Format::Text {
        let times = WorkingTimes::read(&record);
        let left = WorkspaceFiles::read(&workspace).since(&before, &times);
        let is_kept = named.as_ref().is_some_and(NamedBrain::is_kept);
        let again = if is_kept { "run" } else { again.as_str() };
        let again = ended.is_ok().then_some(again);
        leave(context, &workspace, &left, scratch, again)?;
    }
    ended
}

/// Offers a backup where there was none and money is worth something.
fn offer_backup(resolved: &ResolvedConfig) {
    let chain = resolved.remote.as_ref().map(|remote| remote.network.chain_id.get());
    if chain != Some(ChainId::DEV.0) && !resolved.home.join(backup::STAMP).exists() {
        ui::say(backup::OFFER);
    }
}

/// Looks at the cloud and the chain of others that it lives from; what could not be asked now
/// is told, and may pass.
///
/// # Errors
/// When something there is not as the operator chose it.
async fn check_remote(
    backend: Option<&PaymentBackend>,
    resolved: &ResolvedConfig,
    args: &RunArgs,
    console: &mut Console,
) -> Result<(), CliError> {
    let missing = match backend {
        Some(PaymentBackend::Remote(remote)) => {
            offer_backup(resolved);
            remote.check(resolved).await?.unknown
        }
        Some(PaymentBackend::Own(_)) => return Ok(()),
        None if args.direct || resolved.brain.can_be_sold() => return Ok(()),
        None => vec![
            CliError::new(ErrorClass::Config, "it cannot buy credits: no node of a chain is named")
                .hint("set `rpcUrl` in automaton.json; --direct says that this is meant"),
        ],
    };
    for failure in missing {
        let kind = failure.kind;
        let error = failure.line();
        let hint = failure.remedy;
        console.report(Event::ErrorReported { kind, error, hint })?;
    }
    Ok(())
}

/// Says what was made and where, and how to go on.
fn leave(
    context: &CommandContext,
    workspace: &Path,
    left: &WorkspaceSummary,
    scratch: bool,
    again: Option<&str>,
) -> Result<(), CliError> {
    let screen = context.screen();
    let place = text::tilde(&workspace.display().to_string(), screen.user_home.as_deref());
    let told = left.describe((!scratch).then_some(place.as_str()));
    let next = if scratch {
        Some("Its home is thrown away now; without --scratch it stays in ~/.automaton".to_owned())
    } else {
        let typed = std::env::args_os().next();
        let here = std::env::current_dir();
        // silent-ok: without them the program is called by its usual name, or its whole path.
        let program = workspace::program(typed.as_ref().map(Path::new), here.ok().as_deref());
        let home = context.home_flag.as_deref();
        again.map(|again| workspace::next_steps(&program, again, home))
    };
    for text in [told, next].into_iter().flatten() {
        ui::line(&wrap::hanging(&text, screen.width()))?;
    }
    Ok(())
}

/// Tells of keys that have no effect, and of a file that a newer program wrote.
pub(crate) fn warn_of_config(home: &Path, file: &ConfigFile) {
    let path = home.join(FILE_NAME);
    let path = path.display();
    let ours = env!("CARGO_PKG_VERSION");
    if !file.idle_keys.is_empty() {
        let keys = file.idle_keys.join(", ");
        ui::say(&format!("note: keys of {path} that have no effect: {keys}"));
    }
    if let Some(theirs) = file.version.as_deref().filter(|theirs| is_newer(theirs, ours)) {
        let theirs = text::short(theirs, 60);
        ui::say(&format!("warning: {path} was written by version {theirs}, and this is {ours}"));
    }
}

/// Returns true if a version is higher than another, by their numbers.
fn is_newer(version: &str, than: &str) -> bool {
    // silent-ok: what is no number comes before each that is one.
    let numbers =
        |text: &str| text.split('.').map(|part| part.parse().ok()).collect::<Vec<Option<u64>>>();
    numbers(version) > numbers(than)
}

#[cfg(test)]
mod tests {
    use super::is_newer;

    #[test]
    fn a_version_is_newer_by_its_numbers() {
        for (version, than, newer) in [
            ("0.10.0", "0.9.1", true),
            ("1", "0.9.1", true),
            ("0.9.1", "0.9.1", false),
            ("0.9.0", "0.9.1", false),
            ("nonsense", "0.9.1", false),
        ] {
            assert_eq!(is_newer(version, than), newer, "{version}");
        }
    }
}
