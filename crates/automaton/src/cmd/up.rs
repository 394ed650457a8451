//! `up`: makes an automaton if there is none, and lets it live.

use std::path::Path;

use automaton_core::id::RunId;
use automaton_core::record::{StopReason, WakeCause, WakeSource};
use automaton_core::trust::{Label, Labelled};
use automaton_sandbox::process::Signals;
use automaton_script::story::Story;
use automaton_store::{Store, StoreError};

use super::live::{RunSpec, backend, run_life, warn_of_config};
use super::new_brain;
use super::preflight::{self, PreflightRequest};
use super::{CommandContext, dry_run, id_generator, with_store};
use crate::args::{BrainArg, BrainFlags, RemoteFlags, UpArgs};
use crate::config::env::Environment;
use crate::config::file::ConfigFile;
use crate::config::named_brain::NamedBrain;
use crate::config::resolve::{self, Brain};
use crate::error::CliError;
use crate::home::{self, DATABASE};
use crate::process::runtime;
use crate::role::launch_config::InitialMessage;
use crate::story_driver::StoryDriver;
use crate::workspace::quoted;

/// Makes an automaton if there is none, and lets it live.
pub(crate) fn run(context: &CommandContext, mut args: UpArgs) -> Result<(), CliError> {
    args.run.diagnostics.start(&context.environment, "supervisor")?;
    let signals = Signals::receive()?;
    let ids = id_generator();
    // Dropped last, when the agent has ended and the lock is free.
    let scratch = args.scratch.then(|| context.scratch()).transpose()?;
    let home = scratch.as_ref().map_or_else(|| context.home(), |scratch| Ok(scratch.home()))?;
    let story = story_of(&args.flags)?;
    home::check_ours(&home)?;
    let lock = home::lock_if_made(&home)?;
    let environment = &context.environment;
    args.flags.find_files(&home);
    let offered = new_brain::offer(&home, &mut args.flags, &args.run, environment)?;
    let name = args.name.as_ref();
    let genesis = args.genesis.as_ref();
    let findings = preflight::check(PreflightRequest {
        environment: &context.environment,
        home: &home,
        file: home::draft(&home, name, genesis, None, &args.run.remote).map(|draft| draft.file),
        flags: &args.flags,
        run: &args.run,
        signals: &signals,
        has_stack: |_, brain| brain.can_be_sold(),
    })?;
    if args.run.dry_run {
        return dry_run(context, &home, &args);
    }
    findings.report();
    args.flags.only_model = findings.only_model.map(|model| model.to_string());
    home::make_private(&home)?;
    let _lock = lock.map_or_else(|| home::lock(&home), Ok)?;
    let brain =
        new_brain::first_brain(&home, &args.flags, &args.run.remote, environment, &offered)?;
    let draft = home::draft(&home, name, genesis, brain.as_ref(), &args.run.remote)?;
    warn_of_config(&home, &draft.file);
    if args.flags.are_given() && !draft.is_new() {
        wake_after_failures(&home)?;
    }
    let key = format!("ask:{}", ids.id::<RunId>());
    let ask = args.ask.map(|text| InitialMessage { text, key });
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let telling = match story {
            Some(story) => Some(StoryDriver::start(story, home.clone(), ids).await?),
            None => None,
        };
        let remote = &args.run.remote;
        let resolved = match &telling {
            // The story's model is for this run alone and is written nowhere.
            Some(telling) => telling.resolve(&home, &draft.file, environment)?,
            None => resolve::resolve(&home, &draft.file, &args.flags, remote, environment)?,
        };
        draft.write_if_new(&home)?;
        let may_name = !draft.is_new() && !args.scratch && telling.is_none();
        let named =
            may_name.then(|| NamedBrain::from_flags(&home, &draft.file, &args.flags, &resolved));
        let named = named.transpose()?.flatten();
        let flags = brain_flags(args.flags.brain.as_ref(), &resolved.brain);
        let is_enough = named.is_none() && is_complete(&home, &draft.file, environment);
        let again = if is_enough { "run".to_owned() } else { format!("up {flags}") };
        let backend = backend(context, &resolved, &args.run, resolved.brain.can_be_sold())?;
        let scratch = args.scratch;
        let args = args.run;
        let life = RunSpec { resolved, backend, args, ask, scratch, again, named };
        run_life(context, life, telling, &signals).await
    });
    // A message of the story that is still on its way must not hold up the end.
    runtime.shutdown_background();
    outcome
}

/// The story that flags name.
fn story_of(flags: &BrainFlags) -> Result<Option<Story>, CliError> {
    Ok(match &flags.brain {
        Some(BrainArg::Script(None)) => Some(Story::first_run()?),
        Some(BrainArg::Script(Some(path))) => Some(Story::read(path)?),
        Some(BrainArg::Local | BrainArg::Provider(_) | BrainArg::Url(_)) | None => None,
    })
}

/// Returns true if the file and the environment hold everything that a start needs. Values that
/// nobody wrote down must be given again.
fn is_complete(home: &Path, file: &ConfigFile, environment: &Environment) -> bool {
    let brain = BrainFlags::default();
    let remote = RemoteFlags::default();
    resolve::resolve(home, file, &brain, &remote, environment).is_ok()
}

/// Wakes an automaton that sleeps since its turns failed: its creator names another brain, which
/// is tried at once.
fn wake_after_failures(home: &Path) -> Result<(), CliError> {
    if !home.join(DATABASE).exists() {
        return Ok(());
    }
    with_store(home, async |store: &Store| {
        let sleep = match store.life().await {
            Ok(life) => life.sleep,
            Err(StoreError::Unborn) => None,
            Err(error) => return Err(error.into()),
        };
        if sleep.is_some_and(|sleep| sleep.reason == StopReason::Errors) {
            let reason = "your creator named the model that you think with";
            let reason = Labelled::new(Label::Creator, "creator", reason);
            store.push_wake(WakeCause { source: WakeSource::Manual, reason }).await?;
        }
        Ok(())
    })
}

/// Shows what a life would pay; a stack is not made for it.
fn dry_run(context: &CommandContext, home: &Path, args: &UpArgs) -> Result<(), CliError> {
    let flags = &args.flags;
    let remote = &args.run.remote;
    let draft = home::draft(home, args.name.as_ref(), args.genesis.as_ref(), None, remote)?;
    let resolved = resolve::resolve(home, &draft.file, flags, remote, &context.environment)?;
    let backend = backend(context, &resolved, &args.run, false)?;
    dry_run::show(context, &resolved, backend.as_ref())
}

/// The flags that name a brain, as they are typed.
fn brain_flags(named: Option<&BrainArg>, brain: &Brain) -> String {
    match (named, brain) {
        (Some(BrainArg::Script(None)), _) => "--brain script".to_owned(),
        (Some(BrainArg::Script(Some(file))), _) => format!("--brain script:{}", quoted(file)),
        (_, Brain::Http(http)) => format!(
            "--brain {} --brain-model {}",
            quoted(Path::new(&http.url)),
            quoted(Path::new(http.model.as_str()))
        ),
        (_, Brain::Local(local)) => {
            format!("--model {} --helper {}", quoted(&local.model), quoted(&local.helper))
        }
    }
}
