//! An account's way to the chain: its node and its signer.

use alloy_primitives::{Address, B256, Bytes};
use automaton_core::error::Classified;
use automaton_core::id::TransactionId;

use super::{Fees, Submission, TransactionInclusion, TxOutcome};
use crate::rpc::{ChainError, ContractCall, RpcClient};
use crate::{SignerClient, SignerClientError, TransactionCall};

/// An account whose transactions call contracts of one chain and pay gas.
#[derive(Debug, Clone)]
pub struct TransactionAccount {
    rpc: RpcClient,
    signer: SignerClient,
    chain_id: u64,
}

/// A transaction was not estimated, signed or sent.
#[derive(Debug, thiserror::Error, Classified)]
pub enum TransactionError {
    /// The chain could not be asked, or refused.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The signer refused, for instance at a ceiling, or is gone. The nonce may be taken all the
    /// same, so the intent has to go on.
    #[error(transparent)]
    Signer(#[from] SignerClientError),
}

impl TransactionAccount {
    /// Creates the account of a signer on the chain of a node.
    #[must_use]
    pub const fn new(rpc: RpcClient, signer: SignerClient, chain_id: u64) -> Self {
        Self { rpc, signer, chain_id }
    }

    /// Returns the account's address.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.signer.address()
    }

    /// Returns the client of the chain.
    #[must_use]
    pub const fn rpc(&self) -> &RpcClient {
        &self.rpc
    }

    /// Runs a call as this account without sending it, and returns the node's estimate of its
    /// gas. See [`super::GasBounds`] before trusting it.
    ///
    /// # Errors
    /// [`ChainError::Refused`] if the transaction would fail; otherwise [`ChainError`].
    pub async fn estimate_gas(&self, contract: Address, data: Bytes) -> Result<u64, ChainError> {
        let call = ContractCall::new(contract, data).by(self.address());
        self.rpc.estimate_gas(&call).await
    }

