//! The soul: the newest version in the store is what the automaton thinks of itself, and SOUL.md
//! shows it.
//!
//! Every change goes through one door, which checks all of it and keeps it before the file is
//! written. What somebody else writes into SOUL.md must never become the soul.

mod reflection;
mod view;

pub use self::view::soul_file;

use std::fmt::Display;
use std::sync::Arc;

use automaton_core::error::ErrorClass;
use automaton_core::event::Event;
use automaton_core::soul::{Soul, SoulChange, SoulSection, SoulSource, SoulVersion, in_lines};
use automaton_memory::soul::{self, Alignment, SoulFault, alignment};
use automaton_policy::guard::Guard;
use automaton_store::StoreError;
use automaton_tools::HandleError;
use automaton_tools::context::{self, HandleFuture};

use crate::deps::AgentDeps;
use crate::settings::Settings;

/// Reason for a soul that differs from its genesis prompt.
const LAID_DOWN: &str = "SOUL.md, as it was found at birth";
/// Characters of a reason.
const REASON_CHARS_MAX: usize = 500;

/// Keeps the soul of one automaton.
pub(crate) struct SoulKeeper {
    deps: AgentDeps,
    guard: Arc<Guard>,
    settings: Settings,
    /// The genesis prompt of the configuration.
    genesis: String,
}

impl SoulKeeper {
    pub(crate) fn new(settings: &Settings, deps: &AgentDeps, guard: Arc<Guard>) -> Self {
        Self {
            deps: deps.clone(),
            guard,
            settings: settings.clone(),
            genesis: in_lines(&settings.genesis),
        }
    }

    /// Makes the first version at birth, and another where its creator has given it another
    /// genesis prompt since; then looks at the file.
    pub(crate) async fn begin(&self) -> Result<(), StoreError> {
        let (from, soul, source, reason) = match self.deps.store.soul().await? {
            None => {
                let (soul, reason) = self.born();
                (0, soul, SoulSource::Genesis, reason)
            }
            Some(SoulVersion { version, soul: Some(soul), .. }) if soul.anchor != self.genesis => {
                let (genesis, anchor) = (self.genesis.clone(), self.genesis.clone());
                let is_followed = soul.core_purpose == soul.anchor;
                let purpose = if is_followed { &genesis } else { &soul.core_purpose };
                let soul = Soul { core_purpose: purpose.clone(), genesis, anchor, ..soul };
                let reason = "its creator has changed genesisPrompt in automaton.json";
                (version, soul, SoulSource::Human, reason)
            }
            Some(_) => return self.check_view().await,
        };
        let change =
            SoulChange { soul, from, source, reason: reason.to_owned(), approved_by: None };
        self.deps.store.change_soul(change).await?;
        // What was laid down was read.
        if reason == LAID_DOWN { self.write_view().await } else { self.check_view().await }
    }

    /// The first version: what its creator has laid down in the home before it was born, or what
    /// follows from its genesis prompt; and why.
    fn born(&self) -> (Soul, &'static str) {
        let given = Soul::of_genesis(&self.genesis);
        let Some(found) = self.read_view().and_then(|text| soul::read(&text)) else {
            return (given, "born");
        };
        let genesis = given.genesis.clone();
        let anchor = given.anchor.clone();
        let found = Soul { genesis, anchor, ..found };
        match self.check(&found) {
            Ok(()) => (found, LAID_DOWN),
            Err(fault) => {
                self.report(format!("SOUL.md was not taken at birth: {fault}"));
                (given, "born")
            }
        }
    }

    /// The version that there is, and all of it.
    pub(crate) async fn now(&self) -> Result<(u32, Soul), HandleError> {
        let found =
            self.deps.store.soul().await.map_err(|error| HandleError::from_error(&error))?;
        let found = found.and_then(|it| it.soul.map(|soul| (it.version, soul)));
        found.ok_or_else(|| refused("it has no soul yet"))
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
        self.check(&soul).map_err(refused)?;
        let reason: String = reason.trim().chars().take(REASON_CHARS_MAX).collect();
        let change = SoulChange { soul, from, source, reason, approved_by };
        let version = self.deps.store.change_soul(change).await;
        let version = version.map_err(|error| HandleError::from_error(&error))?;
        self.write_view().await.map_err(|error| HandleError::from_error(&error))?;
        Ok(version)
    }

    fn check(&self, soul: &Soul) -> Result<(), SoulFault> {
        let treasury = self.deps.treasury.as_ref();
        let own: Vec<&str> = treasury.and_then(|it| it.own_secret()).into_iter().collect();
        soul::check(soul, &self.guard, &own)
    }

    fn report(&self, error: String) {
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
            return Err(refused("it says that already; nothing was changed"));
        }
        self.change((from, next), SoulSource::Agent, reason, approved_by).await
    }
}

/// Returns the alignment of a soul's purpose with its creator's text.
pub(crate) fn aligned(soul: &Soul) -> Alignment {
    alignment(&soul.core_purpose, &soul.anchor)
}

fn refused(message: impl Display) -> HandleError {
    HandleError { kind: ErrorClass::User, message: message.to_string(), hint: None }
}

impl context::SoulHandle for SoulKeeper {
    fn view(&self) -> HandleFuture<'_, String> {
        Box::pin(async move {
            let text = self.rendered().await.map_err(|error| HandleError::from_error(&error))?;
            text.ok_or_else(|| refused("it has no soul yet"))
        })
    }

    fn history(&self, limit: u32) -> HandleFuture<'_, Vec<SoulVersion>> {
        Box::pin(async move {
            self.deps
                .store
                .soul_versions(limit)
                .await
                .map_err(|error| HandleError::from_error(&error))
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
            let genesis = in_lines(text);
            // It enters prompts: what may stand in a purpose may stand in it.
            let as_purpose = Soul { core_purpose: genesis.clone(), ..soul.clone() };
            let checked = self.check(&as_purpose);
            checked.map_err(refused)?;
            Ok(Soul { genesis, ..soul.clone() })
        };
        Box::pin(self.changed_by_itself(change, reason, approved_by))
    }

    fn reflect(&self) -> HandleFuture<'_, String> {
        Box::pin(async move { Ok(self.reflect().await?.summary()) })
    }
}
