//! Pure: the creator's messages that wait for an answer.
//!
//! As long as a message is open the prompt shows it, whatever else is cut: in its turn, or
//! before the history. Together they may have half the window; of what has no room there the
//! oldest stand in files, and are shown with their ends. None may ever be left out silently.

use automaton_memory::tokens;
use automaton_sandbox::HOME_INSIDE;
use automaton_store::OpenMessage;

use super::fragment::fill;
use super::history::MessageStyle;

/// Tokens of the line that counts what is not even shown with its ends.
const REST_TOKENS: u32 = 40;

/// The folder of the workspace with messages.
pub(super) const FOLDER: &str = ".messages";

/// The file of a message, as commands and tools see it.
pub(crate) fn file_of(message: &OpenMessage) -> String {
    format!("{HOME_INSIDE}/{FOLDER}/{}.txt", message.id)
}

/// Returns the part of the room that is left to the messages themselves.
fn usable(room: u32) -> u32 {
    room.saturating_sub(tokens::estimate(include_str!("open.md")) + REST_TOKENS)
}

/// Which of the messages, oldest first, have to go to files, so that all of them have room.
pub(crate) fn too_long(
    open: &[OpenMessage],
    room: u32,
    manner: MessageStyle<'_>,
) -> Vec<OpenMessage> {
    let mut left = usable(room);
    let mut filed = Vec::new();
    for message in open.iter().rev() {
        match left.checked_sub(cost(message, manner)) {
            Some(rest) => left = rest,
            None if message.file.is_some() => {}
            None => {
                let there = OpenMessage { file: Some(file_of(message)), ..message.clone() };
                left = left.checked_sub(cost(&there, manner)).unwrap_or(left);
                filed.push(message.clone());
            }
        }
    }
    filed.reverse();
    filed
}

/// Returns the cost of showing a message.
pub(crate) fn cost(message: &OpenMessage, manner: MessageStyle<'_>) -> u32 {
    // And what stands between it and the next one.
    tokens::estimate(&render_message(message, manner)) + 1
}

fn render_message(message: &OpenMessage, manner: MessageStyle<'_>) -> String {
    manner.creators(&message.text, Some(message.id), message.file.as_deref())
}

/// The messages, oldest first, as one text of at most so many tokens: where there is no room
/// the oldest are counted, whose files are there.
pub(crate) fn render(open: &[&OpenMessage], room: u32, manner: MessageStyle<'_>) -> String {
    if open.is_empty() {
        return String::new();
    }
    let mut left = usable(room);
    let mut texts = Vec::with_capacity(open.len());
    for message in open.iter().rev() {
        match left.checked_sub(cost(message, manner)) {
            Some(rest) => left = rest,
            None if message.file.is_some() => continue,
            // What can be read nowhere else is shown, whatever that takes.
            None => left = 0,
        }
        texts.push(render_message(message, manner));
    }
    if texts.len() < open.len() {
        let rest = open.len() - texts.len();
        texts.push(format!(
            "[{rest} older messages are open, too; read them in {HOME_INSIDE}/{FOLDER}]"
        ));
    }
    texts.reverse();
    fill(include_str!("open.md"), &[("messages", &texts.join("\n\n"))])
}

#[cfg(test)]
mod tests;
