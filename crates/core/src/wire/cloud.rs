//! Pure: the API of a cloud that automatons live from: sign-in, credits,
//! models, registration.
//!
//! Field names are those that clients in the field read. Whole cents are for
//! showing; what is computed with are the fields in microcents, which only our
//! server has. A balance that is missing must never be read as zero.

mod credits;
mod machines;
mod refusals;
mod status;

use crate::model::ModelId;
use alloy_primitives::{B256, b256, keccak256};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::x402::eip3009::{typed_digest, words};
use crate::money::Microcents;

pub use credits::{
    CeilingMessage, CeilingReply, CeilingRequest, EntryKind, HistoryEntry, HistoryReply,
    IDEMPOTENCY_KEY, NOTE_BYTES_MAX, SaleEntry, TRANSFER_CEILING, TransferReply, TransferRequest,
    TransferStatus,
};
pub use machines::{
    AckReply, CreateMachineRequest, DISK_FULL, EgressMetrics, ExecReply, ExecRequest,
    ExposePortRequest, FileEntry, FileEntryKind, FilesReply, MachineReply, MachinesReply,
    MetricsReply, NO_SUCH_MACHINE, NO_WORKERS, PortReply, PortsReply, TUNNEL_NOBODY,
    TUNNEL_PROTOCOL, TUNNEL_TAKEN, TunnelReply, UploadReply, UploadRequest,
};
pub use refusals::{
    MessagesError, MessagesErrorBody, ModelError, ModelErrorBody, ResponsesErrorEvent,
    UnsupportedFields,
};
pub use status::{STATUS_TEXT_BYTES_MAX, StatusReply, StatusReport};

/// Prefix of an API key.
pub const KEY_PREFIX: &str = "cnwy_k_";
/// The amounts for which credits can be bought, in US dollars.
pub const TIERS_USD: [u32; 6] = [5, 25, 100, 500, 1000, 2500];
/// The code of the refusal for want of credits.
pub const INSUFFICIENT_CREDITS: &str = "INSUFFICIENT_CREDITS";
/// The code of the refusal of what is no request that could be carried out.
pub const INVALID_REQUEST: &str = "INVALID_REQUEST";

/// The code of a refusal: the server behind the cloud does not take the cloud's key.
pub const UPSTREAM_KEY: &str = "UPSTREAM_KEY";
/// The code of a refusal: there is no such model, here or behind the cloud.
pub const MODEL_NOT_FOUND: &str = "MODEL_NOT_FOUND";
/// The code of a refusal: the model cannot call tools.
pub const TOOLS_UNSUPPORTED: &str = "TOOLS_UNSUPPORTED";
/// The code of a refusal: prompt and answer do not fit into the model's window.
pub const CONTEXT_LENGTH_EXCEEDED: &str = "CONTEXT_LENGTH_EXCEEDED";

/// The header, with the value `true`, of an answer that its client has got
/// before: the same question under the same name is the same call, and costs once.
pub const REPLAYED: &str = "idempotent-replayed";

/// The code of a refusal: no call came with this key.
pub const NO_SUCH_CALL: &str = "NO_SUCH_CALL";

/// The reply to `GET /v1/calls/{key}`: what became of the newest call of a model that came with
/// this `Idempotency-Key`, for a client that did not hear its answer. The fields are there once
/// it is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallReply {
    /// State of the call.
    pub state: CallState,
    /// Charge.
    #[serde(default)]
    pub charged_microcents: Microcents,
    /// Tokens of the prompt.
    #[serde(default)]
    pub prompt_tokens: u32,
    /// Prompt tokens that came from a cache.
    #[serde(default)]
    pub cached_tokens: u32,
    /// Tokens of the answer.
    #[serde(default)]
    pub completion_tokens: u32,
    /// True if the cloud estimated the tokens.
    #[serde(default)]
    pub estimated: bool,
}

/// State of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// Under way.
    Open,
    /// Charged.
    Settled,
    /// It failed, and cost nothing.
    Released,
}

