//! The brain that the command line named for an automaton that was made before.
//!
//! It is kept in `automaton.json` when it has answered, and only then. The value of `brain` is
//! replaced in the text, and nothing else of the file changes. A file that was changed meanwhile
//! stays as it is.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use automaton_core::error::ErrorClass;
use automaton_inference::providers::http::ApiFormat;
use serde_json::Value;

use super::brain::{Brain, HttpBrain, KeyScheme};
use super::file::{self, BrainFile, ConfigFile, FILE_NAME, LocalBrain};
use super::json_text;
use super::resolve::{ResolvedConfig, ValueSource, origin_of};
use super::values::Ranged;
use crate::args::BrainFlags;
use crate::error::CliError;
use crate::home::write_atomically;
use crate::local_models::hash_file;

/// The key of the brain in the file.
const KEY: &str = "brain";

/// The byte order mark of UTF-8.
const MARK: &str = "\u{feff}";

/// A brain that is kept when it has answered.
#[derive(Debug, Clone)]
pub(crate) struct NamedBrain {
    path: PathBuf,
    /// The value in the file when the automaton was started.
    before: Option<String>,
    /// The value to be kept.
    value: Value,
    /// The brain in words.
    shown: String,
}

impl NamedBrain {
    /// The brain that flags name, where the file names another one or none.
    ///
    /// # Errors
    /// When the file cannot be read, or the brain cannot be written down.
    pub(crate) fn from_flags(
        home: &Path,
        file: &ConfigFile,
        flags: &BrainFlags,
        resolved: &ResolvedConfig,
    ) -> Result<Option<Self>, CliError> {
        if !flags.are_given() {
            return Ok(None);
        }
        let value = match &resolved.brain {
            // What a cloud sells is no brain of the file's.
            Brain::Http(http) if http.scheme == KeyScheme::Raw => return Ok(None),
            Brain::Http(http) => server_value(http, file, flags)?,
            Brain::Local(local) => local_value(local)?,
        };
        // A file of settings may be a link; it stays one.
        let path = home.join(FILE_NAME);
        let path = fs::canonicalize(&path).unwrap_or(path);
        let text = file::read_text(&path)?.unwrap_or_default();
        let before = value_in(&text);
        let is_same = before.as_deref().is_some_and(|before| {
            serde_json::from_str::<Value>(before).is_ok_and(|before| before == value)
        });
        let shown = resolved.brain.to_string();
        Ok((!is_same).then_some(Self { path, before, value, shown }))
    }

    /// Keeps it, and returns a sentence about that.
    ///
    /// # Errors
    /// When the file was changed meanwhile, or cannot be written.
    pub(crate) fn write(&self) -> Result<String, CliError> {
        let shown = self.path.display();
        let text = file::read_text(&self.path)?.unwrap_or_default();
        if value_in(&text) != self.before {
            let what = format!("{shown} was changed meanwhile, and keeps its `{KEY}`");
            return Err(CliError::new(ErrorClass::User, what)
                .hint("name the brain there if it is to think at the next start, too"));
        }
        let changed = with_value(&text, &self.written(&text)?);
        // A change that does not read as it should must never be written.
        file::parse(&self.path, &changed)?;
        let about = fs::metadata(&self.path);
        let mode = about.map_or(0o600, |about| about.permissions().mode() & 0o777);
        let had_mark = fs::read(&self.path).is_ok_and(|bytes| bytes.starts_with(MARK.as_bytes()));
        let changed = if had_mark { format!("{MARK}{changed}") } else { changed };
        write_atomically(&self.path, changed.as_bytes(), mode)?;
        Ok(format!("Kept in {shown}: it thinks with {}", self.shown))
    }

    /// Returns true if the file has it now.
    pub(crate) fn is_kept(&self) -> bool {
        // silent-ok: a file that cannot be read has nothing.
        let text = file::read_text(&self.path).ok().flatten().unwrap_or_default();
        value_in(&text).and_then(|value| serde_json::from_str(&value).ok())
            == Some(self.value.clone())
    }

