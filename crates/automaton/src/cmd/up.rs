//! `up`: makes an automaton if there is none, and lets it live.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use automaton_core::error::Kind;
use automaton_core::id::RunId;
use automaton_lab::story::Story;
use automaton_sandbox::process::Signals;
use sha2::{Digest, Sha256};

use super::live::{Life, check_brain, live, runtime, warn_of_unknown};
use super::{Context, mint};
use crate::args::{BrainArg, UpArgs};
use crate::config::file::{BrainFile, FILE_NAME, LocalBrain};
use crate::config::resolve;
use crate::error::Failure;
use crate::home::{self, Scratch, Wanted};
use crate::role::charter::Ask;
use crate::role::provider;
use crate::telling::Telling;

/// Makes an automaton if there is none, and lets it live.
pub(crate) fn run(context: &Context, args: UpArgs) -> Result<(), Failure> {
    let signals = Signals::receive()?;
    let mint = mint();
    // Dropped last, when the agent has ended and the lock is free.
    let temporary = context.environment.tmpdir.as_deref();
    let scratch = args.scratch.then(|| Scratch::new(temporary, &mint)).transpose()?;
    let home = match &scratch {
        Some(scratch) => scratch.0.clone(),
        None => context.home()?,
    };
    let story = story(args.flags.brain.as_ref())?;
    home::make_private(&home)?;
    let _lock = home::lock(&home)?;
    let wanted = wanted(&home, &args)?;
    let draft = home::draft(&home, &wanted)?;
    warn_of_unknown(&home, &draft.read);
    let ask = args.ask.map(|text| Ask { text, key: format!("ask:{}", mint.id::<RunId>()) });
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let telling = match story {
            Some(story) => Some(Telling::start(story, home.clone(), mint).await?),
            None => None,
        };
        let environment = &context.environment;
        let resolved = match &telling {
            // The story's model is for this run alone and is written nowhere.
            Some(telling) => telling.resolve(&home, &draft.read.file, environment)?,
            None => resolve::resolve(&home, &draft.read.file, &args.flags, environment)?,
        };
        check_brain(&resolved)?;
        draft.keep(&home)?;
        live(context, Life { resolved, args: args.run, ask }, telling, &signals).await
    });
    // A message of the story that is still on its way must not hold up the end.
    runtime.shutdown_background();
    outcome
}

/// What the home is made with, if it has to be made. The brain is written down
/// so that `automaton run` finds it; a key from the environment is not.
fn wanted(home: &Path, args: &UpArgs) -> Result<Wanted, Failure> {
    let UpArgs { name, genesis, flags, .. } = args;
    let brain = match &flags.brain {
        _ if home.join(FILE_NAME).exists() => None,
        Some(BrainArg::Script(_)) => None,
        Some(BrainArg::Url(url)) => {
            let model = flags.brain_model.clone();
            Some(BrainFile::Http { url: url.clone(), model, api_key: None })
        }
        Some(BrainArg::Local) | None => {
            resolve::model_file(flags, None).map(|local| described(&local)).transpose()?
        }
    };
    Ok(Wanted { name: name.clone(), genesis: genesis.clone(), brain })
}

fn described(local: &LocalBrain) -> Result<BrainFile, Failure> {
    provider::check_files(local)?;
    let failed = |error: io::Error| {
        let what = format!("cannot read the model file {}", local.model.display());
        Failure::new(Kind::Config, what).because(&error)
    };
    let hash = hash_file(&local.model).map_err(failed)?;
    let absolute = |path: &Path| std::path::absolute(path).map_err(failed);
    Ok(BrainFile::Local(LocalBrain {
        model: absolute(&local.model)?,
        helper: absolute(&local.helper)?,
        // silent-ok: the text of a SHA-256 is always one.
        sha256: hash.parse().ok(),
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

fn story(brain: Option<&BrainArg>) -> Result<Option<Story>, Failure> {
    Ok(match brain {
        Some(BrainArg::Script(None)) => Some(Story::first_run()?),
        Some(BrainArg::Script(Some(path))) => Some(Story::read(path)?),
        Some(BrainArg::Local | BrainArg::Url(_)) | None => None,
    })
}
