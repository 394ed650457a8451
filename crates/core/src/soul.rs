//! Pure: what the automaton thinks of itself, section by section.
//!
//! Sections are kept apart as values: no text of one can ever become another one. What the creator
//! gave it at birth is beside what it has made of it, so that the one can be measured by the
//! other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Names;
use crate::time::Timestamp;

/// A part of a soul that can be changed by itself.
/// Its [`name`](Self::name) is the one in calls and in the database.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Names,
)]
#[serde(rename_all = "snake_case")]
pub enum SoulSection {
    /// Purpose.
    CorePurpose,
    /// Values.
    Values,
    /// Behaviour towards others and in its work.
    BehavioralGuidelines,
    /// Character.
    Personality,
    /// Things that it will not do.
    Boundaries,
    /// Plan to reach its purpose.
    Strategy,
    /// Abilities.
    Capabilities,
    /// Whom it knows.
    Relationships,
    /// Habits with money.
    FinancialCharacter,
}

impl SoulSection {
    /// Its heading in SOUL.md.
    #[must_use]
    pub const fn heading(self) -> &'static str {
        match self {
            Self::CorePurpose => "Core Purpose",
            Self::Values => "Values",
            Self::BehavioralGuidelines => "Behavioral Guidelines",
            Self::Personality => "Personality",
            Self::Boundaries => "Boundaries",
            Self::Strategy => "Strategy",
            Self::Capabilities => "Capabilities",
            Self::Relationships => "Relationships",
            Self::FinancialCharacter => "Financial Character",
        }
    }

    /// Returns true if the section states a purpose. The creator may want to approve changes to
    /// it.
    #[must_use]
    pub const fn is_purpose(self) -> bool {
        matches!(self, Self::CorePurpose | Self::Values | Self::Boundaries)
    }
}

/// Content of a section.
pub enum SectionText<'a> {
    /// One text.
    Whole(&'a str),
    /// A list.
    Items(&'a [String]),
}

/// The same, to be changed.
pub enum SectionSlot<'a> {
    /// One text.
    Whole(&'a mut String),
    /// A list.
    Items(&'a mut Vec<String>),
}

/// The field of a section, borrowed in one way.
macro_rules! place {
    ($kind:ident, $section:expr, ($($borrow:tt)+), $soul:ident) => {
        match $section {
            SoulSection::CorePurpose => $kind::Whole($($borrow)+ $soul.core_purpose),
            SoulSection::Values => $kind::Items($($borrow)+ $soul.values),
            SoulSection::BehavioralGuidelines => $kind::Items($($borrow)+ $soul.behavioral_guidelines),
            SoulSection::Personality => $kind::Whole($($borrow)+ $soul.personality),
            SoulSection::Boundaries => $kind::Items($($borrow)+ $soul.boundaries),
            SoulSection::Strategy => $kind::Whole($($borrow)+ $soul.strategy),
            SoulSection::Capabilities => $kind::Whole($($borrow)+ $soul.capabilities),
            SoulSection::Relationships => $kind::Whole($($borrow)+ $soul.relationships),
            SoulSection::FinancialCharacter => $kind::Whole($($borrow)+ $soul.financial_character),
        }
    };
}

/// The automaton's idea of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Soul {
    /// Purpose.
    pub core_purpose: String,
    /// Values.
    pub values: Vec<String>,
    /// Behaviour towards others and in its work.
    pub behavioral_guidelines: Vec<String>,
    /// Character.
    pub personality: String,
    /// Things that it will not do.
    pub boundaries: Vec<String>,
    /// Plan to reach its purpose.
    pub strategy: String,
    /// Abilities.
    pub capabilities: String,
    /// Whom it knows.
    pub relationships: String,
    /// Habits with money.
    pub financial_character: String,
    /// Its genesis prompt, as it reads now.
    pub genesis: String,
    /// Its genesis prompt, as its creator gave it: what it is measured by.
    pub anchor: String,
}

impl Soul {
    /// Creates the first soul of an automaton with this genesis prompt.
    #[must_use]
    pub fn of_genesis(genesis: &str) -> Self {
        let genesis = in_lines(genesis);
        Self {
            core_purpose: genesis.clone(),
            values: [
                "Stay alive by being of use.",
                "Grow: get better at what I do, and remember how.",
                "Create what somebody wants.",
                "Connect: say what is so, and treat others fairly.",
            ]
            .map(str::to_owned)
            .to_vec(),
            anchor: genesis.clone(),
            genesis,
            ..Self::default()
        }
    }

    /// Returns the content of a section.
    #[must_use]
    pub fn section(&self, section: SoulSection) -> SectionText<'_> {
        place!(SectionText, section, (&), self)
    }

    /// The place of a section.
    pub fn section_mut(&mut self, section: SoulSection) -> SectionSlot<'_> {
        place!(SectionSlot, section, (&mut), self)
    }
}

/// A text without what ends lines elsewhere, and without empty space around it.
#[must_use]
pub fn in_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").trim().to_owned()
}

/// Author of a change to a soul. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Names)]
#[serde(rename_all = "snake_case")]
pub enum SoulSource {
    /// The automaton, by a tool.
    Agent,
    /// Its creator.
    Human,
    /// Its birth.
    Genesis,
    /// The hourly reflection.
    Reflection,
}

/// A change of a soul, to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoulChange {
    /// All of it, as it is then.
    pub soul: Soul,
    /// The version that it was made of; 0 where there is none.
    pub from: u32,
    /// Author of the change.
    pub source: SoulSource,
    /// Reason of the change.
    pub reason: String,
    /// The approval under which it is changed, if the creator was asked.
    pub approved_by: Option<String>,
}

/// A version of a soul.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SoulVersion {
    /// Its number, from 1.
    pub version: u32,
    /// All of it; missing where only its hash is kept.
    pub soul: Option<Soul>,
    /// Author of the version.
    pub source: SoulSource,
    /// Reason of the version.
    pub reason: String,
    /// The approval under which it was made.
    pub approved_by: Option<String>,
    /// Time of the version.
    pub at: Timestamp,
    /// Its hash, over everything here and the hash of the version before, in hexadecimal digits.
    pub hash: String,
}
