//! Pure: the sellers of models that are known by name, and who has a key to them.
//!
//! The rows are in `providers.json`. A key must never go to any server but the one that its
//! variable or its key of the configuration is for.

use automaton_core::error::ErrorClass;
use automaton_core::model::ModelId;
use automaton_core::secret::Secret;
use automaton_inference::providers::http::ApiFormat;
use serde::Deserialize;

use super::env::Environment;
use super::file::ConfigFile;
use super::resolve::ValueSource;
use crate::args::KNOWN_PROVIDERS;
use crate::error::CliError;

const ROWS: &str = include_str!("../../assets/providers.json");

/// A seller of models.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct KnownProvider {
    /// Name in `--brain`.
    pub(crate) name: String,
    /// Name for people.
    pub(crate) title: String,
    /// Its address.
    pub(super) url: String,
    /// The format that it speaks.
    pub(crate) format: ApiFormat,
    /// The variable of the environment that holds a key to it.
    pub(crate) key_variable: String,
    /// The variable that names another address for it, as that of a gateway.
    pub(super) url_variable: String,
    /// The model that it is asked for where nobody names one.
    pub(crate) model: ModelId,
    /// The one that stands in for it when credits run low.
    pub(super) cheaper_model: ModelId,
    /// Prefixes of its models' names; empty for a seller of everybody's models.
    models_begin: Vec<String>,
}

impl KnownProvider {
    /// Returns true if it may have a model of this name.
    pub(super) fn may_have(&self, model: &str) -> bool {
        self.models_begin.is_empty() || self.is_named_so(model)
    }

    /// Returns true if a model's name is one of its own.
    fn is_named_so(&self, model: &str) -> bool {
        let model = model.to_ascii_lowercase();
        self.models_begin.iter().any(|beginning| model.starts_with(beginning))
    }
}

/// All of them, the one that is preferred first.
///
/// # Errors
/// When the built-in file is damaged.
pub(crate) fn all() -> Result<Vec<KnownProvider>, CliError> {
    serde_json::from_str(ROWS)
        .map_err(|error| CliError::internal("the built-in list of providers is damaged", &error))
}

/// The variables of the environment that concern them.
///
/// # Errors
/// As [`all`].
pub(super) fn variables() -> Result<Vec<String>, CliError> {
    Ok(all()?.into_iter().flat_map(|row| [row.key_variable, row.url_variable]).collect())
}

/// A seller, where it is reached from here, and the key that there is to it.
#[derive(Debug, Clone)]
pub(crate) struct ProviderAccess {
    pub(crate) provider: KnownProvider,
    pub(crate) url: String,
    pub(super) url_from: ValueSource,
    /// The key, with who named it.
    pub(crate) key: Option<(Secret, ValueSource)>,
}

impl ProviderAccess {
    /// Returns true if it is reached at another address than its own.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.url != self.provider.url
    }
}

/// Returns the access to each of them.
///
/// # Errors
/// As [`all`].
pub(crate) fn accesses(
    file: &ConfigFile,
    environment: &Environment,
) -> Result<Vec<ProviderAccess>, CliError> {
    let access = |provider: KnownProvider| {
        let variable = |name: &String| environment.providers.get(name);
        let in_file = match provider.name.as_str() {
            "anthropic" => Some((&file.anthropic_api_key, "anthropicApiKey")),
            "openai" => Some((&file.openai_api_key, "openaiApiKey")),
            _ => None,
        };
        let in_file = in_file.and_then(|(key, name)| Some((key.clone()?, ValueSource::key(name))));
        let in_environment = variable(&provider.key_variable)
            .map(|key| (key.clone(), ValueSource::Env(provider.key_variable.clone())));
        let elsewhere = variable(&provider.url_variable);
        // One that the file holds is for the seller's own address.
        let key = in_environment.or(in_file.filter(|_| elsewhere.is_none()));
        let key = key.filter(|(key, _)| !key.reveal().is_empty());
        let (url, url_from) = match elsewhere {
            Some(url) => (url.reveal().to_owned(), ValueSource::Env(provider.url_variable.clone())),
            None => {
                let from = key.as_ref().map_or(ValueSource::Default, |(_, from)| from.clone());
                (provider.url.clone(), from)
            }
        };
        ProviderAccess { provider, url, url_from, key }
    };
    Ok(all()?.into_iter().map(access).collect())
}

/// Returns true if a model's name belongs to another seller.
pub(super) fn is_of_another(
    accesses: &[ProviderAccess],
    this: &KnownProvider,
    model: &str,
) -> bool {
    !this.may_have(model) && accesses.iter().any(|it| it.provider.is_named_so(model))
}

/// The one that thinks where nothing names a brain: the first to which there is a key, and
/// that may have the model which is named, where one is.
pub(crate) fn first_with_key(
    accesses: &[ProviderAccess],
    named: Option<&str>,
) -> Option<ProviderAccess> {
    let with_key = || accesses.iter().filter(|access| access.key.is_some());
    let fits =
        |access: &&ProviderAccess| named.is_some_and(|model| access.provider.may_have(model));
    with_key().find(fits).or_else(|| with_key().next()).cloned()
}

/// The seller of this name.
///
/// # Errors
/// When there is none.
pub(crate) fn access_by_name(
    accesses: &[ProviderAccess],
    name: &str,
) -> Result<ProviderAccess, CliError> {
    let found = accesses.iter().find(|access| access.provider.name == name);
    found.cloned().ok_or_else(|| {
        CliError::new(ErrorClass::User, format!("there is no provider '{name}'"))
            .hint(format!("take one of {}, or --brain URL", KNOWN_PROVIDERS.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_names_a_model_of_its_own_and_variables_of_its_own() {
        let rows = all().unwrap();
        let mut variables: Vec<&String> =
            rows.iter().flat_map(|row| [&row.key_variable, &row.url_variable]).collect();
        variables.sort();
        variables.dedup();
        assert_eq!(variables.len(), rows.len() * 2);
        for row in &rows {
            assert!(row.may_have(row.model.as_str()), "{}", row.name);
            assert!(row.may_have(row.cheaper_model.as_str()), "{}", row.name);
            assert!(row.url.starts_with("https://"), "{}", row.name);
        }
    }

    #[test]
    fn the_documents_have_each_of_them() {
        let text = include_str!("../../../../docs/models.md");
        for row in all().unwrap() {
            let cells = [
                row.name,
                row.key_variable,
                row.url_variable,
                row.model.to_string(),
                row.cheaper_model.to_string(),
            ];
            let line = format!("| `{}` |", cells.join("` | `"));
            assert!(text.contains(&line), "{line}");
        }
        let names: Vec<String> = all().unwrap().into_iter().map(|row| row.name).collect();
        assert_eq!(names, KNOWN_PROVIDERS);
    }

    #[test]
    fn the_program_that_builds_looks_for_the_same_keys() {
        let up = include_str!("../../../../up");
        for row in all().unwrap() {
            assert!(up.contains(&row.key_variable), "{}", row.key_variable);
        }
    }
}
