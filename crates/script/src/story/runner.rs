//! Pure: tells a story to an agent that asks, and may die and ask again.
//!
//! ```text
//! ask ──▶ is the last answer in the conversation?
//!          ├─ no: it was lost in a crash ──▶ the same answer again
//!          └─ yes
//!             ├─ one of its calls was not started ──▶ those calls again
//!             ├─ the creator's step, words not shown ──▶ "I wait"
//!             ├─ no step left ──▶ "the story is over"
//!             ├─ an expectation does not hold ──▶ unmet, for ever
//!             └─ the next answer
//! ```
//!
//! **A question that is asked again.** An agent that dies between hearing an
//! answer and storing it will ask the same once more, perhaps in other words
//! (its status has changed, a restart is mentioned). It must get the same
//! answer, or the story would run ahead of it. So the teller looks whether the
//! latest thing that the model is shown to have said is the last answer given.
//! The agent gives calls ids of its own, may shorten long arguments and texts,
//! and may reorder keys: an answer is recognised by the head of its text and
//! the names of its tools or, when it has no text, by names and arguments as
//! canonical JSON. No two answers of a story are alike in that (the parser sees
//! to it). What the teller says between the steps is passed over.
//!
//! **A crash after the answer was stored.** The agent then tells its model that
//! the calls behind the crash were "not started" and that the outcome of the
//! one that ran is "outcome unknown". A sane model makes the former again; the
//! latter only if the step says that repeating is harmless.
//!
//! Everything is bounded: whoever asks the same too often is told that the
//! story cannot go on.

use automaton_core::wire::chat::{ChatMessage, ChatRequest, ChatRole};

use super::answer::{ScriptedAnswer, ScriptedCall, fill};
use super::view::{ConversationView, content};
use super::{CreatorTiming, IfUnknown, ScriptedFault, Story, StoryAction};

/// What the model says while the creator is expected to speak.
const WAITING: &str = "(I wait for what my creator says.)";

/// What the model says when every step is told.
const OVER: &str = "(The story is over.)";

/// What the agent tells its model of a call that a crash kept from starting.
const NOT_STARTED: &str = "not started";

/// What the agent tells its model of a call that a crash cut off.
const OUTCOME_UNKNOWN: &str = "outcome unknown";

/// How often the same answer is given, or its calls made again.
const REPEATS_MAX: u32 = 20;

/// How often the model says that it waits, in one step.
const WAITS_MAX: u32 = 100;

/// What the agent is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TellerReply {
    /// An answer, or a failure to give it.
    Answer(ScriptedAnswer, Option<ScriptedFault>),
    /// The story cannot go on, and why.
    Refused(String),
}

/// What the host of a story needs to know, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoryProgress {
    /// A step was met: the model's answer is on its way, or the creator's words
    /// were shown to the model.
    StepMet {
        /// The step's number, from 1.
        step: u32,
        /// Steps of the story.
        of: u32,
        /// The step in words.
        what: String,
    },
    /// The host should send this to the agent in the creator's name, once.
    CreatorSays {
        /// The step's number, from 1.
        step: u32,
        /// Their words.
        text: String,
        /// When; [`CreatorTiming::Asleep`] means the next time that the agent falls
        /// asleep after this was announced.
        when: CreatorTiming,
    },
    /// Every step is met. The last answer is only now on its way to the agent,
    /// which the host should let finish its turn.
    Ended,
    /// The story cannot go on: the step and the reason.
    Unmet(String),
}

/// A story on its way.
#[derive(Debug)]
pub struct StoryRunner {
    story: Story,
    /// The index of the next step that is not met.
    at: usize,
    given: Option<LastAnswer>,
    waits: u32,
    unmet: Option<String>,
    progress: Vec<StoryProgress>,
}

/// An answer with the failure that spoils it, if any; or the index of the step
/// that is unmet, and why.
type NextAnswer = Result<(ScriptedAnswer, Option<ScriptedFault>), (usize, String)>;

