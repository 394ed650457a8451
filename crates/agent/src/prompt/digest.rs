//! Pure: what turns did, summed up by rules, since the prompt does not show them any more.
//!
//! Which files were read and written, which commands ran and how they ended, what was
//! stored, sent and asked, and what the model told itself. A sum must never be shown as
//! anything but others' text: its label is the lowest of its sources, each of which it
//! names by its turn. What has no room goes, the oldest first, and is counted.

use automaton_core::id::SessionId;
use automaton_core::record::{CallRecord, CallStatus, TurnRecord};
use automaton_core::trust::{Label, Labelled};
use automaton_memory::tokens;
use automaton_store::{KeptDigest, Place};
use automaton_tools::result::Nonce;
use serde::{Deserialize, Serialize};

use super::history::Manner;

/// Characters of one line of a sum.
const LINE_CHARS_MAX: usize = 160;

/// Characters of the last line of a command.
const LAST_CHARS_MAX: usize = 80;

/// Tokens that a heading, and a line beyond its text, cost.
const HEADING_TOKENS: u32 = 12;
const LINE_TOKENS: u32 = 12;

/// Thoughts that stay as long as there is anything else to leave out.
const THOUGHTS_KEPT: usize = 12;

/// What turns did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Digest {
    /// How many turns.
    turns: u32,
    /// What had no room.
    dropped: u32,
    /// What is left, in the order in which it was last done.
    lines: Vec<Line>,
    /// The cycle of the newest turn, and what that had heard until then.
    heard: Option<(SessionId, Label)>,
}

/// One thing that was done, once or several times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    kind: Kind,
    text: String,
    /// How it ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    end: String,
    /// The last turn that did it, and how many times it was done.
    turn: u64,
    times: u32,
    /// What the turn, or its cycle before, had read.
    label: Label,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Asked,
    Wrote,
    Read,
    Ran,
    Stored,
    Sent,
    Called,
    Thought,
}

impl Kind {
    const ALL: [Self; 8] = {
        use Kind::{Asked, Called, Ran, Read, Sent, Stored, Thought, Wrote};
        [Asked, Wrote, Read, Ran, Stored, Sent, Called, Thought]
    };

    const fn heading(self) -> &'static str {
        match self {
            Self::Asked => "What your creator said, in its first words:",
            Self::Wrote => "Files that you wrote:",
            Self::Read => "Files and folders that you read:",
            Self::Ran => "Commands, and how they ended:",
            Self::Stored => "Facts that you stored:",
            Self::Sent => "Messages that you sent:",
            Self::Called => "Other calls:",
            Self::Thought => "What you said:",
        }
    }
}

impl Digest {
    /// A sum as it was kept; an empty one where none was, or where it cannot be read.
    pub(crate) fn of(kept: Option<&KeptDigest>) -> Self {
        // silent-ok: it is written by this module alone; without it only the sum is lost.
        kept.and_then(|kept| serde_json::from_str(&kept.body).ok()).unwrap_or_default()
    }

    /// The sum as it is kept, up to where the history begins.
    pub(crate) fn kept(&self, place: Place) -> Result<KeptDigest, serde_json::Error> {
        let body = serde_json::to_string(self)?;
        Ok(KeptDigest { upto: place.from, label: self.label(), body })
    }

    /// The least trusted label of what is in it; a tool's at best, so that it is quoted.
    pub(crate) fn label(&self) -> Label {
        self.lines.iter().map(|line| line.label).fold(Label::Tool, Label::meet)
    }

    /// Whether it sums up nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.turns == 0
    }

    /// Adds a turn that is not shown any more.
    pub(crate) fn add(&mut self, turn: &TurnDigest) {
        let before = self.heard.filter(|(session, _)| *session == turn.session);
        let label = before.map_or(turn.label, |(_, heard)| heard.meet(turn.label));
        self.heard = Some((turn.session, label));
        self.turns = self.turns.saturating_add(1);
        for line in &turn.lines {
            let mut line = Line { label, ..line.clone() };
            let same =
                |old: &Line| (old.kind, &old.text, &old.end) == (line.kind, &line.text, &line.end);
            if let Some(place) = self.lines.iter().position(same) {
                let old = self.lines.remove(place);
                line.times = line.times.saturating_add(old.times);
                line.label = line.label.meet(old.label);
            }
            self.lines.push(line);
        }
    }

    /// Leaves out what has no room in so many tokens.
    pub(crate) fn fit(&mut self, tokens: u32) {
        let headings = HEADING_TOKENS * (2 + u32::try_from(Kind::ALL.len()).unwrap_or(8));
        let room = tokens.saturating_sub(headings);
        let mut total: u32 = self.lines.iter().map(cost).sum();
        while total > room && !self.lines.is_empty() {
            let thoughts = self.lines.iter().filter(|line| line.kind == Kind::Thought).count();
            let oldest_thought = self.lines.iter().position(|line| line.kind == Kind::Thought);
            let place = oldest_thought.filter(|_| thoughts > THOUGHTS_KEPT).unwrap_or(0);
            total = total.saturating_sub(cost(&self.lines.remove(place)));
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// The sum as quoted text, between marks that none of its sources could know.
    pub(crate) fn render(&self, upto: u64, nonce: &Nonce, manner: Manner<'_>) -> String {
        if self.is_empty() {
            return String::new();
        }
        let turns = match self.turns {
            1 => "The turn".to_owned(),
            turns => format!("The {turns} turns"),
        };
        let are = if self.turns == 1 { "is" } else { "are" };
        let mut text = format!("{turns} before turn {upto} {are} not shown any more. In short:");
        for kind in Kind::ALL {
            let mut lines = self.lines.iter().filter(|line| line.kind == kind).peekable();
            if lines.peek().is_some() {
                text.push('\n');
                text.push_str(kind.heading());
            }
            lines.for_each(|line| text.push_str(&line.render()));
        }
        if self.dropped > 0 {
            text.push_str(&format!("\n({} older entries are left out.)", self.dropped));
        }
        let said = Labelled::new(self.label(), "older turns", text);
        manner.labelled(&said, &said.text, nonce)
    }
}

impl Line {
    fn render(&self) -> String {
        let Self { text, end, turn, times, .. } = self;
        let end = if end.is_empty() { String::new() } else { format!(": {end}") };
        let times = if *times > 1 { format!(", {times} times") } else { String::new() };
        format!("\n- {text}{end} (turn {turn}{times})")
    }
}

fn cost(line: &Line) -> u32 {
    tokens::estimate(&line.text) + tokens::estimate(&line.end) + LINE_TOKENS
}

/// What one turn did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnDigest {
    session: SessionId,
    label: Label,
    lines: Vec<Line>,
}

