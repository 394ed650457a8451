//! Pure: what becomes of each key of `automaton.json`.
//!
//! A key that is read is used, waits for a part that is to come, or means nothing here. One that
//! is not listed does not compile; none may be without effect in silence. A key of the file that
//! is no field is refused when the file is read.

use serde_json::{Map, Value};

use self::NoEffect::{Meaningless, WaitsFor};
use super::ConfigFile;

/// Reason for which a key has no effect.
#[derive(Debug, Clone, Copy)]
enum NoEffect {
    /// It has none before this part is there.
    WaitsFor(&'static str),
    /// It never has any, for this reason.
    Meaningless(&'static str),
}

/// The fields of a struct that are keys under their own name and are used, and its keys that
/// have no effect. Each of its fields has to be listed, there or among the others.
macro_rules! keys {
    ($fields:tt, $table:ident of $owner:ident; used: $($used:ident)+; others: $($other:ident)*;
     idle: $($idle:ident $key:literal $why:expr;)+) => {
        const $fields: &[&str] = &[$(stringify!($used)),+];
        const $table: &[(&str, NoEffect)] = &[$(($key, $why)),+];
        const _: fn(&$owner) = |$owner { $($used: _,)+ $($other: _,)* $($idle: _),+ }: &$owner| ();
    };
}

const CHILDREN: NoEffect = WaitsFor("children");

keys! { FIELDS, IDLE of ConfigFile;
    used: config_version name genesis_prompt creator_message creator_address brain embeddings
        summarize_history sampling
        allowed_origins egress max_tokens_per_turn max_turns_per_cycle log_level webhook_url
        otlp_endpoint otlp_protocol metrics_addr conway_api_url conway_api_key anthropic_api_key openai_api_key ollama_base_url
        inference_model model_strategy treasury_policy soul_config stop_loss wake_envelope snapshots approvals db_path
        heartbeat_config_path sandbox_id wallet_address version rpc_url network networks chain_type;
    others: schema idle_keys;
    idle:
        skills_dir "skillsDir" WaitsFor("skills");
        registered_with_conway "registeredWithConway" Meaningless("the cloud itself is asked");
        agent_id "agentId" WaitsFor("the registry of agents");
        max_children "maxChildren" CHILDREN;
        child_sandbox_memory_mb "childSandboxMemoryMb" CHILDREN;
        parent_address "parentAddress" CHILDREN;
        social_relay_url "socialRelayUrl" WaitsFor("messages between automatons");
        disable_spawn "disableSpawn" CHILDREN;
        default_task_funding_cents "defaultTaskFundingCents" CHILDREN;
        max_replans "maxReplans" CHILDREN;
}

/// Returns true if a key is one of the file, letter by letter.
pub(super) fn is_known(key: &str) -> bool {
    let is_used = |field: &&str| in_camel_case(field) == key;
    key == "$schema" || IDLE.iter().any(|(idle, _)| *idle == key) || FIELDS.iter().any(is_used)
}

/// The key of a field, as the derived reader of the file makes it.
fn in_camel_case(field: &str) -> String {
    let mut key = String::with_capacity(field.len());
    for (nth, word) in field.split('_').enumerate() {
        let (first, rest) = word.split_at(word.len().min(1));
        let first = if nth == 0 { first.to_owned() } else { first.to_ascii_uppercase() };
        key.push_str(&first);
        key.push_str(rest);
    }
    key
}

/// The keys of a file that have no effect, each with the reason.
pub(super) fn idle(object: &Map<String, Value>) -> Vec<String> {
    let there = IDLE.iter().filter(|(key, _)| object.contains_key(*key));
    let told = there.map(|(key, why)| match why {
        WaitsFor(part) => format!("`{key}` (it waits for {part})"),
        Meaningless(why) => format!("`{key}` ({why})"),
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_without_effect_are_keys_of_the_schema() {
        let schema = super::super::schema();
        for (key, _) in IDLE {
            assert!(schema["properties"].get(*key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_key_that_is_used_is_read_by_somebody() {
        let users = [
            include_str!("../resolve.rs"),
            include_str!("../brain.rs"),
            include_str!("../providers.rs"),
            include_str!("../remote.rs"),
            include_str!("../../cmd/preflight.rs"),
            include_str!("../../cmd/live.rs"),
        ];
        let goes_on = |rest: &str| rest.starts_with(|c: char| c == '_' || c.is_alphanumeric());
        // The format's number is read before the file is.
        for field in FIELDS.iter().filter(|field| **field != "config_version") {
            let read = format!("file.{field}");
            let reads = |text: &&str| text.split(&read).skip(1).any(|rest| !goes_on(rest));
            assert!(users.iter().any(reads), "nobody reads the key of `{field}`");
        }
    }

    #[test]
    fn a_key_is_known_where_the_schema_has_it() {
        let schema = super::super::schema();
        let keys = schema["properties"].as_object().unwrap();
        assert!(keys.keys().all(|key| is_known(key)), "{keys:?}");
        assert_eq!(FIELDS.len() + IDLE.len() + 1, keys.len());
        let others = ["zeal", "namename", "genesis_prompt", "genesisprompt", "GenesisPrompt"];
        for unknown in others.into_iter().chain(["schema", "idleKeys", ""]) {
            assert!(!is_known(unknown), "{unknown}");
            let text = format!("{{\"{unknown}\": null}}");
            let read = super::super::parse(std::path::Path::new("x"), &text);
            assert!(read.unwrap_err().line().contains("unknown key"), "{unknown}");
        }
    }

    #[test]
    fn only_keys_that_are_there_and_have_no_effect_are_told() {
        let text = r#"{"name": "a", "maxChildren": 3, "registeredWithConway": true, "zeal": 1,
            "modelStrategy": {"inferenceModel": "m"}}"#;
        assert_eq!(
            idle(&serde_json::from_str(text).unwrap()),
            [
                "`registeredWithConway` (the cloud itself is asked)",
                "`maxChildren` (it waits for children)",
            ]
        );
    }
}