/// The last answer given.
#[derive(Debug)]
struct LastAnswer {
    answer: ScriptedAnswer,
    /// The index of its step.
    step: usize,
    /// How often it was asked for.
    asked: u32,
    /// How often calls of this step were made again.
    again: u32,
}

impl StoryRunner {
    /// A story before its first step.
    #[must_use]
    pub fn new(story: Story) -> Self {
        let mut teller =
            Self { story, at: 0, given: None, waits: 0, unmet: None, progress: Vec::new() };
        teller.announce();
        teller
    }

    /// The most entries that [`StoryRunner::take_progress`] gives over a whole story.
    #[must_use]
    pub fn progress_max(&self) -> usize {
        // At most two for each step, and the end.
        self.story.steps.len() * 2 + 1
    }

    /// What happened since the last time.
    pub fn take_progress(&mut self) -> Vec<StoryProgress> {
        std::mem::take(&mut self.progress)
    }

    /// The step that is not met yet, in words; `None` when all are.
    #[must_use]
    pub fn open_step(&self) -> Option<String> {
        let unmet = self.unmet.clone();
        unmet.or_else(|| (self.at < self.story.steps.len()).then(|| self.step_in_words(self.at)))
    }

    /// Answers a question.
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
        let latest = latest_said(request);
        let view = ConversationView::of(request, latest);
        self.hear_creator(&view.news());
        if let Some(given) = &self.given {
            let Some(at) = latest.filter(|at| given.answer.is(&request.messages[*at])) else {
                return self.same_again();
            };
            if let Some(answer) = self.redo(&view.results_of(at))? {
                return Ok((answer, None));
            }
        }
        let at = self.at;
        let model = match self.story.steps.get(at).map(|step| &step.act) {
            Some(StoryAction::Model(model)) => model,
            Some(StoryAction::Creator { .. }) => return self.wait(),
            None => return Ok((aside(OVER), None)),
        };
        if let Some(why) = model.expect.unmet_by(&view) {
            return Err((at, why));
        }
        let answer = fill(at, model, &view).map_err(|why| (at, why))?;
        self.given = Some(LastAnswer { answer, step: at, asked: 0, again: 0 });
        self.meet();
        self.same_again()
    }

    /// The last answer, perhaps with something going wrong this time.
    fn same_again(&mut self) -> NextAnswer {
        let Some(given) = &mut self.given else { return Ok((aside(OVER), None)) };
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

    /// The calls that a crash kept from happening, once more.
    fn redo(
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

    /// Goes past the creator's steps of which the model is shown the words,
    /// whoever sent them and however often.
    fn hear_creator(&mut self, news: &str) {
        while let Some(StoryAction::Creator { text, .. }) =
            self.story.steps.get(self.at).map(|s| &s.act)
        {
            if !news.contains(text.trim()) {
                break;
            }
            self.waits = 0;
            self.meet();
        }
    }

    /// What the model says while the creator has yet to speak.
    fn wait(&mut self) -> NextAnswer {
        self.waits += 1;
        if self.waits > WAITS_MAX {
            let why = format!("the model was asked {WAITS_MAX} times and not shown it");
            return Err((self.at, why));
        }
        Ok((aside(WAITING), None))
    }

    /// Goes past a step that is met.
    fn meet(&mut self) {
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

    /// Tells the host what the creator says before the model's next answer.
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

/// The index of the latest message in which the model said anything of a step.
fn latest_said(request: &ChatRequest) -> Option<usize> {
    let is_aside = |message: &ChatMessage| [WAITING, OVER].contains(&content(message).trim());
    let said = |m: &ChatMessage| m.role == ChatRole::Assistant && !is_aside(m);
    request.messages.iter().rposition(said)
}

fn aside(text: &str) -> ScriptedAnswer {
    ScriptedAnswer { text: text.to_owned(), calls: Vec::new() }
}

/// A count of steps, which the parser keeps small.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
