//! `automaton.json`, as the creator writes it.
//!
//! The keys of the reference runtime are read under their names; `brain`, `stopLoss`,
//! `wakeEnvelope`, `snapshots`, `approvals`, `sampling`, `allowedOrigins`, `egress`, `network`, `networks`, `webhookUrl`,
//! `otlpEndpoint`, `metricsAddr` and `configVersion` are our own. A file that is
//! there but cannot be read is an error with line, column and key, and never
//! leads to a new identity. A key that nobody knows is such an error, since it may be
//! misspelt; keys of the reference that have no effect here are told and stay. The file belongs
//! to the creator: the program writes it when the home is made, and later replaces the value of
//! `brain` alone, when another one was named on the command line and has answered.

mod keys;

use std::path::{Path, PathBuf};

use automaton_core::error::ErrorClass;
use automaton_core::event::EventLevel;
use automaton_core::file_text::UnknownKey;
use automaton_core::secret::Secret;
use automaton_inference::RequestDialect;
use automaton_inference::providers::http::ApiFormat;
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::egress::EgressFile;
use super::json_text;
use super::network::PaymentNetwork;
use super::reference::{CENTS_MAX, ModelStrategy, SoulConfig, TreasuryPolicy};
use super::snapshots::SnapshotsFile;
use super::values::{FileHash, HttpUrl, LoopbackAddr, Name, PricesFile, Prompt, Ranged};
use crate::error::CliError;
use crate::text_file;
use crate::traces::OtlpProtocol;
use crate::ui::text::short;

/// The name of the file in the home directory.
pub const FILE_NAME: &str = "automaton.json";

/// The newest format of the file that this program knows.
pub(crate) const CONFIG_VERSION: u32 = 1;

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 1024 * 1024;

