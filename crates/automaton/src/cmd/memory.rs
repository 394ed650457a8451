//! `memory`: what the automaton remembers, for its creator to search, correct and take along.
//!
//! Looking needs nobody; an automaton that runs changes its memory itself, so that it never
//! thinks with what is not there any more.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use automaton_agent::add_meaning;
use automaton_core::error::ErrorClass;
use automaton_core::file_text;
use automaton_core::memory::{MemoryId, MemoryItem, MemoryQuery, MemoryTier};
use automaton_core::time::{Clock, SystemClock};
use automaton_core::trust::Label;
use automaton_core::wire::control::{ControlRequest, ControlResponse, MemoryDraft};
use automaton_memory::recall::{RecallOptions, rank};
use automaton_memory::render;
use automaton_memory::shown::{self, ShownMemory};
use automaton_store::EmbeddingProgress;
use clap::{Args, Subcommand, ValueHint};

use super::CommandContext;
use super::send::send_or_store;
use crate::control::unexpected;
use crate::error::CliError;
use crate::process::runtime;
use crate::role::embedder::embedder;
use crate::text_file::corrected;
use crate::ui::text::plain;
use crate::ui::units::many;
use crate::ui::{self, wrap};
use crate::view::memory::{ForgottenView, ImportedView, VectorsView};

/// Items among which the best are chosen.
const CANDIDATES_MAX: u32 = 500;

/// Items that are read at a time for an export.
const PAGE: u32 = 500;

/// Longest line of a file of memories, in bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Commands for the memory.
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Look for what it remembers; without words the newest
    Search(MemorySearchArgs),
    /// Show one item whole, with where it comes from and what took its place
    Show {
        /// The item, as in m12
        id: MemoryId,
    },
    /// Have it forget an item for good
    Forget {
        /// The item, as in m12
        id: MemoryId,
    },
    /// Show how far it has vectors, by which it finds what means something alike
    Vectors,
    /// Write all that it remembers, and remembered, one JSON object a line
    Export,
    /// Have it remember what a file holds, in the form of `export`
    Import {
        /// The file
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

/// Arguments of `memory search`.
#[derive(Debug, Args)]
pub(crate) struct MemorySearchArgs {
    /// Words to look for
    words: Vec<String>,
    /// Only this kind of memory: working, episodic, semantic, procedural, relationship
    #[arg(long, value_parser = tier)]
    tier: Option<MemoryTier>,
    /// Number of items to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
    lines: u32,
}

/// A tier by its name.
fn tier(name: &str) -> Result<MemoryTier, String> {
    let names = MemoryTier::ALL.map(MemoryTier::name).join(", ");
    MemoryTier::by_name(name).ok_or_else(|| format!("it is one of {names}"))
}

/// Does what was asked.
pub(crate) fn run(context: &CommandContext, command: &MemoryCommand) -> Result<(), CliError> {
    match command {
        MemoryCommand::Search(args) => search(context, args),
        MemoryCommand::Show { id } => show(context, *id),
        MemoryCommand::Forget { id } => forget(context, *id),
        MemoryCommand::Vectors => vectors(context),
        MemoryCommand::Export => export(context),
        MemoryCommand::Import { file } => import(context, file),
    }
}

fn search(context: &CommandContext, args: &MemorySearchArgs) -> Result<(), CliError> {
    let (home, file, reader) = context.record()?;
    let text = args.words.join(" ");
    let mut query = MemoryQuery {
        tiers: args.tier.into_iter().collect(),
        text: Some(text).filter(|text| !text.trim().is_empty()),
        limit: CANDIDATES_MAX.max(args.lines),
        ..MemoryQuery::default()
    };
    let wanted = RecallOptions {
        limit: usize::try_from(args.lines).unwrap_or(usize::MAX),
        least_trusted: Label::Web,
        strength_min: 0,
        events_before: None,
        now: SystemClock.now(),
    };
    let embedder = embedder(&home, file.embeddings.as_ref())?;
    runtime()?.block_on(add_meaning(embedder.as_deref(), &mut query));
    let matches = reader.memories(&query)?;
    let found = rank(&matches, &wanted);
    let width = context.screen().width();
    context.format.answer(&found, || match found.as_slice() {
        [] => "Nothing found".to_owned(),
        found => {
            let line = |it: &ShownMemory| wrap::hanging(&plain(&render::line(it)), width);
            let shown = shown::show(found.to_vec(), &matches, &wanted);
            shown.iter().map(line).collect::<Vec<_>>().join("\n")
        }
    })
}

/// Shows the progress of vectors, and the state of the model that makes them.
fn vectors(context: &CommandContext) -> Result<(), CliError> {
    let (home, file, reader) = context.record()?;
    let Some(embedder) = embedder(&home, file.embeddings.as_ref())? else {
        let what = "nothing makes vectors of what it remembers; words find it all the same";
        return Err(CliError::user(what)
            .hint("take the key `embeddings` out of automaton.json, or set its kind to builtIn"));
    };
    let model = runtime()?.block_on(embedder.embed(Vec::new()))?.model;
    let EmbeddingProgress { model: of, vectors, waiting } = reader.embedding_progress()?;
    let (vectors, waiting) = if of == model { (vectors, waiting) } else { (0, vectors + waiting) };
    let view = VectorsView { model, vectors, waiting };
    context.format.answer(&view, || {
        let waits = match waiting {
            0 => "none waits".to_owned(),
            waiting => format!(
                "{waiting} wait; `automaton heartbeat run embed_memories` does not let them wait \
                 for the next time"
            ),
        };
        let model = &view.model;
        format!("model {model}: {} with vectors, {waits}", many(vectors, "item"))
    })
}

fn show(context: &CommandContext, id: MemoryId) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let item = reader.memory(id)?.ok_or_else(|| missing(id))?;
    let clock = context.clock();
    context.format.answer(&item, || {
        let MemoryItem { tier, body, strength, seen, valid_from, valid_to, seen_at, .. } = &item;
        let mut lines = vec![
            plain(&render::full_line(&item)),
            String::new(),
            format!("Kind:    {tier} memory, {strength} %"),
            format!("From:    {} ({})", body.label, plain(body.source.as_str())),
            format!("Learned: {}", clock.at(*valid_from)),
            format!("Met:     {}, last {}", many(u64::from(*seen), "time"), clock.at(*seen_at)),
        ];
        lines.extend(item.turn.map(|turn| format!("Turn:    {turn}")));
        lines.extend(valid_to.map(|at| format!("Until:   {}", clock.at(at))));
        lines.extend(item.superseded_by.map(|id| format!("Now:     {id}")));
        lines.join("\n")
    })
}

