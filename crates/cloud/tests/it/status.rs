//! The statuses of automatons over HTTP, and the right to read them.

use automaton_core::time::Span;
use serde_json::{Value, json};

use crate::world::{Reply, Wallet, World, get, post};

fn report(turns: u64) -> Value {
    json!({
        "name": "Ada", "state": "sleeping", "tier": "low_compute", "credits_microcents": 12_000_000,
        "turns": turns, "born_at_ms": 1, "at_ms": 2, "version": "0.1.0",
    })
}

async fn say(world: &World, key: &str, body: &Value) -> Reply {
    let headers = [("Authorization", key), ("Content-Type", "application/json")];
    post(world.at(), "/v1/automata/status", &headers, &body.to_string()).await
}

async fn ask(world: &World, key: &str, of: &str) -> Reply {
    let path = format!("/v1/automata/status/{of}");
    get(world.at(), &path, &[("Authorization", key)]).await
}

#[tokio::test]
async fn the_last_word_of_an_automaton_is_there_for_its_own_and_for_nobody_else() {
    let world = World::new().await;
    let wallets = [Wallet::new(1), Wallet::new(2)];
    let keys = [world.key(&wallets[0]).await, world.key(&wallets[1]).await];
    let own = wallets[0].address.to_string();
    assert_eq!(ask(&world, &keys[0], &own).await.status, 404, "it never said anything");
    assert_eq!(say(&world, &keys[0], &report(1)).await.status, 204);
    world.clock.step(Span::from_secs(900));
    assert_eq!(say(&world, &keys[0], &report(2)).await.status, 204);
    let world = world.crash().await;
    let reply = ask(&world, &keys[0], &own.to_lowercase()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let told = reply.json();
    assert_eq!(told["status"], report(2), "what is unknown is left out");
    assert_eq!(
        (&told["address"], told["received_at_ms"].as_i64().unwrap() % 1000),
        (&json!(own.to_lowercase()), 0)
    );
    let stranger = ask(&world, &keys[1], &own).await;
    let nobody = ask(&world, &keys[1], &wallets[1].address.to_string()).await;
    assert_eq!((stranger.status, &stranger.json()["error"]), (404, &nobody.json()["error"]));
    assert_eq!(ask(&world, "nonsense", &own).await.status, 401);
    assert_eq!(say(&world, "nonsense", &report(1)).await.status, 401);
    assert_eq!(ask(&world, &keys[0], "0x12").await.status, 422);
    for (key, bad) in
        [("state", json!("bored")), ("turns", json!(-1)), ("name", json!("x".repeat(300)))]
    {
        let mut body = report(3);
        body[key] = bad;
        assert_eq!(say(&world, &keys[0], &body).await.status, 422, "{key}");
    }
}
