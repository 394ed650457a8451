//! Metered calls of models: set aside, ask the upstream, charge, answer.
//!
//! A call is a task of its own that records its answer; whoever sent the request,
//! now or again, reads the recording. So a client that hangs up changes nothing
//! and a client that repeats itself, by a name or after it lost its connection, is
//! not charged twice. Without a name two equal questions are two otherwise: who asks
//! twice may want two answers. The end of an answer is never shown before it is
//! charged.

mod answer_stream;
mod call;
mod recording;
mod request;
mod upstream;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use automaton_core::error::chain;
use automaton_core::id::{HoldId, IdGenerator};
use automaton_core::money::Microcents;
use automaton_core::time::{Span, Timestamp};
use automaton_sqlite::chain::{CanonicalRow, Hash};
use bytes::Bytes;

use crate::access::Caller;
use crate::config::OfferedModel;
use crate::db::{Balance, Db, HoldOutcome, NewHold};
use crate::error::{ApiError, OperatorNotifier};
use crate::tasks::TaskSet;

pub(crate) use recording::Recording;
pub(crate) use request::ChatBody;
pub(crate) use upstream::{Upstream, UpstreamServer};

/// How long a finished answer is kept for those who ask again.
const KEPT: Span = Span::from_secs(120);
/// Calls under way at a time.
const CALLS_MAX: usize = 128;
/// Bytes of finished answers that are kept.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// What calls need.
pub(crate) struct ChatService {
    pub(crate) db: Arc<dyn Db>,
    pub(crate) upstream: Upstream,
    pub(crate) models: Vec<OfferedModel>,
    /// What a wallet has to have before a call that costs something.
    pub(crate) minimum: Microcents,
    pub(crate) ids: IdGenerator,
    pub(crate) tasks: TaskSet,
    pub(crate) report: OperatorNotifier,
    /// When the cloud was started.
    pub(crate) started: Timestamp,
    /// A std mutex, since nothing is awaited while it is held.
    pub(crate) calls: Mutex<HashMap<Hash, Arc<Recording>>>,
}

/// What a request led to.
enum CallAdmission {
    /// A call of its own.
    New(Arc<Recording>),
    /// The call that it repeats.
    Joined(Arc<Recording>),
}

impl ChatService {
    /// Begins a call, or joins the one that this request repeats.
    pub(crate) fn begin(
        self: Arc<Self>,
        caller: Caller,
        name: Option<String>,
        body: &Bytes,
    ) -> Result<Arc<Recording>, ApiError> {
        let content = Hash::of(body);
        let chat = ChatBody::parse(body)?;
        let model = self.models.iter().find(|model| model.id == chat.model).cloned();
        let model = model.ok_or_else(|| ApiError::no_model(chat.model.as_str()))?;
        let hold: HoldId = self.ids.id();
        let of = |name: &str| CanonicalRow::new(name).bytes(caller.key.as_bytes());
        let (identity, equal) = match &name {
            Some(name) => (of("call").text(name).hash(), None),
            None => {
                let equal = of("equal calls").bytes(content.as_bytes()).hash();
                (of("unnamed call").text(&hold.to_string()).hash(), Some(equal))
            }
        };
        let recording = Recording::new(content, equal, chat.media());
        let recording = match self.admit(identity, recording)? {
            CallAdmission::New(recording) => recording,
            CallAdmission::Joined(recording) => return Ok(recording),
        };
        let (meter, recorded) = (self, Arc::clone(&recording));
        let tasks = meter.tasks.clone();
        // From here on nothing depends on the request, which may be dropped.
        tasks.spawn(async move {
            match meter.open(&caller, hold, name, &chat, &model).await {
                Ok(()) => {
                    let call = call::MeteredCall { meter: Arc::clone(&meter), chat, model, hold };
                    call.run(&recorded).await;
                }
                Err(refusal) => recorded.refuse(refusal),
            }
            recorded.end(meter.ids.now());
            if recorded.refused() {
                // What failed may be tried again.
                meter.forget(identity, &recorded);
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
        let (wallet, model) = (caller.wallet, model.id.clone());
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

    /// Joins the call of this identity, or makes room for it and enters it.
    fn admit(&self, identity: Hash, recording: Recording) -> Result<CallAdmission, ApiError> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.ids.now();
        let is_kept = |call: &Recording, end| now.since(end) <= KEPT && !call.is_spent();
        calls.retain(|_, call| call.ended_at().is_none_or(|end| is_kept(call, end)));
        let known = match recording.equal {
            Some(_) => calls.values().find(|call| call.is_taken_over_by(&recording)),
            None => calls.get(&identity),
        };
        match known {
            // What was refused is about to be forgotten.
            Some(known) if known.refused() => {}
            Some(known) if known.content == recording.content => {
                return Ok(CallAdmission::Joined(Arc::clone(known)));
            }
            Some(_) => {
                return Err(ApiError::conflict("this Idempotency-Key came with another body"));
            }
            None => {}
        }
        if calls.values().filter(|call| call.ended_at().is_none()).count() >= CALLS_MAX {
            return Err(ApiError::unavailable("too many calls are under way"));
        }
        let mut kept: Vec<_> = calls
            .iter()
            .filter_map(|(id, call)| Some((call.ended_at()?, *id, call.bytes())))
            .collect();
        kept.sort_unstable();
        let mut bytes: usize = kept.iter().map(|(_, _, bytes)| bytes).sum();
        for (_, id, freed) in kept {
            if bytes <= KEPT_BYTES_MAX {
                break;
            }
            calls.remove(&id);
            bytes -= freed;
        }
        let recording = Arc::new(recording);
        calls.insert(identity, Arc::clone(&recording));
        Ok(CallAdmission::New(recording))
    }

    /// Forgets a call, unless another has taken its place.
    fn forget(&self, identity: Hash, recording: &Arc<Recording>) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.get(&identity).is_some_and(|known| Arc::ptr_eq(known, recording)) {
            calls.remove(&identity);
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
