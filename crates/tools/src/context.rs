//! The handles through which tools touch the world.
//!
//! The agent implements them over the sandbox and the store. Each says in plain
//! terms what a tool may ask for; there is no handle for keys, for the
//! configuration, or for the host, and none may ever be added for convenience.

use std::collections::BTreeMap;

use automaton_core::id::{ApprovalId, CallId, MessageId, TurnId};
use automaton_core::memory::{
    MemoryId, MemoryItem, MemoryMatches, MemoryQuery, MemoryTier, NewMemory, StoreOutcome,
};
use automaton_core::model::ModelId;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::names::Names;
use automaton_core::payment::PaymentReason;
use automaton_core::soul::{SoulSection, SoulVersion};
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_core::trust::{Label, Labelled};
use automaton_core::wire::cloud::{CreateMachineRequest, MachineReply};
use automaton_sandbox::{
    CapturedOutput, ExitStatus, LineRange, LinesRead, ListOptions, Listing, WorkspacePath,
};
use serde::Deserialize;

use crate::error::HandleError;

pub use futures_util::future::BoxFuture;

/// Result of a handle.
pub type HandleFuture<'a, T> = BoxFuture<'a, Result<T, HandleError>>;

/// Environment of a call.
#[derive(Clone, Copy)]
pub struct ToolContext<'a> {
    /// The call.
    pub call: CallId,
    /// Start of the call.
    pub now: Timestamp,
    /// Tokens that its result may have.
    pub room: u32,
    /// Label of the model's words in this turn: the automaton's own, unless the turn answers a
    /// less trusted author.
    pub voice: Label,
    /// Provenance under which the call was judged.
    pub provenance: CallProvenance,
    /// Commands and files.
    pub workspace: &'a dyn WorkspaceHandle,
    /// The memory.
    pub memory: &'a dyn MemoryHandle,
    /// The soul.
    pub soul: &'a dyn SoulHandle,
    /// Messages to others.
    pub mailbox: &'a dyn MailboxHandle,
    /// The automaton's own state.
    pub status: &'a dyn StatusHandle,
    /// The automaton's money.
    pub treasury: &'a dyn TreasuryHandle,
    /// The schedule of its heartbeat.
    pub schedule: &'a dyn ScheduleHandle,
    /// Survival tools.
    pub survival: &'a dyn SurvivalHandle,
    /// Machines for rent.
    pub machines: &'a dyn MachinesHandle,
    /// Models.
    pub models: &'a dyn ModelsHandle,
}

impl ToolContext<'_> {
    /// On whose account money is spent: that of the call.
    pub(crate) fn payment_reason(&self, goal: Option<String>, note: String) -> PaymentReason {
        PaymentReason { turn: None, call: Some(self.call), goal, label: self.voice, note }
    }
}

/// On whose behalf a call runs: what it was judged under, and so is all that it causes.
#[derive(Debug, Clone, Copy)]
pub struct CallProvenance {
    /// The call.
    pub call: CallId,
    /// Its turn.
    pub turn: TurnId,
    /// The least trusted label of what the turn answers.
    pub input: Label,
    /// The least trusted label of what the wake heard.
    pub heard: Label,
    /// The creator's approval of this very call.
    pub approval: Option<ApprovalId>,
    /// Survival tier, if it is known.
    pub tier: Option<SurvivalTier>,
    /// The number of the turn in its wake, from 1.
    pub turn_of_wake: u32,
    /// The number of the call in its turn, from 1.
    pub place: u32,
}

