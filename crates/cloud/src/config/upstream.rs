//! The configuration of upstreams, and the limits on calls of models.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use automaton_core::model::ModelId;
use automaton_core::names::Names;
use automaton_inference::providers::http::ApiFormat;
use automaton_inference::providers::local::LocalModelFiles;
use serde::Deserialize;

use super::{CloudConfig, HttpUrl};

/// The default limit of a server's silence, in seconds.
const IDLE_SECS: u32 = 300;

/// The highest limit of calls in a minute. Above it there is none.
const PER_MINUTE_MAX: u32 = 60_000;

/// One of those who think behind the cloud.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "UpstreamFile")]
pub struct UpstreamConfig {
    /// The operator's name of the upstream.
    pub name: Option<String>,
    /// The models that it serves; all where there is none.
    pub models: Option<Vec<ModelId>>,
    /// The upstream's names of models that it calls differently.
    pub upstream_ids: BTreeMap<ModelId, ModelId>,
    /// The kind of upstream.
    pub kind: UpstreamKind,
}

/// A kind of upstream.
#[derive(Debug, Clone)]
pub enum UpstreamKind {
    /// `{"base_url": …}`: a server.
    Server(ServerConfig),
    /// `{"local": …}`: a model in our own sandbox.
    Local(LocalModelFiles),
}

/// A model server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Its API, with `/v1`.
    pub base_url: HttpUrl,
    /// The format that it speaks.
    pub format: ApiFormat,
    /// The version of Anthropic's format that it is asked in; the usual one by default.
    pub anthropic_version: Option<String>,
    /// Files with its keys, the first to be used first.
    pub key_files: Vec<PathBuf>,
    /// The server's name for the limit of tokens.
    pub token_limit_name: TokenLimitName,
    /// The longest silence before another upstream is asked.
    pub idle: Duration,
}

/// Both forms, as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpstreamFile {
    name: Option<String>,
    models: Option<Vec<ModelId>>,
    #[serde(default)]
    upstream_ids: BTreeMap<ModelId, ModelId>,
    base_url: Option<HttpUrl>,
    #[serde(default)]
    format: ApiFormat,
    anthropic_version: Option<String>,
    key_file: Option<PathBuf>,
    #[serde(default)]
    key_files: Vec<PathBuf>,
    token_limit_name: Option<TokenLimitName>,
    idle_seconds: Option<u32>,
    local: Option<LocalModelFiles>,
}

impl TryFrom<UpstreamFile> for UpstreamConfig {
    type Error = &'static str;

    fn try_from(file: UpstreamFile) -> Result<Self, &'static str> {
        let UpstreamFile { name, models, upstream_ids, base_url, format, key_file, .. } = file;
        let key_files: Vec<PathBuf> = key_file.into_iter().chain(file.key_files).collect();
        let limit_name = file.token_limit_name;
        let idle = file.idle_seconds;
        let kind = match (base_url, file.local) {
            (Some(base_url), None) => UpstreamKind::Server(ServerConfig {
                base_url,
                format,
                anthropic_version: file.anthropic_version,
                key_files,
                token_limit_name: limit_name.unwrap_or_default(),
                idle: Duration::from_secs(idle.unwrap_or(IDLE_SECS).into()),
            }),
            (None, Some(local))
                if key_files.is_empty() && limit_name.is_none() && idle.is_none() =>
            {
                UpstreamKind::Local(local)
            }
            _ => {
                return Err(
                    "upstream must have base_url, for a server, or local, for a model file",
                );
            }
        };
        if idle == Some(0) {
            return Err("idle_seconds must be at least 1");
        }
        Ok(Self { name, models, upstream_ids, kind })
    }
}

/// The two names of the limit of tokens.
/// Its [`name`](Self::name) is how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum TokenLimitName {
    /// `max_tokens`
    #[default]
    MaxTokens,
    /// `max_completion_tokens`
    MaxCompletionTokens,
}

/// The limits on calls of models.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallLimits {
    /// Under way at a time, of everybody.
    pub at_once: u32,
    /// Under way at a time, of one API key.
    pub at_once_per_key: u32,
    /// Begun in a minute, of one API key; any number where there is none.
    pub per_minute_per_key: Option<u32>,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { at_once: 128, at_once_per_key: 96, per_minute_per_key: None }
    }
}

