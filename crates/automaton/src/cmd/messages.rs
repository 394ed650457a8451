//! `messages …`: what the creator and the automaton said to each other.
//!
//! Listing only looks. A message that is closed is shown to the model no more; nothing
//! else is changed by it.

use automaton_core::id::MessageId;
use automaton_core::wire::control::{ControlRequest, ControlResponse};
use automaton_store::{ConversationMessage, MessageStatus, Reader, Speaker};
use clap::{Args, Subcommand};

use super::CommandContext;
use super::send::send_or_store;
use crate::control::unexpected;
use crate::error::CliError;
use crate::ui::text::{plain, short};
use crate::ui::when::WallClock;
use crate::ui::wrap::{hanging, wrapped};
use crate::ui::{self, Format};
use crate::view::messages::{MessageClosedView, MessageDetailsView, MessageView};

/// Characters of a message in a list.
const SHOWN_CHARS_MAX: usize = 200;

/// Arguments of `messages`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MessagesArgs {
    /// Number of latest messages
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    lines: u32,
    /// The command
    #[command(subcommand)]
    command: Option<MessagesCommand>,
}

/// Commands for a message.
#[derive(Debug, Subcommand)]
pub(crate) enum MessagesCommand {
    /// Show the whole text of one, and what answered it
    Show {
        /// The message
        id: MessageId,
    },
    /// Take one of yours as settled, so that it is shown to the model no more
    Close {
        /// The message
        id: MessageId,
    },
}

/// Does what was asked.
pub(crate) fn run(context: &CommandContext, args: &MessagesArgs) -> Result<(), CliError> {
    match &args.command {
        None => list(context, args.lines),
        Some(MessagesCommand::Show { id }) => show(context, *id),
        Some(MessagesCommand::Close { id }) => close(context, *id),
    }
}

fn list(context: &CommandContext, lines: u32) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let name = reader.life()?.name;
    let clock = context.clock();
    let messages = reader.conversation(lines)?;
    let width = context.screen().width();
    if messages.is_empty() && context.format == Format::Text {
        return ui::line("No messages");
    }
    for message in &messages {
        context.format.answer(&MessageView::from(message), || {
            let text = short(&message.body.text, SHOWN_CHARS_MAX);
            let head = hanging(&head(&name, &clock, message), width);
            format!("{head}\n{}", wrapped(&text, width, "  ", "  "))
        })?;
    }
    Ok(())
}

fn show(context: &CommandContext, id: MessageId) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let message = read_message(&reader, id)?;
    let answer = reader.answer_to(id)?.map(|answer| answer.id);
    let name = reader.life()?.name;
    let clock = context.clock();
    let view = MessageDetailsView { message: MessageView::from(&message), answer };
    context.format.answer(&view, || {
        let mut text = head(&name, &clock, &message);
        if let Some(file) = &message.file {
            text.push_str(&format!("\nin its workspace: {}", plain(file)));
        }
        if let Some(answer) = answer {
            text.push_str(&format!("\nanswered by {answer}"));
        }
        format!("{text}\n\n{}", plain(&message.body.text))
    })
}

fn close(context: &CommandContext, id: MessageId) -> Result<(), CliError> {
    let (home, _, reader) = context.record()?;
    let message = read_message(&reader, id)?;
    let Some(standing) = message.standing else {
        let what = format!("message {id} is one of the automaton's");
        return Err(
            CliError::user(what).hint("only your own messages are open until they are closed")
        );
    };
    match send_or_store(&home, &ControlRequest::Close { message: id })?.0 {
        ControlResponse::Closed { was_open } => {
            context.format.answer(&MessageClosedView { message: id, was_open }, || {
                if was_open {
                    format!("closed: message {id} is shown to the model no more")
                } else {
                    format!("message {id} was not open: it is {}", words(standing))
                }
            })
        }
        other => Err(unexpected(other)),
    }
}

fn read_message(reader: &Reader, id: MessageId) -> Result<ConversationMessage, CliError> {
    reader.utterance(id)?.ok_or_else(|| {
        CliError::user(format!("there is no message {id}")).hint("`automaton messages` lists them")
    })
}

/// The line above a message.
fn head(name: &str, clock: &WallClock, message: &ConversationMessage) -> String {
    let ConversationMessage { id, at, standing, reply_to, .. } = message;
    let stands = match (standing, reply_to) {
        (Some(standing), _) => format!(", {}", words(*standing)),
        (None, Some(to)) => format!(", in answer to {to}"),
        (None, None) => String::new(),
    };
    format!("{id}  {}, {}{stands}", who(name, message.from), clock.with_age(*at))
}

/// Returns the name of a speaker.
pub(super) fn who(name: &str, speaker: Speaker) -> String {
    match speaker {
        Speaker::Creator => "you".to_owned(),
        Speaker::Automaton => plain(name),
    }
}

const fn words(standing: MessageStatus) -> &'static str {
    match standing {
        MessageStatus::Waiting => "waiting to be read",
        MessageStatus::Open => "open",
        MessageStatus::Answered => "answered",
        MessageStatus::Closed => "closed",
        MessageStatus::Failed => "failed",
    }
}
