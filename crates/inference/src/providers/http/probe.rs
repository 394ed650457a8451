//! Properties that a server states before the first request: models, windows, longest answers and
//! prices.
//!
//! Every kind of server tells that elsewhere, so several places are asked at once, for a
//! moment; one that says nothing is no error. What is found is a claim, which
//! [`catalogue::known`](crate::catalogue::merge_claims) weighs. Must never send the key anywhere but
//! to the configured origin, nor read a long answer.

use std::collections::BTreeMap;
use std::time::Duration;

use automaton_core::file_text;
use automaton_core::model::ModelId;
use automaton_core::money::Microcents;
use automaton_net::{Deadlines, Header, HttpClient, HttpMethod, HttpRequest, Url};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ApiAuth, ApiFormat};
use crate::catalogue::{ModelClaims, ModelHosting};
use crate::cost::ModelPrices;
use crate::error::InferenceError;

/// Time for all of it.
const WITHIN: Duration = Duration::from_secs(2);
/// The longest list of models that is read, in bytes.
const BODY_BYTES_MAX: u64 = 8 << 20;
/// Models whose names are kept, and their longest name in bytes.
const LISTED_MAX: usize = 2000;
const NAME_BYTES_MAX: usize = 120;
/// Names that an error lists.
const NEAREST_MAX: usize = 8;
/// Windows that are believed, in tokens.
const WINDOWS: std::ops::RangeInclusive<u64> = 512..=100_000_000;
/// The window that Ollama gives a model where nobody says another, in tokens, unless its
/// machine has much memory.
const OLLAMA_TOKENS: u32 = 4096;
/// The one that it is asked for in its own format where nobody says another: enough for an
/// automaton's prompt, and what a machine at home has memory for.
const OLLAMA_ASKED_TOKENS: u32 = 16_384;

/// Statements of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelListing {
    /// Names of the models that it lists.
    pub listed: Vec<String>,
    /// Claims about the requested models.
    pub claims: BTreeMap<String, ModelClaims>,
}

impl ModelListing {
    /// Returns true if it has a model of this name. Some servers list models with their day, as
    /// `claude-haiku-4-5-20251001`, and also accept the name without it.
    #[must_use]
    pub fn lists(&self, model: &ModelId) -> bool {
        let is_day = |rest: &str| rest.len() == 8 && rest.bytes().all(|byte| byte.is_ascii_digit());
        let is_it = |known: &String| match known.strip_prefix(model.as_str()) {
            // As Ollama writes the one that is meant where none is named.
            Some("" | ":latest") => true,
            Some(rest) => rest.strip_prefix('-').is_some_and(is_day),
            None => false,
        };
        self.listed.iter().any(is_it)
    }

    /// Returns the claims about a model.
    #[must_use]
    pub fn claims_of(&self, model: &ModelId) -> ModelClaims {
        self.claims.get(model.as_str()).copied().unwrap_or_default()
    }
}

/// Asks a server about models. The first is the one that will think.
///
/// # Errors
/// [`InferenceError::BaseUrl`] when the base URL is none.
pub async fn probe(
    client: &HttpClient,
    base_url: &str,
    format: ApiFormat,
    auth: &ApiAuth,
    place: ModelHosting,
    models: &[&str],
) -> Result<ModelListing, InferenceError> {
    let chat = format.url(base_url)?;
    let asked = ServerProbe { client, auth, chat: &chat };
    let first = models.first().copied().unwrap_or_default();
    let (list, at_home) = tokio::join!(asked.list(), async {
        match (format, place) {
            (ApiFormat::Ollama, _) => asked.ollama(first).await,
            // Strangers are not asked for what only servers at home have.
            (ApiFormat::Gemini, _) | (_, ModelHosting::Hosted) => LocalServerInfo::default(),
            (_, ModelHosting::Here | ModelHosting::Own) => asked.at_home(first).await,
        }
    });
    let mut served = ModelListing::default();
    for list in [list, at_home.studio.clone()].into_iter().flatten() {
        read_list(&list, models, &mut served);
    }
    let window = match format {
        ApiFormat::Ollama => at_home.asked_window(),
        _ => at_home.window(first),
    };
    if let Some(window) = window {
        served.claims.entry(first.to_owned()).or_default().context_tokens = Some(window);
    }
    Ok(served)
}