/// The sandbox and the folder that it works in.
pub trait WorkspaceHandle: Send + Sync {
    /// Runs a command with a shell and waits until its whole tree is gone. A
    /// command that fails or is stopped is no error. What it sends out,
    /// it sends on this behalf; without one it has its own loopback alone.
    fn exec<'a>(
        &'a self,
        command: &'a str,
        timeout: Span,
        behalf: Option<CallProvenance>,
    ) -> HandleFuture<'a, CommandOutput>;

    /// Starts a command that goes on beside the turns, until it ends, is stopped or the
    /// automaton's process ends. While one goes on, commands run in the same sandbox.
    fn start<'a>(&'a self, command: &'a str, behalf: CallProvenance) -> HandleFuture<'a, u32>;

    /// Returns background processes, with recently ended ones.
    fn processes(&self) -> HandleFuture<'_, Vec<BackgroundProcess>>;

    /// One of them, with what it has written, after so long or when it has ended; ended by
    /// this if that is wanted.
    fn process(&self, id: u32, wait: Span, end: bool) -> HandleFuture<'_, BackgroundProcess>;

    /// Reads some lines of a file, however long it is.
    fn read_lines<'a>(
        &'a self,
        path: &'a WorkspacePath,
        wanted: LineRange,
    ) -> HandleFuture<'a, FileLines>;

    /// Reads the beginning of a file.
    fn read<'a>(&'a self, path: &'a WorkspacePath, bytes_max: u64)
    -> HandleFuture<'a, FileContent>;

    /// Lists a folder, or a single file.
    fn list<'a>(&'a self, path: &'a WorkspacePath, reach: ListOptions)
    -> HandleFuture<'a, Listing>;

    /// Replaces a file as a whole, and makes the folders above it. Who reads it then
    /// reads words of this label.
    fn write<'a>(
        &'a self,
        path: &'a WorkspacePath,
        bytes: &'a [u8],
        voice: Label,
    ) -> HandleFuture<'a, ()>;

    /// Keeps a text of a call that its result has no room for, in words of this label, where
    /// no command and no tool can change it; its path.
    fn keep<'a>(
        &'a self,
        call: CallId,
        text: &'a str,
        label: Label,
    ) -> HandleFuture<'a, WorkspacePath>;
}

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: CapturedOutput,
    /// The same for errors.
    pub stderr: CapturedOutput,
    /// Limits that held, in words.
    pub limits: String,
    /// Label of the outputs. Data from outside is not the automaton's own.
    pub label: Label,
}

/// A command that goes on, or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundProcess {
    /// Its number.
    pub id: u32,
    /// The command.
    pub command: String,
    /// Exit status, if it has ended.
    pub ended: Option<ExitStatus>,
    /// Standard output so far.
    pub stdout: CapturedOutput,
    /// The same for errors.
    pub stderr: CapturedOutput,
    /// Label of the outputs.
    pub label: Label,
}

/// The beginning of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// As much of it as was asked for.
    pub bytes: Vec<u8>,
    /// The size of the whole file.
    pub total_bytes: u64,
    /// Label of the text.
    pub label: Label,
}

/// Some lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLines {
    /// As many of those asked for as there are.
    pub read: LinesRead,
    /// Label of the file's text.
    pub label: Label,
}

/// The memory.
pub trait MemoryHandle: Send + Sync {
    /// Remembers something, in the place of an older item of its name where that is no more
    /// trusted.
    fn remember(&self, memory: NewMemory) -> HandleFuture<'_, StoreOutcome>;

    /// Returns the candidates for a query.
    fn search(&self, query: MemoryQuery) -> HandleFuture<'_, MemoryMatches>;

    /// Returns the current items of a name, oldest first.
    fn named<'a>(
        &'a self,
        tier: MemoryTier,
        kind: &'a str,
        name: &'a str,
    ) -> HandleFuture<'a, Vec<MemoryItem>>;

    /// One item.
    fn item(&self, id: MemoryId) -> HandleFuture<'_, Option<MemoryItem>>;

    /// Counts whether a procedure worked.
    fn count_outcome(&self, id: MemoryId, worked: bool) -> HandleFuture<'_, ()>;

    /// Ends an item, and remembers what came of it.
    fn complete(&self, id: MemoryId, event: NewMemory) -> HandleFuture<'_, StoreOutcome>;

    /// Forgets an item for good; whether there was one.
    fn forget(&self, id: MemoryId) -> HandleFuture<'_, bool>;
}

/// The automaton's soul.
pub trait SoulHandle: Send + Sync {
    /// All of it, as SOUL.md shows it.
    fn view(&self) -> HandleFuture<'_, String>;

    /// Its newest versions, newest first.
    fn history(&self, limit: u32) -> HandleFuture<'_, Vec<SoulVersion>>;

