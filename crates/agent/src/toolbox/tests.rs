//! Which tools are offered, how calls are read, and how the set changes.

use super::*;

fn built_in() -> ToolSet {
    ToolSet::built_in().unwrap()
}

fn names(specs: &[ToolSpec]) -> Vec<&str> {
    specs.iter().map(|spec| spec.name.as_str()).collect()
}

fn rules(has_money: bool) -> OfferRules {
    OfferRules { has_money, network: None }
}

fn model(context_tokens: u32, weak: bool, compact: bool) -> ModelInfo {
    let model = automaton_inference::catalogue::model("gpt-5.2").unwrap();
    ModelInfo { context_tokens, weak, compact, prices: ModelPrices::default(), ..model }
}

fn call(tool: &str, arguments: &str, status: CallStatus) -> CallRecord {
    CallRecord {
        id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        status,
        result: None,
        duration: None,
        exit_code: None,
    }
}

#[test]
fn the_lists_leave_out_what_an_agent_has_no_use_for_or_no_room_for() {
    let set = built_in();
    let count = |model: &ModelInfo, has_money| set.available(model, &rules(has_money)).len();
    let strong = model(400_000, false, false);
    let weak = model(400_000, true, false);
    let compact = model(400_000, false, true);
    let dear = ModelInfo {
        prices: automaton_inference::catalogue::model("gpt-5.2").unwrap().prices,
        ..strong.clone()
    };
    assert_eq!(set.specs().len(), 43, "all but the one that chooses among them");
    assert_eq!((count(&strong, true), count(&strong, false)), (43, 27));
    assert_eq!(count(&dear, false), 30, "its creator pays for a choice of models");
    assert_eq!((count(&weak, true), count(&weak, false)), (9, 9), "none for money");
    let compact = set.available(&compact, &rules(false));
    let first = ["exec", "write_file", "read_file", "remember_fact", "recall_facts"];
    assert_eq!(names(&compact), [&first[..], &["send_message", "sleep", "choose_tools"]].concat());
    let tools = set.available(&weak, &rules(false));
    assert_eq!(names(&tools).last(), Some(&"choose_tools"));
    let small: Vec<usize> = [32_000, 8_000, 4_000, 1_000]
        .map(|window| count(&model(window, false, false), true))
        .into();
    assert!(small.is_sorted_by(|more, fewer| more >= fewer), "{small:?}");
    assert_eq!(small.last(), Some(&9), "what remains is what a weak model has");
}

#[test]
fn every_tool_is_in_a_family_or_in_all_of_them() {
    let set = built_in();
    let mut reached: Vec<String> = Vec::new();
    for family in ToolFamily::ALL {
        let tools = set.family_list(family, &rules(true));
        assert!(tools.len() > 3, "{family} is empty");
        let common = ["send_message", "sleep", "choose_tools"];
        assert_eq!(names(&tools)[tools.len() - 3..], common, "{family}");
        reached.extend(tools.iter().map(|spec| spec.name.to_string()));
        let poor = set.family_list(family, &rules(false));
        let needs = |spec: &ToolSpec| set.find(spec.name.as_str()).unwrap().profile().requires;
        assert!(poor.iter().all(|spec| needs(spec) == Requirement::Nothing), "{family}");
    }
    let missing = set.tools.iter().filter(|it| !reached.contains(&it.spec().name.to_string()));
    assert_eq!(missing.count(), 0);
}

#[test]
fn the_reachable_hosts_are_named_where_commands_run() {
    let set = built_in();
    let network = Some("Network: only pypi.org.".to_owned());
    let tools =
        set.available(&model(400_000, false, false), &OfferRules { has_money: true, network });
    let told: Vec<&ToolSpec> = tools.iter().filter(|it| it.description.contains("pypi")).collect();
    let [exec] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(exec.name, list::commands());
    let text = "Run a shell command in your workspace (/root). Network: only pypi.org. A long ";
    assert!(exec.description.starts_with(text), "{}", exec.description);
}

