//! `up`: makes an automaton if there is none, and lets it live.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use automaton_core::error::ErrorClass;
use automaton_core::id::RunId;
use automaton_sandbox::process::Signals;
use automaton_script::story::Story;
use sha2::{Digest, Sha256};

use super::live::{RunSpec, backend, live, warn_of_config};
use super::preflight::{self, PreflightRequest};
use super::{CommandContext, dry_run, id_generator};
use crate::args::{BrainArg, BrainFlags, RemoteFlags, UpArgs};
use crate::config::file::{BrainFile, FILE_NAME, LocalBrain};
use crate::config::resolve::{self, Brain};
use crate::config::values::Ranged;
use crate::error::CliError;
use crate::home;
use crate::process::runtime;
use crate::role::launch_config::InitialMessage;
use crate::story_driver::StoryDriver;
use crate::workspace::quoted;

/// Makes an automaton if there is none, and lets it live.
pub(crate) fn run(context: &CommandContext, args: UpArgs) -> Result<(), CliError> {
    args.run.diagnostics.start(&context.environment, "supervisor")?;
    let signals = Signals::receive()?;
    let ids = id_generator();
    // Dropped last, when the agent has ended and the lock is free.
    let scratch = args.scratch.then(|| context.scratch()).transpose()?;
    let home = match &scratch {
        Some(scratch) => scratch.home(),
        None => context.home()?,
    };
    let story = match &args.flags.brain {
        Some(BrainArg::Script(None)) => Some(Story::first_run()?),
        Some(BrainArg::Script(Some(path))) => Some(Story::read(path)?),
        Some(BrainArg::Local | BrainArg::Url(_)) | None => None,
    };
    home::check_ours(&home)?;
    let lock = home::lock_if_made(&home)?;
    let (name, genesis) = (args.name.as_ref(), args.genesis.as_ref());
    preflight::check(PreflightRequest {
        environment: &context.environment,
        home: &home,
        file: home::draft(&home, name, genesis, None, &args.run.remote).map(|draft| draft.file),
        flags: &args.flags,
        run: &args.run,
        has_stack: |_, brain| brain.can_be_sold(),
    })?;
    if args.run.dry_run {
        return dry_run(context, &home, &args);
    }
    home::make_private(&home)?;
    let _lock = lock.map_or_else(|| home::lock(&home), Ok)?;
    let brain = first_brain(&home, &args.flags, &args.run.remote)?;
    let draft = home::draft(&home, name, genesis, brain.as_ref(), &args.run.remote)?;
    warn_of_config(&home, &draft.file);
    let ask =
        args.ask.map(|text| InitialMessage { text, key: format!("ask:{}", ids.id::<RunId>()) });
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let telling = match story {
            Some(story) => Some(StoryDriver::start(story, home.clone(), ids).await?),
            None => None,
        };
        let environment = &context.environment;
        let resolved = match &telling {
            // The story's model is for this run alone and is written nowhere.
            Some(telling) => telling.resolve(&home, &draft.file, environment)?,
            None => {
                resolve::resolve(&home, &draft.file, &args.flags, &args.run.remote, environment)?
            }
        };
        draft.keep(&home)?;
        // What nobody wrote down has to be said again.
        let (brain, remote) = (BrainFlags::default(), RemoteFlags::default());
        let kept = resolve::resolve(&home, &draft.file, &brain, &remote, environment);
        let again = match kept {
            Ok(_) => "run".to_owned(),
            Err(_) => format!("up {}", brain_flags(args.flags.brain.as_ref(), &resolved.brain)),
        };
        let backend = backend(context, &resolved, &args.run, resolved.brain.can_be_sold())?;
        let scratch = args.scratch;
        let life = RunSpec { resolved, backend, args: args.run, ask, scratch, again };
        live(context, life, telling, &signals).await
    });
    // A message of the story that is still on its way must not hold up the end.
    runtime.shutdown_background();
    outcome
}

/// Shows what a life would pay; a stack is not made for it.
fn dry_run(context: &CommandContext, home: &Path, args: &UpArgs) -> Result<(), CliError> {
    let (flags, remote) = (&args.flags, &args.run.remote);
    let draft = home::draft(home, args.name.as_ref(), args.genesis.as_ref(), None, remote)?;
    let resolved = resolve::resolve(home, &draft.file, flags, remote, &context.environment)?;
    let backend = backend(context, &resolved, &args.run, false)?;
    dry_run::show(context, &resolved, backend.as_ref())
}

/// The brain that a home is made with, if it has to be made. It is written down
/// so that `automaton run` finds it; a key from the environment is not.
fn first_brain(
    home: &Path,
    flags: &BrainFlags,
    remote: &RemoteFlags,
) -> Result<Option<BrainFile>, CliError> {
    if home.join(FILE_NAME).exists() || (remote.cloud.is_some() && flags.brain.is_none()) {
        return Ok(None);
    }
    match &flags.brain {
        Some(BrainArg::Script(_)) => Ok(None),
        Some(BrainArg::Url(url)) => Ok(Some(BrainFile::Http {
            url: url.clone(),
            model: flags.brain_model.clone(),
            api_key: None,
            context_tokens: flags.context_tokens.map(|n| Ranged::clamped(n.into())),
            max_output_tokens: flags.max_output_tokens.map(|n| Ranged::clamped(n.into())),
            prices: flags.prices,
            dialect: flags.dialect,
        })),
        Some(BrainArg::Local) | None => {
            resolve::model_file(flags, None).map(|local| described(&local)).transpose()
        }
    }
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

fn described(local: &LocalBrain) -> Result<BrainFile, CliError> {
    let failed = |error: io::Error| {
        let what = format!("cannot read the model file {}", local.model.display());
        CliError::new(ErrorClass::Config, what).because(&error)
    };
    let hash = hash_file(&local.model).map_err(failed)?;
    let absolute = |path: &Path| std::path::absolute(path).map_err(failed);
    Ok(BrainFile::Local(LocalBrain {
        model: absolute(&local.model)?,
        helper: absolute(&local.helper)?,
        // silent-ok: the text of a SHA-256 is always one.
        sha256: hash.parse().ok(),
        context_tokens: local.context_tokens,
    }))
}

/// SHA-256 of a file that may be larger than memory.
fn hash_file(path: &Path) -> io::Result<String> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut hasher = Sha256::new();
    loop {
        let chunk = file.fill_buf()?;
        if chunk.is_empty() {
            return Ok(hex::encode(hasher.finalize()));
        }
        hasher.update(chunk);
        let count = chunk.len();
        file.consume(count);
    }
}
