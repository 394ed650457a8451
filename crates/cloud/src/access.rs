//! Sign-in, access tokens and API keys.
//!
//! Tokens and keys are derived from the server's secret and from what the client proved. A retried
//! request therefore gets the same one, although only hashes are stored. Secrets are compared by
//! looking up their hashes. A message signed for another server must never be accepted: its URI
//! names the server it was signed for.

use std::sync::Arc;

use alloy_primitives::{Address, eip191_hash_message, hex};
use automaton_core::entropy::Entropy;
use automaton_core::time::{Span, Timestamp};
use automaton_core::wire::cloud::{ApiKeyReply, KEY_PREFIX, VerifyRequest};
use automaton_core::wire::sign_in::{SignIn, SignInError};
use automaton_net::{Origin, Url};
use automaton_sqlite::chain::{CanonicalRow, Hash};
use axum::http::{HeaderMap, header};

use crate::billing::facilitator::signer;
use crate::db::{Db, DbError, KeyOutcome, NewKey, SignInAttempt, SignInOutcome};
use crate::error::{ApiError, OperatorNotifier};

/// The lifetime of a nonce.
const NONCE_LIVES: Span = Span::from_secs(300);
/// The largest difference between the message's time and ours.
const ISSUED_WITHIN: Span = Span::from_secs(300);
/// The lifetime of an access token.
const TOKEN_LIVES: Span = Span::from_secs(900);
/// The time within which the same message and signature give the same token again.
const REPLAY: Span = Span::from_secs(60);
/// Drawn characters of a nonce, of 62 kinds: 143 bits.
const NONCE_CHARS: usize = 24;
/// Digits of the time until which a nonce is good, before the drawn characters.
const END_CHARS: usize = 12;
/// Digits of the code after them: 96 bits, for a nonce that no client finds too long.
const CODE_CHARS: usize = 24;
/// Characters of a key that are kept in the open, to tell keys apart.
const PREFIX_CHARS: usize = KEY_PREFIX.len() + 6;
/// The end of the first line of a message that a Solana account signs.
const SOLANA: &str = " wants you to sign in with your Solana account:";
/// The longest name of a key, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// The dependencies of sign-in.
pub(crate) struct SignInContext {
    pub(crate) db: Db,
    pub(crate) report: OperatorNotifier,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// The server's own secret.
    pub(crate) secret: [u8; 32],
    /// Our own origin, as clients spell it.
    pub(crate) origin: Origin,
    /// The origin that programs in machines spell, where there are machines. Their operator can
    /// read the keys of such a program anyway, so a message for it proves no less.
    pub(crate) inside: Option<Origin>,
    /// Domains in whose name messages may ask, besides our own host.
    pub(crate) domains: Vec<String>,
}

/// The sender of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) wallet: Address,
    /// The hash of the key.
    pub(crate) key: Hash,
}

impl SignInContext {
    /// A text that nobody has had before.
    pub(crate) fn fresh(&self) -> String {
        const KINDS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let draw = || usize::try_from(self.entropy.below(62)).unwrap_or(0);
        (0..NONCE_CHARS).map(|_| char::from(KINDS[draw()])).collect()
    }

    /// Returns a fresh nonce. It says itself until when it is good, under a code that only this
    /// server can make: nothing is stored until a message with it comes back signed, so nobody
    /// can take the nonces of others.
    pub(crate) fn nonce(&self, now: Timestamp) -> String {
        let ends = now.after(NONCE_LIVES).as_millis();
        let said = format!("{ends:0width$x}{}", self.fresh(), width = END_CHARS);
        let code = self.code_of(&said);
        said + &code
    }

    /// Returns the code that proves what a nonce says.
    fn code_of(&self, said: &str) -> String {
        let row = CanonicalRow::new("automaton cloud nonce").text(said).bytes(&self.secret);
        let mut code = row.hash().to_string();
        code.truncate(CODE_CHARS);
        code
    }

    /// Returns the end of a nonce's validity, if this cloud issued it.
    fn end_of(&self, nonce: &str) -> Option<Timestamp> {
        let (said, code) = nonce.split_at_checked(END_CHARS + NONCE_CHARS)?;
        // The hashes are compared, so that the time that it takes tells nothing of the code.
        let is_ours = Hash::of(code.as_bytes()) == Hash::of(self.code_of(said).as_bytes());
        let end = said.get(..END_CHARS).filter(|_| is_ours)?;
        // silent-ok: what is no number was not made here.
        i64::from_str_radix(end, 16).ok().map(Timestamp::from_millis)
    }

