//! `soul`: what the automaton thinks of itself, how it came to that, and the creator's way to
//! change it.
//!
//! A file that is given is read and checked whole before anything is changed.

use std::path::{Path, PathBuf};

use automaton_agent::soul_file;
use automaton_core::soul::{Soul, SoulSection, SoulVersion};
use automaton_core::wire::control::{ControlRequest, ControlResponse};
use automaton_memory::soul::{self, alignment, differences};
use automaton_policy::guard::Guard;
use automaton_store::Reader;
use clap::Subcommand;

use super::CommandContext;
use super::send::send_or_store;
use crate::config::file::ConfigFile;
use crate::control::unexpected;
use crate::error::CliError;
use crate::role::signer::wallet_of;
use crate::text_file;
use crate::ui::text::plain;
use crate::ui::wrap;
use crate::view::memory::{SoulChangedView, SoulDifferenceView, SoulHistoryView, SoulView};

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 256 << 10;

/// Commands for a soul.
#[derive(Debug, Subcommand)]
pub(crate) enum SoulCommand {
    /// Show all of it, as SOUL.md has it
    Show {
        /// The version [default: the newest]
        #[arg(value_name = "VERSION")]
        number: Option<u32>,
    },
    /// List its versions, newest first, and check that nobody changed one
    History {
        /// Number of versions to show
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        lines: u32,
    },
    /// Show what two versions differ in
    Diff {
        /// The older one
        from: u32,
        /// The newer one [default: the newest]
        to: Option<u32>,
    },
    /// Make it again what it was
    Restore {
        /// The version
        #[arg(value_name = "VERSION")]
        number: u32,
    },
    /// Make it what a file says; `soul show` prints one to begin with
    Set {
        /// The file, in the format of SOUL.md
        file: PathBuf,
    },
}

/// Does what was asked.
///
/// # Errors
/// When there is no automaton or no such version, or a soul cannot be kept.
pub(crate) fn run(context: &CommandContext, command: &SoulCommand) -> Result<(), CliError> {
    let (home, file, reader) = context.record()?;
    match command {
        SoulCommand::Show { number } => show(context, (&home, &file), &reader, *number),
        SoulCommand::History { lines } => history(context, &reader, *lines),
        SoulCommand::Diff { from, to } => diff(context, &reader, *from, *to),
        SoulCommand::Restore { number } => {
            let wanted = read_version(&reader, Some(*number))?.1;
            change(context, &home, &reader, wanted, format!("restored from version {number}"))
        }
        SoulCommand::Set { file } => {
            let given = read(file)?;
            let shown = file.display();
            change(context, &home, &reader, given, format!("set by its creator from {shown}"))
        }
    }
}

/// A version with all of it, the newest where none is named.
fn read_version(reader: &Reader, version: Option<u32>) -> Result<(SoulVersion, Soul), CliError> {
    let found = version.map_or_else(|| reader.soul(), |version| reader.soul_version(version))?;
    let lacks =
        |what: String| CliError::user(what).hint("`automaton soul history` lists its versions");
    let none = version.map_or_else(
        || "it has no soul before it was started".to_owned(),
        |version| format!("there is no version {version} of its soul"),
    );
    let mut found = found.ok_or_else(|| lacks(none))?;
    let gone = format!("of version {} only the hash is kept", found.version);
    let soul = found.soul.take().ok_or_else(|| lacks(gone))?;
    Ok((found, soul))
}

fn show(
    context: &CommandContext,
    (home, file): (&Path, &ConfigFile),
    reader: &Reader,
    version: Option<u32>,
) -> Result<(), CliError> {
    let (found, soul) = read_version(reader, version)?;
    let life = reader.life()?;
    let far = alignment(&soul.core_purpose, &soul.anchor);
    let last = reader.last_reflection()?;
    let reflected = last.as_ref().map(|last| last.at);
    let view = SoulView {
        version: found,
        soul,
        alignment: far.to_string(),
        suggestion: last.map(|last| last.suggestion),
    };
    context.format.answer(&view, || {
        let of = (view.version.version, view.version.at);
        let wallet = wallet_of(home).map(|address| address.to_string());
        let who = (wallet.as_deref(), file.creator_address.as_deref(), reflected);
        plain(soul_file(&life, of, &view.soul, who).trim_end())
    })
}

