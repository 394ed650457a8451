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

use super::chain::{Chain, Head};
use super::dice::Dice;
use super::disk::{Disk, Fuse, Loss};
use super::life::{AgentLife, Body, CloudLife, Log, SignerLife};
use super::seedling::Seedling;
use super::time::{TrueTime, Wall};
use super::wires::Net;
use super::{Plant, SimError, Tally, token};

/// What the wallet holds at the beginning, in base units: $10,000.
const OPENING: u64 = 10_000_000_000;

/// The three that may die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Agent,
    Signer,
    Cloud,
}

impl Who {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Agent, Self::Signer, Self::Cloud];
}

/// What a process keeps over its lives.
pub(super) struct Keeps {
    disk: Arc<Disk>,
    pub(super) wall: Wall,
}

/// Everything there is.
pub(super) struct World<'a> {
    pub(super) seedling: &'a Seedling,
    pub(super) plant: Option<Plant>,
    pub(super) dice: Dice,
    pub(super) time: TrueTime,
    pub(super) net: Arc<Net>,
    pub(super) log: Log,
    pub(super) died: Arc<Notify>,
    pub(super) keeps: [Keeps; 3],
    pub(super) agent: Option<AgentLife>,
    pub(super) signer: Option<SignerLife>,
    pub(super) cloud: Option<CloudLife>,
    /// What the agent is doing.
    pub(super) work: JoinSet<String>,
    /// How many of a hundred requests meet with something.
    pub(super) bad: u32,
    /// How many of a hundred moments of waiting bring something.
    pub(super) trouble: u32,
    pub(super) trace: Vec<String>,
    pub(super) tally: Tally,
}

impl<'a> World<'a> {
    /// A world in which nobody lives yet.
    pub(super) fn begin(
        seedling: &'a Seedling,
        dir: &Path,
        (seed, plant): (u64, Option<Plant>),
    ) -> Result<Self, SimError> {
        let time = TrueTime::begin();
        let opening = (seedling.wallet, U256::from(OPENING));
        let chain = Arc::new(Chain::new(&time, token(), opening));
        let keeps = |name, db: &[u8]| {
            let disk = Disk::with(dir.to_owned(), name, db).map_err(SimError::io("disk"))?;
            Ok::<_, SimError>(Keeps { disk, wall: Wall::right(&time) })
        };
        let keeps = [
            keeps("state", &seedling.state)?,
            keeps("ledger", &seedling.ledger)?,
            keeps("cloud", &seedling.cloud)?,
        ];
        Ok(Self {
            seedling,
            plant,
            dice: Dice::new(seed),
            net: Arc::new(Net::new(chain, seed ^ u64::MAX)),
            log: Log::default(),
            died: Arc::default(),
            keeps,
            agent: None,
            signer: None,
            cloud: None,
            work: JoinSet::new(),
            bad: 0,
            trouble: 0,
            trace: Vec::new(),
            tally: Tally::default(),
            time,
        })
    }

    /// Notes what happened.
    pub(super) fn tell(&mut self, what: impl std::fmt::Display) {
        self.trace.push(format!("  at {}: {what}", self.time.passed()));
    }

    /// What kills somebody, if they live.
    pub(super) fn fuse(&self, who: Who) -> Option<&Arc<Fuse>> {
        match who {
            Who::Agent => self.agent.as_ref().map(|life| &life.fuse),
            Who::Signer => self.signer.as_ref().map(|life| &life.fuse),
            Who::Cloud => self.cloud.as_ref().map(|life| &life.fuse),
        }
    }

    /// Takes away what is in the memory of the dead.
    pub(super) async fn bury(&mut self) -> Result<(), SimError> {
        let is_dead = |who| self.fuse(who).is_some_and(|fuse| fuse.is_dead());
        let [agent, signer, cloud] = Who::ALL.map(is_dead);
        for who in Who::ALL {
            if let Some(error) = self.fuse(who).and_then(|fuse| fuse.take_error()) {
                return Err(SimError::made("disk", error));
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
            self.fuse(Who::Agent).inspect(|fuse| fuse.kill(Loss::Nothing));
            self.agent = None;
            self.work.shutdown().await;
        }
        for (who, dead) in [("agent", agent), ("signer", signer), ("cloud", cloud)] {
            if dead {
                self.tally.deaths += 1;
                self.tell(format_args!("the {who} is dead"));
            }
        }
        Ok(())
    }

    fn body(&self, who: Who) -> Body {
        let Keeps { disk, wall } = &self.keeps[who as usize];
        let died = (who != Who::Signer).then(|| Arc::clone(&self.died));
        let fuse = Fuse::new(disk, died);
        let seed = u64::from(self.dice.below(u32::MAX));
        Body { disk: Arc::clone(disk), wall: wall.clone(), fuse, seed }
    }

    /// Has the cloud live.
    pub(super) async fn revive_cloud(&mut self) -> Result<(), SimError> {
        if self.cloud.is_none() {
            let cloud = CloudLife::begin(&self.body(Who::Cloud), &self.net.chain).await?;
            self.net.route(Some(cloud.cloud.address()));
            self.cloud = Some(cloud);
        }
        Ok(())
    }

    /// Has everybody live.
    pub(super) async fn revive(&mut self) -> Result<(), SimError> {
        self.bury().await?;
        // Whoever starts them tries until they do.
        self.net.weather(0);
        self.revive_cloud().await?;
        let signer = match self.signer.take() {
            Some(signer) => signer,
            None => {
                // Whoever starts it may not have reached the chain.
                let head = self.net.chain.head(0).filter(|_| self.dice.chance(80));
                let chain = head.map(Head::at);
                let body = self.body(Who::Signer);
                SignerLife::begin(&body, (&self.time, &self.log), chain, self.plant)?
            }
        };
        if self.agent.is_none() {
            let body = self.body(Who::Agent);
            let agent = AgentLife::begin(&body, &self.net, &signer, &self.seedling.key).await?;
            self.agent = Some(agent);
        }
        self.signer = Some(signer);
        self.net.weather(self.bad);
        Ok(())
    }
}
