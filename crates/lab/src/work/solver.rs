//! Pure: the work of a competent model, for any task.
//!
//! A solver is a straight program over a [`SolverContext`], run anew at each request. It takes its
//! input from the request. If something is missing, it ends with the call that a model would make
//! for it. It writes facts to remember into a file, and reads them again when they are no longer
//! shown. Nothing is kept between two requests: a solver fails where a good model would.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::view::{CallView, RequestView, TextView, after, between, named_file, until_cut, within};

/// File with its notes.
const NOTES: &str = "notes.md";
/// Files that it writes, and other calls that it makes, in one turn.
const CALLS_MAX: usize = 4;
/// Lines that it asks for where a tool shows no ranges.
const LINES: usize = 60;
/// Beginning of a command that adds to its notes.
const ADDS: &str = "printf '%s\\n' ";

/// A call that it makes.
#[derive(Debug, Clone, PartialEq)]
pub struct SolverCall {
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
}

/// Answer of a solver.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SolverReply {
    /// Text.
    pub text: String,
    /// Calls.
    pub calls: Vec<SolverCall>,
    /// A fact that it was told or had read, needs, and no longer sees.
    pub missing: Option<String>,
}

/// Reason for which a solver stops in this request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SolverStop {
    /// It waits for what it called.
    Called,
    /// It does not see what it needs.
    Missing(String),
}

/// Result of a solver's step.
pub(super) type SolverResult<T> = Result<T, SolverStop>;

/// Function for a task. It returns the final words to the creator, once all is done.
pub(super) type Solver = fn(&mut SolverContext<'_>) -> SolverResult<String>;

/// Result of a command.
#[derive(Debug, Clone)]
pub(super) struct CommandResult {
    pub(super) succeeded: bool,
    pub(super) output: TextView,
}

impl CommandResult {
    pub(super) fn text(&self) -> String {
        self.output.lines.join("\n")
    }
}

/// A solver's view and hands, for one request.
#[derive(Debug)]
pub(super) struct SolverContext<'a> {
    view: &'a RequestView,
    calls: Vec<SolverCall>,
    /// Notes to add with the next call.
    marks: Vec<(String, String)>,
    notes: Option<BTreeMap<String, String>>,
}

/// Returns a model's answer to a request.
pub(super) fn answer(view: &RequestView, solver: Solver) -> SolverReply {
    if view.tools.is_empty() {
        let text = format!("I have to stop here. What is done is in {NOTES}; I go on from there.");
        return SolverReply { text, ..SolverReply::default() };
    }
    let mut ctx = SolverContext { view, calls: Vec::new(), marks: Vec::new(), notes: None };
    let ended = solver(&mut ctx).and_then(|words| ctx.finish(words));
    match ended {
        Ok(text) => SolverReply { text, ..SolverReply::default() },
        Err(SolverStop::Missing(what)) => {
            let text = format!("I cannot go on: I do not see {what} any more.");
            SolverReply { text, calls: Vec::new(), missing: Some(what) }
        }
        Err(SolverStop::Called) => {
            SolverReply { calls: ctx.into_calls(), ..SolverReply::default() }
        }
    }
}

