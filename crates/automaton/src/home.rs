//! The home of one automaton: its files, how it is made, and who has it.
//!
//! ```text
//! automaton.json   configuration, the creator's      constitution.md  0444, pinned at birth
//! SOUL.md          what it thinks of itself          state.db         its life
//! workspace/       what its sandbox sees as /root    events.jsonl     what happened
//! policy.cedar     the operator's rules, if any      lock, agent.lock held by who runs it
//! ```
//!
//! Everything is private to its owner. A home that was made once must never be
//! made anew: what is missing or damaged later is refused, not replaced.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_core::id::{AutomatonId, IdGenerator, RunId};
use automaton_core::wire::control::SOCKET_NAME;
use automaton_sandbox::process::{self, LockError, LockGuard};
use automaton_script::fault;
use automaton_store::{Hash, NewAutomaton, Reader, Store, StoreError};
use serde::Serialize;

use crate::args::RemoteFlags;
use crate::config::brain::NewBrain;
use crate::config::file::{self, BrainFile, CONFIG_VERSION, ConfigFile, FILE_NAME};
use crate::config::values::{HttpUrl, Name, Prompt};
use crate::error::CliError;
use crate::log;
use crate::text_file;

/// The database, in the home.
pub const DATABASE: &str = "state.db";
/// The creator's schedule of the heartbeat, in the home; need not exist.
pub(crate) const HEARTBEAT: &str = "heartbeat.yml";
/// The directory that the sandbox sees as `/root`.
pub(crate) const WORKSPACE: &str = "workspace";
const CONSTITUTION: &str = "constitution.md";
/// The soul for people to read, in the home. A person may lay one down before birth.
const SOUL: &str = "SOUL.md";
/// Files of the home that a person may bring, and that the program makes when they are missing.
const MADE_WHEN_MISSING: [&str; 4] = [CONSTITUTION, SOUL, DATABASE, log::FILE_NAME];
/// Held by whoever runs the automaton, or changes its life.
const LOCK: &str = "lock";
/// Interval, and number of tries, to wait for a lock that is held for a moment.
const LOCK_POLL: Duration = Duration::from_millis(50);
const LOCK_TRIES: u32 = 20;
/// Marker of a start in the log, and the length that is searched.
const STARTED: &[u8] = b"\"event\":\"agent.started\"";
const LOG_BYTES_MAX: u64 = 64 * 1024;
/// Suffix of a file that is being written.
const TEMPORARY: &str = ".new";

/// The text of every constitution.
pub(crate) const CONSTITUTION_TEXT: &str = include_str!("../assets/constitution.md");
/// The purpose of an automaton whose creator named none.
const GENESIS_TEXT: &str = include_str!("../assets/genesis.txt");
/// The name of an automaton whose creator gave none.
const USUAL_NAME: &str = "Automaton";

/// The configuration of a home, found or yet to be written.
#[derive(Debug)]
pub(crate) struct ConfigDraft {
    /// Content.
    pub(crate) file: ConfigFile,
    /// Its text, when the file is not there yet.
    new_text: Option<String>,
}

impl ConfigDraft {
    /// Returns true if the home is new.
    pub(crate) const fn is_new(&self) -> bool {
        self.new_text.is_some()
    }

    /// Writes a new configuration; one that was found stays as it is.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write_if_new(&self, home: &Path) -> Result<(), CliError> {
        let path = home.join(FILE_NAME);
        self.new_text
            .as_ref()
            .map_or(Ok(()), |text| write_atomically(&path, text.as_bytes(), 0o600))
    }
}

/// The part of `automaton.json` that is written when a home is made.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewConfig<'a> {
    config_version: u32,
    name: &'a str,
    genesis_prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    brain: Option<&'a BrainFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    treasury_policy: Option<NewTreasuryPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_strategy: Option<NewModelStrategy<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conway_api_url: Option<&'a HttpUrl>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rpc_url: Option<&'a HttpUrl>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'a str>,
}

/// Limits that a new home's file states.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewTreasuryPolicy {
    max_inference_daily_cents: u64,
}

