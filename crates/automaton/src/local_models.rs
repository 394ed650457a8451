//! Models that think on this machine: which ones there are by name, and where their files lie.
//!
//! A catalogue says where a model comes from and what its bytes hash to: one that is shipped, and
//! the creator's own. That and the files are in a folder beside the home, each file with a note of
//! where it came from. A file must never be taken for a model before its bytes
//! were hashed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use automaton_core::error::ErrorClass;
use automaton_inference::sha256_of;
use serde::{Deserialize, Serialize};

use crate::config::values::FileHash;
use crate::error::CliError;
use crate::text_file;

/// The creator's catalogue, in the folder of the models.
pub(crate) const CATALOGUE: &str = "models.json";

/// First bytes of a model file (<https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>).
pub(crate) const MAGIC: &[u8; 4] = b"GGUF";

/// The largest catalogue or note that is read, in bytes.
const CATALOGUE_BYTES_MAX: u64 = 1 << 20;

/// Longest name of a model, in bytes.
const NAME_BYTES_MAX: usize = 80;

/// A model as a catalogue has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct LocalModelEntry {
    /// Its name.
    pub(crate) name: String,
    /// Address of its file; absent if nobody offers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// SHA-256 of the file; another is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<FileHash>,
    /// Its size, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// Under which licence it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) licence: Option<String>,
    /// Tokens of the window that it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context_tokens: Option<u32>,
    /// Note for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// The models that are known by name: those of the creator's catalogue first.
///
/// # Errors
/// When a catalogue cannot be read, or a name in it could be no file's.
pub(crate) fn catalogue(home: &Path) -> Result<Vec<LocalModelEntry>, CliError> {
    let file = folder(home).join(CATALOGUE);
    let text = text_file::read_optional(&file, CATALOGUE_BYTES_MAX).map_err(|error| {
        let what = format!("cannot read {}", file.display());
        CliError::new(ErrorClass::Config, what).because(&error)
    })?;
    let own = match text {
        Some(text) => read(&text, &file.display().to_string())?,
        None => Vec::new(),
    };
    let shipped = read(include_str!("config/local_models.json"), "the shipped catalogue")?;
    let is_new = |entry: &LocalModelEntry| own.iter().all(|known| known.name != entry.name);
    let rest: Vec<LocalModelEntry> = shipped.into_iter().filter(is_new).collect();
    Ok(own.into_iter().chain(rest).collect())
}

fn read(text: &str, place: &str) -> Result<Vec<LocalModelEntry>, CliError> {
    let wrong = |what: String| {
        CliError::new(ErrorClass::Config, format!("{place} is no catalogue of models: {what}"))
            .hint("it is a list of objects with name, url, sha256, bytes, licence, contextTokens")
    };
    let entries: Vec<LocalModelEntry> = serde_json::from_str(text)
        .map_err(|error| wrong(text_file::corrected(&error).to_string()))?;
    match entries.iter().find(|entry| !is_name(&entry.name)) {
        Some(entry) => Err(wrong(format!("'{}' cannot be a model's name", entry.name))),
        None => Ok(entries),
    }
}

/// Returns true if a text can be the name of a model and of its file.
pub(crate) fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !text.is_empty()
        && text.len() <= NAME_BYTES_MAX
        && text.chars().all(fits)
        && !text.starts_with(['.', '-'])
}

/// The folder of the models of a home: beside it, so that there may be models before there is an
/// automaton, and none of them is its life.
pub(crate) fn folder(home: &Path) -> PathBuf {
    let mut name = home.file_name().unwrap_or_default().to_owned();
    name.push("-models");
    home.with_file_name(name)
}

/// Returns the path of a model's file.
pub(crate) fn file_of(home: &Path, name: &str) -> PathBuf {
    folder(home).join(format!("{name}.gguf"))
}

/// Returns the path of the note on a model's origin.
pub(crate) fn note_of(home: &Path, name: &str) -> PathBuf {
    folder(home).join(format!("{name}.json"))
}