/// The models that a server lists, the most like `wanted` first, as many as an error shows.
pub async fn nearest(
    client: &HttpClient,
    chat: &Url,
    auth: &ApiAuth,
    wanted: &ModelId,
) -> Vec<String> {
    let mut served = ModelListing::default();
    if let Some(list) = (ServerProbe { client, auth, chat }).list().await {
        read_list(&list, &[], &mut served);
    }
    nearest_of(served.listed, wanted.as_str())
}

/// Returns the names that are most similar to one.
pub(super) fn nearest_of(mut names: Vec<String>, wanted: &str) -> Vec<String> {
    names.sort_by_cached_key(|name| (distance(name, wanted), name.clone()));
    names.truncate(NEAREST_MAX);
    names
}

/// Returns the distance of two names: the number of letter pairs that only one of them has.
fn distance(name: &str, wanted: &str) -> usize {
    let pairs = |text: &str| -> Vec<[u8; 2]> {
        let text = text.to_lowercase();
        text.as_bytes().windows(2).map(|pair| [pair[0], pair[1]]).collect()
    };
    let mut left = pairs(name);
    let wanted = pairs(wanted);
    let mut missing = 0;
    for pair in wanted {
        match left.iter().position(|other| *other == pair) {
            Some(at) => drop(left.swap_remove(at)),
            None => missing += 1,
        }
    }
    missing + left.len()
}

/// Returns the address of the model list of a server with this chat address.
pub(super) fn list_of(chat: &Url) -> Option<Url> {
    let full = chat.as_str();
    let beside = |asked: &str| Some(format!("{}models", full.strip_suffix(asked)?));
    let list = match full {
        _ if full.ends_with("/models") => format!("{full}?pageSize=1000"),
        _ if full.ends_with("/api/chat") => format!("{}tags", full.strip_suffix("chat")?),
        _ => ["chat/completions", "messages", "responses"].into_iter().find_map(beside)?,
    };
    list.parse().ok()
}

/// A server that is being asked.
struct ServerProbe<'a> {
    client: &'a HttpClient,
    auth: &'a ApiAuth,
    chat: &'a Url,
}

/// Information of local servers.
#[derive(Default)]
struct LocalServerInfo {
    /// Ollama's `/api/show` of a model.
    show: Option<Value>,
    /// Ollama's `/api/ps`.
    running: Option<Value>,
    /// llama.cpp's `/props`.
    props: Option<Value>,
    /// LM Studio's `/api/v0/models`.
    studio: Option<Value>,
}

impl ServerProbe<'_> {
    /// Asks for the models.
    async fn list(&self) -> Option<Value> {
        self.ask(HttpRequest::new(HttpMethod::Get, list_of(self.chat)?)).await
    }

    /// Reads Ollama's description of a model in its own format.
    async fn ollama(&self, model: &str) -> LocalServerInfo {
        let full = self.chat.as_str();
        let show = full.strip_suffix("chat").and_then(|base| format!("{base}show").parse().ok());
        let show = match show {
            Some(url) => self.ask(show_of(url, model)).await,
            None => None,
        };
        LocalServerInfo { show, ..LocalServerInfo::default() }
    }

    async fn at_home(&self, model: &str) -> LocalServerInfo {
        let url = |path: &str| {
            let mut url = self.chat.clone();
            url.set_path(path);
            url
        };
        let at = |method, path: &str| HttpRequest::new(method, url(path));
        let (show, running, props, studio) = tokio::join!(
            self.ask(show_of(url("/api/show"), model)),
            self.ask(at(HttpMethod::Get, "/api/ps")),
            self.ask(at(HttpMethod::Get, "/props")),
            self.ask(at(HttpMethod::Get, "/api/v0/models")),
        );
        LocalServerInfo { show, running, props, studio }
    }

    /// The JSON that is answered, if any is.
    async fn ask(&self, mut request: HttpRequest) -> Option<Value> {
        request.headers.extend(self.auth.headers());
        request.deadlines = Deadlines { idle: WITHIN, total: WITHIN };
        request.body_bytes_max = BODY_BYTES_MAX;
        // silent-ok: what a server does not say, the catalogue does.
        let response = self.client.request(request).await.ok()?;
        let good = (200..300).contains(&response.status);
        let body = if good { response.body.read_to_end().await.ok()? } else { return None };
        file_text::decode(&body).ok().and_then(|text| serde_json::from_str(text).ok())
    }
}

