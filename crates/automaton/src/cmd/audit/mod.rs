//! `audit …`: the record of what was decided and done, and whether it is whole.
//!
//! Only looks. A record that is broken, or is not what it was when a head was taken, is a
//! failure of the command; nothing here mends one.

mod head;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use automaton_core::error::ErrorClass;
use automaton_store::{
    ChainDivergence, ChainLink, ChainReport, ExportHeader, LinkKind, verify_export,
};
use clap::{Subcommand, ValueHint};

use self::head::SavedHead;
use super::CommandContext;
use super::passphrase::PassphraseArgs;
use crate::error::CliError;
use crate::ui::{self, text::short, when::WallClock};
use crate::view::audit::{AuditEntryView, AuditVerifyView, ChainDivergenceView, ExportHeaderView};

/// Rows that were tampered with of which a failure tells, besides the first.
const SHOWN_ROWS_MAX: usize = 10;

/// Characters of a column that are shown on one line.
const SHOWN_CHARS_MAX: usize = 120;

/// Commands for the record.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that nobody changed the record: each entry carries the hash of the one before it
    Verify {
        /// A file that `audit export` wrote [default: the automaton's own record]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// A head that `audit head` printed earlier, or a file with it: nothing before it may
        /// have changed
        #[arg(long, value_name = "FILE_OR_TEXT", value_hint = ValueHint::FilePath)]
        head: Option<String>,
    },
    /// Show the record, oldest first
    Show {
        /// Only entries after this number
        #[arg(long, value_name = "ENTRY", default_value_t = 0)]
        since: u64,
        /// Only entries of this kind: decision, outcome, payment, approval, changes
        #[arg(long, value_name = "KIND", value_parser = kind)]
        kind: Option<LinkKind>,
        /// Number of latest links
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: usize,
    },
    /// Write the record to a file of JSON lines, which `audit verify --file` checks anywhere
    Export {
        /// The file; it must not exist yet
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Print the number and hash of the last entry, to be kept elsewhere
    Head {
        /// Have the wallet sign it
        #[arg(long)]
        signed: bool,
        /// The passphrase, if the automaton does not run.
        #[command(flatten)]
        passphrase: PassphraseArgs,
    },
}

/// A kind of entries.
fn kind(text: &str) -> Result<LinkKind, String> {
    let found = LinkKind::by_name(text);
    found.ok_or_else(|| LinkKind::ALL.map(LinkKind::name).join(", "))
}

/// Does what was asked.
pub(crate) fn run(context: &CommandContext, command: &AuditCommand) -> Result<(), CliError> {
    match command {
        AuditCommand::Verify { file, head } => verify(context, file.as_deref(), head.as_deref()),
        AuditCommand::Show { since, kind, lines } => show(context, *since, *kind, *lines),
        AuditCommand::Export { file } => export(context, file),
        AuditCommand::Head { signed: false, .. } => head::print(context),
        AuditCommand::Head { signed: true, passphrase } => head::sign(context, passphrase),
    }
}

fn verify(
    context: &CommandContext,
    file: Option<&Path>,
    kept: Option<&str>,
) -> Result<(), CliError> {
    let kept = kept.map(SavedHead::read).transpose()?;
    let head = kept.as_ref().map(|kept| kept.head);
    let (report, departure) = match file {
        Some(file) => verify_export(BufReader::new(opened(file)?), head)?,
        None => {
            let (home, _, reader) = context.record()?;
            if let Some(kept) = &kept {
                kept.is_of(&home)?;
            }
            let departure = head.map(|head| reader.departure(head)).transpose()?.flatten();
            (reader.verify_chain()?, departure)
        }
    };
    let links = report.links;
    let end = report.head;
    let view = AuditVerifyView {
        whole: report.is_whole() && departure.is_none(),
        entries: links,
        head: end.to_string(),
        broken: report.broken.as_ref().map(ToString::to_string),
        rows: report.rows.iter().map(ToString::to_string).collect(),
        since_head: departure.as_ref().map(ChainDivergenceView::from),
    };
    let told = context.format.answer(&view, || {
        let since = if kept.is_some() { ", and nothing before that head has changed" } else { "" };
        match (&report.broken, &departure) {
            (None, None) => format!("The record is whole: {links} entries, head {end}{since}"),
            _ => format!("{links} entries, head {end}"),
        }
    });
    told.and_then(|()| check_report(&report, departure.as_ref()))
}

