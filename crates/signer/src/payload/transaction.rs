//! Pure: the automaton's own transactions, to listed functions of listed contracts.
//!
//! The form is EIP-1559 (<https://eips.ethereum.org/EIPS/eip-1559>), or the legacy form with
//! replay protection (<https://eips.ethereum.org/EIPS/eip-155>) for chains that know no other.
//! Transactions move no ether: they cost only gas, which is capped. The nonce comes from the
//! ledger. The caller gives only its lower bound, so an intent has one place on the chain,
//! however often it is signed.

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{Encodable, Header, PayloadView};
use automaton_core::id::TransactionId;
use serde::{Deserialize, Serialize};

use crate::error::{SignerRefusal, SignerRefusalCode};
use crate::key::Signature;

/// The first byte of an EIP-1559 transaction.
const DYNAMIC_FEE: u8 = 2;

/// The bytes that select a function: the start of the hash of its signature.
pub type Selector = [u8; 4];

/// A contract that may be called, and its permitted functions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// EIP-155 id of its chain.
    pub chain_id: u64,
    /// The contract's address.
    pub address: Address,
    /// The permitted functions.
    pub selectors: Vec<Selector>,
}

/// The limits on gas for own transactions. The default is zero, so that none is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GasRules {
    /// The most gas of one transaction.
    pub limit_max: u64,
    /// The most for a unit of gas, in wei.
    pub fee_max: u64,
    /// The most for the gas of all transactions within any 24 hours, in wei. Each counts at its
    /// highest possible cost. The fee of a rollup for data on another chain is not included.
    pub per_day: u64,
}

/// A call to be signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionCall {
    /// EIP-155 id of the chain.
    pub chain_id: u64,
    /// The contract.
    pub to: Address,
    /// The function and its arguments.
    pub data: Bytes,
    /// The gas limit.
    pub gas: u64,
    /// The most for a unit of gas, in wei.
    pub max_fee: u64,
    /// The part of `max_fee` for the block's producer. `None` asks for a legacy transaction,
    /// where `max_fee` is the price.
    pub priority_fee: Option<u64>,
    /// The lowest nonce that a new intent may get: the number of the account's transactions in
    /// final blocks. The intent gets the first unsigned nonce from there.
    pub nonce_hint: u64,
}

/// A call and the intent that it belongs to. Each intent has one nonce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionIntent {
    /// The intent.
    pub intent: TransactionId,
    /// The call to sign.
    pub call: TransactionCall,
}

/// A signed transaction, ready for a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedTransaction {
    /// The transaction hash.
    pub hash: B256,
    /// The encoded transaction.
    pub raw: Bytes,
    /// The account's nonce in it.
    pub nonce: u64,
    /// The most for a unit of gas, in wei. If the call did not raise it, this is the price of the
    /// last transaction signed for the intent.
    pub max_fee: u64,
    /// See [`TransactionCall::priority_fee`].
    pub priority_fee: Option<u64>,
}

impl SignedTransaction {
    /// Returns true if the transaction calls the same contract on the same chain with the same
    /// data, moves no ether, and has the claimed hash. A client uses this to check the signer's
    /// reply.
    #[must_use]
    pub fn matches_call(&self, call: &TransactionCall) -> bool {
        let (mut list, places) = match self.raw.split_first() {
            Some((&DYNAMIC_FEE, list)) => (list, [1, 5, 6, 7]),
            _ => (&self.raw[..], [0, 3, 4, 5]),
        };
        let Ok(PayloadView::List(fields)) = Header::decode_raw(&mut list) else { return false };
        let encoded = [
            alloy_rlp::encode(self.nonce),
            alloy_rlp::encode(call.to),
            alloy_rlp::encode(0_u8),
            alloy_rlp::encode(&call.data),
        ];
        let mut same = places.iter().zip(&encoded);
        let chain_id = alloy_rlp::encode(call.chain_id);
        same.all(|(place, wanted)| fields.get(*place).is_some_and(|it| *it == &wanted[..]))
            && (call.priority_fee.is_none()
                || fields.first().is_some_and(|it| *it == &chain_id[..]))
            && keccak256(&self.raw) == self.hash
    }
}

/// A call that keeps every rule except the daily gas ceiling.
#[derive(Debug)]
pub(crate) struct PermittedTransaction<'a> {
    call: &'a TransactionCall,
    /// The highest possible cost, in wei.
    pub(crate) fee: u64,
}

