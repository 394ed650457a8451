//! What a creator and an automaton say to each other: sent, waited for, typed, listed.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use automaton_core::event::{Event, StampedEvent};
use automaton_core::message::CREATOR_MESSAGE_BYTES_MAX;
use automaton_core::record::StopReason;
use automaton_testkit::world::{ProcessOutput, ProcessRun, World};
use serde_json::Value;

use super::world;

/// Long enough for a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A step in which the model says something once it is told something.
fn step(told: &str, says: &str) -> String {
    format!("[[step]]\nexpect.news = {told:?}\nsay = {says:?}\n")
}

/// A running automaton that was born, answers so, and sleeps; it has one more answer than
/// is asked for, so that its story does not end.
fn asleep(steps: &str) -> (World, ProcessRun) {
    let born = "title = \"talk\"\n[[step]]\nsay = \"I am born.\"\n";
    let never = step("never said", "Never.");
    let world = world().story(&format!("{born}{steps}{never}")).unwrap();
    let mut run = world.up(&["--name", "Ada"]).unwrap();
    run.wait_for(|event| matches!(event, Event::SleepStarted { .. }), LIMIT).unwrap();
    (world, run)
}

fn done(world: &World, arguments: &[&str]) -> String {
    let finished = world.command(arguments).unwrap();
    assert_eq!(finished.code, Some(0), "{arguments:?}: {}", finished.stderr);
    finished.stdout
}

fn json(world: &World, arguments: &[&str]) -> Value {
    serde_json::from_str(&done(world, arguments)).unwrap()
}

fn rows(world: &World) -> Vec<Value> {
    let listed = done(world, &["messages", "--json"]);
    listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Refused with a sentence, as the sender's mistake.
fn refused(finished: &ProcessOutput, sentence: &str) {
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains(sentence), "{}", finished.stderr);
}

fn in_shell(line: &str) -> String {
    let done = World::new("/bin/sh").unwrap().command(&["-c", line]).unwrap();
    assert_eq!(done.code, Some(0), "{line}: {}", done.stderr);
    done.stdout
}

#[test]
fn who_waits_sees_what_it_does_and_gets_the_answer_alone_on_stdout() {
    let call = "[[step]]\nexpect.news = \"6 times 7\"\nsay = \"I reckon.\"\n[[step.call]]\n\
                tool = \"exec\"\narguments = { command = \"expr 6 '*' 7\" }\n";
    let answer = "[[step]]\nexpect.result.exec = \"42\"\nsay = \"It is 42.\"\n";
    let (world, _run) = asleep(&format!("{call}{answer}{}", step("Thanks", "You are welcome.")));
    let waited = world.command(&["send", "--wait", "What is 6 times 7?"]).unwrap();
    assert_eq!((waited.code, waited.stdout.as_str()), (Some(0), "It is 42."), "{}", waited.stderr);
    for part in ["it was asleep and wakes for it", "I reckon.", "exec", "42"] {
        assert!(waited.stderr.contains(part), "{part}: {}", waited.stderr);
    }
    let told = world.command(&["send", "--wait", "Thanks", "--json", "--timeout", "50"]).unwrap();
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let lines: Vec<Value> =
        told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["answer"]["text"], "You are welcome.");
    assert!(lines.iter().any(|line| line["event"] == "turn.started"), "{}", told.stdout);
    let rows = rows(&world);
    let texts: Vec<&str> = rows.iter().map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["What is 6 times 7?", "It is 42.", "Thanks", "You are welcome."]);
    assert_eq!((&rows[0]["from"], &rows[0]["standing"]), (&"creator".into(), &"answered".into()));
    assert_eq!((&rows[1]["from"], &rows[1]["reply_to"]), (&"automaton".into(), &rows[0]["id"]));
}

