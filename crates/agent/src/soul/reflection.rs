//! The automaton's reflection on itself.
//!
//! It looks at what it did: which tools it used, how many others it knows, what it earned and
//! spent. From that it writes what it can do, whom it knows and how it deals with money; of its
//! purpose it is only told how far that is from what its creator gave it. Nothing that others have
//! written comes into it.

use automaton_core::soul::{Soul, SoulSection, SoulSource};
use automaton_memory::soul::{Alignment, changed, text_of};
use automaton_tools::HandleError;

use super::{SoulKeeper, aligned};

/// Beginning of the line that is added here, after the automaton's own text.
const SEEN: &str = "(Seen: ";

/// Result of a reflection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reflection {
    /// Alignment of its purpose with its creator's text.
    pub(crate) alignment: Alignment,
    /// The sections that were written anew.
    pub(crate) updated: Vec<SoulSection>,
    /// Advice; empty if there is none.
    pub(crate) suggestion: String,
    /// True if it got the same advice before.
    pub(crate) is_known: bool,
}

impl Reflection {
    /// The same in words.
    pub(crate) fn summary(&self) -> String {
        let Self { alignment, updated, suggestion, .. } = self;
        let names: Vec<&str> = updated.iter().map(|section| section.name()).collect();
        let updated = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let advice = if suggestion.is_empty() { "nothing to advise" } else { suggestion };
        format!("alignment with the genesis prompt: {alignment}; written anew: {updated}; {advice}")
    }
}

impl SoulKeeper {
    /// Looks at itself: writes anew what has changed, and notes what it is advised.
    ///
    /// # Errors
    /// When the store fails, or what was seen cannot be kept.
    pub(crate) async fn reflect(&self) -> Result<Reflection, HandleError> {
        let of = |error| HandleError::from_error(&error);
        let (from, soul) = self.now().await?;
        let evidence = self.deps.store.soul_evidence().await.map_err(of)?;
        let losses = self.deps.store.losses().await.map_err(of)?;
        let tools = match evidence.tools.as_slice() {
            [] => String::new(),
            tools => format!("tools used lately: {}", tools.join(", ")),
        };
        let known = match evidence.others {
            0 => String::new(),
            1 => "one other agent is known".to_owned(),
            many => format!("{many} other agents are known"),
        };
        let is_dear = losses.total.units() > 0;
        let money = if is_dear { "so far more was spent than earned" } else { "" };
        let mut next = soul.clone();
        for (section, seen) in [
            (SoulSection::Capabilities, tools.as_str()),
            (SoulSection::Relationships, known.as_str()),
            (SoulSection::FinancialCharacter, money),
        ] {
            next = with_seen(&next, section, seen);
        }
        let differs = |section: &SoulSection| text_of(&soul, *section) != text_of(&next, *section);
        let updated: Vec<SoulSection> = SoulSection::ALL.into_iter().filter(differs).collect();
        if !updated.is_empty() {
            let reason = "what it saw of itself has changed";
            self.change((from, next.clone()), SoulSource::Reflection, reason, None).await?;
        }
        let alignment = aligned(&next);
        let suggestion = self.advice(alignment);
        let before = self.deps.store.last_reflection().await.map_err(of)?;
        let is_known = before.is_some_and(|before| before.suggestion == suggestion);
        self.deps.store.reflected(suggestion.clone()).await.map_err(of)?;
        self.write_view().await.map_err(of)?;
        Ok(Reflection { alignment, updated, suggestion, is_known })
    }

    fn advice(&self, alignment: Alignment) -> String {
        if alignment >= self.settings.soul.threshold || self.genesis.is_empty() {
            return String::new();
        }
        // Told again only when it has moved.
        let tenths = alignment.0 / 1000;
        format!(
            "your core purpose has moved away from your genesis prompt (alignment about \
             0.{tenths}, at least {} is wanted): bring it back with `update_soul`, or tell your \
             creator why",
            self.settings.soul.threshold
        )
    }
}

/// A soul with what was seen at the end of a section, in the place of what was seen before.
fn with_seen(soul: &Soul, section: SoulSection, seen: &str) -> Soul {
    let text = text_of(soul, section);
    let own = text.lines().filter(|line| !(line.starts_with(SEEN) && line.ends_with(')')));
    let own = own.collect::<Vec<_>>().join("\n");
    let line = if seen.is_empty() { String::new() } else { format!("{SEEN}{seen}.)") };
    changed(soul, section, &format!("{own}\n{line}"))
}
