//! Keeps the agent's process alive, and ends it when it is time.
//!
//! ```text
//! start ──▶ follow its lines ──▶ it is gone ──▶ by itself, well ────▶ done
//!   ▲                                 │
//!   │                                 ├─ by a mistake of the user's ─▶ failed
//!   └── wait, longer each time ◀── crashed
//!                                     ├─ too often in a bounded run ▶ failed
//!                                     └─ the disk is full: until it has room
//! ```
//!
//! The supervisor knows nothing of turns but their number. It holds no lock on
//! the database and must never write to it; a message of a story's creator
//! goes the way of `automaton send`. Where the agent lives from something, its
//! signer, a chain and a cloud are kept beside it; no agent goes on without its signer.

use std::future::pending;
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_core::event::{Event, Service, StampedEvent};
use automaton_core::record::StopReason;
use automaton_core::time::{Clock, SystemClock};
use automaton_sandbox::process::Signals;

use crate::child_process::{ChildProcess, ShutdownWait};
use crate::config::named_brain::NamedBrain;
use crate::config::resolve::ResolvedConfig;
use crate::crashes::CrashHistory;
use crate::descriptor::StopSignals;
use crate::disk_space;
use crate::error::CliError;
use crate::event_exporters::EventExporters;
use crate::role::launch_config::{ChildMessage, LaunchConfig};
use crate::services::{AgentAndSigner, PaymentBackend, Services, SignerHandle};
use crate::story_driver::{StoryDriver, StoryStage, judged, until};
use crate::ui;
use crate::ui::console::Console;

/// Time that the agent may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(30);

/// One agent and what is known about it.
pub(crate) struct Supervisor {
    launch_config: LaunchConfig,
    console: Console,
    story: Option<StoryDriver>,
    exporters: EventExporters,
    committed: u32,
    lived: bool,
    crashes: CrashHistory,
    services: Option<Services>,
    /// Exit of the signer, if it ended before its agent.
    signer_death: Option<String>,
    stopping: Option<ShutdownReason>,
    /// True if a second signal came: no more waiting.
    hurried: bool,
    turn_failure: Option<(ErrorClass, String, Option<String>)>,
    /// The brain that the command line named, until it has answered.
    named_brain: Option<NamedBrain>,
}

/// Reason for which the agent was asked to end.
#[derive(Debug)]
enum ShutdownReason {
    /// A signal came.
    Signalled,
    /// The run has reached its end, or failed for good.
    Decided(Result<(), CliError>),
}

/// Exit of the agent's process.
#[derive(Debug)]
struct AgentExit {
    how: String,
    fatal: Option<CliError>,
    well: bool,
}

impl Supervisor {
    /// A supervisor of the agent that the charter describes.
    pub(crate) fn new(
        launch_config: LaunchConfig,
        console: Console,
        story: Option<StoryDriver>,
    ) -> Self {
        Self {
            launch_config,
            console,
            story,
            exporters: EventExporters::default(),
            committed: 0,
            lived: false,
            crashes: CrashHistory::default(),
            services: None,
            signer_death: None,
            stopping: None,
            hurried: false,
            turn_failure: None,
            named_brain: None,
        }
    }

    /// The same, which keeps this brain in the configuration when it has answered.
    pub(crate) fn with_named_brain(self, named_brain: Option<NamedBrain>) -> Self {
        Self { named_brain, ..self }
    }

    /// The same, which tells the operator elsewhere, too.
    pub(crate) fn with_exporters(self, outlets: EventExporters) -> Self {
        Self { exporters: outlets, ..self }
    }

    /// Runs the agent to its end, with what it lives from.
    ///
    /// # Errors
    /// When it cannot live, dies too often, or the story is not told.
    pub(crate) async fn run(
        mut self,
        signals: &Signals,
        backend: Option<PaymentBackend>,
    ) -> Result<(), CliError> {
        let signals = StopSignals::watch(signals)?;
        let outcome = self.run_agents(&signals, backend).await;
        let mut hurry = self.hurry(&signals);
        let ended = match self.services.take() {
            Some(services) => services.end(&mut hurry).await,
            None => Ok(()),
        };
        let outcome = outcome.and(ended);
        std::mem::take(&mut self.exporters).end().await;
        if let Err(failure) = &outcome {
            self.console.failed(failure)?;
        }
        outcome
    }

