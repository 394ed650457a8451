//! Pure: the life of a machine, as one table.
//!
//! ```text
//! requested ─▶ booting ─▶ running ─▶ stopping ─▶ stopped ─▶ requested …
//!     │           │          │ its processes are gone: booting again
//!     └───────────┴──▶ failed ─▶ requested …
//! any but the last ──▶ deleting ──▶ deleted
//! ```
//!
//! Only a passed health check leads to `running`, and only `running` is billed, whether later
//! checks are passed or not: what is up can be used. Nothing leads out of `deleted`.

use automaton_core::time::{DAY, Span};

/// Where a machine stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It is to run.
    Requested,
    /// It is started, and has not passed its health check.
    Booting,
    /// It can be used, and is billed.
    Running,
    /// Its processes are to end.
    Stopping,
    /// It has files and no processes.
    Stopped,
    /// It could not be started; it may have files.
    Failed,
    /// All of it is to go.
    Deleting,
    /// Nothing is left of it.
    Deleted,
}

/// What happens to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// Somebody begins to start it.
    BootBegun,
    /// It passed a health check.
    Healthy,
    /// It could not be started.
    BootFailed,
    /// Its processes are gone, though nobody asked for that.
    Lost,
    /// Its processes have ended, as they should.
    Ended,
    /// Its files are gone, as they should.
    Erased,
    /// Its owner wants it to run.
    StartAsked,
    /// It is to run no more: its owner, its disk or its owner's credits say so.
    StopAsked,
    /// Its owner does not want it any more.
    DeleteAsked,
    /// It stood where it stands for as long as it may.
    TimedOut,
    /// The cloud was started anew; the processes of machines may have outlived it.
    Restarted,
}

automaton_core::names! {
    /// Its name in the database and on the wire.
    State {
        Requested => "requested", Booting => "booting", Running => "running",
        Stopping => "stopping", Stopped => "stopped", Failed => "failed", Deleting => "deleting",
        Deleted => "deleted",
    }
}

impl State {
    /// The state with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether a minute of it costs something.
    #[must_use]
    pub const fn is_billed(self) -> bool {
        matches!(self, Self::Running)
    }

    /// For how long it may last before [`Event::TimedOut`]; a machine that runs is counted
    /// from its last passed health check. Nothing for the one that is final.
    #[must_use]
    pub const fn limit(self) -> Option<Span> {
        match self {
            Self::Requested | Self::Booting => Some(Span::from_secs(120)),
            Self::Running => Some(Span::from_secs(300)),
            Self::Stopping => Some(Span::from_secs(60)),
            // How long the files of a machine that costs nothing are kept.
            Self::Stopped | Self::Failed => Some(Span::from_millis(DAY.as_millis() * 30)),
            Self::Deleting => Some(Span::from_secs(600)),
            Self::Deleted => None,
        }
    }