fn history(context: &CommandContext, reader: &Reader, lines: u32) -> Result<(), CliError> {
    let versions = reader.soul_versions(lines)?;
    let broken = reader.broken_soul()?;
    let clock = context.clock();
    let view = SoulHistoryView { versions, broken };
    context.format.answer(&view, || {
        let line = |version: &SoulVersion| {
            let SoulVersion { version, source, at, reason, hash, .. } = version;
            let hash = hash.get(..12).unwrap_or(hash);
            let line = format!("v{version} [{source}] {} {hash}: {reason}", clock.at(*at));
            wrap::hanging(&plain(&line), context.screen().width())
        };
        let mut lines: Vec<String> = view.versions.iter().map(line).collect();
        lines.push(match broken {
            None => "Nobody has changed one of them since.".to_owned(),
            Some(version) => format!("Version {version} was changed after it was kept!"),
        });
        lines.join("\n")
    })?;
    match broken {
        None => Ok(()),
        Some(version) => Err(CliError::user(format!("version {version} of its soul was changed"))
            .hint("`automaton soul restore N` goes back to one before it")),
    }
}

fn diff(
    context: &CommandContext,
    reader: &Reader,
    from: u32,
    to: Option<u32>,
) -> Result<(), CliError> {
    let before = read_version(reader, Some(from))?.1;
    let after = read_version(reader, to)?.1;
    let found = differences(&before, &after);
    let rows: Vec<_> = found
        .iter()
        .map(|(section, was, is)| SoulDifferenceView {
            section: *section,
            was: was.clone(),
            is: is.clone(),
        })
        .collect();
    context.format.answer(&rows, || {
        if found.is_empty() {
            return "They say the same".to_owned();
        }
        let marked = |mark: &str, text: &str| {
            text.lines().map(|line| format!("{mark} {line}\n")).collect::<String>()
        };
        let part = |(section, was, is): &(SoulSection, String, String)| {
            plain(&format!("{}\n{}{}", section.heading(), marked("-", was), marked("+", is)))
        };
        found.iter().map(part).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    })
}

fn read(file: &Path) -> Result<Soul, CliError> {
    let shown = file.display();
    let unread =
        |error: std::io::Error| CliError::user(format!("cannot read {shown}")).because(&error);
    let text = text_file::read_required(file, BYTES_MAX).map_err(unread)?;
    soul::read(&text).ok_or_else(|| {
        CliError::user(format!("{shown} is no soul: it has no section 'Core Purpose'"))
            .hint("`automaton soul show` prints one to begin with; nothing was changed")
    })
}

/// Has it think this, in the place of what it thinks now. What it is measured by stays.
fn change(
    context: &CommandContext,
    home: &Path,
    reader: &Reader,
    wanted: Soul,
    reason: String,
) -> Result<(), CliError> {
    let (now, soul) = read_version(reader, None)?;
    let genesis = if wanted.genesis.is_empty() { soul.genesis } else { wanted.genesis };
    let wanted = Soul { genesis, anchor: soul.anchor, ..wanted };
    let guard = Guard::new()?;
    soul::check(&wanted, &guard, &[])
        .map_err(|fault| CliError::user(fault.to_string()).hint("nothing was changed"))?;
    let request = ControlRequest::ChangeSoul { from: now.version, soul: Box::new(wanted), reason };
    match send_or_store(home, &request)?.0 {
        ControlResponse::SoulChanged { version } => context
            .format
            .answer(&SoulChangedView { version }, || format!("its soul is version {version} now")),
        other => Err(unexpected(other)),
    }
}
