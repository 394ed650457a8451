//! Tests of parsing stories, and of telling them through crashes and false claims.

use automaton_core::wire::chat::{
    CalledFunction, ChatCall, ChatFunction, ChatMessage, ChatRequest, ChatRole, ChatTool,
    FunctionKind,
};
use proptest::prelude::*;

use super::*;

/// An agent's conversation, as it would show it to its model.
#[derive(Clone)]
struct Agent(ChatRequest);

fn message(role: ChatRole, text: &str) -> ChatMessage {
    ChatMessage { role, content: Some(text.to_owned()), tool_calls: None, tool_call_id: None }
}

impl Agent {
    fn new() -> Self {
        let tool = |name: &str| {
            let name = name.to_owned();
            let function = ChatFunction { name, ..ChatFunction::default_for_test() };
            ChatTool { kind: FunctionKind::Function, function }
        };
        Self(ChatRequest {
            model: "script".to_owned(),
            messages: vec![message(ChatRole::System, "You are Ada.")],
            tools: ["exec", "write_file", "sleep"].map(tool).into(),
            tool_choice: None,
            seed: None,
            max_tokens: None,
            stream: false,
            stream_options: None,
        })
    }

    /// Asks with a last message of the user's side, and keeps neither.
    fn ask(&self, teller: &mut StoryRunner, news: &str) -> TellerReply {
        let mut request = self.0.clone();
        request.messages.push(message(ChatRole::User, news));
        teller.ask(&request)
    }

    /// Asks, and keeps the question, the answer and the results of its calls.
    fn turn(&mut self, teller: &mut StoryRunner, news: &str, result: &str) -> ScriptedAnswer {
        let answer = answer(self.ask(teller, news));
        self.store(news, &answer, |_| result.to_owned());
        answer
    }

    fn store(&mut self, news: &str, answer: &ScriptedAnswer, result: impl Fn(usize) -> String) {
        let messages = &mut self.0.messages;
        messages.push(message(ChatRole::User, news));
        // With its own ids, and arguments in another order of keys.
        let id = |at: usize| format!("own-{}-{at}", messages.len());
        let calls: Vec<ChatCall> = answer
            .calls
            .iter()
            .enumerate()
            .map(|(at, call)| {
                let arguments = serde_json::from_str::<toml::Table>(&call.arguments).map_or_else(
                    |_| call.arguments.clone(),
                    |table| {
                        let pairs = table.iter().rev().map(|(key, value)| {
                            format!("{key:?} : {}", serde_json::to_string(value).unwrap())
                        });
                        format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
                    },
                );
                let function = CalledFunction { name: call.tool.clone(), arguments };
                ChatCall { id: id(at), kind: FunctionKind::Function, function }
            })
            .collect();
        let results: Vec<ChatMessage> = calls
            .iter()
            .enumerate()
            .map(|(at, call)| ChatMessage {
                tool_call_id: Some(call.id.clone()),
                ..message(ChatRole::Tool, &result(at))
            })
            .collect();
        messages.push(ChatMessage {
            tool_calls: Some(calls),
            ..message(ChatRole::Assistant, &answer.text)
        });
        messages.extend(results);
    }
}

trait ForTest {
    fn default_for_test() -> Self;
}