    /// Exchanges a signed message for an access token.
    pub(crate) async fn verify(
        &self,
        request: &VerifyRequest,
        now: Timestamp,
    ) -> Result<String, ApiError> {
        // Clients of Solana say so, or their message does, in either of its two layouts.
        let is_other = request.chain_type.as_deref().is_some_and(|chain| chain != "evm");
        if is_other || request.message.lines().next().is_some_and(|it| it.ends_with(SOLANA)) {
            return Err(ApiError::invalid("only Ethereum accounts can sign in here"));
        }
        let invalid = |error: SignInError| ApiError::invalid(error.to_string());
        let message: SignIn = request.message.parse().map_err(invalid)?;
        self.check(&message, now).map_err(ApiError::unauthorized)?;
        let signature = hex::decode(&request.signature).unwrap_or_default();
        if signer(&signature, eip191_hash_message(&request.message)) != Some(message.address) {
            return Err(ApiError::unauthorized("the signature is not the account's"));
        }
        let proof = |name| CanonicalRow::new(name).text(&request.message).bytes(&signature);
        let bad_nonce = || ApiError::unauthorized("Invalid or expired nonce");
        let nonce_ends = self.end_of(&message.nonce).ok_or_else(bad_nonce)?;
        let token = proof("automaton cloud access token").bytes(&self.secret).hash().to_string();
        let attempt = SignInAttempt {
            nonce: message.nonce,
            nonce_ends,
            proof: proof("automaton cloud proof").hash(),
            wallet: message.address,
            token: Hash::of(token.as_bytes()),
            lives: TOKEN_LIVES,
            replay: REPLAY,
        };
        match self.db.sign_in(attempt).await.map_err(|error| self.failed(&error))? {
            SignInOutcome::Granted => Ok(token),
            SignInOutcome::BadNonce => Err(bad_nonce()),
        }
    }

    fn check(&self, message: &SignIn, now: Timestamp) -> Result<(), &'static str> {
        // silent-ok: what is no URL is not ours.
        let origin = Url::parse(&message.uri).ok().and_then(|url| Origin::from_url(&url).ok());
        let is_ours =
            |origin: &Origin| *origin == self.origin || Some(origin) == self.inside.as_ref();
        let Some(origin) = origin.filter(is_ours) else {
            return Err("the message was signed for another server");
        };
        let own = origin.to_string();
        let own = own.split_once("://").map_or(own.as_str(), |(_, host)| host);
        let asked = message.domain.as_str();
        if asked != own && !self.domains.iter().any(|domain| domain == asked) {
            return Err("the message was asked for in the name of another domain");
        }
        let issued = message.issued_at;
        if issued < now.before(ISSUED_WITHIN) || issued > now.after(ISSUED_WITHIN) {
            return Err("the message was made at another time");
        }
        let over = message.expiration.is_some_and(|end| end <= now);
        if over || message.not_before.is_some_and(|begin| begin > now) {
            return Err("the message is not valid now");
        }
        Ok(())
    }

    /// The one API key of an access token.
    pub(crate) async fn api_key(&self, token: &str, name: &str) -> Result<ApiKeyReply, ApiError> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let sentence = format!("the name must have 1 to {NAME_BYTES_MAX} bytes");
            return Err(ApiError::invalid(sentence));
        }
        let derived = CanonicalRow::new("automaton cloud API key").text(token).text(name);
        let key = format!("{KEY_PREFIX}{}", derived.bytes(&self.secret).hash());
        let key_prefix = key[..PREFIX_CHARS].to_owned();
        let new = NewKey {
            token: Hash::of(token.as_bytes()),
            hash: Hash::of(key.as_bytes()),
            prefix: key_prefix.clone(),
            name: name.to_owned(),
        };
        match self.db.create_api_key(new).await.map_err(|error| self.failed(&error))? {
            KeyOutcome::Made | KeyOutcome::Again => Ok(ApiKeyReply { key, key_prefix }),
            KeyOutcome::Spent => Err(ApiError::conflict("this access token has made its API key")),
            KeyOutcome::BadToken => Err(ApiError::unauthorized("Invalid or expired access token")),
        }
    }

    /// Returns the sender of a request, by its API key.
    pub(crate) async fn caller(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        self.owner(credential(headers)).await
    }

    /// Returns the owner of an API key.
    pub(crate) async fn owner(&self, key: Option<&str>) -> Result<Caller, ApiError> {
        let needed = || ApiError::unauthorized("an API key is needed");
        let key = key.ok_or_else(needed)?;
        let hash = Hash::of(key.as_bytes());
        let wallet = self.db.key_owner(hash).await.map_err(|error| self.failed(&error))?;
        let caller = wallet.map(|wallet| Caller { wallet, key: hash });
        caller.ok_or_else(|| ApiError::unauthorized("Invalid API key"))
    }

    fn failed(&self, error: &DbError) -> ApiError {
        ApiError::of_db(&self.report, error)
    }
}

/// The credential of a request where clients of Anthropic ask, who have a header of their own for it.
pub(crate) fn messages_credential(headers: &HeaderMap) -> Option<&str> {
    // silent-ok: a header that is no text is no credential.
    let own = headers.get("x-api-key").and_then(|value| value.to_str().ok()).map(str::trim);
    own.filter(|key| !key.is_empty()).or_else(|| credential(headers))
}

/// The credential of a request: bare, or after the word `Bearer`.
pub(crate) fn credential(headers: &HeaderMap) -> Option<&str> {
    // silent-ok: a header that is no text is no credential.
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let bare = match value.split_once(' ') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("bearer") => rest.trim(),
        _ => value,
    };
    (!bare.is_empty()).then_some(bare)
}