/// The reply to `POST /v1/auth/nonce`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NonceReply {
    /// Letters and digits, to be signed once.
    pub nonce: String,
}

/// The body of `POST /v1/auth/verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyRequest {
    /// The sign-in message, byte for byte as it was signed.
    pub message: String,
    /// Its signature in hexadecimal.
    pub signature: String,
    /// `solana`, or absent for Ethereum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain_type: Option<String>,
}

/// The reply to it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyReply {
    /// Good for making an API key, for some minutes.
    pub access_token: String,
}

/// The body of `POST /v1/auth/api-keys`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiKeyRequest {
    /// Purpose of the key, in words.
    pub name: String,
}

/// The reply to it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiKeyReply {
    /// The key, which is shown only here.
    pub key: String,
    /// Its beginning, for telling keys apart.
    pub key_prefix: String,
}

/// The reply to `GET /v1/credits/balance`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BalanceReply {
    /// Whole cents, rounded down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance_cents: Option<i64>,
    /// The other name of it, which some servers use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits_cents: Option<i64>,
    /// The balance exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance_microcents: Option<Microcents>,
    /// The part of it that is set aside for calls under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_microcents: Option<Microcents>,
}

impl BalanceReply {
    /// The balance in whole cents; `None` when the reply does not say it.
    #[must_use]
    pub fn cents(&self) -> Option<i64> {
        self.balance_cents.or(self.credits_cents)
    }
}

/// The reply to `GET /v1/credits/pricing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PricingReply {
    /// Machines for rent.
    #[serde(alias = "pricing")]
    pub tiers: Vec<MachineTier>,
    /// The amounts for which credits can be bought, in US dollars.
    #[serde(default)]
    pub purchases_usd: Vec<u32>,
}

/// A machine for rent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineTier {
    /// Its name.
    pub name: String,
    /// Processors.
    pub vcpu: u32,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// Disk in GiB.
    pub disk_gb: u32,
    /// The price of a month.
    pub monthly_cents: i64,
}

/// The reply to `GET /v1/models`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModelsReply {
    /// `list`.
    #[serde(default)]
    pub object: String,
    /// The models.
    #[serde(alias = "models")]
    pub data: Vec<ModelRow>,
}

/// One model. Readers in the field differ in what they look for, so there is
/// more than one spelling of some things.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModelRow {
    /// Its id.
    #[schemars(with = "String")]
    pub id: ModelId,
    /// `model`.
    #[serde(default)]
    pub object: String,
    /// Since when it is offered, in seconds since the epoch: since its cloud was started.
    #[serde(default)]
    pub created: i64,
    /// Operator of the model.
    #[serde(default)]
    pub owned_by: String,
    /// `other`: readers disable models of providers that they believe to know.
    #[serde(default)]
    pub provider: String,
    /// True if the model answers.
    #[serde(default)]
    pub available: bool,
    /// Its name for people.
    #[serde(default)]
    pub display_name: String,
    /// Most tokens of prompt and answer together.
    #[serde(default)]
    pub context_window: u32,
    /// Most tokens of an answer.
    #[serde(default)]
    pub max_tokens: u32,
    /// True if it calls tools.
    #[serde(default)]
    pub supports_tools: bool,
    /// True if it reads pictures.
    #[serde(default)]
    pub supports_vision: bool,
    /// Name of the token limit in a request.
    #[serde(default)]
    pub parameter_style: String,
    /// True if it needs more guidance than others. Only our server says so.
    #[serde(default)]
    pub weak: bool,
    /// Note for a person. Only our server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Prices.
    pub pricing: ModelPricing,
}

