//! The model that a new automaton is made with: what a flag names, what a key in the
//! environment gives access to, or a model file.
//!
//! A key that was only lying there is never spent on in silence: at a terminal its owner is
//! asked once, and elsewhere little is spent until its owner says how much may be. A key from
//! the environment is never written into the configuration.

use std::io::{self, IsTerminal, Write as _};
use std::path::Path;

use automaton_core::error::ErrorClass;
use automaton_core::money_defaults::UNASKED_THINKING_DAY_CENTS;
use automaton_inference::{ModelInfo, ModelPrices, catalogue};

use crate::args::{BrainArg, BrainFlags, RemoteFlags, RunArgs};
use crate::config::brain::{self, NewBrain};
use crate::config::env::Environment;
use crate::config::file::{BrainFile, ConfigFile, FILE_NAME, FormatSetting, LocalBrain};
use crate::config::providers::{self, ProviderAccess};
use crate::config::resolve;
use crate::config::values::Ranged;
use crate::error::CliError;
use crate::local_models::hash_file;
use crate::ui::say;

/// Result of an offer to use a key in the environment, if nobody named a brain.
#[derive(Debug)]
pub(super) enum OfferedBrain {
    /// There is no such key, or its owner does not want that.
    None,
    /// Its owner wants it; where it does not answer, these sellers are asked.
    Accepted(ProviderAccess, Vec<String>),
    /// Nobody is there to be asked.
    Unasked(ProviderAccess, Vec<String>),
}

/// Looks for a key in the environment, where a new home needs a brain and nobody named one, says
/// what was found and what it costs, and asks its owner at a terminal.
///
/// # Errors
/// When the catalogue is damaged, or the terminal cannot be read.
pub(super) fn offer(
    home: &Path,
    flags: &mut BrainFlags,
    run: &RunArgs,
    environment: &Environment,
) -> Result<OfferedBrain, CliError> {
    if run.dry_run {
        return Ok(OfferedBrain::None);
    }
    let is_named = flags.brain.is_some() || flags.model.is_some() || run.remote.cloud.is_some();
    if is_named || is_cloud(environment) || home.join(FILE_NAME).exists() {
        return Ok(OfferedBrain::None);
    }
    let accesses = providers::accesses(&ConfigFile::default(), environment)?;
    let wanted = flags.brain_model.as_deref();
    let Some(found) = providers::first_with_key(&accesses, wanted) else {
        return Ok(OfferedBrain::None);
    };
    let variable = &found.provider.key_variable;
    let model = flags.brain_model.as_deref().unwrap_or(found.provider.model.as_str());
    let title = &found.provider.title;
    let price = price(&catalogue::model(model)?);
    let others = accesses.iter().filter(|it| it.key.is_some() && it.url != found.url);
    let others: Vec<String> = others.map(|it| it.provider.name.clone()).collect();
    let told = match others.as_slice() {
        [] => String::new(),
        others => format!(
            " Where it does not answer, {} is asked, whose key is there as well \
             (`modelStrategy.fallbackProviders`).",
            others.join(", then ")
        ),
    };
    say(&format!("{variable} is set: {model} of {title} can think for it, at {price}.{told}"));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        say(&format!(
            "It spends at most ${}.00 a day on that, until `treasuryPolicy.maxInferenceDailyCents` \
             in {FILE_NAME} says otherwise. `--brain local` thinks on this machine for nothing.",
            UNASKED_THINKING_DAY_CENTS / 100
        ));
        return Ok(OfferedBrain::Unasked(found, others));
    }
    if confirm("Shall it think with that? [Y/n] ")? {
        return Ok(OfferedBrain::Accepted(found, others));
    }
    flags.brain = Some(BrainArg::Local);
    Ok(OfferedBrain::None)
}

