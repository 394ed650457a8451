//! Vectors of memories: of one model, gone with their memory, and never a way around labels.

use automaton_core::embedding::{Embedding, EmbeddingKind, EmbeddingVector};
use automaton_core::memory::{MemoryId, MemoryQuery, MemoryTier, NewMemory};
use automaton_core::trust::{Label, Labelled};
use automaton_store::EmbeddingProgress;

use crate::World;

fn fact(name: &str, label: Label, text: &str) -> NewMemory {
    NewMemory {
        tier: MemoryTier::Semantic,
        kind: "self".to_owned(),
        name: name.to_owned(),
        body: Labelled::new(label, "test", text),
        strength: 90,
        turn: None,
        lasts: None,
    }
}

fn vector(numbers: [i8; 2]) -> EmbeddingVector {
    EmbeddingVector::new(numbers.to_vec())
}

/// Gives all that waits a vector, by the text's first word.
async fn embed(world: &World, model: &str) -> usize {
    let mut made = 0;
    loop {
        let items = world.store.without_vector(model.to_owned(), 2).await.unwrap();
        if items.is_empty() {
            return made;
        }
        made += items.len();
        let last = items.last().unwrap().id;
        let points = |text: &str| if text.starts_with("north") { [0, 9] } else { [9, 1] };
        let vectors = items.iter().map(|item| (item.id, vector(points(&item.body.text))));
        world.store.keep_vectors(model.to_owned(), last, vectors.collect()).await.unwrap();
    }
}

/// The items that lie north, with how near, in twentieths.
async fn north(world: &World, query: MemoryQuery) -> Vec<(MemoryId, i32)> {
    let meant =
        Embedding { model: "one".to_owned(), kind: EmbeddingKind::Words, vector: vector([0, 1]) };
    let query = MemoryQuery { embedding: Some(meant), limit: 10, ..query };
    let found = world.store.memories(query.clone()).await.unwrap();
    assert_eq!(found, world.reader().memories(&query).unwrap());
    // A second look at what words have found is the same.
    let words = MemoryQuery { embedding: None, text: Some(String::new()), ..query.clone() };
    if query.text.is_some() {
        let words = world.store.memories(words).await.unwrap();
        assert_eq!(
            world.store.add_similar(query, words).await.unwrap().similarities,
            found.similarities
        );
    }
    let ids: Vec<MemoryId> = found.items.iter().map(|item| item.id).collect();
    let known = found.similarities.into_iter().filter(|(id, _)| ids.contains(id));
    known.map(|(id, near)| (id, (near + 25).div_euclid(50))).collect()
}

fn progress(world: &World) -> (u64, u64) {
    let EmbeddingProgress { vectors, waiting, .. } = world.reader().embedding_progress().unwrap();
    (vectors, waiting)
}

#[tokio::test]
async fn what_points_the_same_way_is_found_first_until_it_holds_no_more() {
    let world = World::born().await;
    let one = world.store.remember(fact("a", Label::Own, "north wind")).await.unwrap().id();
    let two = world.store.remember(fact("b", Label::Own, "east wind")).await.unwrap().id();
    assert_eq!(progress(&world), (0, 2));
    assert_eq!(embed(&world, "one").await, 2);
    assert_eq!(progress(&world), (2, 0));
    assert_eq!(north(&world, MemoryQuery::default()).await, [(one, 20), (two, 2)]);
    // Nothing is made twice, and what is new waits.
    assert_eq!(embed(&world, "one").await, 0);
    let news = world.store.remember(fact("a", Label::Own, "north star")).await.unwrap().id();
    assert_eq!(progress(&world), (1, 1));
    assert_eq!(north(&world, MemoryQuery::default()).await, [(two, 2)]);
    assert_eq!(embed(&world, "one").await, 1);
    assert_eq!(north(&world, MemoryQuery::default()).await[0], (news, 20));
    assert!(world.store.forget(news).await.unwrap());
    assert_eq!(progress(&world), (1, 0));
    // A vector that comes late is none of a memory that is gone.
    world.store.keep_vectors("one".to_owned(), news, vec![(news, vector([1, 1]))]).await.unwrap();
    assert_eq!(progress(&world), (1, 0));
    // One that points nowhere is kept of nothing, and in nobody's way.
    let dumb = world.store.remember(fact("c", Label::Own, "north")).await.unwrap().id();
    world.store.keep_vectors("one".to_owned(), dumb, vec![(dumb, vector([0, 0]))]).await.unwrap();
    assert_eq!(progress(&world), (1, 0));
    assert_eq!(north(&world, MemoryQuery::default()).await, [(two, 2)]);
}

#[tokio::test]
async fn a_memory_is_as_near_as_the_nearest_of_its_parts() {
    let world = World::born().await;
    let one = world.store.remember(fact("a", Label::Own, "both winds")).await.unwrap().id();
    let two = world.store.remember(fact("b", Label::Own, "east wind")).await.unwrap().id();
    world.store.without_vector("one".to_owned(), 9).await.unwrap();
    let parts = [[0, 0], [9, 1], [0, 9], [-9, 0]].map(|numbers| (one, vector(numbers)));
    let vectors = parts.into_iter().chain([(two, vector([9, 1]))]).collect();
    world.store.keep_vectors("one".to_owned(), two, vectors).await.unwrap();
    assert_eq!(progress(&world), (2, 0));
    let asked = MemoryQuery { text: Some("wind".to_owned()), ..MemoryQuery::default() };
    for query in [MemoryQuery::default(), asked] {
        assert_eq!(north(&world, query).await, [(one, 20), (two, 2)]);
    }
    assert!(world.store.forget(one).await.unwrap());
    assert_eq!(progress(&world), (1, 0));
    assert_eq!(north(&world, MemoryQuery::default()).await, [(two, 2)]);
}

