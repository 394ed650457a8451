//! Pure: where commands read from and write to.

use rable::{Node, NodeKind};

use super::documents::{self, HereDocument};
use super::walk::ShellWalker;
use super::{ScriptError, ShellCommand};

impl ShellWalker {
    /// The input after redirections around several commands, which are seen as a command
    /// of their own.
    pub(super) fn redirected(
        &mut self,
        redirects: &[Node],
        input: Option<&str>,
    ) -> Result<Option<String>, ScriptError> {
        let mut command = ShellCommand::default();
        self.redirect(redirects, &mut command)?;
        let input = command.inputs.last().cloned().or(input.map(str::to_owned));
        if command != ShellCommand::default() {
            self.see(command)?;
        }
        Ok(input)
    }

    /// Puts redirections into a command.
    pub(super) fn redirect(
        &mut self,
        redirects: &[Node],
        command: &mut ShellCommand,
    ) -> Result<(), ScriptError> {
        for redirect in redirects {
            match &redirect.kind {
                NodeKind::Redirect { op, target, .. } => {
                    let target = self.text(target)?;
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
                    let text = self.document(content)?;
                    if !quoted {
                        self.embedded(&text)?;
                    }
                    let text = if *quoted { text } else { self.filled(&text)? };
                    command.inputs.push(text);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The text of a here document by the line that stands for it.
    fn document(&mut self, line: &str) -> Result<String, ScriptError> {
        let marks = |(number, _): &(usize, &mut HereDocument)| documents::mark(*number) == line;
        match self.documents.iter_mut().enumerate().find(marks) {
            Some((_, document)) => {
                document.found = true;
                let text = document.text.clone();
                self.spend(text.len())?;
                Ok(text)
            }
            // One that was not taken out, since it does not end.
            None => Ok(line.to_owned()),
        }
    }

    /// A text with the plain variables in it put in.
    fn filled(&mut self, text: &str) -> Result<String, ScriptError> {
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
