//! Pure: SOUL.md. How a soul is written and read, what it may hold, how far it is from what it
//! was made for, and what of it a prompt shows.
//!
//! Everything that a prompt shows is checked here. A soul must never be kept that reads otherwise
//! than it was written.

mod alignment;
mod check;
mod format;

use std::fmt::Write as _;

use automaton_core::soul::{SectionSlot, SectionText, Soul, SoulSection, in_lines};

pub use self::alignment::{Alignment, alignment};
pub use self::check::{SoulFault, check};
pub use self::format::{SoulIdentity, read, write};

/// What a prompt shows of it, in this order: the rest it looks up.
const SHOWN: [SoulSection; 6] = [
    SoulSection::CorePurpose,
    SoulSection::Values,
    SoulSection::Personality,
    SoulSection::Boundaries,
    SoulSection::Strategy,
    SoulSection::Capabilities,
];

/// A soul with one section changed: of a list a JSON array of texts, or one item a line, with or
/// without a dash.
#[must_use]
pub fn changed(soul: &Soul, section: SoulSection, content: &str) -> Soul {
    let mut next = soul.clone();
    match next.section_mut(section) {
        SectionSlot::Whole(text) => *text = in_lines(content),
        SectionSlot::Items(items) => *items = listed(content),
    }
    next
}

fn listed(content: &str) -> Vec<String> {
    // silent-ok: what is no array of texts is a list of lines.
    let items = serde_json::from_str::<Vec<String>>(content).unwrap_or_else(|_| {
        let line = |line: &str| {
            let line = line.trim();
            line.strip_prefix("- ").or(line.strip_prefix("* ")).unwrap_or(line).to_owned()
        };
        content.lines().map(line).collect()
    });
    items.iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// A section as it reads; nothing where it is empty.
#[must_use]
pub fn text_of(soul: &Soul, section: SoulSection) -> String {
    match soul.section(section) {
        SectionText::Whole(text) => text.to_owned(),
        SectionText::Items(items) => {
            items.iter().map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n")
        }
    }
}

/// What a prompt shows of a soul.
#[must_use]
pub fn prompt_text(soul: &Soul) -> String {
    let mut text = String::new();
    for section in SHOWN {
        // No line of a text stands where a section begins.
        let said = text_of(soul, section).replace('\n', "\n  ");
        if !said.is_empty() {
            // silent-ok: writing to a string does not fail.
            writeln!(text, "{}: {said}", section.heading()).ok();
        }
    }
    text
}

/// What two souls differ in: each section that does, as it was and as it is.
#[must_use]
pub fn differences(one: &Soul, other: &Soul) -> Vec<(SoulSection, String, String)> {
    let both = SoulSection::ALL.map(|it| (it, text_of(one, it), text_of(other, it)));
    both.into_iter().filter(|(_, before, after)| before != after).collect()
}

#[cfg(test)]
mod tests;
