//! `init`: makes a home and brings its automaton to life, without running it.

use automaton_core::id::AutomatonId;
use automaton_store::Store;
use serde::Serialize;

use super::{CommandContext, with_store};
use crate::args::RemoteFlags;
use crate::backup;
use crate::config::values::{Name, Prompt};
use crate::error::CliError;
use crate::home;
use crate::ui::say;
use crate::ui::text::plain;

#[derive(Serialize)]
struct InitReport<'a> {
    home: &'a std::path::Path,
    automaton: AutomatonId,
    name: &'a str,
    created: bool,
}

/// Makes a home, or says which automaton lives there already.
pub(crate) fn run(
    context: &CommandContext,
    name: Option<&Name>,
    genesis: Option<&Prompt>,
    remote: &RemoteFlags,
) -> Result<(), CliError> {
    let home = context.home()?;
    home::make_private(&home)?;
    let _lock = home::lock(&home)?;
    let draft = home::draft(&home, name, genesis, None, remote)?;
    let file = &draft.file;
    let needed =
        |key| CliError::user(format!("automaton.json in {} names no `{key}`", home.display()));
    let name = file.name.as_ref().ok_or_else(|| needed("name"))?.as_str();
    let genesis = file.genesis_prompt.as_ref().ok_or_else(|| needed("genesisPrompt"))?.as_str();
    draft.write_if_new(&home)?;
    home::create_missing_files(&home)?;
    let born = async |store: &Store| home::birth_or_load(store, &home, name, genesis).await;
    let (automaton, _) = with_store(&home, born)?;
    let created = draft.is_new();
    context.format.answer(&InitReport { home: &home, automaton, name, created }, || {
        let name = plain(name);
        let home = home.display();
        let verb = if created { "is made" } else { "lives already" };
        format!("{name} {verb} in {home} ({automaton})")
    })?;
    if file.rpc_url.is_some() && file.network.as_deref() != Some("dev") {
        say(backup::OFFER);
    }
    Ok(())
}