/// Models that a new home's file states.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewModelStrategy<'a> {
    fallback_providers: &'a [String],
}

/// Locks a home for the process that runs its automaton, or changes its life. One that
/// stores a message where nobody lives has the lock for a moment, which is waited for.
///
/// # Errors
/// When another process has it for longer, by its id.
pub(crate) fn lock(home: &Path) -> Result<LockGuard, CliError> {
    for _ in 0..LOCK_TRIES {
        if let Some(lock) = lock_now(home)? {
            return Ok(lock);
        }
        std::thread::sleep(LOCK_POLL);
    }
    process::lock(&home.join(LOCK)).map_err(|error| match error {
        LockError::Held { holder, .. } => {
            let who =
                holder.map_or_else(|| "another process".into(), |pid| format!("process {pid}"));
            CliError::user(format!("the automaton in {} already runs: {who}", home.display()))
                .hint("`automaton status` shows it, `automaton stop` ends it")
        }
        error @ LockError::File { .. } => error.into(),
    })
}

/// Locks a home in which somebody was before, without making anything: one that runs is
/// told of before anything else.
///
/// # Errors
/// As [`lock`].
pub(crate) fn lock_if_made(home: &Path) -> Result<Option<LockGuard>, CliError> {
    if home.join(LOCK).exists() { lock(home).map(Some) } else { Ok(None) }
}

/// The same at once; nothing when another process has it.
///
/// # Errors
/// When the file cannot be used.
pub(crate) fn lock_now(home: &Path) -> Result<Option<LockGuard>, CliError> {
    match process::lock(&home.join(LOCK)) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held { .. }) => Ok(None),
        Err(error @ LockError::File { .. }) => Err(error.into()),
    }
}

/// Locks a home for its agent. A supervisor that was killed leaves its agent
/// behind for a moment; two agents must never share one life.
///
/// # Errors
/// When another agent has it.
pub(crate) fn lock_agent(home: &Path) -> Result<LockGuard, LockError> {
    process::lock(&home.join("agent.lock"))
}

/// Reads the configuration of a home in which an automaton lives.
///
/// # Errors
/// When there is none, or its configuration is invalid.
pub(crate) fn read(home: &Path) -> Result<ConfigFile, CliError> {
    file::read(&home.join(FILE_NAME))?.ok_or_else(|| no_automaton(home))
}

/// Nobody lives in a home.
pub(crate) fn no_automaton(home: &Path) -> CliError {
    CliError::user(format!("no automaton lives in {}", home.display()))
        .hint("make one with `automaton up` or `automaton init`, or name another --home")
}

/// The longest path of a Unix socket in bytes; the system ends it with a NUL.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Checks that the control socket of a home can have an address. Every command
/// does so first, since an automaton that nobody can speak to must not be made.
///
/// # Errors
/// When the path is too long; `hint` says how to choose another.
pub(crate) fn check_length(home: &Path, hint: &str) -> Result<(), CliError> {
    let bytes = home.join(SOCKET_NAME).as_os_str().as_bytes().len();
    if bytes <= SOCKET_PATH_BYTES_MAX {
        return Ok(());
    }
    let what = format!(
        "the home directory's path is too long for its control socket \
         ({bytes} of {SOCKET_PATH_BYTES_MAX} bytes)"
    );
    Err(CliError::user(what).hint(hint))
}

/// Makes the home's directory and asserts that only its owner can enter. A
/// directory that holds something else is left as it is: `--home` may be
/// mistyped, and other people's files must not be shut away.
///
/// # Errors
/// When it cannot be made, belongs to somebody else, or is no home.
pub(crate) fn make_private(home: &Path) -> Result<(), CliError> {
    check_ours(home)?;
    make_directory(home).map_err(|error| unusable(home).because(&error))
}

fn unusable(home: &Path) -> CliError {
    CliError::new(ErrorClass::Config, format!("cannot use {} as a home", home.display()))
        .hint("name a directory that you own with --home DIR")
}

