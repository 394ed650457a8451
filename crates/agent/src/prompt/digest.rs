//! Pure: what turns did, summed up by rules, since the prompt does not show them any more.
//!
//! Which files were read and written, which commands ran and how they ended, what was
//! stored, sent and asked, what was decided, what is still open, and what the model told
//! itself. A sum must never be shown as
//! anything but others' text: its label is the lowest of its sources, each of which it
//! names by its turn. What has no room goes, the oldest first, and is counted.

use automaton_core::id::SessionId;
use automaton_core::record::{CallRecord, CallStatus, SessionSummary, TurnInput, TurnRecord};
use automaton_core::tool::canonical;
use automaton_core::trust::{Label, Labelled};
use automaton_memory::tokens;
use automaton_policy::explain::ASKS;
use automaton_store::{DigestRow, HistoryPosition};
use automaton_tools::result::FrameNonce;
use automaton_tools::{CallDigest, CallKind};
use serde::{Deserialize, Serialize};

use super::history::MessageStyle;
use crate::toolbox::ToolSet;
use crate::turn::APPROVED_MODEL;

/// Characters of one line of a sum.
const LINE_CHARS_MAX: usize = 160;

/// Tokens that a heading, one of a summary, and a line beyond its text, cost.
const HEADING_TOKENS: u32 = 12;
const SUMMARY_HEADING_TOKENS: u32 = 24;
const LINE_TOKENS: u32 = 12;

/// Thoughts that stay as long as there is anything else to leave out.
const THOUGHTS_KEPT: usize = 12;

/// Summary of turns, made by rules.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct HistoryDigest {
    /// Number of turns.
    turns: u32,
    /// Number of omitted lines.
    dropped: u32,
    /// Remaining lines, in the order in which they were last done.
    lines: Vec<DigestLine>,
    /// The cycle of the newest turn, and what that had heard until then.
    heard: Option<(SessionId, Label)>,
    /// Summaries by a model, in place of most lines of older turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    summaries: Vec<SessionSummary>,
    /// Summaries since then. They are shown when history is cut the next time, so that the
    /// beginning of the prompt stays the same until then.
    #[serde(skip)]
    newer: Vec<SessionSummary>,
}

/// One thing that was done, once or several times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DigestLine {
    kind: DigestKind,
    text: String,
    /// End of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    end: String,
    /// True if it is still open: it failed, never ran, or nobody has answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    open: bool,
    /// The last turn that did it, and how many times it was done.
    turn: u64,
    times: u32,
    /// Lowest label of the texts that the turn, or its cycle before, had read.
    label: Label,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DigestKind {
    Asked,
    Wrote,
    Read,
    Ran,
    Stored,
    Sent,
    Called,
    Decided,
    Thought,
}

impl From<CallKind> for DigestKind {
    fn from(kind: CallKind) -> Self {
        match kind {
            CallKind::Wrote => Self::Wrote,
            CallKind::Read => Self::Read,
            CallKind::Ran => Self::Ran,
            CallKind::Stored => Self::Stored,
            CallKind::Sent => Self::Sent,
            CallKind::Called => Self::Called,
        }
    }
}

/// Heading of the lines of every kind that are still open.
const OPEN_HEADING: &str = "Still open then (failed, not run, unknown, or not answered):";

impl DigestKind {
    const ALL: [Self; 9] = {
        use DigestKind::{Asked, Called, Decided, Ran, Read, Sent, Stored, Thought, Wrote};
        [Asked, Wrote, Read, Ran, Stored, Sent, Called, Decided, Thought]
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
            Self::Decided => "What was refused, and what your creator decided:",
            Self::Thought => "What you said:",
        }
    }

    /// Returns true if lines of this kind stay beside a summary of their turns: they hold exact
    /// words and changes.
    const fn outlasts_summary(self) -> bool {
        match self {
            Self::Asked | Self::Wrote | Self::Stored | Self::Sent | Self::Decided => true,
            Self::Read | Self::Ran | Self::Called | Self::Thought => false,
        }
    }

    /// Returns the words before a line of this kind among others.
    const fn verb(self) -> &'static str {
        match self {
            Self::Wrote => "write ",
            Self::Read => "read ",
            Self::Ran => "run ",
            Self::Stored => "remember ",
            Self::Sent => "send ",
            Self::Asked | Self::Called | Self::Decided | Self::Thought => "",
        }
    }
}

