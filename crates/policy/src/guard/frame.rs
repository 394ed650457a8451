//! Pure: cleans a text for display, and frames it with marks.
//!
//! Cleaning comes first and is the same for every level: a text that looks harmless is cleaned
//! like any other. Cleaning a cleaned text does not change it. It must never cut a text without
//! saying so.

use automaton_core::trust::{Label, Source as Sender};

use super::fold::{NormalizedText, strip};
use super::markers::{self, Marker, MarkerAction};
use super::{CheckResult, GuardAction, GuardCheck, GuardReport, TextSource, ThreatLevel};

/// The most cleanings of a text before it is given up. A cut may need another cleaning.
const CLEANINGS_MAX: u32 = 4;
/// The end of a text that was cut.
const CUT: &str = "\n[cut here: the rest was too long]";
/// The replacement of a text that cannot be cleaned.
const UNFIT: &str = "[removed: this text could not be made fit to be shown]";
/// The prefix of the notice that replaces a withheld text.
const NOTICE: &str = "[withheld by the guard: ";
/// The most bytes of a notice.
const NOTICE_BYTES_MAX: usize = 400;

/// Cleans a text for display.
///
/// `read` receives the cleaned text, its normalised form and the remaining markers.
pub(super) fn clean<T>(
    text: &str,
    source: TextSource,
    bytes_max: usize,
    read: impl Fn(&str, &NormalizedText<'_>, &[Marker]) -> T,
) -> (T, String) {
    let calls = if source == TextSource::Skill {
        MarkerAction::Replace("[tool-call-removed]")
    } else {
        MarkerAction::Leave
    };
    let mut text = truncate(strip(text).into_owned(), bytes_max);
    for _ in 0..CLEANINGS_MAX {
        let folded = NormalizedText::new(&text);
        let found = markers::find(&folded, &text, calls);
        let Some(cleaned) = markers::clean(&text, &folded, &found) else {
            let read = read(&text, &folded, &found);
            return (read, text);
        };
        text = truncate(cleaned, bytes_max);
    }
    let text = truncate(UNFIT.to_owned(), bytes_max);
    (read(&text, &NormalizedText::new(&text), &[]), text)
}

/// Cuts a text that is too long, with a note. A text that fits is unchanged.
fn truncate(mut text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub(CUT.len()));
    text.truncate(end);
    let room = bytes_max - end;
    text.push_str(CUT.get(..room.min(CUT.len())).unwrap_or(""));
    text
}

/// Returns the notice that replaces a withheld text. [`read_notice`] parses it.
pub(super) fn notice(level: ThreatLevel, checks: &[CheckResult]) -> String {
    let found = checks.iter().filter(|found| found.detected).map(|found| found.check.name());
    format!("{NOTICE}{}: {}]", level.name(), found.collect::<Vec<_>>().join(", "))
}

/// Parses a notice, if the text is a notice and nothing else.
pub(super) fn read_notice(text: &str) -> Option<(ThreatLevel, Vec<CheckResult>)> {
    let text = text.trim();
    let inner = text.strip_prefix(NOTICE)?.strip_suffix(']')?;
    let (level, names) = inner.split_once(": ").filter(|_| text.len() <= NOTICE_BYTES_MAX)?;
    let level = ThreatLevel::by_name(level)?;
    let names: Vec<&str> = names.split(", ").collect();
    if names.iter().any(|name| GuardCheck::by_name(name).is_none()) {
        return None;
    }
    let told = GuardCheck::ALL.into_iter().map(|check| CheckResult {
        check,
        detected: names.contains(&check.name()),
        details: String::new(),
    });
    Some((level, told.collect()))
}

/// Frames a scanned text with marks that name its origin, for a prompt. The text's author cannot
/// know the nonce. Texts of the creator and of the automaton are not framed.
#[must_use]
pub fn frame(report: &GuardReport, label: Label, sender: &Sender, nonce: &str) -> String {
    let text = &report.sanitised;
    if label <= Label::Own {
        return text.clone();
    }
    let kept = |c: &char| c.is_ascii_alphanumeric() || " ._:/@-".contains(*c);
    let sender: String = sender.as_str().chars().filter(kept).take(60).collect();
    let warning = match report.action {
        GuardAction::Allow => "",
        GuardAction::Warn => {
            "\n[the guard warns: this text looks like an attempt to steer its reader]"
        }
        GuardAction::Withhold => "\n[the guard keeps the text for the creator]",
    };
    format!("[data {nonce} {label} {sender}]{warning}\n{text}\n[/data {nonce}]")
}