/// The price of a model, in four spellings.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModelPricing {
    /// US dollars per million tokens of the prompt, as a decimal.
    #[schemars(with = "serde_json::Number")]
    pub input_per_million: Box<RawValue>,
    /// US dollars per million tokens of the answer.
    #[schemars(with = "serde_json::Number")]
    pub output_per_million: Box<RawValue>,
    /// The first again, under its other name.
    #[schemars(with = "serde_json::Number")]
    pub input_per_1m_tokens_usd: Box<RawValue>,
    /// The second again.
    #[schemars(with = "serde_json::Number")]
    pub output_per_1m_tokens_usd: Box<RawValue>,
    /// Hundredths of a cent per thousand tokens of the prompt.
    #[schemars(with = "serde_json::Number")]
    pub input_per_1k: Box<RawValue>,
    /// Hundredths of a cent per thousand tokens of the answer.
    #[schemars(with = "serde_json::Number")]
    pub output_per_1k: Box<RawValue>,
    /// Microcents per million tokens of the prompt: exact.
    pub input_microcents_per_million: Microcents,
    /// Microcents per million tokens of the prompt that a cache held.
    pub cached_microcents_per_million: Microcents,
    /// Microcents per million tokens of the prompt that were written into a cache, where that
    /// costs more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_microcents_per_million: Option<Microcents>,
    /// Microcents per million tokens of the answer.
    pub output_microcents_per_million: Microcents,
}

impl ModelPricing {
    /// The spellings of prices per million tokens. Prices are never negative.
    ///
    /// # Errors
    /// Never for numbers; `serde_json` checks the text once more.
    pub fn new(
        input: Microcents,
        cached: Microcents,
        cache_write: Option<Microcents>,
        output: Microcents,
    ) -> Result<Self, serde_json::Error> {
        // A dollar has 10⁸ microcents; a hundredth of a cent has 10⁴, and a
        // million tokens have a thousand thousands.
        let (usd, per_1k) = (|price| number(price, 8), |price| number(price, 7));
        Ok(Self {
            input_per_million: usd(input)?,
            output_per_million: usd(output)?,
            input_per_1m_tokens_usd: usd(input)?,
            output_per_1m_tokens_usd: usd(output)?,
            input_per_1k: per_1k(input)?,
            output_per_1k: per_1k(output)?,
            input_microcents_per_million: input,
            cached_microcents_per_million: cached,
            cache_write_microcents_per_million: cache_write,
            output_microcents_per_million: output,
        })
    }
}

/// A scaled amount as a JSON number, without passing through a float.
fn number(amount: Microcents, places: usize) -> Result<Box<RawValue>, serde_json::Error> {
    let digits = format!("{:0width$}", amount.units().unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    RawValue::from_string(format!("{whole}{point}{fraction}"))
}

/// The reply to a purchase of credits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PurchaseReply {
    /// The credits that the payment adds.
    pub credits_cents: i64,
    /// The same.
    pub amount_cents: i64,
    /// The balance of the recipient when it was credited; before that, when the payment came.
    pub balance_cents: i64,
    /// The transaction; empty when there is none yet.
    pub transaction: String,
    /// State of the purchase.
    pub status: PurchaseStatus,
    /// Reason of a delay, if the cloud knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_up: Option<String>,
}

/// State of a purchase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PurchaseStatus {
    /// Paid and credited.
    Settled,
    /// Accepted; the chain has not confirmed it yet.
    Pending,
}

/// The body of every refusal, but for those of models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// For people. Of a refusal in the form of [`ModelErrorBody`] its message is read.
    #[serde(deserialize_with = "error_words")]
    #[schemars(with = "String")]
    pub error: String,
    /// For programs; some servers have none.
    #[serde(default)]
    pub code: String,
    /// Numbers, where there are some.
    #[serde(default)]
    pub details: ErrorDetails,
    /// The numbers in words, where clients look for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The reply to `POST /v1/messages/count_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenCountReply {
    /// Estimated tokens of the prompt, by its bytes.
    pub input_tokens: u32,
}

/// The words of a refusal in either form.
fn error_words<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        Plain(String),
        Within { message: String },
    }
    Words::deserialize(from).map(|words| match words {
        Words::Plain(text) | Words::Within { message: text } => text,
    })
}