/// The configuration of one automaton.
#[expect(dead_code, reason = "keys of parts that this program lacks are still read and checked")]
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "automaton.json")]
pub(crate) struct ConfigFile {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// The format of this file. A newer one than the program knows is refused.
    config_version: Option<Ranged<1, { u32::MAX as u64 }>>,
    /// The automaton's name.
    pub(crate) name: Option<Name>,
    /// Its purpose, in its creator's words.
    pub(crate) genesis_prompt: Option<Prompt>,
    /// The creator's first message.
    pub(crate) creator_message: Option<String>,
    /// Its creator's address.
    pub(crate) creator_address: Option<String>,
    /// The model it thinks with. Without it, the keys of hosted models decide.
    pub(crate) brain: Option<BrainFile>,
    /// Source of vectors for memories, so that they are found by meaning; by default the built-in
    /// table of words.
    pub(crate) embeddings: Option<EmbeddingsFile>,
    /// If true, a model summarizes old turns once the prompt has no room for them, within every
    /// budget; `true` by default. Weak models are never asked.
    pub(crate) summarize_history: Option<bool>,
    /// Sampling of the model's answers.
    pub(crate) sampling: Option<SamplingFile>,
    /// Private addresses that it may reach besides its model's, as `http://host:port`.
    #[serde(default)]
    pub(crate) allowed_origins: Vec<HttpUrl>,
    /// Hosts that sandboxed commands may reach; none by default.
    #[serde(default)]
    pub(crate) egress: EgressFile,
    /// The most tokens of one answer. 4096 by default; where its creator waits as many as the
    /// model gives, up to 16384 and to what a fiftieth of the day's budget pays for.
    pub(crate) max_tokens_per_turn: Option<Ranged<1, 1_000_000>>,
    /// The most turns of one wake. By default 25; 200 where the creator caused it and answers
    /// cost nothing; 1000 where the creator caused it and `treasuryPolicy` says what a day
    /// may cost.
    pub(crate) max_turns_per_cycle: Option<Ranged<1, 1_000_000_000>>,
    /// Level of the log; `info` by default.
    pub(crate) log_level: Option<LogLevel>,
    /// Address for alerts, requests for money, questions and ends of wakes: `https://…`, or one
    /// of `allowedOrigins`.
    pub(crate) webhook_url: Option<HttpUrl>,
    /// The collector of OpenTelemetry that gets a trace of each turn, as
    /// `http://127.0.0.1:4318`: `https://…`, or one of `allowedOrigins`.
    pub(crate) otlp_endpoint: Option<HttpUrl>,
    /// The encoding of traces: `http/json`, which is the default, or `http/protobuf`. A collector
    /// that takes the other one alone gets that.
    pub(crate) otlp_protocol: Option<OtlpProtocol>,
    /// Address for Prometheus metrics: one of this machine, as `127.0.0.1:9464`, or a port;
    /// without it none are served.
    pub(crate) metrics_addr: Option<LoopbackAddr>,
    /// The cloud that sells inference; `https://api.conway.tech` by default.
    pub(crate) conway_api_url: Option<HttpUrl>,
    /// The key to it.
    #[schemars(with = "Option<String>")]
    pub(crate) conway_api_key: Option<Secret>,
    /// A key to the models of `OpenAI`.
    #[schemars(with = "Option<String>")]
    pub(crate) openai_api_key: Option<Secret>,
    /// A key to the models of Anthropic.
    #[schemars(with = "Option<String>")]
    pub(crate) anthropic_api_key: Option<Secret>,
    /// The address of an Ollama server.
    pub(crate) ollama_base_url: Option<HttpUrl>,
    /// The model that a hosted brain is asked for; `gpt-5.2` by default.
    pub(crate) inference_model: Option<String>,
    /// Which model thinks when, and what it may cost.
    pub(crate) model_strategy: Option<ModelStrategy>,
    /// Limits for spending without asking.
    #[serde(default)]
    pub(crate) treasury_policy: TreasuryPolicy,
    /// Losses before it hibernates; absent is no limit.
    #[serde(default)]
    pub(crate) stop_loss: StopLossFile,
    /// Limits for thinking between two calls of its creator.
    #[serde(default)]
    pub(crate) wake_envelope: EnvelopeFile,
    /// Snapshots of the workspace before commands that may delete files.
    #[serde(default)]
    pub(crate) snapshots: SnapshotsFile,
    /// Settings for questions to its creator.
    #[serde(default)]
    pub(crate) approvals: ApprovalsFile,
    /// Settings for changes to the soul.
    #[serde(default)]
    pub(crate) soul_config: SoulConfig,
    /// The database; it always lies in the home.
    pub(crate) db_path: Option<PathBuf>,
    /// The schedule of the heartbeat; `heartbeat.yml` in the home by default.
    pub(crate) heartbeat_config_path: Option<PathBuf>,
    /// The directory of skills.
    skills_dir: Option<PathBuf>,
    /// The rented machine that commands and files are on; none, or empty, for a sandbox on
    /// this machine.
    pub(crate) sandbox_id: Option<String>,
    /// True if the cloud knows it.
    registered_with_conway: Option<bool>,
    /// Its own address, which is that of its wallet.
    pub(crate) wallet_address: Option<String>,
    /// The version of the program that wrote the file.
    pub(crate) version: Option<String>,
    /// Its id in the registry.
    agent_id: Option<String>,
    /// The most children it may have.
    max_children: Option<Ranged<0, 1000>>,
    /// Memory of a child's machine.
    child_sandbox_memory_mb: Option<Ranged<64, 1_048_576>>,
    /// The address of its parent.
    parent_address: Option<String>,
    /// The relay of messages; empty for none.
    social_relay_url: Option<String>,
    /// True if it makes no children.
    disable_spawn: Option<bool>,
    /// Cents that a task of a child begins with.
    default_task_funding_cents: Option<u64>,
    /// Number of replans.
    max_replans: Option<u64>,
    /// A node of the wallet's chain, to live from a cloud that is not its own.
    pub(crate) rpc_url: Option<HttpUrl>,
    /// The wallet's network: `base`, the default, `base-sepolia`, `dev`, or one of `networks`.
    pub(crate) network: Option<String>,
    /// Networks of your own; of two with one name these count.
    #[serde(default)]
    pub(crate) networks: Vec<PaymentNetwork>,
    /// The kind of its chain; `evm` alone.
    pub(crate) chain_type: Option<ChainType>,
    /// Keys of the file that have no effect, each with the reason.
    #[serde(skip)]
    pub(crate) idle_keys: Vec<String>,
}

