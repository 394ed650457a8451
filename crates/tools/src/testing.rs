//! Handles for tests: they note what was asked of them and give what they hold.
//! What a fake does not hold it refuses, as a broken handle would.

use std::sync::Mutex;
use std::task::{Poll, Waker};

use automaton_core::error::ErrorClass;
use automaton_core::id::{CallId, MessageId};
use automaton_core::memory::{
    MemoryId, MemoryItem, MemoryMatches, MemoryQuery, MemoryTier, NewMemory, StoreOutcome,
};
use automaton_core::model::ModelId;
use automaton_core::money::MicroUsdc;
use automaton_core::origin::{Origins, ValueOrigin};
use automaton_core::payment::PaymentReason;
use automaton_core::search_terms::asked_terms;
use automaton_core::soul::{SoulSection, SoulSource, SoulVersion};
use automaton_core::time::{Span, Timestamp};
use automaton_core::tool::Risk;
use automaton_core::trust::{Label, Labelled};
use automaton_core::wire::cloud::{CreateMachineRequest, MachineReply};
use automaton_policy::{Facts, Verdict, judge};
use automaton_sandbox::{LineRange, ListOptions, Listing, WorkspacePath, read_lines};
use serde_json::Value;
use ulid::Ulid;

use crate::context::{
    BackgroundProcess, Balances, CallProvenance, CommandOutput, CreditTransferRequest, FetchResult,
    FileContent, FileLines, HandleFuture, MachinesHandle, MailboxHandle, MemoryHandle,
    MessageDraft, ModelsHandle, ScheduleChange, ScheduleHandle, SoulHandle, StatusHandle,
    SurvivalHandle, Synopsis, ToolContext, TopUpReceipt, TransferReceipt, TreasuryHandle,
    WebRequest, WorkspaceHandle,
};
use crate::error::{HandleError, ToolError};
use crate::list;
use crate::tool::{PreparedCall, ToolOutput};

pub(crate) const CREATOR: &str = "0x1111111111111111111111111111111111111111";

/// Tokens that a result may have where a test does not say.
const ROOM: u32 = 3_000;

#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) ran: Option<CommandOutput>,
    pub(crate) started: Option<u32>,
    pub(crate) processes: Vec<BackgroundProcess>,
    pub(crate) machines: Option<Vec<MachineReply>>,
    pub(crate) file: Option<Vec<u8>>,
    pub(crate) label: Option<Label>,
    pub(crate) listing: Option<Listing>,
    /// True if a missing file does not exist; false for a failure.
    pub(crate) missing: bool,
    pub(crate) writable: bool,
    pub(crate) remembers: bool,
    pub(crate) memories: Option<Vec<MemoryItem>>,
    pub(crate) mails: bool,
    pub(crate) synopsis: Option<Synopsis>,
    pub(crate) balances: Option<Balances>,
    pub(crate) purchase: Option<TopUpReceipt>,
    pub(crate) given: Option<TransferReceipt>,
    pub(crate) page: Option<FetchResult>,
    pub(crate) scheduled: Option<String>,
    pub(crate) survives: Option<String>,
    pub(crate) models: Option<String>,
    pub(crate) room: Option<u32>,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Fake {
    pub(crate) fn log(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn answer<T: Send + 'static>(&self, asked: String, held: Option<T>) -> HandleFuture<'_, T> {
        self.asked.lock().unwrap().push(asked);
        let refused =
            HandleError { kind: ErrorClass::Transient, message: "not held".to_owned(), hint: None };
        Box::pin(std::future::ready(held.ok_or(refused)))
    }
}

impl ModelsHandle for Fake {
    fn models(&self) -> HandleFuture<'_, String> {
        self.answer("models".to_owned(), self.models.clone())
    }

    fn switch_model(&self, to: Option<ModelId>) -> HandleFuture<'_, String> {
        self.answer(format!("switch to {to:?}"), self.models.clone())
    }

    fn spending(&self, model: Option<ModelId>, days: u32) -> HandleFuture<'_, String> {
        self.answer(format!("spending of {model:?} in {days} days"), self.models.clone())
    }
}