#[test]
fn who_waits_in_vain_is_told_why_and_the_message_stays() {
    let rest = "[[step]]\nexpect.news = \"Wait for it\"\nsay = \"Later.\"\n[[step.call]]\n\
                tool = \"sleep\"\narguments = { duration_seconds = 3600, reason = \"later\" }\n";
    // It is told once that its creator waits.
    let insists = rest.replace("Wait for it", "You are still awake").replace("Later.", "No.");
    let (world, mut run) = asleep(&format!("{rest}{insists}"));
    let waited = world.command(&["send", "--wait", "Wait for it"]).unwrap();
    refused(&waited, "it stopped without an answer: it chose to sleep");
    assert!(waited.stderr.contains("stays with it until it is answered"), "{}", waited.stderr);
    assert_eq!(waited.stdout, "");
    assert_eq!(rows(&world)[0]["standing"], "open");
    assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
    run.wait_for(|event| matches!(event, Event::AgentStopped { .. }), LIMIT).unwrap();
    assert_eq!(run.finish().unwrap().code, Some(1), "its story was not told");
    let alone = world.command(&["send", "--wait", "Are you there?", "--json"]).unwrap();
    refused(&alone, "nobody runs this automaton now, so that nobody answers");
    let told: Value = serde_json::from_str(&alone.stdout).unwrap();
    assert!(told["answer"].is_null() && told["message"].is_string(), "{told}");
    let rows = rows(&world);
    assert!(rows[1]["text"].as_str().unwrap().contains("Not answered"), "{rows:?}");
    assert_eq!(rows[2]["standing"], "waiting");
}

#[test]
fn a_wait_has_an_end_that_it_was_given() {
    let hang = "[[step]]\nexpect.news = \"Think\"\nsay = \"Hm.\"\nfaults = [\"hang\", \"hang\"]\n";
    let (world, _run) = asleep(hang);
    let waited = world.command(&["send", "--wait", "--timeout", "1", "Think"]).unwrap();
    refused(&waited, "no answer came in 1 s");
}

#[test]
fn a_long_message_is_sent_from_a_file_and_from_a_pipe() {
    let first = step("the tail of it", "I have read the first.");
    let (world, mut run) = asleep(&format!("{first}{}", step("the tail of it", "I have read it.")));
    let brief = format!("{} the tail of it", "a line of the brief\n".repeat(15_000));
    let path = world.dir().join("brief.md");
    std::fs::write(&path, &brief).unwrap();
    assert!(brief.len() > 300_000);
    let file = path.to_str().unwrap();
    let told = json(&world, &["send", "--file", file, "--json"]);
    let next = told["next"].as_str().unwrap();
    assert!(next.contains("is too long to be shown whole") && next.contains("/root/"), "{next}");
    let is_filed = |event: &Event| match event {
        Event::MessageFiled { path, .. } => told["file"] == **path,
        _ => false,
    };
    run.wait_for(is_filed, LIMIT).unwrap();
    run.wait_for(|event| matches!(event, Event::SleepStarted { .. }), LIMIT).unwrap();
    let waited = world.command(&["send", "--wait", "--file", file]).unwrap();
    assert_eq!(waited.code, Some(0), "{}", waited.stderr);
    assert_eq!(waited.stdout, "I have read it.");
    let id = rows(&world)[2]["id"].as_str().unwrap().to_owned();
    let name = format!("/root/.messages/{id}.txt");
    assert_eq!(waited.stderr.matches(&name).count(), 1, "{}", waited.stderr);
    let received = |event: &Event| match event {
        Event::MessageReceived { body, .. } => body.text.contains("more bytes are in the inbox"),
        _ => false,
    };
    run.wait_for(received, LIMIT).unwrap();
    assert_eq!(json(&world, &["messages", "show", &id, "--json"])["message"]["text"], brief);
    drop(run);
    let piped = world
        .start_with_stdin(&["send", "--file", "-"], "from a pipe\n")
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(piped.code, Some(0), "{}", piped.stderr);
    assert_eq!(rows(&world).last().unwrap()["text"], "from a pipe\n");
}

#[test]
fn what_cannot_be_sent_is_told_and_changes_nothing() {
    let world = world();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let file = |name: &str, bytes: &[u8]| {
        let path = world.dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        world.command(&["send", "--file", path.to_str().unwrap()]).unwrap()
    };
    refused(&file("empty", b""), "empty: the message is empty");
    refused(&file("binary", b"abc\xff\xfe"), "is no UTF-8 text: byte 4");
    let large = vec![b'x'; CREATOR_MESSAGE_BYTES_MAX + 1];
    refused(&file("large", &large), "has more than 1048576 bytes");
    refused(&world.command(&["send", "--file", "/none"]).unwrap(), "cannot read /none");
    refused(&world.command(&["send", " "]).unwrap(), "the message is empty");
    refused(&world.command(&["send"]).unwrap(), "<TEXT>");
    refused(&world.command(&["send", "a", "--file", "b"]).unwrap(), "cannot be used with");
    refused(&world.command(&["send", "a", "--timeout", "3"]).unwrap(), "--wait");
    assert_eq!(rows(&world).len(), 0);
}

