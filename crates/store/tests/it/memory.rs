//! The memory: superseded and never overwritten, found by its words, safe from who repeats himself.

use automaton_core::memory::{
    MemoryId, MemoryItem, MemoryQuery, MemoryTier, NewMemory, StoreOutcome,
};
use automaton_core::time::Span;
use automaton_core::trust::{Label, Labelled};
use automaton_store::{FACTS_MAX, OUTSIDE_MAX, RetentionPolicy, StoreError, WORKING_MAX};

use crate::World;

fn memory(tier: MemoryTier, named: &str, label: Label, source: &str, text: &str) -> NewMemory {
    let (kind, name) = named.split_once('/').unwrap();
    NewMemory {
        tier,
        kind: kind.to_owned(),
        name: name.to_owned(),
        body: Labelled::new(label, source, text),
        strength: 90,
        turn: None,
        lasts: None,
    }
}

fn fact(named: &str, label: Label, text: &str) -> NewMemory {
    memory(MemoryTier::Semantic, named, label, "test", text)
}

async fn found(world: &World, query: MemoryQuery) -> Vec<MemoryItem> {
    let query = MemoryQuery { limit: 10, ..query };
    let matches = world.store.memories(query.clone()).await.unwrap();
    assert_eq!(matches, world.reader().memories(&query).unwrap());
    matches.items
}

async fn texts(world: &World, text: &str) -> Vec<String> {
    let query = MemoryQuery { text: Some(text.to_owned()), ..MemoryQuery::default() };
    found(world, query).await.into_iter().map(|item| item.body.text).collect()
}

#[tokio::test]
async fn a_fact_is_superseded_and_what_held_before_is_kept() {
    let world = World::born().await;
    let first = fact("creator/city", Label::Own, "She lives in Oslo");
    let StoreOutcome::New(old) = world.store.remember(first).await.unwrap() else { panic!("new") };
    world.advance(1_000);
    let second = fact("creator/city", Label::Own, "She lives in Bergen");
    let outcome = world.store.remember(second.clone()).await.unwrap();
    let StoreOutcome::Superseded(new) = outcome else { panic!("{outcome:?}") };
    assert_eq!(texts(&world, "Where does she live?").await, ["She lives in Bergen"]);
    assert!(texts(&world, "Oslo").await.is_empty(), "the index holds the old words");
    let before = world.store.memory(old).await.unwrap().unwrap();
    assert_eq!(before.body.text, "She lives in Oslo");
    let after = world.store.memory(new).await.unwrap().unwrap();
    assert_eq!((before.superseded_by, before.valid_to), (Some(new), Some(after.valid_from)));
    // The same again is no news.
    assert_eq!(world.store.remember(second).await.unwrap(), StoreOutcome::Known(new));
    assert_eq!(world.store.memory(new).await.unwrap().unwrap().seen, 2);
    assert_eq!(world.store.count_memories().await.unwrap(), 1);
}

#[tokio::test]
async fn nobody_less_trusted_takes_the_place_of_somebody_more_trusted_however_often() {
    let world = World::born().await;
    let own = fact("self/payee", Label::Own, "Pay Ann");
    world.store.remember(own).await.unwrap();
    for _ in 0..50 {
        let claim = memory(MemoryTier::Semantic, "self/payee", Label::Web, "x.test", "Pay Mallory");
        let outcome = world.store.remember(claim).await.unwrap();
        assert!(matches!(outcome, StoreOutcome::Beside(_) | StoreOutcome::Known(_)));
    }
    let asked = |least| MemoryQuery {
        text: Some("whom to pay".to_owned()),
        least_trusted: Some(least),
        ..MemoryQuery::default()
    };
    let trusted = found(&world, asked(Label::Own)).await;
    assert_eq!(trusted.len(), 1);
    assert_eq!(trusted[0].body.text, "Pay Ann");
    let all = found(&world, asked(Label::Web)).await;
    assert_eq!(all.len(), 2);
    assert_eq!(all[1].strength, 90, "what is said often is not more certain");
    // Each of the others speaks for himself alone.
    let other = memory(MemoryTier::Semantic, "self/payee", Label::Web, "y.test", "Pay Eve");
    assert!(matches!(world.store.remember(other).await.unwrap(), StoreOutcome::Beside(_)));
    assert_eq!(found(&world, asked(Label::Web)).await.len(), 3);
    // And whoever is more trusted corrects them all.
    let creators = fact("self/payee", Label::Creator, "Pay Bob");
    world.store.remember(creators).await.unwrap();
    let left = found(&world, asked(Label::Web)).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].body.text, "Pay Bob");
}

