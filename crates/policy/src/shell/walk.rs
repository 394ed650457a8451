//! Pure: goes through a syntax tree as a shell would, but through every branch.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use rable::{Node, NodeKind, RableError};

use super::documents::{self, HereDocument};
use super::expand::VALUE_BYTES_MAX;
use super::folder::WORKSPACE;
use super::{DEPTH_MAX, READ_BYTES_MAX, ScriptError, ShellCommand, nesting};

/// Commands that are seen, however often loops and functions repeat them.
const COMMANDS_MAX: usize = 4096;
/// Values of a list that a loop goes through, and that a variable may have.
const VALUES_MAX: usize = 4;

/// Ends of commands in a script whose functions are kept to be called.
const KEPT_ENDS_MAX: usize = 256;

/// What is known on the way.
pub(super) struct ShellWalker {
    /// What was seen, in order.
    pub(super) found: Vec<ShellCommand>,
    /// Variables with the values that they may have.
    pub(super) variables: BTreeMap<String, Vec<String>>,
    /// The positional parameters.
    pub(super) arguments: Vec<String>,
    /// Functions by name.
    pub(super) functions: BTreeMap<String, Rc<Node>>,
    /// Aliases by name.
    pub(super) aliases: BTreeMap<String, String>,
    /// Files whose content the script itself wrote.
    pub(super) files: BTreeMap<String, String>,
    /// The here documents of the script that is gone through.
    pub(super) documents: Vec<HereDocument>,
    /// The folder that the script is in.
    pub(super) folder: Option<String>,
    /// The folders that `cd -` and `popd` go back to.
    pub(super) former: Vec<Option<String>>,
    depth: u32,
    /// Whether functions are kept to be called: the copy of a long one is made recursively.
    keeps: bool,
    /// Branches around the place: in one, an assignment may not have happened.
    branches: u32,
    left: usize,
}

impl Default for ShellWalker {
    fn default() -> Self {
        let home = ("HOME".to_owned(), vec!["~".to_owned()]);
        Self {
            found: Vec::new(),
            variables: BTreeMap::from([home]),
            arguments: Vec::new(),
            functions: BTreeMap::new(),
            aliases: BTreeMap::new(),
            files: BTreeMap::new(),
            documents: Vec::new(),
            folder: Some(WORKSPACE.to_owned()),
            former: Vec::new(),
            depth: 0,
            keeps: true,
            branches: 0,
            left: READ_BYTES_MAX,
        }
    }
}

/// What is printed, where that is known.
type KnownOutput = Result<Option<String>, ScriptError>;

impl ShellWalker {
    /// Goes through a script. `input` is what it reads, where that is known.
    pub(super) fn script(&mut self, script: &str, input: Option<&str>) -> KnownOutput {
        self.spend(script.len())?;
        let (script, documents) = documents::cut(script);
        let ends = nesting::check(&script)?;
        let parsed = catch_unwind(AssertUnwindSafe(|| rable::parse(&script, false)));
        let nodes = parsed.map_err(|_panic| ScriptError::Broken)?.map_err(syntax)?;
        let outer = std::mem::replace(&mut self.documents, documents);
        let kept = std::mem::replace(&mut self.keeps, ends <= KEPT_ENDS_MAX);
        let said = self.all(&nodes, input)?;
        self.keeps = kept;
        let documents = std::mem::replace(&mut self.documents, outer);
        if !documents.iter().all(|document| document.found) {
            return Err(ScriptError::Document);
        }
        Ok(said)
    }

    /// Goes through a script that lies within what is gone through.
    pub(super) fn nested(&mut self, script: &str) -> KnownOutput {
        self.deeper(|walk| walk.script(script, None))
    }

    /// Does something one level further in.
    pub(super) fn deeper(&mut self, inside: impl FnOnce(&mut Self) -> KnownOutput) -> KnownOutput {
        if self.depth == DEPTH_MAX {
            return Err(ScriptError::Deep);
        }
        self.depth += 1;
        let said = inside(self);
        self.depth -= 1;
        said
    }

