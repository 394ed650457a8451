//! Flags for the place of the wallet's passphrase.

use std::path::{Component, Path, PathBuf};

use automaton_core::secret::Secret;
use automaton_signer::PassphraseSource;
use clap::{Args, ValueHint};

use super::CommandContext;
use crate::config::env::{CREDENTIALS_DIRECTORY, Environment};
use crate::error::CliError;
use crate::role::signer::PassphraseLocation;
use crate::stack::passphrase_file;

/// Place of the passphrase.
#[derive(Debug, Clone, Args)]
pub(crate) struct PassphraseArgs {
    /// A file with the wallet's passphrase [default: the one that `up` made, else the terminal]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    passphrase_file: Option<PathBuf>,
    /// The name of the systemd credential with the wallet's passphrase
    #[arg(long, value_name = "NAME", conflicts_with = "passphrase_file")]
    passphrase_credential: Option<String>,
}

impl PassphraseArgs {
    /// Returns true if a flag names a place.
    pub(crate) const fn is_given(&self) -> bool {
        self.passphrase_file.is_some() || self.passphrase_credential.is_some()
    }

    /// The place, if it is in one: that which was named, or the file in the signer's
    /// home, where a dev stack made it.
    ///
    /// # Errors
    /// When a credential is named where there are none.
    pub(crate) fn location(
        &self,
        context: &CommandContext,
        signer: &Path,
    ) -> Result<Option<PassphraseLocation>, CliError> {
        let file = self.passphrase_file.as_deref();
        let named =
            location_from_flags(file, self.passphrase_credential.as_deref(), &context.environment)?;
        Ok(named.or_else(|| passphrase_file(signer).map(PassphraseLocation::File)))
    }

    /// Checks the file that holds it, where it is in one, before anything else is done. Nobody is
    /// asked for it.
    ///
    /// # Errors
    /// When the file cannot be read, or others could read it.
    pub(crate) fn check(&self, context: &CommandContext, signer: &Path) -> Result<(), CliError> {
        let place = self.location(context, signer)?;
        place.map_or(Ok(()), |place| Ok(PassphraseSource::from(place).read().map(drop)?))
    }

    /// Reads it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(&self, context: &CommandContext, signer: &Path) -> Result<Secret, CliError> {
        let place = self.location(context, signer)?;
        Ok(place.map_or(PassphraseSource::Terminal, Into::into).read()?)
    }
}

/// The place that flags name.
///
/// # Errors
/// When a credential is named where there are none, or by no plain name.
pub(crate) fn location_from_flags(
    file: Option<&Path>,
    credential: Option<&str>,
    environment: &Environment,
) -> Result<Option<PassphraseLocation>, CliError> {
    let Some(name) = credential else {
        return Ok(file.map(|file| PassphraseLocation::File(file.to_owned())));
    };
    let mut parts = Path::new(name).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
        let what = format!("'{name}' is no name of a credential");
        return Err(CliError::user(what).hint("give the name that LoadCredential= of the unit has"));
    }
    let folder = environment.credentials_directory.as_ref().ok_or_else(|| {
        CliError::user(format!(
            "there is no credential '{name}': {CREDENTIALS_DIRECTORY} is not set"
        ))
        .hint("systemd sets it for a unit with LoadCredential= or SetCredential=")
    })?;
    Ok(Some(PassphraseLocation::Credential(folder.join(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_one_file_of_its_directory() {
        let folder = Some(PathBuf::from("/run/credentials/automaton.service"));
        let environment = Environment { credentials_directory: folder, ..Default::default() };
        let place = |name| location_from_flags(None, Some(name), &environment);
        match place("passphrase").unwrap() {
            Some(PassphraseLocation::Credential(path)) => {
                assert_eq!(path, Path::new("/run/credentials/automaton.service/passphrase"));
            }
            other => panic!("{other:?}"),
        }
        for name in ["", ".", "..", "../other", "/etc/passwd", "a/b", "./.."] {
            assert!(place(name).unwrap_err().line().contains("is no name"), "{name}");
        }
        let none =
            location_from_flags(None, Some("passphrase"), &Environment::default()).unwrap_err();
        assert!(none.line().contains("CREDENTIALS_DIRECTORY is not set"), "{}", none.line());
    }
}
