//! The soul: the newest version in the store is what the automaton thinks of itself, and SOUL.md
//! shows it.
//!
//! Every change goes through one door, which checks all of it and keeps it before the file is
//! written. What somebody else writes into SOUL.md must never become the soul.

mod reflection;
mod view;

use std::path::PathBuf;
use std::sync::Arc;

use automaton_core::error::ErrorClass;
use automaton_core::event::Event;
use automaton_core::soul::{Soul, SoulChange, SoulSection, SoulSource, SoulVersion};
use automaton_memory::soul::{self, Alignment, alignment};
use automaton_policy::guard::Guard;
use automaton_store::{Store, StoreError};
use automaton_tools::HandleError;
use automaton_tools::context::{self, HandleFuture};

use crate::deps::AgentDeps;
use crate::settings::{Settings, SoulSettings};

/// Characters of a genesis prompt that the automaton may give itself.
const GENESIS_CHARS_MAX: usize = 2000;
/// Characters of a reason.
const REASON_CHARS_MAX: usize = 500;

/// Keeps the soul of one automaton.
pub(crate) struct SoulKeeper {
    store: Store,
    deps: AgentDeps,
    guard: Arc<Guard>,
    name: String,
    creator: String,
    /// The genesis prompt of the configuration.
    genesis: String,
    home: PathBuf,
    settings: SoulSettings,
}

impl SoulKeeper {
    pub(crate) fn new(settings: &Settings, deps: &AgentDeps, guard: Arc<Guard>) -> Self {
        Self {
            store: deps.store.clone(),
            deps: deps.clone(),
            guard,
            name: settings.name.clone(),
            creator: settings.creator_address.clone().unwrap_or_default(),
            genesis: settings.genesis.trim().to_owned(),
            home: settings.home.clone(),
            settings: settings.soul,
        }
    }

    /// Makes the first version at birth, and another where its creator has given it another
    /// genesis prompt since; then looks at the file.
    pub(crate) async fn begin(&self) -> Result<(), StoreError> {
        match self.store.soul().await? {
            None => self.be_born().await?,
            Some(SoulVersion { version, soul: Some(soul), .. }) if soul.anchor != self.genesis => {
                let is_followed = soul.core_purpose == soul.anchor;
                let core_purpose =
                    if is_followed { self.genesis.clone() } else { soul.core_purpose.clone() };
                let (genesis, anchor) = (self.genesis.clone(), self.genesis.clone());
                let soul = Soul { core_purpose, genesis, anchor, ..soul };
                let reason = "its creator has changed genesisPrompt in automaton.json".to_owned();
                self.add(soul, version, SoulSource::Human, reason).await?;
            }
            Some(_) => {}
        }
        self.check_view().await
    }

    async fn be_born(&self) -> Result<(), StoreError> {
        let given = Soul::of_genesis(&self.genesis);
        let (soul, reason) = match self.read_view().and_then(|text| soul::read(&text)) {
            // What its creator has laid down in the home before it was born.
            Some(found) => {
                let (genesis, anchor) = (given.genesis.clone(), given.anchor.clone());
                let found = Soul { genesis, anchor, ..found };
                match soul::check(&found, &self.guard) {
                    Ok(()) => (found, "SOUL.md, as it was found at birth".to_owned()),
                    Err(fault) => {
                        self.tell(format!("SOUL.md was not taken at birth: {fault}"));
                        (given, "born".to_owned())
                    }
                }
            }
            None => (given, "born".to_owned()),
        };
        self.add(soul, 0, SoulSource::Genesis, reason).await
    }

    async fn add(
        &self,
        soul: Soul,
        from: u32,
        source: SoulSource,
        reason: String,
    ) -> Result<(), StoreError> {
        let change = SoulChange { soul, from, source, reason, approved_by: None };
        self.store.change_soul(change).await.map(|_| ())
    }

    /// The version that there is, and all of it.
    pub(crate) async fn now(&self) -> Result<(u32, Soul), HandleError> {
        let found = self.store.soul().await.map_err(|error| HandleError::of(&error))?;
        let found = found.and_then(|it| it.soul.map(|soul| (it.version, soul)));
        found.ok_or_else(|| refused("it has no soul yet".to_owned(), None))
    }