/// The model that an automaton thinks with.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum BrainFile {
    /// A model file that runs on this machine.
    Local(LocalBrain),
    /// A server.
    Http {
        /// Its address, with or without `/v1`.
        url: HttpUrl,
        /// The format that it speaks; by default that of the provider at this address, and
        /// `OpenAI`'s chat completions of any other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<FormatSetting>,
        /// The model that it is asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The key to it, when it wants one.
        #[serde(rename = "apiKey", skip_serializing)]
        #[schemars(with = "Option<String>")]
        api_key: Option<Secret>,
        /// The model's window, in tokens, for prompt and answer together; by default what its
        /// server says, else the catalogue.
        #[serde(rename = "contextTokens", skip_serializing_if = "Option::is_none")]
        context_tokens: Option<WindowTokens>,
        /// The longest answer that the model gives, in tokens; likewise.
        #[serde(rename = "maxOutputTokens", skip_serializing_if = "Option::is_none")]
        max_output_tokens: Option<AnswerTokens>,
        /// Prices of the model. Only a server on this machine may be cheaper than the catalogue
        /// says.
        #[serde(skip_serializing_if = "Option::is_none")]
        prices: Option<PricesFile>,
        /// Which fields a request to the model has; by default what the catalogue says.
        #[serde(skip_serializing_if = "Option::is_none")]
        dialect: Option<DialectSetting>,
        /// Set to `true` if the server accepts the model's name although it does not list it,
        /// such as a name that you gave to a deployment. By default such a name is refused at the
        /// start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unlisted: Option<bool>,
    },
}

/// The format that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FormatSetting {
    /// Chat completions, as `OpenAI` introduced them
    ChatCompletions,
    /// Anthropic's messages
    AnthropicMessages,
    /// `OpenAI`'s responses
    Responses,
    /// Ollama's own
    Ollama,
    /// Gemini's own
    Gemini,
}

impl From<ApiFormat> for FormatSetting {
    fn from(format: ApiFormat) -> Self {
        match format {
            ApiFormat::ChatCompletions => Self::ChatCompletions,
            ApiFormat::AnthropicMessages => Self::AnthropicMessages,
            ApiFormat::Responses => Self::Responses,
            ApiFormat::Ollama => Self::Ollama,
            ApiFormat::Gemini => Self::Gemini,
        }
    }
}

impl From<FormatSetting> for ApiFormat {
    fn from(format: FormatSetting) -> Self {
        match format {
            FormatSetting::ChatCompletions => Self::ChatCompletions,
            FormatSetting::AnthropicMessages => Self::AnthropicMessages,
            FormatSetting::Responses => Self::Responses,
            FormatSetting::Ollama => Self::Ollama,
            FormatSetting::Gemini => Self::Gemini,
        }
    }
}

/// Which fields a request to a model has, since some servers refuse the usual ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub(crate) enum DialectSetting {
    /// `max_tokens`, `temperature` and `seed`
    Classic,
    /// `max_tokens` alone
    Plain,
    /// `max_completion_tokens` alone
    Reasoning,
}

impl From<DialectSetting> for RequestDialect {
    fn from(dialect: DialectSetting) -> Self {
        match dialect {
            DialectSetting::Classic => Self::Classic,
            DialectSetting::Plain => Self::Plain,
            DialectSetting::Reasoning => Self::Reasoning,
        }
    }
}

/// Tokens of a window.
pub(crate) type WindowTokens = Ranged<1024, 100_000_000>;

/// Tokens of an answer.
pub(crate) type AnswerTokens = Ranged<64, 10_000_000>;

/// A model file that runs on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LocalBrain {
    /// The model file, in GGUF format.
    pub(crate) model: PathBuf,
    /// SHA-256 of the model file; another file is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<FileHash>,
    /// The program that runs it.
    pub(crate) helper: PathBuf,
    /// The window that it is given, in tokens; 8192 by default. More takes more memory, and
    /// no model has more than it was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context_tokens: Option<WindowTokens>,
}

