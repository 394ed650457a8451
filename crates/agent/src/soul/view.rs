//! SOUL.md: what people see of a soul.
//!
//! It is written after the store has the soul, and again where it is missing or shows an older
//! version. Where it shows anything else somebody has changed it: that is kept beside it and told,
//! and must never be read as the soul.

use automaton_core::soul::{Soul, SoulVersion};
use automaton_memory::soul::{self, SoulIdentity};
use automaton_sandbox::{FsError, WorkspaceDir, WorkspacePath};
use automaton_store::StoreError;

use super::{SoulKeeper, aligned};

/// The file, and what is kept of one that somebody else has changed.
const NAME: &str = "SOUL.md";
const CHANGED: &str = "SOUL.md.changed";
/// The largest file that is looked at, in bytes.
const BYTES_MAX: u64 = 256 << 10;

impl SoulKeeper {
    /// SOUL.md as it has to be; nothing before there is a soul.
    pub(super) async fn rendered(&self) -> Result<Option<String>, StoreError> {
        let Some(SoulVersion { version, soul: Some(soul), at, .. }) = self.store.soul().await?
        else {
            return Ok(None);
        };
        let life = self.store.life().await?;
        let last = self.store.last_reflection().await?;
        let identity = SoulIdentity {
            version,
            updated_at: at.to_string(),
            name: self.name.clone(),
            address: String::new(),
            creator: self.creator.clone(),
            born_at: life.born_at.to_string(),
            constitution_hash: life.constitution_sha256.to_string(),
            genesis_alignment: aligned(&soul).to_string(),
            last_reflected: last.map(|last| last.at.to_string()).unwrap_or_default(),
        };
        Ok(Some(soul::write(&identity, &soul)))
    }

    /// What the file says; nothing where it cannot be read.
    pub(super) fn read_view(&self) -> Option<String> {
        let (home, path) = self.place(NAME)?;
        // silent-ok: what cannot be read is written anew.
        let read = home.read(&path, BYTES_MAX).ok()?;
        Some(String::from_utf8_lossy(&read.bytes).into_owned())
    }

    /// Writes the file as it has to be.
    pub(super) async fn write_view(&self) -> Result<(), StoreError> {
        let Some(text) = self.rendered().await? else { return Ok(()) };
        if let Err(error) = self.put(NAME, &text) {
            self.tell(format!("SOUL.md cannot be written: {error}"));
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
        let known = self.store.soul_versions(2).await?;
        let is_known = |text: &String| {
            let souls = known.iter().filter_map(|version| version.soul.as_ref());
            let shown = soul::read(text);
            souls.into_iter().any(|kept| {
                let kept = Soul { anchor: String::new(), ..kept.clone() };
                shown.as_ref() == Some(&kept)
            })
        };
        if let Some(text) = found.filter(|text| !is_known(text)) {
            let kept = match self.put(CHANGED, &text) {
                Ok(()) => format!("; what it said is in {CHANGED}"),
                Err(error) => format!("; what it said is lost: {error}"),
            };
            self.tell(format!(
                "SOUL.md was changed by somebody else than its automaton, and was restored{kept}"
            ));
        }
        self.write_view().await
    }

    fn put(&self, name: &str, text: &str) -> Result<(), FsError> {
        let home = WorkspaceDir::open(&self.home)?;
        let Ok(path) = WorkspacePath::parse(name) else { return Ok(()) };
        home.write(&path, text.as_bytes(), BYTES_MAX)
    }

    fn place(&self, name: &str) -> Option<(WorkspaceDir, WorkspacePath)> {
        // silent-ok: as above.
        Some((WorkspaceDir::open(&self.home).ok()?, WorkspacePath::parse(name).ok()?))
    }
}
