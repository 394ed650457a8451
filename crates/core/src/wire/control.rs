//! Pure: the protocol of an automaton's control socket.
//!
//! One JSON object a line over a Unix stream socket in the home directory,
//! which only the owner of the home can open: a [`ControlRequest`] from the creator's
//! hand, one [`ControlResponse`] back, then the connection ends. After [`ControlResponse::Following`]
//! it goes on with one event a line, see [`crate::event::StampedEvent`]; a reader passes over
//! what it does not know, and one that is too slow is let go. Who can open the socket
//! is the creator; no other proof is asked for, so nothing here may ever raise a
//! limit. An approval lets the automaton make a payment that it wrote down itself,
//! under every ceiling that holds without it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{ApprovalId, MessageId, PaymentId};
use crate::memory::{MemoryId, MemoryTier, NewMemory};
use crate::message::CREATOR_MESSAGE_BYTES_MAX;
use crate::model::ModelId;
use crate::money::{MicroUsdc, Microcents};
use crate::snapshot::{RestoreRequest, RestoredWorkspace, SnapshotRecord};
use crate::soul::Soul;
use crate::tier::ModelTier;
use crate::time::Timestamp;
use crate::trust::Labelled;

/// The name of the socket in the home directory.
pub const SOCKET_NAME: &str = "control.sock";

/// The longest line either side may send, in bytes: the longest message, each byte of
/// which may take six as JSON.
pub const LINE_BYTES_MAX: usize = 6 * CREATOR_MESSAGE_BYTES_MAX + 64 * 1024;

/// The longest that the answer to [`ControlRequest::TopUp`] takes.
pub const PURCHASE_MAX: Duration = Duration::from_secs(120);

/// The longest that a snapshot or a restore of the workspace takes.
pub const SNAPSHOT_WORK_MAX: Duration = Duration::from_secs(900);

/// Request of the creator to a running automaton.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlRequest {
    /// Put a message into its inbox and wake it.
    Send {
        /// The message.
        text: String,
        /// Chosen by the sender: the same key is stored once, so that a send
        /// whose answer was lost can be repeated.
        key: String,
    },
    /// Wake it.
    Wake {
        /// Reason, for the prompt.
        reason: String,
    },
    /// Answer a question that it asked.
    Answer {
        /// The question.
        approval: ApprovalId,
        /// The answer.
        word: ApprovalVerdict,
        /// The signature of the creator's address of what [`answer_text`] says, in
        /// hexadecimal. Whoever can open the socket needs none; one that is given holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Take a message of the creator as settled, answered or not.
    Close {
        /// The message.
        message: MessageId,
    },
    /// Tell what happens from now on, for as long as the connection lasts.
    Follow,
    /// Run a task of the heartbeat now.
    RunTask {
        /// Its name in the schedule.
        task: String,
    },
    /// Remember something for its creator.
    Remember {
        /// The item.
        memory: Box<MemoryDraft>,
    },
    /// Forget an item of its memory for good.
    Forget {
        /// Which.
        memory: MemoryId,
    },
    /// Have it think this of itself, in the place of a version.
    ChangeSoul {
        /// The version that is changed.
        from: u32,
        /// All of it.
        soul: Box<Soul>,
        /// Reason of the change.
        reason: String,
    },
    /// List the models that it may think with.
    Models,
    /// Think with this model in the usual one's place; with the usual one, where none is named.
    UseModel {
        /// The model.
        model: Option<ModelId>,
    },
    /// Buy credits, or go on with the purchase that is open. The answer may take
    /// [`PURCHASE_MAX`]; the purchase goes on when nobody waits for it.
    TopUp {
        /// Credits of this tier, in US dollars.
        usd: u32,
    },
    /// Take a snapshot of the workspace now. The answer may take [`SNAPSHOT_WORK_MAX`].
    TakeSnapshot,
    /// Restore files of the workspace from a snapshot. The answer may take [`SNAPSHOT_WORK_MAX`].
    RestoreWorkspace {
        /// The snapshot, and which files.
        restore: RestoreRequest,
    },
    /// End the present wake: the model's answer is given up and a running command is
    /// killed; a payment that is under way is not.
    Interrupt,
    /// Say how its record ends now, signed by its wallet.
    Head,
    /// End its process at the next safe point.
    Stop,
    /// Say how it is.
    Status,
}

/// The creator's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalVerdict {
    /// Yes.
    Approve,
    /// No.
    Deny,
}

/// The text that the creator's address signs (EIP-191, `personal_sign`) to answer a
/// question: to this action alone, and not after the question has expired.
#[must_use]
pub fn answer_text(
    approval: ApprovalId,
    action_sha256: &str,
    word: ApprovalVerdict,
    until: Timestamp,
) -> String {
    let word = match word {
        ApprovalVerdict::Approve => "approve",
        ApprovalVerdict::Deny => "deny",
    };
    format!(
        "Answer a question of an automaton.\n\nQuestion: {approval}\nAction: {action_sha256}\n\
         Answer: {word}\nUntil: {until}"
    )
}