/// Source of vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum EmbeddingsFile {
    /// The table of English words that goes with the program; the default.
    BuiltIn {},
    /// None: only words find what is remembered.
    Off {},
    /// A small encoder of the BERT family on this machine, such as all-MiniLM-L6-v2.
    Local {
        /// The folder with its `config.json`, `vocab.txt` and `model.safetensors`; from the home,
        /// where it does not begin with `/`.
        folder: PathBuf,
        /// SHA-256 of `model.safetensors`; another file is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<FileHash>,
    },
    /// A model of a server of this machine, such as Ollama, in `OpenAI`'s format.
    Server {
        /// Its address, with or without `/v1`, as `http://127.0.0.1:11434`. One elsewhere might
        /// charge for what nobody books.
        url: HttpUrl,
        /// The model that it is asked for.
        model: String,
    },
    /// A model that the cloud sells it lives from. What that costs is booked as thinking is, and
    /// bounded by the same budgets.
    Cloud {
        /// The model that it is asked for.
        model: String,
    },
}

/// Sampling of answers.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SamplingFile {
    /// Seed of a local model's sampler; 0 by default.
    #[serde(default)]
    pub(crate) seed: u64,
    /// Temperature in thousandths; 0, the default, always takes the likeliest.
    pub(crate) temperature_milli: Option<Ranged<0, 2000>>,
}

/// Losses (cost minus revenue) after which the automaton hibernates until money or its creator
/// wakes it.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StopLossFile {
    /// In any 24 hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_day_cents: Option<Ranged<1, CENTS_MAX>>,
    /// On one goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_goal_cents: Option<Ranged<1, CENTS_MAX>>,
    /// In all, since it was last woken from hibernation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_cents: Option<Ranged<1, CENTS_MAX>>,
}

/// What it may think between two calls of its creator, whatever else wakes it: one that
/// earns nothing thinks in vain. Models that cost nothing may think on, and so may a wake
/// that the creator caused, as far as nothing is said here and
/// `treasuryPolicy.maxInferenceDailyCents` is.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EnvelopeFile {
    /// Answers; 30 by default, 0 is without limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answers: Option<Ranged<0, 1_000_000>>,
    /// Most cents beyond the revenue in the same time; 25 by default, 0 is unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cents: Option<Ranged<0, CENTS_MAX>>,
}

/// Settings for questions to its creator.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ApprovalsFile {
    /// Minutes until a question that nobody answered counts as denied: a day by default where
    /// the creator caused the wake, else 15.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wait_minutes: Option<Ranged<1, 43_200>>,
}

/// Level of the log.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "camelCase")]
pub(crate) enum LogLevel {
    /// Everything, each piece of a thought too.
    Debug,
    /// All that happens.
    #[default]
    Info,
    /// Failures and refusals.
    Warn,
    /// Failures.
    Error,
}

impl From<LogLevel> for EventLevel {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => Self::Debug,
            LogLevel::Info => Self::Info,
            LogLevel::Warn => Self::Warn,
            LogLevel::Error => Self::Error,
        }
    }
}

/// A kind of chain.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ChainType {
    /// Ethereum's kind.
    Evm,
    /// Solana's kind.
    Solana,
}

/// Reads the configuration of a home; `None` when the file is not there.
///
/// # Errors
/// When it is there and cannot be read, is no JSON, holds a value of the wrong
/// type or out of range, or has a format of the future.
pub(crate) fn read(path: &Path) -> Result<Option<ConfigFile>, CliError> {
    read_text(path)?.map(|text| parse(path, &text)).transpose()
}

/// Reads the text of a configuration, without its byte order mark.
///
/// # Errors
/// When the file is there and cannot be read.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, CliError> {
    text_file::read_optional(path, BYTES_MAX).map_err(|error| {
        let what = format!("cannot read the configuration {}", path.display());
        CliError::new(ErrorClass::Config, what)
            .because(&error)
            .hint("make it a UTF-8 file that you can read; nothing was changed")
    })
}

/// Reads a configuration from its text; `path` is what errors call it.
///
/// # Errors
/// As [`read`].
pub(crate) fn parse(path: &Path, text: &str) -> Result<ConfigFile, CliError> {
    // The version goes first: a key that changed its type in a newer format
    // would otherwise be reported as the user's mistake.
    let object: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| invalid(path, text, None, &error))?;
    check_version(path, &object)?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut file: ConfigFile = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| invalid(path, text, Some(error.path().to_string()), error.inner()))?;
    file.idle_keys = keys::idle(&object);
    Ok(file)
}

