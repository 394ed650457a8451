//! An account with a cloud: signing in with the wallet, and the API key.
//!
//! The key rests in a file of the home that only its owner can read, together with
//! the cloud that it is for: it must never be sent to another one, and a file that
//! others can read is refused.

use std::io;
use std::path::Path;

use alloy_primitives::Address;
use automaton_client::CloudClient;
use automaton_core::error::ErrorClass;
use automaton_core::secret::Secret;
use automaton_core::time::Timestamp;
use automaton_signer::payload::RegistrationFields;
use automaton_wallet::SignerClient;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use crate::home::write_atomically;
use crate::text_file;

/// Name of the key at the cloud.
const KEY_NAME: &str = "conway-automaton";
/// The file of the home that holds it.
pub(crate) const KEY_FILE: &str = "cloud-key.json";
/// File in which another runtime keeps its key: with its wallet's address, or alone.
const REFERENCE_FILE: &str = "config.json";
const REFERENCE_KEY: &str = "api-key";
/// The largest such file, in bytes.
const BYTES_MAX: u64 = 64 * 1024;

/// An API key, and whom it is for.
pub(crate) struct ApiAccount {
    /// The cloud's URL.
    pub(crate) cloud: String,
    /// The wallet that it was opened with: what that one pays is credited here.
    pub(crate) wallet: Address,
    /// The key.
    pub(crate) key: Secret,
    /// The file of the home that it was found in, where that is another runtime's.
    pub(crate) file: Option<&'static str>,
    /// True if the cloud knows the automaton and its creator.
    pub(crate) registered: bool,
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    cloud: String,
    #[serde(default)]
    wallet: Address,
    key: String,
    #[serde(default)]
    registered: bool,
}

/// The file of another runtime; what else it holds has no meaning here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReferenceKeyFile {
    api_key: Option<String>,
    wallet_address: Option<Address>,
}

impl ApiAccount {
    /// Signs in to a cloud with the wallet, and has it make a key.
    ///
    /// # Errors
    /// When the cloud refuses or the signer does not sign.
    pub(crate) async fn open(
        cloud: &CloudClient,
        url: &str,
        signer: &SignerClient,
        now: Timestamp,
        chain: u64,
    ) -> Result<Self, CliError> {
        let message = cloud.sign_in(signer.address(), cloud.nonce().await?, now, chain)?;
        let signature = signer.sign_in(&message).await?;
        let token = cloud.verify(&message, &signature).await?;
        let key = cloud.create_key(&token, KEY_NAME).await?;
        Ok(Self {
            cloud: url.to_owned(),
            wallet: signer.address(),
            key,
            file: None,
            registered: false,
        })
    }

    /// Makes the automaton known to the cloud, which shows who made it. The same
    /// registration again changes nothing.
    ///
    /// # Errors
    /// When the cloud refuses or the signer does not sign.
    pub(crate) async fn register(
        &self,
        cloud: &CloudClient,
        signer: &SignerClient,
        whom: RegistrationFields,
    ) -> Result<(), CliError> {
        let signed = signer.register(whom).await?;
        cloud.register(&self.key, &signed).await?;
        Ok(())
    }

    /// Writes the key into the home.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, home: &Path) -> Result<(), CliError> {
        let Self { cloud, wallet, key, registered, .. } = self;
        let file = KeyFile {
            cloud: cloud.clone(),
            wallet: *wallet,
            key: key.reveal().to_owned(),
            registered: *registered,
        };
        let text = serde_json::to_vec(&file)
            .map_err(|error| CliError::internal("cannot write the cloud's key", &error))?;
        write_atomically(&home.join(KEY_FILE), &text, 0o600)
    }

    /// The account that the home has, if it has one.
    ///
    /// # Errors
    /// When others can read the file, or it is damaged.
    pub(crate) fn read(home: &Path) -> Result<Option<Self>, CliError> {
        let path = home.join(KEY_FILE);
        let Some(text) = read_closed(&path)? else { return Ok(None) };
        let KeyFile { cloud, wallet, key, registered } = parse(&path, &text)?;
        Ok(Some(Self { cloud, wallet, key: Secret::new(key), file: None, registered }))
    }

    /// The account that another runtime left in the home, with the cloud at `cloud`: in
    /// `config.json`, or as the whole of `api-key`.
    ///
    /// # Errors
    /// As [`ApiAccount::read`].
    pub(crate) fn read_reference(home: &Path, cloud: &str) -> Result<Option<Self>, CliError> {
        let path = home.join(REFERENCE_FILE);
        let in_file = read_closed(&path)?.map(|text| parse(&path, &text)).transpose()?;
        let (wallet, key, file) = match in_file {
            Some(ReferenceKeyFile { api_key: Some(key), wallet_address }) if !key.is_empty() => {
                (wallet_address.unwrap_or_default(), key, REFERENCE_FILE)
            }
            Some(_) | None => match read_closed(&home.join(REFERENCE_KEY))? {
                Some(text) => (Address::ZERO, text.trim().to_owned(), REFERENCE_KEY),
                None => return Ok(None),
            },
        };
        let cloud = cloud.to_owned();
        let key = Secret::new(key);
        let account = Self { cloud, wallet, key, file: Some(file), registered: false };
        Ok((!account.key.reveal().is_empty()).then_some(account))
    }
}

/// The text of a file with a key, where it is there.
fn read_closed(path: &Path) -> Result<Option<String>, CliError> {
    let bad = |what: &str| CliError::new(ErrorClass::Config, format!("{} {what}", path.display()));
    let unreadable = |error: io::Error| bad("cannot be read").because(&error);
    let Some(file) = text_file::open_optional(path).map_err(unreadable)? else { return Ok(None) };
    text_file::check_private(&file).map_err(|error| {
        bad("holds a key and is not private").because(&error).hint(format!(
            "own it and run `chmod 600 {}`; if others may have it, provision a new key",
            path.display()
        ))
    })?;
    text_file::read_open(file, BYTES_MAX).map(Some).map_err(unreadable)
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, CliError> {
    serde_json::from_str(text).map_err(|error| {
        CliError::new(ErrorClass::Config, format!("{} is no key of a cloud", path.display()))
            .because(&text_file::corrected(&error))
            .hint("make a new one with `automaton provision`")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    #[test]
    fn the_key_of_another_runtime_is_found_where_that_kept_it() {
        use std::io::Write as _;

        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(home.path().join(name)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        let found = || {
            let account = ApiAccount::read_reference(home.path(), "https://c.example").unwrap();
            account.map(|it| (it.key.reveal().to_owned(), it.file.unwrap(), it.wallet))
        };
        assert_eq!(found(), None);
        write(REFERENCE_KEY, " cnwy_k_old\n");
        assert_eq!(found(), Some(("cnwy_k_old".to_owned(), REFERENCE_KEY, Address::ZERO)));
        write(REFERENCE_FILE, r#"{"somethingElse": 1}"#);
        assert_eq!(found().unwrap().1, REFERENCE_KEY);
        let wallet = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
        let text = format!(
            r#"{{"apiKey": "cnwy_k_1", "walletAddress": "{wallet}", "provisionedAt": "2026"}}"#
        );
        write(REFERENCE_FILE, &text);
        assert_eq!(found(), Some(("cnwy_k_1".to_owned(), REFERENCE_FILE, wallet.parse().unwrap())));
        write(REFERENCE_FILE, "{");
        assert!(ApiAccount::read_reference(home.path(), "https://c.example").is_err());
    }
}
