//! Pure: what four ledgers say of the same money.
//!
//! The agent's record, the signer's ledger, the cloud's and the chain are kept by
//! different processes, so that agreement means something. What could not be read
//! is missing, and must never be counted as agreement.

use serde::{Deserialize, Serialize};

use crate::money::{MicroUsdc, Microcents, MoneyError};

/// The books of one automaton, side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Books {
    /// Answers of the model in the agent's record.
    pub answers: u64,
    /// Tokens of their prompts, cached ones included.
    pub prompt_tokens: u64,
    /// Prompt tokens that came from a cache.
    pub cached_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// Answers whose tokens are an estimate, since their server did not count them.
    #[serde(default)]
    pub estimated: u64,
    /// The sum over the answers of tokens times price.
    pub computed: Microcents,
    /// Answers that were asked for and never heard, since a process died or a
    /// connection broke: the cloud may have charged them.
    pub unsettled: u64,
    /// Sum that the cloud reports for some of the answers that were never received.
    #[serde(default)]
    pub unheard: Microcents,
    /// Most that the other answers without a known cost can have cost.
    pub unsettled_most: Microcents,
    /// Credits bought by payments that the agent's record calls settled.
    pub bought: Microcents,
    /// Credits of a purchase that was sent and that the chain has not confirmed: a cloud may
    /// have given them already.
    #[serde(default)]
    pub pending: Microcents,
    /// Credits that others gave, as far as the agent's record knows.
    pub received: Microcents,
    /// Credits that were given away, by transfers that the cloud has confirmed.
    pub sent: Microcents,
    /// Credits of transfers that are not over: they may be gone.
    pub in_doubt: Microcents,
    /// Credits that rented machines cost, as far as the agent's record knows.
    #[serde(default)]
    pub rented: Microcents,
    /// Credits that the cloud says are left.
    pub left: Option<Microcents>,
    /// Sum of the settled payments in the agent's record.
    pub paid: MicroUsdc,
    /// Sum of signed payments that are still open; the chain may have moved it already.
    #[serde(default)]
    pub unconfirmed: MicroUsdc,
    /// Sum of the payments whose authorization the chain shows as used.
    pub moved: Option<MicroUsdc>,
    /// The sum of the payments in the agent's record that were ever signed.
    pub recorded: MicroUsdc,
    /// The sum of the payments in the agent's record that were given up without a
    /// signature on record: the signer may have signed them, and nobody else has them.
    pub given_up: MicroUsdc,
    /// The sum that the signer's ledger says it signed.
    pub signed: Option<MicroUsdc>,
}

impl Books {
    /// Credits that went into thinking or are in doubt, by the cloud's word.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`].
    pub fn gone(&self) -> Result<Option<Microcents>, MoneyError> {
        let had = self.bought.plus(self.received)?.minus(self.sent)?.minus(self.rented)?;
        self.left.map(|left| had.minus(left)).transpose()
    }

    /// Returns true if a ledger could not be read.
    #[must_use]
    pub const fn has_gaps(&self) -> bool {
        self.left.is_none() || self.moved.is_none() || self.signed.is_none()
    }

    /// Returns true if a ledger could not be read that may become readable again. A lost signer
    /// does not come back.
    #[must_use]
    pub const fn may_be_filled(&self) -> bool {
        self.left.is_none() || self.moved.is_none()
    }

    /// Returns true if all ledgers were read and agree.
    #[must_use]
    pub fn agree(&self) -> bool {
        self.may_be_gone()
            && self.moved.is_some_and(|moved| self.may_have_moved(moved))
            && self.signed.is_some_and(|signed| self.may_be_signed(signed))
    }

    /// Returns true if the spent credits are the computed cost plus the reported cost of answers
    /// that were never received. Other such answers and doubtful transfers can only have cost
    /// more.
    fn may_be_gone(&self) -> bool {
        let Ok(least) = self.computed.plus(self.unheard) else { return false };
        let most = least.plus(self.in_doubt).and_then(|most| most.plus(self.unsettled_most));
        let (Ok(Some(gone)), Ok(most)) = (self.gone(), most) else { return false };
        let fits = |gone: Microcents| least <= gone && gone <= most;
        fits(gone) || gone.plus(self.pending).is_ok_and(fits)
    }

    /// Returns true if the chain moved the sum of the settled payments, apart from open ones.
    fn may_have_moved(&self, moved: MicroUsdc) -> bool {
        let most = self.paid.plus(self.unconfirmed);
        self.paid <= moved && most.is_ok_and(|most| moved <= most)
    }