impl<'a> PermittedTransaction<'a> {
    pub(crate) fn new(
        contracts: &[Contract],
        gas: &GasRules,
        call: &'a TransactionCall,
    ) -> Result<Self, SignerRefusal> {
        let TransactionCall { chain_id, to, data, .. } = call;
        let refused = |code, reason| Err(SignerRefusal::new(code, reason));
        let mut listed =
            contracts.iter().filter(|it| (it.chain_id, it.address) == (*chain_id, *to));
        if listed.clone().next().is_none() {
            let reason = format!("to: {to} on chain {chain_id} is not among the known contracts");
            return refused(SignerRefusalCode::Contract, reason);
        }
        let selector = data.first_chunk::<4>();
        if !selector.is_some_and(|wanted| listed.any(|it| it.selectors.contains(wanted))) {
            let start = hex::encode(&data[..data.len().min(4)]);
            let reason = format!("data: 0x{start} begins no function of {to} that may be called");
            return refused(SignerRefusalCode::Contract, reason);
        }
        let max_fee = call.max_fee;
        let priority = call.priority_fee.unwrap_or_default();
        if call.gas == 0 || call.gas > gas.limit_max {
            let reason = format!("gas: {} is not between 1 and {}", call.gas, gas.limit_max);
            return refused(SignerRefusalCode::Gas, reason);
        }
        if max_fee > gas.fee_max || priority > max_fee {
            let most = gas.fee_max;
            let rule = "and a priority fee within it";
            let asked = format!("max_fee: {max_fee} wei with {priority} for priority");
            return refused(
                SignerRefusalCode::Gas,
                format!("{asked} is not at most {most} {rule}"),
            );
        }
        match call.gas.checked_mul(max_fee) {
            Some(fee) => Ok(Self { call, fee }),
            None => refused(
                SignerRefusalCode::Gas,
                format!("gas: {} at {max_fee} wei cannot be counted", call.gas),
            ),
        }
    }

    /// Returns the transaction with this nonce.
    pub(crate) const fn with_nonce(&self, nonce: u64) -> UnsignedTransaction<'a> {
        UnsignedTransaction { call: self.call, nonce }
    }
}

/// A transaction that may be signed.
#[derive(Debug)]
pub(crate) struct UnsignedTransaction<'a> {
    call: &'a TransactionCall,
    nonce: u64,
}

