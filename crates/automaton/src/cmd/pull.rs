//! `model pull`: brings the file of a model to this machine, verified.
//!
//! What is fetched goes on where it was cut off, and is a model only once its size and its hash
//! are those that were promised. Nothing is fetched before its owner said yes, and no file that
//! is there is ever replaced by another.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_net::{Deadlines, Header, HttpMethod, HttpRequest, HttpResponse, NetError, Url};
use automaton_sandbox::fs::disk_space;
use clap::Args;

use super::CommandContext;
use super::new_brain::confirm;
use crate::config::values::FileHash;
use crate::error::CliError;
use crate::http;
use crate::local_models::{self, LocalModelEntry, MAGIC, hash_file};
use crate::process::runtime;
use crate::ui::say;
use crate::ui::text::plain;
use crate::ui::units::size;
use crate::view::models::PulledModelView;

/// The largest model file, in bytes.
const BYTES_MAX: u64 = 1 << 40;

/// Room that is left on the disk for everything else, in bytes.
const ROOM_LEFT: u64 = 256 << 20;

/// Longest silence of a server.
const IDLE: Duration = Duration::from_secs(60);

/// Time for the whole download.
const TOTAL: Duration = Duration::from_secs(7 * 24 * 3600);

/// Number of broken connections before it fails.
const BREAKS_MAX: u32 = 5;

/// Number of redirections that are followed; each leads to an encrypted public address.
const REDIRECTIONS_MAX: u32 = 5;

/// Arguments of `model pull`.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// The name of a model of the catalogue, a URL, or the path of a file in GGUF format
    model: String,
    /// Name of the model [default: the name of its file]
    #[arg(long)]
    name: Option<String>,
    /// SHA-256 of the file, in hexadecimal; another is refused
    #[arg(long, value_name = "HASH")]
    sha256: Option<FileHash>,
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
}

/// Source of a model.
enum ModelSource {
    File(PathBuf),
    Server(Url),
}

/// Brings a model here.
pub(crate) fn run(context: &CommandContext, args: &PullArgs) -> Result<(), CliError> {
    let home = context.home()?;
    let (mut entry, source) = wanted(&home, args)?;
    let target = local_models::file_of(&home, &entry.name);
    if target.exists() {
        return present(context, &entry, &target);
    }
    let folder = local_models::folder(&home);
    let unwritten = |error: io::Error| {
        CliError::new(ErrorClass::Internal, format!("cannot write to {}", folder.display()))
            .because(&error)
    };
    fs::create_dir_all(&folder).map_err(unwritten)?;
    let from = match &source {
        ModelSource::File(path) => path.display().to_string(),
        ModelSource::Server(url) => url.to_string(),
    };
    if let ModelSource::File(path) = &source {
        entry.bytes = entry.bytes.or(fs::metadata(path).ok().map(|file| file.len()));
    }
    consent(&entry, &from, &target, args.yes)?;
    let part = folder.join(format!("{}.part", entry.name));
    match &source {
        ModelSource::File(path) => copy(path, &part)?,
        ModelSource::Server(url) => runtime()?.block_on(fetch(&entry, url.clone(), &part))?,
    }
    verify(&mut entry, &part)?;
    entry.url = entry.url.or(Some(from).filter(|from| from.contains("://")));
    let note = serde_json::to_string_pretty(&entry)
        .map_err(|error| CliError::internal("the note of a model cannot be written", &error))?;
    fs::write(local_models::note_of(&home, &entry.name), note).map_err(unwritten)?;
    fs::rename(&part, &target).map_err(unwritten)?;
    report(context, &entry, &target, "is here")
}

