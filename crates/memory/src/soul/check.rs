//! Pure: what a soul may hold.
//!
//! Nothing is cut or cleaned to fit: who writes it is told what is wrong, and the soul stays as it
//! was.

use automaton_core::soul::{SectionText, Soul, SoulSection};
use automaton_policy::guard::{Guard, GuardAction, TextSource, secrets};

use super::format::{SoulIdentity, read, write};

/// Characters that an item of a list may have.
const ITEM_CHARS_MAX: usize = 500;
/// Bytes of a section that are looked at.
const SCANNED_BYTES_MAX: usize = 1 << 20;

/// Why a soul cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SoulFault {
    /// It has no purpose.
    #[error("core_purpose is empty: a soul says what it is there for")]
    NoPurpose,
    /// A section is too long.
    #[error("{section} has {chars} characters, of at most {most}; nothing was changed")]
    TooLong {
        /// The section.
        section: SoulSection,
        /// Its characters.
        chars: usize,
        /// The most that it may have.
        most: usize,
    },
    /// A list has too many items.
    #[error("{section} has {items} items, of at most {most}; nothing was changed")]
    TooMany {
        /// The section.
        section: SoulSection,
        /// Its items.
        items: usize,
        /// The most that it may have.
        most: usize,
    },
    /// A section has what looks like orders to whoever reads it.
    #[error("{0} looks like an attempt to steer its reader; say it in other words")]
    Steers(SoulSection),
    /// A section has a key, a token or a seed phrase.
    #[error("{0} holds a secret, which a soul must not: leave it out")]
    Secret(SoulSection),
    /// A section has characters that are not seen.
    #[error("{0} holds characters that are not seen; leave them out")]
    Unseen(SoulSection),
    /// It would be read as something else.
    #[error("SOUL.md would read otherwise than it was written")]
    Ambiguous,
}

/// The most characters, or items, of a section.
const fn length_max(section: SoulSection) -> usize {
    match section {
        SoulSection::Values | SoulSection::Boundaries => 20,
        SoulSection::BehavioralGuidelines => 30,
        SoulSection::Personality => 1000,
        SoulSection::Strategy => 3000,
        SoulSection::CorePurpose
        | SoulSection::Capabilities
        | SoulSection::Relationships
        | SoulSection::FinancialCharacter => 2000,
    }
}

/// Checks all of a soul, in which none of these secrets may be. The genesis prompt is the
/// creator's, or was checked as text.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn check(soul: &Soul, guard: &Guard, own: &[&str]) -> Result<(), SoulFault> {
    if soul.core_purpose.trim().is_empty() {
        return Err(SoulFault::NoPurpose);
    }
    // What its creator gave it is its creator's to say, at whatever length.
    let is_given =
        |section| section == SoulSection::CorePurpose && soul.core_purpose == soul.anchor;
    for section in SoulSection::ALL.into_iter().filter(|section| !is_given(*section)) {
        let most = length_max(section);
        match soul.section(section) {
            SectionText::Whole(text) => check_text(section, text, most, (guard, own))?,
            SectionText::Items(items) => {
                if items.len() > most {
                    return Err(SoulFault::TooMany { section, items: items.len(), most });
                }
                items
                    .iter()
                    .try_for_each(|item| check_text(section, item, ITEM_CHARS_MAX, (guard, own)))?;
            }
        }
    }
    let written = write(&SoulIdentity::default(), soul);
    let same =
        read(&written).is_some_and(|back| Soul { anchor: soul.anchor.clone(), ..back } == *soul);
    if same { Ok(()) } else { Err(SoulFault::Ambiguous) }
}

/// Checks one text.
fn check_text(
    section: SoulSection,
    text: &str,
    most: usize,
    (guard, own): (&Guard, &[&str]),
) -> Result<(), SoulFault> {
    let chars = text.chars().count();
    if chars > most {
        return Err(SoulFault::TooLong { section, chars, most });
    }
    let is_unseen = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(is_unseen) || automaton_core::text::visible(text) != text {
        return Err(SoulFault::Unseen(section));
    }
    if !secrets::find(text, own).is_empty() {
        return Err(SoulFault::Secret(section));
    }
    let report = guard.scan(text, TextSource::Peer, SCANNED_BYTES_MAX);
    if report.action != GuardAction::Allow || report.sanitised != text {
        return Err(SoulFault::Steers(section));
    }
    Ok(())
}
