//! Pure: what is remembered, as values: five tiers, one kind of item.
//!
//! The store keeps these, the memory ranks and renders them. An item must never be without
//! its origin, and nothing here may know where items are kept.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::embedding::{Embedding, EmbeddingKind};
use crate::id::TurnId;
use crate::names::Names;
use crate::time::{Span, Timestamp};
use crate::trust::Labelled;

/// Which kind of memory an item belongs to.
/// Its [`name`](Self::name) is the one in the database, in files and for the model.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Names,
)]
#[serde(rename_all = "snake_case")]
pub enum MemoryTier {
    /// Current work: goals, and notes that expire.
    Working,
    /// Events, one item each, kept in full.
    Episodic,
    /// Facts, by category and key.
    Semantic,
    /// Procedures, with their successes and failures.
    Procedural,
    /// Other parties, by address.
    Relationship,
}

/// The number of an item, shown as `m12`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, derive_more::Display,
)]
#[display("m{_0}")]
pub struct MemoryId(#[schemars(with = "String")] pub i64);

/// A text is no number of an item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no id of a memory, which is an m and a number, as in m12")]
pub struct MemoryIdError(String);

impl FromStr for MemoryId {
    type Err = MemoryIdError;

    fn from_str(text: &str) -> Result<Self, MemoryIdError> {
        let number = text.strip_prefix('m').and_then(|digits| digits.parse().ok());
        let bad = || MemoryIdError(text.chars().take(40).collect());
        number.filter(|number| *number > 0).map(Self).ok_or_else(bad)
    }
}

impl Serialize for MemoryId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MemoryId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Something to be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMemory {
    /// Its tier.
    pub tier: MemoryTier,
    /// Subtype within the tier: the category of a fact, the class of an event, the type of a
    /// relation.
    pub kind: String,
    /// Name: the key of a fact, the name of a procedure, the address of a party. Each kind has at
    /// most one item of a name; empty for an item without a name.
    pub name: String,
    /// Text with its origin.
    pub body: Labelled,
    /// The confidence of a fact, the importance of an event or goal, the trust in somebody:
    /// 0 to 100.
    pub strength: u8,
    /// The turn that learned it.
    pub turn: Option<TurnId>,
    /// After how long it ends by itself.
    pub lasts: Option<Span>,
}

impl NewMemory {
    /// Returns a hash of everything but time and strength. Two items with the same hash are the
    /// same.
    #[must_use]
    pub fn content_hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let Labelled { label, source, text } = &self.body;
        let tier = self.tier.name();
        for part in [tier, &self.kind, &self.name, label.name(), source.as_str(), text] {
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().into()
    }
}

/// Something remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryItem {
    /// Its number.
    pub id: MemoryId,
    /// Its tier.
    pub tier: MemoryTier,
    /// Subtype within the tier.
    pub kind: String,
    /// Name; empty for an item without one.
    pub name: String,
    /// Text with its origin.
    pub body: Labelled,
    /// Confidence, importance or trust, 0 to 100.
    pub strength: u8,
    /// Times that the same words came from the same source.
    pub seen: u32,
    /// Successes of a procedure.
    pub successes: u32,
    /// Failures of a procedure.
    pub failures: u32,
    /// The turn that learned it.
    pub turn: Option<TurnId>,
    /// From when on it holds.
    pub valid_from: Timestamp,
    /// Until when it held; none while it does.
    pub valid_to: Option<Timestamp>,
    /// Time of the latest encounter.
    pub seen_at: Timestamp,
    /// Item that replaced this one.
    pub superseded_by: Option<MemoryId>,
}

/// A search in memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryQuery {
    /// Only of these tiers; of all where none is named.
    pub tiers: Vec<MemoryTier>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Words; without them the newest come.
    pub text: Option<String>,
    /// The least trusted label that may come back; anything where none is named.
    pub least_trusted: Option<crate::trust::Label>,
    /// Only what was there then.
    pub known_at: Option<Timestamp>,
    /// Vector of the words, to search by meaning too.
    pub embedding: Option<Embedding>,
    /// The most that come back.
    pub limit: u32,
}

/// Search results, as input of the ranking.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryMatches {
    /// The items, best match of the index first.
    pub items: Vec<MemoryItem>,
    /// In how many items each word of the query stands, counted up to a limit. The forms of one
    /// word are joined by [`FORM_MARK`](crate::search_terms::FORM_MARK).
    pub frequencies: Vec<(String, u32)>,
    /// Number of items in all.
    pub total: u64,
    /// Similarity of items to the query, in thousandths; empty if the query has no vector.
    pub similarities: Vec<(MemoryId, i32)>,
    /// Which part of an item means the most alike, where it has several, by the number of its
    /// vector.
    pub parts: Vec<(MemoryId, u32)>,
    /// Source of the vectors behind these similarities.
    pub embedding_kind: EmbeddingKind,
    /// What the creator said right after an item, oldest first, as pairs with the item: it may say
    /// that something has changed, without its words.
    pub followers: Vec<(MemoryId, MemoryItem)>,
    /// Share of the question that each item covers, if it was counted. After an item is added, it
    /// must be counted again.
    pub covered: Vec<u64>,
}

/// Outcome of storing an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreOutcome {
    /// There was nothing of this name.
    New(MemoryId),
    /// It took the place of an older one, which is kept as what held before.
    Superseded(MemoryId),
    /// It was known already.
    Known(MemoryId),
    /// Something of this name by somebody more trusted holds on; this stands beside it.
    Beside(MemoryId),
}

impl StoreOutcome {
    /// The item.
    #[must_use]
    pub const fn id(self) -> MemoryId {
        match self {
            Self::New(id) | Self::Superseded(id) | Self::Known(id) | Self::Beside(id) => id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::Label;

    #[test]
    fn an_id_survives_its_text_and_others_are_refused() {
        assert_eq!("m12".parse(), Ok(MemoryId(12)));
        assert_eq!(MemoryId(7).to_string(), "m7");
        assert_eq!(serde_json::to_string(&MemoryId(7)).unwrap(), "\"m7\"");
        for bad in ["", "12", "m", "m0", "m-1", "m1x", "M1"] {
            assert!(bad.parse::<MemoryId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn who_says_it_is_part_of_what_is_said() {
        let item = |label, source: &str, strength| NewMemory {
            tier: MemoryTier::Semantic,
            kind: "self".to_owned(),
            name: "mood".to_owned(),
            body: Labelled::new(label, source, "fine"),
            strength,
            turn: None,
            lasts: None,
        };
        let one = item(Label::Peer, "0x1", 50).content_hash();
        assert_eq!(one, item(Label::Peer, "0x1", 90).content_hash());
        assert_ne!(one, item(Label::Peer, "0x2", 50).content_hash());
        assert_ne!(one, item(Label::Own, "0x1", 50).content_hash());
    }
}
