//! One history: what is asked, what goes wrong, and how all of it ends.
//!
//! Acts come one after the other; while one is under way, things may go wrong at
//! any moment of it. What a history does is drawn from its seed and from nothing
//! else. It must never look into a process to decide what happens to it.

use std::path::Path;
use std::sync::Arc;

use automaton_agent::treasury::Treasury;
use automaton_core::error::chain as reasons;
use automaton_core::faults::FaultPoint;
use automaton_core::payment::PaymentReason;
use automaton_core::time::Span;
use tokio::time::{Duration, sleep};

use super::baseline::SimBaseline;
use super::chain::FIRM_AFTER;
use super::check;
use super::disk::{CrashPoint, DiskLoss};
use super::world::{SimProcessKind, SimProcessState, SimWorld};
use super::{PlantedDefect, SimError, SimStats};

/// Acts of a history: at least, and how many more there may be.
const ACTS: (u32, u32) = (4, 9);
/// Rounds after the faults in which everything has to come to its end.
const ROUNDS_MAX: u32 = 40;

/// Tells the history of a seed.
pub(super) async fn run_history(
    seedling: &SimBaseline,
    dir: &Path,
    seed: u64,
    plant: Option<PlantedDefect>,
) -> Result<SimStats, SimError> {
    let mut world = SimWorld::begin(seedling, dir, seed, plant)?;
    let told = world.run_steps().await;
    let SimWorld { trace, tally, net, .. } = world;
    match told {
        Ok((intents, settled)) => {
            Ok(SimStats { histories: 1, intents, settled, requests: net.calls(), ..tally })
        }
        Err(HistoryStop::Broken(what)) => Err(SimError::Broken { seed, what, trace }),
        Err(HistoryStop::Sim(error)) => Err(error),
    }
}

/// Reason for which a history ends.
pub(super) enum HistoryStop {
    Broken(String),
    Sim(SimError),
}

impl From<SimError> for HistoryStop {
    fn from(error: SimError) -> Self {
        Self::Sim(error)
    }
}

impl From<String> for HistoryStop {
    fn from(what: String) -> Self {
        Self::Broken(what)
    }
}

