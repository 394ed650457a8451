//! The rules in the ledger: the permits that the creator accepted, and the creator's address.

use std::path::Path;

use alloy_primitives::{Address, B256};
use automaton_sqlite::write_synced;
use rusqlite::{Connection, Transaction, params};

use super::{SignerLedger, limits, set_limits};
use crate::ceiling::{SigningLimits, SigningLimitsChange};
use crate::error::{SignerRefusal, SignerRefusalCode};
use crate::rules::{self, RuleLines};

/// The state of permits that a start asked for and the creator has not accepted.
const ASKED: &str = "asked";
const ACCEPTED: &str = "accepted";

/// The rules other than the ceilings.
pub(super) struct SignerRuleState {
    pub(super) wallet: Option<Address>,
    pub(super) creator: Option<Address>,
    pub(super) serial: u64,
    pub(super) accepted: RuleLines,
    pub(super) asked: RuleLines,
}

impl SignerRuleState {
    pub(super) fn read(ledger: &Connection) -> rusqlite::Result<Self> {
        let columns = "SELECT wallet, creator, serial FROM authority";
        ledger.query_row(columns, [], |row| {
            let address =
                |place| row.get::<_, Option<[u8; 20]>>(place).map(|bytes| bytes.map(Address::from));
            Ok(Self {
                wallet: address(0)?,
                creator: address(1)?,
                serial: row.get(2)?,
                accepted: lines(ledger, ACCEPTED)?,
                asked: lines(ledger, ASKED)?,
            })
        })
    }
}

fn lines(ledger: &Connection, standing: &str) -> rusqlite::Result<RuleLines> {
    let mut query = ledger.prepare("SELECT line FROM rules WHERE standing = ?1")?;
    query.query_map([standing], |row| row.get(0))?.collect()
}

fn insert(ledger: &Connection, lines: &RuleLines, standing: &str) -> rusqlite::Result<()> {
    let mut row =
        ledger.prepare("INSERT OR REPLACE INTO rules (line, standing) VALUES (?1, ?2)")?;
    lines.iter().try_for_each(|line| row.execute(params![line, standing]).map(drop))
}

impl SignerLedger {
    /// Stores the address of the wallet that this ledger belongs to.
    pub(crate) fn set_wallet(&mut self, wallet: Address) -> Result<(), SignerRefusal> {
        if SignerRuleState::read(&self.connection)?.wallet == Some(wallet) {
            return Ok(());
        }
        self.write(|ledger| {
            ledger.execute("UPDATE authority SET wallet = ?1", [wallet.as_slice()])?;
            Ok(())
        })
    }

    /// Admits a signer that starts with these permits. Every permit must have been accepted
    /// before. The first permits that a ledger sees are accepted.
    ///
    /// # Errors
    /// Returns a refusal that lists the other permits and says how the creator accepts them.
    pub(crate) fn admit(&mut self, home: &Path, wanted: &RuleLines) -> Result<(), SignerRefusal> {
        let SignerRuleState { accepted, asked, .. } = SignerRuleState::read(&self.connection)?;
        if accepted.is_empty() {
            return self.write(|ledger| Ok(insert(ledger, wanted, ACCEPTED)?));
        }
        let others = wanted - &accepted;
        if others != asked {
            self.write(|ledger| {
                ledger.execute("DELETE FROM rules WHERE standing = ?1", [ASKED])?;
                Ok(insert(ledger, &others, ASKED)?)
            })?;
        }
        if others.is_empty() {
            return Ok(());
        }
        let named = others.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let hash = rules::hash(&others);
        let home = home.display();
        let remedy = format!("`automaton limits accept {hash} --signer {home}` accepts it");
        let reason = format!("rules: its creator has not accepted: {named}; {remedy}");
        Err(SignerRefusal::new(SignerRefusalCode::Rules, reason))
    }

    /// Accepts the permits of the last refused start, if their hash is `meant`.
    pub(crate) fn accept(&mut self, meant: B256) -> Result<(), SignerRefusal> {
        self.write(|ledger| {
            let asked = SignerRuleState::read(ledger)?.asked;
            let hash = rules::hash(&asked);
            if asked.is_empty() || hash != meant {
                let now = if asked.is_empty() { "nothing".to_owned() } else { hash.to_string() };
                let reason = format!("rules: {meant} is not what was asked for, which is {now}");
                return Err(SignerRefusal::new(SignerRefusalCode::Rules, reason));
            }
            Ok(insert(ledger, &asked, ACCEPTED)?)
        })
    }

    /// Returns true if every accepted permit is for this chain. Returns false if the ledger
    /// cannot be read.
    pub(crate) fn permits_only_chain(&self, chain: u64) -> bool {
        let chain = chain.to_string();
        let is_there = |line: &String| line.split(' ').nth(1) == Some(chain.as_str());
        SignerRuleState::read(&self.connection)
            .is_ok_and(|rules| rules.accepted.iter().all(is_there))
    }

    /// Stores the creator's address.
    pub(crate) fn set_creator(&mut self, creator: Address) -> Result<(), SignerRefusal> {
        self.write(|ledger| {
            let row = [creator.as_slice()];
            ledger.execute("UPDATE authority SET creator = ?1, serial = serial + 1", row)?;
            Ok(())
        })
    }

    /// Changes the ceilings, if `may` agrees given the current ones.
    pub(crate) fn change(
        &mut self,
        to: SigningLimitsChange,
        may: impl FnOnce(SigningLimits) -> Result<(), SignerRefusal>,
    ) -> Result<(), SignerRefusal> {
        self.write(|ledger| {
            let now = limits(ledger)?;
            may(now)?;
            set_limits(ledger, to.applied_to(now))?;
            ledger.execute("UPDATE authority SET serial = serial + 1", [])?;
            Ok(())
        })
    }

    fn write(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<(), SignerRefusal>,
    ) -> Result<(), SignerRefusal> {
        write_synced(&mut self.connection, work)
    }
}
