//! What calls say is packed where it is long, and comes back whole.

use automaton_core::origin::{TargetValue, ValueOrigin};
use automaton_core::record::CallStatus;
use automaton_core::time::Span;
use automaton_core::trust::{Label, Labelled};
use automaton_store::{ChainProblem, JudgedCall};

use crate::Steps as _;
use crate::World;

/// A text of many words, which names an address.
fn page() -> String {
    let words: Vec<String> = (0..900).map(|word| format!("word {}", word % 90)).collect();
    format!("{} https://shop.example/pay {}", words.join(" "), words.join("\n"))
}

/// Who has named the address, once a call has said something and heard the page.
async fn heard(arguments: String) -> (World, ValueOrigin) {
    let world = World::born().await;
    let session = world.session().await;
    let call = JudgedCall { arguments: arguments.clone(), ..world.planned() };
    let turn = world.judged(session, vec![call.clone()]).await;
    world.store.start_call(call.id).await.unwrap();
    for _ in 0..2 {
        // The same end again changes nothing.
        let page = Labelled::new(Label::Web, "shop.example", page());
        world.store.finish_call(call.id, CallStatus::Done, page, Span::ZERO).await.unwrap();
    }
    world.store.commit_turn(turn).await.unwrap();
    let turns = world.store.recent_turns(1, 1).await.unwrap();
    let found = &turns[0].calls[0];
    assert_eq!((&found.arguments, &found.result.as_ref().unwrap().text), (&arguments, &page()));
    let asked = TargetValue::url("https://shop.example/pay");
    let named = world.store.origins(vec![asked]).await.unwrap();
    (world, named[0].1)
}

#[tokio::test]
async fn a_long_text_takes_less_room_and_is_read_back_searched_and_verified() {
    let (world, origin) = heard(format!("{{\"text\":\"{}\"}}", "a b c d ".repeat(200))).await;
    assert_eq!(origin, ValueOrigin::Outside(Label::Web));
    let (said, result): (usize, usize) = world
        .raw()
        .query_row("SELECT length(arguments), length(result) FROM tool_calls", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert!(said < 200 && result < page().len() / 4, "{said} {result}");
    assert!(world.store.verify_chain().await.unwrap().is_whole());
    for forged in ["x'00'", "zeroblob(900)", "CAST(result AS TEXT)", "substr(result, 1, 90)"] {
        let (world, _) = heard("{}".to_owned()).await;
        world.raw().execute(&format!("UPDATE tool_calls SET result = {forged}"), []).unwrap();
        let broken = world.store.verify_chain().await.unwrap().broken.unwrap();
        assert!(matches!(broken.problem, ChainProblem::ResultEdited(_)), "{forged}: {broken}");
    }
}

#[tokio::test]
async fn a_page_that_repeats_what_a_long_call_said_has_not_named_it() {
    let said = format!("{{\"url\":\"https://Shop.example/pay\",\"text\":\"{}\"}}", page());
    assert_eq!(heard(said).await.1, ValueOrigin::Own);
}