impl SimWorld<'_> {
    async fn run_steps(&mut self) -> Result<(u64, u64), HistoryStop> {
        self.revive().await?;
        self.trouble = self.dice.pick([0, 20, 60]);
        for _ in 0..ACTS.0 + self.dice.below(ACTS.1) {
            self.act().await?;
        }
        self.calm();
        self.come_to_rest().await?;
        let counted = check::books(self, self.seedling).await?;
        self.buys_again().await?;
        check::books(self, self.seedling).await?;
        Ok(counted)
    }

    /// One act, and what goes wrong while it is under way.
    async fn act(&mut self) -> Result<(), SimError> {
        self.revive().await?;
        match self.dice.below(100) {
            0..30 => self.buy(1),
            30..36 => self.buy(2),
            36..44 => self.give(),
            44..56 => self.observe(),
            56..72 => self.rest(),
            72..80 => {
                let bad = self.dice.pick([0, 5, 25, 60]);
                self.bad = bad;
                self.net.set_failure_rate(bad);
                self.note(format_args!("of 100 requests {bad} meet with something"));
            }
            80..86 => self.net.replay().await,
            _ => self.incident().await?,
        }
        if self.dice.chance(30) {
            self.arm();
        }
        self.wait().await
    }

    fn buy(&mut self, times: u32) {
        for _ in 0..times {
            let usd = self.dice.pick([5, 5, 5, 25, 25, 100]);
            self.note(format_args!("buy for ${usd}"));
            self.work(async move |treasury| match treasury.buy(usd).await {
                Ok(bought) => format!("${usd}: {bought:?}"),
                Err(error) => format!("${usd}: {}", reasons(&error)),
            });
        }
    }

    /// Gives credits away, once or twice at the same time.
    fn give(&mut self) {
        let cents = self.dice.pick([7, 7, 100, 900, 5_000]);
        let to = self.seedling.other;
        for _ in 0..self.dice.pick([1, 1, 2]) {
            self.note(format_args!("give {cents} cents"));
            self.work(async move |treasury| {
                match treasury.transfer(to, cents, PaymentReason::auto_topup("a gift")).await {
                    Ok(given) => format!("{cents} cents: {given:?}"),
                    Err(error) => format!("{cents} cents: {}", reasons(&error)),
                }
            });
        }
    }

    fn observe(&mut self) {
        self.note("look");
        self.work(async move |treasury| {
            let balances = treasury.check_balances().await;
            format!("{:?}, {:?}", balances.credits, balances.usdc)
        });
    }

    fn work<F>(&mut self, work: impl FnOnce(Arc<Treasury>) -> F)
    where
        F: Future<Output = String> + Send + 'static,
    {
        if let Some(agent) = &self.agent {
            self.work.spawn(work(Arc::clone(&agent.treasury)));
        }
    }

    fn rest(&mut self) {
        let most = self.dice.pick([90, 700, 4_000, 100_000]);
        let span = Span::from_secs(i64::from(self.dice.below(most)));
        self.time.leap(span);
        self.note(format_args!("after {span}"));
    }

    /// Waits for the agent, while things go wrong.
    async fn wait(&mut self) -> Result<(), SimError> {
        while !self.work.is_empty() {
            let died = Arc::clone(&self.died);
            let trouble = Duration::from_millis(u64::from(self.dice.below(12_000)));
            tokio::select! {
                biased;
                () = died.notified() => self.bury().await?,
                Some(done) = self.work.join_next() => {
                    // Who died says nothing.
                    if let Ok(said) = done {
                        self.note(said);
                    }
                }
                () = sleep(trouble) => {
                    if self.dice.chance(self.trouble) {
                        self.incident().await?;
                    }
                }
            }
            // The cloud and the signer are kept by somebody; the agent begins anew
            // with the next act.
            if self.dice.chance(50) {
                self.revive_cloud().await?;
            }
        }
        self.bury().await
    }

    /// Something that nobody asked for.
    async fn incident(&mut self) -> Result<(), SimError> {
        let who = self.dice.pick(SimProcessKind::ALL);
        match self.dice.below(12) {
            0..3 => {
                let seconds = self.dice.pick([3, 40, 700, 5_000, 100_000, 40_000_000]);
                let by_ms = seconds * self.dice.pick([1_000, -1_000]);
                self.keeps[who as usize].wall.set_off(by_ms);
                self.note(format_args!("the clock of the {who:?} is off by {by_ms} ms"));
            }
            3..6 => {
                let loss = self.loss();
                self.note(format_args!("the {who:?} dies and loses {loss:?}"));
                self.fuse(who).inspect(|fuse| fuse.kill(loss));
            }
            6 => {
                self.note("the machine dies");
                for who in SimProcessKind::ALL {
                    let loss = DiskLoss::Power(self.dice.below(u32::MAX));
                    self.fuse(who).inspect(|fuse| fuse.kill(loss));
                }
            }
            7..10 => {
                let depth = self.dice.pick([1, FIRM_AFTER]);
                self.note(format_args!("a fork undoes {depth} blocks"));
                self.net.chain.fork(depth, &self.dice);
                self.tally.forks += 1;
            }
            10 => {
                self.note("the chain forgets what waits");
                self.net.chain.forget(&self.dice);
            }
            _ => {
                let still = self.dice.chance(50);
                self.note(if still { "no more blocks" } else { "blocks again" });
                self.net.chain.hold_still(still);
            }
        }
        self.bury().await
    }

    fn loss(&self) -> DiskLoss {
        if self.dice.chance(50) {
            DiskLoss::Nothing
        } else {
            DiskLoss::Power(self.dice.below(u32::MAX))
        }
    }

    /// Lets somebody die at a point of a payment.
    fn arm(&mut self) {
        let (who, point) = match self.dice.below(3) {
            0 => (SimProcessKind::Agent, self.dice.pick(FaultPoint::PAYMENT)),
            1 => (SimProcessKind::Signer, self.dice.pick(FaultPoint::SIGNER)),
            _ => (SimProcessKind::Cloud, self.dice.pick(FaultPoint::CLOUD)),
        };
        let charge = CrashPoint { point, arrival: 1 + self.dice.below(2), loss: self.loss() };
        self.note(format_args!("armed: {charge:?}"));
        self.fuse(who).inspect(|fuse| fuse.arm(charge));
    }

    /// Ends the faults: clocks that are wrong stay wrong.
    fn calm(&mut self) {
        self.note("the faults are over");
        (self.bad, self.trouble) = (0, 0);
        self.net.set_failure_rate(0);
        self.net.chain.hold_still(false);
        for who in SimProcessKind::ALL {
            self.fuse(who).inspect(|fuse| fuse.disarm());
        }
    }

    /// Goes on without faults until nothing is open any more.
    async fn come_to_rest(&mut self) -> Result<(), HistoryStop> {
        for round in 0..ROUNDS_MAX {
            self.revive().await?;
            self.observe();
            self.wait().await?;
            // What a clock of the future signed is open until then.
            self.time.leap(match round {
                0..20 => Span::from_secs(30),
                20..25 => Span::from_secs(24 * 60 * 60),
                _ => Span::from_secs(60 * 24 * 60 * 60),
            });
            sleep(Duration::from_secs(31)).await;
            let open = check::open(self).await?;
            if open.is_empty() {
                return Ok(());
            }
            self.note(format_args!("open: {open}"));
        }
        Err(HistoryStop::Broken("something stays open although nothing fails any more".to_owned()))
    }

    /// Makes a purchase after all faults ended: every clock is right, and nothing is counted any
    /// more.
    async fn buys_again(&mut self) -> Result<(), HistoryStop> {
        for SimProcessState { wall, .. } in &self.keeps {
            wall.set_off(0);
        }
        self.time.leap(Span::from_secs(25 * 60 * 60));
        let before = self.net.chain.transfers().len();
        self.observe();
        self.wait().await?;
        self.work(async move |treasury| match treasury.buy(5).await {
            Ok(bought) => format!("at last: {bought:?}"),
            Err(error) => format!("at last: {}", reasons(&error)),
        });
        self.wait().await?;
        self.come_to_rest().await?;
        if self.net.chain.transfers().len() == before {
            return Err(HistoryStop::Broken(
                "nothing can be bought although nothing fails".to_owned(),
            ));
        }
        Ok(())
    }
}
