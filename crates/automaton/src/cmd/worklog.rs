//! `worklog`: what the automaton notes for itself between its wakes. It only looks.

use automaton_agent::worklog;
use automaton_core::trust::Label;

use super::CommandContext;
use crate::error::CliError;
use crate::home::WORKSPACE;
use crate::ui::{self, Format, text::plain};
use crate::view::memory::WorklogTextView;

/// Shows the worklog as a prompt would be given it, and whose words it may hold.
///
/// # Errors
/// When there is no automaton, or its files cannot be read.
pub(crate) fn run(context: &CommandContext) -> Result<(), CliError> {
    let (home, _, reader) = context.record()?;
    let found = worklog(&home.join(WORKSPACE), &reader)?;
    if context.format == Format::Json {
        return ui::json(&found.map(|said| WorklogTextView { label: said.label, text: said.text }));
    }
    let Some(said) = found else {
        let none = "It has noted nothing: there is no WORKLOG.md in its workspace on this machine";
        return ui::line(none);
    };
    ui::line(&plain(&said.text))?;
    if said.label > Label::Tool {
        let of = said.label;
        ui::line(&format!(
            "[it may hold words from {of}, so a wake that heard nobody else is not shown it]"
        ))?;
    }
    Ok(())
}
