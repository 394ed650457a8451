//! Pure: walks a syntax tree as a shell would, but through every branch.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use rable::{Node, NodeKind, RableError};

use super::documents::{self, HereDocument};
use super::expand::VALUE_BYTES_MAX;
use super::folder::WORKSPACE;
use super::{DEPTH_MAX, READ_BYTES_MAX, ScriptError, ShellCommand, nesting};

/// The most recorded commands, including repetitions by loops and functions.
const COMMANDS_MAX: usize = 4096;
/// The most values of a list that a loop walks, and of a variable.
const VALUES_MAX: usize = 4;

/// The most command ends of a script whose functions are kept to be called.
const KEPT_ENDS_MAX: usize = 256;

/// The state of the walk.
pub(super) struct ShellWalker {
    /// The recorded commands, in order.
    pub(super) found: Vec<ShellCommand>,
    /// Variables with their possible values.
    pub(super) variables: BTreeMap<String, Vec<String>>,
    /// The positional parameters.
    pub(super) arguments: Vec<String>,
    /// Functions by name.
    pub(super) functions: BTreeMap<String, Rc<Node>>,
    /// Aliases by name.
    pub(super) aliases: BTreeMap<String, String>,
    /// Files whose content the script itself wrote.
    pub(super) files: BTreeMap<String, String>,
    /// The here documents of the current script.
    pub(super) documents: Vec<HereDocument>,
    /// The working directory.
    pub(super) folder: Option<String>,
    /// The folders that `cd -` and `popd` return to.
    pub(super) former: Vec<Option<String>>,
    depth: u32,
    /// True if functions are kept to be called. Copying a long one is recursive.
    keeps: bool,
    /// The number of enclosing branches. In a branch, an assignment may not have happened.
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

/// The output, if it is known.
type KnownOutput = Result<Option<String>, ScriptError>;

impl ShellWalker {
    /// Walks a script. `input` is its standard input, if it is known.
    pub(super) fn walk_script(&mut self, script: &str, input: Option<&str>) -> KnownOutput {
        self.spend(script.len())?;
        let (script, documents) = documents::cut(script);
        let ends = nesting::check(&script)?;
        let parsed = catch_unwind(AssertUnwindSafe(|| rable::parse(&script, false)));
        let nodes = parsed.map_err(|_panic| ScriptError::Broken)?.map_err(syntax)?;
        let outer = std::mem::replace(&mut self.documents, documents);
        let kept = std::mem::replace(&mut self.keeps, ends <= KEPT_ENDS_MAX);
        let said = self.walk_all(&nodes, input)?;
        self.keeps = kept;
        let documents = std::mem::replace(&mut self.documents, outer);
        if !documents.iter().all(|document| document.found) {
            return Err(ScriptError::Document);
        }
        Ok(said)
    }

    /// Walks a script that is nested in the current one.
    pub(super) fn walk_nested(&mut self, script: &str) -> KnownOutput {
        self.nested_level(|walk| walk.walk_script(script, None))
    }

    /// Runs a closure one nesting level deeper.
    pub(super) fn nested_level(
        &mut self,
        inside: impl FnOnce(&mut Self) -> KnownOutput,
    ) -> KnownOutput {
        if self.depth == DEPTH_MAX {
            return Err(ScriptError::Deep);
        }
        self.depth += 1;
        let said = inside(self);
        self.depth -= 1;
        said
    }

    /// Runs a closure as a separate process, which keeps the working directory of the script.
    pub(super) fn in_subprocess(
        &mut self,
        inside: impl FnOnce(&mut Self) -> KnownOutput,
    ) -> KnownOutput {
        let folder = self.folder.clone();
        let former = self.former.clone();
        let said = inside(self);
        self.folder = folder;
        self.former = former;
        said
    }