/// The models whose files are here, by name.
pub(crate) fn pulled(home: &Path) -> Result<Vec<(LocalModelEntry, u64)>, CliError> {
    let folder = folder(home);
    let failed = |error: io::Error| {
        CliError::new(ErrorClass::Internal, format!("cannot read {}", folder.display()))
            .because(&error)
    };
    let listed = match fs::read_dir(&folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut models = Vec::new();
    for found in listed {
        let found = found.map_err(failed)?;
        let path = found.path();
        let (Some(name), true) = (
            path.file_stem().and_then(|stem| stem.to_str()),
            path.extension().is_some_and(|end| end == "gguf"),
        ) else {
            continue;
        };
        // silent-ok: without its note a model is known by its file alone.
        let note = text_file::read_required(&note_of(home, name), CATALOGUE_BYTES_MAX).ok();
        let entry = note.and_then(|text| serde_json::from_str(&text).ok());
        let entry = entry.unwrap_or_else(|| LocalModelEntry {
            name: name.to_owned(),
            url: None,
            sha256: None,
            bytes: None,
            licence: None,
            context_tokens: None,
            note: None,
        });
        models.push((entry, found.metadata().map_err(failed)?.len()));
    }
    models.sort_by(|(one, _), (two, _)| one.name.cmp(&two.name));
    Ok(models)
}

/// The file that `--model` names: a path, or the name of a model that is here.
pub(crate) fn resolve_file(home: &Path, given: PathBuf) -> PathBuf {
    let file = given.to_str().filter(|name| is_name(name)).map(|name| file_of(home, name));
    rooted(file.filter(|file| !given.exists() && file.exists()).unwrap_or(given))
}

/// The whole path of a file that is there: a sandbox knows no folder that somebody stands in.
pub(crate) fn rooted(given: PathBuf) -> PathBuf {
    std::path::absolute(&given).ok().filter(|full| full.exists()).unwrap_or(given)
}

/// SHA-256 of a file that may be larger than memory, in hexadecimal.
pub(crate) fn hash_file(path: &Path) -> io::Result<String> {
    Ok(hex::encode(sha256_of(File::open(path)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_creators_catalogue_goes_before_the_shipped_one() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir(folder(&home)).unwrap();
        let shipped = catalogue(&home).unwrap();
        assert_eq!(shipped[0].name, "smollm2-135m");
        let own = r#"[{"name":"smollm2-135m","url":"https://x.test/m.gguf"},{"name":"big"}]"#;
        fs::write(folder(&home).join(CATALOGUE), own).unwrap();
        let both = catalogue(&home).unwrap();
        assert_eq!(both.len(), shipped.len() + 1);
        assert_eq!(both[0].url.as_deref(), Some("https://x.test/m.gguf"));
        for bad in ["{", r#"[{"name":"../x"}]"#, r#"[{"name":"a","hash":"b"}]"#, r#"[{"name":""}]"#]
        {
            fs::write(folder(&home).join(CATALOGUE), bad).unwrap();
            let error = catalogue(&home).unwrap_err().to_string();
            assert!(error.contains("models.json is no catalogue"), "{error}");
        }
    }

    #[test]
    fn a_name_finds_its_file_and_a_path_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir(folder(&home)).unwrap();
        let file = file_of(&home, "tiny");
        assert_eq!(resolve_file(&home, "tiny".into()), Path::new("tiny"), "it is not here");
        fs::write(&file, MAGIC).unwrap();
        assert_eq!(resolve_file(&home, "tiny".into()), file);
        for path in ["./tiny", "../tiny", "/x/tiny.gguf", ".tiny"] {
            assert_eq!(resolve_file(&home, path.into()), Path::new(path));
        }
        let here = pulled(&home).unwrap();
        assert_eq!((here[0].0.name.as_str(), here[0].1), ("tiny", 4));
    }
}
