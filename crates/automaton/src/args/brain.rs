//! Flags for the model of an automaton.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::config::file::{DialectSetting, LocalBrain};
use crate::config::values::{HttpUrl, PricesFile};
use crate::local_models;

/// The sellers of models that `--brain` knows by name, as in `providers.json`.
pub(crate) const KNOWN_PROVIDERS: [&str; 6] =
    ["anthropic", "openai", "openrouter", "gemini", "groq", "together"];

/// Flags for the brain.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BrainFlags {
    /// Brain: local, script, script:FILE; anthropic, openai, openrouter, gemini, groq or
    /// together; or the URL of an OpenAI-compatible server
    #[arg(long, value_name = "BRAIN")]
    pub(crate) brain: Option<BrainArg>,
    /// The model that the server of --brain URL is asked for
    #[arg(long, value_name = "NAME")]
    pub(crate) brain_model: Option<String>,
    /// A model file in GGUF format, to think with on this machine
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) model: Option<PathBuf>,
    /// The program that runs the model file
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    pub(crate) helper: Option<PathBuf>,
    /// Context window of the model in tokens [default: as its server says, else as in the
    /// catalogue]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1024..=100_000_000))]
    pub(crate) context_tokens: Option<u32>,
    /// Longest answer of the model in tokens [default: as above]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=10_000_000))]
    pub(crate) max_output_tokens: Option<u32>,
    /// Prices of the model, in US dollars for a million tokens: INPUT,OUTPUT or
    /// INPUT,OUTPUT,CACHED, as 1.25,10,0.125 [default: as above]
    #[arg(long, value_name = "PRICES")]
    pub(crate) prices: Option<PricesFile>,
    /// Which fields a request to the model has, where its server refuses the usual ones
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<DialectSetting>,
    /// For `./up`: the model when neither a flag nor the configuration names one.
    #[arg(long, hide = true, requires = "default_helper")]
    pub(crate) default_model: Option<PathBuf>,
    /// For `./up`: the program that runs it.
    #[arg(long, hide = true, requires = "default_model")]
    pub(crate) default_helper: Option<PathBuf>,
    /// The only model that the server lists, where nobody names one. No flag sets it.
    #[arg(skip)]
    pub(crate) only_model: Option<String>,
}

impl BrainFlags {
    /// Finds the files that are named: a model by its name, too, and both from where one stands.
    pub(crate) fn find_files(&mut self, home: &Path) {
        self.model = self.model.take().map(|given| local_models::resolve_file(home, given));
        self.helper = self.helper.take().map(local_models::rooted);
    }

    /// Returns true if a flag for the brain is given.
    pub(crate) fn are_given(&self) -> bool {
        let Self { brain, brain_model, model, helper, .. } = self;
        let Self { context_tokens, max_output_tokens, prices, dialect, .. } = self;
        let names = brain.is_some() || brain_model.is_some() || model.is_some();
        let describes = context_tokens.is_some() || max_output_tokens.is_some();
        names || helper.is_some() || describes || prices.is_some() || dialect.is_some()
    }

    /// The model file for when nothing else names a brain.
    pub(crate) fn fallback(&self) -> Option<LocalBrain> {
        let model = self.default_model.clone()?;
        let helper = self.default_helper.clone()?;
        Some(LocalBrain { model, sha256: None, helper, context_tokens: None })
    }
}

/// Value of `--brain`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BrainArg {
    /// The model file that the configuration or `--model` names.
    Local,
    /// A story, ours or one in a file.
    Script(Option<PathBuf>),
    /// A seller of models that is known by this name.
    Provider(String),
    /// A server.
    Url(HttpUrl),
}

impl std::str::FromStr for BrainArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "local" => Ok(Self::Local),
            None if text == "script" => Ok(Self::Script(None)),
            Some(("script", file)) if !file.is_empty() => Ok(Self::Script(Some(file.into()))),
            None if KNOWN_PROVIDERS.contains(&text) => Ok(Self::Provider(text.to_owned())),
            _ => text.parse().map(Self::Url).map_err(|_| {
                format!(
                    "expected local, script, script:FILE, one of {}, or an http:// or https:// \
                     address",
                    KNOWN_PROVIDERS.join(", ")
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brain_is_one_of_five_things() {
        assert_eq!("groq".parse(), Ok(BrainArg::Provider("groq".to_owned())));
        assert_eq!("local".parse(), Ok(BrainArg::Local));
        assert_eq!("script:a:b".parse(), Ok(BrainArg::Script(Some("a:b".into()))));
        assert!(matches!("http://127.0.0.1:1/v1".parse(), Ok(BrainArg::Url(_))));
        for text in ["", "script:", "ftp://x", "gpt-5"] {
            assert!(text.parse::<BrainArg>().is_err(), "{text}");
        }
    }
}