#[test]
fn the_sender_is_told_when_it_will_be_read() {
    let world = world();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let told = done(&world, &["send", "Are you there?"]);
    assert!(told.contains("it reads the message when `automaton run`"), "{told}");
    let told = json(&world, &["send", "Hello?", "--json"]);
    assert_eq!(told["running"], false, "{told}");
    let (world, _run) = asleep(&step("Hello", "Hello."));
    let told = done(&world, &["send", "Hello"]);
    assert!(told.contains("it was asleep and wakes for it"), "{told}");
}

#[test]
fn a_talk_over_a_pipe_sends_line_by_line() {
    let (world, _run) =
        asleep(&format!("{}{}", step("My name is Eve", "Hello, Eve."), step("my name", "Eve.")));
    let lines = "My name is Eve.\n\nWhat is my name?\n";
    let talked = world.start_with_stdin(&["chat"], lines).unwrap().finish().unwrap();
    assert_eq!(talked.code, Some(0), "{}", talked.stderr);
    assert_eq!(talked.stdout, "Ada: Hello, Eve.\nAda: Eve.");
    assert!(talked.stderr.contains("│ Hello, Eve."), "what it does is shown: {}", talked.stderr);
    let again = world.start_with_stdin(&["chat", "-n", "3"], "").unwrap().finish().unwrap();
    let before = "Ada: Hello, Eve.\nyou: What is my name?\nAda: Eve.";
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), before), "{}", again.stderr);
}

#[test]
fn a_talk_with_nobody_says_how_to_begin() {
    let world = world();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let talked = world.start_with_stdin(&["chat"], "hello\n").unwrap().finish().unwrap();
    refused(&talked, "nobody runs Automaton now");
    assert!(talked.stderr.contains("`automaton run`"), "{}", talked.stderr);
    assert_eq!(rows(&world).len(), 0);
}

#[test]
fn a_talk_that_is_told_to_end_ends_at_once_and_interrupts_nothing() {
    let hang = "[[step]]\nexpect.news = \"Do it\"\nsay = \"I do.\"\nfaults = [\"hang\"]\n";
    let (world, mut run) = asleep(hang);
    let talk = world.start_with_stdin(&["chat"], "Do it\n").unwrap();
    run.wait_for(|event| matches!(event, Event::TurnStarted { .. }), LIMIT).unwrap();
    talk.signal("TERM").unwrap();
    let talked = talk.finish().unwrap();
    assert_eq!((talked.code, talked.stdout.as_str()), (Some(0), ""), "{}", talked.stderr);
    assert!(!talked.stderr.contains("interrupt"), "{}", talked.stderr);
    assert_eq!(json(&world, &["status", "--json"])["state"], "running");
}

#[test]
fn whoever_leaves_before_it_answers_is_heard() {
    let world = world();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let silent = UnixListener::bind(world.home().join("control.sock")).unwrap();
    let cases = [(&["chat"][..], 0, ""), (&["send", "--wait", "Hello"], 1, "nothing was sent")];
    for (command, code, words) in cases {
        for signal in ["INT", "TERM"] {
            let talk = world.start_with_stdin(command, "").unwrap();
            let (stream, _) = silent.accept().unwrap();
            BufReader::new(&stream).read_line(&mut String::new()).unwrap();
            talk.signal(signal).unwrap();
            let left = talk.finish().unwrap();
            assert_eq!(left.code, Some(code), "{command:?}: {}", left.stderr);
            assert!(left.stderr.contains(words), "{command:?}: {}", left.stderr);
            assert!(!left.stderr.contains("did not answer"), "{command:?}: {}", left.stderr);
        }
    }
    assert_eq!(rows(&world).len(), 0);
}