    /// The value as it is written into a text, with the ends of lines of that.
    fn written(&self, text: &str) -> Result<String, CliError> {
        let pretty = serde_json::to_string_pretty(&self.value)
            .map_err(|error| CliError::internal("cannot write the brain", &error))?;
        let end = line_end(text);
        Ok(pretty.replace('\n', &format!("{end}  ")))
    }
}

/// The end of a line in a text.
fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The value of `brain` in a text.
fn value_in(text: &str) -> Option<String> {
    let found = json_text::keys(text).into_iter().find(|found| found.path == KEY)?;
    text.get(found.value).map(ToOwned::to_owned)
}

/// The text with another value of `brain`.
fn with_value(text: &str, value: &str) -> String {
    let keys = json_text::keys(text);
    if let Some(found) = keys.iter().find(|found| found.path == KEY) {
        let mut changed = text.to_owned();
        changed.replace_range(found.value.clone(), value);
        return changed;
    }
    let end = line_end(text);
    let (before, rest) = text.split_once('{').unwrap_or(("", "}"));
    let comma = if keys.is_empty() { "" } else { "," };
    let rest = if keys.is_empty() { rest.trim_start() } else { rest };
    let gap = if keys.is_empty() || !rest.starts_with(['\n', '\r']) { end } else { "" };
    format!("{before}{{{end}  \"{KEY}\": {value}{comma}{gap}{rest}")
}

/// A server as the file names it. What the file says of the same server and model stays.
fn server_value(
    http: &HttpBrain,
    file: &ConfigFile,
    flags: &BrainFlags,
) -> Result<Value, CliError> {
    let place = |url: &str| origin_of(url, &ValueSource::Default).ok();
    let said = http.said;
    let mut brain = BrainFile::Http {
        url: http.url.parse().map_err(|_| CliError::user(format!("'{}' is no URL", http.url)))?,
        format: (http.format != ApiFormat::default()).then(|| http.format.into()),
        model: Some(http.model.to_string()),
        api_key: None,
        context_tokens: said.context_tokens.map(|tokens| Ranged::clamped(tokens.into())),
        max_output_tokens: said.max_output_tokens.map(|tokens| Ranged::clamped(tokens.into())),
        prices: flags.prices,
        dialect: flags.dialect,
        unlisted: None,
    };
    let mut key = None;
    if let Some(BrainFile::Http { url, model, api_key, prices, dialect, unlisted, format, .. }) =
        &file.brain
        && place(url.as_str()) == place(&http.url)
        && let BrainFile::Http {
            format: new_format,
            prices: new_prices,
            dialect: new_dialect,
            unlisted: new_unlisted,
            ..
        } = &mut brain
    {
        key.clone_from(api_key);
        *new_format = new_format.or(*format);
        if model.as_deref().is_none_or(|model| model == http.model.as_str()) {
            *new_prices = new_prices.or(*prices);
            *new_dialect = new_dialect.or(*dialect);
            *new_unlisted = *unlisted;
        }
    }
    let mut value = in_json(&brain)?;
    if let (Some(key), Some(object)) = (key, value.as_object_mut()) {
        object.insert("apiKey".to_owned(), Value::String(key.reveal().to_owned()));
    }
    Ok(value)
}

/// A model file as the file names it, with the hash of its bytes.
fn local_value(local: &LocalBrain) -> Result<Value, CliError> {
    let failed = |error: std::io::Error| {
        let what = format!("cannot read the model file {}", local.model.display());
        CliError::new(ErrorClass::Config, what).because(&error)
    };
    let sha256 = match &local.sha256 {
        Some(known) => Some(known.clone()),
        // silent-ok: the text of a SHA-256 is always one.
        None => hash_file(&local.model).map_err(failed)?.parse().ok(),
    };
    let absolute = |path: &Path| std::path::absolute(path).map_err(failed);
    let model = absolute(&local.model)?;
    let helper = absolute(&local.helper)?;
    in_json(&BrainFile::Local(LocalBrain { model, helper, sha256, ..local.clone() }))
}