    /// Does something in a process of its own, which leaves the script where it is.
    pub(super) fn apart(&mut self, inside: impl FnOnce(&mut Self) -> KnownOutput) -> KnownOutput {
        let folder = self.folder.clone();
        let former = self.former.clone();
        let said = inside(self);
        self.folder = folder;
        self.former = former;
        said
    }

    /// What a substitution puts in its place: what it prints, or else its own words, by
    /// which others are still told apart. A word for a whole folder is left out, since the
    /// command only looks there.
    pub(super) fn said_by(
        &mut self,
        inside: impl FnOnce(&mut Self) -> KnownOutput,
    ) -> Result<String, ScriptError> {
        let before = self.found.len();
        let said = self.deeper(|walk| walk.apart(inside))?;
        let words = || {
            let commands = self.found.get(before..).unwrap_or(&[]);
            let words = commands.iter().flat_map(|c| &c.words).filter(|word| !names_folder(word));
            let words: Vec<&str> = words.map(String::as_str).collect();
            words.join(" ")
        };
        let said = said.unwrap_or_else(words);
        self.spend(said.len())?;
        Ok(said)
    }

    /// The same for a script as text.
    pub(super) fn substituted(&mut self, script: &str) -> Result<String, ScriptError> {
        let said = self.said_by(|walk| walk.script(script, None))?;
        Ok(said.trim_end_matches('\n').to_owned())
    }

    /// The name of the file from which the output of a process is read.
    pub(super) fn process(
        &mut self,
        inside: impl FnOnce(&mut Self) -> KnownOutput,
    ) -> Result<String, ScriptError> {
        let said = self.deeper(|walk| walk.apart(inside))?;
        let file = format!("/dev/fd/{}", 63 + self.files.len());
        if let Some(said) = said {
            self.files.insert(file.clone(), said);
        }
        Ok(file)
    }

    /// Goes through the substitutions in a text that the parser does not take apart.
    pub(super) fn embedded(&mut self, text: &str) -> Result<(), ScriptError> {
        let mut rest = text;
        while let Some(at) = rest.find(['$', '`']) {
            let after = rest.get(at + 1..).unwrap_or("");
            let (script, next) = match (rest.as_bytes().get(at), after.strip_prefix('(')) {
                (Some(b'`'), _) => after.split_once('`').unwrap_or((after, "")),
                (_, Some(inside)) => closed(inside),
                _ => ("", after),
            };
            if !script.is_empty() && !script.starts_with('(') {
                self.nested(script)?;
            }
            rest = next;
        }
        Ok(())
    }