/// Makes a directory that only its owner can enter.
///
/// # Errors
/// When it cannot be made.
pub fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    if fs::metadata(path)?.permissions().mode() & 0o7777 != 0o700 {
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Checks that a home whose automaton has lived has its record still: another one would be
/// another life, with the same key.
///
/// # Errors
/// When the record is gone.
pub(crate) fn check_record(home: &Path) -> Result<(), CliError> {
    if home.join(DATABASE).symlink_metadata().is_ok() || !has_lived(home) {
        return Ok(());
    }
    let what =
        format!("the automaton in {} has lived, and its record {DATABASE} is gone", home.display());
    Err(CliError::new(ErrorClass::Config, what).hint(
        "bring it back from a backup; for another life, name another directory with --home, or \
         move this one away",
    ))
}

/// Returns true if a life has left something: a file of its record, a second log, or a start in
/// the log. The workspace may belong to its creator.
fn has_lived(home: &Path) -> bool {
    let mut told = Vec::new();
    let log = File::open(home.join(log::FILE_NAME));
    // silent-ok: what cannot be read tells nothing.
    log.and_then(|log| log.take(LOG_BYTES_MAX).read_to_end(&mut told)).ok();
    let is_told = told.windows(STARTED.len()).any(|window| window == STARTED);
    let others = [format!("{DATABASE}-wal"), format!("{}.1", log::FILE_NAME)];
    is_told || others.iter().any(|name| home.join(name).exists())
}

/// Checks that a directory that is there already may become, or is, a home.
pub(crate) fn check_ours(home: &Path) -> Result<(), CliError> {
    let unreadable = |error: io::Error| unusable(home).because(&error);
    let found = match fs::metadata(home) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(unreadable)?,
    };
    let foreign = found.uid() != process::effective_user();
    // The sticky bit marks a directory that many share, such as `/tmp`.
    if foreign || found.mode() & 0o1000 != 0 {
        let why = if foreign { "another user owns it" } else { "it is shared: it is sticky" };
        return Err(unusable(home).because(&io::Error::other(why)));
    }
    if [FILE_NAME, DATABASE].iter().any(|name| home.join(name).symlink_metadata().is_ok()) {
        return Ok(());
    }
    for entry in fs::read_dir(home).map_err(unreadable)? {
        if !is_of_new_home(entry.map_err(unreadable)?.file_name().as_bytes()) {
            let what = format!("{} is not empty and no automaton lives there", home.display());
            return Err(
                CliError::new(ErrorClass::Config, what).hint("name another directory with --home")
            );
        }
    }
    Ok(())
}

/// Returns true if a file may lie in a home before its configuration does: the file of a
/// rehearsal, or of an unfinished attempt.
fn is_of_new_home(name: &[u8]) -> bool {
    let unfinished = name.strip_suffix(TEMPORARY.as_bytes()) == Some(FILE_NAME.as_bytes());
    name.starts_with(fault::MARKER.as_bytes()) || name == LOCK.as_bytes() || unfinished
}

