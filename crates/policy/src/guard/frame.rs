//! Pure: what is shown of a text, and the marks around it.
//!
//! Cleaning comes first and is the same for every level: a text that looks harmless is
//! cleaned like one that does not. What was cleaned stays as it is when it is cleaned
//! again. Must never cut without saying so.

use automaton_core::trust::{Label, Source as Sender};

use super::fold::{NormalizedText, strip};
use super::markers::{self, Marker, MarkerAction};
use super::{CheckResult, GuardAction, GuardCheck, GuardReport, TextSource, ThreatLevel};

/// Times that a text is cleaned before it is given up: what is cut may have to be
/// cleaned once more.
const CLEANINGS_MAX: u32 = 4;
/// What stands at the end of a text that was cut.
const CUT: &str = "\n[cut here: the rest was too long]";
/// What stands in place of a text that cannot be made fit.
const UNFIT: &str = "[removed: this text could not be made fit to be shown]";
/// How the notice in place of a withheld text begins.
const NOTICE: &str = "[withheld by the guard: ";
/// Bytes that a notice may have.
const NOTICE_BYTES_MAX: usize = 400;

/// The text as it may be shown.
///
/// `read` is given the text when nothing is left to clean, in both spellings and with
/// what is left of markers.
pub(super) fn sanitise<T>(
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
    let mut text = cut(strip(text).into_owned(), bytes_max);
    for _ in 0..CLEANINGS_MAX {
        let folded = NormalizedText::new(&text);
        let found = markers::find(&folded, &text, calls);
        let Some(cleaned) = markers::clean(&text, &folded, &found) else {
            let read = read(&text, &folded, &found);
            return (read, text);
        };
        text = cut(cleaned, bytes_max);
    }
    let text = cut(UNFIT.to_owned(), bytes_max);
    (read(&text, &NormalizedText::new(&text), &[]), text)
}

/// The beginning of a text that is too long, with a note; as it is when it fits.
fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub(CUT.len()));
    text.truncate(end);
    let room = bytes_max - end;
    text.push_str(CUT.get(..room.min(CUT.len())).unwrap_or(""));
    text
}

/// What stands in place of a text that is withheld. It can be read again.
pub(super) fn notice(level: ThreatLevel, checks: &[CheckResult]) -> String {
    let found = checks.iter().filter(|found| found.detected).map(|found| found.check.name());
    format!("{NOTICE}{}: {}]", level.name(), found.collect::<Vec<_>>().join(", "))
}

/// What a notice says, when a text is one and nothing else.
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

/// A scanned text between marks with its origin, as it stands in a prompt. The nonce is
/// something that whoever wrote it could not know. What the creator and the automaton
/// wrote stands by itself.
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