impl WorkspaceHandle for Fake {
    fn exec<'a>(
        &'a self,
        command: &'a str,
        timeout: Span,
        _: Option<CallProvenance>,
    ) -> HandleFuture<'a, CommandOutput> {
        self.answer(format!("exec {command} {timeout}"), self.ran.clone())
    }

    fn start<'a>(&'a self, command: &'a str, _: CallProvenance) -> HandleFuture<'a, u32> {
        self.answer(format!("start {command}"), self.started)
    }

    fn processes(&self) -> HandleFuture<'_, Vec<BackgroundProcess>> {
        self.answer("processes".to_owned(), Some(self.processes.clone()))
    }

    fn process(&self, id: u32, wait: Span, end: bool) -> HandleFuture<'_, BackgroundProcess> {
        let found = self.processes.iter().find(|process| process.id == id).cloned();
        let end = if end { ", ended" } else { "" };
        self.answer(format!("process {id} {wait}{end}"), found)
    }

    fn read_lines<'a>(
        &'a self,
        path: &'a WorkspacePath,
        wanted: LineRange,
    ) -> HandleFuture<'a, FileLines> {
        let lines = self.file.as_ref().map(|file| FileLines {
            read: read_lines(file.as_slice(), wanted).unwrap(),
            label: self.label.unwrap_or(Label::Tool),
        });
        let asked = format!("read {path} from {}", wanted.first);
        if self.missing {
            let message = format!("{path} does not exist");
            let missing = HandleError { kind: ErrorClass::User, message, hint: None };
            return Box::pin(std::future::ready(Err(missing)));
        }
        self.answer(asked, lines)
    }

    fn read<'a>(
        &'a self,
        path: &'a WorkspacePath,
        bytes_max: u64,
    ) -> HandleFuture<'a, FileContent> {
        let content = self.file.as_ref().map(|file| FileContent {
            bytes: file[..file.len().min(usize::try_from(bytes_max).unwrap())].to_vec(),
            total_bytes: file.len() as u64,
            label: self.label.unwrap_or(Label::Tool),
        });
        self.answer(format!("read {path}"), content)
    }

    fn list<'a>(
        &'a self,
        path: &'a WorkspacePath,
        reach: ListOptions,
    ) -> HandleFuture<'a, Listing> {
        let asked = format!("list {path} {} levels", reach.depth);
        self.answer(asked, self.listing.clone())
    }

    fn write<'a>(
        &'a self,
        path: &'a WorkspacePath,
        bytes: &'a [u8],
        voice: Label,
    ) -> HandleFuture<'a, ()> {
        let text = String::from_utf8_lossy(bytes);
        self.answer(format!("write {path} {text} as {voice}"), self.writable.then_some(()))
    }

    fn keep<'a>(
        &'a self,
        _: CallId,
        text: &'a str,
        label: Label,
    ) -> HandleFuture<'a, WorkspacePath> {
        let path = self.writable.then(|| WorkspacePath::parse("~/.logs/1.log").unwrap());
        self.answer(format!("keep {text} as {label}"), path)
    }
}

impl MachinesHandle for Fake {
    fn rent(&self, wanted: CreateMachineRequest, _: CallId) -> HandleFuture<'_, MachineReply> {
        let CreateMachineRequest { name, vcpu, memory_mb, disk_gb, .. } = wanted;
        let first = self.machines.as_ref().and_then(|all| all.first().cloned());
        self.answer(format!("rent {name} {vcpu} {memory_mb} {disk_gb}"), first)
    }

    fn all(&self) -> HandleFuture<'_, Vec<MachineReply>> {
        self.answer("machines".to_owned(), self.machines.clone())
    }

    fn end<'a>(&'a self, id: &'a str) -> HandleFuture<'a, ()> {
        self.answer(format!("end {id}"), self.machines.as_ref().map(drop))
    }

    fn open(
        &self,
        port: u16,
        price: Option<String>,
        _: CallProvenance,
    ) -> HandleFuture<'_, String> {
        let url = self.machines.as_ref().map(|_| "http://public".to_owned());
        self.answer(format!("open {port} {}", price.unwrap_or_default()), url)
    }

    fn close(&self, port: u16) -> HandleFuture<'_, ()> {
        self.answer(format!("close {port}"), self.machines.as_ref().map(drop))
    }
}

