//! What a turn was asked with comes back from the record, byte for byte or not at all.

use std::sync::Arc;

use automaton_agent::ToolSet;
use automaton_agent::prompt::{PromptLayerRecord, recorded_prompt, transcript};
use automaton_core::faults::NoFaults;
use automaton_core::memory::{MemoryId, MemoryTier, NewMemory};
use automaton_core::trust::{Label, Labelled};
use automaton_policy::guard::Guard;
use automaton_store::{TurnDetails, TurnRef};

use crate::brain::{Brain, Move, write};
use crate::life::{Home, lives};

fn fact(value: &str) -> NewMemory {
    NewMemory {
        tier: MemoryTier::Semantic,
        kind: "creator".to_owned(),
        name: "colour".to_owned(),
        body: Labelled::new(Label::Creator, "creator", value),
        strength: 100,
        turn: None,
        lasts: None,
    }
}

fn texts(layers: &[PromptLayerRecord]) -> String {
    let texts = layers.iter().map(|layer| layer.text.as_deref().unwrap());
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn tools() -> Arc<ToolSet> {
    Arc::new(ToolSet::built_in().unwrap())
}

fn guard() -> Arc<Guard> {
    Arc::new(Guard::new().unwrap())
}

#[tokio::test]
async fn a_prompt_comes_back_as_it_was_sent() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    store.remember(fact("green")).await.unwrap();
    let asked = Labelled::new(Label::Creator, "creator", "What colour is it?");
    store.receive(asked, None).await.unwrap();
    let long: &'static str = "word ".repeat(200).leak();
    let brain = Arc::new(Brain::new(8192, &[], Move::Call(vec![write("a.txt", long)])));
    lives(&home, &store, &brain, 120).await;
    let (reader, seen) = (home.reader(), brain.seen());
    let mut cut = false;
    for turn in home.turns() {
        let prompt = recorded_prompt(&reader, &turn, &guard(), &tools()).unwrap().unwrap();
        let layers = &prompt.layers;
        let lost: Vec<_> = layers.iter().filter(|layer| !layer.on_record).collect();
        assert!(lost.is_empty(), "turn {}: {lost:?}", turn.seq);
        let messages = &seen[usize::try_from(turn.seq - 1).unwrap()];
        assert_eq!(texts(&layers[..7]), messages[0].content);
        // What stands before the history and after it, and every line of it, was sent.
        let sent = transcript(messages);
        for layer in &layers[7..] {
            let text = layer.text.as_deref().unwrap();
            let lines = text.lines().filter(|line| !line.starts_with("--- "));
            assert!(lines.into_iter().all(|line| sent.contains(line)), "{}", layer.name);
        }
        cut |= prompt.history_from > Some(1) && !layers[8].text.as_deref().unwrap().is_empty();
    }
    assert!(cut, "the history was never cut");
    assert!(seen[0].last().unwrap().content.contains("green"));
    // What is superseded is still what was sent.
    store.remember(fact("blue")).await.unwrap();
    let turn = home.turns().remove(0);
    let memory = || {
        recorded_prompt(&home.reader(), &turn, &guard(), &tools())
            .unwrap()
            .unwrap()
            .layers
            .remove(12)
    };
    assert!(memory().text.unwrap().contains("green"));
    // A layer that the record gives otherwise now is not shown as what was sent.
    store.forget(MemoryId(1)).await.unwrap();
    let memory = memory();
    assert_eq!((memory.name.as_str(), memory.on_record, &memory.text), ("memory", false, &None));
    assert!(memory.chars > 0);
}

#[tokio::test]
async fn the_sentences_that_were_shown_and_what_had_changed_come_back_byte_for_byte() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let message = |text: &str| NewMemory {
        tier: MemoryTier::Episodic,
        kind: "message".to_owned(),
        name: String::new(),
        ..fact(text)
    };
    let day = |day: u32| format!("On day {day} we counted {} geese at the weir. ", day * 3);
    let story: String = (1..=20).map(day).collect();
    let long = format!("{story}The torch lies behind the blue flour tin. {story}");
    for text in [long.as_str(), "My port is 8080.", "I moved it to 9090."] {
        store.remember(message(text)).await.unwrap();
    }
    let asked = Labelled::new(Label::Creator, "creator", "Where is my torch, and which port?");
    store.receive(asked, None).await.unwrap();
    let brain = Arc::new(Brain::new(8192, &[], Move::Say("There.")));
    lives(&home, &store, &brain, 1).await;
    let sent = transcript(&brain.seen()[0]);
    let turn = home.turns().remove(0);
    let memory = || {
        let prompt = recorded_prompt(&home.reader(), &turn, &guard(), &tools()).unwrap().unwrap();
        prompt.layers.into_iter().find(|layer| layer.name == "memory").unwrap()
    };
    let text = memory().text.unwrap();
    assert!(sent.contains(&text), "{text}");
    assert!(text.contains("(from creator) … ") && text.contains("blue flour tin."), "{text}");
    let changed = "outdated: was \"My port is 8080.\", since ";
    assert!(text.contains(changed) && text.contains("(m3): \"I moved it to 9090.\""), "{text}");
    let newer = text.find("(from creator) I moved it to 9090.").unwrap();
    assert!(newer < text.find(changed).unwrap(), "{text}");
    // What the newer one said is part of what was sent.
    store.forget(MemoryId(3)).await.unwrap();
    let memory = memory();
    assert_eq!((memory.on_record, memory.text), (false, None));
}

#[tokio::test]
async fn a_turn_that_got_no_answer_tells_what_it_asked() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let brain = Arc::new(Brain::new(8192, &[Move::Fail], Move::Say("Here.")));
    lives(&home, &store, &brain, 1).await;
    let reader = home.reader();
    let TurnDetails { turn, woke, .. } = reader.turn_details(TurnRef::Seq(1)).unwrap().unwrap();
    assert_eq!((turn.usage.is_none(), woke.len()), (true, 1));
    assert!(recorded_prompt(&reader, &turn, &guard(), &tools()).unwrap().is_some());
}