    /// Takes what was read or put in off what may be.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), ScriptError> {
        self.left = self.left.checked_sub(bytes).ok_or(ScriptError::Long)?;
        Ok(())
    }

    /// Remembers a value. In a branch the old ones may hold as well.
    pub(super) fn assign(&mut self, name: &str, value: String) {
        if value.len() > VALUE_BYTES_MAX {
            self.variables.remove(name);
            return;
        }
        let values = self.variables.entry(name.to_owned()).or_default();
        if self.branches == 0 {
            values.clear();
        }
        if values.len() < VALUES_MAX && !values.contains(&value) {
            values.push(value);
        }
    }

    /// Adds a command to what was seen.
    pub(super) fn see(&mut self, mut command: ShellCommand) -> Result<(), ScriptError> {
        if self.found.len() == COMMANDS_MAX {
            return Err(ScriptError::Long);
        }
        command.folder.clone_from(&self.folder);
        self.found.push(command);
        Ok(())
    }

    /// Goes through nodes that follow each other. Each list is the first part of a longer
    /// one, as deep as it is long: so they wait in a row.
    fn all<'n>(
        &mut self,
        nodes: impl IntoIterator<Item = &'n Node, IntoIter: DoubleEndedIterator>,
        input: Option<&str>,
    ) -> KnownOutput {
        let mut said = Some(String::new());
        let mut waiting: Vec<&Node> = nodes.into_iter().rev().collect();
        while let Some(node) = waiting.pop() {
            if let NodeKind::List { items } = &node.kind {
                waiting.extend(items.iter().rev().map(|item| &item.command));
                continue;
            }
            let more = self.node(node, input)?;
            said = said.zip(more).map(|(said, more)| said + &more);
        }
        Ok(said)
    }

    /// Goes through what may happen or not.
    fn maybe(&mut self, node: &Node, input: Option<&str>) -> KnownOutput {
        let folder = self.folder.clone();
        self.branches += 1;
        let said = self.node(node, input);
        self.branches -= 1;
        if self.folder != folder {
            // The branch may not have been taken.
            self.folder = None;
        }
        said
    }

    /// Goes through a node. `input` is what it reads, where that is known.
    pub(super) fn node(&mut self, node: &Node, input: Option<&str>) -> KnownOutput {
        match &node.kind {
            NodeKind::Command { assignments, words, redirects } => {
                self.simple(assignments, words, redirects, input)
            }
            NodeKind::Pipeline { commands, .. } => {
                let mut said = input.map(str::to_owned);
                for command in commands {
                    said = match commands.len() {
                        1 => self.node(command, said.as_deref())?,
                        _ => self.apart(|walk| walk.node(command, said.as_deref()))?,
                    };
                }
                Ok(said)
            }
            NodeKind::List { .. } => self.all([node], input),
            NodeKind::Negation { pipeline } | NodeKind::Time { pipeline, .. } => {
                self.node(pipeline, input)
            }
            NodeKind::Coproc { command, .. } => self.apart(|walk| walk.node(command, input)),
            NodeKind::Function { name, body } => {
                if self.keeps {
                    self.functions.insert(name.clone(), Rc::new((**body).clone()));
                }
                self.maybe(body, None)?;
                Ok(Some(String::new()))
            }
            NodeKind::Subshell { body, redirects } => {
                let input = self.redirected(redirects, input)?;
                self.apart(|walk| walk.node(body, input.as_deref()))
            }
            NodeKind::BraceGroup { body, redirects } => {
                let input = self.redirected(redirects, input)?;
                self.node(body, input.as_deref())
            }
            _ => self.compound(node, input),
        }
    }

    /// Goes through what branches or repeats. What it prints is not known.
    fn compound(&mut self, node: &Node, input: Option<&str>) -> KnownOutput {
        match &node.kind {
            NodeKind::If { condition, then_body, else_body, redirects } => {
                let input = self.redirected(redirects, input)?;
                self.node(condition, input.as_deref())?;
                self.maybe(then_body, input.as_deref())?;
                if let Some(body) = else_body {
                    self.maybe(body, input.as_deref())?;
                }
            }
            NodeKind::While { condition, body, redirects }
            | NodeKind::Until { condition, body, redirects } => {
                let input = self.redirected(redirects, input)?;
                let input = match has_condition(body) {
                    true => input.map(|lines| pick_some(&lines)),
                    false => input,
                };
                self.node(condition, input.as_deref())?;
                self.maybe(body, input.as_deref())?;
            }
            NodeKind::For { var, words, body, redirects }
            | NodeKind::Select { var, words, body, redirects } => {
                let input = self.redirected(redirects, input)?;
                self.each(var, words.as_deref(), body, input.as_deref())?;
            }
            NodeKind::ForArith { init, cond, incr, body, redirects } => {
                let input = self.redirected(redirects, input)?;
                for text in [init, cond, incr] {
                    self.embedded(text)?;
                }
                self.maybe(body, input.as_deref())?;
            }
            NodeKind::Case { word, patterns, redirects } => {
                let input = self.redirected(redirects, input)?;
                self.word(word)?;
                for pattern in patterns {
                    for word in &pattern.patterns {
                        self.word(word)?;
                    }
                    if let Some(body) = &pattern.body {
                        self.maybe(body, input.as_deref())?;
                    }
                }
            }
            NodeKind::ConditionalExpr { body, redirects } => {
                self.redirected(redirects, input)?;
                self.condition(body)?;
            }
            NodeKind::ArithmeticCommand { redirects, raw_content, .. } => {
                self.redirected(redirects, input)?;
                self.embedded(raw_content)?;
            }
            // Comments, and what stands only within others.
            _ => return Ok(Some(String::new())),
        }
        Ok(None)
    }

    /// Goes through the body of a loop once for each value.
    fn each(
        &mut self,
        variable: &str,
        words: Option<&[Node]>,
        body: &Node,
        input: Option<&str>,
    ) -> Result<(), ScriptError> {
        let mut values = match words {
            Some(_) => Vec::new(),
            None => self.arguments.clone(),
        };
        for word in words.into_iter().flatten() {
            values.extend(self.word(word)?);
        }
        // Of many, the rest is one value, so that no name among them is lost.
        if values.len() > VALUES_MAX {
            let rest = values.split_off(VALUES_MAX - 1);
            values.push(rest.join(" "));
        }
        let picks = has_condition(body);
        for value in values {
            let value = if picks { pick_some(&value) } else { value };
            self.variables.insert(variable.to_owned(), vec![value]);
            self.maybe(body, input)?;
        }
        Ok(())
    }

    fn condition(&mut self, node: &Node) -> Result<(), ScriptError> {
        match &node.kind {
            NodeKind::CondTerm { value, .. } | NodeKind::Word { value, .. } => self.embedded(value),
            NodeKind::UnaryTest { operand: inner, .. }
            | NodeKind::CondNot { operand: inner }
            | NodeKind::CondParen { inner } => self.condition(inner),
            NodeKind::BinaryTest { left, right, .. }
            | NodeKind::CondAnd { left, right }
            | NodeKind::CondOr { left, right } => {
                self.condition(left)?;
                self.condition(right)
            }
            _ => Ok(()),
        }
    }
}