    /// Returns the text that a substitution is replaced by: its output, or else its own words,
    /// from which other names can still be recognised. Words for a whole folder are left out,
    /// since the command only looks there.
    pub(super) fn substitution_output(
        &mut self,
        inside: impl FnOnce(&mut Self) -> KnownOutput,
    ) -> Result<String, ScriptError> {
        let before = self.found.len();
        let said = self.nested_level(|walk| walk.in_subprocess(inside))?;
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

    /// Returns the text that a substitution given as text is replaced by.
    pub(super) fn substitute_script(&mut self, script: &str) -> Result<String, ScriptError> {
        let said = self.substitution_output(|walk| walk.walk_script(script, None))?;
        Ok(said.trim_end_matches('\n').to_owned())
    }

    /// Returns the name of the file from which the output of a process is read.
    pub(super) fn process_file(
        &mut self,
        inside: impl FnOnce(&mut Self) -> KnownOutput,
    ) -> Result<String, ScriptError> {
        let said = self.nested_level(|walk| walk.in_subprocess(inside))?;
        let file = format!("/dev/fd/{}", 63 + self.files.len());
        if let Some(said) = said {
            self.files.insert(file.clone(), said);
        }
        Ok(file)
    }

    /// Walks the substitutions in a text that the parser does not split.
    pub(super) fn walk_embedded(&mut self, text: &str) -> Result<(), ScriptError> {
        let mut rest = text;
        while let Some(at) = rest.find(['$', '`']) {
            let after = rest.get(at + 1..).unwrap_or("");
            let (script, next) = match (rest.as_bytes().get(at), after.strip_prefix('(')) {
                (Some(b'`'), _) => after.split_once('`').unwrap_or((after, "")),
                (_, Some(inside)) => split_at_close(inside),
                _ => ("", after),
            };
            if !script.is_empty() && !script.starts_with('(') {
                self.walk_nested(script)?;
            }
            rest = next;
        }
        Ok(())
    }

    /// Subtracts bytes that were read or substituted from the budget.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), ScriptError> {
        self.left = self.left.checked_sub(bytes).ok_or(ScriptError::Long)?;
        Ok(())
    }

    /// Stores a variable's value. In a branch the old values remain possible too.
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

    /// Records a command.
    pub(super) fn record(&mut self, mut command: ShellCommand) -> Result<(), ScriptError> {
        if self.found.len() == COMMANDS_MAX {
            return Err(ScriptError::Long);
        }
        command.folder.clone_from(&self.folder);
        self.found.push(command);
        Ok(())
    }

