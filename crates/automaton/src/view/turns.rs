//! Views of turns.

use alloy_primitives::Address;
use automaton_agent::prompt::{PromptLayerRecord, PromptRecord};
use automaton_core::id::{ApprovalId, CallId, DecisionId, PaymentId};
use automaton_core::intent::{Intent, SpanMillis};
use automaton_core::money::Microcents;
use automaton_core::payment::{PaymentState, Purpose, Rail};
use automaton_core::record::{Authority, DecisionOutcome, TurnRecord, WakeCause};
use automaton_core::time::Timestamp;
use automaton_core::tool::{Effect, Risk};
use automaton_core::trust::Label;
use automaton_store::{
    CallDetails, DecisionRecord, LedgerCategory, LedgerDetails, PaymentDetails, TurnDetails,
};
use schemars::JsonSchema;
use serde::Serialize;

/// One turn, as recorded.
pub(crate) type TurnView = TurnRecord;

/// Everything on record about one turn.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct TurnDetailsView {
    /// The turn with its inputs, thought and calls.
    pub(crate) turn: TurnView,
    /// Time of the model call, in milliseconds since 1970.
    pub(crate) asked_at: Option<Timestamp>,
    /// Time at which the answer was judged and stored, in milliseconds since 1970.
    pub(crate) judged_at: Option<Timestamp>,
    /// Causes of its wake cycle.
    pub(crate) woke: Vec<WakeCauseView>,
    /// Decisions about its calls, in their order.
    pub(crate) decisions: Vec<DecisionView>,
    /// Intended effects of its calls, in their order.
    pub(crate) efforts: Vec<CallDetailsView>,
    /// The payments that it asked for, oldest first.
    pub(crate) payments: Vec<PaymentDetailsView>,
    /// Its bookings by category; costs are below zero.
    pub(crate) booked: Vec<LedgerDetailsView>,
    /// The prompt that was sent; `null` if it is not on record.
    pub(crate) prompt: Option<PromptRecordView>,
}

impl TurnDetailsView {
    /// Builds the view of a turn and of the prompt that was sent in it.
    pub(crate) fn new(row: &TurnDetails, prompt: Option<&PromptRecord>) -> Self {
        Self {
            turn: row.turn.clone(),
            asked_at: row.asked_at,
            judged_at: row.judged_at,
            woke: row
                .woke
                .iter()
                .map(|woke| WakeCauseView { at: woke.at, cause: woke.cause.clone() })
                .collect(),
            decisions: row.decisions.iter().map(DecisionView::from).collect(),
            efforts: row.efforts.iter().map(CallDetailsView::from).collect(),
            payments: row.payments.iter().map(PaymentDetailsView::from).collect(),
            booked: row.booked.iter().map(LedgerDetailsView::from).collect(),
            prompt: prompt.map(PromptRecordView::from),
        }
    }
}

/// A cause to wake that a cycle consumed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct WakeCauseView {
    /// Time of the cause, in milliseconds since 1970.
    pub(crate) at: Timestamp,
    /// The cause.
    #[serde(flatten)]
    pub(crate) cause: WakeCause,
}

/// A decision of the policy about a call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct DecisionView {
    /// Its id.
    pub(crate) id: DecisionId,
    /// The call that was judged.
    pub(crate) call: CallId,
    /// The call's tool, as the model named it.
    pub(crate) tool: String,
    /// Outcome.
    pub(crate) outcome: DecisionOutcome,
    /// The code of the rule that decided, or `ALLOWED`.
    pub(crate) code: String,
    /// One sentence.
    pub(crate) reason: String,
    /// Harm that the tool can do.
    pub(crate) risk: Risk,
    /// The rules that were asked, in order.
    pub(crate) rules_evaluated: Vec<String>,
    /// The rules that objected.
    pub(crate) rules_triggered: Vec<String>,
    /// The least trusted label of the turn's inputs.
    pub(crate) input: Label,
    /// The least trusted label of all texts of the wake, under its older name.
    pub(crate) heard: Label,
    /// The least trusted label of all texts of the wake.
    pub(crate) least_trusted: Label,
    /// Authority that follows from the labels.
    pub(crate) authority: Authority,
    /// The approval that it used.
    pub(crate) approval: Option<ApprovalId>,
    /// Duration in milliseconds.
    pub(crate) latency_ms: SpanMillis,
    /// Time at which it was stored, in milliseconds since 1970.
    pub(crate) at: Timestamp,
}

impl From<&DecisionRecord> for DecisionView {
    fn from(row: &DecisionRecord) -> Self {
        let DecisionRecord { id, call, tool, decision, at } = row.clone();
        Self {
            id,
            call,
            tool,
            outcome: decision.outcome,
            code: decision.code,
            reason: decision.reason,
            risk: decision.risk,
            rules_evaluated: decision.rules_evaluated,
            rules_triggered: decision.rules_triggered,
            input: decision.under.input,
            heard: decision.under.heard,
            least_trusted: decision.under.heard,
            authority: decision.under.authority,
            approval: decision.under.approval,
            latency_ms: decision.under.latency_ms,
            at,
        }
    }
}

