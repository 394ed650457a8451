//! An account with a cloud: signing in with the wallet, and the API key.
//!
//! The key rests in a file of the home that only its owner can read, together with
//! the cloud that it is for: it must never be sent to another one, and a file that
//! others can read is refused.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use alloy_primitives::Address;
use automaton_client::CloudClient;
use automaton_core::error::ErrorClass;
use automaton_core::secret::Secret;
use automaton_core::time::Timestamp;
use automaton_signer::payload::RegistrationFields;
use automaton_wallet::SignerClient;
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use crate::home::write_atomically;

/// What the key is called at the cloud.
const KEY_NAME: &str = "conway-automaton";
/// The file of the home that holds it.
pub(crate) const KEY_FILE: &str = "cloud-key.json";
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
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    cloud: String,
    #[serde(default)]
    wallet: Address,
    key: String,
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
        Ok(Self { cloud: url.to_owned(), wallet: signer.address(), key })
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
    pub(crate) fn keep(&self, home: &Path) -> Result<(), CliError> {
        let Self { cloud, wallet, key } = self;
        let file = KeyFile { cloud: cloud.clone(), wallet: *wallet, key: key.reveal().to_owned() };
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
        let bad =
            |what: &str| CliError::new(ErrorClass::Config, format!("{} {what}", path.display()));
        let unreadable = |error: io::Error| bad("cannot be read").because(&error);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(unreadable)?,
        };
        if file.metadata().map_err(unreadable)?.permissions().mode() & 0o077 != 0 {
            return Err(bad("holds a key and can be read by others").hint(format!(
                "run `chmod 600 {}`; if others may have it, provision a new key",
                path.display()
            )));
        }
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
        let KeyFile { cloud, wallet, key } = serde_json::from_str(&text).map_err(|error| {
            bad("is no key of a cloud")
                .because(&error)
                .hint("make a new one with `automaton provision`")
        })?;
        Ok(Some(Self { cloud, wallet, key: Secret::new(key) }))
    }
}