fn forget(context: &CommandContext, id: MemoryId) -> Result<(), CliError> {
    let (home, _, reader) = context.record()?;
    if reader.memory(id)?.is_none() {
        return Err(missing(id));
    }
    match send_or_store(&home, &ControlRequest::Forget { memory: id })?.0 {
        ControlResponse::Forgotten { was_there } => {
            let view = ForgottenView { memory: id, was_there };
            context.format.answer(&view, || format!("forgotten: {id}"))
        }
        other => Err(unexpected(other)),
    }
}

fn export(context: &CommandContext) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let mut last = MemoryId(0);
    loop {
        let page = reader.memories_after(last, PAGE)?;
        let Some(newest) = page.last() else { return Ok(()) };
        last = newest.id;
        for item in &page {
            let line = serde_json::to_string(item);
            let failed = |error| {
                CliError::new(ErrorClass::Internal, format!("{} cannot be written", item.id))
                    .because(&error)
            };
            ui::line(&line.map_err(failed)?)?;
        }
    }
}

/// All lines are read before the first is remembered, so that a bad file changes nothing.
fn import(context: &CommandContext, file: &Path) -> Result<(), CliError> {
    let (home, ..) = context.record()?;
    let shown = file.display();
    let unread =
        |error: std::io::Error| CliError::user(format!("cannot read {shown}")).because(&error);
    let mut drafts = Vec::new();
    let lines = BufReader::new(File::open(file).map_err(unread)?).split(b'\n');
    for (number, line) in (1_u64..).zip(lines) {
        let line = line.map_err(unread)?;
        let line = file_text::decode(&line).map_err(|defect| {
            CliError::user(format!("cannot read line {number} of {shown}")).because(&defect)
        })?;
        if line.trim().is_empty() {
            continue;
        }
        let bad = |why: String| {
            CliError::user(format!("line {number} of {shown} is no memory: {why}"))
                .hint("`automaton memory export` shows the form; nothing was imported")
        };
        if line.len() > LINE_BYTES_MAX {
            return Err(bad(format!(
                "it has {} bytes, at most {LINE_BYTES_MAX} are taken",
                line.len()
            )));
        }
        let draft: MemoryDraft =
            serde_json::from_str(line).map_err(|error| bad(corrected(&error).to_string()))?;
        if draft.superseded_by.is_none() && draft.valid_to.is_none() {
            drafts.push(draft);
        }
    }
    let mut imported = 0_u64;
    for draft in drafts {
        match send_or_store(&home, &ControlRequest::Remember { memory: Box::new(draft) })?.0 {
            ControlResponse::Remembered { .. } => imported += 1,
            other => return Err(unexpected(other)),
        }
    }
    context
        .format
        .answer(&ImportedView { imported }, || format!("imported: {}", many(imported, "item")))
}

fn missing(id: MemoryId) -> CliError {
    CliError::user(format!("it does not remember {id}"))
        .hint("`automaton memory search` lists what it remembers")
}