impl ForTest for ChatFunction {
    fn default_for_test() -> Self {
        serde_json::from_str(r#"{"name": ""}"#).unwrap()
    }
}

fn answer(told: TellerReply) -> ScriptedAnswer {
    match told {
        TellerReply::Answer(answer, None) => answer,
        other => panic!("{other:?}"),
    }
}

fn teller(text: &str) -> StoryRunner {
    StoryRunner::new(Story::parse("s.toml", &format!("title = \"t\"\n{text}")).unwrap())
}

fn unmet(told: TellerReply) -> String {
    match told {
        TellerReply::Refused(why) => why,
        TellerReply::Answer(..) => panic!("{told:?}"),
    }
}

const TWO_CALLS: &str = r#"
[[step]]
say = "I work."
if_unknown = "go_on"
call = [{ tool = "write_file", arguments = { path = "a", content = "b" } }, { tool = "exec", arguments = { command = "ls" } }]
[[step]]
expect.result.exec = { any = ["a", "unknown"] }
say = "Done: {{write_file}}."
"#;

#[test]
fn a_story_goes_on_when_the_conversation_shows_its_last_answer() {
    let mut teller = teller(TWO_CALLS);
    let mut agent = Agent::new();
    let first = agent.turn(&mut teller, "Wake.", "a written");
    assert_eq!(first.calls[1].id, "call_1_2");
    assert_eq!(first.calls[0].arguments, r#"{"content":"b","path":"a"}"#);
    assert_eq!(agent.turn(&mut teller, "Go on.", "").text, "Done: a written.");
    assert_eq!(teller.open_step(), None);
    for _ in 0..3 {
        let over = agent.turn(&mut teller, "Timer.", "");
        assert_eq!((over.text.as_str(), over.calls.len()), ("(The story is over.)", 0));
    }
    let met = |step, what: &str| StoryProgress::StepMet { step, of: 2, what: what.to_owned() };
    let expected = [
        met(1, "the model calls write_file, exec"),
        met(2, "the model says 'Done: {{write_file}}.'"),
        StoryProgress::Ended,
    ];
    assert_eq!(teller.take_progress(), expected);
}

#[test]
fn a_question_that_is_asked_again_gets_the_same_answer() {
    let mut teller = teller(TWO_CALLS);
    let mut agent = Agent::new();
    let first = answer(agent.ask(&mut teller, "Wake."));
    for _ in 0..5 {
        assert_eq!(answer(agent.ask(&mut teller, "You were restarted. Wake.")), first);
    }
    agent.store("Wake.", &first, |_| "a".to_owned());
    let last = answer(agent.ask(&mut teller, "Go on."));
    assert_eq!(last.text, "Done: a.");
    assert_eq!(answer(agent.ask(&mut teller, "Restarted.")), last, "after the end as well");
    assert_eq!(teller.take_progress().len(), 3, "each step is met once");
}

#[test]
fn an_answer_that_never_appears_ends_the_story() {
    let mut teller = teller(TWO_CALLS);
    let agent = Agent::new();
    let refused = (0..100)
        .map(|_| agent.ask(&mut teller, "Wake."))
        .find(|told| matches!(told, TellerReply::Refused(_)));
    let why = unmet(refused.unwrap());
    assert!(
        why.starts_with("step 1 (the model calls write_file, exec): its answer was asked"),
        "{why}"
    );
}

#[test]
fn calls_that_were_not_started_are_made_again_and_unknown_ones_only_where_harmless() {
    let cut_off = |text: &str| {
        let mut teller = teller(text);
        let mut agent = Agent::new();
        let first = answer(agent.ask(&mut teller, "Wake."));
        let results = ["Outcome unknown: it died.", "Not started: it died."];
        agent.store("Wake.", &first, |at| results[at].to_owned());
        let again = agent.turn(&mut teller, "Restarted.", "a");
        let tools: Vec<&str> = again.calls.iter().map(|call| call.tool.as_str()).collect();
        assert!(again.calls.iter().all(|call| first.calls.iter().all(|old| old.id != call.id)));
        assert_eq!(agent.turn(&mut teller, "Go on.", "").text.get(..5), Some("Done:"));
        tools.join(" ")
    };
    assert_eq!(cut_off(TWO_CALLS), "exec");
    assert_eq!(cut_off(&TWO_CALLS.replace("go_on", "again")), "write_file exec");
}

#[test]
fn calls_that_are_cut_off_for_ever_end_the_story() {
    let mut teller = teller(TWO_CALLS);
    let mut agent = Agent::new();
    let refused = (0..100).find_map(|_| match agent.ask(&mut teller, "Restarted.") {
        TellerReply::Answer(answer, _) => {
            agent.store("Restarted.", &answer, |_| "not started".to_owned());
            None
        }
        TellerReply::Refused(why) => Some(why),
    });
    assert!(refused.unwrap().ends_with("its calls were cut off 21 times"));
}

const CREATOR: &str = r#"
[[step]]
say = "I sleep."
[[step.call]]
tool = "sleep"
[[step]]
creator = "How are you?"
after = "asleep"
[[step]]
creator = "And your cat?"
[[step]]
expect.news = ["cat", "inbox"]
expect.rules = "Ada"
expect.history = { all = "I sleep.", none = "dog" }
say = "Well, both."
"#;

#[test]
fn the_creator_is_announced_once_and_met_when_the_model_is_shown_their_words() {
    let mut teller = teller(CREATOR);
    let mut agent = Agent::new();
    agent.turn(&mut teller, "Wake. How are you? is not yet said by anybody", "asleep");
    let says =
        |step, text: &str, when| StoryProgress::CreatorSays { step, text: text.to_owned(), when };
    let progress = teller.take_progress();
    let announced = [
        says(2, "How are you?", CreatorTiming::Asleep),
        says(3, "And your cat?", CreatorTiming::Now),
    ];
    assert_eq!(progress[1..], announced);
    assert_eq!(agent.turn(&mut teller, "Timer.", "").text, "(I wait for what my creator says.)");
    assert_eq!(teller.open_step().as_deref(), Some("step 2 (the creator says 'How are you?')"));
    // The first message arrives alone, the second with the next question.
    agent.turn(&mut teller, "Woken by inbox: How are you?", "");
    assert_eq!(teller.take_progress().len(), 1);
    assert_eq!(agent.turn(&mut teller, "Woken by inbox: And your cat?", "").text, "Well, both.");
    assert_eq!(teller.open_step(), None);
}

#[test]
fn words_of_the_creator_that_come_with_a_repeated_question_are_heard() {
    let mut teller = teller(CREATOR);
    let mut agent = Agent::new();
    answer(agent.ask(&mut teller, "Wake."));
    let again = "Restarted. How are you? And your cat? inbox";
    let sleep = answer(agent.ask(&mut teller, again));
    assert_eq!(sleep.calls[0].tool, "sleep");
    agent.store(again, &sleep, |_| "asleep".to_owned());
    let why = unmet(agent.ask(&mut teller, "Timer."));
    assert!(
        why.starts_with("step 4 (the model says 'Well, both.'): what is new did not contain 'cat'"),
        "{why}"
    );
}

#[test]
fn a_model_that_is_never_shown_the_creators_words_ends_the_story() {
    let mut teller = teller(CREATOR);
    let mut agent = Agent::new();
    agent.turn(&mut teller, "Wake.", "asleep");
    let waits = (0..200)
        .take_while(|_| matches!(agent.ask(&mut teller, "Timer."), TellerReply::Answer(..)));
    assert_eq!(waits.count(), 100);
    assert!(teller.open_step().unwrap().ends_with("asked 100 times and not shown it"));
}

#[test]
fn an_expectation_that_does_not_hold_is_named_and_stays() {
    let check = |expect: &str, expected: &str| {
        let mut teller = teller(&format!(
            "[[step]]\nsay = 'x'\ncall = [{{ tool = 'exec' }}]\n[[step]]\nwhat = 'looks'\n{expect}\nsay = 'y'"
        ));
        let mut agent = Agent::new();
        agent.turn(&mut teller, "Wake.", "exit_code: 1\n");
        let why = unmet(agent.ask(&mut teller, "Go on."));
        assert_eq!(why, format!("step 2 (looks): {expected}"));
        assert_eq!(unmet(agent.ask(&mut teller, "42")), why);
        assert_eq!(teller.take_progress().pop(), Some(StoryProgress::Unmet(why.clone())));
        assert_eq!(teller.open_step(), Some(why));
    };
    check(
        "expect.result.exec = '42'",
        "the result of exec did not contain '42'; it was 'exit_code: 1'",
    );
    check(
        "expect.result.exec.none = ['2', '1']",
        "the result of exec contained '1'; it was 'exit_code: 1'",
    );
    check("expect.result.read_file = 'a'", "there was no result of read_file");
    check(
        "expect.news.any = ['a', 'b']",
        "what is new contained none of 'a', 'b'; it was 'Go on.'",
    );
    check("expect.rules = 'Eve'", "the opening did not contain 'Eve'; it was 'You are Ada.'");
    check("expect.tools = ['exec', 'fly']", "the tool 'fly' was not offered");
    check("expect.messages_min = 9", "there were only 5 messages");
    check("expect.messages_max = 4", "there were as many as 5 messages");
}

#[test]
fn a_place_that_cannot_be_filled_is_unmet() {
    let mut teller = teller("[[step]]\nsay = 'I read {{exec}}'");
    let why = unmet(Agent::new().ask(&mut teller, "Wake."));
    assert!(why.ends_with("there was no result of exec to quote"), "{why}");
}

#[test]
fn faults_come_in_order_before_the_answer() {
    let mut teller =
        teller("[[step]]\nsay = 'x'\nfaults = ['status:503', 'hang', 'cut', 'garbage']");
    let mut agent = Agent::new();
    let told: Vec<Option<ScriptedFault>> = (0..5)
        .map(|_| match agent.ask(&mut teller, "Wake.") {
            TellerReply::Answer(_, fault) => fault,
            TellerReply::Refused(why) => panic!("{why}"),
        })
        .collect();
    let faults = [
        ScriptedFault::Status(503),
        ScriptedFault::Hang,
        ScriptedFault::Cut,
        ScriptedFault::Garbage,
    ];
    assert_eq!(told[..4], faults.map(Some));
    assert_eq!(told[4], None);
    assert_eq!(agent.turn(&mut teller, "Wake.", "").text, "x");
}

#[test]
fn the_first_run_is_a_story_without_its_own_answer() {
    let story = Story::first_run().unwrap();
    assert_eq!(story.steps().len(), 9);
    let creator = |step: &&StoryStep| {
        matches!(step.act, StoryAction::Creator { when: CreatorTiming::Asleep, .. })
    };
    assert_eq!(story.steps().iter().filter(creator).count(), 1);
    // Only the shell can know the number, so it appears only in expectations.
    let told =
        FIRST_RUN.lines().filter(|line| !line.starts_with("expect.") && !line.starts_with('#'));
    assert!(told.into_iter().all(|line| !line.contains("5050")));
}

#[test]
fn a_text_that_is_no_story_is_refused_with_its_line() {
    let check = |text: &str, expected: &str| {
        let error = Story::parse("s.toml", text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}\nwanted {expected}");
    };
    let step = |body: &str| format!("title = 't'\n\n[[step]]\n{body}");
    check("title = 't'\nstep = 3", "s.toml:2: invalid type: integer `3`");
    check("title = 't'\n[[step]\n", "s.toml:2: ");
    check("[[step]]\nsay = 'x'", "s.toml:1: missing field `title`");
    check("title = ' '\n", "s.toml:1: the title is empty");
    check("title = 't'\n", "s.toml:1: a story has 1 to 200 steps, not 0");
    check(&step("says = 'x'"), "s.toml:4: unknown field `says`");
    check(&step("what = 'x'"), "s.toml:3: the step says nothing and calls nothing");
    check(&step("say = 'x'\nafter = 'now'"), "s.toml:3: `after` says when the creator");
    check(&step("say = 'x'\ncreator = 'y'"), "s.toml:3: a step is the creator's or the model's");
    check(&step("creator = ' '"), "s.toml:3: the creator says 1 to 64000 bytes");
    check(&step("creator = 'x'"), "s.toml:3: a story ends with what the model says");
    check(&step("creator = 'x'\nafter = 'lunch'"), "s.toml:5: unknown variant `lunch`");
    check(
        &step("say = 'x'\nexpect.result.exec = 3"),
        "s.toml:5: invalid type: integer `3`, expected a text",
    );
    check(&step("say = 'x'\nexpect.news = { some = 'a' }"), "s.toml:5: unknown field `some`");
    check(&step("say = 'x'\nexpect.news = ''"), "s.toml:5: an empty text is in every text");
    check(&step("say = 'x'\nfaults = ['status:200']"), "s.toml:5: 'status:200' is no fault");
    check(&step("say = 'x {{a b}}'"), "s.toml:3: in `say`: '{{a b}}' is no place");
    let call = |call: &str| step(&format!("say = 'x'\ncall = [{{ {call} }}]"));
    check(&call("tool = ''"), "s.toml:3: a call names no tool");
    check(&call("tool = 'a', raw = '', arguments = {}"), "s.toml:3: the call of a has `arguments`");
    check(
        &call("tool = 'a', arguments = { d = [2020-01-01] }"),
        "s.toml:3: in `arguments` of a: JSON has no dates",
    );
    check(
        &call("tool = 'a', arguments = { d = { n = nan } }"),
        "s.toml:3: in `arguments` of a: JSON has no such",
    );
    check(
        &call("tool = 'a', arguments = { d = ['{{'] }"),
        "s.toml:3: in `arguments` of a: '{{' without",
    );
    check(&step("call = [{ tool = 'a', raw = '{' }]"), "s.toml:3: the step needs `say`");
    let twice = "[[step]]\ncall = [{ tool = 'a', arguments = { n = 1 } }]\n";
    check(&format!("title = 't'\n{twice}{twice}"), "s.toml:4: steps 1 and 2 say and call the same");
    let differing = format!("title = 't'\n{twice}{}", twice.replace('1', "2"));
    assert!(Story::parse("s.toml", &differing).is_ok());
}

/// Quotes a text for TOML, which for these characters equals JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic(text in "(title = \"t\"\n)?([\\[\\]{}=\"'\n.,a-z0-9 ]|step|say|call){0,60}") {
        if let Err(error) = Story::parse("s.toml", &text) {
            prop_assert!(error.to_string().starts_with("s.toml:"), "{}", error);
        }
    }

