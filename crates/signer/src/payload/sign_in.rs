//! Pure: sign-in, as EIP-4361 over EIP-191.
//!
//! The text is built here from checked fields (<https://eips.ethereum.org/EIPS/eip-4361>). The
//! audiences are a list given at the start: domain, URI and chain together, so that a server
//! cannot pass on another server's nonce.

use alloy_primitives::{Address, B256, eip191_hash_message};
use automaton_core::time::{Span, Timestamp};
use automaton_core::wire::sign_in::{self, STATEMENT};
use serde::{Deserialize, Serialize};

use crate::error::{SignerRefusal, SignerRefusalCode};

/// The furthest that a sign-in may be from now, and its longest validity.
pub const SIGN_IN_MAX: Span = Span::from_secs(300);

/// The length of a nonce in alphanumerics. EIP-4361 asks for at least eight.
const NONCE_CHARS: std::ops::RangeInclusive<usize> = 8..=64;

/// A server that the automaton may sign in to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audience {
    /// The domain that asks.
    pub domain: String,
    /// The URI that the signature is sent to.
    pub uri: String,
    /// EIP-155 id of the chain.
    pub chain_id: u64,
}

/// The fields of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignInFields {
    /// The server.
    pub audience: Audience,
    /// The server's nonce, 8 to 64 alphanumerics.
    pub nonce: String,
    /// The time of signing: now, give or take [`SIGN_IN_MAX`].
    pub issued_at: Timestamp,
    /// The expiry, at most [`SIGN_IN_MAX`] after `issued_at`. `None` for servers that do not know
    /// this field.
    pub expires_at: Option<Timestamp>,
}

/// A sign-in to a listed audience.
#[derive(Debug)]
pub(crate) struct SignInMessage(sign_in::SignIn);

impl SignInMessage {
    pub(crate) fn new(
        wallet: Address,
        audiences: &[Audience],
        asked: &SignInFields,
        now: Timestamp,
    ) -> Result<Self, SignerRefusal> {
        if !audiences.contains(&asked.audience) {
            let reason = format!("audience: {:?} is not on the list", asked.audience);
            return Err(SignerRefusal::new(SignerRefusalCode::Audience, reason));
        }
        let nonce = &asked.nonce;
        if !NONCE_CHARS.contains(&nonce.len()) || !nonce.bytes().all(|b| b.is_ascii_alphanumeric())
        {
            let reason = format!("nonce: {nonce:?} is not 8 to 64 letters and digits");
            return Err(SignerRefusal::new(SignerRefusalCode::Field, reason));
        }
        let issued = asked.issued_at;
        if issued < now.before(SIGN_IN_MAX) || issued > now.after(SIGN_IN_MAX) {
            let reason = format!("issued_at: {issued} is more than {SIGN_IN_MAX} from now, {now}");
            return Err(SignerRefusal::new(SignerRefusalCode::Field, reason));
        }
        let too_late = |at: &Timestamp| *at <= issued || *at > issued.after(SIGN_IN_MAX);
        if let Some(expires) = asked.expires_at.filter(too_late) {
            let reason = format!(
                "expires_at: {expires} is not within {SIGN_IN_MAX} after issued_at, {issued}"
            );
            return Err(SignerRefusal::new(SignerRefusalCode::Field, reason));
        }
        let Audience { domain, uri, chain_id } = asked.audience.clone();
        Ok(Self(sign_in::SignIn {
            domain,
            address: wallet,
            statement: Some(STATEMENT.to_owned()),
            uri,
            chain_id,
            nonce: nonce.clone(),
            issued_at: issued,
            expiration: asked.expires_at,
            not_before: None,
            request_id: None,
            resources: Vec::new(),
        }))
    }

    /// Returns the text that is signed and sent.
    pub(crate) fn text(&self) -> String {
        self.0.to_string()
    }

    pub(super) fn digest(&self) -> B256 {
        eip191_hash_message(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::golden;
    use crate::payload::Payload;

    const NOW: Timestamp = Timestamp::from_millis(1_767_323_045_678);

    fn audience() -> Audience {
        Audience {
            domain: "conway.tech".to_owned(),
            uri: "https://api.conway.tech/v1/auth/verify".to_owned(),
            chain_id: 8453,
        }
    }

    fn asked() -> SignInFields {
        let nonce = "abcdEFGH12345678".to_owned();
        SignInFields { audience: audience(), nonce, issued_at: NOW, expires_at: None }
    }

    fn message(asked: &SignInFields) -> Result<SignInMessage, SignerRefusal> {
        SignInMessage::new(golden().address(), &[audience()], asked, NOW)
    }

    #[test]
    fn golden_vector() {
        let payload = Payload::SignIn(message(&asked()).unwrap());
        assert_eq!(
            golden().sign(&payload).unwrap().to_string(),
            "0x2791c419bf10eb704bf426e376e631567d17c79484ece94f04da0b87769165eb44c60b9fa436496e\
             078be74bd973c04f1268725e67278dcb3ec516a0c717aecb1c"
        );
    }

    #[test]
    fn an_expiry_follows_the_issue() {
        let expires_at = Some(NOW.after(Span::from_secs(120)));
        let message = message(&SignInFields { expires_at, ..asked() }).unwrap();
        let end =
            "\nIssued At: 2026-01-02T03:04:05.678Z\nExpiration Time: 2026-01-02T03:06:05.678Z";
        assert!(message.text().ends_with(end), "{}", message.text());
    }

    #[test]
    fn what_breaks_a_rule_is_refused_by_name() {
        let check = |change: fn(&mut SignInFields), code: SignerRefusalCode, word: &str| {
            let mut broken = asked();
            change(&mut broken);
            let refusal = message(&broken).unwrap_err();
            assert_eq!(refusal.code, code, "{refusal}");
            assert!(refusal.reason.contains(word), "{refusal}");
        };
        check(
            |it| it.audience.domain = "evil.example".to_owned(),
            SignerRefusalCode::Audience,
            "evil.example",
        );
        check(
            |it| it.audience.uri = "https://evil.example/".to_owned(),
            SignerRefusalCode::Audience,
            "evil.example",
        );
        check(
            |it| it.audience.uri.push_str("\nResources:"),
            SignerRefusalCode::Audience,
            "\\nResources",
        );
        check(|it| it.audience.chain_id = 1, SignerRefusalCode::Audience, "chain_id: 1 ");
        check(|it| it.nonce = "short12".to_owned(), SignerRefusalCode::Field, "nonce");
        check(|it| it.nonce = "a".repeat(65), SignerRefusalCode::Field, "nonce");
        check(|it| it.nonce = "12345678\nURI: x".to_owned(), SignerRefusalCode::Field, "nonce");
        check(
            |it| it.issued_at = NOW.after(Span::from_secs(301)),
            SignerRefusalCode::Field,
            "issued_at",
        );
        check(
            |it| it.issued_at = NOW.before(Span::from_secs(301)),
            SignerRefusalCode::Field,
            "issued_at",
        );
        check(|it| it.expires_at = Some(NOW), SignerRefusalCode::Field, "expires_at");
        check(
            |it| it.expires_at = Some(NOW.after(Span::from_secs(301))),
            SignerRefusalCode::Field,
            "expires_at",
        );
    }
}
