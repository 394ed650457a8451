//! Pure: expands words as a shell does before it runs a command.
//!
//! It removes quotes, substitutes and splits known values, and multiplies braces. A value with
//! several possibilities gives a word for each.

use rable::{Node, NodeKind};

use super::ScriptError;
use super::walk::ShellWalker;

/// The most words that braces make of one.
const BRACED_MAX: usize = 64;
/// The longest value that is kept, in bytes. A value that contains itself twice doubles with each
/// assignment.
pub(super) const VALUE_BYTES_MAX: usize = 16 * 1024;

/// A word under construction.
struct WordBuilder {
    done: Vec<String>,
    /// The current word, once for each choice of braces.
    open: Vec<String>,
    /// True if it is a word even when it is empty.
    quoted: bool,
    /// True within double quotes.
    double: bool,
}

impl WordBuilder {
    fn new() -> Self {
        Self { done: Vec::new(), open: vec![String::new()], quoted: false, double: false }
    }

    fn put(&mut self, text: &str) {
        self.open.iter_mut().for_each(|word| word.push_str(text));
    }

    fn end(&mut self) {
        let open = std::mem::replace(&mut self.open, vec![String::new()]);
        let quoted = std::mem::take(&mut self.quoted);
        self.done.extend(open.into_iter().filter(|word| quoted || !word.is_empty()));
    }

    /// Adds text of the script itself, with its quotes and backslashes.
    fn literal(&mut self, text: &str) {
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            let mut buffer = [0; 4];
            match c {
                '\'' if !self.double => {
                    let (inside, after) =
                        rest.as_str().split_once('\'').unwrap_or((rest.as_str(), ""));
                    self.put(inside);
                    rest = after.chars();
                    self.quoted = true;
                }
                '"' => (self.double, self.quoted) = (!self.double, true),
                '\\' => match rest.next() {
                    Some('\n') | None => {}
                    Some(c) => {
                        if self.double && !"$`\"\\".contains(c) {
                            self.put("\\");
                        }
                        self.put(c.encode_utf8(&mut buffer));
                    }
                },
                c => self.put(c.encode_utf8(&mut buffer)),
            }
        }
    }

    /// Adds a value. It is split into words unless it is quoted.
    fn value(&mut self, text: &str) {
        if self.double {
            return self.put(text);
        }
        if text.starts_with(char::is_whitespace) {
            self.end();
        }
        for (place, piece) in text.split_whitespace().enumerate() {
            if place > 0 {
                self.end();
            }
            self.put(piece);
        }
        if text.ends_with(char::is_whitespace) {
            self.end();
        }
    }

    fn braces(&mut self, content: &str) {
        let inside = content.strip_prefix('{').and_then(|c| c.strip_suffix('}'));
        let choices: Vec<&str> = inside.map(choices).unwrap_or_default();
        if choices.len() < 2 || choices.len() * self.open.len() > BRACED_MAX {
            return self.literal(content);
        }
        let before = std::mem::take(&mut self.open);
        let mut open = Vec::new();
        let double = self.double;
        for choice in choices {
            self.open.clone_from(&before);
            self.literal(choice);
            open.append(&mut self.open);
            self.double = double;
        }
        self.open = open;
    }
}