    /// Changes a section, for a reason; the number of the new version.
    fn update<'a>(
        &'a self,
        section: SoulSection,
        content: &'a str,
        reason: &'a str,
        approved_by: Option<String>,
    ) -> HandleFuture<'a, u32>;

    /// Changes its genesis prompt; what its creator gave it is kept.
    fn set_genesis<'a>(
        &'a self,
        text: &'a str,
        reason: &'a str,
        approved_by: Option<String>,
    ) -> HandleFuture<'a, u32>;

    /// Looks at itself; what it saw, in words.
    fn reflect(&self) -> HandleFuture<'_, String>;
}

/// The way to the creator.
pub trait MailboxHandle: Send + Sync {
    /// Stores a message to be sent. Asked again for the same call it stores no
    /// second one.
    fn send_to_creator(&self, call: CallId, letter: MessageDraft) -> HandleFuture<'_, MessageId>;
}

/// A message to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageDraft {
    /// Text.
    pub body: Labelled,
    /// The message that it answers.
    pub reply_to: Option<MessageId>,
}

/// A look at the automaton itself.
pub trait StatusHandle: Send + Sync {
    /// Returns the state of the automaton.
    fn status_synopsis(&self) -> HandleFuture<'_, Synopsis>;
}

/// State of the automaton.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synopsis {
    /// Its name.
    pub name: String,
    /// Its creator: an address, or words.
    pub creator: String,
    /// Current state.
    pub state: AgentState,
    /// Time of birth.
    pub born_at: Timestamp,
    /// The time now.
    pub now: Timestamp,
    /// Turns of its life.
    pub turns: u64,
    /// Turns that are left of this wake.
    pub turns_left: u32,
    /// The model that it thinks with.
    pub model: ModelId,
    /// Tokens of the model's window.
    pub context_tokens: u32,
    /// Tools that it has.
    pub tools: usize,
    /// Items that it remembers.
    pub memories: u64,
    /// Messages that wait for an answer.
    pub unread: u64,
    /// The address of its wallet with what there is; none without one.
    pub wallet: Option<(String, Balances)>,
    /// Tasks of its heartbeat that are on.
    pub heartbeat: usize,
    /// Place of commands: a rented machine, or a sandbox.
    pub sandbox: String,
    /// Limits of commands, in words.
    pub limits: String,
}

/// The schedule of the heartbeat.
pub trait ScheduleHandle: Send + Sync {
    /// Adds an entry, changes one or removes one, within the bounds of what the automaton may do to
    /// itself; how it stands then, in words.
    fn schedule(&self, change: ScheduleChange) -> HandleFuture<'_, String>;
}

/// Change of an entry. Absent values stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleChange {
    /// Its name.
    pub name: String,
    /// The task that it runs; for a new one.
    pub task: Option<String>,
    /// Cron expression.
    pub cron: Option<String>,
    /// Or once in so long.
    pub interval: Option<Span>,
    /// True if it runs.
    pub enabled: Option<bool>,
    /// Action, if one is named.
    pub action: Option<ScheduleAction>,
}

/// Action on an entry of the schedule. Its [`name`](Self::name) is the one for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleAction {
    /// It is a new one.
    Add,
    /// It is there, and changes.
    Update,
    /// It is there, and runs from now on.
    Enable,
    /// It is there, and does not run any more.
    Disable,
    /// It goes; an entry that everybody has becomes what it is by default.
    Remove,
}

/// Tools for low credits. Each returns its outcome in words.
pub trait SurvivalHandle: Send + Sync {
    /// Posts how the automaton is to where its creator reads that.
    fn ping(&self) -> HandleFuture<'_, String>;

    /// Asks for money with these words, unless it is not needed or did so not long ago.
    fn send_distress(&self, words: String) -> HandleFuture<'_, String>;

    /// Lives cheaply from now on.
    fn enter_low_compute(&self) -> HandleFuture<'_, String>;
}

/// Models. Each method returns its result in words.
pub trait ModelsHandle: Send + Sync {
    /// The models that there are, with their prices and what they are for.
    fn models(&self) -> HandleFuture<'_, String>;

    /// Thinks with another model from the next turn on; with its usual one, where none is named.
    fn switch_model(&self, to: Option<ModelId>) -> HandleFuture<'_, String>;

    /// Returns the cost of thinking over these days: in all, or of one model.
    fn spending(&self, model: Option<ModelId>, days: u32) -> HandleFuture<'_, String>;
}

/// The money, and the one door to it.
pub trait TreasuryHandle: Send + Sync {
    /// Returns the balances.
    fn balances(&self) -> HandleFuture<'_, Balances>;

