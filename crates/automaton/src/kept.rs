//! A service that the supervisor keeps running: the dev chain, the cloud.
//!
//! ```text
//! start ──▶ ready ──▶ it is gone ──▶ wait, longer each time ──▶ start, same place
//!   │                                     │
//!   └─ gone before its first time ────────┴─ too often ──▶ failed
//! ```
//!
//! It is started again where it was, since others know it by its address. What it
//! says is passed on; nothing it says may stop the agent.

use std::net::SocketAddr;

use automaton_core::error::Kind;
use automaton_core::event::{Event, Service, Stamped};
use automaton_core::time::{Clock, SystemClock, Timestamp};
use tokio::time::Instant;

use crate::crashes::Crashes;
use crate::error::Failure;
use crate::member::{Hurry, Member};
use crate::role::charter::Line;
use crate::role::service::ServiceCharter;
use crate::stack::stays_there;

/// A service that is kept running.
#[derive(Debug)]
pub(crate) struct Kept {
    charter: ServiceCharter,
    state: State,
    crashes: Crashes,
    begun: Timestamp,
    /// Where it serves, once it does.
    pub(crate) url: Option<String>,
    fatal: Option<Failure>,
}

#[derive(Debug)]
enum State {
    Up(Member),
    Down { until: Instant },
}

impl Kept {
    /// Starts a service.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub(crate) fn start(charter: ServiceCharter) -> Result<Self, Failure> {
        let member = start(&charter)?;
        Ok(Self {
            charter,
            state: State::Up(member),
            crashes: Crashes::default(),
            begun: SystemClock.now(),
            url: None,
            fatal: None,
        })
    }

    /// Where it listens; port 0 until it serves.
    pub(crate) const fn listens(&self) -> SocketAddr {
        self.charter.listen
    }

    /// Which service it is.
    pub(crate) const fn service(&self) -> Service {
        self.charter.service()
    }

    /// What happens next with it, as an event for people. Cancel-safe: lines are
    /// read into a buffer that stays, and the rest only waits.
    ///
    /// # Errors
    /// When it cannot live, or dies too often.
    pub(crate) async fn next(&mut self) -> Result<Stamped, Failure> {
        loop {
            let line = match &mut self.state {
                State::Down { until } => {
                    tokio::time::sleep_until(*until).await;
                    self.begun = SystemClock.now();
                    self.state = State::Up(start(&self.charter)?);
                    continue;
                }
                State::Up(member) => member.next_line().await?,
            };
            match line {
                Some(Line::Event(event)) => return Ok(event),
                Some(Line::Ready { url }) => return self.ready(url),
                Some(Line::Fatal { kind, error, remedy }) => {
                    self.fatal = Some(Failure { remedy, ..Failure::new(kind, error) });
                }
                None => return self.died(),
            }
        }
    }

    fn ready(&mut self, url: String) -> Result<Stamped, Failure> {
        let address: SocketAddr = url.trim_start_matches("http://").parse().map_err(|_| {
            Failure::new(Kind::Internal, format!("'{url}' is no place on this machine"))
        })?;
        // Others know it by its address: that is where it is started again.
        self.charter.listen = address;
        self.url = Some(url.clone());
        let (at, service) = (SystemClock.now(), self.service());
        let took_ms = at.since(self.begun).as_millis();
        Ok(Stamped { at, event: Event::ServiceReady { service, url: Some(url), took_ms } })
    }

    fn died(&mut self) -> Result<Stamped, Failure> {
        let State::Up(member) = &mut self.state else {
            return Err(Failure::new(Kind::Internal, "a service that is down died"));
        };
        let status = member.child.wait()?.to_string();
        let (fatal, name) = (self.fatal.take(), self.service().name());
        let death = fatal.as_ref().map_or(status, Failure::line);
        let at = SystemClock.now();
        // One that was here before may still be ending, and have its place; and one
        // that was killed never said that it cannot live.
        let wait = if fatal.is_none() || self.charter.listen.port() != 0 {
            self.crashes.count(at)
        } else {
            None
        };
        let Some(wait) = wait else {
            let too_many = || Failure::new(Kind::Internal, Crashes::too_many(name, &death));
            return Err(fatal.map_or_else(too_many, |fatal| self.homeless(fatal)));
        };
        self.state = State::Down { until: Instant::now() + wait };
        let (service, restarts) = (self.service(), self.crashes.restarts);
        Ok(Stamped { at, event: Event::ServiceRestarted { service, death, restarts } })
    }

    /// Says what to do about a place that somebody else has.
    fn homeless(&self, fatal: Failure) -> Failure {
        let place = self.charter.listen;
        if place.port() == 0 || !fatal.line().contains(&place.to_string()) {
            return fatal;
        }
        fatal.hint(stays_there(place, self.service()))
    }

    /// Ends it.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub(crate) async fn end(
        self,
        grace: std::time::Duration,
        hurry: &mut Hurry<'_>,
    ) -> Result<(), Failure> {
        match self.state {
            State::Up(member) => member.end(grace, hurry).await,
            State::Down { .. } => Ok(()),
        }
    }
}

fn start(charter: &ServiceCharter) -> Result<Member, Failure> {
    Member::start((&charter.executable, charter.arg0()), charter, None)
}