/// Returns the choices within braces, at the outermost level.
fn choices(inside: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let mut start = 0;
    let mut found = Vec::new();
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.extend(inside.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.extend(inside.get(start..));
    found
}

impl ShellWalker {
    /// Expands a word.
    pub(super) fn expand_word(&mut self, node: &Node) -> Result<Vec<String>, ScriptError> {
        let NodeKind::Word { value, parts, .. } = &node.kind else { return Ok(Vec::new()) };
        let ticked = value.split_once('`').and_then(|(_, rest)| rest.rsplit_once('`'));
        let substitutes =
            parts.iter().any(|part| matches!(part.kind, NodeKind::CommandSubstitution { .. }));
        if let Some((script, _)) = ticked.filter(|(s, _)| substitutes && s.contains("\\`")) {
            // Backticks within backticks are escaped, and the parser keeps the escapes.
            self.walk_nested(&script.replace("\\`", "`"))?;
        }
        let mut words = self.expand_parts(parts, 0)?;
        for choice in 1..self.choices_of(parts) {
            let more = self.expand_parts(parts, choice)?;
            words.extend(more);
        }
        Ok(words)
    }

    /// Expands a word to a single text.
    pub(super) fn expand_text(&mut self, node: &Node) -> Result<String, ScriptError> {
        Ok(self.expand_word(node)?.join(" "))
    }

    /// Returns the largest number of values of a variable in the word.
    fn choices_of(&self, parts: &[Node]) -> usize {
        let count = |part: &Node| match &part.kind {
            NodeKind::ParamExpansion { param, .. } => {
                self.variables.get(param.as_str()).map_or(1, Vec::len)
            }
            _ => 1,
        };
        parts.iter().map(count).max().unwrap_or(1)
    }

    /// Expands the parts of a word. `choice` selects the value of a variable with several values.
    fn expand_parts(&mut self, parts: &[Node], choice: usize) -> Result<Vec<String>, ScriptError> {
        let mut making = WordBuilder::new();
        for part in parts {
            match &part.kind {
                NodeKind::WordLiteral { value } => match unparsed_substitution(value) {
                    Some(script) => {
                        let said = self.substitute_script(script)?;
                        making.value(&said);
                    }
                    None => making.literal(value),
                },
                NodeKind::AnsiCQuote { decoded, .. } => {
                    making.put(decoded);
                    making.quoted = true;
                }
                NodeKind::LocaleString { inner, .. } => {
                    making.double = true;
                    making.literal(inner);
                    (making.double, making.quoted) = (false, true);
                }
                NodeKind::BraceExpansion { content } => making.braces(content),
                NodeKind::ParamExpansion { param, op, arg } => {
                    let op = op.as_deref().unwrap_or("");
                    let arg = arg.as_deref().unwrap_or("");
                    self.walk_embedded(arg)?;
                    match self.parameter_value(param, op, arg, choice)? {
                        Some(value) if param.contains('[') => {
                            let double = std::mem::take(&mut making.double);
                            making.value(&value);
                            making.double = double;
                        }
                        Some(value) => making.value(&value),
                        None => making.put(&format!("${param}")),
                    }
                }
                NodeKind::ParamIndirect { param, .. } => {
                    let name = self.parameter_value(param, "", "", choice)?.unwrap_or_default();
                    let value = self.parameter_value(&name, "", "", choice)?;
                    making.value(&value.unwrap_or_default());
                }
                NodeKind::CommandSubstitution { command, .. } => {
                    let said = self.substitution_output(|walk| walk.walk_node(command, None))?;
                    making.value(said.trim_end_matches('\n'));
                }
                NodeKind::ProcessSubstitution { command, .. } => {
                    let file = self.process_file(|walk| walk.walk_node(command, None))?;
                    making.put(&file);
                }
                NodeKind::ParamLength { .. } | NodeKind::ArithmeticExpansion { .. } => {
                    making.put("0");
                }
                // Nothing else is part of a word.
                _ => {}
            }
        }
        making.end();
        self.spend(making.done.iter().map(String::len).sum())?;
        Ok(making.done)
    }

    /// Returns the value of a parameter with its operator, if it is known.
    fn parameter_value(
        &mut self,
        name: &str,
        op: &str,
        arg: &str,
        choice: usize,
    ) -> Result<Option<String>, ScriptError> {
        let bare = name.split('[').next().unwrap_or(name);
        let known = match bare.parse::<usize>() {
            Ok(0) => None,
            Ok(place) => self.arguments.get(place - 1).cloned(),
            Err(_) if bare == "@" || bare == "*" => Some(self.arguments.join(" ")),
            Err(_) if bare == "PWD" => self.folder.clone(),
            Err(_) if bare == "OLDPWD" => self.former.last().cloned().flatten(),
            Err(_) => {
                let values = self.variables.get(bare);
                values.and_then(|v| v.get(choice.min(v.len().saturating_sub(1)))).cloned()
            }
        };
        let default = || {
            let mut making = WordBuilder::new();
            making.literal(arg);
            making.open.concat()
        };
        let value = match (op, known) {
            (":-" | "-" | ":=" | "=", None) => {
                if op.ends_with('=') {
                    self.assign(bare, default());
                }
                Some(default())
            }
            (":+" | "+", _) => Some(default()),
            (op, Some(value)) => Some(apply_operator(value, op, arg)),
            (_, None) => None,
        };
        self.spend(value.as_ref().map_or(0, String::len))?;
        Ok(value)
    }
}

/// Applies the operator of `${name…}` to a value, as far as that is simple.
fn apply_operator(value: String, op: &str, arg: &str) -> String {
    let stripped = match op {
        "#" | "##" => value.strip_prefix(arg),
        "%" | "%%" => value.strip_suffix(arg),
        ":" => {
            let mut numbers = arg.split(':').map(|n| n.trim().parse::<usize>());
            let from = numbers.next().and_then(Result::ok).unwrap_or(0);
            let length = numbers.next().and_then(Result::ok);
            let end = length.map_or(value.len(), |length| from.saturating_add(length));
            value.get(from..end.min(value.len()))
        }
        "/" | "//" => {
            let (old, new) = arg.split_once('/').unwrap_or((arg, ""));
            // An empty pattern would match everywhere.
            let plain = !old.is_empty() && value.len() + new.len() <= VALUE_BYTES_MAX / 16;
            return if plain { value.replace(old, new) } else { value };
        }
        "^^" => return value.to_uppercase(),
        ",," => return value.to_lowercase(),
        _ => None,
    };
    stripped.map(str::to_owned).unwrap_or(value)
}

/// Returns the script of a substitution that the parser left unparsed.
fn unparsed_substitution(text: &str) -> Option<&str> {
    let inside = text.strip_prefix("$(").or(text.strip_prefix("<(")).or(text.strip_prefix(">("))?;
    inside.strip_suffix(')')
}
