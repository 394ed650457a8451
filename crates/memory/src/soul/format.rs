//! Pure: SOUL.md in the format `soul/v1`, and what is read of older ones.
//!
//! A front matter of one line a key, and a heading of the second level a section. A line of a text
//! that could be read as a heading is escaped with a backslash, as Markdown does, so that no text
//! opens a section. What the front matter says of the automaton is written for readers and never
//! read again.

use std::collections::BTreeMap;

use automaton_core::soul::{SectionSlot, SectionText, Soul, SoulSection};

use super::listed;

/// The heading of the genesis prompt.
const GENESIS: &str = "Genesis Prompt";

/// Headings of older files, with what they are called now.
const ALIASES: [(&str, SoulSection); 4] = [
    ("mission", SoulSection::CorePurpose),
    ("purpose", SoulSection::CorePurpose),
    ("children", SoulSection::Relationships),
    ("financial history", SoulSection::FinancialCharacter),
];

/// What the front matter says, in the order in which it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SoulIdentity {
    /// The number of the version.
    pub version: u32,
    /// When it was made.
    pub updated_at: String,
    /// Whose soul it is.
    pub name: String,
    /// The address of its wallet; empty where it has none.
    pub address: String,
    /// Its creator's address; empty where that is not known.
    pub creator: String,
    /// When it was born.
    pub born_at: String,
    /// The SHA-256 of its constitution.
    pub constitution_hash: String,
    /// How far it is from what it was made of, with four decimals.
    pub genesis_alignment: String,
    /// When it last looked at itself; empty where it never did.
    pub last_reflected: String,
}

/// SOUL.md.
#[must_use]
pub fn write(identity: &SoulIdentity, soul: &Soul) -> String {
    let SoulIdentity { version, updated_at, name, address, creator, born_at, .. } = identity;
    let version = version.to_string();
    let mut text = "---\nformat: soul/v1\n".to_owned();
    for (key, value) in [
        ("version", &version),
        ("updated_at", updated_at),
        ("name", name),
        ("address", address),
        ("creator", creator),
        ("born_at", born_at),
        ("constitution_hash", &identity.constitution_hash),
        ("genesis_alignment", &identity.genesis_alignment),
        ("last_reflected", &identity.last_reflected),
    ] {
        text.push_str(&format!("{key}: {}\n", scalar(value)));
    }
    let title = if name.trim().is_empty() { "Soul".to_owned() } else { one_line(name) };
    text.push_str(&format!("---\n\n# {title}\n"));
    for section in SoulSection::ALL {
        let body = match soul.section(section) {
            SectionText::Whole(body) => escaped(body),
            SectionText::Items(items) => items.iter().map(|item| listed_item(item)).collect(),
        };
        heading(&mut text, section.heading(), &body);
    }
    heading(&mut text, GENESIS, &escaped(&soul.genesis));
    text
}

fn heading(text: &mut String, name: &str, body: &str) {
    if !body.is_empty() {
        text.push_str(&format!("\n## {name}\n{}\n", body.trim_end_matches('\n')));
    }
}

/// A value on one line: as it is where that is plain, and quoted as JSON where it is not.
fn scalar(value: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || " ._+-/".contains(c) || c == ':';
    match value.chars().all(is_plain) && value.trim() == value && !value.contains(": ") {
        true => value.to_owned(),
        // silent-ok: a text always has a JSON form.
        false => serde_json::to_string(value).unwrap_or_default(),
    }
}

fn one_line(text: &str) -> String {
    text.split(char::is_control).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// A text of which no line is a heading or is skipped.
fn escaped(text: &str) -> String {
    let line = |line: &str| match line.chars().next() {
        Some('#' | '\\') => format!("\\{line}"),
        _ => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn unescaped(line: &str) -> &str {
    line.strip_prefix('\\').filter(|rest| rest.starts_with(['#', '\\'])).unwrap_or(line)
}

/// An item of a list, whose further lines are indented.
fn listed_item(item: &str) -> String {
    format!("- {}\n", item.replace('\n', "\n  "))
}

/// A soul out of SOUL.md, of this format or an older one; nothing where it names no purpose. What
/// is not known is left out; the anchor is never read.
#[must_use]
pub fn read(text: &str) -> Option<Soul> {
    let text = text.replace("\r\n", "\n");
    let (front, body) = split(&text);
    let is_ours = front.lines().any(|line| line.trim().eq_ignore_ascii_case("format: soul/v1"));
    let mut sections: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut at = None;
    for line in body.lines() {
        match line.strip_prefix("## ") {
            // Of several with one name the first is meant: the others were added.
            Some(name) => {
                let name = name.trim().to_lowercase();
                at = (!sections.contains_key(&name)).then(|| name.clone());
                sections.entry(name).or_default();
            }
            None => {
                if let Some(lines) = at.as_ref().and_then(|name| sections.get_mut(name)) {
                    lines.push(line);
                }
            }
        }
    }
    let mut soul = Soul::default();
    for (name, lines) in &sections {
        let known = SoulSection::ALL.into_iter().find(|it| it.heading().to_lowercase() == *name);
        let older = ALIASES.iter().find(|(alias, _)| !is_ours && alias == name).map(|(_, it)| *it);
        let Some(section) = known.or(older) else { continue };
        match soul.section_mut(section) {
            SectionSlot::Whole(text) => *text = join_lines(lines),
            SectionSlot::Items(list) if is_ours => *list = items(lines),
            SectionSlot::Items(list) => *list = listed(&lines.join("\n")),
        }
    }
    let genesis = sections.get(&GENESIS.to_lowercase());
    soul.genesis = genesis.map(|lines| join_lines(lines)).unwrap_or_default();
    (!soul.core_purpose.is_empty()).then_some(soul)
}

/// The front matter and the rest.
fn split(text: &str) -> (&str, &str) {
    let front = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    front.unwrap_or(("", text))
}

fn join_lines(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| unescaped(line)).collect();
    lines.join("\n").trim().to_owned()
}

fn items(lines: &[&str]) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in lines {
        match (line.strip_prefix("- "), line.strip_prefix("  "), items.last_mut()) {
            (Some(item), ..) => items.push(item.to_owned()),
            (None, Some(more), Some(item)) => {
                item.push('\n');
                item.push_str(more);
            }
            _ => {}
        }
    }
    items.iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}