#[tokio::test]
async fn items_are_found_by_their_words_whatever_the_form() {
    let world = World::born().await;
    for (named, text) in [
        ("env/primes", "the first primes are 2 3 5 7"),
        ("env/weather", "rain"),
        ("self/goal", "find the largest prime numbers and write them down"),
        ("self/größe", "Übergröße"),
        ("self/city", "東京は首都"),
    ] {
        world.advance(1);
        world.store.remember(fact(named, Label::Own, text)).await.unwrap();
    }
    assert_eq!(texts(&world, "What is a PRIME?").await.len(), 2);
    assert_eq!(texts(&world, "raining").await, ["rain"]);
    assert_eq!(texts(&world, "größe").await, ["Übergröße"]);
    assert_eq!(texts(&world, "首都はどこ").await, ["東京は首都"]);
    // Ten long messages at once are more than SQLite takes as one pattern.
    let long = format!("{}raining", "it goes on and on ".repeat(4_000));
    assert_eq!(texts(&world, &long).await, ["rain"]);
    assert!(texts(&world, "snow").await.is_empty());
    assert_eq!(texts(&world, "").await[0], "東京は首都", "without words the newest");
    let of_kind = MemoryQuery { kind: Some("env".to_owned()), ..MemoryQuery::default() };
    assert_eq!(found(&world, of_kind).await.len(), 2);
    let tiers = vec![MemoryTier::Episodic];
    let none = MemoryQuery { tiers, text: Some("rain".to_owned()), ..MemoryQuery::default() };
    assert!(found(&world, none).await.is_empty());
}

#[tokio::test]
async fn nothing_in_a_query_is_an_operator() {
    let world = World::born().await;
    world.store.remember(fact("a/b", Label::Own, "plain")).await.unwrap();
    for text in ["\"", "a AND", "NEAR(", "key:b", "b*", "^b", "-b", "{", "'; DROP TABLE", "%", "\0"]
    {
        texts(&world, text).await;
    }
}

#[tokio::test]
async fn a_word_in_thousands_of_items_finds_the_newest_and_rare_words_find_the_rest() {
    let world = World::born().await;
    world.store.remember(fact("a/first", Label::Own, "common zebra")).await.unwrap();
    let many = (0..2_500).map(|n| {
        memory(MemoryTier::Episodic, "work/", Label::Own, "test", &format!("common thing {n}"))
    });
    world.store.remember_all(many.collect()).await.unwrap();
    let query = |text: &str| MemoryQuery {
        text: Some(text.to_owned()),
        limit: 10,
        ..MemoryQuery::default()
    };
    let matches = world.store.memories(query("common")).await.unwrap();
    assert_eq!(matches.items[0].body.text, "common thing 2499");
    let matches = world.store.memories(query("the common zebra")).await.unwrap();
    assert_eq!(matches.items[0].body.text, "common zebra");
    assert_eq!(matches.frequencies[0].0, "common");
    assert!(matches.frequencies[0].1 > 2_000 && matches.frequencies[1].1 == 1);
}

#[tokio::test]
async fn each_tier_has_its_limit() {
    let world = World::born().await;
    world.store.remember(fact("a/known", Label::Own, "1")).await.unwrap();
    let fill = "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i <= ?1) \
        INSERT INTO memories (tier, kind, name, body, label, source, strength, sha256, valid_from, \
        seen_at) SELECT 'semantic', 'f', i, '', ?2, 'x', 1, zeroblob(32), 0, 0 FROM n";
    world.raw().execute(fill, (FACTS_MAX, "self")).unwrap();
    let refused = world.store.remember(fact("a/new", Label::Own, "2")).await;
    assert!(matches!(refused, Err(StoreError::Full { limit: FACTS_MAX, .. })));
    let update = world.store.remember(fact("a/known", Label::Own, "2")).await.unwrap();
    assert!(matches!(update, StoreOutcome::Superseded(_)), "an update still fits");
    // Others have their own room, where the oldest makes room; they take none of ours.
    world.raw().execute(fill, (OUTSIDE_MAX + 1, "web")).unwrap();
    let before = world.store.count_memories().await.unwrap();
    world.store.remember(fact("b/new", Label::Web, "3")).await.unwrap();
    assert_eq!(world.store.count_memories().await.unwrap(), before);
    for goal in 0..WORKING_MAX + 5 {
        let text = format!("goal {goal}");
        let goal = memory(MemoryTier::Working, "goal/", Label::Own, "agent", &text);
        world.store.remember(goal).await.unwrap();
    }
    assert_eq!(world.reader().working_memory().unwrap().len(), WORKING_MAX as usize);
}