    /// Where an event leads; `None` where it changes nothing.
    #[must_use]
    pub const fn next(self, event: Event) -> Option<Self> {
        use State::{Booting, Deleted, Deleting, Failed, Requested, Running, Stopped, Stopping};
        Some(match (self, event) {
            (Deleted, _) => return None,
            (Deleting, Event::Erased) => Deleted,
            // Once more.
            (Deleting, Event::TimedOut | Event::Restarted) | (_, Event::DeleteAsked) => Deleting,
            // What is up and not billed must not be called stopped.
            (Stopping, Event::TimedOut | Event::Restarted) => Stopping,
            (Requested, Event::BootBegun) | (Running, Event::Lost | Event::TimedOut) => Booting,
            (Booting | Running, Event::Healthy) => Running,
            (Requested | Booting, Event::BootFailed | Event::TimedOut) => Failed,
            (Requested | Booting | Running, Event::StopAsked) => Stopping,
            (Stopping, Event::Ended) => Stopped,
            (Stopped | Failed, Event::StartAsked)
            | (Requested | Booting | Running, Event::Restarted) => Requested,
            (Stopped | Failed, Event::TimedOut) => Deleting,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVENTS: [Event; 11] = [
        Event::BootBegun,
        Event::Healthy,
        Event::BootFailed,
        Event::Lost,
        Event::Ended,
        Event::Erased,
        Event::StartAsked,
        Event::StopAsked,
        Event::DeleteAsked,
        Event::TimedOut,
        Event::Restarted,
    ];

    fn events() -> impl Strategy<Value = Vec<Event>> {
        proptest::collection::vec(proptest::sample::select(EVENTS.to_vec()), 0..40)
    }

    proptest! {
        #[test]
        fn nothing_is_billed_before_a_health_check_and_nothing_after_the_end(events in events()) {
            let (mut state, mut healthy) = (State::Requested, false);
            for event in events {
                let Some(next) = state.next(event) else { continue };
                prop_assert!(state != State::Deleted, "the end is the end");
                // A check that a boot before the last one passed is none of this boot's.
                healthy = match event {
                    Event::Healthy => true,
                    Event::Lost | Event::TimedOut | Event::Restarted | Event::StopAsked => false,
                    _ => healthy && next == state,
                };
                prop_assert!(!next.is_billed() || healthy, "{state:?} {event:?}");
                state = next;
            }
            prop_assert!(!State::Deleted.is_billed());
        }

        /// Whatever the driver answers afterwards, and if it answers nothing.
        #[test]
        fn a_restart_ends_in_a_state_that_lasts(
            events in events(),
            answers in proptest::collection::vec(any::<bool>(), 8),
        ) {
            let walk = |state: State, event: &Event| state.next(*event).unwrap_or(state);
            let before = events.iter().fold(State::Requested, walk);
            let mut state = before.next(Event::Restarted).unwrap_or(before);
            for answer in answers {
                let event = match state {
                    _ if !answer => Event::TimedOut,
                    State::Requested => Event::BootBegun,
                    State::Booting => Event::Healthy,
                    State::Stopping => Event::Ended,
                    State::Deleting => Event::Erased,
                    State::Running | State::Stopped | State::Failed | State::Deleted => break,
                };
                state = match state {
                    State::Running | State::Stopped | State::Failed | State::Deleted => break,
                    _ => walk(state, &event),
                };
            }
            // Only what has to end or be erased may have to be tried again.
            let lasts = [State::Running, State::Stopped, State::Failed, State::Deleted];
            let tried = [State::Stopping, State::Deleting];
            prop_assert!(lasts.contains(&state) || tried.contains(&state), "{state:?}");
            prop_assert!(!before.is_billed() || state != State::Deleting);
        }
    }

    #[test]
    fn every_state_but_the_last_has_a_limit_that_leads_somewhere() {
        for state in State::ALL {
            assert_eq!(State::named(state.name()), Some(state));
            assert_eq!(state.limit().is_none(), state == State::Deleted);
            assert_eq!(state.next(Event::TimedOut).is_none(), state == State::Deleted);
            assert_eq!(
                EVENTS.iter().all(|event| state.next(*event).is_none()),
                state == State::Deleted
            );
        }
        assert_eq!(State::named("dead"), None);
    }

    #[test]
    fn a_machine_goes_its_usual_way() {
        let mut state = State::Requested;
        for (event, name) in [
            (Event::BootBegun, "booting"),
            (Event::Healthy, "running"),
            (Event::Healthy, "running"),
            (Event::Lost, "booting"),
            (Event::Healthy, "running"),
            (Event::StopAsked, "stopping"),
            (Event::Ended, "stopped"),
            (Event::StartAsked, "requested"),
            (Event::BootFailed, "failed"),
            (Event::StartAsked, "requested"),
            (Event::DeleteAsked, "deleting"),
            (Event::Erased, "deleted"),
        ] {
            state = state.next(event).unwrap();
            assert_eq!(state.name(), name);
        }
        assert_eq!(State::Stopped.next(Event::Healthy), None, "a late answer");
        assert_eq!(State::Stopping.next(Event::StartAsked), None, "it has to end first");
    }
}
