//! The upstreams behind the cloud: servers over HTTP, or a model in our sandbox, in the order in
//! which they are asked.
//!
//! If an upstream does not answer, the next is asked, as long as nothing of its answer was passed
//! on. After that no other is asked. An upstream must never decide the price of an answer, and a
//! failed one never costs the client anything: its own charges are the operator's loss. If one of
//! our limits ends an answer, the client pays for the part that was passed on, since the client
//! brought that about.

pub(crate) mod health;
mod local;
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::chain;
use automaton_core::model::ModelId;
use automaton_core::time::Clock;
use automaton_inference::Provider as _;
use automaton_inference::providers::http::ApiFormat;
use automaton_inference::providers::local::LocalModel;
use axum::http::StatusCode;

use self::health::{HealthVerdict, UpstreamHealth};
use super::ChatBody;
use super::answer::Answer;
use crate::config::{OfferedModel, TokenLimitName};
use crate::error::{ApiError, OperatorNotifier};

pub(crate) use server::UpstreamServer;

/// The code of a refusal that the client can mend.
const REFUSED: &str = "UPSTREAM_REFUSED";

/// An upstream.
pub(crate) enum Upstream {
    /// A server.
    Server(Box<UpstreamServer>),
    /// A model of our own.
    Local(Box<LocalModel>),
}

/// One of those who think.
pub(crate) struct UpstreamEntry {
    /// The operator's name of the upstream.
    pub(crate) name: String,
    /// The models that it serves; all where there is none.
    pub(crate) models: Option<Vec<ModelId>>,
    /// The upstream's names of models that it calls differently.
    pub(crate) ids: BTreeMap<ModelId, ModelId>,
    pub(crate) upstream: Upstream,
    pub(crate) health: UpstreamHealth,
}

/// All of them, the first to be asked first.
pub(crate) struct UpstreamPool {
    pub(crate) entries: Vec<UpstreamEntry>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// One question.
pub(super) struct UpstreamRequest<'a> {
    pub(super) chat: &'a ChatBody,
    pub(super) model: &'a OfferedModel,
    pub(super) report: &'a OperatorNotifier,
}

/// The parts of a request that concern one upstream.
struct UpstreamTry<'a> {
    chat: &'a ChatBody,
    model: &'a OfferedModel,
    /// The upstream's name of the model.
    id: &'a ModelId,
    report: &'a OperatorNotifier,
    /// The upstream, in words.
    name: &'a str,
    clock: &'a dyn Clock,
}

/// An upstream gave no answer.
struct UpstreamFailure {
    /// The error for the client, if no other upstream answers.
    told: Box<ApiError>,
    kind: FailureKind,
}

/// The consequence of a failure.
#[derive(Clone, Copy)]
enum FailureKind {
    /// The client can mend it, and no other upstream would answer either.
    Mendable,
    /// This upstream cannot be asked that; another may.
    Unfit,
    /// It says something of the upstream; another may answer.
    Verdict(HealthVerdict),
    /// One of our limits ended the answer.
    CutOff,
}

/// An answer, to its end or to where we broke it off.
pub(super) struct UpstreamAnswer<'r> {
    pub(super) answer: Box<dyn Answer + 'r>,
    /// The error for the client, if we broke the answer off.
    pub(super) cut_off: Option<ApiError>,
}

impl UpstreamFailure {
    fn mendable(told: ApiError) -> Self {
        Self { told: Box::new(told), kind: FailureKind::Mendable }
    }

    fn unfit(told: ApiError) -> Self {
        Self { told: Box::new(told), kind: FailureKind::Unfit }
    }

    fn from_verdict(verdict: HealthVerdict, told: ApiError) -> Self {
        Self { told: Box::new(told), kind: FailureKind::Verdict(verdict) }
    }
}

impl UpstreamEntry {
    /// Returns whether the upstream serves a model.
    pub(crate) fn serves(&self, model: &ModelId) -> bool {
        self.models.as_ref().is_none_or(|models| models.contains(model))
    }

    fn format(&self) -> ApiFormat {
        match &self.upstream {
            Upstream::Server(server) => server.format,
            Upstream::Local(_) => ApiFormat::ChatCompletions,
        }
    }

    async fn answer(
        &self,
        asked: &UpstreamTry<'_>,
        answer: &mut dyn Answer,
    ) -> Result<(), UpstreamFailure> {
        match &self.upstream {
            Upstream::Server(server) => server.answer(asked, answer).await?,
            Upstream::Local(model) => local::think(model, asked, answer).await?,
        }
        if answer.is_whole() {
            Ok(())
        } else {
            Err(unreadable(asked, "the answer ended too early"))
        }
    }
}

impl UpstreamPool {
    /// Lets a model of our own go that nobody has asked for so long.
    pub(super) async fn unload(&self, idle: Duration) {
        for entry in &self.entries {
            if let Upstream::Local(local) = &entry.upstream {
                local.unload_after(idle).await;
            }
        }
    }