    async fn run_agents(
        &mut self,
        signals: &StopSignals,
        backend: Option<PaymentBackend>,
    ) -> Result<(), CliError> {
        if let Some(backend) = backend {
            let mut begun = Vec::new();
            let start =
                Services::start(backend, &self.launch_config, &mut self.console, &mut begun);
            let started = tokio::select! {
                biased;
                signal = signals.next() => signal.map(|()| None),
                money = start => money.map(Some),
            };
            match started {
                Ok(Some(supply)) => self.services = Some(Services::new(begun, supply)),
                ended => {
                    let told = ended.and_then(|_| self.tell_of_stop());
                    let mut hurry = self.hurry(signals);
                    return Services::end_all(begun, &mut hurry).await.and(told);
                }
            }
        }
        let mut signer = None;
        let lived = self.keep_alive(signals, &mut signer).await;
        let mut hurry = self.hurry(signals);
        match signer {
            Some(signer) => signer.process.end(GRACE, &mut hurry).await.and(lived),
            None => lived,
        }
    }

    fn tell_of_stop(&mut self) -> Result<(), CliError> {
        let within_ms = i64::try_from(GRACE.as_millis()).unwrap_or(i64::MAX);
        self.console.report(Event::StopRequested { within_ms })
    }

    const fn hurry<'a>(&self, signals: &'a StopSignals) -> ShutdownWait<'a> {
        ShutdownWait { signals, is_on: self.hurried }
    }

    /// Runs one agent after the other, all with the same signer for as long as it lives.
    async fn keep_alive(
        &mut self,
        signals: &StopSignals,
        signer: &mut Option<SignerHandle>,
    ) -> Result<(), CliError> {
        loop {
            let home = self.services.as_ref();
            let mut pair =
                AgentAndSigner::start(self.current_launch_config(), home, signer.take()).await?;
            let followed = self.follow_agent(&mut pair, signals).await;
            let AgentAndSigner { mut agent, signer: left } = pair;
            *signer = left;
            let mut hurry = self.hurry(signals);
            let death = match followed {
                Ok(fatal) => death(&mut agent, fatal),
                Err(failure) => agent.end(GRACE, &mut hurry).await.and(Err(failure)),
            };
            self.hurried = hurry.is_on;
            let death = death?;
            match self.stopping.take() {
                Some(ShutdownReason::Decided(outcome)) => return outcome,
                Some(ShutdownReason::Signalled) => return death.fatal.map_or(Ok(()), Err),
                None => {}
            }
            let bereft = self.signer_death.take().filter(|_| death.fatal.is_none());
            if death.well && bereft.is_none() {
                return self.story.as_ref().map_or(Ok(()), |telling| {
                    telling.check_told(self.launch_config.turns_max, &mut self.console)
                });
            }
            if self.launch_config.turns_max.is_some_and(|turns| self.committed >= turns) {
                return Ok(());
            }
            if let Some(full) = self.shortage_behind(&death) {
                if self.await_room(full, signals).await? {
                    return self.tell_of_stop();
                }
                continue;
            }
            let wait = self.after_crash(death, bereft)?;
            if self.wait(wait, signals).await? {
                return self.tell_of_stop();
            }
        }
    }

    /// A disk that is full, where the agent may have died of that.
    fn shortage_behind(&self, death: &AgentExit) -> Option<CliError> {
        let mistake = death.fatal.as_ref().is_some_and(|failure| failure.kind.exit_code() == 1);
        let home = &self.launch_config.resolved.home;
        if mistake { None } else { disk_space::shortage(home) }
    }

    /// Waits until there is room, and writes nothing meanwhile; whether it was asked to stop.
    async fn await_room(
        &mut self,
        full: CliError,
        signals: &StopSignals,
    ) -> Result<bool, CliError> {
        if self.is_bounded() {
            return Err(full);
        }
        let CliError { what: error, kind, remedy, .. } = full;
        let hint =
            remedy.map(|remedy| format!("{remedy}, and it goes on by itself when there is room"));
        self.console.report(Event::ErrorReported { kind, error, hint })?;
        // Once in any case: room that comes and goes must start nothing again and again.
        loop {
            if self.wait(disk_space::LOOK_EVERY, signals).await? {
                return Ok(true);
            }
            if disk_space::shortage(&self.launch_config.resolved.home).is_none() {
                return Ok(false);
            }
        }
    }

    /// Waits, and keeps what it lives from meanwhile; whether it was asked to stop.
    async fn wait(&mut self, wait: Duration, signals: &StopSignals) -> Result<bool, CliError> {
        let end = tokio::time::Instant::now() + wait;
        loop {
            // Every arm is cancel-safe: the others only wait.
            tokio::select! {
                biased;
                signal = signals.next() => return signal.map(|()| true),
                news = next_news(self.services.as_mut()) => self.console.show(&news?)?,
                () = tokio::time::sleep_until(end) => return Ok(false),
            }
        }
    }

    /// Returns true if the run ends by itself. Then repeated failures of the model end it too.
    /// Any other run continues.
    const fn is_bounded(&self) -> bool {
        self.launch_config.turns_max.is_some() || self.story.is_some()
    }

    /// The charter less the turns that are committed already.
    fn current_launch_config(&self) -> LaunchConfig {
        let mut config = self.launch_config.clone();
        let given = config.turns_max;
        config.turns_max = given.map(|turns| turns.saturating_sub(self.committed));
        config
    }

    /// Follows the agent until it has closed its output, and gives its last
    /// word if that was a failure.
    async fn follow_agent(
        &mut self,
        pair: &mut AgentAndSigner,
        signals: &StopSignals,
    ) -> Result<Option<CliError>, CliError> {
        let mut fatal = None;
        let mut grace_over = None;
        loop {
            let AgentAndSigner { agent, signer } = pair;
            // Every arm is cancel-safe: a line is read piece by piece into a
            // buffer that stays, and the others only wait.
            tokio::select! {
                biased;
                signal = signals.next() => {
                    signal?;
                    if self.stopping.is_some() {
                        self.hurried = true;
                        agent.child.kill()?;
                    } else {
                        self.stopping = Some(ShutdownReason::Signalled);
                        self.tell_of_stop()?;
                    }
                }
                lost = self.exporters.next_failure() => self.console.report(lost)?,
                shown = self.console.pulse() => shown?,
                stage = next_stage(self.story.as_mut()) => self.on_stage(stage)?,
                news = next_news(self.services.as_mut()) => self.console.show(&news?)?,
                line = agent.next_line() => match line? {
                    None => return Ok(fatal),
                    Some(ChildMessage::Fatal { kind, error, remedy }) => {
                        fatal = Some(CliError { remedy, ..CliError::new(kind, error) });
                    }
                    Some(ChildMessage::Event(event)) => self.on_event(&event)?,
                    Some(ChildMessage::Ready { .. }) => {}
                },
                // The agent ends too: it must not go on without its key.
                how = end_of(signer), if signer.is_some() => self.signer_death = how?,
                () = until(grace_over) => agent.child.kill()?,
            }
            let ends = self.stopping.is_some() || self.signer_death.is_some();
            if ends && grace_over.is_none() {
                agent.child.terminate()?;
                grace_over = Some(tokio::time::Instant::now() + GRACE);
            }
        }
    }

    fn on_event(&mut self, stamped: &StampedEvent) -> Result<(), CliError> {
        self.console.show(stamped)?;
        if let Some(lost) = self.exporters.take(stamped) {
            self.console.report(lost)?;
        }
        match &stamped.event {
            Event::BrainReady { .. } => self.lived = true,
            Event::TurnCommitted { .. } => {
                self.committed = self.committed.saturating_add(1);
                self.keep_brain()?;
            }
            Event::TurnFailed { kind, error, hint, .. } => {
                self.turn_failure = Some((*kind, error.clone(), hint.clone()));
            }
            // Nobody waits for money, or for a day, in a run that is to end.
            Event::HibernationStarted { reason, .. } if self.is_bounded() => {
                let failure = CliError::new(ErrorClass::Denied, format!("it hibernates: {reason}"));
                self.decide(Err(failure));
            }
            Event::BrokeStarted { credits, can_buy: false, .. } if self.is_bounded() => {
                let what = format!("it is broke: {credits} buys no call, and it cannot buy more");
                let failure = CliError::new(ErrorClass::Denied, what)
                    .hint("send USDC to its wallet (`automaton fund`), and run it again");
                self.decide(Err(failure));
            }
            Event::WakeEnded { reason: StopReason::Budget, .. } if self.is_bounded() => {
                let (kind, error, _) = self.turn_failure.take().unwrap_or_else(|| {
                    (ErrorClass::Denied, StopReason::Budget.sentence().to_owned(), None)
                });
                self.decide(Err(CliError::new(kind, error).hint(
                    "raise `treasuryPolicy.maxInferenceDailyCents`, or run it again tomorrow",
                )));
            }
            Event::WakeEnded { reason: StopReason::Errors, .. } if self.is_bounded() => {
                let (kind, error, hint) = self.turn_failure.take().unwrap_or_else(|| {
                    (ErrorClass::Upstream, "too many turns failed".to_owned(), None)
                });
                let ResolvedConfig { brain, brain_origin, .. } = &self.launch_config.resolved;
                let hint = hint.map_or_else(String::new, |hint| format!("{hint}; "));
                let failure = CliError::new(kind, error).hint(format!(
                    "{hint}the model is {brain}, from the {brain_origin}; nothing is lost: run it \
                     again when the model answers"
                ));
                self.decide(Err(failure));
            }
            _ => {}
        }
        let stage = self.story.as_mut().and_then(|telling| telling.on_event(&stamped.event));
        stage.map_or(Ok(()), |stage| self.on_stage(stage))
    }

    /// Keeps the brain that the command line named, which has answered just now.
    fn keep_brain(&mut self) -> Result<(), CliError> {
        let Some(named) = self.named_brain.take() else { return Ok(()) };
        match named.write() {
            Ok(told) => {
                ui::say(&told);
                Ok(())
            }
            Err(CliError { what: error, kind, remedy: hint, .. }) => {
                self.console.report(Event::ErrorReported { kind, error, hint })
            }
        }
    }

    fn on_stage(&mut self, stage: StoryStage) -> Result<(), CliError> {
        let outcome = match stage {
            StoryStage::Tell(event) => return self.console.report(event),
            StoryStage::Ended { unmet } => {
                self.console.report(Event::StoryEnded { unmet: unmet.clone() })?;
                judged(unmet)
            }
            StoryStage::Failed(failure) => Err(failure),
        };
        self.decide(outcome);
        Ok(())
    }

    fn decide(&mut self, outcome: Result<(), CliError>) {
        if self.stopping.is_none() {
            self.stopping = Some(ShutdownReason::Decided(outcome));
        }
    }

    /// Returns the wait before the agent's restart.
    fn after_crash(
        &mut self,
        death: AgentExit,
        bereft: Option<String>,
    ) -> Result<Duration, CliError> {
        // A mistake of the user's stays one, and what never lived will not, unless it
        // is what it lives from that was gone for a moment.
        let may_pass = |failure: &CliError| {
            self.lived || (self.services.is_some() && failure.kind == ErrorClass::Transient)
        };
        match death.fatal {
            Some(failure) if !may_pass(&failure) || failure.kind.exit_code() == 1 => {
                return Err(failure);
            }
            _ => {}
        }
        let service = if bereft.is_some() { Service::Signer.name() } else { "agent" };
        let how = bereft.clone().unwrap_or(death.how);
        let too_many = || {
            CliError::new(ErrorClass::Internal, CrashHistory::too_many(service, &how))
                .hint("`automaton logs` shows what came before")
        };
        let wait = match self.crashes.count(SystemClock.now()) {
            Some(wait) => wait,
            None if self.is_bounded() => return Err(death.fatal.unwrap_or_else(too_many)),
            // Nobody may be there to start it again.
            None => {
                let CliError { what: error, remedy, .. } = too_many();
                let wait = self.crashes.pause();
                let kind = ErrorClass::Internal;
                let next = format!("it is tried again in {} min", wait.as_secs() / 60);
                let hint = remedy.map(|remedy| format!("{remedy}; {next}"));
                self.console.report(Event::ErrorReported { kind, error, hint })?;
                wait
            }
        };
        let restarts = self.crashes.restarts;
        self.console.report(match bereft {
            Some(death) => Event::ServiceRestarted { service: Service::Signer, death, restarts },
            None => Event::AgentRestarted { death: how, restarts },
        })?;
        Ok(wait)
    }
}

fn death(agent: &mut ChildProcess, fatal: Option<CliError>) -> Result<AgentExit, CliError> {
    let status = agent.child.wait()?;
    let how = match &fatal {
        Some(failure) => failure.line(),
        None => status.to_string(),
    };
    Ok(AgentExit { how, fatal, well: status.is_success() })
}

async fn next_news(services: Option<&mut Services>) -> Result<StampedEvent, CliError> {
    match services {
        Some(services) => services.next().await,
        None => pending().await,
    }
}

/// Waits for the end of the signer, and says how it crashed. Cancel-safe: it is gone
/// from its place only when it has ended.
async fn end_of(signer: &mut Option<SignerHandle>) -> Result<Option<String>, CliError> {
    let Some(SignerHandle { process, .. }) = signer else { return pending().await };
    while process.next_line().await?.is_some() {}
    let status = process.child.wait()?;
    *signer = None;
    Ok((!status.is_success()).then(|| status.to_string()))
}

async fn next_stage(telling: Option<&mut StoryDriver>) -> StoryStage {
    match telling {
        Some(telling) => telling.next().await,
        None => pending().await,
    }
}
