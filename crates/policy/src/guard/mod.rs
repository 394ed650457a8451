//! Pure: scans texts of others for attempts to steer their reader, and cleans them for display.
//!
//! [`Guard::scan`] removes invisible characters and forms that only programs may write. Then it
//! runs eight checks and a learned one over the result, normalised and decoded with bounded
//! effort. It rates the threat, and chooses the action by the text's source. [`frame()`] puts marks
//! around a text that its author could not know.
//!
//! The findings advise the reader and give the operator a number. An author can always word a
//! text in a new way, so **nothing may be safe because of what this finds or does not find**: the
//! label of its input decides what a turn may do, whatever the guard finds.
//!
//! The verdict is that of the text that is let through: scanning it again gives the same result.
//! Work and memory are linear in the length of the text.

mod decode;
mod detect;
mod fold;
mod frame;
mod intent;
mod lexicon;
mod markers;
pub mod secrets;
mod words;

use automaton_core::names::Names;
use automaton_core::trust::Label;

pub use frame::frame;
pub use intent::BUCKETS;
pub use lexicon::PhraseListError;

use intent::IntentModel;
use lexicon::Lexicon;

/// A check of the guard. Its [`name`](Self::name) is for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Names)]
pub enum GuardCheck {
    /// Orders to drop, replace or reveal what the reader was told, or to act unasked.
    InstructionPatterns,
    /// Claims to be the creator, an administrator, an emergency.
    AuthorityClaims,
    /// Forms that pretend that the text ends and a program's begins.
    BoundaryManipulation,
    /// Control tokens of chat templates, and text that only machines can read.
    ChatmlMarkers,
    /// Words that mean something only after a disguise was taken off.
    Obfuscation,
    /// The same orders in another language than English.
    MultiLanguageInjection,
    /// Orders to move money.
    FinancialManipulation,
    /// Orders to destroy data or the reader.
    SelfHarmInstructions,
    /// Wording like that of texts that steer their reader, by weights learned from examples.
    LearnedIntent,
}

/// The source of a text, as far as it determines the action. Its [`name`](Self::name) is for
/// machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Names)]
pub enum TextSource {
    /// The creator.
    Creator,
    /// Another agent.
    Peer,
    /// A page or service of the net.
    Web,
    /// The output of a tool, including its errors.
    Tool,
    /// Instructions that somebody published for agents.
    Skill,
    /// Memories of others' texts.
    Memory,
}

impl TextSource {
    /// Returns the action for a text of this source with this threat level. A tool's output is
    /// never withheld: it is the answer that the reader asked for, and is framed.
    #[must_use]
    pub const fn action(self, level: ThreatLevel) -> GuardAction {
        match (self, level) {
            (Self::Creator, _) | (_, ThreatLevel::Low) => GuardAction::Allow,
            (Self::Peer | Self::Web | Self::Memory, ThreatLevel::Critical) => GuardAction::Withhold,
            (Self::Skill, ThreatLevel::High | ThreatLevel::Critical) => GuardAction::Withhold,
            (Self::Peer | Self::Web | Self::Memory | Self::Tool | Self::Skill, _) => {
                GuardAction::Warn
            }
        }
    }
}

impl From<Label> for TextSource {
    /// The automaton's own text comes from its memory.
    fn from(label: Label) -> Self {
        match label {
            Label::Creator => Self::Creator,
            Label::Own => Self::Memory,
            Label::Tool => Self::Tool,
            Label::Peer => Self::Peer,
            Label::Web => Self::Web,
        }
    }
}

/// The threat level of a text. Its [`name`](Self::name) is for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Names)]
pub enum ThreatLevel {
    /// Like most texts.
    Low,
    /// Like an order, or like somebody who claims to be in charge.
    Medium,
    /// Like an order that hides, or pretends to come from elsewhere.
    High,
    /// Like an attack on money, data or the reader.
    Critical,
}

/// The action for a text, least severe first. Its [`name`](Self::name) is for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Names)]
pub enum GuardAction {
    /// Show it.
    Allow,
    /// Show it with the warning that it looks like an attempt.
    Warn,
    /// Show a notice in its place; the text itself is kept for the creator.
    Withhold,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// The check.
    pub check: GuardCheck,
    /// True if it found enough.
    pub detected: bool,
    /// The findings in our words. They contain no part of the text.
    pub details: String,
}

/// The guard's report on a text, with the version that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardReport {
    /// The threat level.
    pub level: ThreatLevel,
    /// The action.
    pub action: GuardAction,
    /// The result of each check, in the order of [`GuardCheck::ALL`].
    pub checks: Vec<CheckResult>,
    /// The text to show: without invisible characters and markers, cut to size, or a notice in
    /// its place.
    pub sanitised: String,
}

/// The guard with its word lists and weights. Create one for each process and share it.
#[derive(Debug)]
pub struct Guard {
    lexicon: Lexicon,
    intent: IntentModel,
}

impl Guard {
    /// Loads the built-in word lists.
    ///
    /// # Errors
    /// Fails if they cannot be parsed, which a test excludes. The program must not start without
    /// them.
    pub fn new() -> Result<Self, PhraseListError> {
        Ok(Self { lexicon: Lexicon::new()?, intent: IntentModel::built_in() })
    }

    /// Returns the distinct buckets, below [`BUCKETS`], of each piece of a text. Used to learn
    /// weights.
    #[must_use]
    pub fn intent_buckets(&self, text: &str) -> Vec<Vec<u16>> {
        let seen = fold::strip(text);
        let folded = fold::NormalizedText::new(&seen);
        intent::pieces(folded.as_str(), &self.lexicon, &mut [0; BUCKETS / 64]).collect()
    }

    /// Scans a text of a source and cleans it for display, in at most `bytes_max` bytes.
    #[must_use]
    pub fn scan(&self, text: &str, source: TextSource, bytes_max: usize) -> GuardReport {
        if let Some((level, checks)) = frame::read_notice(text) {
            let action = source.action(level);
            return GuardReport { level, action, checks, sanitised: text.trim().to_owned() };
        }
        let read = |text: &str, folded: &fold::NormalizedText<'_>, found: &[markers::Marker]| {
            let mut findings = detect::detect(text, folded, found, &self.lexicon);
            if self.intent.flags(folded.as_str(), &self.lexicon, findings.discusses) {
                findings.note_intent();
            }
            findings
        };
        let (findings, sanitised) = frame::clean(text, source, bytes_max, read);
        let level = findings.level();
        let action = source.action(level);
        let checks = findings.results();
        let sanitised =
            if action == GuardAction::Withhold { frame::notice(level, &checks) } else { sanitised };
        GuardReport { level, action, checks, sanitised }
    }
}

#[cfg(test)]
mod tests;
