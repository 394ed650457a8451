//! `backup` and `restore`: a life in one encrypted file, and back.
//!
//! What a backup does not have, and what must not happen after a restore, is always said.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use automaton_agent::snapshots::SNAPSHOTS_FOLDER;
use automaton_sandbox::harden;
use automaton_signer::PassphraseSource;
use automaton_signer::keystore::Keystore;
use clap::{Args, ValueHint};

use super::{CommandContext, id_generator};
use crate::backup::{self, BackupRequest, MadeBackup, Manifest};
use crate::error::CliError;
use crate::role::signer::home_of;
use crate::stack;
use crate::ui::say;
use crate::ui::text::{plain, short};
use crate::ui::units::{many, size};
use crate::view::audit::{BackupView, RestoredLifeView};

/// Arguments of `backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Destination
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// A file with the backup's passphrase, which only you can read [default: ask at the terminal]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    passphrase_file: Option<PathBuf>,
    /// Replace the file if it is there already
    #[arg(long)]
    force: bool,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The file that `backup` wrote
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// A file with the backup's passphrase, which only you can read [default: ask at the terminal]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    passphrase_file: Option<PathBuf>,
}

/// Makes a backup.
pub(crate) fn make(context: &CommandContext, args: BackupArgs) -> Result<(), CliError> {
    harden()?;
    let (home, config) = context.inhabited()?;
    let file = std::path::absolute(&args.file)
        .map_err(|error| CliError::user("cannot tell where the file is").because(&error))?;
    check_target(&home, &file, args.force)?;
    let asked = PassphraseSource::NewBackupTerminal;
    let passphrase = args.passphrase_file.map_or(asked, PassphraseSource::File).read_new()?;
    let keystore = home_of(&home).join("keystore.json");
    let wallet = if keystore.exists() { Keystore::read(&keystore)?.address() } else { None };
    let made_at = id_generator().now();
    let name = config.name.as_ref().map_or_else(String::new, |name| name.as_str().to_owned());
    let folders = backup::names_of(&home)?;
    let manifest = Manifest::new(name, made_at, wallet, folders);
    let request = BackupRequest { home: &home, file: &file, passphrase: &passphrase, manifest };
    let MadeBackup { tally, skipped, skipped_first, without_machines } = backup::make(&request)?;
    if let Some(first) = &skipped_first {
        let what = many(skipped, "file");
        let first = short(&first.display().to_string(), 80);
        say(&format!(
            "left out of its workspace: {what}, out of reach or of another kind, as pipes: {first}{}",
            if skipped > 1 { " and more" } else { "" }
        ));
    }
    if without_machines {
        say("left out: the disks of the machines that its dev cloud rents out");
    }
    let without_snapshots = home.join(SNAPSHOTS_FOLDER).exists();
    if without_snapshots {
        say("left out: the snapshots of its workspace, as it was before some commands");
    }
    let view = BackupView {
        file: file.clone(),
        automaton: request.manifest.name.clone(),
        made_at: request.manifest.made_at.to_string(),
        wallet,
        folders: request.manifest.folders.clone(),
        content: (&tally).into(),
        skipped,
        without_machines,
        without_snapshots,
    };
    context.format.answer(&view, || {
        let files = many(tally.files, "file");
        let bytes = size(tally.bytes);
        let name = plain(&request.manifest.name);
        format!(
            "{name} is in {}: {files}, {bytes}, read back and compared\n\
             Whoever has the file and its passphrase has the wallet; without the passphrase \
             nobody can open it.",
            file.display()
        )
    })
}

fn check_target(home: &Path, file: &Path, force: bool) -> Result<(), CliError> {
    let refused = |why: &str| CliError::user(format!("{} {why}", file.display()));
    if file.is_dir() || file.file_name().is_none() {
        return Err(refused("is a folder").hint("name a file in it"));
    }
    if file.symlink_metadata().is_ok() && !force {
        return Err(refused("is there already").hint("name another file, or add --force"));
    }
    let parent = file.parent().unwrap_or(Path::new("/"));
    let parent = parent.canonicalize().map_err(|error| {
        CliError::user(format!("cannot use the folder {}", parent.display())).because(&error)
    })?;
    let folders = [home.to_owned(), home_of(home), stack::folder_of(home)];
    let inside = |folder: &PathBuf| folder.canonicalize().is_ok_and(|it| parent.starts_with(it));
    match folders.iter().find(|folder| inside(folder)) {
        Some(folder) => Err(refused(&format!("would be a part of {}", folder.display()))
            .hint("name a file outside of the automaton's folders, best on another disk")),
        None => Ok(()),
    }
}

/// Checks that the file of a backup can be read, before anybody is asked for its passphrase.
fn check_source(file: &Path) -> Result<(), CliError> {
    let failed = |error: io::Error| {
        CliError::user(format!("cannot read the backup {}", file.display()))
            .because(&error)
            .hint("name the file that `automaton backup` wrote; nothing was changed")
    };
    match File::open(file).and_then(|opened| opened.metadata()).map_err(failed)? {
        found if found.is_dir() => Err(CliError::user(format!("{} is a folder", file.display()))
            .hint("name the file that `automaton backup` wrote; nothing was changed")),
        _ => Ok(()),
    }
}

/// Brings a life back.
pub(crate) fn restore(context: &CommandContext, args: RestoreArgs) -> Result<(), CliError> {
    harden()?;
    let home = context.home()?;
    check_source(&args.file)?;
    backup::check_free(&home)?;
    let asked = PassphraseSource::BackupTerminal;
    let passphrase = args.passphrase_file.map_or(asked, PassphraseSource::File).read()?;
    let life = backup::restore(&home, &args.file, &passphrase)?;
    let Manifest { name, made_at, wallet, .. } = &life.manifest;
    let view = RestoredLifeView {
        automaton: name.clone(),
        made_at: made_at.to_string(),
        wallet: *wallet,
        places: life.places.clone(),
        content: (&life.tally).into(),
        ceilings_used: life.ceilings_used,
    };
    context.format.answer(&view, || {
        let places = life.places.iter().map(|place| place.display().to_string());
        format!(
            "{} is as it was at {made_at}, in {}",
            plain(name),
            places.collect::<Vec<_>>().join(", ")
        )
    })?;
    say("warning: the automaton that this was copied from must not run any more: two lives with \
         one key spend the same money, and neither knows of the other");
    say(&format!(
        "What it did after {made_at} is not in these books: no purchase, no message, no credits. \
         The chain and the cloud know what was paid; the next start asks them for the balances."
    ));
    if life.ceilings_used {
        say("The ceilings of an hour and of a day count as used up, since the original may have \
             used them: nothing is signed for until they pass. The ceilings for ever, and those of \
             `treasuryPolicy`, are as they were. See `automaton limits show`; `automaton limits \
             set --per-hour … --per-day … --per-payee …` with the wallet's passphrase gives room \
             at once.");
    }
    Ok(())
}