#[test]
fn lines_are_broken_for_the_window_that_they_are_written_to() {
    let words = "These are far more words than a window of forty columns has room for in a line.";
    let (world, _run) = asleep(&step("Tell me", words));
    let (home, answer) = (world.home().display(), world.dir().join("answer"));
    let automaton = env!("CARGO_BIN_EXE_automaton");
    let line = format!(
        "stty cols 40; NO_COLOR=1 {automaton} --home {home} send --wait 'Tell me' >{}",
        answer.display()
    );
    let seen = in_shell(&format!("script -qec \"{line}\" /dev/null"));
    assert_eq!(std::fs::read_to_string(answer).unwrap().trim_end(), words);
    let seen: Vec<String> = seen.split(['\r', '\n']).map(|it| it.replace("\u{1b}[K", "")).collect();
    assert!(seen.iter().any(|line| line.contains("far more words")), "{seen:?}");
    assert!(seen.iter().all(|line| line.chars().count() <= 40), "{seen:?}");
}

/// Ctrl-C ends what is under way, and drops the message.
fn check_interrupted(step: &str, begun: impl Fn(&Event) -> bool) {
    let (world, mut run) = asleep(step);
    let talk = world.start_with_stdin(&["chat"], "Do it\n").unwrap();
    run.wait_for(begun, LIMIT).unwrap();
    talk.signal("INT").unwrap();
    let ended = |event: &Event| match event {
        Event::WakeEnded { reason, .. } => *reason == StopReason::Interrupted,
        _ => false,
    };
    run.wait_for(ended, LIMIT).unwrap();
    let talked = talk.finish().unwrap();
    refused(&talked, "1 of 1 messages were not answered");
    assert!(talked.stderr.contains("interrupting; once more leaves"), "{}", talked.stderr);
    assert!(talked.stderr.contains("it is dropped"), "{}", talked.stderr);
    assert_eq!(json(&world, &["status", "--json"])["state"], "sleeping");
    assert_eq!(rows(&world)[0]["standing"], "closed");
}

/// The sentences that the creator is told at the ends of wakes.
fn ends(run: &ProcessRun) -> Vec<String> {
    let sentence = |stamped: StampedEvent| match stamped.event {
        Event::WakeEnded { sentence, .. } => Some(sentence),
        _ => None,
    };
    run.events().into_iter().filter_map(sentence).collect()
}

#[test]
fn after_an_interruption_it_hears_what_was_typed_meanwhile_and_what_comes_later() {
    let works = "[[step]]\nexpect.news = \"Do it\"\nsay = \"I do.\"\n[[step.call]]\n\
                 tool = \"exec\"\narguments = { command = \"sleep 1000\", timeout = 100000 }\n";
    let queued = step("Your creator interrupted you. It drops what it had asked for", "Red it is.");
    let later = step("Are you there?", "Here.");
    let (world, mut run) = asleep(&format!("{works}{queued}{later}{}", step("And now?", "Too.")));
    let talk = world.start_with_stdin(&["chat"], "Do it\n").unwrap();
    run.wait_for(|event| matches!(event, Event::CallStarted { .. }), LIMIT).unwrap();
    let told = done(&world, &["send", "Paint it red instead."]);
    assert!(told.contains("it is awake and reads it in its next turn"), "{told}");
    talk.signal("INT").unwrap();
    let answers = |text: &'static str| {
        move |event: &Event| match event {
            Event::MessageSent { body, .. } => body.text == text,
            _ => false,
        }
    };
    run.wait_for(answers("Red it is."), LIMIT).unwrap();
    let talked = talk.finish().unwrap();
    assert!(talked.stderr.contains("it is dropped"), "{}", talked.stderr);
    let dropped = "Stopped: you interrupted it, and it drops \"Do it\".";
    assert!(ends(&run).iter().any(|sentence| sentence.starts_with(dropped)), "{:?}", ends(&run));
    for (asked, answer) in [("Are you there?", "Here."), ("And now?", "Too.")] {
        let waited = world.command(&["send", "--wait", asked]).unwrap();
        assert_eq!((waited.code, waited.stdout.as_str()), (Some(0), answer), "{}", waited.stderr);
    }
    let standings: Vec<String> = rows(&world)
        .iter()
        .filter(|row| row["from"] == "creator")
        .map(|row| row["standing"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(standings, ["closed", "answered", "answered", "answered"]);
    let last = done(&world, &["turns", "--json"]);
    assert_eq!(last.matches("do not go on with that").count(), 1, "told once: {last}");
}

#[test]
fn a_running_command_is_interrupted() {
    let step = "[[step]]\nexpect.news = \"Do it\"\nsay = \"I do.\"\n[[step.call]]\n\
                tool = \"exec\"\narguments = { command = \"sleep 1000\", timeout = 100000 }\n";
    check_interrupted(step, |event| matches!(event, Event::CallStarted { .. }));
}

#[test]
fn an_answer_that_does_not_come_is_interrupted() {
    let step = "[[step]]\nexpect.news = \"Do it\"\nsay = \"I do.\"\nfaults = [\"hang\"]\n";
    let mut turns = 0;
    let turns = std::cell::RefCell::new(&mut turns);
    check_interrupted(step, |event| {
        **turns.borrow_mut() += u32::from(matches!(event, Event::TurnStarted { .. }));
        **turns.borrow() == 1
    });
}

#[test]
fn so_many_may_follow_and_whoever_leaves_makes_room() {
    let (world, _run) = asleep("");
    let follow = || {
        let mut stream = UnixStream::connect(world.home().join("control.sock")).unwrap();
        stream.write_all(b"{\"do\":\"follow\"}\n").unwrap();
        let mut answer = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut answer).unwrap();
        (stream, answer)
    };
    let followers: Vec<_> = std::iter::repeat_with(follow).take(16).collect();
    for (_, answer) in &followers {
        assert_eq!(answer, "{\"ok\":\"following\"}\n");
    }
    let (_, refused) = follow();
    assert!(refused.contains("it cannot be followed now; 16 may at a time"), "{refused}");
    // Who does not read holds up nobody.
    assert_eq!(json(&world, &["status", "--json"])["state"], "sleeping");
    drop(followers);
    // Their places are free again once the automaton has seen them leave.
    let free = std::iter::repeat_with(follow).take(10_000).any(|it| it.1.contains("following"));
    assert!(free, "nobody can follow any more");
}