/// Which model it is, and from where.
fn wanted(home: &Path, args: &PullArgs) -> Result<(LocalModelEntry, ModelSource), CliError> {
    let PullArgs { model, name, sha256, .. } = args;
    let path = PathBuf::from(model);
    let is_file = path.is_file();
    let of_file = |stem: &str, source| {
        let name = name.clone().unwrap_or_else(|| stem.to_owned());
        if !local_models::is_name(&name) {
            return Err(CliError::user(format!("'{name}' cannot be a model's name"))
                .hint("give one with --name: letters, digits, dots, dashes and underscores"));
        }
        let entry = LocalModelEntry {
            name,
            url: None,
            sha256: sha256.clone(),
            bytes: None,
            licence: None,
            context_tokens: None,
            note: None,
        };
        Ok((entry, source))
    };
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if model.contains("://") {
        let url = http::url(model)?;
        return of_file(&stem(Path::new(url.path())), ModelSource::Server(url));
    }
    if is_file || model.contains('/') {
        return of_file(&stem(&path), ModelSource::File(path));
    }
    let known = local_models::catalogue(home)?;
    let Some(entry) = known.iter().find(|entry| entry.name == *model) else {
        let names: Vec<&str> = known.iter().map(|entry| entry.name.as_str()).collect();
        let what = format!("there is no model '{}' in the catalogue", plain(model));
        return Err(CliError::user(what).hint(format!(
            "it has: {}; {} adds others, and a path or a URL is taken, too",
            names.join(", "),
            local_models::folder(home).join(local_models::CATALOGUE).display()
        )));
    };
    let Some(url) = &entry.url else {
        let note = entry.note.as_deref().unwrap_or("the catalogue names no address for it");
        return Err(CliError::user(format!("'{}' is not to be had by itself", entry.name))
            .hint(note.to_owned()));
    };
    let entry =
        LocalModelEntry { sha256: sha256.clone().or(entry.sha256.clone()), ..entry.clone() };
    let source = ModelSource::Server(http::url(url)?);
    Ok((entry, source))
}

/// A file of this name is there already.
fn present(context: &CommandContext, entry: &LocalModelEntry, file: &Path) -> Result<(), CliError> {
    let hash = hash_file(file).map_err(|error| unread(file, &error))?;
    match &entry.sha256 {
        Some(wanted) if wanted.as_str() != hash => {
            let what = format!("another model is called '{}' already", entry.name);
            let hint =
                format!("give this one another name with --name, or delete {}", file.display());
            Err(CliError::user(what).hint(hint))
        }
        _ => report(context, entry, file, "was here already"),
    }
}

/// Says what will be brought, and asks.
fn consent(entry: &LocalModelEntry, from: &str, target: &Path, yes: bool) -> Result<(), CliError> {
    let bytes = entry.bytes.map_or("of unknown size".to_owned(), size);
    let licence = entry.licence.as_deref().unwrap_or("not known");
    let hash = match &entry.sha256 {
        Some(_) => "its SHA-256 is checked",
        None => "nobody says what its SHA-256 should be",
    };
    let note = entry.note.as_deref().map(|note| format!(" {}.", plain(note))).unwrap_or_default();
    say(&format!(
        "{} ({bytes}), from {}; licence: {}; {hash}.{note}",
        entry.name,
        plain(from),
        plain(licence)
    ));
    has_room(target, entry.bytes)?;
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CliError::user("nobody is there to say yes").hint("say it with --yes"));
    }
    match confirm("Bring it here? [Y/n] ")? {
        true => Ok(()),
        false => Err(CliError::user("nothing was brought")),
    }
}

/// Checks that the disk of a file has room for these bytes.
fn has_room(file: &Path, bytes: Option<u64>) -> Result<(), CliError> {
    let folder = file.parent().unwrap_or(file);
    // silent-ok: where the system does not say, the write itself will.
    match (bytes, disk_space(folder)) {
        (Some(bytes), Ok((left, _))) if left < bytes.saturating_add(ROOM_LEFT) => {
            let what = format!("{} has no room for it: {} are left", folder.display(), size(left));
            Err(CliError::user(what).hint("free some disk space"))
        }
        _ => Ok(()),
    }
}