    /// Walks a sequence of nodes. Each list is the first part of a longer one, as deep as it is
    /// long, so the nodes are queued instead of recursed into.
    fn walk_all<'n>(
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
            let more = self.walk_node(node, input)?;
            said = said.zip(more).map(|(said, more)| said + &more);
        }
        Ok(said)
    }

    /// Walks a node that may or may not run.
    fn walk_branch(&mut self, node: &Node, input: Option<&str>) -> KnownOutput {
        let folder = self.folder.clone();
        self.branches += 1;
        let said = self.walk_node(node, input);
        self.branches -= 1;
        if self.folder != folder {
            // The branch may not have been taken.
            self.folder = None;
        }
        said
    }

    /// Walks a node. `input` is its standard input, if it is known.
    pub(super) fn walk_node(&mut self, node: &Node, input: Option<&str>) -> KnownOutput {
        match &node.kind {
            NodeKind::Command { assignments, words, redirects } => {
                self.walk_simple_command(assignments, words, redirects, input)
            }
            NodeKind::Pipeline { commands, .. } => {
                let mut said = input.map(str::to_owned);
                for command in commands {
                    said = match commands.len() {
                        1 => self.walk_node(command, said.as_deref())?,
                        _ => self.in_subprocess(|walk| walk.walk_node(command, said.as_deref()))?,
                    };
                }
                Ok(said)
            }
            NodeKind::List { .. } => self.walk_all([node], input),
            NodeKind::Negation { pipeline } | NodeKind::Time { pipeline, .. } => {
                self.walk_node(pipeline, input)
            }
            NodeKind::Coproc { command, .. } => {
                self.in_subprocess(|walk| walk.walk_node(command, input))
            }
            NodeKind::Function { name, body } => {
                if self.keeps {
                    self.functions.insert(name.clone(), Rc::new((**body).clone()));
                }
                self.walk_branch(body, None)?;
                Ok(Some(String::new()))
            }
            NodeKind::Subshell { body, redirects } => {
                let input = self.apply_redirects(redirects, input)?;
                self.in_subprocess(|walk| walk.walk_node(body, input.as_deref()))
            }
            NodeKind::BraceGroup { body, redirects } => {
                let input = self.apply_redirects(redirects, input)?;
                self.walk_node(body, input.as_deref())
            }
            _ => self.walk_compound(node, input),
        }
    }

    /// Walks a branch or a loop. Its output is unknown.
    fn walk_compound(&mut self, node: &Node, input: Option<&str>) -> KnownOutput {
        match &node.kind {
            NodeKind::If { condition, then_body, else_body, redirects } => {
                let input = self.apply_redirects(redirects, input)?;
                self.walk_node(condition, input.as_deref())?;
                self.walk_branch(then_body, input.as_deref())?;
                if let Some(body) = else_body {
                    self.walk_branch(body, input.as_deref())?;
                }
            }
            NodeKind::While { condition, body, redirects }
            | NodeKind::Until { condition, body, redirects } => {
                let input = self.apply_redirects(redirects, input)?;
                let input = match has_condition(body) {
                    true => input.map(|lines| pick_some(&lines)),
                    false => input,
                };
                self.walk_node(condition, input.as_deref())?;
                self.walk_branch(body, input.as_deref())?;
            }
            NodeKind::For { var, words, body, redirects }
            | NodeKind::Select { var, words, body, redirects } => {
                let input = self.apply_redirects(redirects, input)?;
                self.walk_loop(var, words.as_deref(), body, input.as_deref())?;
            }
            NodeKind::ForArith { init, cond, incr, body, redirects } => {
                let input = self.apply_redirects(redirects, input)?;
                for text in [init, cond, incr] {
                    self.walk_embedded(text)?;
                }
                self.walk_branch(body, input.as_deref())?;
            }
            NodeKind::Case { word, patterns, redirects } => {
                let input = self.apply_redirects(redirects, input)?;
                self.expand_word(word)?;
                for pattern in patterns {
                    for word in &pattern.patterns {
                        self.expand_word(word)?;
                    }
                    if let Some(body) = &pattern.body {
                        self.walk_branch(body, input.as_deref())?;
                    }
                }
            }
            NodeKind::ConditionalExpr { body, redirects } => {
                self.apply_redirects(redirects, input)?;
                self.walk_condition(body)?;
            }
            NodeKind::ArithmeticCommand { redirects, raw_content, .. } => {
                self.apply_redirects(redirects, input)?;
                self.walk_embedded(raw_content)?;
            }
            // Comments, and nodes that occur only within others.
            _ => return Ok(Some(String::new())),
        }
        Ok(None)
    }

    /// Walks the body of a loop once for each value.
    fn walk_loop(
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
            values.extend(self.expand_word(word)?);
        }
        // If there are many, the rest becomes one value, so that no name among them is lost.
        if values.len() > VALUES_MAX {
            let rest = values.split_off(VALUES_MAX - 1);
            values.push(rest.join(" "));
        }
        let picks = has_condition(body);
        for value in values {
            let value = if picks { pick_some(&value) } else { value };
            self.variables.insert(variable.to_owned(), vec![value]);
            self.walk_branch(body, input)?;
        }
        Ok(())
    }

    fn walk_condition(&mut self, node: &Node) -> Result<(), ScriptError> {
        match &node.kind {
            NodeKind::CondTerm { value, .. } | NodeKind::Word { value, .. } => {
                self.walk_embedded(value)
            }
            NodeKind::UnaryTest { operand: inner, .. }
            | NodeKind::CondNot { operand: inner }
            | NodeKind::CondParen { inner } => self.walk_condition(inner),
            NodeKind::BinaryTest { left, right, .. }
            | NodeKind::CondAnd { left, right }
            | NodeKind::CondOr { left, right } => {
                self.walk_condition(left)?;
                self.walk_condition(right)
            }
            _ => Ok(()),
        }
    }
}

/// Returns true if a word only names a folder, as `.` and `~` do.
fn names_folder(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| "./~*".contains(c)) || word == WORKSPACE
}

/// Returns a list of files of which a condition selects some: a whole folder becomes `{}`.
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

/// Returns true if a condition decides about a part of this node.
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

/// Splits a text at the bracket that closes it.
fn split_at_close(inside: &str) -> (&str, &str) {
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

/// Returns the parser's message, shortened to one line.
#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn syntax(error: RableError) -> ScriptError {
    let what = error.message().chars().take(120).map(|c| if c.is_control() { ' ' } else { c });
    ScriptError::Syntax { line: error.line(), what: what.collect() }
}
