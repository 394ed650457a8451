//! `init`: makes a home and brings its automaton to life, without running it.

use automaton_core::faults::NoFaults;
use automaton_store::Store;
use serde::Serialize;
use std::sync::Arc;

use super::{Context, mint};
use crate::args::InitArgs;
use crate::error::Failure;
use crate::home::{self, DATABASE, Wanted};
use crate::ui::{self, Format};

#[derive(Serialize)]
struct Made<'a> {
    home: &'a std::path::Path,
    automaton: String,
    name: &'a str,
    created: bool,
}

/// Makes a home, or says which automaton lives there already.
pub(crate) fn run(context: &Context, args: InitArgs) -> Result<(), Failure> {
    let home = context.home()?;
    home::make_private(&home)?;
    let _lock = home::lock(&home)?;
    let wanted = Wanted { name: args.name, genesis: args.genesis, brain: None };
    let draft = home::draft(&home, &wanted)?;
    let file = &draft.read.file;
    let needed =
        |key| Failure::user(format!("automaton.json in {} names no `{key}`", home.display()));
    let name = file.name.as_ref().ok_or_else(|| needed("name"))?.as_str();
    let genesis = file.genesis_prompt.as_ref().ok_or_else(|| needed("genesisPrompt"))?.as_str();
    draft.keep(&home)?;
    home::furnish(&home, name, genesis)?;
    let (automaton, _) = super::live::runtime()?.block_on(async {
        let store = Store::open(&home.join(DATABASE), mint(), Arc::new(NoFaults))?;
        let born = home::bring_to_life(&store, &home, name, genesis).await;
        store.close().await?;
        born
    })?;
    let automaton = automaton.to_string();
    if context.format == Format::Json {
        let created = draft.is_new();
        return ui::json(&Made { home: &home, automaton, name, created });
    }
    let verb = if draft.is_new() { "was born" } else { "lives already" };
    ui::line(&format!("{} {verb} in {}: {automaton}", ui::text::plain(name), home.display()))
}
