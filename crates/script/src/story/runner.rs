//! Pure: tells a story to an agent that asks, and that may die and ask again.
//!
//! ```text
//! ask ──▶ is the last answer in the conversation?
//! ├─ no: it was lost in a crash ──▶ the same answer again
//! └─ yes
//! ├─ one of its calls was not started ──▶ those calls again
//! ├─ the creator's step, text not shown ──▶ "I wait"
//! ├─ no step left ──▶ "the story is over"
//! ├─ an expectation does not hold ──▶ unmet, for ever
//! └─ the next answer
//! ```
//!
//! **A repeated question.** An agent that dies between receiving an answer and storing it asks
//! again, perhaps in other words (its status has changed, a restart is mentioned). It must get
//! the same answer, or the story would run ahead of it. So the runner checks whether the model's
//! latest answer in the conversation is the last answer given. The agent gives calls its own ids,
//! may shorten long arguments and texts, and may reorder keys. An answer is recognised by the
//! beginning of its text and the names of its tools or, without text, by names and arguments as
//! canonical JSON. No two answers of a story are alike in that, which the parser ensures. The
//! runner's own remarks between the steps are skipped.
//!
//! **A crash after the answer was stored.** The agent then tells its model that the calls behind
//! the crash were "not started", and that the call that was running has the result "outcome
//! unknown". A reasonable model repeats the former. It repeats the latter only if the step says
//! that repeating is harmless.
//!
//! Everything is bounded: an agent that asks the same too often is told that the story cannot go
//! on.

use automaton_core::wire::chat::{ChatMessage, ChatRequest, ChatRole};

use super::answer::{ScriptedAnswer, ScriptedCall, fill};
use super::view::{ConversationView, content};
use super::{CreatorTiming, IfUnknown, ScriptedFault, Story, StoryAction};

/// The model's answer while the creator's text is awaited.
const WAITING: &str = "(I wait for what my creator says.)";

/// The model's answer after the last step.
const OVER: &str = "(The story is over.)";

/// The agent's words for a call that a crash kept from starting.
const NOT_STARTED: &str = "not started";

/// The agent's words for a call that a crash interrupted.
const OUTCOME_UNKNOWN: &str = "outcome unknown";

/// The most repetitions of an answer or of its calls.
const REPEATS_MAX: u32 = 20;

/// The most times that the model says in one step that it waits.
const WAITS_MAX: u32 = 100;

/// The reply to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TellerReply {
    /// An answer, perhaps with a failure to deliver it.
    Answer(ScriptedAnswer, Option<ScriptedFault>),
    /// The story cannot go on, for this reason.
    Refused(String),
}

/// A progress of the story, for its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoryProgress {
    /// A step was met: the model's answer is being sent, or the creator's text was shown to the
    /// model.
    StepMet {
        /// The step's number, from 1.
        step: u32,
        /// The number of steps of the story.
        of: u32,
        /// The description of the step.
        what: String,
    },
    /// The host should send this text to the agent in the creator's name, once.
    CreatorSays {
        /// The step's number, from 1.
        step: u32,
        /// The text.
        text: String,
        /// The time to send it. [`CreatorTiming::Asleep`] means the next time that the agent
        /// falls asleep after this.
        when: CreatorTiming,
    },
    /// Every step is met. The last answer is only now being sent to the agent, which the host
    /// should let finish its turn.
    Ended,
    /// The story cannot go on: the step and the reason.
    Unmet(String),
}

/// A story in progress.
#[derive(Debug)]
pub struct StoryRunner {
    story: Story,
    /// The index of the next step.
    at: usize,
    given: Option<LastAnswer>,
    waits: u32,
    unmet: Option<String>,
    progress: Vec<StoryProgress>,
}

/// An answer with its failure, if any, or the index of the unmet step with the reason.
type NextAnswer = Result<(ScriptedAnswer, Option<ScriptedFault>), (usize, String)>;

