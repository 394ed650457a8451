//! SOUL.md: what people see of a soul.
//!
//! It is written after the store has the soul, and again where it is missing or shows an older
//! version. Where it shows anything else somebody has changed it: that is kept beside it and told,
//! and must never be read as the soul.

use automaton_core::soul::{Soul, SoulVersion};
use automaton_core::time::Timestamp;
use automaton_memory::soul::{self, SoulIdentity};
use automaton_sandbox::{FsError, WorkspaceDir, WorkspacePath};
use automaton_store::{AutomatonRow, StoreError};

use super::{SoulKeeper, aligned};

/// The file, and what is kept of one that somebody else has changed.
const NAME: &str = "SOUL.md";
const CHANGED: &str = "SOUL.md.changed";
/// The largest file that is looked at, in bytes.
const BYTES_MAX: u64 = 256 << 10;

/// SOUL.md of a version that was made at a time. The addresses of its wallet and of its creator
/// are told where they are known, and when the automaton last looked at itself.
#[must_use]
pub fn soul_file(
    life: &AutomatonRow,
    (version, at): (u32, Timestamp),
    soul: &Soul,
    (address, creator, reflected): (Option<&str>, Option<&str>, Option<Timestamp>),
) -> String {
    let identity = SoulIdentity {
        version,
        updated_at: at.to_string(),
        name: life.name.clone(),
        address: address.unwrap_or_default().to_owned(),
        creator: creator.unwrap_or_default().to_owned(),
        born_at: life.born_at.to_string(),
        constitution_hash: life.constitution_sha256.to_string(),
        genesis_alignment: aligned(soul).to_string(),
        last_reflected: reflected.map(|at| at.to_string()).unwrap_or_default(),
    };
    soul::write(&identity, soul)
}

/// Returns the text after the front matter, which nobody reads, and the title.
fn body(text: &str) -> &str {
    let rest = text.split_once("\n---\n").map_or(text, |(_, rest)| rest);
    rest.split_once("\n# ").and_then(|(_, rest)| rest.split_once('\n')).map_or(rest, |(_, it)| it)
}

impl SoulKeeper {
    /// SOUL.md as it has to be; nothing before there is a soul.
    pub(super) async fn rendered(&self) -> Result<Option<String>, StoreError> {
        let Some(SoulVersion { version, soul: Some(soul), at, .. }) =
            self.deps.store.soul().await?
        else {
            return Ok(None);
        };
        let life = self.deps.store.life().await?;
        let address = &self.settings.wallet_address;
        let creator = &self.settings.creator_address;
        let reflected = self.deps.store.last_reflection().await?.map(|last| last.at);
        let who = (address.as_deref(), creator.as_deref(), reflected);
        Ok(Some(soul_file(&life, (version, at), &soul, who)))
    }

    /// Returns the content of the file; `None` if it cannot be read.
    pub(super) fn read_view(&self) -> Option<String> {
        // silent-ok: what cannot be read is written anew.
        let home = WorkspaceDir::open(&self.settings.home).ok()?;
        let read = home.read(&WorkspacePath::parse(NAME).ok()?, BYTES_MAX).ok()?;
        Some(String::from_utf8_lossy(&read.bytes).into_owned())
    }

    /// Writes the file as it has to be.
    pub(super) async fn write_view(&self) -> Result<(), StoreError> {
        let Some(text) = self.rendered().await? else { return Ok(()) };
        if let Err(error) = self.put(NAME, &text) {
            self.report(format!("SOUL.md cannot be written: {error}"));
        }
        Ok(())
    }

    /// Restores the file where it is not as it has to be, and tells where somebody has changed it.
    pub(crate) async fn check_view(&self) -> Result<(), StoreError> {
        let Some(expected) = self.rendered().await? else { return Ok(()) };
        let found = self.read_view();
        if found.as_deref() == Some(expected.as_str()) {
            return Ok(());
        }
        // The newest may have been kept without being shown, where the process ended in between.
        let known = self.deps.store.soul_versions(2).await?;
        let life = self.deps.store.life().await?;
        let bodies: Vec<String> = known
            .iter()
            .filter_map(|kept| Some(((kept.version, kept.at), kept.soul.as_ref()?)))
            .map(|(of, soul)| body(&soul_file(&life, of, soul, (None, None, None))).to_owned())
            .collect();
        let is_known = |text: &String| bodies.iter().any(|kept| kept == body(text));
        if let Some(text) = found.filter(|text| !is_known(text)) {
            let kept = match self.put(CHANGED, &text) {
                Ok(()) => format!("; what it said is in {CHANGED}"),
                Err(error) => format!("; what it said is lost: {error}"),
            };
            self.report(format!(
                "SOUL.md was changed by somebody else than its automaton, and was restored{kept}"
            ));
        }
        self.write_view().await
    }

    fn put(&self, name: &str, text: &str) -> Result<(), FsError> {
        let home = WorkspaceDir::open(&self.settings.home)?;
        let Ok(path) = WorkspacePath::parse(name) else { return Ok(()) };
        home.write(&path, text.as_bytes(), BYTES_MAX)
    }
}
