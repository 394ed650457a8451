//! Pure: registration with the cloud, as EIP-712 `Register`.
//!
//! The hash inside it is computed here, over compact JSON with sorted keys, so
//! that what it stands for is known. No field has a rule of its own: the hash binds
//! each, and their length is bounded by that of a request.

use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_sol_types::{Eip712Domain, SolStruct as _};
use serde::{Deserialize, Serialize};

use crate::error::{Code, Refusal};

mod typed {
    alloy_sol_types::sol! {
        #[derive(Debug)]
        struct Register {
            string automatonId;
            string nonce;
            bytes32 payloadHash;
        }
    }
}

/// What an automaton says of itself when it registers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// Its id.
    pub automaton_id: String,
    /// Its creator's address as it is known, with the case of its letters.
    pub creator_address: String,
    /// Its name.
    pub name: String,
    /// A text about itself.
    pub bio: String,
    /// `keccak256` of the prompt it began with.
    pub genesis_prompt_hash: Option<B256>,
    /// What makes this registration single.
    pub nonce: String,
}

/// What `payload_hash` is computed over: the keys in ascending order.
#[derive(Serialize)]
struct Canonical<'a> {
    automaton_address: String,
    automaton_id: &'a str,
    bio: &'a str,
    creator_address: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    genesis_prompt_hash: Option<B256>,
    name: &'a str,
}

/// A registration and its hash.
#[derive(Debug)]
pub(crate) struct Register(typed::Register);

impl Register {
    pub(crate) fn new(wallet: Address, asked: &Registration) -> Result<Self, Refusal> {
        let canonical = Canonical {
            automaton_address: wallet.to_string(),
            automaton_id: &asked.automaton_id,
            bio: &asked.bio,
            creator_address: &asked.creator_address,
            genesis_prompt_hash: asked.genesis_prompt_hash,
            name: &asked.name,
        };
        let bytes = serde_json::to_vec(&canonical)
            .map_err(|error| Refusal::new(Code::Field, error.to_string()))?;
        Ok(Self(typed::Register {
            automatonId: asked.automaton_id.clone(),
            nonce: asked.nonce.clone(),
            payloadHash: keccak256(bytes),
        }))
    }

    pub(crate) const fn payload_hash(&self) -> B256 {
        self.0.payloadHash
    }

    pub(super) fn digest(&self) -> B256 {
        let domain = Eip712Domain {
            name: Some("AIWS Automaton".into()),
            version: Some("1".into()),
            chain_id: Some(U256::from(8453)),
            verifying_contract: None,
            salt: None,
        };
        self.0.eip712_signing_hash(&domain)
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::b256;

    use super::*;
    use crate::key::golden;
    use crate::payload::Payload;

    fn ada() -> Registration {
        Registration {
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
        let register = Register::new(golden().address(), &ada()).unwrap();
        assert_eq!(
            register.payload_hash(),
            b256!("7e86c0721e51da713361c03f0916529c1a92c7bbdbf023d6515b4546b5785479")
        );
        let payload = Payload::Register(register);
        assert_eq!(
            payload.digest(),
            b256!("d0ddc42fb812b112289ac2559037d8e9f54b3c9a9cf27cd29c641ade9bd48574")
        );
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
        let asked = Registration { genesis_prompt_hash: Some(hash), ..ada() };
        assert_eq!(
            Register::new(golden().address(), &asked).unwrap().payload_hash(),
            b256!("378a2ad74a3f4b3fe1f6f5a67d4d417ca5c4c5dca3d302b7c90c6462ec25ecc4")
        );
    }
}