/// Asks Ollama for a model.
fn show_of(url: Url, model: &str) -> HttpRequest {
    let mut show = HttpRequest::new(HttpMethod::Post, url);
    show.body = json!({ "model": model }).to_string().into_bytes();
    show.headers.push(Header::Open("content-type", "application/json".to_owned()));
    show
}

impl LocalServerInfo {
    /// The window that the model has been given, which may be smaller than its own.
    fn window(&self, model: &str) -> Option<u32> {
        let props = self.props.as_ref().and_then(|props| {
            tokens(props.pointer("/default_generation_settings/n_ctx").or(props.get("n_ctx")))
        });
        props.or_else(|| {
            let (own, set) = self.windows()?;
            // What is longer than what it serves, it cuts off and says nothing.
            Some(set.or_else(|| self.loaded(model)).unwrap_or(OLLAMA_TOKENS).min(own))
        })
    }

    /// The window that Ollama is asked for in its own format.
    fn asked_window(&self) -> Option<u32> {
        let (own, set) = self.windows()?;
        Some(set.unwrap_or(OLLAMA_ASKED_TOKENS).min(own))
    }

    /// The window that Ollama's model could have, and the one that it has been given.
    fn windows(&self) -> Option<(u32, Option<u32>)> {
        let show = self.show.as_ref()?;
        let info = show.get("model_info")?.as_object()?;
        let own = info.iter().find(|(key, _)| key.ends_with(".context_length"));
        let own = tokens(own.map(|(_, value)| value)).unwrap_or(u32::MAX);
        Some((own, show.get("parameters").and_then(Value::as_str).and_then(num_ctx)))
    }

    /// The window of a model that Ollama has loaded.
    fn loaded(&self, model: &str) -> Option<u32> {
        let models = self.running.as_ref()?.get("models")?.as_array()?;
        let same = |row: &&Value| {
            let name = row.get("name").or(row.get("model")).and_then(Value::as_str);
            name.is_some_and(|name| name == model || name.strip_suffix(":latest") == Some(model))
        };
        tokens(models.iter().find(same)?.get("context_length"))
    }
}

/// The `num_ctx` among the parameters of a model, as Ollama writes them: one a line.
fn num_ctx(parameters: &str) -> Option<u32> {
    parameters.lines().find_map(|line| {
        let value = line.trim().strip_prefix("num_ctx")?.trim();
        value.parse().ok().filter(|tokens| WINDOWS.contains(&u64::from(*tokens)))
    })
}

/// Reads a list of models: their names, and what it says of those that are asked about.
pub(super) fn read_list(list: &Value, models: &[&str], served: &mut ModelListing) {
    let rows = ["data", "models"].into_iter().find_map(|key| list.get(key)).unwrap_or(list);
    for row in rows.as_array().into_iter().flatten() {
        let Some(id) = row.get("id").or(row.get("name")).and_then(Value::as_str) else { continue };
        // Gemini's ids begin with what they are.
        let id = id.strip_prefix("models/").unwrap_or(id);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+".contains(c);
        if id.is_empty() || id.len() > NAME_BYTES_MAX || !id.chars().all(plain) {
            continue;
        }
        if served.listed.len() < LISTED_MAX && !served.listed.iter().any(|known| known == id) {
            served.listed.push(id.to_owned());
        }
        let asked =
            models.iter().find(|model| model.strip_prefix("models/").unwrap_or(model) == id);
        if let Some(model) = asked {
            let claims = served.claims.entry((*model).to_owned()).or_default();
            let said = claims_of(row);
            claims.context_tokens = said.context_tokens.or(claims.context_tokens);
            claims.max_output_tokens = said.max_output_tokens.or(claims.max_output_tokens);
            claims.prices = said.prices.or(claims.prices);
        }
    }
}

