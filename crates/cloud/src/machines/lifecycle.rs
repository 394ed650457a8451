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

use automaton_core::names::Names;
use automaton_core::time::{DAY, Span};

/// The state of a machine. Its [`name`](Self::name) is the one in the database and on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Names)]
pub enum MachineState {
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

/// An event in a machine's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MachineEvent {
    /// Its start begins.
    BootBegun,
    /// It passed a health check.
    Healthy,
    /// It could not be started.
    BootFailed,
    /// Its processes are gone without a request for that.
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
    /// It was in its state for as long as it may.
    TimedOut,
    /// The cloud was started anew; the processes of machines may have outlived it.
    Restarted,
}

impl MachineState {
    /// Returns whether a minute in this state costs something.
    #[must_use]
    pub const fn is_billed(self) -> bool {
        matches!(self, Self::Running)
    }

    /// For how long it may last before [`MachineEvent::TimedOut`]; a machine that runs is counted
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

    /// Returns the state after an event, or `None` if it changes nothing.
    #[must_use]
    pub const fn next(self, event: MachineEvent) -> Option<Self> {
        use MachineState::{
            Booting, Deleted, Deleting, Failed, Requested, Running, Stopped, Stopping,
        };
        Some(match (self, event) {
            (Deleted, _) => return None,
            (Deleting, MachineEvent::Erased) => Deleted,
            // Once more.
            (Deleting, MachineEvent::TimedOut | MachineEvent::Restarted)
            | (_, MachineEvent::DeleteAsked) => Deleting,
            // What is up and not billed must not be called stopped.
            (Stopping, MachineEvent::TimedOut | MachineEvent::Restarted) => Stopping,
            (Requested, MachineEvent::BootBegun)
            | (Running, MachineEvent::Lost | MachineEvent::TimedOut) => Booting,
            (Booting | Running, MachineEvent::Healthy) => Running,
            (Requested | Booting, MachineEvent::BootFailed | MachineEvent::TimedOut) => Failed,
            (Requested | Booting | Running, MachineEvent::StopAsked) => Stopping,
            (Stopping, MachineEvent::Ended) => Stopped,
            (Stopped | Failed, MachineEvent::StartAsked)
            | (Requested | Booting | Running, MachineEvent::Restarted) => Requested,
            (Stopped | Failed, MachineEvent::TimedOut) => Deleting,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVENTS: [MachineEvent; 11] = [
        MachineEvent::BootBegun,
        MachineEvent::Healthy,
        MachineEvent::BootFailed,
        MachineEvent::Lost,
        MachineEvent::Ended,
        MachineEvent::Erased,
        MachineEvent::StartAsked,
        MachineEvent::StopAsked,
        MachineEvent::DeleteAsked,
        MachineEvent::TimedOut,
        MachineEvent::Restarted,
    ];

    fn events() -> impl Strategy<Value = Vec<MachineEvent>> {
        proptest::collection::vec(proptest::sample::select(EVENTS.to_vec()), 0..40)
    }

    proptest! {
        #[test]
        fn nothing_is_billed_before_a_health_check_and_nothing_after_the_end(events in events()) {
            let mut state = MachineState::Requested;
            let mut healthy = false;
            for event in events {
                let Some(next) = state.next(event) else { continue };
                prop_assert!(state != MachineState::Deleted, "the end is the end");
                // A check that a boot before the last one passed is none of this boot's.
                healthy = match event {
                    MachineEvent::Healthy => true,
                    MachineEvent::Lost | MachineEvent::TimedOut | MachineEvent::Restarted | MachineEvent::StopAsked => false,
                    _ => healthy && next == state,
                };
                prop_assert!(!next.is_billed() || healthy, "{state:?} {event:?}");
                state = next;
            }
            prop_assert!(!MachineState::Deleted.is_billed());
        }

        /// Covers every later answer of the driver, and none.
        #[test]
        fn a_restart_ends_in_a_state_that_lasts(
            events in events(),
            answers in proptest::collection::vec(any::<bool>(), 8),
        ) {
            let walk = |state: MachineState, event: &MachineEvent| state.next(*event).unwrap_or(state);
            let before = events.iter().fold(MachineState::Requested, walk);
            let mut state = before.next(MachineEvent::Restarted).unwrap_or(before);
            for answer in answers {
                let event = match state {
                    _ if !answer => MachineEvent::TimedOut,
                    MachineState::Requested => MachineEvent::BootBegun,
                    MachineState::Booting => MachineEvent::Healthy,
                    MachineState::Stopping => MachineEvent::Ended,
                    MachineState::Deleting => MachineEvent::Erased,
                    MachineState::Running | MachineState::Stopped | MachineState::Failed | MachineState::Deleted => break,
                };
                state = match state {
                    MachineState::Running | MachineState::Stopped | MachineState::Failed | MachineState::Deleted => break,
                    _ => walk(state, &event),
                };
            }
            // Only what has to end or be erased may have to be tried again.
            let lasts = [MachineState::Running, MachineState::Stopped, MachineState::Failed, MachineState::Deleted];
            let tried = [MachineState::Stopping, MachineState::Deleting];
            prop_assert!(lasts.contains(&state) || tried.contains(&state), "{state:?}");
            prop_assert!(!before.is_billed() || state != MachineState::Deleting);
        }
    }

    #[test]
    fn every_state_but_the_last_has_a_limit_that_leads_somewhere() {
        for state in MachineState::ALL {
            assert_eq!(MachineState::by_name(state.name()), Some(state));
            assert_eq!(state.limit().is_none(), state == MachineState::Deleted);
            assert_eq!(
                state.next(MachineEvent::TimedOut).is_none(),
                state == MachineState::Deleted
            );
            assert_eq!(
                EVENTS.iter().all(|event| state.next(*event).is_none()),
                state == MachineState::Deleted
            );
        }
        assert_eq!(MachineState::by_name("dead"), None);
    }

    #[test]
    fn a_machine_goes_its_usual_way() {
        let mut state = MachineState::Requested;
        for (event, name) in [
            (MachineEvent::BootBegun, "booting"),
            (MachineEvent::Healthy, "running"),
            (MachineEvent::Healthy, "running"),
            (MachineEvent::Lost, "booting"),
            (MachineEvent::Healthy, "running"),
            (MachineEvent::StopAsked, "stopping"),
            (MachineEvent::Ended, "stopped"),
            (MachineEvent::StartAsked, "requested"),
            (MachineEvent::BootFailed, "failed"),
            (MachineEvent::StartAsked, "requested"),
            (MachineEvent::DeleteAsked, "deleting"),
            (MachineEvent::Erased, "deleted"),
        ] {
            state = state.next(event).unwrap();
            assert_eq!(state.name(), name);
        }
        assert_eq!(MachineState::Stopped.next(MachineEvent::Healthy), None, "a late answer");
        assert_eq!(
            MachineState::Stopping.next(MachineEvent::StartAsked),
            None,
            "it has to end first"
        );
    }

    #[test]
    fn names_that_are_stored_stay() {
        assert_eq!(
            MachineState::ALL.map(MachineState::name),
            [
                "requested",
                "booting",
                "running",
                "stopping",
                "stopped",
                "failed",
                "deleting",
                "deleted"
            ]
        );
    }
}