#[test]
fn a_client_that_says_nothing_holds_up_no_other_one() {
    let (world, _run) = asleep("");
    let connect = || UnixStream::connect(world.home().join("control.sock")).unwrap();
    // One place less than there are, so that there is room for a command.
    let idle: Vec<UnixStream> = std::iter::repeat_with(connect).take(15).collect();
    assert_eq!(
        json(&world, &["status", "--json"])["running"]["tools"].as_u64().map(|n| n > 0),
        Some(true)
    );
    for mut stream in idle {
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(
            read,
            Err(std::io::ErrorKind::WouldBlock),
            "the idle connection was ended first"
        );
    }
}

#[test]
fn messages_are_shown_and_closed_whether_it_runs_or_not() {
    let world = world();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let send = |text: &str| {
        json(&world, &["send", text, "--json"])["message"].as_str().unwrap().to_owned()
    };
    let (first, second) = (send("First\nof two lines"), send("Second"));
    let listed = done(&world, &["messages"]);
    for part in [&first, "you, ", "waiting to be read", "First of two lines"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    assert!(done(&world, &["messages", "show", &first]).ends_with("First\nof two lines"));
    assert!(done(&world, &["messages", "close", &first]).contains("closed"));
    assert!(done(&world, &["messages", "close", &first]).contains("it is closed"));
    assert_eq!(json(&world, &["status", "--json"])["inbox"]["received"], 1);
    let none = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for command in ["show", "close"] {
        refused(&world.command(&["messages", command, none]).unwrap(), "there is no message 01ARZ");
        refused(&world.command(&["messages", command, "x"]).unwrap(), "invalid value");
    }
    let story =
        format!("title = \"t\"\n{}{}", step("Second", "I have read it."), step("never", "x"));
    std::fs::write(world.dir().join("more.toml"), story).unwrap();
    let mut run = world.up(&["--brain", "script:more.toml"]).unwrap();
    run.wait_for(|event| matches!(event, Event::SleepStarted { .. }), LIMIT).unwrap();
    let shown = json(&world, &["messages", "show", &second, "--json"]);
    let answer = shown["answer"].as_str().unwrap().to_owned();
    assert!(done(&world, &["messages", "close", &second]).contains("it is answered"));
    refused(&world.command(&["messages", "close", &answer]).unwrap(), "is one of the automaton's");
    assert_eq!(rows(&world)[0]["standing"], "closed");
}