/// A text as a pattern that matches nothing else.
fn escaped(text: &str) -> String {
    let special = |c: char| "\\.+*?()|[]{}^$".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Stops with a missing fact.
pub(super) fn missing<T>(what: impl Into<String>) -> SolverResult<T> {
    Err(SolverStop::Missing(what.into()))
}

impl SolverContext<'_> {
    /// Ends with words to the creator. Where words alone do not reach them, by a message.
    fn finish(&mut self, words: String) -> SolverResult<String> {
        if !self.calls.is_empty() || !self.marks.is_empty() {
            return Err(SolverStop::Called);
        }
        let reaches = ["plain text", "delivered", "plain words", "your final words"];
        let rules = self.view.told.first().map_or("", String::as_str);
        if !words.is_empty() && !reaches.iter().any(|word| rules.contains(word)) {
            self.send_message(&words)?;
            return Ok("Done.".to_owned());
        }
        Ok(words)
    }

    /// The calls of this turn: what it notes goes first.
    fn into_calls(self) -> Vec<SolverCall> {
        let mut calls = Vec::new();
        if !self.marks.is_empty() {
            let lines = self.marks.iter().map(|(key, value)| format!("'{key} = {value}'"));
            let lines = lines.collect::<Vec<_>>().join(" ");
            let command = format!("{ADDS}{lines} >> {NOTES}");
            calls.push(SolverCall {
                tool: "exec".to_owned(),
                arguments: json!({ "command": command }),
            });
        }
        calls.extend(self.calls);
        calls
    }

    /// Calls a tool, and waits for what comes of it.
    pub(super) fn call<T>(&mut self, tool: &str, arguments: Value) -> SolverResult<T> {
        self.queue(tool, arguments);
        Err(SolverStop::Called)
    }

    fn queue(&mut self, tool: &str, arguments: Value) {
        let call = SolverCall { tool: tool.to_owned(), arguments };
        if !self.calls.contains(&call) {
            self.calls.push(call);
        }
    }

    // What it was told.

    /// Returns true if the creator's words are shown, in a message or in the file that has it.
    pub(super) fn hears(&self, words: &str) -> bool {
        self.view.told.iter().any(|text| text.contains(words))
    }

    /// Returns the creator's words between two pieces of a line.
    pub(super) fn creator_said(&mut self, before: &str, behind: &str) -> SolverResult<String> {
        let found = |text: &String| between(text, before, behind).map(str::to_owned);
        if let Some(found) = self.view.told.iter().rev().find_map(found) {
            return Ok(found);
        }
        let line = self.in_letters(before)?;
        match line.as_deref().and_then(|line| between(line, before, behind)) {
            Some(found) => Ok(found.to_owned()),
            None => missing(format!("what was said after {before:?}")),
        }
    }

    /// An item of a list that the creator gave, by its number.
    pub(super) fn item(&mut self, number: &str) -> SolverResult<String> {
        let begin = format!("{number}. ");
        let lines = self.view.told.iter().flat_map(|text| text.lines());
        let items = lines.filter_map(|line| line.strip_prefix(&begin));
        let whole = items.filter(|item| !item.contains("[…") && !item.contains("…]"));
        if let Some(item) = whole.max_by_key(|item| item.len()) {
            return Ok(item.to_owned());
        }
        let line = self.in_letters(&begin)?;
        match line.as_deref().and_then(|line| line.strip_prefix(&begin)) {
            Some(item) => Ok(item.to_owned()),
            None => missing(format!("item {number} of the creator's list")),
        }
    }

    /// The line with a piece of text in a message that was too long to be shown.
    fn in_letters(&mut self, piece: &str) -> SolverResult<Option<String>> {
        for file in self.letters() {
            if let Some(line) = self.find(piece, &file)? {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// The first line of a file with a piece of text.
    pub(super) fn find(&mut self, piece: &str, file: &str) -> SolverResult<Option<String>> {
        let found = self.search(&escaped(piece), file)?;
        let number = found.first().and_then(|line| line.split(':').nth(1)?.parse().ok());
        let Some(number) = number else { return Ok(None) };
        Ok(self.lines(file, number, 1)?.pop())
    }

    /// The files that hold messages that were too long to be shown.
    fn letters(&self) -> Vec<String> {
        let lines = self.view.told.iter().skip(1).flat_map(|text| text.lines());
        let notices = lines.filter(|line| line.trim().starts_with('[') && line.contains("/root/"));
        notices.filter_map(named_file).collect::<BTreeSet<_>>().into_iter().collect()
    }

    // What it reads.

    /// The calls of a tool about a file, with their places among all.
    fn about<'b>(
        &'b self,
        tool: &'b str,
        path: &'b str,
    ) -> impl Iterator<Item = (usize, &'b CallView)> {
        let all = self.view.done.iter().enumerate();
        all.filter(move |(_, done)| done.tool == tool && within(done.text("path")) == within(path))
    }

    /// Returns the place of a file's last change, as far as it is shown.
    fn changed(&self, path: &str) -> Option<usize> {
        let writes = self.about("write_file", path).chain(self.about("edit_file", path));
        writes.map(|(at, _)| at).max()
    }

    /// The parts of a file that are shown: when, from which line on, and what.
    fn parts(&self, path: &str) -> Vec<(usize, usize, TextView)> {
        let read = self.about("read_file", path).filter_map(|(at, done)| {
            let from = done.arguments.get("offset").and_then(Value::as_u64).unwrap_or(1);
            let result = done.result.as_deref()?;
            if result.starts_with("error") {
                return None;
            }
            let text = if result == "(the file is empty)" { "" } else { result };
            Some((at, usize::try_from(from).unwrap_or(1).max(1), until_cut(text)))
        });
        let by_hand = self.view.done.iter().enumerate().filter_map(|(at, done)| {
            let range = after(done.text("command"), "tail -n +")?;
            let (from, rest) = range.split_once(' ')?;
            let of = rest.split(' ').next()?;
            done.result.as_deref().filter(|_| within(of) == within(path))?;
            let mut part = done.stdout();
            part.more |= part.lines.len() >= LINES;
            Some((at, from.parse().ok()?, part))
        });
        let since = self.changed(path);
        let all = read.chain(by_hand).filter(|(at, ..)| since.is_none_or(|since| *at > since));
        all.collect()
    }

    /// Returns true if a file was looked for in vain.
    fn is_absent(&self, path: &str) -> bool {
        let last = self.about("read_file", path).last();
        let failed = last.filter(|(at, _)| self.changed(path).is_none_or(|since| *at > since));
        failed.and_then(|(_, done)| done.result.as_deref()).is_some_and(|result| {
            let no = ["no such", "No such", "not there", "not exist", "not found", "no file"];
            result.starts_with("error") && no.iter().any(|no| result.contains(no))
        })
    }

    /// Returns true if a result is of the last turn. An older one may be shortened, and then a
    /// model asks again.
    fn is_new(&self, at: usize) -> bool {
        at + CALLS_MAX + 1 >= self.view.done.len()
    }

    /// Asks for a file from a line on.
    fn ask_from<T>(&mut self, path: &str, from: usize) -> SolverResult<T> {
        if from <= 1 {
            return self.call("read_file", json!({ "path": path }));
        }
        if self.view.takes("read_file", "offset") {
            return self.call("read_file", json!({ "path": path, "offset": from }));
        }
        let command = format!("tail -n +{from} {path} | head -n {LINES}");
        self.call("exec", json!({ "command": command }))
    }

    /// The next part of a file from a line on: its lines, and whether there are more.
    fn part(&mut self, path: &str, from: usize) -> SolverResult<(Vec<String>, bool)> {
        let mut stuck = false;
        // What was read last is what the file is now.
        for (at, begin, part) in self.parts(path).into_iter().rev() {
            let skipped = from.saturating_sub(begin);
            if begin <= from && (skipped < part.lines.len() || !part.more) {
                let lines = part.lines.into_iter().skip(skipped).collect();
                return Ok((lines, part.more));
            }
            // An older result may be shown shortened: then a model reads the file again.
            let is_of_last_turn = at + self.view.newest >= self.view.done.len();
            stuck |= begin == from && part.more && is_of_last_turn;
        }
        if stuck {
            return missing(format!("any line of {path} from line {from} on"));
        }
        self.ask_from(path, from)
    }

    /// A whole file, out of what is shown of it.
    pub(super) fn read(&mut self, path: &str) -> SolverResult<String> {
        let mut text = Vec::new();
        let mut from = 1;
        loop {
            let (lines, more) = self.part(path, from)?;
            from += lines.len();
            text.extend(lines);
            if !more {
                return Ok(text.join("\n"));
            }
        }
    }

    /// A range of lines of a file that need not be read whole.
    pub(super) fn lines(
        &mut self,
        path: &str,
        from: usize,
        count: usize,
    ) -> SolverResult<Vec<String>> {
        let mut found = Vec::new();
        loop {
            let (lines, more) = self.part(path, from + found.len())?;
            found.extend(lines);
            if found.len() >= count || !more {
                found.truncate(count);
                return Ok(found);
            }
        }
    }

    /// Reads through a file that may be larger than what can be shown at once, and notes
    /// what it finds in it: a key and a value.
    pub(super) fn scan(
        &mut self,
        path: &str,
        mut finds: impl FnMut(&str) -> Option<(String, String)>,
    ) -> SolverResult<()> {
        let place = format!("read {path} up to");
        let done = "its end";
        let known = self.noted(&place)?;
        if known.as_deref() == Some(done) {
            return Ok(());
        }
        let mut from = known.and_then(|known| known.parse().ok()).unwrap_or(1_usize);
        loop {
            let (lines, more) = match self.part(path, from) {
                Err(SolverStop::Called) => {
                    self.mark(&place, &from.to_string());
                    return Err(SolverStop::Called);
                }
                part => part?,
            };
            from += lines.len();
            for (key, value) in lines.iter().filter_map(|line| finds(line)) {
                self.mark(&key, &value);
            }
            if !more {
                self.mark(&place, done);
                return Ok(());
            }
        }
    }

    /// The names in a folder.
    pub(super) fn listed(&mut self, folder: &str) -> SolverResult<Vec<String>> {
        let command = format!("ls {folder}");
        let listed = self.about("list_files", folder).last().and_then(|(_, done)| {
            let shown = until_cut(done.result.as_deref()?);
            Some((shown.more, shown.lines))
        });
        match listed {
            None => self.call("list_files", json!({ "path": folder })),
            Some((false, lines)) => {
                let names = lines.iter().filter_map(|line| line.split_whitespace().last());
                Ok(names.filter(|name| !name.ends_with('/')).map(str::to_owned).collect())
            }
            Some((true, _)) => {
                let ran = self.run(&command)?;
                Ok(ran.output.lines)
            }
        }
    }

    /// A command and what it wrote, as often as it is not shown.
    pub(super) fn run(&mut self, command: &str) -> SolverResult<CommandResult> {
        self.run_since(0, command)
    }

    /// The same, of a run that came after a place among the calls.
    pub(super) fn run_since(&mut self, since: usize, command: &str) -> SolverResult<CommandResult> {
        let ran = self.view.done.iter().enumerate().skip(since).rev().find(|(at, done)| {
            let is = done.tool == "exec" && done.text("command") == command;
            is && done.result.is_some() && (self.is_new(*at) || !done.stdout().more)
        });
        match ran {
            Some((_, done)) => {
                Ok(CommandResult { succeeded: done.succeeded(), output: done.stdout() })
            }
            None => self.call("exec", json!({ "command": command })),
        }
    }

    /// The place behind the last call that changed a file or said what was to be changed.
    pub(super) fn since_edits(&self) -> usize {
        let edits = self.view.done.iter().rposition(|done| {
            let writes =
                done.text("command").contains("> ") && !done.text("command").contains(NOTES);
            ["edit_file", "write_file"].contains(&done.tool.as_str()) || writes
        });
        edits.map_or(0, |at| at + 1)
    }

    /// The last result of a tool whose arguments it knows.
    pub(super) fn last(&self, tool: &str) -> Option<&CallView> {
        self.view.done.iter().rev().find(|done| done.tool == tool && done.result.is_some())
    }

    /// Lines of files that match, as `search_files` tells them.
    pub(super) fn search(&mut self, pattern: &str, path: &str) -> SolverResult<Vec<String>> {
        let found = self.about("search_files", path).filter_map(|(at, done)| {
            let shown = until_cut(done.result.as_deref()?);
            let is = done.text("pattern") == pattern && (self.is_new(at) || !shown.more);
            is.then_some(shown.lines)
        });
        match found.last() {
            Some(lines) => Ok(lines),
            None => self.call("search_files", json!({ "pattern": pattern, "path": path })),
        }
    }

    // What it does.

    /// Makes a call that must be made once, and goes on to the next while there is room in
    /// this turn. Whether it was made stands in the notes.
    pub(super) fn once(&mut self, key: &str, tool: &str, arguments: Value) -> SolverResult<()> {
        let key = format!("did {key}");
        if self.noted(&key)?.is_some() {
            return Ok(());
        }
        if self.has_done(tool, &arguments) {
            self.mark(&key, "yes");
            return Ok(());
        }
        self.queue(tool, arguments);
        if self.calls.len() >= CALLS_MAX { Err(SolverStop::Called) } else { Ok(()) }
    }

    /// Writes a file once.
    pub(super) fn write(&mut self, key: &str, path: &str, content: &str) -> SolverResult<()> {
        self.once(key, "write_file", json!({ "path": path, "content": content }))
    }

    /// Sends the creator a message once, as the answer to the one with these words.
    pub(super) fn tell_once(&mut self, key: &str, words: &str, about: &str) -> SolverResult<()> {
        let mut arguments = json!({ "to_address": "creator", "content": words });
        if let (Some(id), Some(all)) = (self.id_of(about), arguments.as_object_mut()) {
            all.insert("reply_to".to_owned(), json!(id));
        }
        self.once(key, "send_message", arguments)
    }

    /// The id of the message with these words, where one stands before it.
    fn id_of(&self, words: &str) -> Option<String> {
        let text = self.view.told.iter().rev().find(|text| text.contains(words))?;
        let before = text.split(words).next()?;
        let mut lines = before.lines().rev().take(3);
        lines.find_map(|line| {
            let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
            words.find(|word| word.len() == 26 && word.starts_with('0')).map(str::to_owned)
        })
    }

    /// Returns true if something is noted as done.
    pub(super) fn is_done(&mut self, key: &str) -> SolverResult<bool> {
        Ok(self.noted(&format!("did {key}"))?.is_some())
    }

    /// Notes that something is done.
    pub(super) fn mark_done(&mut self, key: &str) {
        self.mark(&format!("did {key}"), "yes");
    }

    /// Has a call made in this turn.
    pub(super) fn begin(&mut self, tool: &str, arguments: Value) {
        self.queue(tool, arguments);
    }

    /// Returns the number of a tool's calls for a file, as far as they are shown.
    pub(super) fn calls_in(&self, path: &str, tool: &str) -> usize {
        self.about(tool, path).filter(|(_, done)| done.succeeded()).count()
    }

    /// Writes down what it noted before it goes on.
    pub(super) fn flush(&mut self) -> SolverResult<()> {
        if self.marks.is_empty() { self.settle() } else { Err(SolverStop::Called) }
    }

    /// Waits for what was begun in this turn.
    pub(super) fn settle(&mut self) -> SolverResult<()> {
        if self.calls.is_empty() { Ok(()) } else { Err(SolverStop::Called) }
    }

    /// Returns true if a call is shown as done. A shortened call counts if all that is shown is
    /// the same.
    fn has_done(&self, tool: &str, arguments: &Value) -> bool {
        let same =
            |key: &str, wanted: &Value, done: &CallView| match (done.arguments.get(key), wanted) {
                (Some(Value::String(shown)), Value::String(wanted)) => {
                    let head = shown.split("[").next().unwrap_or_default().trim_end();
                    shown == wanted || (shown.contains("[") && wanted.starts_with(head))
                }
                (shown, wanted) => shown == Some(wanted),
            };
        let done = self.view.done.iter().filter(|done| done.tool == tool && done.succeeded());
        let all = arguments.as_object();
        let mut done = done.filter(|done| {
            all.is_some_and(|all| all.iter().all(|(key, wanted)| same(key, wanted, done)))
        });
        done.next().is_some()
    }

    /// Sends the creator a message, once.
    pub(super) fn send_message(&mut self, words: &str) -> SolverResult<()> {
        let arguments = json!({ "to_address": "creator", "content": words });
        if self.has_done("send_message", &arguments) {
            return Ok(());
        }
        self.call("send_message", arguments)
    }

    // What it keeps.

    /// Notes something.
    pub(super) fn mark(&mut self, key: &str, value: &str) {
        let clean = |text: &str| text.replace('\'', "’").replace('\n', " ");
        let key = clean(key);
        let value = clean(value);
        let mark = (key.clone(), value.clone());
        if let Some(notes) = &mut self.notes
            && notes.insert(key, value.clone()).is_none_or(|before| before != value)
        {
            self.marks.push(mark);
        }
    }

    /// Returns a note.
    pub(super) fn noted(&mut self, key: &str) -> SolverResult<Option<String>> {
        Ok(self.notes()?.get(&key.replace('\'', "’")).cloned())
    }

    /// Returns a note, or finds the value now and notes it.
    pub(super) fn memo(
        &mut self,
        key: &str,
        find: impl FnOnce(&mut Self) -> SolverResult<String>,
    ) -> SolverResult<String> {
        if let Some(known) = self.noted(key)? {
            return Ok(known);
        }
        let found = find(self)?;
        self.mark(key, &found);
        Ok(found)
    }

    /// All that it noted: the file as it was last read, and what was added since.
    fn notes(&mut self) -> SolverResult<&mut BTreeMap<String, String>> {
        if self.notes.is_none() {
            let absent = self.is_absent(NOTES);
            let text = if absent { String::new() } else { self.read(NOTES)? };
            let since = self.about("read_file", NOTES).last().map_or(0, |(at, _)| at);
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for done in self.view.done.iter().skip(since) {
                let Some(added) = done.text("command").strip_prefix(ADDS) else { continue };
                let Some(added) = added.strip_suffix(&format!(" >> {NOTES}")) else {
                    // What it noted is not shown whole: the file has it.
                    return self.call("read_file", json!({ "path": NOTES }));
                };
                if done.succeeded() {
                    let added = added.trim_matches('\'').split("' '");
                    lines.extend(added.map(str::to_owned));
                }
            }
            let pair = |line: &String| {
                let (key, value) = line.split_once(" = ")?;
                Some((key.to_owned(), value.to_owned()))
            };
            self.notes = Some(lines.iter().filter_map(pair).collect());
        }
        self.notes.as_mut().map_or_else(|| missing("its notes"), Ok)
    }
}
