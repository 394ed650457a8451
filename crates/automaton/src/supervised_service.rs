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

use automaton_core::error::ErrorClass;
use automaton_core::event::{Event, Service, StampedEvent};
use automaton_core::time::{Clock, SystemClock, Timestamp};
use tokio::time::Instant;

use crate::child_process::{ChildProcess, ShutdownWait};
use crate::crashes::CrashHistory;
use crate::error::CliError;
use crate::role::launch_config::ChildMessage;
use crate::role::service::ServiceLaunchConfig;
use crate::stack::stays_there;

/// A service that is kept running.
#[derive(Debug)]
pub(crate) struct SupervisedService {
    launch_config: ServiceLaunchConfig,
    state: ServiceState,
    crashes: CrashHistory,
    begun: Timestamp,
    /// Address at which it serves, once it does.
    pub(crate) url: Option<String>,
    fatal: Option<CliError>,
}

#[derive(Debug)]
enum ServiceState {
    Up(ChildProcess),
    Down { until: Instant },
}

impl SupervisedService {
    /// Starts a service.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub(crate) fn start(config: ServiceLaunchConfig) -> Result<Self, CliError> {
        let process = start(&config)?;
        Ok(Self {
            launch_config: config,
            state: ServiceState::Up(process),
            crashes: CrashHistory::default(),
            begun: SystemClock.now(),
            url: None,
            fatal: None,
        })
    }

    /// Returns its listening address; port 0 until it serves.
    pub(crate) const fn listens(&self) -> SocketAddr {
        self.launch_config.listen
    }

    /// Which service it is.
    pub(crate) const fn service(&self) -> Service {
        self.launch_config.service()
    }

    /// Returns its next event for people. Cancel-safe: lines are read into a buffer that stays,
    /// and the rest only waits.
    ///
    /// # Errors
    /// When it cannot live, or dies too often.
    pub(crate) async fn next(&mut self) -> Result<StampedEvent, CliError> {
        loop {
            let line = match &mut self.state {
                ServiceState::Down { until } => {
                    tokio::time::sleep_until(*until).await;
                    self.begun = SystemClock.now();
                    self.state = ServiceState::Up(start(&self.launch_config)?);
                    continue;
                }
                ServiceState::Up(process) => process.next_line().await?,
            };
            match line {
                Some(ChildMessage::Event(event)) => return Ok(event),
                Some(ChildMessage::Ready { url }) => return self.ready(url),
                Some(ChildMessage::Fatal { kind, error, remedy }) => {
                    self.fatal = Some(CliError { remedy, ..CliError::new(kind, error) });
                }
                None => return self.died(),
            }
        }
    }

    fn ready(&mut self, url: String) -> Result<StampedEvent, CliError> {
        let address: SocketAddr = url.trim_start_matches("http://").parse().map_err(|_| {
            CliError::new(ErrorClass::Internal, format!("'{url}' is no place on this machine"))
        })?;
        // Others know it by its address: that is where it is started again.
        self.launch_config.listen = address;
        self.url = Some(url.clone());
        let at = SystemClock.now();
        let service = self.service();
        let took_ms = at.since(self.begun).as_millis();
        Ok(StampedEvent { at, event: Event::ServiceReady { service, url: Some(url), took_ms } })
    }

    fn died(&mut self) -> Result<StampedEvent, CliError> {
        let ServiceState::Up(process) = &mut self.state else {
            return Err(CliError::new(ErrorClass::Internal, "a service that is down died"));
        };
        let status = process.child.wait()?.to_string();
        let fatal = self.fatal.take();
        let name = self.service().name();
        let death = fatal.as_ref().map_or(status, CliError::line);
        let at = SystemClock.now();
        // One that was here before may still be ending, and have its place; and one
        // that was killed never said that it cannot live.
        let wait = if fatal.is_none() || self.launch_config.listen.port() != 0 {
            self.crashes.count(at)
        } else {
            None
        };
        let Some(wait) = wait else {
            let too_many =
                || CliError::new(ErrorClass::Internal, CrashHistory::too_many(name, &death));
            return Err(fatal.map_or_else(too_many, |fatal| self.homeless(fatal)));
        };
        self.state = ServiceState::Down { until: Instant::now() + wait };
        let service = self.service();
        let restarts = self.crashes.restarts;
        Ok(StampedEvent { at, event: Event::ServiceRestarted { service, death, restarts } })
    }

    /// Says what to do about a place that somebody else has.
    fn homeless(&self, fatal: CliError) -> CliError {
        let place = self.launch_config.listen;
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
        hurry: &mut ShutdownWait<'_>,
    ) -> Result<(), CliError> {
        match self.state {
            ServiceState::Up(process) => process.end(grace, hurry).await,
            ServiceState::Down { .. } => Ok(()),
        }
    }
}

fn start(config: &ServiceLaunchConfig) -> Result<ChildProcess, CliError> {
    ChildProcess::start(&config.executable, config.arg0(), config, None)
}
