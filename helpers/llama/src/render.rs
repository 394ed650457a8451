//! A conversation as the tokens that the model was trained to read.
//!
//! The chat template comes from the model's file. What is written in a message can
//! never be taken for a mark of the template: such marks are broken up in it. Tools stand
//! behind the first message of the system, as models that know tools were taught. It
//! must never write into a conversation what the agent did not send.

use std::fmt::Write as _;
use std::io;

use automaton_core::wire::brain::{LocalModelCall, LocalModelMessage, LocalModelTool};
use automaton_core::wire::chat::ChatRole;
use llama_cpp_2::model::{LlamaChatMessage, LlamaChatTemplate, LlamaModel};
use llama_cpp_2::token::LlamaToken;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Value, json};
use thiserror::Error;

/// The template that is used when a file has none that the library knows.
const FALLBACK_TEMPLATE: &str = "chatml";

/// What stands around a call and around a result where the template has these marks, as those of
/// Hermes 2 Pro and of Qwen 2.5 and later do.
const CALL_MARKS: [&str; 2] = ["<tool_call>\n", "\n</tool_call>"];
const RESULT_MARKS: [&str; 2] = ["<tool_response>\n", "\n</tool_response>"];

/// Why a conversation could not be rendered.
#[derive(Debug, Error)]
pub enum Unrenderable {
    /// The template did not accept the conversation.
    #[error("the chat template failed: {0}")]
    Template(String),
    /// There is nothing to answer.
    #[error("the conversation is empty")]
    Empty,
}

/// Renders conversations for one model.
pub struct Renderer<'model> {
    model: &'model LlamaModel,
    template: LlamaChatTemplate,
    style: Style,
}

/// How messages are written.
#[derive(Debug, Default)]
pub struct Style {
    /// Marks of the template, which no message may have.
    marks: Vec<String>,
    /// Whether calls and results stand between marks of their own.
    tagged: bool,
}

impl<'model> Renderer<'model> {
    /// Reads template and marks from the model, which may be told of tools or not.
    ///
    /// # Errors
    /// [`Unrenderable::Template`] when no template at all can be had.
    pub fn new(model: &'model LlamaModel, told: bool) -> Result<Self, Unrenderable> {
        let vocab = model.vocab();
        let marks = vocab
            .tokens()
            .filter(|token| vocab.is_control(*token) || vocab.is_eog(*token))
            .map(|token| vocab.token_to_piece(token, true, None))
            .filter_map(|bytes| String::from_utf8(bytes).ok())
            .filter(|mark| mark.chars().count() > 2);
        let fallback = LlamaChatTemplate::new(FALLBACK_TEMPLATE);
        let fallback = fallback.map_err(|error| Unrenderable::Template(error.to_string()))?;
        let template = model.chat_template(None).unwrap_or_else(|_| fallback.clone());
        let probe = [(ChatRole::User.name(), "?".to_owned())];
        let known = apply(model, &template, &probe).is_ok();
        let template = if known { template } else { fallback };
        let mark = CALL_MARKS[0].trim_end();
        // silent-ok: a template that is no text has no marks.
        let has_mark = template.to_str().is_ok_and(|text| text.contains(mark));
        let tagged = told && has_mark && vocab.tokenize(mark.as_bytes(), false, true).len() == 1;
        let own = CALL_MARKS.iter().chain(&RESULT_MARKS).map(|mark| mark.trim().to_owned());
        let marks = Vec::from_iter(own.filter(|_| tagged).chain(marks));
        Ok(Self { model, template, style: Style { marks, tagged } })
    }

    /// Tokens of the conversation up to where the model's answer begins, with the tools that the
    /// model is to be told of.
    ///
    /// # Errors
    /// [`Unrenderable`] when the conversation is empty or the template fails.
    pub fn prompt(
        &self,
        messages: &[LocalModelMessage],
        tools: &[LocalModelTool],
    ) -> Result<Vec<LlamaToken>, Unrenderable> {
        if messages.is_empty() {
            return Err(Unrenderable::Empty);
        }
        let text = apply(self.model, &self.template, &turns(messages, tools, &self.style))?;
        Ok(self.model.vocab().tokenize(text.as_bytes(), true, true))
    }

    /// What the model writes before a call: the first of it is a token of its own, by which the
    /// model says that it calls a tool. Nothing, where it has no such mark.
    #[must_use]
    pub fn call_mark(&self) -> Vec<LlamaToken> {
        let mark = if self.style.tagged { CALL_MARKS[0] } else { "" };
        self.model.vocab().tokenize(mark.as_bytes(), false, true)
    }

    /// Tokens of text that the model itself would write.
    #[must_use]
    pub fn written(&self, text: &str) -> Vec<LlamaToken> {
        let vocab = self.model.vocab();
        let tokens = vocab.tokenize(text.as_bytes(), false, false);
        let read = tokens.iter().flat_map(|token| vocab.token_to_piece(*token, false, None));
        if read.eq(text.bytes()) {
            return tokens;
        }
        // Some vocabularies put a blank in front of any text; behind a line break
        // they do not, so the text is taken from there.
        let broken = vocab.tokenize(format!("\n{text}").as_bytes(), false, false);
        let before = vocab.tokenize(b"\n", false, false);
        broken.strip_prefix(before.as_slice()).map(<[_]>::to_vec).unwrap_or(tokens)
    }
}