    /// Returns the name of the limit of tokens in requests for a model.
    pub(crate) fn limit_name(&self, model: &ModelId) -> TokenLimitName {
        match self.entries.iter().find(|entry| entry.serves(model)).map(|entry| &entry.upstream) {
            Some(Upstream::Server(server)) => server.limit_name,
            Some(Upstream::Local(_)) | None => TokenLimitName::MaxTokens,
        }
    }

    /// A model as it is offered: what the configuration says, within what is
    /// known of the one that answers.
    pub(crate) fn offered(&self, mut model: OfferedModel) -> OfferedModel {
        for entry in self.entries.iter().filter(|entry| entry.serves(&model.id)) {
            if let Upstream::Local(local) = &entry.upstream {
                let known = local.model();
                model.context_window = model.context_window.min(known.context_tokens);
                (model.weak, model.note) = (known.weak, known.note.clone());
            }
        }
        model
    }

    /// Has a question answered by the first that does, into the answer that `fresh` makes for a
    /// format.
    ///
    /// # Errors
    /// The error for the client. The causes that concern the operator are reported.
    pub(super) async fn answer<'r>(
        &self,
        question: &UpstreamRequest<'_>,
        fresh: impl Fn(ApiFormat) -> Box<dyn Answer + 'r> + Sync,
    ) -> Result<UpstreamAnswer<'r>, ApiError> {
        let serving = self.entries.iter().filter(|entry| entry.serves(&question.model.id));
        let mut resting = Vec::new();
        let mut told = None;
        for entry in serving {
            if !entry.health.admits(self.clock.now()) {
                resting.push(entry);
                continue;
            }
            match self.ask(entry, question, &fresh).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => keep_failure(&mut told, failure)?,
            }
        }
        // Better one that may fail than no answer.
        for entry in resting {
            match self.ask(entry, question, &fresh).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => keep_failure(&mut told, failure)?,
            }
        }
        Err(told.map_or_else(|| ApiError::no_model(question.model.id.as_str()), |told| *told))
    }

    /// Asks one of them. A failure after something was passed on is the end.
    async fn ask<'r>(
        &self,
        entry: &UpstreamEntry,
        question: &UpstreamRequest<'_>,
        fresh: &(impl Fn(ApiFormat) -> Box<dyn Answer + 'r> + Sync),
    ) -> Result<UpstreamAnswer<'r>, UpstreamFailure> {
        let UpstreamRequest { chat, model, report } = *question;
        let id = entry.ids.get(&model.id).unwrap_or_else(|| model.upstream_id());
        let name = entry.name.as_str();
        let clock = &*self.clock;
        let asked = UpstreamTry { chat, model, id, report, name, clock };
        let mut answer = fresh(entry.format());
        let done = entry.answer(&asked, &mut *answer).await;
        let verdict = match &done {
            Ok(())
            | Err(UpstreamFailure { kind: FailureKind::Mendable | FailureKind::CutOff, .. }) => {
                Some(HealthVerdict::Works)
            }
            Err(UpstreamFailure { kind: FailureKind::Verdict(verdict), .. }) => Some(*verdict),
            Err(UpstreamFailure { kind: FailureKind::Unfit, .. }) => None,
        };
        if entry.health.judge(verdict, self.clock.now()) && self.entries.len() > 1 {
            report(format!("{name} rests; others are asked in its place"));
        }
        match done {
            Ok(()) => Ok(UpstreamAnswer { answer, cut_off: None }),
            Err(UpstreamFailure { kind: FailureKind::CutOff, told }) if answer.is_shown() => {
                Ok(UpstreamAnswer { answer, cut_off: Some(*told) })
            }
            Err(failure) if answer.is_shown() => {
                Err(UpstreamFailure { kind: FailureKind::Mendable, ..failure })
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Keeps the error for the client in case that no upstream answers, preferring one that says when
/// to ask again.
fn keep_failure(
    told: &mut Option<Box<ApiError>>,
    failure: UpstreamFailure,
) -> Result<(), ApiError> {
    if let FailureKind::Mendable = failure.kind {
        return Err(*failure.told);
    }
    if told.as_ref().is_none_or(|told| told.again_after.is_none()) {
        *told = Some(failure.told);
    }
    Ok(())
}

/// Returns the failure of an upstream. Its words are reported to the operator alone.
fn broken(asked: &UpstreamTry<'_>, error: &(dyn std::error::Error + 'static)) -> UpstreamFailure {
    unreadable(asked, &chain(error).to_string())
}

/// Returns the same failure for words that hold no key.
fn unreadable(asked: &UpstreamTry<'_>, what: &str) -> UpstreamFailure {
    (asked.report)(format!("{} failed: {what}", asked.name));
    let told =
        ApiError::new(StatusCode::BAD_GATEWAY, "UPSTREAM_FAILED", "the model did not answer");
    UpstreamFailure::from_verdict(HealthVerdict::Failed, told)
}
