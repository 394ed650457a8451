//! Everything there is in a history: three processes with what they keep over their
//! lives, the net between them, and what happened so far.
//!
//! Here the dead are buried and begin anew. What happens when, and why, is decided
//! in [`super::history`]; nothing here may draw whether something goes wrong.

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::U256;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::baseline::SimBaseline;
use super::chain::{SimBlockHead, SimChain};
use super::disk::{CrashSwitch, DiskLoss, SimDisk};
use super::life::{SignatureLog, SimAgent, SimCloud, SimProcess, SimSigner};
use super::network::SimNetwork;
use super::rng::SimRng;
use super::time::{SimWallClock, TrueTime};
use super::{PlantedDefect, SimError, SimStats, token};

/// First balance of the wallet in base units: $10,000.
const OPENING: u64 = 10_000_000_000;

/// The three that may die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimProcessKind {
    Agent,
    Signer,
    Cloud,
}

impl SimProcessKind {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Agent, Self::Signer, Self::Cloud];
}

/// State of a process over its lives.
pub(super) struct SimProcessState {
    disk: Arc<SimDisk>,
    pub(super) wall: SimWallClock,
}

/// Everything there is.
pub(super) struct SimWorld<'a> {
    pub(super) seedling: &'a SimBaseline,
    pub(super) plant: Option<PlantedDefect>,
    pub(super) dice: SimRng,
    pub(super) time: TrueTime,
    pub(super) net: Arc<SimNetwork>,
    pub(super) log: SignatureLog,
    pub(super) died: Arc<Notify>,
    pub(super) keeps: [SimProcessState; 3],
    pub(super) agent: Option<SimAgent>,
    pub(super) signer: Option<SimSigner>,
    pub(super) cloud: Option<SimCloud>,
    /// Running work of the agent.
    pub(super) work: JoinSet<String>,
    /// Faulty requests among a hundred.
    pub(super) bad: u32,
    /// Moments of waiting with an event, among a hundred.
    pub(super) trouble: u32,
    pub(super) trace: Vec<String>,
    pub(super) tally: SimStats,
}

impl<'a> SimWorld<'a> {
    /// A world in which nobody lives yet.
    pub(super) fn begin(
        seedling: &'a SimBaseline,
        dir: &Path,
        seed: u64,
        plant: Option<PlantedDefect>,
    ) -> Result<Self, SimError> {
        let time = TrueTime::begin();
        let opening = (seedling.wallet, U256::from(OPENING));
        let chain = Arc::new(SimChain::new(&time, token(), opening));
        let keeps = |name, db: &[u8]| {
            let disk = SimDisk::with(dir.to_owned(), name, db).map_err(SimError::io("disk"))?;
            Ok::<_, SimError>(SimProcessState { disk, wall: SimWallClock::right(&time) })
        };
        let keeps = [
            keeps("state", &seedling.state)?,
            keeps("ledger", &seedling.ledger)?,
            keeps("cloud", &seedling.cloud)?,
        ];
        Ok(Self {
            seedling,
            plant,
            dice: SimRng::new(seed),
            net: Arc::new(SimNetwork::new(chain, seed ^ u64::MAX)),
            log: SignatureLog::default(),
            died: Arc::default(),
            keeps,
            agent: None,
            signer: None,
            cloud: None,
            work: JoinSet::new(),
            bad: 0,
            trouble: 0,
            trace: Vec::new(),
            tally: SimStats::default(),
            time,
        })
    }

    /// Notes what happened.
    pub(super) fn note(&mut self, what: impl std::fmt::Display) {
        self.trace.push(format!("  at {}: {what}", self.time.passed()));
    }

    /// Returns the kill switch of a process, if it lives.
    pub(super) fn fuse(&self, who: SimProcessKind) -> Option<&Arc<CrashSwitch>> {
        match who {
            SimProcessKind::Agent => self.agent.as_ref().map(|life| &life.fuse),
            SimProcessKind::Signer => self.signer.as_ref().map(|life| &life.fuse),
            SimProcessKind::Cloud => self.cloud.as_ref().map(|life| &life.fuse),
        }
    }

    /// Takes away what is in the memory of the dead.
    pub(super) async fn bury(&mut self) -> Result<(), SimError> {
        let is_dead = |who| self.fuse(who).is_some_and(|fuse| fuse.is_dead());
        let [agent, signer, cloud] = SimProcessKind::ALL.map(is_dead);
        for who in SimProcessKind::ALL {
            if let Some(error) = self.fuse(who).and_then(|fuse| fuse.take_error()) {
                return Err(SimError::setup("disk", error));
            }
        }
        if cloud {
            self.net.route(None);
            self.cloud = None;
        }
        if signer {
            self.signer = None;
        }
        // Neither agent nor signer goes on without the other.
        if agent || signer {
            self.fuse(SimProcessKind::Agent).inspect(|fuse| fuse.kill(DiskLoss::Nothing));
            self.agent = None;
            self.work.shutdown().await;
        }
        for (who, dead) in [("agent", agent), ("signer", signer), ("cloud", cloud)] {
            if dead {
                self.tally.deaths += 1;
                self.note(format_args!("the {who} is dead"));
            }
        }
        Ok(())
    }

    fn process(&self, who: SimProcessKind) -> SimProcess {
        let SimProcessState { disk, wall } = &self.keeps[who as usize];
        let died = (who != SimProcessKind::Signer).then(|| Arc::clone(&self.died));
        let fuse = CrashSwitch::new(disk, died);
        let seed = u64::from(self.dice.below(u32::MAX));
        SimProcess { disk: Arc::clone(disk), wall: wall.clone(), fuse, seed }
    }

    /// Has the cloud live.
    pub(super) async fn revive_cloud(&mut self) -> Result<(), SimError> {
        if self.cloud.is_none() {
            let cloud =
                SimCloud::begin(&self.process(SimProcessKind::Cloud), &self.net.chain).await?;
            self.net.route(Some(cloud.cloud.address()));
            self.cloud = Some(cloud);
        }
        Ok(())
    }

    /// Has everybody live.
    pub(super) async fn revive(&mut self) -> Result<(), SimError> {
        self.bury().await?;
        // Whoever starts them tries until they do.
        self.net.set_failure_rate(0);
        self.revive_cloud().await?;
        let signer = match self.signer.take() {
            Some(signer) => signer,
            None => {
                // Whoever starts it may not have reached the chain.
                let head = self.net.chain.head(0).filter(|_| self.dice.chance(80));
                let chain = head.map(SimBlockHead::at);
                let body = self.process(SimProcessKind::Signer);
                SimSigner::begin(&body, &self.time, &self.log, chain, self.plant)?
            }
        };
        if self.agent.is_none() {
            let body = self.process(SimProcessKind::Agent);
            let agent = SimAgent::begin(&body, &self.net, &signer, &self.seedling.key).await?;
            self.agent = Some(agent);
        }
        self.signer = Some(signer);
        self.net.set_failure_rate(self.bad);
        Ok(())
    }
}
