//! Items of a memory.

use automaton_core::memory::{MemoryId, MemoryItem, MemoryTier};
use automaton_core::time::Timestamp;
use automaton_core::trust::{Label, Labelled};

/// An item that holds since the epoch and was met once. `named` is its kind and its name, as in
/// `domain/api_key`; the name may be empty.
///
/// # Panics
/// When `named` has no slash.
#[must_use]
#[expect(clippy::expect_used, reason = "a test may end at what it did not expect")]
pub fn memory_item(id: i64, tier: MemoryTier, named: &str, label: Label, text: &str) -> MemoryItem {
    let (kind, name) = named.split_once('/').expect("a kind and a name");
    MemoryItem {
        id: MemoryId(id),
        tier,
        kind: kind.to_owned(),
        name: name.to_owned(),
        body: Labelled::new(label, "test", text),
        strength: 100,
        seen: 1,
        successes: 0,
        failures: 0,
        turn: None,
        valid_from: Timestamp::EPOCH,
        valid_to: None,
        seen_at: Timestamp::EPOCH,
        superseded_by: None,
    }
}
