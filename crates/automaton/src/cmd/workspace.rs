//! `workspace …`: the snapshots of the workspace, and restores from them.
//!
//! A running automaton takes and restores them itself, so that no command of it is running
//! meanwhile; where none runs it is done here, under the home's lock. A plan is made first and
//! shown: nothing is changed that was not said. This is the one command that asks at a terminal.

use std::fs::DirBuilder;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use automaton_agent::NoEvents;
use automaton_agent::snapshots::{
    SNAPSHOTS_FOLDER, SnapshotPlaces, WorkspaceSnapshots, relative_paths,
};
use automaton_core::id::SnapshotId;
use automaton_core::snapshot::{
    RestoreReport, RestoreRequest, RestoredWorkspace, SnapshotCause, SnapshotRecord,
};
use automaton_core::wire::control::{ControlRequest, ControlResponse, SNAPSHOT_WORK_MAX};
use automaton_sandbox::WorkspaceDir;
use automaton_sandbox::snapshot::{RestoreSource, SnapshotStore};
use automaton_store::Store;
use clap::{Args, Subcommand, ValueHint};
use serde_json::json;

use super::send::reach_within;
use super::{CommandContext, id_generator};
use crate::control::unexpected;
use crate::error::CliError;
use crate::home::WORKSPACE;
use crate::ui::snapshots::{changes, record};
use crate::ui::text::plain;
use crate::ui::units::{many, size};
use crate::ui::{self, Format};

/// What a person may do with the workspace.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// List the snapshots, oldest first
    Snapshots,
    /// Take a snapshot now
    Snapshot,
    /// Bring files back from a snapshot; no file is deleted
    Restore(WorkspaceRestoreArgs),
}

/// Arguments of `workspace restore`.
#[derive(Debug, Args)]
pub(crate) struct WorkspaceRestoreArgs {
    /// The snapshot, as `workspace snapshots` lists it [default: the newest that was not taken for
    /// a restore]
    id: Option<SnapshotId>,
    /// Only this file or folder of the workspace; may be given several times
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// Restore into this folder, which is empty or not there; the workspace stays as it is
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    to: Option<PathBuf>,
    /// Take no snapshot of the present state first: the restore cannot be undone
    #[arg(long, conflicts_with = "to")]
    no_snapshot: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Does what was asked.
pub(crate) fn run(context: &CommandContext, command: &WorkspaceCommand) -> Result<(), CliError> {
    match command {
        WorkspaceCommand::Snapshots => list(context),
        WorkspaceCommand::Snapshot => take(context),
        WorkspaceCommand::Restore(args) => restore(context, args),
    }
}

/// The snapshots in a home.
pub(crate) fn snapshots_of(home: &Path) -> SnapshotStore {
    SnapshotStore::new(home.join(SNAPSHOTS_FOLDER))
}

fn list(context: &CommandContext) -> Result<(), CliError> {
    let (home, _) = context.inhabited()?;
    let found = snapshots_of(&home).list()?;
    let damaged: Vec<_> =
        found.damaged.iter().map(|(id, why)| json!({ "id": id, "problem": why })).collect();
    let told = json!({ "snapshots": found.records, "damaged": damaged });
    let clock = context.clock();
    context.format.answer(&told, || {
        let mut lines: Vec<String> = found.records.iter().map(|it| record(it, &clock)).collect();
        let damaged = found.damaged.iter();
        lines.extend(damaged.map(|(id, why)| format!("{id}  cannot be read: {}", plain(why))));
        match lines.is_empty() {
            true => {
                "There is no snapshot yet: one is taken before the first command of a wake that \
                     may delete files, and by `automaton workspace snapshot`"
                    .to_owned()
            }
            false => lines.join("\n"),
        }
    })
}

fn take(context: &CommandContext) -> Result<(), CliError> {
    let (home, _) = context.inhabited()?;
    match reach_within(&home, &ControlRequest::TakeSnapshot, SNAPSHOT_WORK_MAX)?.0 {
        ControlResponse::SnapshotTaken { snapshot, is_new } => {
            let told = json!({ "snapshot": snapshot, "new": is_new });
            let clock = context.clock();
            context.format.answer(&told, || match snapshot {
                None => "The workspace has no file: there is nothing to keep".to_owned(),
                Some(taken) if is_new => record(&taken, &clock),
                Some(taken) => {
                    format!("Nothing has changed since the snapshot {}", taken.id)
                }
            })
        }
        other => Err(unexpected(other)),
    }
}

fn restore(context: &CommandContext, args: &WorkspaceRestoreArgs) -> Result<(), CliError> {
    let (home, _) = context.inhabited()?;
    let snapshots = snapshots_of(&home);
    let snapshot = match args.id {
        Some(id) => id,
        None => newest(&snapshots)?,
    };
    let paths = relative_paths(&args.paths)?;
    if let Some(folder) = &args.to {
        return restore_beside(context, &home, folder, (snapshot, &paths));
    }
    let root = WorkspaceDir::open(&home.join(WORKSPACE))?;
    let source = RestoreSource { snapshot, paths: &paths, present: None };
    let planned = snapshots.plan(&root, &source)?;
    if planned.is_nothing() {
        let told = json!({ "snapshot": snapshot, "before": null, "report": planned });
        return context.format.answer(&told, || {
            format!("Nothing to restore: all that the snapshot {snapshot} has is there as it was")
        });
    }
    confirm(context, args, snapshot, &planned)?;
    let restore =
        RestoreRequest { snapshot, paths: args.paths.clone(), keep_present: !args.no_snapshot };
    let request = ControlRequest::RestoreWorkspace { restore };
    match reach_within(&home, &request, SNAPSHOT_WORK_MAX)?.0 {
        ControlResponse::WorkspaceRestored(done) => report(context, &done),
        other => Err(unexpected(other)),
    }
}

/// The newest snapshot that was not taken for a restore: the state before what went wrong.
fn newest(snapshots: &SnapshotStore) -> Result<SnapshotId, CliError> {
    let found = snapshots.list()?.records;
    let is_own = |it: &&SnapshotRecord| !matches!(it.cause, SnapshotCause::Restore { .. });
    let newest = found.iter().rev().find(is_own).map(|record| record.id);
    newest.ok_or_else(|| {
        CliError::user("there is no snapshot to restore from")
            .hint("`automaton workspace snapshot` takes one of what is there now")
    })
}

/// Shows what will change and asks, unless `--yes` says that it may.
fn confirm(
    context: &CommandContext,
    args: &WorkspaceRestoreArgs,
    snapshot: SnapshotId,
    planned: &RestoreReport,
) -> Result<(), CliError> {
    if context.format == Format::Text {
        ui::say(&format!(
            "From the snapshot {snapshot} ({}):\n{}\nWhat the snapshot does not have stays.",
            size(planned.bytes),
            changes(planned)
        ));
    }
    if args.yes {
        return Ok(());
    }
    let unasked =
        || CliError::user("nothing was restored").hint("add --yes to restore without being asked");
    if !io::stdin().is_terminal() || context.format == Format::Json {
        return Err(unasked());
    }
    ui::say("Restore it? [y/N]");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| CliError::user("cannot read the answer").because(&error))?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(unasked()),
    }
}