fn claims_of(row: &Value) -> ModelClaims {
    let first = |names: &[&str]| names.iter().find_map(|name| tokens(row.pointer(name)));
    // What is loaded, or what the chosen provider serves, holds before what could be.
    let window = [
        "/loaded_context_length",
        "/top_provider/context_length",
        "/context_window",
        "/context_length",
        "/max_model_len",
        "/max_context_length",
        "/max_input_tokens",
        "/inputTokenLimit",
    ];
    let longest = [
        "/top_provider/max_completion_tokens",
        "/max_output_tokens",
        "/max_completion_tokens",
        "/max_tokens",
        "/outputTokenLimit",
    ];
    ModelClaims {
        context_tokens: first(&window),
        max_output_tokens: first(&longest),
        prices: row.get("pricing").and_then(prices),
        dialect: None,
    }
}

/// Prices as our clouds write them, or as dollars for one token in text.
fn prices(pricing: &Value) -> Option<ModelPrices> {
    let exact = |name: &str| pricing.get(name)?.as_i64().filter(|n| *n >= 0).map(Microcents::new);
    let dollars = |name: &str| pricing.get(name)?.as_str().and_then(per_million);
    let of = |exact_name: &str, name: &str| exact(exact_name).or_else(|| dollars(name));
    let input = of("input_microcents_per_million", "prompt")?;
    Some(ModelPrices {
        input_per_million: input,
        cached_per_million: of("cached_microcents_per_million", "input_cache_read")
            .unwrap_or(input),
        cache_write_per_million: of("cache_write_microcents_per_million", "input_cache_write"),
        output_per_million: of("output_microcents_per_million", "completion")?,
    })
}

/// Microcents for a million tokens from dollars for one, as `0.00000125`, rounded up.
fn per_million(text: &str) -> Option<Microcents> {
    const PLACES: usize = 14;
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digit = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digit(whole) || !digit(rest) {
        return None;
    }
    let kept = rest.get(..PLACES).unwrap_or(rest);
    let more = rest.len() > PLACES && rest[PLACES..].bytes().any(|byte| byte != b'0');
    let units: i64 = format!("{whole}{kept:0<PLACES$}").parse().ok()?;
    units.checked_add(i64::from(more)).map(Microcents::new)
}