#[test]
fn a_model_goes_on_with_the_family_that_it_chose_or_used() {
    let set = built_in();
    let usual = set.simple_list();
    let after = |calls: &[CallRecord]| set.family_after(calls, &usual);
    let chose = |status| call("choose_tools", r#"{"family":"machines"}"#, status);
    assert_eq!(after(&[chose(CallStatus::Done)]), Some(ToolFamily::Machines));
    assert_eq!(after(&[chose(CallStatus::Invalid)]), None);
    let listed = call("list_sandboxes", "{}", CallStatus::Done);
    assert_eq!(after(std::slice::from_ref(&listed)), Some(ToolFamily::Machines));
    let usual_call = call("write_file", "{}", CallStatus::Done);
    assert_eq!(after(&[listed.clone(), usual_call.clone()]), Some(ToolFamily::Machines));
    assert_eq!(after(&[usual_call, call("gone", "{}", CallStatus::Done)]), None);
    assert_eq!(after(&[CallRecord { status: CallStatus::Invalid, ..listed }]), None);
}

#[test]
fn a_call_in_the_words_of_other_runtimes_is_the_call_that_it_means() {
    let set = built_in();
    let to = "0x00000000000000000000000000000000000000aa";
    let arguments = format!(r#"{{"to": "{to}", "amount_usd": 0.29, "reason": "thanks"}}"#);
    let raw = |tool: &str| RawCall {
        provider_id: None,
        tool: tool.to_owned(),
        arguments: arguments.clone(),
    };
    let parsed = set.parse_call(&set.specs(), &raw("transfer_credits")).ok().unwrap();
    assert_eq!(parsed.checked.arguments["to_address"], to);
    assert_eq!(parsed.checked.arguments["amount_cents"], 29);
    // What is not offered cannot be called, and the fault names what can.
    for (offered, tool) in [(set.simple_list(), "transfer_credits"), (set.specs(), "transfer")] {
        let fault = set.parse_call(&offered, &raw(tool)).err().unwrap();
        assert_eq!(fault.kind, FaultKind::UnknownTool);
        let begin = format!("There is no tool '{tool}'. Nothing was run. The tools are: ");
        assert!(fault.sentence.starts_with(&begin), "{fault}");
    }
}

#[test]
fn a_set_is_what_it_was_while_the_box_changes() {
    let some = |names: &[&str]| {
        let tools = list::tools().into_iter();
        tools.filter(|tool| names.contains(&tool.spec().name.as_str())).collect::<Vec<_>>()
    };
    let toolbox = Arc::new(Toolbox::new(some(&["exec", "sleep"])).unwrap());
    let agent = AgentTools::new(Arc::clone(&toolbox), model(400_000, false, false), rules(false));
    let turn = agent.current();
    assert_eq!(names(&turn.usual), ["exec", "sleep"]);
    assert!(Arc::ptr_eq(&turn.usual, &agent.current().usual), "chosen once for each set");
    let [added] = some(&["read_file"]).try_into().ok().unwrap();
    toolbox.add(Arc::clone(&added)).unwrap();
    assert!(matches!(toolbox.add(added), Err(ToolboxError::Taken(_))));
    assert_eq!((turn.usual.len(), turn.set.find("read_file").is_none()), (2, true));
    let next = agent.current();
    assert_eq!(names(&next.usual), ["exec", "sleep", "read_file"]);
    let read = RawCall {
        provider_id: None,
        tool: "read_file".to_owned(),
        arguments: r#"{"path":"a"}"#.to_owned(),
    };
    assert!(turn.set.parse_call(&turn.usual, &read).is_err());
    assert!(next.set.parse_call(&next.usual, &read).is_ok());
    let name: ToolName = "read_file".parse().unwrap();
    toolbox.remove(&name).unwrap();
    assert!(matches!(toolbox.remove(&name), Err(ToolboxError::Missing(_))));
    assert_eq!(names(&agent.current().usual), ["exec", "sleep"]);
    assert!(next.set.parse_call(&next.usual, &read).is_ok(), "a turn keeps what it began with");
    assert_eq!(next.set.digest(&call("gone", "{}", CallStatus::Done)).unwrap().subject, "gone {}");
}