/// Finds the configuration of a home, or drafts that of a new automaton.
/// Nothing is written yet, so that a mistake in what is wanted leaves no home
/// behind.
///
/// # Errors
/// When what is there is damaged or is not what is wanted.
pub(crate) fn draft(
    home: &Path,
    name: Option<&Name>,
    genesis: Option<&Prompt>,
    brain: Option<&NewBrain>,
    remote: &RemoteFlags,
) -> Result<ConfigDraft, CliError> {
    let path = home.join(FILE_NAME);
    let name = name.map(Name::as_str);
    let genesis = genesis.map(Prompt::as_str);
    if let Some(file) = file::read(&path)? {
        check_same("--name", file.name.as_ref().map(Name::as_str), name)?;
        check_same("--genesis", file.genesis_prompt.as_ref().map(Prompt::as_str), genesis)?;
        return Ok(ConfigDraft { file, new_text: None });
    }
    if home.join(DATABASE).exists() {
        let what = format!("{} holds a life ({DATABASE}) but no {FILE_NAME}", home.display());
        return Err(CliError::new(ErrorClass::Config, what)
            .hint("restore automaton.json; or name another --home for a new automaton"));
    }
    let config = NewConfig {
        config_version: CONFIG_VERSION,
        name: name.unwrap_or(USUAL_NAME),
        genesis_prompt: genesis.unwrap_or(GENESIS_TEXT.trim()),
        brain: brain.map(|brain| &brain.file),
        treasury_policy: brain
            .and_then(|brain| brain.daily_cents)
            .map(|max_inference_daily_cents| NewTreasuryPolicy { max_inference_daily_cents }),
        model_strategy: brain
            .map(|brain| brain.fallback_providers.as_slice())
            .filter(|names| !names.is_empty())
            .map(|fallback_providers| NewModelStrategy { fallback_providers }),
        conway_api_url: remote.cloud.as_ref(),
        rpc_url: remote.rpc.as_ref(),
        network: remote.network.as_deref(),
    };
    let mut text = serde_json::to_string_pretty(&config)
        .map_err(|error| CliError::internal("cannot write the configuration", &error))?;
    text.push('\n');
    Ok(ConfigDraft { file: file::parse(&path, &text)?, new_text: Some(text) })
}

fn check_same(flag: &str, is: Option<&str>, wanted: Option<&str>) -> Result<(), CliError> {
    let (Some(is), Some(wanted)) = (is, wanted) else { return Ok(()) };
    if is == wanted {
        return Ok(());
    }
    let shown: String = is.chars().take(60).collect();
    Err(CliError::user(format!("{flag} contradicts the automaton that lives here: '{shown}'"))
        .hint(format!(
            "leave {flag} out to go on with it, or name another --home for a new automaton"
        )))
}

/// Adds what a home lacks before its automaton is born. Does nothing to a home
/// with a life in it but to make its workspace.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn create_missing_files(home: &Path) -> Result<(), CliError> {
    make_private(home)?;
    check_workspace(home)?;
    check_links(home)?;
    let workspace = home.join(WORKSPACE);
    make_directory(&workspace).map_err(|error| unusable(&workspace).because(&error))?;
    if home.join(DATABASE).exists() {
        return Ok(());
    }
    if !home.join(CONSTITUTION).exists() {
        write_atomically(&home.join(CONSTITUTION), CONSTITUTION_TEXT.as_bytes(), 0o444)?;
    }
    Ok(())
}

/// Checks that no file of the home that would be made when it is missing is a link without a
/// target: it would be replaced, and what was meant by it would be lost.
///
/// # Errors
/// When one is, by its name.
pub(crate) fn check_links(home: &Path) -> Result<(), CliError> {
    for path in MADE_WHEN_MISSING.map(|name| home.join(name)) {
        text_file::is_there(&path).map_err(|error| {
            CliError::new(ErrorClass::Config, format!("cannot use {}", path.display()))
                .because(&error)
                .hint("bring the file back that it leads to, or remove the link to have it made")
        })?;
    }
    Ok(())
}

/// Checks that the workspace of a home, where there is one, is a folder and no link: commands
/// have it as theirs, wherever it leads.
///
/// # Errors
/// When it is anything else.
pub(crate) fn check_workspace(home: &Path) -> Result<(), CliError> {
    let workspace = home.join(WORKSPACE);
    let kind = match workspace.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|error| unusable(&workspace).because(&error))?.file_type(),
    };
    if kind.is_dir() {
        return Ok(());
    }
    let is = if kind.is_symlink() { "a link" } else { "no folder" };
    let what =
        format!("{} is {is}: the workspace must be a folder of the home", workspace.display());
    Err(CliError::new(ErrorClass::Denied, what)
        .hint("move it away; for files elsewhere, copy them into a folder of that name"))
}

