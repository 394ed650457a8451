//! Which tool a call is for.
//!
//! The names are scored as continuations of the answer and the best one is forced,
//! so that the rest of the answer needs the grammar of one tool only. For a weak model
//! the scores come from a [`Guide`] and are calibrated (after Zhao et al., "Calibrate
//! Before Use", 2021). This must never choose a tool that was left out.

use automaton_core::wire::brain::{LocalModelMessage, LocalModelTool};
use automaton_core::wire::chat::ChatRole;
use llama_cpp_2::token::LlamaToken;
use thiserror::Error;

use crate::render::{Renderer, Unrenderable, call_start};
use crate::session::{Broken, Session};

/// What stands for an empty request.
const EMPTY_REQUEST: &str = "N/A";
/// Context of a guide, in tokens: room for some eighty tools and a request.
pub const GUIDE_CONTEXT_TOKENS: u32 = 2048;
/// Longest description of a tool that a guide reads, in characters, and the most that
/// all of them share.
const LINE_CHARS_MAX: usize = 120;
const LINES_CHARS_MAX: usize = 3000;
/// Longest request that a guide reads, in characters.
const REQUEST_CHARS_MAX: usize = 400;

/// The beginnings of calls, as tokens.
#[derive(Debug, Default)]
pub struct Starts {
    /// What all of them begin with, up to the name.
    pub shared: Vec<LlamaToken>,
    /// What follows, for each tool in order.
    pub rests: Vec<Vec<LlamaToken>>,
}

impl Starts {
    /// The beginnings of calls of these tools.
    pub fn new(tools: &[LocalModelTool], renderer: &Renderer<'_>) -> Self {
        let starts: Vec<_> =
            tools.iter().map(|tool| renderer.written(&call_start(&tool.name))).collect();
        let shared = common(&starts, |start, index| start.get(index));
        let rests = starts.iter().map(|start| start[shared..].to_vec()).collect();
        let shared = starts.first().map(|start| start[..shared].to_vec()).unwrap_or_default();
        Self { shared, rests }
    }

    /// The part of each rest that tells the tools apart: the name and one token that
    /// ends it, without which a name that begins another one would win too often.
    #[must_use]
    pub fn names(&self) -> Vec<Vec<LlamaToken>> {
        let same = common(&self.rests, |rest, index| rest.iter().rev().nth(index));
        let cut = same.saturating_sub(1);
        self.rests.iter().map(|rest| rest[..rest.len() - cut].to_vec()).collect()
    }
}

/// How many of the first elements that `get` gives are the same in all lists.
fn common<'a>(
    lists: &'a [Vec<LlamaToken>],
    get: impl Fn(&'a Vec<LlamaToken>, usize) -> Option<&'a LlamaToken>,
) -> usize {
    let Some(first) = lists.first() else { return 0 };
    let same = |index: &usize| lists.iter().all(|list| get(list, *index) == get(first, *index));
    // One element is left over even when all lists are equal.
    (0..first.len().saturating_sub(1)).take_while(same).count()
}

/// Chooses for a weak model, in a small context of its own.
///
/// Such a model loses the request among rules, history and status. So it is asked
/// about the request alone, with one line for each tool; and what it says of an empty
/// request, its mere liking for a name, is measured once for each list of tools and
/// subtracted.
pub struct Guide<'model> {
    session: Session<'model>,
    tools: Vec<LocalModelTool>,
    likings: Vec<f64>,
}

impl<'model> Guide<'model> {
    /// A guide that works in `session`, a context of [`GUIDE_CONTEXT_TOKENS`] or more.
    #[must_use]
    pub fn new(session: Session<'model>) -> Self {
        Self { session, tools: Vec::new(), likings: Vec::new() }
    }

    /// How well each tool fits the request in `messages`, in nats.
    ///
    /// # Errors
    /// [`Unguided`] when the model fails or there are too many tools.
    pub fn scores(
        &mut self,
        messages: &[LocalModelMessage],
        tools: &[LocalModelTool],
        starts: &Starts,
        renderer: &Renderer<'_>,
    ) -> Result<Vec<f64>, Unguided> {
        let names = starts.names();
        let mut ask = |request: &str| -> Result<Vec<f64>, Unguided> {
            let mut prompt = renderer.prompt(&guidance(tools, request), &[])?;
            prompt.extend_from_slice(&starts.shared);
            self.session.feed(&prompt)?;
            Ok(self.session.score(&names)?)
        };
        if self.tools != tools {
            self.likings = ask(EMPTY_REQUEST)?;
            self.tools = tools.to_vec();
        }
        let scores = ask(request(messages))?;
        Ok(scores.iter().zip(&self.likings).map(|(score, liking)| score - liking).collect())
    }
}

/// The conversation in which a tool is chosen. The words are those that chose best of
/// several that were tried.
fn guidance(tools: &[LocalModelTool], request: &str) -> [LocalModelMessage; 2] {
    let message = |role, content| LocalModelMessage { role, content, calls: Vec::new() };
    let mut rules = String::from("You choose tools. These are the tools:");
    let limit = LINE_CHARS_MAX.min(LINES_CHARS_MAX / tools.len().max(1));
    for tool in tools {
        let line: String = tool.description.chars().take(limit).collect();
        rules.push_str(&format!("\n{line} -> {{\"name\": \"{}\"}}", tool.name));
    }
    [message(ChatRole::System, rules), message(ChatRole::User, format!("Request: {request}"))]
}

/// The newest request: the newest paragraph of the user that a line with a colon
/// introduces; without one the newest that is not a remark in parentheses.
#[must_use]
pub fn request(messages: &[LocalModelMessage]) -> &str {
    let users = messages.iter().rev().filter(|message| message.role == ChatRole::User);
    let paragraphs = || users.clone().flat_map(|message| message.content.trim().split("\n\n"));
    let plain = || paragraphs().find(|paragraph| !paragraph.starts_with('('));
    let found = paragraphs().find_map(introduced).or_else(plain).unwrap_or(EMPTY_REQUEST);
    let end = found.char_indices().nth(REQUEST_CHARS_MAX).map_or(found.len(), |(at, _)| at);
    &found[..end]
}

/// What a line with a colon introduces.
fn introduced(paragraph: &str) -> Option<&str> {
    let (line, rest) = paragraph.split_once('\n')?;
    line.trim_end().ends_with(':').then_some(rest.trim())
}

/// Why a guide gave no scores.
#[derive(Debug, Error)]
pub enum Unguided {
    /// The question could not be rendered.
    #[error(transparent)]
    Render(#[from] Unrenderable),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] Broken),
}

#[cfg(test)]
mod tests;
