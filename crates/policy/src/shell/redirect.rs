//! Pure: redirections of commands.

use rable::{Node, NodeKind};

use super::documents::{self, HereDocument};
use super::walk::ShellWalker;
use super::{ScriptError, ShellCommand};

impl ShellWalker {
    /// Returns the input after redirections around several commands. The redirections are
    /// recorded as a separate command.
    pub(super) fn apply_redirects(
        &mut self,
        redirects: &[Node],
        input: Option<&str>,
    ) -> Result<Option<String>, ScriptError> {
        let mut command = ShellCommand::default();
        self.redirect(redirects, &mut command)?;
        let input = command.inputs.last().cloned().or(input.map(str::to_owned));
        if command != ShellCommand::default() {
            self.record(command)?;
        }
        Ok(input)
    }

    /// Adds redirections to a command.
    pub(super) fn redirect(
        &mut self,
        redirects: &[Node],
        command: &mut ShellCommand,
    ) -> Result<(), ScriptError> {
        for redirect in redirects {
            match &redirect.kind {
                NodeKind::Redirect { op, target, .. } => {
                    let target = self.expand_text(target)?;
                    match op.as_str() {
                        "<<<" => command.inputs.push(target + "\n"),
                        "<" => {
                            command.inputs.extend(self.files.get(&target).cloned());
                            command.reads.push(target);
                        }
                        "<>" => {
                            command.reads.push(target.clone());
                            command.writes.push(target);
                        }
                        "<&" => command.reads.push(target),
                        _ => command.writes.push(target),
                    }
                }
                NodeKind::HereDoc { content, quoted, .. } => {
                    let text = self.document_text(content)?;
                    if !quoted {
                        self.walk_embedded(&text)?;
                    }
                    let text = if *quoted { text } else { self.substitute_variables(&text)? };
                    command.inputs.push(text);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the text of the here document that a line stands for.
    fn document_text(&mut self, line: &str) -> Result<String, ScriptError> {
        let marks = |(number, _): &(usize, &mut HereDocument)| documents::mark(*number) == line;
        match self.documents.iter_mut().enumerate().find(marks) {
            Some((_, document)) => {
                document.found = true;
                let text = document.text.clone();
                self.spend(text.len())?;
                Ok(text)
            }
            // A document that was not taken out, since it is unterminated.
            None => Ok(line.to_owned()),
        }
    }

    /// Returns a text with its plain variables substituted.
    fn substitute_variables(&mut self, text: &str) -> Result<String, ScriptError> {
        let mut pieces = text.split('$');
        let mut filled = pieces.next().unwrap_or("").to_owned();
        for piece in pieces {
            let braced = piece.strip_prefix('{');
            let rest = braced.unwrap_or(piece);
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
            let after = if braced.is_some() { after.strip_prefix('}') } else { Some(after) };
            let value = self.variables.get(name).and_then(|values| values.first()).cloned();
            match (value, after) {
                (Some(value), Some(after)) => {
                    self.spend(value.len())?;
                    filled.extend([value.as_str(), after]);
                }
                _ => filled.extend(["$", piece]),
            }
        }
        Ok(filled)
    }
}
