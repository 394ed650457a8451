//! Merging of values from several places.

use automaton_core::secret::Secret;
use automaton_inference::providers::http::ApiFormat;

use super::*;
use crate::args::BrainArg;
use crate::config::values::FileHash;

fn file(text: &str) -> ConfigFile {
    let text = format!(r#"{{"name": "a", "genesisPrompt": "b", {text}}}"#);
    serde_json::from_str(&text.replace(", }", "}")).unwrap()
}

fn check(text: &str, flags: &BrainFlags, environment: &Environment, expected: &str) {
    let resolved =
        resolve(Path::new("/h"), &file(text), flags, &RemoteFlags::default(), environment);
    let shown = match resolved {
        Ok(ResolvedConfig { brain, brain_origin, .. }) => {
            let key = match &brain {
                Brain::Http(http) => http.key.as_ref().map_or("none", Secret::reveal).to_owned(),
                Brain::Local(local) => {
                    local.sha256.as_ref().map_or("", FileHash::as_str).to_owned()
                }
            };
            format!("{brain} | {key} | {brain_origin}")
        }
        Err(failure) => failure.line(),
    };
    assert_eq!(shown, expected);
}

#[test]
fn the_keys_of_the_reference_lead_to_a_server() {
    let flags = BrainFlags::default();
    let none = Environment::default();
    let mine = Environment {
        conway_api_url: Some("http://127.0.0.1:9".to_owned()),
        conway_api_key: Some(Secret::new("env".to_owned())),
        ollama_base_url: Some("http://127.0.0.1:11434".to_owned()),
        ..Environment::default()
    };
    let conway = r#""conwayApiKey": "k", "conwayApiUrl": "http://127.0.0.1:8787""#;
    check(
        conway,
        &flags,
        &none,
        "gpt-5.2 at http://127.0.0.1:8787 | k | key `conwayApiUrl` of automaton.json",
    );
    check(
        conway,
        &flags,
        &mine,
        "gpt-5.2 at http://127.0.0.1:9 | env | environment variable CONWAY_API_URL",
    );
    check(
        r#""modelStrategy": {"inferenceModel": "m"}, "openaiApiKey": "k""#,
        &flags,
        &none,
        "m at https://api.openai.com/v1 | k | key `openaiApiKey` of automaton.json",
    );
    let ollama = Environment { conway_api_key: None, ..mine };
    check(
        r#""inferenceModel": "qwen""#,
        &flags,
        &ollama,
        "qwen at http://127.0.0.1:11434 | none | environment variable OLLAMA_BASE_URL",
    );
    let of = |environment: &Environment, text: &str| {
        let resolved =
            resolve(Path::new("/h"), &file(text), &flags, &RemoteFlags::default(), environment);
        resolved.ok().and_then(|it| match it.brain {
            Brain::Http(http) => Some((http.url, http.format)),
            Brain::Local(_) => None,
        })
    };
    let at = |url: &str| Some((url.to_owned(), ApiFormat::Ollama));
    assert_eq!(of(&ollama, ""), at("http://127.0.0.1:11434"));
    let key = r#""ollamaBaseUrl": "http://127.0.0.1:9""#;
    assert_eq!(of(&none, key), at("http://127.0.0.1:9"));
    let host = Environment { ollama_host: Some("0.0.0.0".to_owned()), ..Environment::default() };
    assert_eq!(of(&host, ""), None, "it is said for other programs");
    assert_eq!(of(&host, r#""inferenceModel": "qwen""#), at("http://127.0.0.1:11434"));
    let other = r#""brain": {"kind": "http", "url": "http://127.0.0.1:11434/v1",
        "format": "chatCompletions", "model": "m"}"#;
    let (_, format) = of(&ollama, other).unwrap();
    assert_eq!(format, ApiFormat::ChatCompletions, "whoever names a format gets it");
    check(
        "",
        &flags,
        &none,
        "the automaton has no model to think with: neither a flag nor automaton.json names one",
    );
}

#[test]
fn a_key_of_a_known_seller_leads_to_it_and_to_a_model_of_its_own() {
    let flags = BrainFlags::default();
    let with = |variables: &[(&str, &str)]| Environment {
        providers: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Secret::new((*value).to_owned())))
            .collect(),
        ..Environment::default()
    };
    let both = [("OPENAI_API_KEY", "o"), ("ANTHROPIC_API_KEY", "a")];
    let claude = "claude-sonnet-4-5 at https://api.anthropic.com/v1 | a | environment variable \
                  ANTHROPIC_API_KEY";
    check("", &flags, &with(&both), claude);
    check(
        r#""inferenceModel": "claude-opus-4-5""#,
        &flags,
        &with(&both),
        &claude.replace("sonnet", "opus"),
    );
    // A file of the reference names its own default.
    let named = r#""modelStrategy": {"inferenceModel": "gpt-5.2"}"#;
    let gpt = "gpt-5.2 at https://api.openai.com/v1 | o | environment variable OPENAI_API_KEY";
    check(named, &flags, &with(&both), gpt);
    check(named, &flags, &with(&both[1..]), claude);
    check(
        r#""anthropicApiKey": "f""#,
        &flags,
        &with(&[]),
        "claude-sonnet-4-5 at https://api.anthropic.com/v1 | f | key `anthropicApiKey` of \
         automaton.json",
    );
    // A key of the file is for the seller's own address, and no other.
    check(
        r#""anthropicApiKey": "f""#,
        &flags,
        &with(&[("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")]),
        "the automaton has no model to think with: neither a flag nor automaton.json names one",
    );
    let gateway = [both[1], ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")];
    check(
        "",
        &flags,
        &with(&gateway),
        "claude-sonnet-4-5 at http://127.0.0.1:9 | a | environment variable ANTHROPIC_BASE_URL",
    );
}

#[test]
fn a_key_goes_to_its_own_server_alone() {
    let none = Environment::default();
    let flags = BrainFlags {
        brain: Some(BrainArg::Url("https://elsewhere.example/v1".parse().unwrap())),
        ..BrainFlags::default()
    };
    let text = r#""conwayApiKey": "k", "openaiApiKey": "o",
        "brain": {"kind": "http", "url": "https://mine.example", "apiKey": "m"}"#;
    check(text, &flags, &none, "gpt-5.2 at https://elsewhere.example/v1 | none | flag --brain");
    let flags = BrainFlags {
        brain: Some(BrainArg::Url("https://mine.example/v1".parse().unwrap())),
        brain_model: Some("big".to_owned()),
        ..BrainFlags::default()
    };
    check(text, &flags, &none, "big at https://mine.example/v1 | m | flag --brain");
}

#[test]
fn a_flag_names_another_model_file_and_the_hash_stays_with_its_own() {
    let none = Environment::default();
    let hash = "0".repeat(64);
    let text = format!(
        r#""brain": {{"kind": "local", "model": "/m", "helper": "/p", "sha256": "{hash}"}}"#
    );
    let model = Some("/f".into());
    let helper = Some("/fp".into());
    let flags =
        BrainFlags { default_model: model, default_helper: helper, ..BrainFlags::default() };
    let line = format!("/m on this machine | {hash} | key `brain` of automaton.json");
    check(&text, &flags, &none, &line);
    check("", &flags, &none, "/f on this machine |  | default");
    let flags = BrainFlags { model: Some("/other".into()), ..BrainFlags::default() };
    check(&text, &flags, &none, "/other on this machine |  | flag --model");
    check("", &flags, &none, "there is no model file /other");
}

#[test]
fn the_database_lies_in_the_home() {
    let environment = Environment { home: Some("/u".into()), ..Environment::default() };
    let flags = BrainFlags::default();
    let resolved = resolve(
        Path::new("/u/.automaton"),
        &file(r#""conwayApiKey": "k", "dbPath": "~/.automaton/state.db""#),
        &flags,
        &RemoteFlags::default(),
        &environment,
    );
    assert!(resolved.is_ok());
    check(
        r#""dbPath": "/elsewhere/state.db""#,
        &flags,
        &environment,
        "key `dbPath` of automaton.json names /elsewhere/state.db, outside the home",
    );
}

#[test]
fn cheaper_models_are_those_that_are_named_or_belong_to_the_default() {
    let none = Environment::default();
    let of = |text: &str, flags: &BrainFlags| {
        let resolved =
            resolve(Path::new("/h"), &file(text), flags, &RemoteFlags::default(), &none).unwrap();
        let Brain::Http(http) = resolved.brain else { panic!("{text}") };
        http.cheaper.names().map(ToString::to_string).collect::<Vec<_>>()
    };
    let flags = BrainFlags::default();
    let key = r#""openaiApiKey": "k""#;
    assert_eq!(of(key, &flags), ["gpt-5-mini"]);
    assert_eq!(of(&format!(r#"{key}, "inferenceModel": "gpt-6""#), &flags), [""; 0]);
    let named = r#""modelStrategy": {"lowComputeModel": "small", "criticalModel": "tiny"}"#;
    assert_eq!(of(&format!("{key}, {named}"), &flags), ["small", "tiny"]);
    let own = r#""brain": {"kind": "http", "url": "http://127.0.0.1:9"}"#;
    assert_eq!(of(own, &flags), [""; 0], "a server of one's own has no default");
    let same = r#""modelStrategy": {"lowComputeModel": "gpt-5.2"}"#;
    assert_eq!(of(&format!("{own}, {same}"), &flags), [""; 0]);
}