/// The numbers of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetails {
    /// Required cents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_cents: Option<i64>,
    /// Current balance in cents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_balance_cents: Option<i64>,
    /// Required amount exactly, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_microcents: Option<Microcents>,
    /// Balance that is not set aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_microcents: Option<Microcents>,
    /// Balance that is set aside for running calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_microcents: Option<Microcents>,
    /// Transfer ceiling for 24 hours, in cents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_cents: Option<i64>,
    /// Cents transferred in the last 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transferred_cents: Option<i64>,
}

impl ErrorBody {
    /// The refusal for want of credits.
    #[must_use]
    pub fn insufficient(required_cents: i64, current_cents: i64) -> Self {
        Self {
            error: "Insufficient credits".to_owned(),
            code: INSUFFICIENT_CREDITS.to_owned(),
            details: ErrorDetails {
                required_cents: Some(required_cents),
                current_balance_cents: Some(current_cents),
                ..ErrorDetails::default()
            },
            detail: Some(format!(
                "Minimum balance of {required_cents} cents required. Current balance: \
                 {current_cents} cents."
            )),
        }
    }
}

/// The body of `POST /v1/automatons/register`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegistrationRequest {
    /// The automaton's id.
    pub automaton_id: String,
    /// Its wallet, as it writes it.
    pub automaton_address: String,
    /// Its creator's wallet, as it writes it.
    pub creator_address: String,
    /// Its name.
    pub name: String,
    /// Its description of itself.
    pub bio: String,
    /// keccak256 of its genesis prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub genesis_prompt_hash: Option<String>,
    /// Chosen by the client.
    pub nonce: String,
    /// keccak256 of the fields as compact JSON with sorted keys.
    #[schemars(with = "String")]
    pub payload_hash: B256,
    /// The automaton's signature of it as typed data, in hexadecimal.
    pub signature: String,
    /// `solana`, or absent for Ethereum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain_type: Option<String>,
}

/// Input of the payload hash. The order of the fields is part of it.
#[derive(Serialize)]
struct CanonicalRegistration<'a> {
    automaton_address: &'a str,
    automaton_id: &'a str,
    bio: &'a str,
    creator_address: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    genesis_prompt_hash: Option<&'a str>,
    name: &'a str,
}

/// The separator of the domain `{name: "AIWS Automaton", version: "1", chainId:
/// 8453}`, which names no contract.
const REGISTER_DOMAIN: B256 =
    b256!("f174d30d291149dc9209f05853a347fae3907388560f47e14ec80ddc29461ec4");
/// keccak256 of `Register(string automatonId,string nonce,bytes32 payloadHash)`.
const REGISTER_TYPEHASH: B256 =
    b256!("2426dca87e180bb323c95ebbfe526efede5f8c0f0c8e3ff9e8b60685f80afc39");

impl RegistrationRequest {
    /// keccak256 of the fields as compact JSON with sorted keys.
    ///
    /// # Errors
    /// Never for text; `serde_json` could in principle fail.
    pub fn computed_hash(&self) -> Result<B256, serde_json::Error> {
        let canonical = CanonicalRegistration {
            automaton_address: &self.automaton_address,
            automaton_id: &self.automaton_id,
            bio: &self.bio,
            creator_address: &self.creator_address,
            genesis_prompt_hash: self.genesis_prompt_hash.as_deref(),
            name: &self.name,
        };
        serde_json::to_vec(&canonical).map(keccak256)
    }

    /// The hash that the automaton signs, over the payload hash that it sent.
    #[must_use]
    pub fn digest(&self) -> B256 {
        let contents = words(&[
            REGISTER_TYPEHASH,
            keccak256(self.automaton_id.as_bytes()),
            keccak256(self.nonce.as_bytes()),
            self.payload_hash,
        ]);
        typed_digest(REGISTER_DOMAIN, contents)
    }
}

/// The reply to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegistrationReply {
    /// The automaton as it is registered.
    pub automaton: RegisteredAutomaton,
}

/// A registered automaton.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegisteredAutomaton {
    /// Its id.
    pub automaton_id: String,
    /// Its wallet.
    pub automaton_address: String,
    /// Its name.
    pub name: String,
    /// `registered`.
    pub status: String,
}