fn check_version(path: &Path, object: &Map<String, Value>) -> Result<(), CliError> {
    let version = object.get("configVersion").and_then(Value::as_u64).unwrap_or(0);
    if version <= u64::from(CONFIG_VERSION) {
        return Ok(());
    }
    let what = format!(
        "{} has format {version}, and this program knows formats up to {CONFIG_VERSION}",
        path.display()
    );
    Err(CliError::new(ErrorClass::Config, what)
        .hint("this home was made by a newer automaton: run that one; nothing was changed"))
}

/// Explains a mistake by its place. `key` is the path of the value that could not be read.
fn invalid(path: &Path, text: &str, key: Option<String>, error: &serde_json::Error) -> CliError {
    let key = key.filter(|key| key != ".");
    if let Some(unknown) = UnknownKey::of_message(&error.to_string()) {
        return unknown_key(path, text, key.as_deref().unwrap_or_default(), &unknown);
    }
    let line = error.line();
    let column = error.column();
    let key = key.map(|key| format!(", key `{key}`")).unwrap_or_default();
    let place = format!("{}, line {line}, column {column}{key}", path.display());
    // The reason ends in its own " at line … column …", which is said already.
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    CliError::new(ErrorClass::Config, format!("the configuration is invalid: {place}: {reason}"))
        .hint("correct the file; `automaton schema` prints what it may hold; nothing was changed")
}

/// Explains a key that nobody knows. A reader of variants is told of it when it has read the whole
/// object, so that the place comes from the text.
fn unknown_key(path: &Path, text: &str, read: &str, unknown: &UnknownKey) -> CliError {
    let found = json_text::find_key(text, read, &unknown.key);
    let (line, column) =
        found.as_ref().map_or((1, 1), |found| json_text::line_and_column(text, found.at));
    let key = found.map_or_else(|| read.to_owned(), |found| found.path);
    let key = short(&key, 120);
    let is_of_file = key != unknown.key && keys::is_known(&unknown.key);
    let elsewhere = if is_of_file { "; it belongs at the top of the file" } else { "" };
    let what = format!(
        "the configuration is invalid: {}, line {line}, column {column}, key `{key}`: \
         {unknown}{elsewhere}",
        path.display()
    );
    CliError::new(ErrorClass::Config, what).hint(
        "correct or remove it; `automaton schema` prints what the file may hold; nothing was \
         changed",
    )
}