impl HistoryDigest {
    /// A sum as it was kept; an empty one where none was, or where it cannot be read.
    pub(crate) fn from_row(kept: Option<&DigestRow>) -> Self {
        // silent-ok: it is written by this module alone; without it only the sum is lost.
        let read = kept.and_then(|kept| serde_json::from_str(&kept.body).ok());
        let mut digest: Self = read.unwrap_or_default();
        let known = digest.summaries.last().map_or(0, |newest| newest.upto);
        let newer = kept.into_iter().flat_map(|kept| &kept.summaries);
        digest.newer = newer.filter(|summary| summary.upto > known).cloned().collect();
        digest
    }

    /// The sum as it is kept, up to where the history begins.
    pub(crate) fn digest_row(
        &self,
        place: HistoryPosition,
    ) -> Result<DigestRow, serde_json::Error> {
        let body = serde_json::to_string(self)?;
        Ok(DigestRow { upto: place.from, label: self.label(), body, summaries: Vec::new() })
    }

    /// The least trusted label of what is in it; a tool's at best, so that it is quoted.
    pub(crate) fn label(&self) -> Label {
        let summaries = self.summaries.iter().map(|summary| summary.label);
        let lines = self.lines.iter().map(|line| line.label);
        summaries.chain(lines).fold(Label::Tool, Label::meet)
    }

    /// Returns true if it is empty.
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
            let mut line = DigestLine { label, ..line.clone() };
            let about = |old: &DigestLine| (old.kind, &old.text) == (line.kind, &line.text);
            // What came of it last is what is open, or is not.
            self.lines.iter_mut().filter(|old| about(old)).for_each(|old| old.open = false);
            let same = |old: &DigestLine| about(old) && old.end == line.end;
            if let Some(place) = self.lines.iter().position(same) {
                let old = self.lines.remove(place);
                line.times = line.times.saturating_add(old.times);
                line.label = line.label.meet(old.label);
            }
            self.lines.push(line);
        }
    }

    /// Shows what a model has made of turns since, in place of what it tells better than rules.
    pub(crate) fn take_summaries(&mut self) {
        for summary in std::mem::take(&mut self.newer) {
            let told = summary.from..summary.upto;
            let stays = |line: &DigestLine| line.open || line.kind.outlasts_summary();
            self.lines.retain(|line| !told.contains(&line.turn) || stays(line));
            self.summaries.push(summary);
        }
    }

    /// Leaves out what has no room in so many tokens; summaries have half of it at most.
    pub(crate) fn fit(&mut self, tokens: u32) {
        let headings = HEADING_TOKENS * (3 + u32::try_from(DigestKind::ALL.len()).unwrap_or(8));
        let room = tokens.saturating_sub(headings);
        let cost_of =
            |summary: &SessionSummary| tokens::estimate(&summary.text) + SUMMARY_HEADING_TOKENS;
        let mut told: u32 = self.summaries.iter().map(cost_of).sum();
        while told > room / 2 && !self.summaries.is_empty() {
            told = told.saturating_sub(cost_of(&self.summaries.remove(0)));
            self.dropped = self.dropped.saturating_add(1);
        }
        let room = room.saturating_sub(told);
        let mut total: u32 = self.lines.iter().map(cost).sum();
        while total > room && !self.lines.is_empty() {
            let thoughts =
                self.lines.iter().filter(|line| line.kind == DigestKind::Thought).count();
            let oldest_thought =
                self.lines.iter().position(|line| line.kind == DigestKind::Thought);
            let place = oldest_thought.filter(|_| thoughts > THOUGHTS_KEPT).unwrap_or(0);
            total = total.saturating_sub(cost(&self.lines.remove(place)));
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// The sum as quoted text, between marks that none of its sources could know.
    pub(crate) fn render(&self, upto: u64, nonce: &FrameNonce, manner: MessageStyle<'_>) -> String {
        if self.is_empty() {
            return String::new();
        }
        let turns = match self.turns {
            1 => "The turn".to_owned(),
            turns => format!("The {turns} turns"),
        };
        let are = if self.turns == 1 { "is" } else { "are" };
        let mut text = format!("{turns} before turn {upto} {are} not shown any more. In short:");
        for SessionSummary { from, upto, text: lines, .. } in &self.summaries {
            let last = upto.saturating_sub(1);
            text.push_str(&format!("\nTurns {from} to {last}, as a model sums them up:\n{lines}"));
        }
        let mut list = |heading: &str, is_in: &dyn Fn(&&DigestLine) -> bool| {
            let lines: String = self.lines.iter().filter(is_in).map(DigestLine::render).collect();
            if !lines.is_empty() {
                text.push_str(&format!("\n{heading}{lines}"));
            }
        };
        for kind in DigestKind::ALL {
            list(kind.heading(), &|line| line.kind == kind && !line.open);
        }
        list(OPEN_HEADING, &|line| line.open);
        if self.dropped > 0 {
            text.push_str(&format!("\n({} older entries are left out.)", self.dropped));
        }
        let said = Labelled::new(self.label(), "older turns", text);
        manner.labelled(&said, &said.text, nonce)
    }
}

impl DigestLine {
    fn render(&self) -> String {
        let Self { text, end, turn, times, .. } = self;
        let verb = if self.open { self.kind.verb() } else { "" };
        let end = if end.is_empty() { String::new() } else { format!(": {end}") };
        let times = if *times > 1 { format!(", {times} times") } else { String::new() };
        format!("\n- {verb}{text}{end} (turn {turn}{times})")
    }
}

fn cost(line: &DigestLine) -> u32 {
    tokens::estimate(&line.text) + tokens::estimate(&line.end) + LINE_TOKENS
}

/// Summary of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnDigest {
    session: SessionId,
    label: Label,
    lines: Vec<DigestLine>,
}

