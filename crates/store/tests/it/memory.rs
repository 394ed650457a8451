//! Facts: replaced as a whole, found by their words.

use automaton_core::trust::{Label, Labelled};
use automaton_store::{FACTS_MAX, FactQuery, NewFactRow, StoreError, Upsert};

use crate::World;

fn fact(category: &str, key: &str, label: Label, value: &str) -> NewFactRow {
    NewFactRow {
        category: category.to_owned(),
        key: key.to_owned(),
        value: Labelled::new(label, "test", value),
        confidence_percent: 90,
        turn: None,
    }
}

async fn keys(world: &World, category: Option<&str>, text: Option<&str>) -> Vec<String> {
    let query = FactQuery {
        category: category.map(str::to_owned),
        text: text.map(str::to_owned),
        limit: 10,
    };
    let facts = world.store.facts(query.clone()).await.unwrap();
    assert_eq!(facts, world.reader().facts(&query).unwrap());
    facts.into_iter().map(|fact| fact.key).collect()
}

#[tokio::test]
async fn a_fact_is_replaced_with_its_origin() {
    let world = World::born().await;
    let first = fact("creator", "name", Label::Creator, "Grace");
    let (id, upsert) = world.store.remember(first).await.unwrap();
    assert_eq!(upsert, Upsert::New);
    let second = fact("creator", "name", Label::Web, "Mallory");
    assert_eq!(world.store.remember(second).await.unwrap(), (id, Upsert::Updated));
    let facts = world.store.facts(FactQuery { limit: 9, ..Default::default() }).await.unwrap();
    assert_eq!(facts.len(), 1);
    assert_eq!(facts[0].value, Labelled::new(Label::Web, "test", "Mallory"));
    assert!(keys(&world, None, Some("Grace")).await.is_empty(), "the index holds the old words");
}

#[tokio::test]
async fn facts_are_found_by_any_word_best_first() {
    let world = World::born().await;
    for (category, key, value) in [
        ("env", "primes", "the first primes are 2 3 5 7"),
        ("env", "weather", "rain"),
        ("self", "goal", "find the largest primes and write them down"),
        ("self", "größe", "Übergröße"),
    ] {
        world.advance(1);
        world.store.remember(fact(category, key, Label::Own, value)).await.unwrap();
    }
    assert_eq!(keys(&world, None, None).await, ["größe", "goal", "weather", "primes"]);
    assert_eq!(keys(&world, Some("env"), None).await, ["weather", "primes"]);
    assert_eq!(keys(&world, None, Some("What are PRIMES?")).await[0], "primes");
    assert_eq!(keys(&world, Some("self"), Some("prim")).await, ["goal"]);
    assert_eq!(keys(&world, None, Some("größe")).await, ["größe"]);
    assert!(keys(&world, None, Some("snow")).await.is_empty());
}

#[tokio::test]
async fn nothing_in_a_query_is_an_operator() {
    let world = World::born().await;
    world.store.remember(fact("a", "b", Label::Own, "plain")).await.unwrap();
    for text in ["\"", "a AND", "NEAR(", "key:b", "b*", "^b", "-b", "{", "'; DROP TABLE", "%", "\0"]
    {
        keys(&world, None, Some(text)).await;
    }
}

#[tokio::test]
async fn the_memory_has_a_limit_but_updates_still_fit() {
    let world = World::born().await;
    world.store.remember(fact("a", "known", Label::Own, "1")).await.unwrap();
    let fill = "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
        INSERT INTO semantic_memory (id, category, key, value, label, source, confidence_percent, \
        created_at, updated_at) SELECT 'filler ' || i, 'f', i, '', 'self', 'x', 1, 0, 0 FROM n";
    world.raw().execute(fill, [FACTS_MAX]).unwrap();
    let refused = world.store.remember(fact("a", "new", Label::Own, "2")).await;
    assert!(matches!(refused, Err(StoreError::Full { limit: FACTS_MAX, .. })));
    let (_, upsert) = world.store.remember(fact("a", "known", Label::Own, "2")).await.unwrap();
    assert_eq!(upsert, Upsert::Updated);
}
