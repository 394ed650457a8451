//! Metered calls of models: set aside, ask the upstream, charge, answer.
//!
//! A call is a task of its own that records its answer, and clients read the recording. So a
//! client that hangs up changes nothing. A client that repeats a request, by its name or after it
//! lost its connection, is not charged twice. Otherwise two equal requests without a name are two
//! calls, since the client may want two answers. The end of an answer is never shown before it is
//! charged.

mod answer;
mod answer_stream;
mod call;
mod chat_request;
mod embeddings;
mod gate;
mod held_back;
mod messages_request;
mod prompt_extra;
mod recording;
mod relayed_answer;
mod reply_limits;
mod request;
mod responses_request;
mod translated_answer;
mod upstream;

use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::chain;
use automaton_core::id::{HoldId, IdGenerator};
use automaton_core::model::ModelId;
use automaton_core::money::Microcents;
use automaton_core::time::Timestamp;
use automaton_sqlite::chain::{CanonicalRow, Hash};
use bytes::Bytes;

use crate::access::Caller;
use crate::config::OfferedModel;
use crate::db::{Balance, Db, HoldOutcome, NewHold};
use crate::error::{ApiError, OperatorNotifier};
use crate::tasks::TaskSet;

pub(crate) use gate::CallGate;
pub(crate) use messages_request::betas as known_betas;
pub(crate) use recording::Recording;
pub(crate) use request::{ChatBody, ClientFormat};
pub(crate) use upstream::health::{KeyRing, UpstreamHealth};
pub(crate) use upstream::{Upstream, UpstreamEntry, UpstreamPool, UpstreamServer};

use self::gate::CallAdmission;

/// The idle time after which a local model is unloaded.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// The dependencies of calls.
pub(crate) struct ChatService {
    pub(crate) db: Db,
    pub(crate) upstreams: UpstreamPool,
    pub(crate) models: Vec<OfferedModel>,
    /// The balance that a wallet needs before a call that costs something.
    pub(crate) minimum: Microcents,
    pub(crate) ids: IdGenerator,
    pub(crate) tasks: TaskSet,
    pub(crate) report: OperatorNotifier,
    pub(crate) started: Timestamp,
    pub(crate) calls: CallGate,
}

/// A request for a call, as it came.
pub(crate) struct CallRequest<'a> {
    pub(crate) caller: Caller,
    /// Its `Idempotency-Key`.
    pub(crate) name: Option<String>,
    /// The format of its body.
    pub(crate) format: ClientFormat,
    pub(crate) body: &'a Bytes,
    /// The `anthropic-beta` names of the request.
    pub(crate) betas: Vec<String>,
}

impl ChatService {
    /// A model that is offered.
    pub(crate) fn model(&self, id: &ModelId) -> Result<&OfferedModel, ApiError> {
        let model = self.models.iter().find(|model| model.id == *id);
        model.ok_or_else(|| ApiError::no_model(id.as_str()))
    }

    /// Lets a model of our own go that nobody asks, for as long as the cloud runs.
    pub(crate) async fn unload_idle(self: Arc<Self>) {
        loop {
            tokio::time::sleep(IDLE_MAX / 4).await;
            self.upstreams.unload(IDLE_MAX).await;
        }
    }

    /// Begins a call, or joins the one that this request repeats.
    pub(crate) fn begin(
        self: Arc<Self>,
        request: CallRequest<'_>,
    ) -> Result<Arc<Recording>, ApiError> {
        let CallRequest { caller, name, format, body, betas } = request;
        let content = match format {
            ClientFormat::ChatCompletions => Hash::of(body),
            ClientFormat::Embeddings => CanonicalRow::new("embeddings").bytes(body).hash(),
            ClientFormat::Responses => CanonicalRow::new("responses").bytes(body).hash(),
            ClientFormat::AnthropicMessages => {
                CanonicalRow::new("messages").text(&betas.join(",")).bytes(body).hash()
            }
        };
        let mut chat = ChatBody::parse(format, body)?;
        chat.betas = betas;
        let model = self.model(&chat.model)?.clone();
        if model.embeddings != (format == ClientFormat::Embeddings) {
            let what = match model.embeddings {
                true => format!("the model '{}' makes embeddings: ask /v1/embeddings", model.id),
                false => format!("the model '{}' makes no embeddings", model.id),
            };
            return Err(ApiError::wrong_field(what, Some("model")));
        }
        if !chat.stream && !chat.reply_limits(&model).fit_document() {
            let what = "so many tokens with their probabilities come only as a stream: set stream, \
                        or ask for fewer tokens or probabilities";
            return Err(ApiError::wrong_field(what.to_owned(), Some("top_logprobs")));
        }
        let hold: HoldId = self.ids.id();
        let of = |name: &str| CanonicalRow::new(name).bytes(caller.key.as_bytes());
        let (identity, equal) = match &name {
            Some(name) => (of("call").text(name).hash(), None),
            None => {
                let equal = of("equal calls").bytes(content.as_bytes()).hash();
                (of("unnamed call").text(&hold.to_string()).hash(), Some(equal))
            }
        };
        let recording = Recording::new(caller.key, content, equal, chat.reply_form());
        let recording = match self.calls.admit(identity, recording, self.ids.now())? {
            CallAdmission::New(recording) => recording,
            CallAdmission::Joined(recording) => return Ok(recording),
        };
        let meter = self;
        let recorded = Arc::clone(&recording);
        let tasks = meter.tasks.clone();
        // From here on nothing depends on the request, which may be dropped.
        tasks.spawn(async move {
            match meter.open(&caller, hold, name, &chat, &model).await {
                Ok(()) => {
                    let is_large = chat.reply_limits(&model).is_large;
                    // silent-ok: nobody closes it.
                    let _permit =
                        if is_large { meter.calls.large.acquire().await.ok() } else { None };
                    let call = call::MeteredCall { meter: Arc::clone(&meter), chat, model, hold };
                    call.run(&recorded).await;
                }
                Err(refusal) => recorded.refuse(refusal),
            }
            recorded.end(meter.ids.now());
            if recorded.refused() {
                // What failed may be tried again.
                meter.calls.forget(identity, &recorded);
            }
        });
        Ok(recording)
    }

    /// Sets the most that the call can cost aside.
    async fn open(
        &self,
        caller: &Caller,
        id: HoldId,
        name: Option<String>,
        chat: &ChatBody,
        model: &OfferedModel,
    ) -> Result<(), ApiError> {
        let internal =
            |error: &(dyn std::error::Error + 'static)| ApiError::internal(&self.report, error);
        let tokens = chat.bounds(model).most;
        let most = model.prices().at_most(tokens).map_err(|error| internal(&error))?;
        let free = most == Microcents::ZERO;
        let minimum = if free { Microcents::ZERO } else { self.minimum };
        let wallet = caller.wallet;
        let model = model.id.clone();
        let hold = NewHold { id, wallet, model, name, amount: most, minimum };
        let opened = self.db.open_hold(hold).await.map_err(|error| internal(&error))?;
        match opened {
            HoldOutcome::Held => Ok(()),
            HoldOutcome::Insufficient { available } => {
                let held = self.db.balance(wallet).await.map_err(|error| internal(&error))?.held;
                let balance = Balance { available, held };
                Err(ApiError::cannot_ask(most.max(minimum), tokens, balance))
            }
        }
    }

    /// Gives back what was set aside for a call that failed.
    async fn release(&self, hold: HoldId) {
        if let Err(error) = self.db.release_hold(hold).await {
            // The next start releases it.
            (self.report)(format!("the hold {hold} stays open: {}", chain(&error)));
        }
    }
}