impl TurnDigest {
    /// Sums a turn up that has brought text of this label.
    pub(crate) fn from_turn(turn: &TurnRecord, label: Label, tools: &ToolSet) -> Self {
        let line = |kind, text: &str, end: String, open| DigestLine {
            kind,
            text: one_line(text),
            end,
            open,
            turn: turn.seq,
            times: 1,
            label,
        };
        let is_approved = turn.usage.as_ref().is_some_and(|usage| usage.model == APPROVED_MODEL);
        let answers = turn.inputs.iter().filter_map(|input| {
            let (subject, end) = answer(input)?;
            Some(line(DigestKind::Decided, subject, end.to_owned(), false))
        });
        let creators = turn.inputs.iter().filter(|input| input.said.label == Label::Creator);
        let creators = creators.filter(|input| answer(input).is_none());
        let mut lines: Vec<DigestLine> = creators
            .map(|input| line(DigestKind::Asked, &input.said.text, String::new(), false))
            .chain(answers)
            .collect();
        lines.push(line(DigestKind::Thought, &turn.thought, String::new(), false));
        for call in &turn.calls {
            if let Some((end, is_asked)) = refusal(call) {
                lines.push(line(DigestKind::Decided, &subject(call), end, is_asked));
            } else if let Some(about) = tools.digest(call) {
                let open = is_open(call, &about);
                let end = end_of(call, &about);
                lines.push(line(about.kind.into(), &about.subject, end, open));
            }
            let made = line(DigestKind::Decided, &subject(call), APPROVED.to_owned(), false);
            if is_approved && !lines.contains(&made) {
                lines.push(made);
            }
        }
        lines.retain(|line| !line.text.is_empty());
        Self { session: turn.session, label, lines }
    }
}

/// Ends of a question to the creator.
const APPROVED: &str = "approved by your creator";
const DENIED: &str = "denied by your creator";

/// Returns the subject of a question and the creator's answer.
fn answer(input: &TurnInput) -> Option<(&str, &'static str)> {
    let text = input.said.text.as_str();
    let answers = [("Your creator approved: ", APPROVED), ("Your creator denied: ", DENIED)];
    let found = answers.iter().find_map(|(mark, end)| Some((text.strip_prefix(mark)?, *end)));
    // A message may begin as it likes.
    found.filter(|_| input.message.is_none())
}

/// Returns the beginning of a question to the creator about a call.
fn subject(call: &CallRecord) -> String {
    let arguments = serde_json::from_str(&call.arguments);
    let arguments = arguments.map_or_else(|_| call.arguments.clone(), |value| canonical(&value));
    format!("{} {arguments}", call.tool)
}

/// Returns the reason for which the policy refused a call, and whether it waits for the creator's
/// answer.
fn refusal(call: &CallRecord) -> Option<(String, bool)> {
    let result = call.result.as_ref().filter(|_| call.status == CallStatus::Refused)?;
    let text = result.text.as_str();
    let text = text.split_once(" was ").map_or(text, |(_, text)| text);
    Some((one_line(text), text.starts_with(ASKS)))
}

/// Returns whether a call did not do what it was made for, as far as anybody knows.
fn is_open(call: &CallRecord, about: &CallDigest) -> bool {
    use CallStatus::{Failed, NotStarted, Skipped, Unknown};
    matches!(call.status, Failed | NotStarted | Skipped | Unknown)
        || (call.status == CallStatus::Done && about.failed)
}

/// Returns how a call ended: in its tool's words where it was done, else by its status.
fn end_of(call: &CallRecord, about: &CallDigest) -> String {
    match call.status {
        CallStatus::Done => one_line(&about.end),
        status => status.to_string(),
    }
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
