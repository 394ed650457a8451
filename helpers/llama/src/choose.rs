//! Which tool a call is for.
//!
//! The names are scored as continuations of the answer and the best one is forced,
//! so that the rest of the answer needs the grammar of one tool only. A weak model
//! likes some names in any context; what it would say of an empty question is
//! measured once and subtracted (contextual calibration, Zhao et al., 2021). It
//! must never choose a tool that was left out.

use automaton_core::wire::brain::{Message, Role, Tool};
use llama_cpp_2::token::LlamaToken;

use crate::render::{Renderer, Unrenderable, call_start};
use crate::session::{Broken, Session};

/// What stands for an empty question.
const EMPTY_QUESTION: &str = "N/A";

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
    pub fn new(tools: &[Tool], renderer: &Renderer<'_>) -> Self {
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

/// The liking of a weak model for each name when there is no question.
#[derive(Debug, Default)]
pub struct Prior {
    prompt: Vec<LlamaToken>,
    scores: Vec<f64>,
}

impl Prior {
    /// Measures the prior unless it is known for these rules and tools.
    ///
    /// # Errors
    /// [`Unmeasured`] when the model fails or the rules do not fit.
    pub fn measure(
        &mut self,
        messages: &[Message],
        starts: &Starts,
        renderer: &Renderer<'_>,
        session: &mut Session<'_>,
    ) -> Result<&[f64], Unmeasured> {
        let rules = messages.iter().take_while(|message| message.role == Role::System);
        let mut empty: Vec<Message> = rules.cloned().collect();
        empty.push(Message {
            role: Role::User,
            content: EMPTY_QUESTION.to_owned(),
            calls: Vec::new(),
        });
        let mut prompt = renderer.prompt(&empty)?;
        prompt.extend_from_slice(&starts.shared);
        if self.prompt != prompt || self.scores.len() != starts.rests.len() {
            session.feed(&prompt)?;
            self.scores = session.score(&starts.names())?;
            self.prompt = prompt;
        }
        Ok(&self.scores)
    }
}

/// Why a prior is missing.
#[derive(Debug, thiserror::Error)]
pub enum Unmeasured {
    /// The empty question could not be rendered.
    #[error(transparent)]
    Render(#[from] Unrenderable),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] Broken),
}
