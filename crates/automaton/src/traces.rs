//! A trace of each turn, for a collector of OpenTelemetry.
//!
//! A turn that is committed is read from its record and sent as OTLP/HTTP: a
//! span for the turn, and spans below it for the model's answer, the calls and the
//! payments, with the times that are on record. The agent knows no address. What was
//! said, asked or answered is never sent: only names, sizes, times and outcomes.
//!
//! The encodings are those of OTLP 1 (opentelemetry.io/docs/specs/otlp). A collector that
//! refuses one of them with 415 gets the other one, from then on too. The names of
//! attributes are those of the semantic conventions for generative AI.

mod otlp;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use automaton_core::event::{Event, StampedEvent};
use automaton_core::id::TurnId;
use automaton_core::payment::PaymentState;
use automaton_core::record::{CallRecord, CallStatus, TurnRecord, Usage};
use automaton_core::time::{Span, Timestamp};
use automaton_net::Url;
use automaton_store::{Hash, PaymentDetails, Reader, TurnDetails, TurnRef};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::{JoinSet, spawn_blocking};

pub(crate) use self::otlp::OtlpProtocol;
use self::otlp::{
    OtlpAttribute, OtlpExportRequest, OtlpId, OtlpResource, OtlpScope, OtlpSpan, OtlpStatus,
    OtlpValue, ResourceSpans, ScopeSpans,
};
use crate::delivery_queue::{Delivery, DeliveryFailure, DeliveryQueue, OtherBody, QUEUE};
use crate::error::CliError;
use crate::home::DATABASE;
use crate::http::url;

/// Path of a collector for traces.
const PATH: &str = "v1/traces";

/// Spans of one trace at most: a turn has few calls, and a call few payments.
const SPANS_MAX: usize = 128;

/// Exporter of traces.
#[derive(Debug)]
pub(crate) struct TraceExporter {
    committed: Sender<TurnId>,
    packed: Receiver<Result<Delivery, DeliveryFailure>>,
    queue: DeliveryQueue,
    tasks: JoinSet<()>,
}

/// Source and destination of traces.
struct TraceBuilder {
    database: PathBuf,
    automaton: String,
    to: Url,
    protocol: OtlpProtocol,
    /// True if the collector accepts the other encoding only.
    is_other: Arc<AtomicBool>,
    model_server: ModelServer,
}

/// The collector of traces, as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceCollector {
    /// The address below which it takes them.
    pub(crate) endpoint: String,
    /// The encoding that it gets first.
    pub(crate) protocol: OtlpProtocol,
}

/// The server that answers the model's requests, as the conventions name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelServer {
    /// The provider whose format it speaks.
    pub(crate) provider: &'static str,
    /// Its host and port; `None` for a model on this machine.
    pub(crate) place: Option<(String, u16)>,
}