/// The JSON Schema of the file.
pub(crate) fn schema() -> Value {
    schemars::schema_for!(ConfigFile).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, message: &str) {
        let failure = parse(Path::new("/h/automaton.json"), text).unwrap_err();
        let line = failure.line();
        assert_eq!(
            line.strip_prefix("the configuration is invalid: /h/automaton.json, "),
            Some(message)
        );
    }

    #[test]
    fn an_error_names_line_column_and_key() {
        check("{\n  \"name\": \"a\",\n  oops\n}", "line 3, column 3: key must be a string");
        check("{", "line 1, column 1: EOF while parsing an object");
        check("[]", "line 1, column 0: invalid type: sequence, expected a map");
        check(
            "{\n \"maxTurnsPerCycle\": 0}",
            "line 2, column 23, key `maxTurnsPerCycle`: invalid value: integer `0`, expected a number from 1 to 1000000000",
        );
        check(
            "{\"treasuryPolicy\": {\"maxSingleTransferCents\": \"5\"}}",
            "line 1, column 49, key `treasuryPolicy.maxSingleTransferCents`: invalid type: string \"5\", expected u64",
        );
        check(
            "{\"logLevel\": \"loud\"}",
            "line 1, column 19, key `logLevel`: unknown variant `loud`, expected one of `debug`, `info`, `warn`, `error`",
        );
        let brain = |more: &str| {
            format!("{{\"brain\": {{\"kind\": \"http\", \"url\": \"http://h\", {more}}}}}")
        };
        for (more, wrong) in [
            (
                "\"contextTokens\": 7",
                "invalid value: integer `7`, expected a number from 1024 to 100000000",
            ),
            (
                "\"maxOutputTokens\": 0",
                "invalid value: integer `0`, expected a number from 64 to 10000000",
            ),
            (
                "\"prices\": {\"inputPerMillion\": 1.25, \"outputPerMillion\": 1}",
                "expected US dollars as text, such as \"1.25\", or a whole number",
            ),
            ("\"prices\": {\"inputPerMillion\": 1}", "missing field `outputPerMillion`"),
            ("\"contextTokens\": \"8k\"", "invalid type: string \"8k\", expected u64"),
            (
                "\"dialect\": \"latin\"",
                "unknown variant `latin`, expected one of `classic`, `plain`, `reasoning`",
            ),
        ] {
            let line = parse(Path::new("x"), &brain(more)).unwrap_err().line();
            assert!(line.contains("key `brain") && line.ends_with(wrong), "{more}: {line}");
        }
    }

    #[test]
    fn sub_objects_are_merged_over_the_defaults() {
        let text = r#"{"treasuryPolicy": {"minimumReserveCents": 7}, "modelStrategy": {}}"#;
        let read = parse(Path::new("x"), text).unwrap();
        let shown = serde_json::to_value(&read.treasury_policy).unwrap();
        assert_eq!(shown["minimumReserveCents"], 7);
        assert_eq!(shown["maxDailyTransferCents"], 25_000);
        assert!(!read.treasury_policy.limits().gives_alone, "its own wish is confirmed");
        let text = r#"{"treasuryPolicy": {"requireConfirmationOfOwnTransfers": false}}"#;
        assert!(parse(Path::new("x"), text).unwrap().treasury_policy.limits().gives_alone);
        assert_eq!(read.model_strategy.unwrap().inference_model, "gpt-5.2");
    }

    #[test]
    fn an_unknown_key_is_refused_at_every_depth_with_its_place_and_its_correction() {
        check(
            "{\n  \"name\": \"a\",\n  \"brian\": {}\n}",
            "line 3, column 3, key `brian`: unknown key \"brian\". Did you mean \"brain\"?",
        );
        check(
            "{\"treasuryPolicy\":\n {\"maxInferenceDailyCent\": 100}}",
            "line 2, column 3, key `treasuryPolicy.maxInferenceDailyCent`: unknown key \
             \"maxInferenceDailyCent\". Did you mean \"maxInferenceDailyCents\"?",
        );
        check(
            "{\"brain\": {\"kind\": \"http\", \"url\": \"http://h\",\n \"contextToken\": 9}}",
            "line 2, column 2, key `brain.contextToken`: unknown key \"contextToken\". Did you \
             mean \"contextTokens\"?",
        );
        check(
            "{\"brain\": {\"kind\": \"http\", \"url\": \"http://h\", \"prices\": {\"inputPerMillion\": 1, \
             \"outputPerMillion\": 1, \"cachdPerMillion\": 1}}}",
            "line 1, column 103, key `brain.prices.cachdPerMillion`: unknown key \
             \"cachdPerMillion\". Did you mean \"cachedPerMillion\"?",
        );
        check(
            "{\"egress\": {\"credentials\": [{\"orign\": 1}]}}",
            "line 1, column 30, key `egress.credentials[0].orign`: unknown key \"orign\". Did you \
             mean \"origin\"?",
        );
        check("{\"zeal\": 1}", "line 1, column 2, key `zeal`: unknown key \"zeal\"");
        check(
            "{\"sampling\": {\"maxTurnsPerCycle\": 1}}",
            "line 1, column 15, key `sampling.maxTurnsPerCycle`: unknown key \
             \"maxTurnsPerCycle\"; it belongs at the top of the file",
        );
        for object in ["modelStrategy", "soulConfig", "sampling", "stopLoss", "wakeEnvelope"] {
            let text = format!("{{\"{object}\": {{\"zeal\": 1}}}}");
            let line = parse(Path::new("x"), &text).unwrap_err().line();
            assert!(line.contains(&format!("key `{object}.zeal`: unknown key")), "{line}");
        }
        let network = "{\"networks\": [{\"zeal\": 1}]}";
        let line = parse(Path::new("x"), network).unwrap_err().line();
        assert!(line.contains("key `networks[0].zeal`: unknown key"), "{line}");
    }

    #[test]
    fn a_newer_format_is_refused_before_its_keys_are() {
        let newer = parse(Path::new("x"), r#"{"configVersion": 2, "name": {}}"#).unwrap_err();
        assert!(newer.line().contains("format 2"));
    }

    #[test]
    fn the_published_schema_is_the_one_of_the_code() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/automaton.schema.json");
        let published: Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let message = "run `automaton schema > crates/automaton/schema/automaton.schema.json`";
        assert!(published == schema(), "{message}");
    }
}
