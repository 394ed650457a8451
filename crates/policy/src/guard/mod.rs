//! Pure: reads what others wrote for signs that it wants to steer its reader, and makes
//! it fit to be shown.
//!
//! [`Guard::scan`] takes away what cannot be seen and what only programs may write, then
//! looks at the result, folded to one spelling and decoded as far as a bounded effort
//! goes, with eight checks and a ninth that was learned, and says how grave it looks and what to do about it, by where
//! the text came from. [`frame`] puts marks around a text that its writer could not know.
//!
//! What is found is advice to the reader and a number for the operator. Whoever writes a
//! text can word it as nobody thought of, so **nothing may be safe because of what this
//! finds or does not find**: a turn may do what the label of its input lets it do,
//! whatever the guard thinks of the words.
//!
//! The verdict is that of the text which is let through: scanned again, it is the same.
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

/// What is looked for.
/// Its [`name`](Self::name) is for machines.
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

/// Where a text came from, as far as it matters to what is done about it.
/// Its [`name`](Self::name) is for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Names)]
pub enum TextSource {
    /// The creator.
    Creator,
    /// Another agent.
    Peer,
    /// A page or service of the net.
    Web,
    /// What a tool gave, with its errors.
    Tool,
    /// Instructions that somebody published for agents.
    Skill,
    /// What was remembered of others' texts.
    Memory,
}

impl TextSource {
    /// What is done about a text of this source that looks so grave. A tool's output is
    /// never held back: it is the answer that the reader asked for, and is framed.
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
    /// The automaton's own text is what it remembers.
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

/// How grave a text looks.
/// Its [`name`](Self::name) is for machines.
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

/// What to do about a text, worst last.
/// Its [`name`](Self::name) is for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Names)]
pub enum GuardAction {
    /// Show it.
    Allow,
    /// Show it with the warning that it looks like an attempt.
    Warn,
    /// Show a notice in its place; the text itself is kept for the creator.
    Withhold,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// The check.
    pub check: GuardCheck,
    /// Whether it found enough.
    pub detected: bool,
    /// What it found, in words of ours: no part of the text.
    pub details: String,
}

/// What the guard thinks of a text, and what of it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardReport {
    /// How grave it looks.
    pub level: ThreatLevel,
    /// What to do about it.
    pub action: GuardAction,
    /// What each check found, in the order of [`GuardCheck::ALL`].
    pub checks: Vec<CheckResult>,
    /// What may be shown: the text without what cannot be seen and without markers, cut
    /// to size; or a notice in its place.
    pub sanitised: String,
}

/// The guard: its word lists and weights, ready for use. Make one for a process and share it.
#[derive(Debug)]
pub struct Guard {
    lexicon: Lexicon,
    intent: IntentModel,
}

impl Guard {
    /// Reads the word lists that it is built with.
    ///
    /// # Errors
    /// When they cannot be read, which a test excludes; whoever starts must not go on
    /// without them.
    pub fn new() -> Result<Self, PhraseListError> {
        Ok(Self { lexicon: Lexicon::new()?, intent: IntentModel::built_in() })
    }

    /// The distinct buckets, below [`BUCKETS`], of each piece of a text as it is read, for whoever
    /// learns weights for them.
    #[must_use]
    pub fn intent_buckets(&self, text: &str) -> Vec<Vec<u16>> {
        let seen = fold::strip(text);
        let folded = fold::NormalizedText::new(&seen);
        intent::pieces(folded.as_str(), &self.lexicon, &mut [0; BUCKETS / 64]).collect()
    }

    /// Looks at a text of a source and makes it fit to be shown, in at most `bytes_max`
    /// bytes.
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
        let (findings, sanitised) = frame::sanitise(text, source, bytes_max, read);
        let level = findings.level();
        let action = source.action(level);
        let checks = findings.told();
        let sanitised =
            if action == GuardAction::Withhold { frame::notice(level, &checks) } else { sanitised };
        GuardReport { level, action, checks, sanitised }
    }
}

#[cfg(test)]
mod tests;
