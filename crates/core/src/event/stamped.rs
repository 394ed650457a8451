//! Pure: an event with its time, as it goes over the wire.

use serde::{Deserialize, Serialize};

use super::Event;
use crate::time::Timestamp;

/// Something that happened, with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampedEvent {
    /// Milliseconds since the Unix epoch.
    pub at: Timestamp,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_object_with_its_name_and_time() {
        let stamped = StampedEvent {
            at: Timestamp::from_millis(7),
            event: Event::AgentStopped { reason: "asked to".to_owned() },
        };
        let line = serde_json::to_string(&stamped).unwrap();
        assert_eq!(line, r#"{"at":7,"event":"agent.stopped","reason":"asked to"}"#);
        assert_eq!(serde_json::from_str::<StampedEvent>(&line).unwrap(), stamped);
    }
}