impl UnsignedTransaction<'_> {
    pub(super) fn digest(&self) -> B256 {
        keccak256(match self.call.priority_fee {
            Some(priority) => self.dynamic(priority, &[]),
            None => self.legacy(&[&self.call.chain_id, &0_u8, &0_u8]),
        })
    }

    /// Returns the encoded transaction with its signature.
    pub(crate) fn with_signature(&self, signature: &Signature) -> SignedTransaction {
        let word = |place: usize| U256::from_be_slice(&signature[place..place + 32]);
        // Signatures are made here with `v` 27 or 28.
        let r = word(0);
        let s = word(32);
        let parity = u8::from(signature[64] == 28);
        let raw = match self.call.priority_fee {
            Some(priority) => self.dynamic(priority, &[&parity, &r, &s]),
            None => {
                let v = u128::from(self.call.chain_id) * 2 + 35 + u128::from(parity);
                self.legacy(&[&v, &r, &s])
            }
        };
        let TransactionCall { max_fee, priority_fee, .. } = *self.call;
        let hash = keccak256(&raw);
        let nonce = self.nonce;
        SignedTransaction { hash, raw: raw.into(), nonce, max_fee, priority_fee }
    }

    fn dynamic(&self, priority: u64, rest: &[&dyn Encodable]) -> Vec<u8> {
        let TransactionCall { chain_id, to, data, gas, max_fee, .. } = self.call;
        let mut fields: Vec<&dyn Encodable> = vec![chain_id, &self.nonce, &priority, max_fee, gas];
        let nothing = 0_u8;
        let no_access_list = Vec::<Address>::new();
        fields.extend::<[&dyn Encodable; 4]>([to, &nothing, data, &no_access_list]);
        fields.extend(rest);
        let mut bytes = vec![DYNAMIC_FEE];
        alloy_rlp::encode_list::<_, dyn Encodable>(&fields, &mut bytes);
        bytes
    }

    fn legacy(&self, rest: &[&dyn Encodable]) -> Vec<u8> {
        let TransactionCall { to, data, gas, max_fee, .. } = self.call;
        let mut fields: Vec<&dyn Encodable> = vec![&self.nonce, max_fee, gas, to, &0_u8, data];
        fields.extend(rest);
        let mut bytes = Vec::new();
        alloy_rlp::encode_list::<_, dyn Encodable>(&fields, &mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use alloy_consensus::transaction::RlpEcdsaDecodableTx;
    use alloy_consensus::{SignableTransaction, Signed, TxEip1559, TxLegacy};
    use alloy_primitives::{TxKind, address};
    use proptest::prelude::*;

    use super::*;
    use crate::key::golden;
    use crate::payload::Payload;

    const TOKEN: Address = address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913");
    const RULES: GasRules = GasRules { limit_max: 200_000, fee_max: 1000, per_day: u64::MAX };

    fn call() -> TransactionCall {
        TransactionCall {
            chain_id: 8453,
            to: TOKEN,
            data: vec![0xe3, 0xee, 0x16, 0x0e, 1, 2, 3].into(),
            gas: 100_000,
            max_fee: 1000,
            priority_fee: Some(10),
            nonce_hint: 0,
        }
    }

    fn contracts() -> [Contract; 1] {
        let selectors = vec![[0xe3, 0xee, 0x16, 0x0e]];
        [Contract { chain_id: 8453, address: TOKEN, selectors }]
    }

    fn sign(call: &TransactionCall, nonce: u64) -> SignedTransaction {
        let transaction = UnsignedTransaction { call, nonce };
        let signature = golden().sign(&Payload::Transaction(&transaction)).unwrap();
        transaction.with_signature(&signature)
    }

    #[test]
    fn what_breaks_a_rule_is_refused_by_name() {
        let check = |change: fn(&mut TransactionCall), code: SignerRefusalCode, words: &str| {
            let mut broken = call();
            change(&mut broken);
            let refusal = PermittedTransaction::new(&contracts(), &RULES, &broken).unwrap_err();
            assert_eq!(refusal.code, code, "{refusal}");
            assert!(refusal.reason.contains(words), "{refusal}");
        };
        assert_eq!(
            PermittedTransaction::new(&contracts(), &RULES, &call()).unwrap().fee,
            100_000_000
        );
        check(|it| it.chain_id = 1, SignerRefusalCode::Contract, "on chain 1 is not");
        check(|it| it.to = Address::ZERO, SignerRefusalCode::Contract, "to: 0x0000");
        check(
            |it| it.data = vec![0xe3, 0xee, 0x16].into(),
            SignerRefusalCode::Contract,
            "data: 0xe3ee16 ",
        );
        check(
            |it| it.data = vec![0xa9, 5, 0x9c, 0xbb].into(),
            SignerRefusalCode::Contract,
            "data: 0xa9059cbb",
        );
        check(|it| it.data = Bytes::new(), SignerRefusalCode::Contract, "data: 0x begins");
        check(|it| it.gas = 200_001, SignerRefusalCode::Gas, "gas: 200001");
        check(|it| it.gas = 0, SignerRefusalCode::Gas, "gas: 0");
        check(|it| it.max_fee = 1001, SignerRefusalCode::Gas, "max_fee: 1001");
        check(|it| it.priority_fee = Some(1001), SignerRefusalCode::Gas, "1001 for priority");
        let asked = call();
        let nothing = PermittedTransaction::new(&contracts(), &GasRules::default(), &asked);
        assert_eq!(nothing.unwrap_err().code, SignerRefusalCode::Gas);
        let all = GasRules { limit_max: u64::MAX, fee_max: u64::MAX, per_day: 0 };
        let huge = TransactionCall { gas: u64::MAX, max_fee: u64::MAX, ..call() };
        let refusal = PermittedTransaction::new(&contracts(), &all, &huge).unwrap_err();
        assert!(refusal.reason.contains("cannot be counted"), "{refusal}");
    }

    proptest! {
        /// Compares the encoding with that of another library.
        #[test]
        fn the_bytes_are_those_of_a_transaction(
            (chain_id, nonce, gas, max_fee) in any::<(u64, u64, u64, u64)>(),
            priority_fee in any::<Option<u64>>(),
            data in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            // Above this, the legacy `v` does not fit into the library's type.
            let chain_id = chain_id >> 2;
            let data = Bytes::from(data);
            let to = TxKind::Call(TOKEN);
            let value = U256::ZERO;
            let input = data.clone();
            let call = TransactionCall { chain_id, data, gas, max_fee, priority_fee, ..call() };
            let signed = sign(&call, nonce);
            prop_assert!(signed.matches_call(&call));
            let elsewhere = TransactionCall { to: Address::ZERO, ..call.clone() };
            let other = TransactionCall { data: vec![1; 301].into(), ..call.clone() };
            prop_assert!(!signed.matches_call(&elsewhere) && !signed.matches_call(&other));
            let misnamed = SignedTransaction { hash: B256::ZERO, ..signed.clone() };
            prop_assert!(!misnamed.matches_call(&call));
            let fee = u128::from(max_fee);
            if let Some(priority) = priority_fee {
                let theirs = TxEip1559 {
                    chain_id, nonce, gas_limit: gas, max_fee_per_gas: fee,
                    max_priority_fee_per_gas: priority.into(), to, value,
                    access_list: Default::default(), input,
                };
                let read = Signed::<TxEip1559>::eip2718_decode(&mut &signed.raw[..]).unwrap();
                check(&read, &theirs, &signed)?;
            } else {
                let theirs = TxLegacy {
                    chain_id: Some(chain_id), nonce, gas_price: fee, gas_limit: gas, to, value, input,
                };
                let read = Signed::<TxLegacy>::rlp_decode(&mut &signed.raw[..]).unwrap();
                check(&read, &theirs, &signed)?;
            }
        }
    }

    fn check<
        T: SignableTransaction<alloy_primitives::Signature> + RlpEcdsaDecodableTx + PartialEq,
    >(
        read: &Signed<T>,
        theirs: &T,
        ours: &SignedTransaction,
    ) -> Result<(), TestCaseError> {
        let digest = theirs.signature_hash();
        prop_assert_eq!(read.tx(), theirs);
        prop_assert_eq!(*read.hash(), ours.hash);
        let by = read.signature().recover_address_from_prehash(&digest).unwrap();
        prop_assert_eq!(by, golden().address());
        Ok(())
    }
}