/// Copies a file of this machine, anew.
fn copy(from: &Path, part: &Path) -> Result<(), CliError> {
    let failed = |error: io::Error| unread(from, &error);
    if !is_model(from).map_err(failed)? {
        return Err(no_model(&from.display().to_string()));
    }
    let mut file = File::open(from).map_err(failed)?;
    let mut copy = File::create(part).map_err(failed)?;
    io::copy(&mut file, &mut copy).map_err(failed)?;
    copy.sync_all().map_err(failed)
}

/// Returns true if a file begins as a model does.
fn is_model(file: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    File::open(file)?.take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == MAGIC)
}

fn unread(file: &Path, error: &io::Error) -> CliError {
    CliError::user(format!("cannot copy {}", file.display())).because(error)
}

fn no_model(place: &str) -> CliError {
    CliError::user(format!("{place} is no model in GGUF format"))
}

/// Fetches the rest of a file, again where the connection breaks. What an earlier run left is
/// gone on with only where a hash will tell whether the parts belong together.
async fn fetch(entry: &LocalModelEntry, url: Url, part: &Path) -> Result<(), CliError> {
    let mut breaks = 0;
    let mut version = None;
    loop {
        let have = fs::metadata(part).map_or(0, |part| part.len());
        if entry.sha256.is_some() && entry.bytes == Some(have) {
            return Ok(());
        }
        let can_go_on = entry.sha256.is_some() || version.is_some();
        let have = if can_go_on { have } else { 0 };
        let (response, from) = ask(url.clone(), have, version.as_deref()).await?;
        version = response.header("etag").map(str::to_owned);
        match receive(entry, response, part, from).await {
            Ok(()) => return Ok(()),
            Err(broken) if breaks < BREAKS_MAX && broken.kind == ErrorClass::Transient => {
                breaks += 1;
                say("The connection broke; it is tried again.");
            }
            Err(error) => return Err(error),
        }
    }
}