impl MemoryHandle for Fake {
    fn remember(&self, memory: NewMemory) -> HandleFuture<'_, StoreOutcome> {
        let NewMemory { tier, kind, name, body, strength, .. } = memory;
        let Labelled { text, source, label } = body;
        let asked =
            format!("remember {tier} {kind}/{name} {text} by {source} as {label} at {strength}");
        self.answer(asked, self.remembers.then_some(StoreOutcome::New(MemoryId(1))))
    }

    fn search(&self, query: MemoryQuery) -> HandleFuture<'_, MemoryMatches> {
        let asked = format!("search {:?} {:?} {:?}", query.tiers, query.kind, query.text);
        let frequencies = asked_terms(query.text.as_deref().unwrap_or_default(), 9);
        let frequencies = frequencies.into_iter().map(|word| (word, 1)).collect();
        let found = self.memories.clone().map(|items| {
            let total = items.len() as u64;
            MemoryMatches { items, frequencies, total, ..MemoryMatches::default() }
        });
        self.answer(asked, found)
    }

    fn named<'a>(
        &'a self,
        tier: MemoryTier,
        kind: &'a str,
        name: &'a str,
    ) -> HandleFuture<'a, Vec<MemoryItem>> {
        let is_it = |item: &MemoryItem| item.tier == tier && item.kind == kind && item.name == name;
        let found = self.memories.clone();
        let found = found.map(|items| items.into_iter().filter(is_it).collect());
        self.answer(format!("named {tier} {kind}/{name}"), found)
    }

    fn item(&self, id: MemoryId) -> HandleFuture<'_, Option<MemoryItem>> {
        let found = self.memories.clone();
        self.answer(
            format!("item {id}"),
            found.map(|items| items.into_iter().find(|item| item.id == id)),
        )
    }

    fn count_outcome(&self, id: MemoryId, worked: bool) -> HandleFuture<'_, ()> {
        self.answer(format!("outcome {id} {worked}"), self.remembers.then_some(()))
    }

    fn complete(&self, id: MemoryId, event: NewMemory) -> HandleFuture<'_, StoreOutcome> {
        let asked = format!("complete {id} {} {}", event.kind, event.body.text);
        self.answer(asked, self.remembers.then_some(StoreOutcome::New(MemoryId(2))))
    }

    fn forget(&self, id: MemoryId) -> HandleFuture<'_, bool> {
        self.answer(format!("forget {id}"), self.remembers.then_some(true))
    }
}

impl MailboxHandle for Fake {
    fn send_to_creator(&self, _call: CallId, letter: MessageDraft) -> HandleFuture<'_, MessageId> {
        let MessageDraft { body, reply_to } = letter;
        let reply_to = reply_to.map_or("None".to_owned(), |id| format!("Some({id})"));
        let asked = format!("send {} as {} re {reply_to}", body.text, body.label);
        self.answer(asked, self.mails.then_some(MessageId::from(Ulid::nil())))
    }
}

impl StatusHandle for Fake {
    fn status_synopsis(&self) -> HandleFuture<'_, Synopsis> {
        self.answer("synopsis".to_owned(), self.synopsis.clone())
    }
}

impl SoulHandle for Fake {
    fn view(&self) -> HandleFuture<'_, String> {
        self.answer("view soul".to_owned(), Some("# Ada".to_owned()))
    }

    fn history(&self, limit: u32) -> HandleFuture<'_, Vec<SoulVersion>> {
        let born = SoulVersion {
            version: 1,
            soul: None,
            source: SoulSource::Genesis,
            reason: "born".to_owned(),
            approved_by: None,
            at: Timestamp::EPOCH,
            hash: String::new(),
        };
        self.answer(format!("soul history {limit}"), Some(vec![born]))
    }

    fn update<'a>(
        &'a self,
        section: SoulSection,
        content: &'a str,
        reason: &'a str,
        _: Option<String>,
    ) -> HandleFuture<'a, u32> {
        self.answer(format!("update soul {section} {content} {reason}"), Some(2))
    }

    fn set_genesis<'a>(
        &'a self,
        text: &'a str,
        reason: &'a str,
        _: Option<String>,
    ) -> HandleFuture<'a, u32> {
        self.answer(format!("set genesis {text} {reason}"), Some(2))
    }

    fn reflect(&self) -> HandleFuture<'_, String> {
        self.answer("reflect".to_owned(), Some("nothing to advise".to_owned()))
    }
}