impl TraceExporter {
    /// Begins to export. `allowed` are the private origins that may be reached.
    ///
    /// # Errors
    /// When an address is none.
    pub(crate) fn start(
        to: &TraceCollector,
        allowed: &[String],
        home: &Path,
        automaton: &str,
        model_server: ModelServer,
    ) -> Result<Self, CliError> {
        let protocol = to.protocol;
        let to = url(&format!("{}/{PATH}", to.endpoint.trim_end_matches('/')))?;
        let (committed, turns) = mpsc::channel(QUEUE);
        let (told, packed) = mpsc::channel(QUEUE);
        let packer = TraceBuilder {
            database: home.join(DATABASE),
            automaton: automaton.to_owned(),
            to,
            protocol,
            is_other: Arc::default(),
            model_server,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(pack(packer, turns, told));
        Ok(Self { committed, packed, queue: DeliveryQueue::start(allowed)?, tasks })
    }

    /// Takes an event, if it is the end of a turn; what is to be told when it cannot.
    pub(crate) fn take(&self, stamped: &StampedEvent) -> Option<Event> {
        let Event::TurnCommitted { turn, .. } = &stamped.event else { return None };
        let error = || format!("{QUEUE} wait for their delivery already");
        let full = self.committed.try_send(*turn).err();
        full.map(|_| Event::TraceLost { turn: turn.to_string(), error: error() })
    }

    /// Hands on what is packed, until one could not be delivered. Cancel-safe: what was
    /// packed is handed on at once.
    pub(crate) async fn next_failure(&mut self) -> Event {
        loop {
            let packed = tokio::select! {
                biased;
                lost = self.queue.next_lost() => return failure_event(lost),
                Some(packed) = self.packed.recv() => packed,
            };
            if let Err(lost) = packed.and_then(|parcel| self.queue.take(parcel)) {
                return failure_event(lost);
            }
        }
    }

    /// Waits a moment for what is not delivered yet, and ends.
    pub(crate) async fn end(self) {
        let Self { committed, mut packed, queue: courier, tasks } = self;
        drop(committed);
        while let Some(parcel) = packed.recv().await {
            // silent-ok: nobody is left to be told; the record has the turn.
            parcel.and_then(|parcel| courier.take(parcel)).ok();
        }
        drop(tasks);
        courier.end().await;
    }
}

fn failure_event(DeliveryFailure { name: turn, error }: DeliveryFailure) -> Event {
    Event::TraceLost { turn, error }
}

/// Packs one turn after the other, until nobody can give more.
async fn pack(
    packer: TraceBuilder,
    mut turns: Receiver<TurnId>,
    packed: Sender<Result<Delivery, DeliveryFailure>>,
) {
    while let Some(turn) = turns.recv().await {
        let database = packer.database.clone();
        let read = spawn_blocking(move || {
            Reader::open(&database).and_then(|reader| reader.turn_details(TurnRef::Id(turn)))
        });
        let lost = |error: String| DeliveryFailure { name: turn.to_string(), error };
        let parcel = match read.await {
            Ok(Ok(Some(dossier))) => {
                packer.parcel(&dossier).map_err(|error| lost(error.to_string()))
            }
            Ok(Ok(None)) => Err(lost("it is not on record".to_owned())),
            Ok(Err(error)) => Err(lost(automaton_core::error::chain(&error).to_string())),
            Err(broken) => Err(lost(broken.to_string())),
        };
        if packed.send(parcel).await.is_err() {
            return;
        }
    }
}

impl TraceBuilder {
    fn parcel(&self, dossier: &TurnDetails) -> Result<Delivery, serde_json::Error> {
        let name = dossier.turn.id.to_string();
        let request = request(&self.automaton, dossier, &self.model_server);
        let is_other = self.is_other.load(Ordering::Relaxed);
        let first = if is_other { self.protocol.other() } else { self.protocol };
        let body = request.encode(first)?;
        let second = first.other();
        let otherwise = OtherBody {
            media_type: second.media_type(),
            body: request.encode(second)?,
            taken: Arc::clone(&self.is_other),
            taken_means: !is_other,
        };
        let key = format!("trace-{name}");
        let delivery = Delivery::typed(name, key, &self.to, first.media_type(), body);
        Ok(Delivery { otherwise: Some(otherwise), ..delivery })
    }
}

/// `SPAN_KIND_INTERNAL` and `SPAN_KIND_CLIENT`.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;

/// Returns `STATUS_CODE_OK`, or `STATUS_CODE_ERROR` with what went wrong.
fn status_of(error: Option<&str>) -> OtlpStatus {
    OtlpStatus { code: if error.is_some() { 2 } else { 1 }, message: error.map(str::to_owned) }
}

fn text(key: &'static str, value: &(impl ToString + ?Sized)) -> OtlpAttribute {
    OtlpAttribute { key, value: OtlpValue::StringValue(value.to_string()) }
}

fn int(key: &'static str, value: impl Into<i64>) -> OtlpAttribute {
    OtlpAttribute { key, value: OtlpValue::IntValue(value.into()) }
}

/// Returns the request for a turn.
fn request(automaton: &str, dossier: &TurnDetails, server: &ModelServer) -> OtlpExportRequest {
    let version = env!("CARGO_PKG_VERSION");
    let attributes = vec![
        text("service.name", "automaton"),
        text("service.version", version),
        text("service.instance.id", automaton),
    ];
    let scope_spans = [ScopeSpans {
        scope: OtlpScope { name: "automaton", version },
        spans: spans(dossier, server),
    }];
    OtlpExportRequest {
        resource_spans: [ResourceSpans { resource: OtlpResource { attributes }, scope_spans }],
    }
}

/// The spans of a turn, itself first.
fn spans(dossier: &TurnDetails, server: &ModelServer) -> Vec<OtlpSpan> {
    let turn = &dossier.turn;
    let trace = TraceIds { id: id("trace", &turn.id, 16), turn: id("span", &turn.id, 8) };
    let mut spans = vec![trace.root(dossier)];
    if let (Some(usage), Some(judged)) = (&turn.usage, dossier.judged_at) {
        let mut answer = trace.answer(usage, dossier.asked_at, judged);
        answer.attributes.extend(server_attributes(server));
        answer.attributes.push(text("gen_ai.conversation.id", &turn.session));
        spans.push(answer);
    }
    spans.extend(turn.calls.iter().map(|call| trace.call(dossier, call)));
    spans.extend(dossier.payments.iter().map(|payment| trace.payment(payment)));
    spans.truncate(SPANS_MAX);
    spans
}

/// Returns the attributes that name the server of the model.
fn server_attributes(server: &ModelServer) -> Vec<OtlpAttribute> {
    let mut attributes = vec![text("gen_ai.provider.name", server.provider)];
    if let Some((host, port)) = &server.place {
        attributes.push(text("server.address", host));
        attributes.push(int("server.port", *port));
    }
    attributes
}

/// The ids of a trace: made of those of the record, so that a turn that is sent twice is
/// one trace.
struct TraceIds {
    id: OtlpId,
    turn: OtlpId,
}

impl TraceIds {
    fn span(&self, name: String, span_id: OtlpId, from: Timestamp, to: Timestamp) -> OtlpSpan {
        OtlpSpan {
            trace_id: self.id.clone(),
            span_id,
            parent_span_id: Some(self.turn.clone()),
            name,
            kind: INTERNAL,
            start_time_unix_nano: nanos(from),
            end_time_unix_nano: nanos(to.max(from)),
            attributes: Vec::new(),
            status: status_of(None),
        }
    }