    /// Reads the number of the account's transactions in blocks that stay.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn final_count(&self) -> Result<u64, ChainError> {
        self.rpc.final_transaction_count(self.address()).await
    }

    /// Signs a call for an intent without sending it. The same call and fees give the same bytes.
    /// `nonce` is the one that the intent has, if that is known.
    ///
    /// # Errors
    /// [`TransactionError`].
    pub async fn sign(
        &self,
        intent: TransactionId,
        nonce: Option<u64>,
        call: ContractCall,
        gas: u64,
        fees: Fees,
    ) -> Result<Submission, TransactionError> {
        // The signer takes the first nonce from this one on that it has not signed. So the hint
        // may be too small, and it counts only blocks that stay: a count of pending transactions
        // is the word of one node.
        let nonce_hint = match nonce {
            Some(nonce) => nonce,
            None => self.final_count().await?,
        };
        let call = TransactionCall {
            chain_id: self.chain_id,
            to: call.to,
            data: call.data,
            gas,
            max_fee: fees.max,
            priority_fee: Some(fees.priority),
            nonce_hint,
        };
        let signed = self.signer.transact(intent, &call).await?;
        Ok(Submission { hash: signed.hash, raw: signed.raw, gas_nonce: signed.nonce })
    }

    /// Reads the fate of a transaction from its receipt, `None` while no block has it.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn inclusion(&self, hash: B256) -> Result<Option<TransactionInclusion>, ChainError> {
        let Some(receipt) = self.rpc.receipt(hash).await? else { return Ok(None) };
        let outcome = if receipt.succeeded { TxOutcome::Succeeded } else { TxOutcome::Reverted };
        let stays = self.rpc.is_final(receipt.block_number).await?;
        Ok(Some(TransactionInclusion { outcome, stays }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixStream;

    use serde_json::{Value, json};

    use super::*;
    use crate::test_node::{TestNode, reply};

    const TOKEN: Address = Address::repeat_byte(0xA5);
    const PAYER: Address = Address::repeat_byte(0xAA);
    const FEES: Fees = Fees { max: 1000, priority: 100 };

    /// Starts a node with these results and a signer that gives this answer to all questions.
    /// Returns the signer's end, too.
    async fn account(
        confirmations: u64,
        results: &[Value],
        answer: &str,
    ) -> (TransactionAccount, TestNode, UnixStream) {
        let result = |result| reply(200, &json!({ "result": result }));
        let node = TestNode::start(results.iter().map(result).collect());
        let rpc = RpcClient::connect(node.client(), node.url.clone(), confirmations);
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        writeln!(theirs, r#"{{"hello":{{"version":2,"address":"{PAYER}"}}}}"#).unwrap();
        writeln!(theirs, "{answer}").unwrap();
        let signer = SignerClient::open(ours).await.unwrap();
        (TransactionAccount::new(rpc, signer, 31337), node, theirs)
    }

    fn intent() -> TransactionId {
        format!("{:026}", 1).parse().unwrap()
    }

    #[tokio::test]
    async fn the_fate_of_a_transaction_is_its_receipt() {
        let hash = B256::repeat_byte(1);
        let receipt = |status| json!({ "status": status, "blockNumber": "0x9", "logs": [] });
        for (results, wanted) in [
            (vec![Value::Null], None),
            (vec![receipt("0x1"), json!("0xa")], Some((TxOutcome::Succeeded, false))),
            (vec![receipt("0x1"), json!("0xb")], Some((TxOutcome::Succeeded, true))),
            (vec![receipt("0x0"), json!("0xb")], Some((TxOutcome::Reverted, true))),
        ] {
            let (account, node, _signer) = account(2, &results, "").await;
            let wanted = wanted.map(|(outcome, stays)| TransactionInclusion { outcome, stays });
            assert_eq!(account.inclusion(hash).await.unwrap(), wanted);
            let first = &node.asked()[0];
            assert_eq!(first["method"], "eth_getTransactionReceipt", "no block is searched");
        }
    }

    #[tokio::test]
    async fn an_intent_with_a_nonce_keeps_it_and_a_new_one_begins_at_the_final_count() {
        for (nonce, results, hint) in
            [(Some(5), vec![], "5"), (None, vec![json!("0x13"), json!("0x7")], "7")]
        {
            let (account, node, signer) = account(3, &results, r#"{"nonsense":{}}"#).await;
            let call = ContractCall::new(TOKEN, vec![7]);
            let signed = account.sign(intent(), nonce, call, 21_000, FEES).await;
            assert!(matches!(signed, Err(TransactionError::Signer(_))), "{signed:?}");
            assert_eq!(node.asked().len(), results.len());
            drop(account);
            let mut lines = String::new();
            let mut signer = BufReader::new(signer);
            while signer.read_line(&mut lines).is_ok_and(|bytes| bytes > 0) {}
            for part in [
                format!(r#""nonce_hint":{hint}"#),
                r#""max_fee":1000"#.to_owned(),
                r#""chain_id":31337"#.to_owned(),
            ] {
                assert!(lines.contains(&part), "{part} is not in {lines}");
            }
        }
    }

    #[tokio::test]
    async fn an_intent_gets_the_bytes_that_the_signer_signed_for_it() {
        // 2, and [31337, 3, 100, 1000, 21000, TOKEN, 0, 0xe3ee160e, [], 1, 1, 1] as RLP.
        let list = format!("0x02ea827a6903648203e882520894{}8084e3ee160ec0010101", "a5".repeat(20));
        let raw: Bytes = list.parse().unwrap();
        let hash = alloy_primitives::keccak256(&raw);
        for (gas_nonce, to, is_good) in [(3, TOKEN, true), (4, TOKEN, false), (3, PAYER, false)] {
            let answer = json!({ "transacted": {
                "hash": hash, "raw": raw, "nonce": gas_nonce, "max_fee": 1000, "priority_fee": 100,
            }});
            let (account, _node, _signer) = account(0, &[], &answer.to_string()).await;
            let call = ContractCall::new(to, vec![0xe3, 0xee, 0x16, 0x0e]);
            match account.sign(intent(), Some(3), call, 21_000, FEES).await {
                Ok(signed) => {
                    let wanted = Submission { hash, raw: raw.clone(), gas_nonce };
                    assert!(is_good && signed == wanted, "{signed:?}");
                }
                Err(error) => {
                    let is_other =
                        matches!(error, TransactionError::Signer(SignerClientError::Other));
                    assert!(!is_good && is_other, "{error}");
                }
            }
        }
    }

    #[tokio::test]
    async fn nothing_is_signed_while_the_count_is_unknown() {
        let (account, node, _signer) = account(0, &[json!("7")], "").await;
        let call = ContractCall::new(TOKEN, vec![7]);
        let signed = account.sign(intent(), None, call, 21_000, FEES).await;
        assert!(matches!(signed, Err(TransactionError::Chain(_))), "{signed:?}");
        assert_eq!(node.asked()[0]["params"], json!([PAYER, "latest"]));
    }

    #[tokio::test]
    async fn gas_is_estimated_as_this_account() {
        let (account, node, _signer) = account(0, &[json!("0x5208")], "").await;
        let estimate = account.estimate_gas(TOKEN, vec![7].into()).await.unwrap();
        let call = json!([{ "from": PAYER, "to": TOKEN, "data": "0x07" }]);
        assert_eq!((estimate, &node.asked()[0]["params"]), (21_000, &call));
    }
}