    /// Buys credits for so many US dollars, or goes on with the purchase that is
    /// open, whatever its tier.
    fn top_up(&self, usd: u32, cause: PaymentReason) -> HandleFuture<'_, TopUpReceipt>;

    /// Gives credits to another wallet, or goes on with an equal gift that is open.
    fn transfer(
        &self,
        gift: CreditTransferRequest,
        cause: PaymentReason,
    ) -> HandleFuture<'_, TransferReceipt>;

    /// Makes a request, and pays for it once if that is asked within its cap.
    fn fetch(&self, request: WebRequest, cause: PaymentReason) -> HandleFuture<'_, FetchResult>;
}

/// Machines for rent, and the way in from outside.
pub trait MachinesHandle: Send + Sync {
    /// Rents one; asked again for the same call it rents no second one.
    fn rent(&self, wanted: CreateMachineRequest, call: CallId) -> HandleFuture<'_, MachineReply>;

    /// All that are rented.
    fn all(&self) -> HandleFuture<'_, Vec<MachineReply>>;

    /// Ends one, with all that is on it.
    fn end<'a>(&'a self, id: &'a str) -> HandleFuture<'a, ()>;

    /// Opens a port of the sandbox to everybody, at a price in USDC a request, for a call.
    /// Returns its URL.
    fn open(
        &self,
        port: u16,
        price: Option<String>,
        provenance: CallProvenance,
    ) -> HandleFuture<'_, String>;

    /// Closes it.
    fn close(&self, port: u16) -> HandleFuture<'_, ()>;
}

/// Credits to be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditTransferRequest {
    /// The address that gets them, as the model wrote it.
    pub to: String,
    /// Amount in whole cents.
    pub cents: u64,
}

/// Credits that were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferReceipt {
    /// Recipient.
    pub to: String,
    /// Amount.
    pub amount: Microcents,
    /// The cloud's id of the transfer.
    pub transfer: String,
    /// Balances afterwards.
    pub balances: Balances,
}

/// Request method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Names)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[names(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WebMethod {
    /// Be told something.
    Get,
    /// Have something done.
    Post,
    /// Have something be as the body says.
    Put,
    /// Have something changed.
    Patch,
    /// Have something be no more.
    Delete,
}

/// A request that may cost something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebRequest {
    /// Address, as the model wrote it.
    pub url: String,
    /// Method.
    pub verb: WebMethod,
    /// Headers, as the model wrote them.
    pub headers: BTreeMap<String, String>,
    /// The body; empty for none.
    pub body: String,
    /// The most that it may cost, in whole cents.
    pub cap_cents: u64,
}

/// Result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchResult {
    /// The status.
    pub status: u16,
    /// The body as text.
    pub body: String,
    /// Payment, and whether the chain has confirmed it.
    pub paid: Option<(MicroUsdc, bool)>,
}

/// Known balances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balances {
    /// Time of the reading.
    pub at: Timestamp,
    /// Credits with the cloud; `None` when they could not be read.
    pub credits: Option<Microcents>,
    /// USDC in the wallet; `None` when they could not be read.
    pub usdc: Option<MicroUsdc>,
}

impl Balances {
    /// The tier that the credits make; none while they are unknown.
    #[must_use]
    pub fn tier(&self) -> Option<SurvivalTier> {
        self.credits.map(SurvivalTier::of)
    }

    /// The credits in words, with their tier.
    #[must_use]
    pub fn credits_shown(&self) -> String {
        let known = |credits| format!("{credits} ({})", SurvivalTier::of(credits));
        self.credits.map_or_else(|| UNKNOWN.to_owned(), known)
    }

    /// The USDC in words.
    #[must_use]
    pub fn usdc_shown(&self) -> String {
        self.usdc.map_or_else(|| UNKNOWN.to_owned(), |usdc| usdc.to_string())
    }
}

/// Text for an amount that could not be read.
const UNKNOWN: &str = "unknown";

/// Credits that were bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopUpReceipt {
    /// For how many US dollars.
    pub usd: u32,
    /// Price.
    pub paid: MicroUsdc,
    /// True if the chain has confirmed it.
    pub settled: bool,
    /// Balances afterwards.
    pub balances: Balances,
}