    fn root(&self, dossier: &TurnDetails) -> OtlpSpan {
        let TurnRecord { id, seq, session, opened_at, committed_at, calls, usage, .. } =
            &dossier.turn;
        let to = committed_at.unwrap_or(*opened_at);
        let mut attributes = vec![
            text("automaton.turn.id", id),
            int("automaton.turn.number", i64::try_from(*seq).unwrap_or(i64::MAX)),
            text("automaton.wake.id", session),
            int("automaton.turn.calls", i64::try_from(calls.len()).unwrap_or(i64::MAX)),
        ];
        attributes.extend(
            dossier
                .woke
                .iter()
                .take(1)
                .map(|woke| text("automaton.wake.source", &woke.cause.source)),
        );
        let cost = usage.as_ref().map(|usage| int("automaton.cost.microcents", usage.cost.units()));
        attributes.extend(cost);
        let span = self.span("turn".to_owned(), self.turn.clone(), *opened_at, to);
        OtlpSpan { parent_span_id: None, attributes, ..span }
    }

    fn answer(&self, usage: &Usage, asked: Option<Timestamp>, judged: Timestamp) -> OtlpSpan {
        let took = Span::from_millis(usage.total_ms);
        let from = asked.unwrap_or_else(|| judged.before(took));
        let span_id = id("model", &self.turn, 8);
        let span = self.span(format!("chat {}", usage.model), span_id, from, from.after(took));
        let attributes = vec![
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.request.model", &usage.model),
            text("gen_ai.response.model", &usage.model),
            text("gen_ai.output.type", "text"),
            int("gen_ai.usage.input_tokens", usage.prompt_tokens),
            int("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens),
            int("gen_ai.usage.output_tokens", usage.completion_tokens),
            int("automaton.first_token.ms", usage.first_token_ms),
            int("automaton.cost.microcents", usage.cost.units()),
        ];
        OtlpSpan { kind: CLIENT, attributes, ..span }
    }

    /// A call that did not run is a moment: when the answer was judged.
    fn call(&self, dossier: &TurnDetails, call: &CallRecord) -> OtlpSpan {
        let effort = dossier.efforts.iter().find(|effort| effort.call == call.id);
        let begun = effort.and_then(|effort| effort.started_at).or(dossier.judged_at);
        let begun = begun.unwrap_or(dossier.turn.opened_at);
        let took = call.duration.map_or(Span::ZERO, |took| took.span());
        let tool: String = call.tool.chars().take(64).collect();
        let name = format!("execute_tool {tool}");
        let span_id = id("span", &call.id, 8);
        let span = self.span(name, span_id, begun, begun.after(took));
        let mut attributes = vec![
            text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", &tool),
            text("gen_ai.tool.type", "function"),
            text("gen_ai.tool.call.id", &call.id),
            text("automaton.call.status", &call.status),
        ];
        let decision = dossier.decisions.iter().find(|decision| decision.call == call.id);
        attributes.extend(decision.into_iter().flat_map(|made| {
            let outcome = made.decision.outcome;
            let code = &made.decision.code;
            [text("automaton.decision.outcome", &outcome), text("automaton.decision.code", code)]
        }));
        let error = (call.status != CallStatus::Done).then(|| call.status.name());
        OtlpSpan { attributes, status: status_of(error), ..span }
    }

    fn payment(&self, payment: &PaymentDetails) -> OtlpSpan {
        let PaymentDetails { id: which, purpose, rail, worth, state, at, changed_at, .. } = payment;
        let name = format!("payment {}", purpose.name());
        let span = self.span(name, id("span", which, 8), *at, *changed_at);
        let attributes = vec![
            text("automaton.payment.id", which),
            text("automaton.payment.rail", rail.name()),
            text("automaton.payment.state", state.name()),
            int("automaton.payment.microcents", worth.units()),
        ];
        let parent_span_id =
            payment.call.map_or_else(|| self.turn.clone(), |call| id("span", &call, 8));
        let lost = matches!(state, PaymentState::Failed | PaymentState::Expired);
        let status = status_of(lost.then(|| state.name()));
        OtlpSpan { parent_span_id: Some(parent_span_id), kind: CLIENT, attributes, status, ..span }
    }
}

/// An id of so many bytes, from one of the record.
fn id(kind: &str, of: &impl ToString, bytes: usize) -> OtlpId {
    let hash = Hash::of(format!("{kind}:{}", of.to_string()).as_bytes());
    OtlpId(hash.as_bytes().iter().copied().take(bytes).collect())
}

fn nanos(at: Timestamp) -> u64 {
    at.as_millis().max(0).unsigned_abs().saturating_mul(1_000_000)
}