    /// Returns true if the signer's sum is the record's, apart from abandoned payments.
    fn may_be_signed(&self, signed: MicroUsdc) -> bool {
        let most = self.recorded.plus(self.given_up);
        self.recorded <= signed && most.is_ok_and(|most| signed <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn books() -> Books {
        Books {
            answers: 5,
            computed: Microcents::new(28_800),
            bought: Microcents::new(500_000_000),
            left: Some(Microcents::new(499_971_200)),
            paid: MicroUsdc::new(5_000_000),
            moved: Some(MicroUsdc::new(5_000_000)),
            recorded: MicroUsdc::new(5_000_000),
            signed: Some(MicroUsdc::new(5_000_000)),
            ..Books::default()
        }
    }

    #[test]
    fn equal_books_agree_to_the_last_unit() {
        assert!(books().agree());
        // A payment that was sent, and that the chain may have moved or not.
        let unconfirmed = MicroUsdc::new(10_000);
        for (moved, agrees) in
            [(4_990_000, false), (5_000_000, true), (5_010_000, true), (5_020_000, false)]
        {
            let moved = Some(MicroUsdc::new(moved));
            assert_eq!(Books { moved, unconfirmed, ..books() }.agree(), agrees, "{moved:?}");
        }
        let off = Some(Microcents::new(499_971_199));
        assert!(!Books { left: off, ..books() }.agree());
        let rented = Microcents::new(1);
        assert!(Books { left: off, rented, ..books() }.agree(), "a machine took it");
        assert!(!Books { rented, ..books() }.agree());
        let unsettled = |most| Books {
            left: off,
            unsettled: 1,
            unsettled_most: Microcents::new(most),
            ..books()
        };
        assert!(unsettled(1).agree(), "it may have cost that");
        assert!(!unsettled(0).agree(), "and no more");
        let unheard = |charged| Books { unheard: Microcents::new(charged), ..unsettled(0) };
        assert!(unheard(1).agree(), "it cost that");
        assert!(!unheard(2).agree(), "and that is not gone");
        let given = Microcents::new(1_000_000);
        let sent = Books { sent: given, received: given, ..books() };
        assert!(sent.agree(), "what came went");
        let left = Some(Microcents::new(499_971_200 - 1_000_000));
        assert!(Books { sent: given, left, ..books() }.agree());
        assert!(!Books { left, ..books() }.agree());
        for in_doubt in [(0, false), (999_999, false), (1_000_000, true), (2_000_000, true)] {
            let doubt = Microcents::new(in_doubt.0);
            let agrees = in_doubt.1;
            assert_eq!(Books { in_doubt: doubt, left, ..books() }.agree(), agrees, "{doubt}");
        }
        let unconfirmed = Books {
            bought: Microcents::ZERO,
            pending: Microcents::new(500_000_000),
            paid: MicroUsdc::ZERO,
            moved: Some(MicroUsdc::ZERO),
            ..books()
        };
        assert!(unconfirmed.agree(), "it was given before the chain was sure");
        assert!(!Books { left: off, ..unconfirmed }.agree(), "and all of it or nothing");
        let none = Books { answers: 0, computed: Microcents::ZERO, ..unconfirmed };
        assert!(Books { left: Some(Microcents::ZERO), ..none }.agree(), "or not yet");
        let more = Some(Microcents::new(499_971_201));
        assert!(!Books { left: more, unsettled: 1, ..books() }.agree());
        assert!(!Books { moved: Some(MicroUsdc::ZERO), ..books() }.agree());
        assert!(!Books { signed: Some(MicroUsdc::new(10_000_000)), ..books() }.agree());
    }

    #[test]
    fn a_payment_that_was_given_up_may_have_been_signed_and_nothing_else() {
        let given_up = MicroUsdc::new(5_000_000);
        for (signed, agrees) in [(4, false), (5, true), (10, true), (11, false)] {
            let signed = Some(MicroUsdc::new(signed * 1_000_000));
            assert_eq!(Books { given_up, signed, ..books() }.agree(), agrees, "{signed:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_agreement() {
        assert!(!books().has_gaps());
        for gap in [
            Books { left: None, ..books() },
            Books { moved: None, ..books() },
            Books { signed: None, ..books() },
        ] {
            assert!(gap.has_gaps() && !gap.agree(), "{gap:?}");
            assert_eq!(gap.may_be_filled(), gap.signed.is_some(), "{gap:?}");
        }
    }
}