    /// The story is told as written, to an agent that dies at any question.
    #[test]
    fn a_story_is_told_in_order_whatever_crashes(
        says in prop::collection::btree_set("[a-zé ,.'\"\\\\\n]{1,40}[a-z]", 1..6),
        crashes in prop::collection::vec(0_u8..4, 12),
    ) {
        let says: Vec<&String> = says.iter().collect();
        let mut unique: Vec<&str> = says.iter().map(|text| text.trim()).collect();
        unique.sort_unstable();
        unique.dedup();
        prop_assume!(unique.len() == says.len());
        let steps: String = says.iter().map(|text| format!(
            "[[step]]\nsay = {}\ncall = [{{ tool = \"exec\", arguments = {{ command = {} }} }}]\n",
            quoted(text), quoted(text),
        )).collect();
        let mut teller = teller(&steps);
        let mut agent = Agent::new();
        for (said, crash) in says.iter().zip(&crashes) {
            for _ in 0..*crash {
                let lost = answer(agent.ask(&mut teller, "Restarted."));
                prop_assert_eq!(lost.text.as_str(), said.trim());
            }
            let told = agent.turn(&mut teller, "Go on.", "done");
            prop_assert_eq!(told.text.as_str(), said.trim());
            prop_assert_eq!(&told.calls[0].arguments, &format!("{{\"command\":{}}}", quoted(said)));
        }
        prop_assert_eq!(teller.open_step(), None);
        let progress = teller.take_progress();
        prop_assert_eq!(progress.len(), says.len() + 1);
        prop_assert!(progress.len() <= teller.progress_max());
    }
}