    /// Keeps a changed soul, where all of it may be kept, and writes the file.
    ///
    /// # Errors
    /// What is wrong with it; the soul is as it was then.
    pub(crate) async fn change(
        &self,
        (from, soul): (u32, Soul),
        source: SoulSource,
        reason: &str,
        approved_by: Option<String>,
    ) -> Result<u32, HandleError> {
        soul::check(&soul, &self.guard).map_err(|fault| refused(fault.to_string(), None))?;
        let reason: String = reason.trim().chars().take(REASON_CHARS_MAX).collect();
        let change = SoulChange { soul, from, source, reason, approved_by };
        let version = self.store.change_soul(change).await;
        let version = version.map_err(|error| HandleError::of(&error))?;
        self.write_view().await.map_err(|error| HandleError::of(&error))?;
        Ok(version)
    }

    fn tell(&self, error: String) {
        let hint = Some("`automaton soul set FILE` changes what it thinks of itself".to_owned());
        self.deps.emit(Event::ErrorReported { kind: ErrorClass::User, error, hint });
    }

    async fn changed_by_itself(
        &self,
        change: impl FnOnce(&Soul) -> Result<Soul, HandleError>,
        reason: &str,
        approved_by: Option<String>,
    ) -> Result<u32, HandleError> {
        let (from, soul) = self.now().await?;
        let next = change(&soul)?;
        if next == soul {
            return Err(refused("it says that already; nothing was changed".to_owned(), None));
        }
        self.change((from, next), SoulSource::Agent, reason, approved_by).await
    }
}

/// How far a soul's purpose is from what its creator gave it.
pub(crate) fn aligned(soul: &Soul) -> Alignment {
    alignment(&soul.core_purpose, &soul.anchor)
}

fn refused(message: String, hint: Option<&str>) -> HandleError {
    HandleError { kind: ErrorClass::User, message, hint: hint.map(str::to_owned) }
}

impl context::SoulHandle for SoulKeeper {
    fn view(&self) -> HandleFuture<'_, String> {
        Box::pin(async move {
            let text = self.rendered().await.map_err(|error| HandleError::of(&error))?;
            text.ok_or_else(|| refused("it has no soul yet".to_owned(), None))
        })
    }

    fn history(&self, limit: u32) -> HandleFuture<'_, Vec<SoulVersion>> {
        Box::pin(async move {
            self.store.soul_versions(limit).await.map_err(|error| HandleError::of(&error))
        })
    }

    fn update<'a>(
        &'a self,
        section: SoulSection,
        content: &'a str,
        reason: &'a str,
        approved_by: Option<String>,
    ) -> HandleFuture<'a, u32> {
        let change = move |soul: &Soul| Ok(soul::changed(soul, section, content));
        Box::pin(self.changed_by_itself(change, reason, approved_by))
    }

    fn set_genesis<'a>(
        &'a self,
        text: &'a str,
        reason: &'a str,
        approved_by: Option<String>,
    ) -> HandleFuture<'a, u32> {
        let change = move |soul: &Soul| {
            let genesis = text.trim().to_owned();
            let chars = genesis.chars().count();
            if genesis.is_empty() || chars > GENESIS_CHARS_MAX {
                let what = format!("a genesis prompt has 1 to {GENESIS_CHARS_MAX} characters");
                return Err(refused(format!("{what}, not {chars}; nothing was changed"), None));
            }
            // It enters prompts: what may stand in a purpose may stand in it.
            let as_purpose = Soul { core_purpose: genesis.clone(), ..soul.clone() };
            let checked = soul::check(&as_purpose, &self.guard);
            checked.map_err(|fault| refused(fault.to_string(), None))?;
            Ok(Soul { genesis, ..soul.clone() })
        };
        Box::pin(self.changed_by_itself(change, reason, approved_by))
    }

    fn reflect(&self) -> HandleFuture<'_, String> {
        Box::pin(async move { Ok(self.look().await?.told()) })
    }
}