/// The reply to `GET /health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `healthy`.
    pub status: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden() -> RegistrationRequest {
        RegistrationRequest {
            automaton_id: "auto-1".to_owned(),
            automaton_address: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".to_owned(),
            creator_address: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".to_owned(),
            name: "Ada".to_owned(),
            bio: String::new(),
            genesis_prompt_hash: None,
            nonce: "7f8f5c1e-1c1d-4c0e-9b39-2d0f7a2f1b11".to_owned(),
            payload_hash: b256!("7e86c0721e51da713361c03f0916529c1a92c7bbdbf023d6515b4546b5785479"),
            signature: String::new(),
            chain_type: None,
        }
    }

    #[test]
    fn registers_with_the_bytes_of_other_programs() {
        let plain = golden();
        assert_eq!(plain.computed_hash().unwrap(), plain.payload_hash);
        assert_eq!(
            plain.digest(),
            b256!("d0ddc42fb812b112289ac2559037d8e9f54b3c9a9cf27cd29c641ade9bd48574")
        );
        let genesis = keccak256("You are Ada.").to_string();
        let with = RegistrationRequest { genesis_prompt_hash: Some(genesis), ..golden() };
        assert_eq!(
            with.computed_hash().unwrap(),
            b256!("378a2ad74a3f4b3fe1f6f5a67d4d417ca5c4c5dca3d302b7c90c6462ec25ecc4")
        );
    }

    #[test]
    fn the_typed_data_is_named_as_it_says() {
        let text = "Register(string automatonId,string nonce,bytes32 payloadHash)";
        assert_eq!(keccak256(text), REGISTER_TYPEHASH);
        let domain = words(&[
            keccak256("EIP712Domain(string name,string version,uint256 chainId)"),
            keccak256("AIWS Automaton"),
            keccak256("1"),
            B256::left_padding_from(&8453_u64.to_be_bytes()),
        ]);
        assert_eq!(domain, REGISTER_DOMAIN);
    }

    #[test]
    fn a_balance_that_is_missing_is_not_zero() {
        let read = |text: &str| serde_json::from_str::<BalanceReply>(text).unwrap().cents();
        assert_eq!(read(r#"{"balance_cents":7,"credits_cents":9}"#), Some(7));
        assert_eq!(read(r#"{"credits_cents":9}"#), Some(9));
        assert_eq!(read(r#"{"amount":9}"#), None);
    }

    #[test]
    fn prices_are_decimals_in_every_spelling() {
        let unit = Microcents::new;
        let pricing = ModelPricing::new(unit(18_000_000), unit(1_800_000), None, unit(140_000_000));
        let json = serde_json::to_string(&pricing.unwrap()).unwrap();
        assert!(
            json.starts_with(r#"{"input_per_million":0.18,"output_per_million":1.4,"#),
            "{json}"
        );
        assert!(json.contains(r#""input_per_1k":1.8,"output_per_1k":14,"#), "{json}");
        let back: ModelPricing = serde_json::from_str(&json).unwrap();
        assert_eq!(back.output_microcents_per_million, unit(140_000_000));
    }

    #[test]
    fn a_refusal_is_read_in_either_form() {
        let inner = r#"{"message":"no","type":"t","code":"c","param":null}"#;
        for error in [r#""no""#, inner] {
            let told: ErrorBody =
                serde_json::from_str(&format!(r#"{{"error":{error},"code":"X"}}"#)).unwrap();
            assert_eq!((told.error.as_str(), told.code.as_str()), ("no", "X"));
        }
        assert!(serde_json::from_str::<ErrorBody>(r#"{"error":7}"#).is_err());
    }

    #[test]
    fn the_refusal_for_want_of_credits_has_its_bytes() {
        let json = serde_json::to_string(&ErrorBody::insufficient(10, 0)).unwrap();
        assert_eq!(
            json,
            r#"{"error":"Insufficient credits","code":"INSUFFICIENT_CREDITS","details":{"required_cents":10,"current_balance_cents":0},"detail":"Minimum balance of 10 cents required. Current balance: 0 cents."}"#
        );
    }
}
