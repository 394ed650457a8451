//! Pure: a request as a model reads it: what it was told, what it called, what came back.
//!
//! Nothing but the request is looked at, and nothing is remembered from one to the next.
//! What the runtime cut is recognised by what stands in its place and by nothing else.

use std::collections::{BTreeMap, BTreeSet};

use automaton_core::wire::chat::{ChatRequest, ChatRole};
use serde_json::Value;

/// A request, read.
#[derive(Debug)]
pub(super) struct RequestView {
    /// Texts of the system and of the user's side, oldest first.
    pub(super) told: Vec<String>,
    /// All calls that are shown, oldest first.
    pub(super) done: Vec<CallView>,
    /// The number of calls in the last turn; they are the last of `done`.
    pub(super) newest: usize,
    /// The tools, with the names of their arguments.
    pub(super) tools: BTreeMap<String, BTreeSet<String>>,
}

/// A call, and what came of it.
#[derive(Debug)]
pub(super) struct CallView {
    pub(super) tool: String,
    pub(super) arguments: Value,
    /// Its result without the marks around it; nothing where it is not shown.
    pub(super) result: Option<String>,
}

/// The part of a text that is shown from its beginning on, or from some line on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextView {
    pub(super) lines: Vec<String>,
    /// True if there is more, by the text's own words.
    pub(super) more: bool,
    /// The file that a notice names.
    pub(super) file: Option<String>,
}

impl RequestView {
    pub(super) fn from_request(request: &ChatRequest) -> Self {
        let mut told = Vec::new();
        let mut done = Vec::<(String, CallView)>::new();
        let mut newest = 0;
        for message in &request.messages {
            let text = message.content.clone().unwrap_or_default();
            match message.role {
                ChatRole::System | ChatRole::User => told.push(text),
                ChatRole::Assistant => {
                    newest = message.tool_calls.as_ref().map_or(newest, Vec::len);
                    for call in message.tool_calls.iter().flatten() {
                        // silent-ok: what is no JSON is a call without arguments.
                        let arguments =
                            serde_json::from_str(&call.function.arguments).unwrap_or_default();
                        let tool = call.function.name.clone();
                        done.push((call.id.clone(), CallView { tool, arguments, result: None }));
                    }
                }
                ChatRole::Tool => {
                    let id = message.tool_call_id.as_deref().unwrap_or_default();
                    if let Some((_, done)) = done.iter_mut().rev().find(|(of, _)| of == id) {
                        done.result = Some(unframed(&text));
                    }
                }
            }
        }
        let arguments = |parameters: &Value| {
            let properties = parameters.get("properties").and_then(Value::as_object);
            properties.into_iter().flat_map(|all| all.keys().cloned()).collect()
        };
        let tools = request.tools.iter().map(|tool| &tool.function);
        let tools = tools.map(|tool| (tool.name.clone(), arguments(&tool.parameters))).collect();
        Self { told, done: done.into_iter().map(|(_, done)| done).collect(), newest, tools }
    }

    /// The same without what the runtime remembers: as if it showed nothing of it.
    pub(super) fn without_memory(mut self) -> Self {
        let is_memory = |line: &str| {
            let number = line.strip_prefix("- [m").and_then(|rest| rest.chars().next());
            number.is_some_and(|first| first.is_ascii_digit())
        };
        for text in &mut self.told {
            let lines: Vec<&str> = text.lines().filter(|line| !is_memory(line)).collect();
            *text = lines.join("\n");
        }
        self.done.retain(|done| !done.tool.starts_with("recall"));
        self
    }

    /// Returns true if a tool takes an argument.
    pub(super) fn takes(&self, tool: &str, argument: &str) -> bool {
        self.tools.get(tool).is_some_and(|arguments| arguments.contains(argument))
    }
}

impl CallView {
    /// An argument that is a text.
    pub(super) fn text(&self, name: &str) -> &str {
        self.arguments.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns true if it succeeded.
    pub(super) fn succeeded(&self) -> bool {
        let result = self.result.as_deref().unwrap_or("error");
        let first = result.lines().next().unwrap_or_default();
        if first.contains(" was refused") || first.contains(" was not run") {
            return false;
        }
        let failed = ["error", "refused", "denied", "not run", "skipped", "(", "Not "];
        let code = after(result, "exit_code: ").and_then(|rest| rest.lines().next());
        !failed.iter().any(|word| result.starts_with(word)) && code.is_none_or(|code| code == "0")
    }

    /// Returns the standard output of a command.
    pub(super) fn stdout(&self) -> TextView {
        let result = self.result.as_deref().unwrap_or_default();
        let output = after(result, "stdout: ").or_else(|| after(result, "stdout:\n"));
        let end = |text: &str| {
            ["\nstderr:", "\nlimits: ", "\nnote: ", "\noutput: "]
                .iter()
                .filter_map(|end| text.find(end))
                .min()
                .unwrap_or(text.len())
        };
        let body = output.map_or(result, |output| &output[..end(output)]);
        let mut shown = until_cut(body);
        // What is said of the output may stand behind it.
        let rest = &result[result.len().min(result.find(body).unwrap_or(0) + body.len())..];
        shown.file = shown.file.or_else(|| rest.lines().find_map(named_file));
        shown
    }
}

/// Returns the text after a piece.
pub(super) fn after<'a>(text: &'a str, piece: &str) -> Option<&'a str> {
    text.split_once(piece).map(|(_, rest)| rest)
}

/// Returns the text between two pieces on one line.
pub(super) fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    text.match_indices(before).find_map(|(at, _)| {
        let line = text[at + before.len()..].lines().next()?;
        line.split_once(behind).map(|(between, _)| between)
    })
}

