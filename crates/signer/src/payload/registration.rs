//! Pure: registration with the cloud, as EIP-712 `HashedRegistration`.
//!
//! The hash in it is computed here from the fields, so the signer knows what it signs. No field
//! has a rule of its own: the hash binds each of them, and the size of a request bounds their
//! length.

use alloy_primitives::{Address, B256};
use automaton_core::wire::cloud;
use serde::{Deserialize, Serialize};

use crate::error::{SignerRefusal, SignerRefusalCode};

/// The fields of an automaton's registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistrationFields {
    /// The automaton's id.
    pub automaton_id: String,
    /// The creator's address as it is known, with the case of its letters.
    pub creator_address: String,
    /// The automaton's name.
    pub name: String,
    /// A description of the automaton.
    pub bio: String,
    /// `keccak256` of the genesis prompt.
    pub genesis_prompt_hash: Option<B256>,
    /// A value that makes this registration unique.
    pub nonce: String,
}

impl RegistrationFields {
    /// Builds the request to the cloud for this wallet, without the signature.
    ///
    /// # Errors
    /// As [`cloud::RegistrationRequest::computed_hash`].
    pub fn unsigned(
        &self,
        wallet: Address,
    ) -> Result<cloud::RegistrationRequest, serde_json::Error> {
        let mut body = cloud::RegistrationRequest {
            automaton_id: self.automaton_id.clone(),
            automaton_address: wallet.to_string(),
            creator_address: self.creator_address.clone(),
            name: self.name.clone(),
            bio: self.bio.clone(),
            genesis_prompt_hash: self.genesis_prompt_hash.map(|hash| hash.to_string()),
            nonce: self.nonce.clone(),
            payload_hash: B256::ZERO,
            signature: String::new(),
            chain_type: None,
        };
        body.payload_hash = body.computed_hash()?;
        Ok(body)
    }
}

/// A registration and its hash.
#[derive(Debug)]
pub(crate) struct HashedRegistration(cloud::RegistrationRequest);

impl HashedRegistration {
    pub(crate) fn new(wallet: Address, asked: &RegistrationFields) -> Result<Self, SignerRefusal> {
        let refused = |error: serde_json::Error| {
            SignerRefusal::new(SignerRefusalCode::Field, error.to_string())
        };
        asked.unsigned(wallet).map(Self).map_err(refused)
    }

    pub(crate) const fn payload_hash(&self) -> B256 {
        self.0.payload_hash
    }

    pub(super) fn digest(&self) -> B256 {
        self.0.digest()
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{b256, keccak256};

    use super::*;
    use crate::key::golden;
    use crate::payload::Payload;

    fn ada() -> RegistrationFields {
        RegistrationFields {
            automaton_id: "auto-1".to_owned(),
            creator_address: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".to_owned(),
            name: "Ada".to_owned(),
            bio: String::new(),
            genesis_prompt_hash: None,
            nonce: "7f8f5c1e-1c1d-4c0e-9b39-2d0f7a2f1b11".to_owned(),
        }
    }

    #[test]
    fn golden_vector() {
        let payload =
            Payload::Register(HashedRegistration::new(golden().address(), &ada()).unwrap());
        assert_eq!(
            golden().sign(&payload).unwrap().to_string(),
            "0xa4c90c3b3cd7afd1696ffeaa55560a840216683d0e6ab696193bb5e7e0429b0f31b946544b518850\
             9f9575d4e5ab1679b26ff76f38f6d6070a93d158f6e6df9f1c"
        );
    }

    #[test]
    fn golden_vector_with_a_prompt() {
        let hash = keccak256("You are Ada.");
        assert_eq!(hash, b256!("73917152ab204aba79a75d6605007bc731e0323af9b235f5127d46d6b67e1008"));
        let asked = RegistrationFields { genesis_prompt_hash: Some(hash), ..ada() };
        assert_eq!(
            HashedRegistration::new(golden().address(), &asked).unwrap().payload_hash(),
            b256!("378a2ad74a3f4b3fe1f6f5a67d4d417ca5c4c5dca3d302b7c90c6462ec25ecc4")
        );
    }
}
