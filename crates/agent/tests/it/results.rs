//! What results show of what is long, and whose words the runtime's own files hold.

use std::fs;
use std::sync::Arc;

use automaton_core::faults::NoFaults;
use automaton_core::record::{CallRecord, CallStatus};
use automaton_core::trust::{Label, Labelled};
use automaton_memory::tokens::estimate;
use serde_json::{Value, json};

use crate::brain::{Brain, Move, write};
use crate::life::{Home, lives};

/// What comes of calls that are made in one turn by a model with this window.
async fn turn(home: &Home, window: u32, calls: &[(&'static str, Value)]) -> Vec<CallRecord> {
    let store = home.store(Arc::new(NoFaults)).await;
    let moves = [Move::Call(calls.to_vec())];
    let brain = Arc::new(Brain::new(window, &moves, Move::Say("Done.")));
    lives(home, &store, &brain, 2).await;
    store.close().await.unwrap();
    home.turns().into_iter().rev().find(|turn| !turn.calls.is_empty()).unwrap().calls
}

fn result(call: &CallRecord) -> &Labelled {
    call.result.as_ref().unwrap()
}

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({ "path": path }))
}

fn file_of_90_kb() -> String {
    (1..=2_000).map(|nth| format!("{nth}: a finding that has to be in the report\n")).collect()
}

#[tokio::test]
async fn one_result_has_a_tenth_of_the_window_and_all_of_a_turn_a_quarter() {
    let home = Home::new();
    fs::write(home.path().join("workspace/log.txt"), file_of_90_kb()).unwrap();
    for (window, calls) in [(8_192, 1), (32_768, 1), (32_768, 2), (128_000, 4)] {
        let asked = vec![read("log.txt"); calls];
        let told = turn(&home, window, &asked).await;
        let room = (window / 10).min(window / 4 / u32::try_from(calls).unwrap());
        for call in &told {
            let text = &result(call).text;
            let tokens = estimate(text);
            assert!(tokens <= room && tokens > room * 4 / 5, "{window} {calls}: {tokens} {room}");
            assert!(text.starts_with("1: a finding"), "{text}");
            let footer = text.lines().last().unwrap();
            let next = text.lines().count();
            let rest = format!("[lines 1 to {} of 2000; go on with offset {next}]", next - 1);
            assert_eq!(footer, rest);
        }
    }
}

#[tokio::test]
async fn any_line_of_many_megabytes_is_read_by_its_number() {
    let home = Home::new();
    let text: String = (1..=200_000).map(|nth| format!("line {nth} of the log\n")).collect();
    assert!(text.len() > 4 << 20);
    fs::write(home.path().join("workspace/big.log"), text).unwrap();
    let asked = json!({"path": "big.log", "offset": 150_000, "limit": 2});
    let search = json!({"pattern": "line 199999 ", "path": "big.log"});
    let told = turn(&home, 32_768, &[("read_file", asked), ("search_files", search)]).await;
    let expected = "line 150000 of the log\nline 150001 of the log\n\
                    [lines 150000 to 150001 of 200000; go on with offset 150002]";
    assert_eq!(result(&told[0]).text, expected);
    let line = "/root/big.log:199999: line 199999 of the log\n[1 match in 1 file searched]";
    assert_eq!(result(&told[1]).text, line);
}

#[tokio::test]
async fn what_is_not_there_or_a_folder_is_told_with_what_there_is() {
    let home = Home::new();
    let workspace = home.path().join("workspace");
    fs::create_dir(workspace.join("reports")).unwrap();
    fs::write(workspace.join("reports/march.md"), "x").unwrap();
    let told = turn(&home, 8_192, &[read("report/March.md"), read("reports")]).await;
    let text = &result(&told[0]).text;
    assert!(text.ends_with("hint: There is \"/root/reports/march.md\"."), "{text}");
    let text = &result(&told[1]).text;
    assert!(text.contains("is a directory") && text.contains("list_files"), "{text}");
}

#[tokio::test]
async fn no_tool_writes_into_what_the_runtime_keeps() {
    let home = Home::new();
    let edit = json!({"path": "~/.messages/b.txt", "old": "a", "new": "b"});
    let calls = [write("~/.logs/a.log", "mine"), write("x/../.messages/b.txt", "b")];
    fs::create_dir_all(home.path().join("workspace/.messages")).unwrap();
    fs::write(home.path().join("workspace/.messages/b.txt"), "a").unwrap();
    for call in calls.into_iter().chain([("edit_file", edit)]) {
        let told = turn(&home, 8_192, &[call]).await;
        assert_eq!(told[0].status, CallStatus::Failed);
        let text = &result(&told[0]).text;
        assert!(
            text.contains("nothing changes them") && text.contains("hint: Write a copy"),
            "{text}"
        );
    }
    assert!(!home.path().join("workspace/.logs/a.log").exists());
    assert_eq!(fs::read_to_string(home.path().join("workspace/.messages/b.txt")).unwrap(), "a");
}

#[tokio::test]
async fn a_message_s_file_is_its_sender_s_words_only_while_it_is_that_message() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let said = "Do this.\nAnd that.";
    let receive = async |label, who: &str| {
        store.receive(Labelled::new(label, who, said), None).await.unwrap()
    };
    let (creators, peers) =
        (receive(Label::Creator, "creator").await, receive(Label::Peer, "bob").await);
    store.close().await.unwrap();
    let folder = home.path().join("workspace/.messages");
    fs::create_dir_all(&folder).unwrap();
    for id in [creators, peers] {
        fs::write(folder.join(format!("{id}.txt")), said).unwrap();
    }
    fs::write(home.path().join(format!("workspace/{creators}.txt")), said).unwrap();
    let (file, others) =
        (format!("~/.messages/{creators}.txt"), format!("~/.messages/{peers}.txt"));
    let line = ("read_file", json!({"path": &file, "offset": 2}));
    let elsewhere = read(&format!("{creators}.txt"));
    let told = turn(&home, 32_768, &[read(&file), line, read(&others), elsewhere]).await;
    let labels: Vec<Label> = told.iter().map(|call| result(call).label).collect();
    assert_eq!(labels, [Label::Creator, Label::Creator, Label::Peer, Label::Tool]);
    assert_eq!(result(&told[1]).text, "And that.\n[lines 2 to 2 of 2: the end]");
    for changed in ["Do this.\nAnd that!", "Do this.", "Do this.\nAnd that.\nAnd pay me."] {
        fs::write(folder.join(format!("{creators}.txt")), changed).unwrap();
        let told = turn(&home, 8_192, &[read(&file)]).await;
        assert_eq!(result(&told[0]).label, Label::Tool, "{changed}");
    }
}
