//! Pure: snapshots of the workspace and restores from them, in words.

use automaton_core::event::{Event, RestoreEnd, TakenReport};
use automaton_core::snapshot::{NamedPaths, RestoreReport, SnapshotCause, SnapshotRecord};
use automaton_core::time::Span;

use super::text::{plain, short};
use super::units::{many, size, span};
use super::when::WallClock;
use super::words::{PhraseContext, Style};

/// Characters of a command or a path that are shown.
const SHOWN_CHARS: usize = 80;
/// Names that are shown of each kind of change.
const NAMES: usize = 5;

/// What an event of snapshots says.
pub(super) fn words(context: &PhraseContext<'_>, event: &Event) -> Option<(Style, String)> {
    match event {
        Event::SnapshotTaken(taken) if taken.complete && context.is_brief() => None,
        Event::SnapshotTaken(taken) => Some(taken_in_words(taken)),
        Event::WorkspaceRestored(restored) => Some(restored_in_words(restored)),
        _ => None,
    }
}

fn taken_in_words(taken: &TakenReport) -> (Style, String) {
    let TakenReport { files, bytes, copied_bytes, left_out, complete, took_ms, .. } = taken;
    let style = if *complete { Style::Quiet } else { Style::Bad };
    let files = many(*files, "file");
    let took = span(Span::from_millis(*took_ms));
    let left = match left_out {
        0 => String::new(),
        left => format!(", {left} left out: `automaton workspace snapshots` names them"),
    };
    let (bytes, copied) = (size(*bytes), size(*copied_bytes));
    (style, format!("  Snapshot of the workspace: {files}, {bytes} ({copied} new), {took}{left}"))
}

fn restored_in_words(restored: &RestoreEnd) -> (Style, String) {
    let RestoreEnd { snapshot, created, replaced, failed, .. } = restored;
    let style = if *failed == 0 { Style::Good } else { Style::Bad };
    let failed = if *failed == 0 { String::new() } else { format!(", {failed} failed") };
    let text = format!(
        "Files were restored from the snapshot {snapshot}: {created} that were missing, \
         {replaced} that had changed{failed}"
    );
    (style, text)
}

/// A snapshot in a line or more.
pub(crate) fn record(record: &SnapshotRecord, clock: &WallClock) -> String {
    let SnapshotRecord { id, at, files, bytes, copied_bytes, .. } = record;
    let mut told = format!(
        "{id}  {}  {}, {} ({} new)\n    {}",
        clock.with_age(*at),
        many(*files, "file"),
        size(*bytes),
        size(*copied_bytes),
        cause(&record.cause)
    );
    for left in record.left_out.iter().take(NAMES) {
        let (path, why) = (short(&left.path, SHOWN_CHARS), left.why.words());
        told.push_str(&format!("\n    left out: {path} ({why})"));
    }
    let more = record.left_out_count().saturating_sub(NAMES as u64);
    if more > 0 {
        told.push_str(&format!("\n    left out: {more} more"));
    }
    told
}

fn cause(cause: &SnapshotCause) -> String {
    match cause {
        SnapshotCause::Command { command, turn, .. } => {
            format!("before `{}` of turn {turn}", short(command, SHOWN_CHARS))
        }
        SnapshotCause::Manual => "by hand".to_owned(),
        SnapshotCause::Restore { from } => format!("before the restore of {from}"),
    }
}

/// What a restore changes, as a list; `has` is said of what is done already.
pub(crate) fn changes(report: &RestoreReport) -> String {
    let rows = [
        ("Missing, come back", &report.created),
        ("Changed since, get their old content", &report.replaced),
        ("Get their old permissions or times", &report.attributes),
        ("In the way, get another name", &report.moved_aside),
        ("Fail", &report.failed),
    ];
    let told = rows.iter().filter(|(_, paths)| paths.count > 0);
    let told = told.map(|(what, paths)| format!("{what}: {}", names(paths)));
    told.collect::<Vec<_>>().join("\n")
}

fn names(paths: &NamedPaths) -> String {
    let shown = paths.first.iter().take(NAMES).map(|path| short(path, SHOWN_CHARS));
    let mut told = format!("{} ({}", paths.count, shown.collect::<Vec<_>>().join(", "));
    if paths.count > NAMES as u64 {
        told.push_str(", …");
    }
    plain(&(told + ")"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_and_the_first_are_named() {
        let mut report = RestoreReport::default();
        (0..7).for_each(|nth| report.created.add(|| format!("f{nth}\u{1b}")));
        report.failed.add(|| "x: no".to_owned());
        assert_eq!(
            changes(&report),
            "Missing, come back: 7 (f0, f1, f2, f3, f4, …)\nFail: 1 (x: no)"
        );
    }
}