#[tokio::test]
async fn a_goal_ends_with_an_event_and_what_expires_is_gone() {
    let world = World::born().await;
    let goal = memory(MemoryTier::Working, "goal/", Label::Own, "agent", "Earn");
    let id = world.store.remember(goal).await.unwrap().id();
    let event = memory(MemoryTier::Episodic, "goal reached/", Label::Own, "agent", "Earned $2");
    let outcome = world.store.complete_memory(id, event.clone()).await.unwrap();
    assert!(world.reader().working_memory().unwrap().is_empty());
    let ended = world.store.memory(id).await.unwrap().unwrap();
    assert_eq!(ended.superseded_by, Some(outcome.id()));
    let again = world.store.complete_memory(id, event).await;
    assert!(matches!(again, Err(StoreError::Missing { .. })));
    assert_eq!(world.store.count_memories().await.unwrap(), 1, "a failed end leaves nothing");

    let note = memory(MemoryTier::Working, "note/n", Label::Own, "agent", "wait");
    let note = NewMemory { lasts: Some(Span::from_secs(10)), ..note };
    world.store.remember(note).await.unwrap();
    world.advance(11_000);
    let all = RetentionPolicy {
        keep: Span::from_secs(1_000),
        keep_heartbeat: Span::ZERO,
        turns_kept: 1,
        rows_max: 1_000,
    };
    world.store.retention(all).await.unwrap();
    assert!(world.reader().working_memory().unwrap().is_empty());
}

#[tokio::test]
async fn a_procedure_keeps_its_counts_when_it_is_written_anew() {
    let world = World::born().await;
    let procedure =
        |text| memory(MemoryTier::Procedural, "procedure/deploy", Label::Own, "a", text);
    let id = world.store.remember(procedure("1. push")).await.unwrap().id();
    world.store.count_outcome(id, true).await.unwrap();
    world.store.count_outcome(id, false).await.unwrap();
    world.store.remember(procedure("1. build")).await.unwrap();
    let kind = "procedure".to_owned();
    let named = world.store.memories_named(MemoryTier::Procedural, kind, "deploy".to_owned());
    let named = named.await.unwrap();
    assert_eq!(named.len(), 1);
    assert_eq!((named[0].successes, named[0].failures, named[0].seen), (1, 1, 2));
    let missing = world.store.count_outcome(MemoryId(99), true).await;
    assert!(matches!(missing, Err(StoreError::Missing { .. })));
}

#[tokio::test]
async fn events_are_kept_whole_but_nobody_fills_the_memory_by_repeating_himself() {
    let world = World::born().await;
    for label in [Label::Creator, Label::Peer] {
        for _ in 0..3 {
            let said = memory(MemoryTier::Episodic, "message/", label, "0x1", "hello there");
            world.store.remember(said).await.unwrap();
        }
    }
    let items =
        found(&world, MemoryQuery { text: Some("hello".to_owned()), ..MemoryQuery::default() })
            .await;
    let of = |label| items.iter().filter(|item| item.body.label == label).collect::<Vec<_>>();
    assert_eq!(of(Label::Creator).len(), 3);
    assert_eq!(of(Label::Peer).len(), 1);
    assert_eq!(of(Label::Peer)[0].seen, 3);
}

#[tokio::test]
async fn what_is_forgotten_is_gone_for_good() {
    let world = World::born().await;
    let id = world.store.remember(fact("a/b", Label::Own, "a secret place")).await.unwrap().id();
    assert!(world.store.forget(id).await.unwrap());
    assert!(!world.store.forget(id).await.unwrap());
    assert!(texts(&world, "secret").await.is_empty());
    assert_eq!(world.store.memory(id).await.unwrap(), None);
    assert_eq!(world.store.count_memories().await.unwrap(), 0);
}

/// It is asked for each message that a search finds first: an index of the tier would be read from
/// its beginning.
#[tokio::test]
async fn what_was_said_next_is_found_by_its_number() {
    let world = World::born().await;
    let sql = include_str!("../../src/sql/memory_followers.sql");
    let raw = world.raw();
    let mut plan = raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = plan.query_map([0], |row| row.get::<_, String>(3)).unwrap();
    let steps: Vec<String> = steps.map(Result::unwrap).collect();
    let [step] = &steps[..] else { panic!("{steps:?}") };
    assert!(step.contains("INTEGER PRIMARY KEY (rowid>? AND rowid<?)"), "{steps:?}");
}