/// Answer of the automaton.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ok", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlResponse {
    /// The message is stored.
    Sent {
        /// Its id.
        message: MessageId,
    },
    /// It will wake.
    Woken,
    /// The answer is stored.
    Answered {
        /// The question that was answered.
        summary: String,
    },
    /// The message is settled.
    Closed {
        /// True if it was open until now.
        was_open: bool,
    },
    /// The task is due.
    TaskDue,
    /// It is remembered.
    Remembered {
        /// The item.
        memory: MemoryId,
    },
    /// It thinks so of itself.
    SoulChanged {
        /// The number of the version.
        version: u32,
    },
    /// It is forgotten.
    Forgotten {
        /// True if the item existed until now.
        was_there: bool,
    },
    /// The models that it may think with, the usual one first.
    Models {
        /// They.
        models: Vec<ModelStatus>,
    },
    /// The model thinks from the next turn on.
    ModelChosen {
        /// Which one; none is the usual one.
        model: Option<ModelId>,
    },
    /// Credits are bought.
    Bought(PurchaseReport),
    /// The snapshot of the workspace as it is.
    SnapshotTaken {
        /// The snapshot; none of a workspace without a file.
        snapshot: Option<Box<SnapshotRecord>>,
        /// Whether it was taken now. Nothing has changed since one that was there before.
        is_new: bool,
    },
    /// Files of the workspace were restored.
    WorkspaceRestored(Box<RestoredWorkspace>),
    /// Events follow, one a line.
    Following,
    /// The present wake ends.
    Interrupting {
        /// True if it was awake. A sleeping automaton sleeps on.
        awake: bool,
    },
    /// The head of its record, signed by its wallet.
    Head {
        /// The text, with the signature in its last line.
        text: String,
    },
    /// It will stop.
    Stopping,
    /// State of the running process.
    Status(LiveStatus),
    /// It will not.
    Refused {
        /// Reason, and the remedy.
        reason: String,
    },
}

/// A purchase of credits by the automaton.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PurchaseReport {
    /// The payment.
    pub payment: PaymentId,
    /// The credits in US dollars: of the purchase that was open, if one was.
    pub usd: u32,
    /// The amount that was paid.
    pub amount: MicroUsdc,
    /// The transaction, where it is known.
    pub transaction: Option<String>,
    /// True if the chain has confirmed it.
    pub settled: bool,
    /// The reason why the cloud holds the purchase up.
    pub held_up: Option<String>,
}

/// Something that a creator gives an automaton to remember: what an export has of an item, but
/// for its number and its times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryDraft {
    /// Its tier.
    pub tier: MemoryTier,
    /// Subtype within the tier.
    pub kind: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Text with its origin.
    pub body: Labelled,
    /// Confidence, importance or trust, 0 to 100.
    pub strength: u8,
    /// Until when it held, for what is only kept; that is not remembered anew.
    #[serde(default)]
    pub valid_to: Option<Timestamp>,
    /// Item that replaced this one, which is only kept.
    #[serde(default)]
    pub superseded_by: Option<MemoryId>,
}

impl From<MemoryDraft> for NewMemory {
    fn from(draft: MemoryDraft) -> Self {
        let MemoryDraft { tier, kind, name, body, strength, .. } = draft;
        Self { tier, kind, name, body, strength, turn: None, lasts: None }
    }
}

/// A model that an automaton may think with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelStatus {
    /// Its name.
    pub model: ModelId,
    /// Seller of the model.
    pub seller: String,
    /// Roles: `usual`, `low_compute`, `critical`.
    pub roles: Vec<ModelTier>,
    /// Tokens of its window.
    pub context_tokens: u32,
    /// Price of a million prompt tokens.
    pub input_per_million: Microcents,
    /// Price of a million answer tokens.
    pub output_per_million: Microcents,
    /// True if it is too weak to be trusted with money or with its own settings.
    pub weak: bool,
    /// True if it is the current model.
    pub thinks: bool,
    /// True if it was chosen in place of the default model.
    pub chosen: bool,
    /// True if it failed recently and is asked last.
    pub avoided: bool,
}

/// State that only the running process knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LiveStatus {
    /// Its process id.
    pub pid: u32,
    /// Milliseconds since it started.
    pub uptime_ms: i64,
    /// The model it thinks with.
    pub model: ModelId,
    /// Tokens of that model's window.
    pub context_tokens: u32,
    /// Number of tools.
    pub tools: usize,
    /// Limits of memory and processes of commands, in words.
    pub enforcement: String,
}
