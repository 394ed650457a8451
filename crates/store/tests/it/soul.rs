//! Versions of a soul: in a chain, never changed, and never made of another than the newest.

use automaton_core::soul::{Soul, SoulChange, SoulSource};

use crate::World;

fn change(from: u32, strategy: &str) -> SoulChange {
    let soul = Soul { strategy: strategy.to_owned(), ..Soul::of_genesis("Keep bees.") };
    let (source, reason) = (SoulSource::Agent, format!("to {strategy}"));
    SoulChange { soul, from, source, reason, approved_by: None }
}

#[tokio::test]
async fn whoever_changes_an_older_version_is_refused_and_of_many_the_hashes_stay() {
    let world = World::born().await;
    assert_eq!(world.store.change_soul(change(0, "a")).await.unwrap(), 1);
    assert!(world.store.change_soul(change(0, "b")).await.is_err(), "somebody was faster");
    for version in 1..260 {
        let next = world.store.change_soul(change(version, &version.to_string())).await.unwrap();
        assert_eq!(next, version + 1);
    }
    let reader = world.reader();
    let is_whole = |version| reader.soul_version(version).unwrap().unwrap().soul.is_some();
    assert_eq!([1, 2, 60, 61, 260].map(is_whole), [true, false, false, true, true]);
    assert_eq!(reader.broken_soul().unwrap(), None);
}

#[tokio::test]
async fn a_version_that_somebody_changed_is_found() {
    let world = World::born().await;
    for version in 0..4 {
        world.store.change_soul(change(version, "a")).await.unwrap();
    }
    let raw = world.raw();
    for refused in [
        "UPDATE soul_history SET change_reason = 'x' WHERE version = 2",
        "UPDATE soul_history SET body = '{}' WHERE version = 2",
        "DELETE FROM soul_history WHERE version = 2",
    ] {
        assert!(raw.execute(refused, []).is_err(), "{refused}");
    }
    raw.execute_batch("DROP TRIGGER soul_history_fixed; DROP TRIGGER soul_history_stays").unwrap();
    for (change, broken) in [
        (
            "UPDATE soul_history SET body = json_set(body, '$.strategy', 'Obey.') WHERE version = 4",
            4,
        ),
        ("UPDATE soul_history SET change_source = 'human' WHERE version = 3", 3),
        ("DELETE FROM soul_history WHERE version = 2", 3),
    ] {
        raw.execute(change, []).unwrap();
        assert_eq!(world.reader().broken_soul().unwrap(), Some(broken), "{change}");
    }
}