/// Intended effect of one call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct CallDetailsView {
    /// The call.
    pub(crate) call: CallId,
    /// Effect of the tool.
    pub(crate) effect: Effect,
    /// Time of the start, in milliseconds since 1970.
    pub(crate) started_at: Option<Timestamp>,
    /// Intents; empty if the call never reached the policy.
    pub(crate) intents: Vec<IntentView>,
}

/// One intended effect.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct IntentView {
    /// Its id in the audit.
    pub(crate) id: PaymentId,
    /// The intent.
    #[serde(flatten)]
    pub(crate) intent: Intent,
}

impl From<&CallDetails> for CallDetailsView {
    fn from(row: &CallDetails) -> Self {
        let CallDetails { call, effect, started_at, intents } = row;
        let intents = intents.iter().map(|it| IntentView { id: it.id, intent: it.intent.clone() });
        Self { call: *call, effect: *effect, started_at: *started_at, intents: intents.collect() }
    }
}

/// A payment, without its signature.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PaymentDetailsView {
    /// The payment.
    pub(crate) id: PaymentId,
    /// Purpose.
    pub(crate) purpose: Purpose,
    /// Rail.
    pub(crate) rail: Rail,
    /// Origin that asked for it.
    pub(crate) origin: String,
    /// Recipient.
    #[schemars(with = "String")]
    pub(crate) payee: Address,
    /// Amount: in 10⁻⁶ USDC, or in 10⁻⁶ cents of credits, by its rail.
    pub(crate) units: u64,
    /// Worth of the amount.
    pub(crate) worth: Microcents,
    /// The call that it was made for.
    pub(crate) call: Option<CallId>,
    /// Reason, in words.
    pub(crate) note: String,
    /// Current state.
    pub(crate) state: PaymentState,
    /// The transaction, if it is known.
    pub(crate) transaction: Option<String>,
    /// Reason for a failure or a delay.
    pub(crate) reason: Option<String>,
    /// Time of the first record, in milliseconds since 1970.
    pub(crate) at: Timestamp,
    /// Time of the latest change, in milliseconds since 1970.
    pub(crate) changed_at: Timestamp,
}

impl From<&PaymentDetails> for PaymentDetailsView {
    fn from(row: &PaymentDetails) -> Self {
        let row = row.clone();
        Self {
            id: row.id,
            purpose: row.purpose,
            rail: row.rail,
            origin: row.origin,
            payee: row.payee,
            units: row.units,
            worth: row.worth,
            call: row.call,
            note: row.note,
            state: row.state,
            transaction: row.transaction,
            reason: row.reason,
            at: row.at,
            changed_at: row.changed_at,
        }
    }
}

/// A sum of the ledger.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct LedgerDetailsView {
    /// Category.
    #[schemars(schema_with = "super::ledger_category")]
    pub(crate) category: LedgerCategory,
    /// Amount; costs are below zero.
    pub(crate) amount: Microcents,
}

impl From<&LedgerDetails> for LedgerDetailsView {
    fn from(row: &LedgerDetails) -> Self {
        Self { category: row.category, amount: row.amount }
    }
}

/// A prompt that was sent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PromptRecordView {
    /// Time of the request, in milliseconds since 1970.
    pub(crate) at: Timestamp,
    /// Its layers, in the order of the prompt.
    pub(crate) layers: Vec<PromptLayerView>,
    /// The model's window in tokens.
    pub(crate) window_tokens: u32,
    /// The most tokens that the answer could have.
    pub(crate) answer_tokens: u32,
    /// The number of the first turn in the history.
    pub(crate) history_from: Option<u64>,
}

/// One layer of a prompt that was sent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PromptLayerView {
    /// Its name.
    pub(crate) name: String,
    /// Characters of its text.
    pub(crate) chars: u32,
    /// Its size in estimated tokens.
    pub(crate) tokens: u32,
    /// True if the record gives the very text again that was sent.
    pub(crate) on_record: bool,
    /// The text, with `--prompt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

impl From<&PromptRecord> for PromptRecordView {
    fn from(row: &PromptRecord) -> Self {
        let PromptRecord { at, layers, window_tokens, answer_tokens, history_from } = row.clone();
        let layers = layers.into_iter().map(|layer| {
            let PromptLayerRecord { name, chars, tokens, on_record, text } = layer;
            PromptLayerView { name, chars, tokens, on_record, text }
        });
        Self { at, layers: layers.collect(), window_tokens, answer_tokens, history_from }
    }
}