/// Checks that each model has an upstream, and each upstream its models.
///
/// # Errors
/// What is wrong.
pub(super) fn check(config: &CloudConfig) -> Result<(), String> {
    let is_list = !config.upstreams.is_empty();
    if config.upstream.is_some() == is_list {
        return Err("either upstream or upstreams must be there, and upstreams not empty".into());
    }
    let is_offered = |id: &ModelId| config.models.iter().any(|model| model.id == *id);
    for upstream in config.upstreams() {
        let listed = upstream.models.iter().flatten().chain(upstream.upstream_ids.keys());
        if let Some(id) = listed.into_iter().find(|id| !is_offered(id)) {
            return Err(format!("an upstream names the model '{id}', which models does not have"));
        }
    }
    let serves = |upstream: &UpstreamConfig, id| {
        upstream.models.as_ref().is_none_or(|models| models.contains(id))
    };
    let unserved = config
        .models
        .iter()
        .find(|model| !config.upstreams().any(|upstream| serves(upstream, &model.id)));
    if let Some(model) = unserved {
        return Err(format!("no upstream serves the model '{}'", model.id));
    }
    let local = |upstream: &&UpstreamConfig| matches!(upstream.kind, UpstreamKind::Local(_));
    if config.upstreams().filter(local).count() > 1 {
        return Err("one upstream alone may be local".to_owned());
    }
    let limits = config.call_limits;
    if limits.at_once == 0 || limits.at_once_per_key == 0 || limits.per_minute_per_key == Some(0) {
        return Err("each of call_limits must be at least 1".to_owned());
    }
    if limits.per_minute_per_key.is_some_and(|most| most > PER_MINUTE_MAX) {
        return Err(format!("call_limits.per_minute_per_key must be at most {PER_MINUTE_MAX}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_a_server_or_a_model_file() {
        let read = serde_json::from_str::<UpstreamConfig>;
        let server = read(r#"{"base_url":"http://127.0.0.1:1/v1","key_file":"key"}"#).unwrap();
        assert!(matches!(server.kind, UpstreamKind::Server(_)));
        let local = read(r#"{"local":{"model":"m.gguf","helper":"h"}}"#).unwrap();
        assert!(matches!(local.kind, UpstreamKind::Local(_)));
        for bad in [
            "{}",
            r#"{"base_url":"http://127.0.0.1:1","local":{"model":"m","helper":"h"}}"#,
            r#"{"local":{"model":"m","helper":"h"},"key_file":"key"}"#,
        ] {
            let why = read(bad).unwrap_err().to_string();
            assert!(why.starts_with("upstream must have base_url"), "{bad}: {why}");
        }
        assert!(read(r#"{"local":{"model":"m"}}"#).is_err());
        assert!(read(r#"{"base_url":"http://127.0.0.1:1","idle_seconds":0}"#).is_err());
    }

    #[test]
    fn each_model_has_an_upstream_and_each_upstream_its_models() {
        let parse = |who: &str| {
            let model = r#"{"id":"a","input_microcents_per_million":1,"context_window":10,
                "output_microcents_per_million":1,"max_output_tokens":5}"#;
            let chain = r#"{"id":31337,"rpc_url":"http://127.0.0.1:9","gas_signer":{"home":"g"},
                "asset":"0x04ecCF5dF31B99A977c632831f9D0979E1f4BD59",
                "pay_to":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}"#;
            let file = format!(r#"{{"data":"d","chain":{chain},"models":[{model}]{who}}}"#);
            CloudConfig::parse(&file).map_err(|error| error.to_string())
        };
        let server = r#"{"base_url":"http://127.0.0.1:1/v1"}"#;
        let one = r#"{"base_url":"http://127.0.0.1:1/v1","models":["a"],"upstream_ids":{"a":"x"}}"#;
        let none = one.replace("[\"a\"]", "[]");
        let other = one.replace("[\"a\"]", "[\"b\"]");
        assert_eq!(parse(&format!(r#","upstream":{server}"#)).unwrap().upstreams().count(), 1);
        let two = parse(&format!(r#","upstreams":[{one},{server}]"#)).unwrap();
        assert_eq!(two.upstreams().count(), 2);
        for (bad, words) in [
            (String::new(), "either upstream or upstreams"),
            (r#","upstreams":[]"#.to_owned(), "either upstream or upstreams"),
            (format!(r#","upstream":{server},"upstreams":[{server}]"#), "either upstream"),
            (format!(r#","upstreams":[{none}]"#), "no upstream serves the model 'a'"),
            (format!(r#","upstreams":[{other}]"#), "names the model 'b'"),
            (format!(r#","upstream":{server},"call_limits":{{"at_once":0}}"#), "at least 1"),
        ] {
            let why = parse(&bad).unwrap_err();
            assert!(why.contains(words), "{bad}: {why}");
        }
    }

    #[test]
    fn names_that_servers_know_stay() {
        assert_eq!(
            TokenLimitName::ALL.map(TokenLimitName::name),
            ["max_tokens", "max_completion_tokens"]
        );
    }
}
