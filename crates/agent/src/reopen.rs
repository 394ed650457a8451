//! Ports that were published before the process ended, opened again at its start.
//!
//! Servers end with the sandbox, so their commands are started again, under the same limits
//! and in the same kind of sandbox as before, and the port is opened at the same price. Each
//! is judged anew, and what was decided is stored before anything is started. What a start
//! finds half done is never run again: the automaton is woken and told, and decides itself.

use std::collections::BTreeSet;

use automaton_core::error::ErrorClass;
use automaton_core::event::{Event, ReopenedPort};
use automaton_core::faults::FaultPoint;
use automaton_core::id::CallId;
use automaton_core::intent::{Intent, Intentional};
use automaton_core::origin::{Origins, ValueOrigin};
use automaton_core::record::WakeSource;
use automaton_core::tool::Risk;
use automaton_core::trust::Label;
use automaton_policy::{Facts, RuleContext, Verdict};
use automaton_sandbox::HOME_INSIDE;
use automaton_store::{PublicationState, PublishedPort};
use automaton_tools::context::{CallProvenance, MachinesHandle as _, WorkspaceHandle as _};
use automaton_tools::{HandleError, list};

use crate::error::AgentError;
use crate::turn::AgentContext;
use crate::wake::cause;

/// A server that is to run again, with its port.
struct Reopening(PublishedPort);

impl Intentional for Reopening {
    fn intents(&self) -> Vec<Intent> {
        let exec = |command: &String| Intent::Exec { command: command.clone(), timeout_ms: 0 };
        let PublishedPort { port, price, commands, .. } = &self.0;
        let price = price.clone().unwrap_or_default();
        let publish = Intent::Publish { port: *port, price, open: true };
        commands.iter().map(exec).chain([publish]).collect()
    }
}

/// Opens the ports again that were open when the last process ended.
///
/// # Errors
/// When the store fails. A port that cannot be opened is told, and ends nothing.
pub(crate) async fn reopen_ports(ctx: &AgentContext) -> Result<(), AgentError> {
    // On a rented machine processes and ports stay.
    if ctx.settings.machine.is_some() {
        return Ok(());
    }
    let mut started = BTreeSet::new();
    for published in ctx.deps.store.published_ports().await? {
        match published.state {
            PublicationState::Open => reopen(ctx, published, &mut started).await?,
            PublicationState::Reopening => {
                let why = "the process ended while it was opened again, so nobody knows whether \
                           its server runs";
                give_up(ctx, published.port, why).await?;
            }
        }
    }
    Ok(())
}

/// Judges one port, stores what was decided, and opens it.
async fn reopen(
    ctx: &AgentContext,
    published: PublishedPort,
    started: &mut BTreeSet<String>,
) -> Result<(), AgentError> {
    let port = published.port;
    // What visitors left in the files counts for what the commands send out.
    let words = ctx.deps.store.path_label(HOME_INSIDE.to_owned()).await?;
    let facts = facts();
    let tool = list::publishing();
    let moment = RuleContext { tool: &tool, at: ctx.deps.ids.now(), tier: None, turn: 1, call: 1 };
    let verdict = ctx.deps.judge.judge(Reopening(published), &facts, &moment, None);
    let (approved, decision) = match verdict {
        Verdict::Allowed(approved, decision) => (approved, decision),
        Verdict::Held(decision) | Verdict::Refused(decision) => {
            return give_up(ctx, port, &decision.reason).await;
        }
    };
    let decided = format!("{} {}", decision.code.name(), decision.reason);
    ctx.deps.store.begin_reopening(port, decided).await?;
    ctx.deps.faults.reach(FaultPoint::PortReopening);
    let (Reopening(published), _permit) = approved.open();
    let provenance = provenance(published.call, &published, words.unwrap_or(Label::Own));
    match start_and_open(ctx, &published, provenance, started).await {
        Ok(url) => {
            ctx.deps.emit(Event::PortReopened(ReopenedPort { port, url: url.clone() }));
            let state = PublicationState::Open;
            let open = PublishedPort { url, state, ..published };
            ctx.deps.store.note_published(open).await?;
            ctx.deps.faults.reach(FaultPoint::PortReopened);
            Ok(())
        }
        Err(error) => give_up(ctx, port, &error.message).await,
    }
}

/// Starts the commands of a port that do not run yet, and opens it.
async fn start_and_open(
    ctx: &AgentContext,
    published: &PublishedPort,
    provenance: CallProvenance,
    started: &mut BTreeSet<String>,
) -> Result<String, HandleError> {
    for command in &published.commands {
        if started.insert(command.clone()) {
            ctx.handles.workspace.start(command, provenance).await?;
        }
    }
    ctx.deps.faults.reach(FaultPoint::PortServed);
    ctx.handles.machines.open(published.port, published.price.clone(), provenance).await
}

/// The facts of a judgement that no turn asks for: the runtime's own doing.
fn facts() -> Facts {
    Facts {
        input: Label::Own,
        heard: Label::Own,
        secrets: Vec::new(),
        origins: Origins::assumed(ValueOrigin::Own),
        risk: Risk::Caution,
        creator: None,
        paid_hosts: Vec::new(),
        egress: Default::default(),
        attempts: Default::default(),
        creator_waits: false,
        gives_alone: false,
        purpose_asks: false,
        tier: None,
        published_before: true,
        hard_limit: None,
    }
}

fn provenance(call: CallId, published: &PublishedPort, words: Label) -> CallProvenance {
    CallProvenance {
        call,
        turn: published.turn,
        input: Label::Own.meet(words),
        heard: Label::Own.meet(words),
        approval: None,
        tier: None,
        turn_of_wake: 1,
        place: 1,
    }
}

/// Forgets a port that is not opened again, and wakes the automaton for it.
async fn give_up(ctx: &AgentContext, port: u16, why: &str) -> Result<(), AgentError> {
    let text = format!(
        "Port {port}, which you had published, was not opened again after a restart: {why} Look \
         with read_process, and start its server and expose the port again if it is still wanted."
    );
    let wake = cause(WakeSource::Heartbeat, &text);
    ctx.deps.store.give_up_published(port, wake).await?;
    ctx.deps.emit(Event::ErrorReported {
        kind: ErrorClass::User,
        error: format!("port {port} was not opened again: {why}"),
        hint: Some("`automaton send` can tell it to".to_owned()),
    });
    Ok(())
}