/// The last answer given.
#[derive(Debug)]
struct LastAnswer {
    answer: ScriptedAnswer,
    /// The index of its step.
    step: usize,
    /// The number of times that it was requested.
    asked: u32,
    /// The number of times that calls of this step were repeated.
    again: u32,
}

impl StoryRunner {
    /// Creates a story before its first step.
    #[must_use]
    pub fn new(story: Story) -> Self {
        let mut teller =
            Self { story, at: 0, given: None, waits: 0, unmet: None, progress: Vec::new() };
        teller.announce();
        teller
    }

    /// Returns the most entries that [`StoryRunner::take_progress`] gives over a whole story.
    #[must_use]
    pub fn progress_max(&self) -> usize {
        // At most two for each step, and the end.
        self.story.steps.len() * 2 + 1
    }

    /// Takes the progress since the last call.
    pub fn take_progress(&mut self) -> Vec<StoryProgress> {
        std::mem::take(&mut self.progress)
    }

    /// Describes the first step that is not met yet. Returns `None` if all are met.
    #[must_use]
    pub fn open_step(&self) -> Option<String> {
        let unmet = self.unmet.clone();
        unmet.or_else(|| (self.at < self.story.steps.len()).then(|| self.step_in_words(self.at)))
    }

    /// Answers a request.
    pub fn ask(&mut self, request: &ChatRequest) -> TellerReply {
        if let Some(unmet) = &self.unmet {
            return TellerReply::Refused(unmet.clone());
        }
        match self.next(request) {
            Ok((answer, fault)) => TellerReply::Answer(answer, fault),
            Err((step, why)) => {
                let unmet = format!("{}: {why}", self.step_in_words(step));
                self.progress.push(StoryProgress::Unmet(unmet.clone()));
                self.unmet = Some(unmet.clone());
                TellerReply::Refused(unmet)
            }
        }
    }

    fn next(&mut self, request: &ChatRequest) -> NextAnswer {
        let latest = latest_answer(request);
        let view = ConversationView::new(request, latest);
        self.skip_creator_steps(&view.news());
        if let Some(given) = &self.given {
            let Some(at) = latest.filter(|at| given.answer.matches(&request.messages[*at])) else {
                return self.repeat_answer();
            };
            if let Some(answer) = self.repeat_calls(&view.results_of(at))? {
                return Ok((answer, None));
            }
        }
        let at = self.at;
        let model = match self.story.steps.get(at).map(|step| &step.act) {
            Some(StoryAction::Model(model)) => model,
            Some(StoryAction::Creator { .. }) => return self.awaiting_creator(),
            None => return Ok((remark(OVER), None)),
        };
        if let Some(why) = model.expect.unmet_by(&view) {
            return Err((at, why));
        }
        let answer = fill(at, model, &view).map_err(|why| (at, why))?;
        self.given = Some(LastAnswer { answer, step: at, asked: 0, again: 0 });
        self.advance();
        self.repeat_answer()
    }

    /// Returns the last answer, perhaps with a failure this time.
    fn repeat_answer(&mut self) -> NextAnswer {
        let Some(given) = &mut self.given else { return Ok((remark(OVER), None)) };
        let model = match self.story.steps.get(given.step).map(|step| &step.act) {
            Some(StoryAction::Model(model)) if given.again == 0 => Some(model),
            _ => None,
        };
        let faults = model.map_or(&[][..], |model| &model.faults);
        let fault = usize::try_from(given.asked).ok().and_then(|nth| faults.get(nth)).copied();
        let expected = u32::try_from(faults.len()).unwrap_or(u32::MAX);
        given.asked = given.asked.saturating_add(1);
        if given.asked > expected.saturating_add(REPEATS_MAX) {
            let asked = given.asked;
            let why = format!(
                "its answer was asked for {asked} times and never appeared in the conversation \
                 as the last thing that the model said"
            );
            return Err((given.step, why));
        }
        Ok((given.answer.clone(), fault))
    }