/// Runs the library's template engine.
fn apply(
    model: &LlamaModel,
    template: &LlamaChatTemplate,
    turns: &[(&'static str, String)],
) -> Result<String, Unrenderable> {
    let failed = |error: &dyn std::error::Error| Unrenderable::Template(error.to_string());
    let mut chat = Vec::with_capacity(turns.len());
    for (role, text) in turns {
        let message = LlamaChatMessage::new((*role).to_owned(), text.replace('\0', " "));
        chat.push(message.map_err(|error| failed(&error))?);
    }
    model.apply_chat_template(template, &chat, true).map_err(|error| failed(&error))
}

/// Messages as pairs of the template's role and text. Results of calls speak with
/// the user's voice, since few templates know another; neighbours of one role are
/// joined, since many templates want the roles to alternate; those with marks of their own for
/// calls do not.
fn turns(
    messages: &[LocalModelMessage],
    tools: &[LocalModelTool],
    style: &Style,
) -> Vec<(&'static str, String)> {
    let rules = messages.iter().take_while(|message| message.role == ChatRole::System).count();
    let (rules, talk) = messages.split_at(rules);
    let told = Some((ChatRole::System, list_of(tools, style))).filter(|_| !tools.is_empty());
    let said = |message: &LocalModelMessage| (message.role, text_of(message, style));
    let all = rules.iter().map(said).chain(told).chain(talk.iter().map(said));
    let mut turns: Vec<(&'static str, String)> = Vec::new();
    let mut before = ChatRole::System;
    for (role, text) in all {
        // Between marks a result stands apart from what is said behind it.
        let joins = !style.tagged || before == role;
        match turns.last_mut() {
            Some((last, said)) if *last == role.name() && joins => {
                said.push_str("\n\n");
                said.push_str(&text);
            }
            _ => turns.push((role.name(), text)),
        }
        before = role;
    }
    turns
}

/// The tools as a model is told of them, in the words of the chat template of Qwen 2.5
/// (<https://huggingface.co/Qwen/Qwen2.5-7B-Instruct>), which are those of Hermes 2 Pro.
fn list_of(tools: &[LocalModelTool], style: &Style) -> String {
    let line = |tool: &LocalModelTool| {
        let LocalModelTool { name, description, parameters } = tool;
        let function =
            json!({ "name": name, "description": description, "parameters": parameters });
        defused(&spaced(&json!({ "type": "function", "function": function })), &style.marks)
    };
    let lines: Vec<String> = tools.iter().map(line).collect();
    let [begin, end] = if style.tagged { CALL_MARKS } else { [""; 2] };
    let within = if style.tagged { " within <tool_call></tool_call> XML tags" } else { "" };
    format!(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are \
         provided with function signatures within <tools></tools> XML tags:\n<tools>\n{}\n</tools>\n\n\
         For each function call, return a json object with function name and arguments{within}:\n\
         {begin}{{\"name\": <function-name>, \"arguments\": <args-json-object>}}{end}",
        lines.join("\n"),
    )
}

/// One message's text.
fn text_of(message: &LocalModelMessage, style: &Style) -> String {
    let mut text = defused(&message.content, &style.marks);
    if message.role == ChatRole::Tool {
        let [begin, end] = if style.tagged { RESULT_MARKS } else { ["Result: ", ""] };
        text = format!("{begin}{text}{end}");
    }
    let [begin, end] = if style.tagged { CALL_MARKS } else { [""; 2] };
    for call in &message.calls {
        if !text.is_empty() {
            text.push('\n');
        }
        let call = defused(&written_call(call), &style.marks);
        text.push_str(&format!("{begin}{call}{end}"));
    }
    text
}

/// A call as the grammar makes the model write it. Arguments that are no JSON are
/// shown as they are.
#[must_use]
pub fn written_call(call: &LocalModelCall) -> String {
    let arguments = match serde_json::from_str::<Value>(&call.arguments) {
        Ok(value) => spaced(&value),
        Err(_) => call.arguments.clone(),
    };
    let mut text = call_start(&call.name);
    // silent-ok: writing into a String cannot fail.
    let _ = write!(text, " {arguments}}}");
    text
}

/// What a call begins with, up to its arguments.
#[must_use]
pub fn call_start(tool: &str) -> String {
    format!("{{\"name\": {}, \"arguments\":", Value::from(tool))
}

/// JSON in one line with a blank after each comma and colon, as in most texts that
/// models have read.
fn spaced(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Spaced);
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => value.to_string(),
    }
}

/// The formatter of [`spaced`].
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

/// Text in which no mark of the template is left: a blank goes behind the first
/// character of each.
fn defused(text: &str, marks: &[String]) -> String {
    let mut text = text.to_owned();
    for mark in marks {
        if text.contains(mark.as_str()) {
            let head = mark.chars().next().map_or(0, char::len_utf8);
            text = text.replace(mark.as_str(), &format!("{} {}", &mark[..head], &mark[head..]));
        }
    }
    text
}

/// The name of a role in chat templates.
trait Named {
    fn name(self) -> &'static str;
}

impl Named for ChatRole {
    fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User | Self::Tool => "user",
            Self::Assistant => "assistant",
        }
    }
}

#[cfg(test)]
mod tests;