#[tokio::test]
async fn however_much_others_say_its_own_is_found_beside_it() {
    let world = World::born().await;
    let own = world.store.remember(fact("a", Label::Own, "east wind")).await.unwrap().id();
    for at in 0..120 {
        let news = fact(&format!("b{at}"), Label::Peer, &format!("north {at}"));
        world.store.remember(news).await.unwrap();
    }
    assert_eq!(embed(&world, "one").await, 121);
    let found = north(&world, MemoryQuery::default()).await;
    assert!(found.contains(&(own, 2)), "{found:?}");
    assert!(found.iter().filter(|(_, near)| *near == 20).count() >= 10, "{found:?}");
}

#[tokio::test]
async fn vectors_of_another_model_are_never_compared_and_go() {
    let world = World::born().await;
    world.store.remember(fact("a", Label::Own, "north wind")).await.unwrap();
    embed(&world, "another").await;
    assert!(north(&world, MemoryQuery::default()).await.is_empty());
    // Its late vectors are of no use once the model is exchanged.
    assert_eq!(world.store.without_vector("one".to_owned(), 9).await.unwrap().len(), 1);
    world
        .store
        .keep_vectors("another".to_owned(), MemoryId(1), vec![(MemoryId(1), vector([1, 1]))])
        .await
        .unwrap();
    assert_eq!(progress(&world), (0, 1));
    embed(&world, "one").await;
    assert_eq!(north(&world, MemoryQuery::default()).await.len(), 1);
}

#[tokio::test]
async fn a_strangers_words_are_found_by_nobody_who_may_not_read_them() {
    let world = World::born().await;
    let own = world.store.remember(fact("a", Label::Own, "north wind")).await.unwrap().id();
    let theirs = world.store.remember(fact("b", Label::Peer, "north pole")).await.unwrap().id();
    embed(&world, "one").await;
    let trusted = MemoryQuery { least_trusted: Some(Label::Own), ..MemoryQuery::default() };
    assert_eq!(north(&world, trusted).await, [(own, 20)]);
    let all = north(&world, MemoryQuery::default()).await;
    assert_eq!(all, [(own, 20), (theirs, 20)], "its own first where both are as near");
    let tiers = vec![MemoryTier::Procedural];
    assert!(north(&world, MemoryQuery { tiers, ..MemoryQuery::default() }).await.is_empty());
    // What words have found has its similarity, too.
    let asked = MemoryQuery { text: Some("wind".to_owned()), ..MemoryQuery::default() };
    assert!(north(&world, asked).await.contains(&(own, 20)));
}

#[tokio::test]
async fn a_flood_of_strangers_makes_nothing_of_its_own_less_like_what_is_asked() {
    let world = World::born().await;
    let own = world.store.remember(fact("own", Label::Own, "north wind")).await.unwrap().id();
    for nth in 0..200 {
        let theirs = fact(&format!("f{nth}"), Label::Peer, &format!("north {nth}"));
        world.store.remember(theirs).await.unwrap();
    }
    embed(&world, "one").await;
    let trusted = MemoryQuery { least_trusted: Some(Label::Own), ..MemoryQuery::default() };
    assert_eq!(north(&world, trusted).await, [(own, 20)]);
}

#[tokio::test]
async fn what_was_forgotten_is_never_in_the_way_of_what_is_left() {
    let world = World::born().await;
    let mut ids = Vec::new();
    for nth in 0..150 {
        let text = if nth < 140 { "north wind" } else { "east wind" };
        let outcome = world.store.remember(fact(&format!("f{nth}"), Label::Own, text)).await;
        ids.push(outcome.unwrap().id());
    }
    embed(&world, "one").await;
    // Where most point north, that says less.
    assert!(north(&world, MemoryQuery::default()).await.iter().all(|(_, near)| *near == 14));
    for id in &ids[..138] {
        world.store.forget(*id).await.unwrap();
    }
    let left = north(&world, MemoryQuery::default()).await;
    assert_eq!(left.len(), 12);
    assert_eq!(left[..2], [(ids[139], 14), (ids[138], 14)]);
    assert!(left[2..].iter().all(|(id, near)| ids[140..].contains(id) && *near < 2));
}

#[tokio::test]
async fn the_part_that_means_the_most_alike_is_known() {
    let world = World::born().await;
    let long = world.store.remember(fact("a", Label::Own, "east, and north")).await.unwrap().id();
    let short = world.store.remember(fact("b", Label::Own, "north wind")).await.unwrap().id();
    let vectors = vec![
        (long, vector([6, 6])),
        (long, vector([9, 1])),
        (long, vector([1, 9])),
        (short, vector([0, 9])),
    ];
    world.store.without_vector("one".to_owned(), 2).await.unwrap();
    world.store.keep_vectors("one".to_owned(), short, vectors).await.unwrap();
    let meant =
        Embedding { model: "one".to_owned(), kind: EmbeddingKind::Words, vector: vector([0, 1]) };
    let query = MemoryQuery { embedding: Some(meant), limit: 10, ..MemoryQuery::default() };
    // A text with one vector has no parts.
    assert_eq!(world.store.memories(query).await.unwrap().parts, [(long, 2)]);
}