impl ScheduleHandle for Fake {
    fn schedule(&self, change: ScheduleChange) -> HandleFuture<'_, String> {
        let ScheduleChange { name, task, cron, interval, enabled, action } = change;
        let asked =
            format!("schedule {name} {task:?} {cron:?} {interval:?} {enabled:?} {action:?}");
        self.answer(asked, self.scheduled.clone())
    }
}

impl SurvivalHandle for Fake {
    fn ping(&self) -> HandleFuture<'_, String> {
        self.answer("ping".to_owned(), self.survives.clone())
    }

    fn send_distress(&self, words: String) -> HandleFuture<'_, String> {
        self.answer(format!("plead {words}"), self.survives.clone())
    }

    fn enter_low_compute(&self) -> HandleFuture<'_, String> {
        self.answer("economise".to_owned(), self.survives.clone())
    }
}

impl TreasuryHandle for Fake {
    fn balances(&self) -> HandleFuture<'_, Balances> {
        self.answer("balances".to_owned(), self.balances)
    }

    fn top_up(&self, usd: u32, _cause: PaymentReason) -> HandleFuture<'_, TopUpReceipt> {
        self.answer(format!("top up {usd}"), self.purchase)
    }

    fn transfer(
        &self,
        gift: CreditTransferRequest,
        cause: PaymentReason,
    ) -> HandleFuture<'_, TransferReceipt> {
        let asked = format!("transfer {} to {} for {}", gift.cents, gift.to, cause.note);
        self.answer(asked, self.given.clone())
    }

    fn fetch(&self, request: WebRequest, _cause: PaymentReason) -> HandleFuture<'_, FetchResult> {
        let WebRequest { verb, url, body, cap_cents, .. } = request;
        let verb = format!("{verb:?}").to_uppercase();
        self.answer(format!("{verb} {url} {body} for at most {cap_cents}"), self.page.clone())
    }
}

pub(crate) fn usdc(whole: u64) -> MicroUsdc {
    MicroUsdc::new(whole * 1_000_000)
}

/// Judges a call in a turn that answers the creator.
pub(crate) fn judged(tool: &str, arguments: &Value) -> Verdict<Box<dyn PreparedCall>> {
    let tool = list::find(tool).unwrap();
    judge(tool.parse(arguments).unwrap(), &facts(tool.spec().risk))
}

/// Returns the facts of a turn that answers the creator.
pub(crate) fn facts(risk: Risk) -> Facts {
    let creator = Some(CREATOR.parse().unwrap());
    let input = Label::Creator;
    let paid_hosts = vec!["conway.tech".to_owned()];
    let origins = Origins::assumed(ValueOrigin::Creator);
    let attempts = Default::default();
    let secrets = Vec::new();
    let heard = input;
    let egress = std::sync::Arc::default();
    Facts {
        input,
        heard,
        origins,
        risk,
        creator,
        paid_hosts,
        attempts,
        secrets,
        egress,
        purpose_asks: false,
        creator_waits: false,
        gives_alone: false,
        published_before: false,
        tier: None,
        hard_limit: None,
    }
}

/// Parses, judges and runs a call of a turn that the automaton goes on with.
pub(crate) fn run(fake: &Fake, tool: &str, arguments: &Value) -> Result<ToolOutput, ToolError> {
    run_as(Label::Own, fake, tool, arguments)
}

/// The same, with the model's words worth as little as the label says.
pub(crate) fn run_as(
    voice: Label,
    fake: &Fake,
    tool: &str,
    arguments: &Value,
) -> Result<ToolOutput, ToolError> {
    let Verdict::Allowed(approved, _) = judged(tool, arguments) else { panic!("not allowed") };
    let (prepared, permit) = approved.open();
    let call = CallId::from(Ulid::nil());
    let context = ToolContext {
        call,
        now: Timestamp::EPOCH,
        room: fake.room.unwrap_or(ROOM),
        voice,
        provenance: CallProvenance {
            call,
            turn: Ulid::nil().into(),
            input: voice,
            heard: voice,
            approval: None,
            tier: None,
            turn_of_wake: 1,
            place: 1,
        },
        workspace: fake,
        memory: fake,
        soul: fake,
        mailbox: fake,
        status: fake,
        treasury: fake,
        schedule: fake,
        survival: fake,
        machines: fake,
        models: fake,
    };
    let mut future = prepared.run(permit, &context);
    let mut polling = std::task::Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut polling) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a fake handle never waits"),
    }
}
