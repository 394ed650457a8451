//! Pure: the one closed set of events.
//!
//! One event is one line of `--json`, and later one message of the console and of webhooks.
//! Outsiders rely on the names and fields: they are only ever added to. An event must never hold
//! a secret, and text that somebody else wrote is held as [`Labelled`].

mod payloads;
mod report;
mod stamped;

use serde::{Deserialize, Serialize};

use crate::alert::{AlertRule, Severity};
use crate::books::Books;
use crate::error::ErrorClass;
use crate::id::{ApprovalId, AutomatonId, CallId, MessageId, PaymentId, SessionId, TurnId};
use crate::model::ModelId;
use crate::money::{MicroUsdc, Microcents};
use crate::record::{CallStatus, DecisionOutcome, StopReason, WakeCause};
pub use crate::service::Service;
use crate::state::AgentState;
use crate::tier::SurvivalTier;
use crate::time::Timestamp;
use crate::trust::{Label, Labelled, Source};
use crate::vitals::DistressLevel;

pub use payloads::{
    CrashLeftovers, MetStep, PaidRequest, ReopenedPort, RestoreEnd, SaleReport, TakenReport,
};
pub use report::{EventLevel, EventName, EventReport};
pub use stamped::StampedEvent;

/// Everything that can happen. `event` holds the name on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum Event {
    /// The agent's process is up.
    #[serde(rename = "agent.started")]
    AgentStarted {
        /// Which automaton.
        automaton: AutomatonId,
        /// Its name.
        name: String,
        /// Its home directory.
        home: String,
        /// The program's version.
        version: String,
    },
    /// The agent's process is about to end by itself.
    #[serde(rename = "agent.stopped")]
    AgentStopped {
        /// One sentence.
        reason: String,
    },
    /// The supervisor started the agent again after it died.
    #[serde(rename = "agent.restarted")]
    AgentRestarted {
        /// Exit of the process, in words.
        death: String,
        /// Restarts so far.
        restarts: u32,
    },
    /// Somebody asked the supervisor by a signal to stop. The next one ends everything at
    /// once.
    #[serde(rename = "stop.requested")]
    StopRequested {
        /// Milliseconds that the agent has to end by itself.
        within_ms: i64,
    },
    /// A process that the automaton lives from is up.
    #[serde(rename = "service.ready")]
    ServiceReady {
        /// Which.
        service: Service,
        /// Address that it listens at, if it serves others than its supervisor.
        url: Option<String>,
        /// Milliseconds until it was ready.
        took_ms: i64,
    },
    /// The supervisor started such a process again after it died.
    #[serde(rename = "service.restarted")]
    ServiceRestarted {
        /// Which.
        service: Service,
        /// Exit of the process, in words.
        death: String,
        /// Restarts so far.
        restarts: u32,
    },
    /// The automaton got a key of its own.
    #[serde(rename = "wallet.created")]
    WalletCreated {
        /// Its address, in the mixed case of EIP-55.
        address: String,
    },
    /// The faucet of a dev chain gave the wallet something.
    #[serde(rename = "wallet.funded")]
    WalletFunded {
        /// The wallet.
        address: String,
        /// Amount, in units of 10⁻⁶ USDC.
        amount: MicroUsdc,
        /// The transaction.
        transaction: String,
    },
    /// The automaton signed in to a cloud and got an API key.
    #[serde(rename = "account.opened")]
    AccountOpened {
        /// The cloud's origin.
        cloud: String,
        /// The wallet that signed in.
        address: String,
    },
    /// Both balances were read, or tried to be.
    #[serde(rename = "balances.read")]
    BalancesRead {
        /// Credits with the cloud; `null` when they could not be read.
        credits: Option<Microcents>,
        /// USDC on the chain, in units of 10⁻⁶; `null` when they could not be read.
        usdc: Option<MicroUsdc>,
        /// The tier that the credits make.
        tier: Option<SurvivalTier>,
    },
    /// The cloud answered 402: it wants to be paid for credits.
    #[serde(rename = "topup.demanded")]
    TopupDemanded {
        /// The tier, in US dollars.
        usd: u32,
        /// The price, in units of 10⁻⁶ USDC.
        amount: MicroUsdc,
        /// Address of the recipient.
        payee: String,
    },
    /// The cloud took a payment that the chain has not confirmed yet.
    #[serde(rename = "topup.pending")]
    TopupPending {
        /// The payment.
        payment: PaymentId,
        /// Amount, in units of 10⁻⁶ USDC.
        amount: MicroUsdc,
    },
    /// A payment for credits is over: the chain has it.
    #[serde(rename = "topup.settled")]
    TopupSettled {
        /// The payment.
        payment: PaymentId,
        /// Amount, in units of 10⁻⁶ USDC.
        amount: MicroUsdc,
        /// The transaction, where it is known.
        transaction: Option<String>,
        /// The credits after it; `null` when they could not be read.
        credits: Option<Microcents>,
    },
    /// Credits were not bought, or it is not known yet whether they were.
    #[serde(rename = "topup.failed")]
    TopupFailed {
        /// Class of the error.
        kind: ErrorClass,
        /// Failure with its causes.
        error: String,
        /// Remedy.
        hint: Option<String>,
    },
    /// The books of agent, signer, cloud and chain were compared.
    #[serde(rename = "books.checked")]
    BooksChecked {
        /// The compared books.
        #[serde(flatten)]
        books: Books,
        /// True if all books were read and agree.
        agree: bool,
    },
    /// The model is reachable.
    #[serde(rename = "brain.ready")]
    BrainReady {
        /// The model's name.
        model: ModelId,
        /// Tokens of its window.
        context_tokens: u32,
        /// Note for a person, if there is one.
        note: Option<String>,
        /// Milliseconds until it was ready.
        took_ms: i64,
    },
    /// The automaton's state changed.
    #[serde(rename = "state.changed")]
    StateChanged {
        /// The state before.
        from: AgentState,
        /// The state now.
        to: AgentState,
        /// One sentence.
        reason: String,
    },
    /// A wake cycle began.
    #[serde(rename = "wake.started")]
    WakeStarted {
        /// The cycle.
        session: SessionId,
        /// Causes of the wake.
        causes: Vec<WakeCause>,
    },
    /// A wake cycle ended.
    #[serde(rename = "wake.ended")]
    WakeEnded {
        /// The cycle.
        session: SessionId,
        /// Reason of the stop.
        reason: StopReason,
        /// Turns it had.
        turns: u32,
        /// The same for its creator: what ended it, the command that goes on, the key.
        #[serde(default)]
        sentence: String,
    },
    /// Sleep began.
    #[serde(rename = "sleep.started")]
    SleepStarted {
        /// Time at which it ends by itself; missing if only an event ends it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// Planned duration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        planned_ms: Option<i64>,
        /// Reason of the sleep.
        reason: StopReason,
    },
    /// Sleep ended.
    #[serde(rename = "sleep.ended")]
    SleepEnded {
        /// Planned duration; missing if it had no end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        planned_ms: Option<i64>,
        /// Actual duration.
        actual_ms: i64,
    },
    /// A message was stored in the inbox.
    #[serde(rename = "message.received")]
    MessageReceived {
        /// The message.
        message: MessageId,
        /// Text of the message.
        body: Labelled,
    },
    /// A message was given up after too many failures.
    #[serde(rename = "message.failed")]
    MessageFailed {
        /// The message.
        message: MessageId,
        /// One sentence.
        reason: String,
    },
    /// A message of the creator is too long for what the model has room for: it is shown
    /// with its ends, and is whole in a file of the workspace.
    #[serde(rename = "message.filed")]
    MessageFiled {
        /// The message.
        message: MessageId,
        /// The file, as commands see it.
        path: String,
    },
    /// A message to the creator was stored in the outbox.
    #[serde(rename = "message.sent")]
    MessageSent {
        /// The message.
        message: MessageId,
        /// Recipient.
        recipient: String,
        /// Text of the message.
        body: Labelled,
    },
    /// It hibernates: from now on, or still after a start.
    #[serde(rename = "hibernation.started")]
    HibernationStarted {
        /// Since when.
        since: Timestamp,
        /// Reason, and the events that end it.
        reason: String,
    },
    /// Its tier of survival is another one.
    #[serde(rename = "tier.changed")]
    TierChanged {
        /// From which; missing at the first reading of a life.
        from: Option<SurvivalTier>,
        /// To which.
        to: SurvivalTier,
        /// With how many credits.
        credits: Microcents,
    },
    /// It has too few credits to think, and waits for more.
    #[serde(rename = "broke.started")]
    BrokeStarted {
        /// Credits that it has.
        credits: Microcents,
        /// Least time that it lives with these credits; missing if it is dead.
        lives_ms: Option<i64>,
        /// True if credits may arrive without help: there is USDC to buy them, or they are paid
        /// for already.
        can_buy: bool,
    },
    /// It asks for money, through every channel that it has.
    #[serde(rename = "plea.sent")]
    PleaSent {
        /// Urgency.
        plea: DistressLevel,
        /// Text of the signal.
        text: String,
    },
    /// A rule fires: something is wrong, and the operator should know.
    #[serde(rename = "alert.raised")]
    AlertRaised {
        /// The rule.
        rule: AlertRule,
        /// Severity.
        severity: Severity,
        /// Description of the problem.
        message: String,
        /// Since when.
        since: Timestamp,
        /// Firings since then, this one included.
        times: u32,
    },
    /// The condition of an alert is over.
    #[serde(rename = "alert.cleared")]
    AlertCleared {
        /// The rule.
        rule: AlertRule,
        /// Its last message.
        message: String,
        /// Time for which the condition held.
        lasted_ms: i64,
    },
    /// Metrics are served.
    #[serde(rename = "metrics.served")]
    MetricsServed {
        /// Address of the metrics.
        url: String,
    },
    /// An event did not reach the webhook.
    #[serde(rename = "webhook.failed")]
    WebhookFailed {
        /// The name of the event.
        lost: String,
        /// Failure with its causes.
        error: String,
    },
    /// The trace of a turn did not reach the collector.
    #[serde(rename = "trace.lost")]
    TraceLost {
        /// The turn.
        turn: String,
        /// Failure with its causes.
        error: String,
    },
    /// A turn was opened.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// Its number in the automaton's life.
        seq: u64,
        /// Its cycle.
        session: SessionId,
    },
    /// A piece of the model's text, as it comes.
    #[serde(rename = "thought.delta")]
    ThoughtDelta {
        /// The turn.
        turn: TurnId,
        /// The piece.
        text: String,
    },
    /// The model is asked.
    #[serde(rename = "inference.started")]
    InferenceStarted {
        /// The turn.
        turn: TurnId,
        /// The model.
        model: ModelId,
        /// Tokens of the prompt, as they are estimated before the model counts them.
        prompt_tokens: u32,
    },
    /// The model has answered.
    #[serde(rename = "inference.completed")]
    InferenceCompleted {
        /// The turn.
        turn: TurnId,
        /// The model.
        model: String,
        /// Tokens of the prompt.
        prompt_tokens: u32,
        /// Tokens of the prompt that came from a cache.
        cached_tokens: u32,
        /// Tokens generated.
        completion_tokens: u32,
        /// Cost of the answer.
        cost: Microcents,
        /// True if the tokens are an estimate because the server did not count them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
        /// Milliseconds until the first token.
        first_token_ms: i64,
        /// Milliseconds of the whole answer.
        total_ms: i64,
        /// The server's word for the reason that the answer ended, where the program does not
        /// know the word. Such an answer is taken as complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unknown_end: Option<String>,
        /// Tools that the grammar left out, for a weak model.
        left_out: Vec<String>,
    },
    /// The guard found that a text looks like an attempt to steer its reader. That is
    /// advice: what a turn may do hangs on labels, whatever the guard finds.
    #[serde(rename = "text.suspected")]
    TextSuspected {
        /// The turn that reads it.
        turn: TurnId,
        /// Trust label of the author.
        label: Label,
        /// Author of the text.
        source: Source,
        /// Assessed threat: `medium`, `high` or `critical`.
        level: String,
        /// The checks that found something, by name.
        checks: Vec<String>,
        /// True if a notice is shown in place of the text.
        withheld: bool,
    },
    /// The policy decided about a call.
    #[serde(rename = "decision.made")]
    DecisionMade {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// Outcome of the decision.
        outcome: DecisionOutcome,
        /// The code of the rule that decided, or `ALLOWED`.
        code: String,
        /// One sentence.
        reason: String,
    },
    /// A call began.
    #[serde(rename = "call.started")]
    CallStarted {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// The arguments as JSON text, shortened.
        arguments: String,
    },
    /// A call ended, or was refused, or turned out to be malformed.
    #[serde(rename = "call.finished")]
    CallFinished {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// Final status of the call.
        status: CallStatus,
        /// Result for the model, shortened.
        result: Labelled,
        /// Duration of the call.
        duration_ms: i64,
    },
    /// A turn is in the record.
    #[serde(rename = "turn.committed")]
    TurnCommitted {
        /// The turn.
        turn: TurnId,
        /// Its number in the automaton's life.
        seq: u64,
        /// Its cycle.
        session: SessionId,
        /// Text of the model.
        thought: String,
        /// Calls it made.
        calls: u32,
        /// Cost of the turn.
        cost: Microcents,
    },
    /// A turn failed; nothing of it will be answered again but its messages.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// The turn.
        turn: TurnId,
        /// Class of the error.
        kind: ErrorClass,
        /// Failure with its causes.
        error: String,
        /// Remedy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// Milliseconds until the next attempt.
        retry_ms: Option<i64>,
    },
    /// A payment or a call waits for the creator's approval.
    #[serde(rename = "approval.asked")]
    ApprovalAsked {
        /// The question.
        approval: ApprovalId,
        /// The payment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payment: Option<PaymentId>,
        /// The call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// Call or payment, in one line.
        summary: String,
    },
    /// Credits were given to somebody.
    #[serde(rename = "credits.transferred")]
    CreditsTransferred {
        /// The payment.
        payment: PaymentId,
        /// Recipient of the credits.
        to: String,
        /// Amount.
        amount: Microcents,
        /// The cloud's id of the transfer.
        transfer: String,
    },
    /// A request was paid for.
    #[serde(rename = "request.paid")]
    RequestPaid(PaidRequest),
    /// Requests to a port of its machines were paid.
    #[serde(rename = "sale.settled")]
    SaleSettled(SaleReport),
    /// A port that was published before a restart is open again, with its server.
    #[serde(rename = "port.reopened")]
    PortReopened(ReopenedPort),
    /// A snapshot of the workspace was taken.
    #[serde(rename = "snapshot.taken")]
    SnapshotTaken(TakenReport),
    /// Files of the workspace were restored from a snapshot.
    #[serde(rename = "workspace.restored")]
    WorkspaceRestored(RestoreEnd),
    /// A payment was refused, came to nothing, or is not known to be over.
    #[serde(rename = "payment.failed")]
    PaymentFailed {
        /// Class of the error.
        kind: ErrorClass,
        /// Failure with its causes.
        error: String,
        /// Remedy.
        hint: Option<String>,
    },
    /// Something a crash left behind was put in order.
    #[serde(rename = "recovery.done")]
    RecoveryDone(CrashLeftovers),
    /// A heartbeat task ran.
    #[serde(rename = "heartbeat.ran")]
    HeartbeatRan {
        /// The task.
        task: String,
        /// True if the task succeeded.
        ok: bool,
        /// One sentence.
        note: String,
        /// Duration of the run.
        duration_ms: i64,
    },
    /// A tick of the heartbeat takes too long, so that no task is started.
    #[serde(rename = "heartbeat.stalled")]
    HeartbeatStalled {
        /// Milliseconds so far.
        waited_ms: i64,
    },
    /// A step of a scripted story was met.
    #[serde(rename = "story.met")]
    StoryMet(MetStep),
    /// A scripted story ended.
    #[serde(rename = "story.ended")]
    StoryEnded {
        /// The first step that was not met, if any.
        unmet: Option<String>,
    },
    /// Something failed outside a turn.
    #[serde(rename = "error.reported")]
    ErrorReported {
        /// Class of the error.
        kind: ErrorClass,
        /// Failure with its causes.
        error: String,
        /// Remedy.
        hint: Option<String>,
    },
}