/// A result without the marks that tell where it comes from.
fn unframed(text: &str) -> String {
    let mark = |line: &&str| {
        line.starts_with("[data ") || line.starts_with("[/data ") || line.starts_with("[the guard ")
    };
    let lines: Vec<&str> = text.lines().filter(|line| !mark(line)).collect();
    lines.join("\n")
}

/// Returns true if a line is the runtime's notice about lines that are not shown.
pub(super) fn is_notice(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('[') && line.ends_with(']') && line.contains(' ')
}

/// The text up to the first place where something was cut.
pub(super) fn until_cut(text: &str) -> TextView {
    let mut lines = Vec::new();
    let mut more = false;
    let mut file = None;
    let mut rest = text.lines();
    for line in rest.by_ref() {
        if is_notice(line) {
            // Lines are left out whole where the notice counts lines; else one is cut in two.
            let by_lines = line.contains("lines ");
            more = says_more(line);
            file = named_file(line);
            if more && !by_lines {
                lines.pop();
            }
            break;
        }
        if let Some(whole) = line.strip_suffix("[…]") {
            more = true;
            if whole.trim().is_empty() {
                break;
            }
            // What stands before the mark is a piece of a line.
            break;
        }
        lines.push(line.to_owned());
    }
    let notices = rest.filter(|line| is_notice(line));
    for notice in notices {
        file = file.or_else(|| named_file(notice));
    }
    TextView { lines, more, file }
}

/// Returns true if a notice says that there is more.
fn says_more(notice: &str) -> bool {
    if let Some((last, all)) = range_of(notice) {
        return last < all;
    }
    let words = ["left out", "omitted", "more", "rest", "go on", "not shown", "cut", "…"];
    words.iter().any(|word| notice.contains(word))
}

/// The last line that is shown and the number of all, of a notice such as
/// `[lines 1 to 411 of 2000; go on with offset 412]`.
fn range_of(notice: &str) -> Option<(usize, usize)> {
    let rest = after(notice, "lines ")?;
    let (range, rest) = rest.split_once(" of ")?;
    let last = range.split(['-', '–', ' ']).next_back()?;
    Some((number(last)?, number(rest)?))
}

/// The number that a text begins with; commas may group its digits.
pub(super) fn number(text: &str) -> Option<usize> {
    let digits = |c: &char| c.is_ascii_digit() || *c == ',';
    let digits: String = text.trim_start().chars().take_while(digits).collect();
    // silent-ok: no digits are no number.
    digits.replace(',', "").parse().ok()
}

/// The file that a notice names.
pub(super) fn named_file(line: &str) -> Option<String> {
    let words = line.split(|c: char| c.is_whitespace() || "\"'`[](),;".contains(c));
    let mut paths = words.filter(|word| word.starts_with("/root/") || word.starts_with("~/"));
    paths.next().map(|path| path.trim_end_matches(['.', ':']).to_owned())
}

/// A path as it is in the workspace, however it was written.
pub(super) fn within(path: &str) -> &str {
    let path = path.strip_prefix("/root/").or_else(|| path.strip_prefix("~/")).unwrap_or(path);
    path.strip_prefix("./").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_shown_ends_where_something_was_cut() {
        let cases = [
            ("a\nb", vec!["a", "b"], false),
            ("a\n[12 lines left out; read_file shows them]\nz", vec!["a"], true),
            ("a\nhal\n[90 characters omitted]\nf\nz", vec!["a"], true),
            ("a\nhal […]", vec!["a"], true),
            ("a\nb\n[lines 1 to 2 of 2000; go on with offset 3]", vec!["a", "b"], true),
            ("a\nb\n[lines 1 to 2 of 2: the end]", vec!["a", "b"], false),
        ];
        for (text, lines, more) in cases {
            let shown = until_cut(text);
            assert_eq!(
                (shown.lines, shown.more),
                (lines.iter().map(|l| l.to_string()).collect(), more),
                "{text}"
            );
        }
    }

    #[test]
    fn the_calls_of_the_last_turn_are_told_from_older_ones() {
        let call = |id: &str, path: &str| {
            json!({ "id": id, "type": "function", "function":
                { "name": "read_file", "arguments": json!({ "path": path }).to_string() } })
        };
        let request = json!({ "model": "m", "messages": [
            { "role": "user", "content": "Read all." },
            { "role": "assistant", "content": "", "tool_calls": [call("a", "1.txt")] },
            { "role": "tool", "tool_call_id": "a", "content": "one" },
            { "role": "assistant", "content": "",
                "tool_calls": [call("b", "2.txt"), call("c", "3.txt")] },
            { "role": "tool", "tool_call_id": "b", "content": "two" },
            { "role": "tool", "tool_call_id": "c", "content": "three" },
        ] });
        let view = RequestView::from_request(&serde_json::from_value(request).unwrap());
        assert_eq!((view.done.len(), view.newest), (3, 2));
    }

    #[test]
    fn a_notice_names_its_file() {
        let text = "exit_code: 0\nstdout: 1\n2\n[7 lines left out; all of it is in /root/.logs/a.log]\n9\nstderr: \nlimits: none";
        let done = CallView {
            tool: "exec".to_owned(),
            arguments: Value::Null,
            result: Some(text.to_owned()),
        };
        let shown = done.stdout();
        assert_eq!((shown.lines.len(), shown.more), (2, true));
        assert_eq!(shown.file.as_deref(), Some("/root/.logs/a.log"));
        assert!(done.succeeded());
        let older = "exit_code: 0\nstdout: 1\nstderr: \noutput: all of it is in /root/.logs/exec-0.log\nlimits: x";
        let done = CallView { result: Some(older.to_owned()), ..done };
        assert_eq!(done.stdout().file.as_deref(), Some("/root/.logs/exec-0.log"));
        assert_eq!(done.stdout().lines, ["1"]);
    }
}