fn report(context: &CommandContext, done: &RestoredWorkspace) -> Result<(), CliError> {
    let RestoredWorkspace { snapshot, before, report } = done;
    context.format.answer(done, || {
        let mut told = format!("Restored from the snapshot {snapshot}");
        let changed = changes(report);
        if !changed.is_empty() {
            told.push_str(&format!(":\n{changed}"));
        }
        if let Some(before) = before {
            told.push_str(&format!(
                "\nThe state before is the snapshot {before}: `automaton workspace restore {before}` \
                 brings changed files back"
            ));
        }
        told
    })?;
    failed(report)
}

/// Restores into another folder of this machine.
fn restore_beside(
    context: &CommandContext,
    home: &Path,
    folder: &Path,
    (snapshot, paths): (SnapshotId, &[PathBuf]),
) -> Result<(), CliError> {
    let refused = |why: &str| CliError::user(format!("{} {why}", folder.display()));
    let unusable =
        |error: io::Error| refused("cannot be used").because(&error).hint("name another folder");
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unusable)?;
    let place = folder.canonicalize().map_err(unusable)?;
    if place.starts_with(home.canonicalize().map_err(unusable)?) {
        return Err(refused("is in the automaton's home").hint("name a folder outside of it"));
    }
    if place.read_dir().map_err(unusable)?.next().is_some() {
        return Err(refused("is not empty").hint("name an empty folder, or one that is not there"));
    }
    let source = RestoreSource { snapshot, paths, present: None };
    let report = snapshots_of(home).restore(&WorkspaceDir::open(&place)?, &source)?;
    let told = json!({ "snapshot": snapshot, "folder": place, "report": report });
    context.format.answer(&told, || {
        let what = many(report.created.count, "entry").replace("entrys", "entries");
        let mut told = format!(
            "{what}, {}, of the snapshot {snapshot} are in {}",
            size(report.bytes),
            place.display()
        );
        if report.failed.count > 0 {
            told.push_str(&format!("\n{}", changes(&report)));
        }
        told
    })?;
    failed(&report)
}

/// Fails where something could not be restored, after it was told.
fn failed(report: &RestoreReport) -> Result<(), CliError> {
    match report.failed.count {
        0 => Ok(()),
        count => {
            let first = report.failed.first.first().map_or_else(String::new, |it| plain(it));
            Err(CliError::user(format!("{count} could not be restored: {first}"))
                .hint("the rest is there; restore these from another snapshot"))
        }
    }
}

/// Does work on the snapshots of a life that nobody lives: the caller holds the home's lock.
///
/// # Errors
/// When it fails.
pub(super) async fn work_alone(
    home: &Path,
    store: &Store,
    command: &ControlRequest,
) -> Result<ControlResponse, CliError> {
    let file = crate::home::read(home)?;
    let places = SnapshotPlaces {
        workspace: home.join(WORKSPACE),
        home: home.to_owned(),
        limits: file.snapshots.limits(),
    };
    let snapshots =
        WorkspaceSnapshots::new(places, store.clone(), id_generator(), Arc::new(NoEvents));
    match command {
        ControlRequest::RestoreWorkspace { restore } => {
            let done = snapshots.restore(restore.clone()).await?;
            Ok(ControlResponse::WorkspaceRestored(Box::new(done)))
        }
        _ => Ok(snapshots.take_by_hand().await?),
    }
}