impl TurnDigest {
    /// Sums a turn up that has brought text of this label.
    pub(crate) fn of(turn: &TurnRecord, label: Label) -> Self {
        let line = |kind, text: &str, end: String| Line {
            kind,
            text: one_line(text),
            end,
            turn: turn.seq,
            times: 1,
            label,
        };
        let creators = turn.inputs.iter().filter(|input| input.said.label == Label::Creator);
        let mut lines: Vec<Line> =
            creators.map(|input| line(Kind::Asked, &input.said.text, String::new())).collect();
        lines.push(line(Kind::Thought, &turn.thought, String::new()));
        lines.extend(turn.calls.iter().filter_map(|call| {
            let (kind, text) = deed(call)?;
            Some(line(kind, &text, end_of(call, kind)))
        }));
        lines.retain(|line| !line.text.is_empty());
        Self { session: turn.session, label, lines }
    }
}

/// What tells of a call what it was about.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct About {
    path: Option<String>,
    pattern: String,
    command: String,
    key: String,
    value: String,
    content: String,
}

/// What a call was about, by its tool.
fn deed(call: &CallRecord) -> Option<(Kind, String)> {
    // silent-ok: arguments of another form belong to a call that never ran.
    let about: About = serde_json::from_str(&call.arguments).unwrap_or_default();
    let path = about.path.unwrap_or_else(|| ".".to_owned());
    Some(match call.tool.as_str() {
        "sleep" => return None,
        "write_file" | "edit_file" => (Kind::Wrote, path),
        "read_file" | "list_files" => (Kind::Read, path),
        "search_files" => (Kind::Read, format!("{path} for {:?}", about.pattern)),
        "exec" | "start_process" => (Kind::Ran, about.command),
        "remember_fact" => (Kind::Stored, format!("{}: {}", about.key, about.value)),
        "send_message" => (Kind::Sent, about.content),
        tool => (Kind::Called, format!("{tool} {}", call.arguments)),
    })
}

/// How a call ended: a command with its code, anything else only where it failed.
fn end_of(call: &CallRecord, kind: Kind) -> String {
    if call.status != CallStatus::Done {
        return call.status.to_string();
    }
    let result = call.result.as_ref().map_or("", |result| result.text.as_str());
    let code = result.lines().find_map(|line| line.strip_prefix("exit_code: "));
    let Some(code) = code.filter(|_| kind == Kind::Ran) else { return String::new() };
    let last = last_words(result).map_or_else(String::new, |last| format!(", last line: {last}"));
    one_line(&format!("exit code {code}{last}"))
}

/// The last line that a command wrote, which often says what came of it; of its errors,
/// where it wrote nothing else.
fn last_words(result: &str) -> Option<&str> {
    let (_, outputs) = result.split_once("\nstdout: ")?;
    let (out, errors) = outputs.rsplit_once("\nstderr: ")?;
    let end = ["\nnote: ", "\nlimits: ", "\n["].iter().filter_map(|mark| errors.find(mark)).min();
    let errors = errors.get(..end.unwrap_or(errors.len()))?;
    [out, errors].into_iter().find_map(|text| {
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        let end = line.char_indices().nth(LAST_CHARS_MAX).map_or(line.len(), |(at, _)| at);
        line.get(..end)
    })
}

/// The first line of a text that has any words, cut to a length.
fn one_line(text: &str) -> String {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let whole = text.trim().len() == first.len();
    let end = first.char_indices().nth(LINE_CHARS_MAX).map_or(first.len(), |(at, _)| at);
    let kept: String = first[..end].chars().filter(|c| !c.is_control()).collect();
    if whole && end == first.len() { kept } else { format!("{kept} […]") }
}

#[cfg(test)]
mod tests;