    /// Returns the calls that a crash prevented, once more.
    fn repeat_calls(
        &mut self,
        results: &[Option<&str>],
    ) -> Result<Option<ScriptedAnswer>, (usize, String)> {
        let Some(given) = &mut self.given else { return Ok(None) };
        let step = given.step;
        let harmless = match self.story.steps.get(step).map(|step| &step.act) {
            Some(StoryAction::Model(model)) => model.if_unknown == IfUnknown::Again,
            _ => false,
        };
        let lost = |result: &Option<&str>| {
            let text = result.unwrap_or_default().to_lowercase();
            text.contains(NOT_STARTED) || (harmless && text.contains(OUTCOME_UNKNOWN))
        };
        let calls = given.answer.calls.iter().zip(results);
        let again: Vec<&ScriptedCall> =
            calls.filter(|(_, result)| lost(result)).map(|(call, _)| call).collect();
        if again.is_empty() {
            return Ok(None);
        }
        let count = given.again + 1;
        if count > REPEATS_MAX {
            return Err((step, format!("its calls were cut off {count} times")));
        }
        let id = |nth: usize| format!("call_{}_{}_again_{count}", step + 1, nth + 1);
        let remade =
            |(nth, call): (usize, &ScriptedCall)| ScriptedCall { id: id(nth), ..call.clone() };
        let answer = ScriptedAnswer {
            text: format!("(I was cut off in step {}, and do it again: {count}.)", step + 1),
            calls: again.into_iter().enumerate().map(remade).collect(),
        };
        *given = LastAnswer { answer: answer.clone(), step, asked: 1, again: count };
        Ok(Some(answer))
    }

    /// Skips the creator's steps whose text is shown to the model, whoever sent it and however
    /// often.
    fn skip_creator_steps(&mut self, news: &str) {
        while let Some(StoryAction::Creator { text, .. }) =
            self.story.steps.get(self.at).map(|s| &s.act)
        {
            if !news.contains(text.trim()) {
                break;
            }
            self.waits = 0;
            self.advance();
        }
    }

    /// Returns the model's remark while the creator's text is awaited.
    fn awaiting_creator(&mut self) -> NextAnswer {
        self.waits += 1;
        if self.waits > WAITS_MAX {
            let why = format!("the model was asked {WAITS_MAX} times and not shown it");
            return Err((self.at, why));
        }
        Ok((remark(WAITING), None))
    }

    /// Marks the current step as met.
    fn advance(&mut self) {
        if let Some(step) = self.story.steps.get(self.at) {
            let of = number(self.story.steps.len());
            let what = step.what.clone();
            self.progress.push(StoryProgress::StepMet { step: number(self.at + 1), of, what });
            let was_model = matches!(step.act, StoryAction::Model(_));
            self.at += 1;
            if was_model {
                self.announce();
            }
        }
        if self.at == self.story.steps.len() {
            self.progress.push(StoryProgress::Ended);
        }
    }

    /// Tells the host the creator's texts before the model's next answer.
    fn announce(&mut self) {
        for (index, step) in self.story.steps.iter().enumerate().skip(self.at) {
            let StoryAction::Creator { text, when } = &step.act else { break };
            let step = number(index + 1);
            self.progress.push(StoryProgress::CreatorSays {
                step,
                text: text.clone(),
                when: *when,
            });
        }
    }

    fn step_in_words(&self, index: usize) -> String {
        let what = self.story.steps.get(index).map_or("", |step| step.what.as_str());
        format!("step {} ({what})", index + 1)
    }
}

/// Returns the index of the model's latest message that belongs to a step.
fn latest_answer(request: &ChatRequest) -> Option<usize> {
    let is_aside = |message: &ChatMessage| [WAITING, OVER].contains(&content(message).trim());
    let said = |m: &ChatMessage| m.role == ChatRole::Assistant && !is_aside(m);
    request.messages.iter().rposition(said)
}

fn remark(text: &str) -> ScriptedAnswer {
    ScriptedAnswer { text: text.to_owned(), calls: Vec::new() }
}

/// Converts a count of steps, which the parser keeps small.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