fn tokens(value: Option<&Value>) -> Option<u32> {
    let tokens = value?.as_u64().filter(|tokens| WINDOWS.contains(tokens))?;
    u32::try_from(tokens).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(row: &Value) -> (Option<u32>, Option<u32>) {
        let mut served = ModelListing::default();
        read_list(&json!({ "data": [row] }), &["m"], &mut served);
        let ModelClaims { context_tokens, max_output_tokens, .. } = served.claims_of(&"m".into());
        (context_tokens, max_output_tokens)
    }

    #[test]
    fn a_model_that_is_listed_by_its_day_is_there_without_it() {
        let listed = ["claude-haiku-4-5-20251001", "gpt-5-mini"].map(str::to_owned).to_vec();
        let served = ModelListing { listed, ..ModelListing::default() };
        for (name, wanted) in [
            ("claude-haiku-4-5", true),
            ("claude-haiku-4-5-20251001", true),
            ("gpt-5-mini", true),
            ("claude-haiku-4", false),
            ("claude-haiku", false),
            ("gpt-5", false),
        ] {
            assert_eq!(served.lists(&name.into()), wanted, "{name}");
        }
    }

    #[test]
    fn each_kind_of_server_tells_its_window_elsewhere() {
        let check = |row: Value, wanted| assert_eq!(claims(&row), wanted, "{row}");
        check(json!({"id": "m"}), (None, None));
        check(
            json!({"id": "m", "context_window": 131_072, "max_completion_tokens": 8192}),
            (Some(131_072), Some(8192)),
        );
        check(json!({"id": "m", "max_model_len": 32_768}), (Some(32_768), None));
        check(
            json!({"id": "m", "max_context_length": 32_768, "loaded_context_length": 4096}),
            (Some(4096), None),
        );
        let router = json!({"context_length": 100_000, "max_completion_tokens": null});
        check(
            json!({"id": "m", "context_length": 200_000, "top_provider": router}),
            (Some(100_000), None),
        );
        check(json!({"id": "models/m", "max_tokens": 4096}), (None, Some(4096)));
        check(json!({"id": "m", "context_window": 1}), (None, None));
        check(json!({"id": "m", "context_window": "8192", "context_length": -1}), (None, None));
        check(json!({"id": "other", "context_window": 8192}), (None, None));
    }

    #[test]
    fn ollama_is_asked_for_what_it_serves_and_not_for_what_the_model_could() {
        let show = |parameters: &str| json!({"parameters": parameters, "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960}});
        let running = json!({"models": [{"name": "q:latest", "context_length": 16_384}]});
        let window = |show: Value, running: Option<&Value>| {
            let at_home = LocalServerInfo {
                show: Some(show),
                running: running.cloned(),
                ..LocalServerInfo::default()
            };
            at_home.window("q")
        };
        assert_eq!(
            window(show("stop \"x\"\nnum_ctx                        32768"), Some(&running)),
            Some(32_768)
        );
        assert_eq!(window(show("num_ctx 999999"), None), Some(40_960), "no more than it has");
        assert_eq!(window(show(""), Some(&running)), Some(16_384));
        assert_eq!(window(show(""), None), Some(4096));
        assert_eq!(window(json!({"error": "no such model"}), None), None);
        let props = json!({"default_generation_settings": {"n_ctx": 65_536}});
        let llama = LocalServerInfo { props: Some(props), ..LocalServerInfo::default() };
        assert_eq!(llama.window("q"), Some(65_536));
    }

    #[test]
    fn prices_are_read_without_a_float() {
        let units = |text| per_million(text).map(Microcents::units);
        assert_eq!(units("0.00000125"), Some(125_000_000));
        assert_eq!(units("0"), Some(0));
        assert_eq!(units("1"), Some(100_000_000_000_000));
        assert_eq!(units("0.000000000000001"), Some(1), "rounded up");
        for none in ["", "-1", "1e-6", "x", ".5", "99999999999999999999"] {
            assert_eq!(units(none), None, "{none}");
        }
        let router = json!({"prompt": "0.000001", "completion": "0.000004"});
        let read = prices(&router).unwrap();
        assert_eq!(read.cached_per_million, read.input_per_million);
        assert_eq!(read.output_per_million.units(), 400_000_000);
        assert_eq!(prices(&json!({"prompt": "-1", "completion": "-1"})), None);
    }

    #[test]
    fn the_nearest_names_come_first_and_odd_ones_never() {
        let mut served = ModelListing::default();
        let rows: Vec<Value> = ["qwen3:8b", "llama3.3:70b", "qwen3:14b", "a\u{1b}[31m", "x y"]
            .map(|id| json!({ "id": id }))
            .to_vec();
        read_list(&Value::Array(rows), &[], &mut served);
        assert_eq!(nearest_of(served.listed, "qwen3:8"), ["qwen3:8b", "qwen3:14b", "llama3.3:70b"]);
        let many = (0..50).map(|n| format!("m{n}")).collect();
        assert_eq!(nearest_of(many, "m7").len(), 8);
        assert_eq!(nearest_of(vec!["m70".to_owned(), "m7".to_owned()], "m7")[0], "m7");
    }
}