/// Returns the error for a broken record.
fn check_report(report: &ChainReport, departure: Option<&ChainDivergence>) -> Result<(), CliError> {
    let hint = "somebody changed it, or the disk did: compare with a backup, and believe nothing \
                after that entry";
    let wrong = |what: String| Err(CliError::new(ErrorClass::Denied, what).hint(hint));
    match (&report.broken, departure) {
        (Some(broken), _) => {
            wrong(format!("the record is broken: {broken}{}", other_problems(report)))
        }
        (None, Some(departure)) => {
            wrong(format!("the record is not the one of that head: {departure}"))
        }
        (None, None) => Ok(()),
    }
}

/// Lists the other problems of rows, a line each.
fn other_problems(report: &ChainReport) -> String {
    let first = report.broken.as_ref();
    let others: Vec<_> = report.rows.iter().filter(|row| Some(*row) != first).collect();
    let shown = others.iter().take(SHOWN_ROWS_MAX).map(|row| format!("\n  {row}"));
    let mut text: String = shown.collect();
    if others.len() > SHOWN_ROWS_MAX {
        text.push_str(&format!("\n  and {} more (see --json)", others.len() - SHOWN_ROWS_MAX));
    }
    text
}

fn opened(file: &Path) -> Result<File, CliError> {
    let failed = |error| CliError::user(format!("cannot read {}", file.display())).because(&error);
    File::open(file).map_err(failed)
}

fn show(
    context: &CommandContext,
    since: u64,
    kind: Option<LinkKind>,
    lines: usize,
) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let mut last = std::collections::VecDeque::new();
    reader.links(since, |link| {
        if kind.is_none_or(|kind| kind.name() == link.kind) {
            last.push_back(link);
            if last.len() > lines {
                last.pop_front();
            }
        }
        Ok::<_, CliError>(())
    })?;
    let clock = context.clock();
    for link in &last {
        context.format.answer(&AuditEntryView::from(link), || words(link, &clock))?;
    }
    Ok(())
}

fn words(link: &ChainLink, clock: &WallClock) -> String {
    // The origin of what the runtime itself writes down is always the same.
    let told = link.row.iter().filter(|column| !matches!(column.name(), "id" | "at"));
    let told = told.map(|column| {
        format!("\n  {}: {}", column.name(), short(&column.to_string(), SHOWN_CHARS_MAX))
    });
    let ChainLink { seq, kind, subject, .. } = link;
    let at = clock.at(link.at);
    format!("{seq}  {at}  {kind} {subject}{}", told.collect::<String>())
}

fn export(context: &CommandContext, file: &Path) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let failed = |error: std::io::Error| {
        CliError::user(format!("cannot write {}", file.display())).because(&error)
    };
    let json = |error: serde_json::Error| CliError::internal("cannot write the record", &error);
    // The first line tells of the end, which is known first: it is read in a pass of its own,
    // and what came meanwhile is left out.
    let head = reader.head()?;
    let mut out = BufWriter::new(File::create_new(file).map_err(failed)?);
    let record = ExportHeader::from_head(head);
    serde_json::to_writer(&mut out, &record).map_err(json)?;
    reader.links(0, |link| {
        if link.seq > head.entries {
            return Ok(());
        }
        out.write_all(b"\n").map_err(failed)?;
        serde_json::to_writer(&mut out, &link).map_err(json)
    })?;
    out.write_all(b"\n").and_then(|()| out.flush()).map_err(failed)?;
    out.get_ref().sync_all().map_err(failed)?;
    if !head.is_empty() {
        ui::say("it holds what the automaton read and wrote: keep it where only you can read it");
    }
    context.format.answer(&ExportHeaderView::from(&record), || {
        format!("{}: {} entries, head {}", file.display(), head.entries, head.hash)
    })
}