/// Returns true if a word only names a folder, as `.` and `~` do.
fn names_folder(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| "./~*".contains(c)) || word == WORKSPACE
}

/// Returns a list of files of which a condition picks some: all of a folder becomes `{}`.
fn pick_some(list: &str) -> String {
    let is_all = |word: &str| names_folder(word) && !word.contains(".*");
    match list.split_whitespace().any(is_all) {
        true => list
            .split_whitespace()
            .map(|w| if is_all(w) { "{}" } else { w })
            .collect::<Vec<_>>()
            .join("\n"),
        false => list.to_owned(),
    }
}

/// Returns true if a condition decides about a part of this.
fn has_condition(node: &Node) -> bool {
    let is_test = |word: &Node| matches!(&word.kind, NodeKind::Word { value, .. } if ["[", "test", "grep"].contains(&value.as_str()));
    match &node.kind {
        NodeKind::If { .. } | NodeKind::Case { .. } | NodeKind::ConditionalExpr { .. } => true,
        NodeKind::Command { words, .. } => words.first().is_some_and(is_test),
        NodeKind::Pipeline { commands, .. } => commands.iter().any(has_condition),
        NodeKind::List { items } => items.iter().any(|item| has_condition(&item.command)),
        NodeKind::Negation { pipeline } | NodeKind::Time { pipeline, .. } => {
            has_condition(pipeline)
        }
        NodeKind::Subshell { body, .. } | NodeKind::BraceGroup { body, .. } => has_condition(body),
        _ => false,
    }
}

/// What comes before the bracket that closes, and what after it.
fn closed(inside: &str) -> (&str, &str) {
    let mut open = 1_usize;
    for (at, c) in inside.char_indices() {
        open = match c {
            '(' => open + 1,
            ')' => open - 1,
            _ => open,
        };
        if open == 0 {
            return (inside.get(..at).unwrap_or(""), inside.get(at + 1..).unwrap_or(""));
        }
    }
    (inside, "")
}

/// What the parser says, short and on one line.
#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn syntax(error: RableError) -> ScriptError {
    let what = error.message().chars().take(120).map(|c| if c.is_control() { ' ' } else { c });
    ScriptError::Syntax { line: error.line(), what: what.collect() }
}