/// Reads the constitution of the automaton in a home.
///
/// # Errors
/// When the file cannot be read, or is not the pinned one.
pub(crate) fn read_constitution(home: &Path, pinned: Option<Hash>) -> Result<String, CliError> {
    let path = home.join(CONSTITUTION);
    let constitution = fs::read_to_string(&path);
    let found = constitution.as_ref().map(|text| Hash::of(text.as_bytes())).ok();
    if let Some(pinned) = pinned
        && found != Some(pinned)
    {
        return Err(tampered(&path, pinned, found));
    }
    let what = format!("cannot read {CONSTITUTION} of the home");
    constitution.map_err(|error| CliError::new(ErrorClass::Config, what).because(&error))
}

/// Checks the constitution of a home in which somebody lives. A record that cannot be read
/// is the agent's to tell of.
///
/// # Errors
/// When it is not the one that it was born with.
pub(crate) fn check_constitution(home: &Path) -> Result<(), CliError> {
    let database = home.join(DATABASE);
    let life = || Reader::open(&database).ok()?.life().ok();
    match life().filter(|_| database.exists()) {
        Some(life) => read_constitution(home, Some(life.constitution_sha256)).map(|_| ()),
        None => Ok(()),
    }
}

/// Brings the automaton of a home to life, unless it lives already, and reads
/// its character.
///
/// # Errors
/// When its constitution is not the one it was born with.
pub(crate) async fn birth_or_load(
    store: &Store,
    home: &Path,
    name: &str,
    genesis: &str,
) -> Result<(AutomatonId, String), CliError> {
    let pinned = match store.life().await {
        Ok(life) => Some(life.constitution_sha256),
        Err(StoreError::Unborn) => None,
        Err(error) => return Err(error.into()),
    };
    let constitution = read_constitution(home, pinned)?;
    let born = NewAutomaton {
        name: name.to_owned(),
        genesis_sha256: Hash::of(genesis.as_bytes()),
        constitution_sha256: Hash::of(constitution.as_bytes()),
    };
    Ok((store.birth(born).await?, constitution))
}

fn tampered(path: &Path, pinned: Hash, found: Option<Hash>) -> CliError {
    let is = found.map_or_else(|| "none that can be read".to_owned(), |found| found.to_string());
    let what = format!(
        "{} is not the constitution this automaton was born with: its SHA-256 is {is}, and was \
         {pinned}",
        path.display()
    );
    let ours = pinned == Hash::of(CONSTITUTION_TEXT.as_bytes());
    let hint = if ours {
        "write the original text back: `automaton constitution` prints it".to_owned()
    } else {
        format!("restore the file whose SHA-256 is {pinned} from your backup")
    };
    CliError::new(ErrorClass::Denied, what).hint(hint)
}

/// A folder with a new home and what belongs to it, which is thrown away when this
/// value is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a folder for a new home below a directory for temporary files.
    ///
    /// # Errors
    /// When its path is too long for a control socket, or it cannot be made.
    pub fn new(parent: Option<&Path>, ids: &IdGenerator) -> Result<Self, CliError> {
        let name = format!("automaton-{}", ids.id::<RunId>());
        let scratch = Self(parent.unwrap_or(Path::new("/tmp")).join(name));
        check_length(&scratch.home(), "set TMPDIR to a directory with a shorter path")?;
        make_directory(&scratch.0).map_err(|error| unusable(&scratch.0).because(&error))?;
        Ok(scratch)
    }

    /// The home in it.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.0.join("home")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            let what = format!("cannot remove {}", self.0.display());
            CliError::internal(what, &error).print();
        }
    }
}

/// Writes a file so that a crash leaves the old one or the new one, and both
/// the bytes and the name are on the disk when this returns.
///
/// # Errors
/// When the file cannot be written; then the old one is untouched.
pub fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> Result<(), CliError> {
    let mut temporary = path.to_owned().into_os_string();
    temporary.push(TEMPORARY);
    let temporary = PathBuf::from(temporary);
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
    };
    write().map_err(|error| {
        // silent-ok: the file may not exist, and the failure to write is told.
        fs::remove_file(&temporary).ok();
        let full = error.kind() == io::ErrorKind::StorageFull;
        let failure = CliError::internal(format!("cannot write {}", path.display()), &error);
        if full {
            failure.hint("make room on the disk and try again; nothing was changed")
        } else {
            failure
        }
    })
}