/// Asks for what is missing, of this version of the file; gives where the answer begins.
async fn ask(
    mut url: Url,
    have: u64,
    version: Option<&str>,
) -> Result<(HttpResponse, u64), CliError> {
    let client = http::client([url.as_str()])?;
    let mut have = have;
    for _ in 0..=REDIRECTIONS_MAX {
        let mut request = HttpRequest::new(HttpMethod::Get, url.clone());
        if have > 0 {
            request.headers.push(Header::Open("range", format!("bytes={have}-")));
            let version = version.map(str::to_owned);
            request.headers.extend(version.map(|version| Header::Open("if-range", version)));
        }
        request.deadlines = Deadlines { idle: IDLE, total: TOTAL };
        request.body_bytes_max = BYTES_MAX;
        match client.request(request).await {
            Ok(response) if response.status == 206 && begins_at(&response) == Some(have) => {
                return Ok((response, have));
            }
            Ok(response) if response.status == 200 => return Ok((response, 0)),
            // It has no more than we have, or begins elsewhere: all of it is asked for.
            Ok(response) if matches!(response.status, 206 | 416) && have > 0 => have = 0,
            Ok(response) => {
                let what = format!("{url} was answered with status {}", response.status);
                return Err(CliError::new(ErrorClass::Upstream, what).hint("check the address"));
            }
            Err(NetError::Redirected { location: Some(location), .. }) => {
                url = url.join(&location).map_err(|error| {
                    CliError::new(ErrorClass::Upstream, "the server redirects to no address")
                        .because(&error)
                })?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(CliError::new(ErrorClass::Upstream, "the server redirects for ever"))
}

/// The place from which a part of a file is given (RFC 9110, section 14.4).
fn begins_at(response: &HttpResponse) -> Option<u64> {
    let range = response.header("content-range")?.trim().strip_prefix("bytes")?;
    // silent-ok: the caller takes what says nothing of its place for another one.
    range.trim_start().split('-').next()?.parse().ok()
}

/// Writes an answer behind what is there, or in its place where it begins anew.
async fn receive(
    entry: &LocalModelEntry,
    mut response: HttpResponse,
    part: &Path,
    from: u64,
) -> Result<(), CliError> {
    let failed = |error: io::Error| {
        CliError::new(ErrorClass::Internal, format!("cannot write {}", part.display()))
            .because(&error)
    };
    let length = response.header("content-length").and_then(|text| text.parse::<u64>().ok());
    let whole = entry.bytes.or(length.map(|length| from.saturating_add(length)));
    let mut options = OpenOptions::new();
    let mut file = options.create(true).write(true).truncate(false).open(part).map_err(failed)?;
    file.try_lock().map_err(|error| {
        CliError::user(format!("{} is being brought already", entry.name)).because(&error)
    })?;
    has_room(part, whole.map(|whole| whole.saturating_sub(from)))?;
    file.set_len(from).map_err(failed)?;
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    let mut have = from;
    let mut shown = u64::MAX;
    while let Some(chunk) = response.body.chunk().await.map_err(|error| {
        CliError::new(ErrorClass::Transient, "the connection broke").because(&error)
    })? {
        let is_begun = have == 0 && chunk.len() >= MAGIC.len();
        if is_begun && !chunk.starts_with(MAGIC) {
            return Err(no_model("what the server gives"));
        }
        have = have.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        if entry.bytes.is_some_and(|bytes| have > bytes) {
            drop(file);
            fs::remove_file(part).map_err(failed)?;
            return Err(CliError::new(
                ErrorClass::Upstream,
                "the file is larger than it should be",
            ));
        }
        file.write_all(&chunk).map_err(failed)?;
        let percent = have.saturating_mul(100).checked_div(whole.unwrap_or(0)).unwrap_or(0);
        if percent != shown {
            shown = percent;
            bar(have, whole, percent);
        }
    }
    file.sync_all().map_err(failed)?;
    if whole.is_some_and(|whole| have < whole) {
        return Err(CliError::new(ErrorClass::Transient, "the connection broke"));
    }
    Ok(())
}

/// Shows how far it is, where somebody watches.
fn bar(have: u64, whole: Option<u64>, percent: u64) {
    if !io::stderr().is_terminal() {
        return;
    }
    let end = if whole == Some(have) { "\n" } else { "" };
    let whole = whole.map_or("?".to_owned(), size);
    let filled = usize::try_from(percent / 4).unwrap_or(0).min(25);
    let bar = format!("{}{}", "#".repeat(filled), ".".repeat(25 - filled));
    // silent-ok: a bar that cannot be shown is missed by nobody.
    write!(io::stderr(), "\r[{bar}] {percent} % of {whole}{end}").ok();
}

/// Compares what was brought with what was promised; what is something else is thrown away.
fn verify(entry: &mut LocalModelEntry, part: &Path) -> Result<(), CliError> {
    let failed = |error: io::Error| unread(part, &error);
    let bytes = fs::metadata(part).map_err(failed)?.len();
    let hash = hash_file(part).map_err(failed)?;
    if !is_model(part).map_err(failed)? {
        fs::remove_file(part).map_err(failed)?;
        return Err(no_model("what the server gives"));
    }
    let is_size = entry.bytes.is_none_or(|wanted| wanted == bytes);
    let is_hash = entry.sha256.as_ref().is_none_or(|wanted| wanted.as_str() == hash);
    if !is_size || !is_hash {
        fs::remove_file(part).map_err(failed)?;
        let wanted = entry.sha256.as_ref().map_or("another one", FileHash::as_str);
        let what = format!(
            "the file is not the one expected: {bytes} bytes with the SHA-256 {hash}, not {wanted}"
        );
        return Err(CliError::new(ErrorClass::Upstream, what)
            .hint("it was thrown away; do not use it from where it came"));
    }
    entry.bytes = Some(bytes);
    // silent-ok: the text of a SHA-256 is always one.
    entry.sha256 = hash.parse().ok();
    Ok(())
}

fn report(
    context: &CommandContext,
    entry: &LocalModelEntry,
    file: &Path,
    how: &str,
) -> Result<(), CliError> {
    let view = PulledModelView { model: entry.into(), file: file.to_owned() };
    context.format.answer(&view, || {
        let name = &entry.name;
        format!("{name} {how}: think with it by `./up --model {name}`")
    })
}