/// Returns true if the person at the terminal answers yes, or presses Enter.
pub(super) fn confirm(question: &str) -> Result<bool, CliError> {
    let failed = |error: io::Error| CliError::internal("cannot ask at the terminal", &error);
    io::stderr().write_all(question.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(failed)?;
    // An end without a word is no consent.
    let said = answer.trim().to_ascii_lowercase();
    Ok(!answer.is_empty() && (said.is_empty() || said == "y" || said == "yes"))
}

/// Formats the price of a model.
fn price(info: &ModelInfo) -> String {
    let ModelPrices { input_per_million, cached_per_million, output_per_million, .. } = info.prices;
    format!(
        "{input_per_million} for a million tokens that it reads ({cached_per_million} where its \
         server had them already) and {output_per_million} for a million that it writes"
    )
}

/// The brain that a home is made with, if it has to be made. It is written down
/// so that `automaton run` finds it.
///
/// # Errors
/// When a model file cannot be read, or there is no such provider.
pub(super) fn first_brain(
    home: &Path,
    flags: &BrainFlags,
    remote: &RemoteFlags,
    environment: &Environment,
    offered: &OfferedBrain,
) -> Result<Option<NewBrain>, CliError> {
    if home.join(FILE_NAME).exists() || (remote.cloud.is_some() && flags.brain.is_none()) {
        return Ok(None);
    }
    let named = |file| Some(NewBrain { file, daily_cents: None, fallback_providers: Vec::new() });
    match (&flags.brain, offered) {
        (Some(BrainArg::Script(_)), _) => Ok(None),
        (Some(BrainArg::Url(url)), _) => Ok(named(server(url.as_str(), None, flags)?)),
        (Some(BrainArg::Provider(name)), _) => {
            let known = providers::accesses(&ConfigFile::default(), environment)?;
            let found = providers::access_by_name(&known, name)?;
            Ok(named(server(&found.url, Some(&found), flags)?))
        }
        (None, OfferedBrain::Accepted(found, others)) => Ok(Some(NewBrain {
            file: server(&found.url, Some(found), flags)?,
            daily_cents: None,
            fallback_providers: others.clone(),
        })),
        (None, OfferedBrain::Unasked(found, others)) => Ok(Some(NewBrain {
            file: server(&found.url, Some(found), flags)?,
            daily_cents: Some(u64::from(UNASKED_THINKING_DAY_CENTS)),
            fallback_providers: others.clone(),
        })),
        (None, OfferedBrain::None) if flags.model.is_none() && !is_cloud(environment) => {
            match brain::ollama(&ConfigFile::default(), flags, environment) {
                Some((url, _)) if flags.brain_model.is_some() => {
                    let mut file = server(&url, None, flags)?;
                    if let BrainFile::Http { format, .. } = &mut file {
                        *format = Some(FormatSetting::Ollama);
                    }
                    Ok(named(file))
                }
                _ => Ok(fallback(flags)?.and_then(named)),
            }
        }
        (Some(BrainArg::Local) | None, _) => Ok(fallback(flags)?.and_then(named)),
    }
}

/// Returns true if a cloud is named that sells inference.
const fn is_cloud(environment: &Environment) -> bool {
    environment.conway_api_key.is_some() || environment.conway_api_url.is_some()
}

/// A model file, as it is written down.
fn fallback(flags: &BrainFlags) -> Result<Option<BrainFile>, CliError> {
    resolve::model_file(flags, None).map(|local| described(&local)).transpose()
}

/// A server as it is written down.
fn server(
    url: &str,
    known: Option<&ProviderAccess>,
    flags: &BrainFlags,
) -> Result<BrainFile, CliError> {
    let default = || known.map(|access| access.provider.model.to_string());
    let bad = |_| CliError::new(ErrorClass::Config, format!("'{url}' is no address of a server"));
    Ok(BrainFile::Http {
        url: url.parse().map_err(bad)?,
        // One that is asked elsewhere than at its own address is told apart by this alone.
        format: known.filter(|access| access.is_elsewhere()).map(|it| it.provider.format.into()),
        model: flags.brain_model.clone().or_else(|| flags.only_model.clone()).or_else(default),
        api_key: None,
        context_tokens: flags.context_tokens.map(|n| Ranged::clamped(n.into())),
        max_output_tokens: flags.max_output_tokens.map(|n| Ranged::clamped(n.into())),
        prices: flags.prices,
        dialect: flags.dialect,
        unlisted: None,
    })
}

pub(super) fn described(local: &LocalBrain) -> Result<BrainFile, CliError> {
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