fn in_json(brain: &BrainFile) -> Result<Value, CliError> {
    serde_json::to_value(brain)
        .map_err(|error| CliError::internal("cannot write the brain", &error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(folder: &Path, text: &str) -> NamedBrain {
        let path = folder.join(FILE_NAME);
        fs::write(&path, text).unwrap();
        let value = json!({ "kind": "http", "url": "http://127.0.0.1:2/v1", "model": "m" });
        let before = value_in(text.strip_prefix(MARK).unwrap_or(text));
        NamedBrain { path, before, value, shown: "m at http://127.0.0.1:2/v1".to_owned() }
    }

    #[test]
    fn only_the_value_of_the_brain_changes() {
        let folder = tempfile::tempdir().unwrap();
        let new = "{\n    \"kind\": \"http\",\n    \"url\": \"http://127.0.0.1:2/v1\",\n    \
                   \"model\": \"m\"\n  }";
        for (text, wanted) in [
            (
                "{ \"name\":\"a\",\n  \"brain\": {\"kind\": \"http\", \"url\": \"http://h\"},\t\"genesisPrompt\": \"g\"}\n",
                format!("{{ \"name\":\"a\",\n  \"brain\": {new},\t\"genesisPrompt\": \"g\"}}\n"),
            ),
            (
                "{\n  \"name\": \"a\"\n}\n",
                format!("{{\n  \"brain\": {new},\n  \"name\": \"a\"\n}}\n"),
            ),
            ("{\"name\": \"a\"}", format!("{{\n  \"brain\": {new},\n\"name\": \"a\"}}")),
            ("{}", format!("{{\n  \"brain\": {new}\n}}")),
            (
                "\u{feff}{\r\n  \"name\": \"a\"\r\n}\r\n",
                format!(
                    "\u{feff}{{\r\n  \"brain\": {},\r\n  \"name\": \"a\"\r\n}}\r\n",
                    new.replace('\n', "\r\n")
                ),
            ),
        ] {
            let brain = named(folder.path(), text);
            assert!(!brain.is_kept(), "{text}");
            let told = brain.write().unwrap();
            assert!(told.ends_with("it thinks with m at http://127.0.0.1:2/v1"), "{told}");
            assert_eq!(fs::read_to_string(&brain.path).unwrap(), wanted);
            assert!(brain.is_kept(), "{text}");
        }
    }

    #[test]
    fn a_file_that_was_changed_meanwhile_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let brain = named(folder.path(), "{\"name\": \"a\"}");
        let by_hand =
            "{\"name\": \"a\", \"brain\": {\"kind\": \"http\", \"url\": \"http://mine\"}}";
        fs::write(&brain.path, by_hand).unwrap();
        assert!(brain.write().unwrap_err().line().contains("was changed meanwhile"));
        assert_eq!(fs::read_to_string(&brain.path).unwrap(), by_hand);
        fs::write(&brain.path, "{\"name\": \"b\"}").unwrap();
        brain.write().unwrap();
        assert!(fs::read_to_string(&brain.path).unwrap().contains("\"name\": \"b\""));
    }

    #[test]
    fn a_key_of_the_same_server_stays_and_none_goes_to_another() {
        let text = r#"{"brain": {"kind": "http", "url": "http://127.0.0.1:2", "model": "old", "apiKey": "k",
            "prices": {"inputPerMillion": 1, "outputPerMillion": 2}}}"#;
        let file = file::parse(Path::new("x"), text).unwrap();
        let value = |url: &str, model: &str| {
            let http = HttpBrain::of_test(url, model);
            server_value(&http, &file, &BrainFlags::default()).unwrap()
        };
        let same = value("http://127.0.0.1:2/v1", "new");
        assert_eq!((&same["apiKey"], &same["model"]), (&json!("k"), &json!("new")));
        assert!(same.get("prices").is_none(), "they were said of another model");
        assert!(value("http://127.0.0.1:2", "old").get("prices").is_some());
        assert!(value("http://127.0.0.1:3", "old").get("apiKey").is_none());
    }
}
