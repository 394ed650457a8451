//! Pure: the ledger's rules: double entry in microcents.
//!
//! A [`Posting`] can only be made by the constructors here, and each of them
//! gives one whose entries sum to zero. What is posted is never changed; a
//! mistake would be mended by another posting.

use alloy_primitives::Address;
use automaton_core::money::{Microcents, MoneyError};
use automaton_core::names::Names;

/// The holder of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// The credits that a wallet can spend. Never negative.
    Wallet(Address),
    /// The credits set aside for a wallet's calls under way. Never negative.
    Held(Address),
    /// The counterpart of all credits: what was paid for, as a negative amount.
    External,
    /// The earnings of the house.
    Revenue,
}

impl Account {
    /// The kind's name in the database, and the wallet where there is one.
    #[must_use]
    pub const fn parts(&self) -> (&'static str, Option<&Address>) {
        match self {
            Self::Wallet(address) => ("wallet", Some(address)),
            Self::Held(address) => ("held", Some(address)),
            Self::External => ("external", None),
            Self::Revenue => ("revenue", None),
        }
    }

    /// Returns whether the balance may fall below zero. Only the house's counterpart account may.
    #[must_use]
    pub const fn may_be_negative(&self) -> bool {
        matches!(self, Self::External)
    }
}

/// The reason for a posting. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Names)]
pub enum PostingReason {
    /// Credits were bought.
    Purchase,
    /// Credits are set aside before a call.
    Hold,
    /// A call is paid, and the rest of what was set aside goes back.
    Charge,
    /// All that was set aside goes back.
    Release,
    /// Credits go to another wallet.
    Transfer,
    /// A purchase or a charge is given back.
    Refund,
    /// A machine ran.
    Machine,
}

/// A change of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostingEntry {
    /// The account.
    pub account: Account,
    /// By how much; never zero.
    pub amount: Microcents,
}

/// Changes that belong together and sum to zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting {
    wallet: Address,
    key: String,
    reason: PostingReason,
    entries: Vec<PostingEntry>,
}

impl Posting {
    /// Credits for a payment.
    ///
    /// # Errors
    /// Fails if the amount cannot be counted.
    pub fn purchase(wallet: Address, amount: Microcents, key: String) -> Result<Self, MoneyError> {
        let changes = [(Account::External, negative(amount)?), (Account::Wallet(wallet), amount)];
        Self::balanced(wallet, key, PostingReason::Purchase, &changes)
    }

    /// Credits set aside.
    ///
    /// # Errors
    /// Fails if the amount cannot be counted.
    pub fn hold(wallet: Address, amount: Microcents, key: String) -> Result<Self, MoneyError> {
        let changes =
            [(Account::Wallet(wallet), negative(amount)?), (Account::Held(wallet), amount)];
        Self::balanced(wallet, key, PostingReason::Hold, &changes)
    }

    /// A hold of `held` ends: `charge` of it, at most all, goes to the house.
    ///
    /// # Errors
    /// Fails if an amount cannot be counted, or the charge is no part of the hold.
    pub fn close(
        wallet: Address,
        held: Microcents,
        charge: Microcents,
        key: String,
    ) -> Result<Self, MoneyError> {
        if charge > held || charge < Microcents::ZERO {
            return Err(MoneyError::Overflow);
        }
        let rest = held.plus(negative(charge)?)?;
        let reason =
            if charge == Microcents::ZERO { PostingReason::Release } else { PostingReason::Charge };
        let changes = [
            (Account::Held(wallet), negative(held)?),
            (Account::Wallet(wallet), rest),
            (Account::Revenue, charge),
        ];
        Self::balanced(wallet, key, reason, &changes)
    }

    /// Credits go from one wallet to another.
    ///
    /// # Errors
    /// Fails if the amount cannot be counted, is not above zero, or goes nowhere.
    pub fn transfer(
        from: Address,
        to: Address,
        amount: Microcents,
        key: String,
    ) -> Result<Self, MoneyError> {
        if from == to || amount <= Microcents::ZERO {
            return Err(MoneyError::Overflow);
        }
        let changes = [(Account::Wallet(from), negative(amount)?), (Account::Wallet(to), amount)];
        Self::balanced(from, key, PostingReason::Transfer, &changes)
    }

    /// A machine's minutes are paid.
    ///
    /// # Errors
    /// Fails if the amount cannot be counted, or is not above zero.
    pub fn machine(wallet: Address, amount: Microcents, key: String) -> Result<Self, MoneyError> {
        if amount <= Microcents::ZERO {
            return Err(MoneyError::Overflow);
        }
        let changes = [(Account::Wallet(wallet), negative(amount)?), (Account::Revenue, amount)];
        Self::balanced(wallet, key, PostingReason::Machine, &changes)
    }

    /// The credits of a purchase are taken back.
    ///
    /// # Errors
    /// Fails if the amount cannot be counted.
    pub fn refund_purchase(
        wallet: Address,
        amount: Microcents,
        key: String,
    ) -> Result<Self, MoneyError> {
        let changes = [(Account::Wallet(wallet), negative(amount)?), (Account::External, amount)];
        Self::balanced(wallet, key, PostingReason::Refund, &changes)
    }

    /// Gives the cost of a call back.
    ///
    /// # Errors
    /// Fails if the amount cannot be counted.
    pub fn refund_charge(
        wallet: Address,
        amount: Microcents,
        key: String,
    ) -> Result<Self, MoneyError> {
        let changes = [(Account::Revenue, negative(amount)?), (Account::Wallet(wallet), amount)];
        Self::balanced(wallet, key, PostingReason::Refund, &changes)
    }

    fn balanced(
        wallet: Address,
        key: String,
        reason: PostingReason,
        changes: &[(Account, Microcents)],
    ) -> Result<Self, MoneyError> {
        let sum: i128 = changes.iter().map(|(_, amount)| i128::from(amount.units())).sum();
        if sum != 0 {
            return Err(MoneyError::Overflow);
        }
        let entries = changes
            .iter()
            .filter(|(_, amount)| *amount != Microcents::ZERO)
            .map(|&(account, amount)| PostingEntry { account, amount })
            .collect();
        Ok(Self { wallet, key, reason, entries })
    }

    /// Returns the wallet that the posting belongs to.
    #[must_use]
    pub const fn wallet(&self) -> Address {
        self.wallet
    }

    /// Returns the key that makes the posting unique among those of its wallet.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the reason for the posting.
    #[must_use]
    pub const fn reason(&self) -> PostingReason {
        self.reason
    }

    /// The changes.
    #[must_use]
    pub fn entries(&self) -> &[PostingEntry] {
        &self.entries
    }
}

fn negative(amount: Microcents) -> Result<Microcents, MoneyError> {
    amount.units().checked_neg().map(Microcents::new).ok_or(MoneyError::Overflow)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_posting_sums_to_zero(held in 0_i64.., part in 0_i64..) {
            let held = Microcents::new(held);
            let part = Microcents::new(part);
            let wallet = Address::repeat_byte(7);
            let made = [
                Posting::purchase(wallet, held, String::new()),
                Posting::hold(wallet, held, String::new()),
                Posting::close(wallet, held, part, String::new()),
                Posting::refund_purchase(wallet, held, String::new()),
                Posting::refund_charge(wallet, held, String::new()),
                Posting::transfer(wallet, Address::ZERO, held, String::new()),
            ];
            prop_assert_eq!(made[2].is_ok(), part <= held);
            prop_assert_eq!(made[5].is_ok(), held > Microcents::ZERO);
            for posting in made.into_iter().flatten() {
                let sum: i128 =
                    posting.entries().iter().map(|entry| i128::from(entry.amount.units())).sum();
                prop_assert_eq!(sum, 0);
                prop_assert!(posting.entries().iter().all(|e| e.amount != Microcents::ZERO));
            }
        }
    }

    #[test]
    fn a_charge_below_nothing_is_refused() {
        let wallet = Address::ZERO;
        let close = Posting::close(wallet, Microcents::new(5), Microcents::new(-1), String::new());
        assert!(close.is_err());
        let transfer =
            |to, cents| Posting::transfer(wallet, to, Microcents::new(cents), String::new());
        assert!(transfer(wallet, 5).is_err(), "to oneself");
        assert!(transfer(Address::repeat_byte(1), -5).is_err());
        assert!(transfer(Address::repeat_byte(1), 0).is_err(), "nothing");
        assert!(transfer(Address::repeat_byte(1), 1).is_ok());
    }

    #[test]
    fn each_posting_moves_what_it_says() {
        let wallet = Address::repeat_byte(7);
        let other = Address::repeat_byte(9);
        let own = Account::Wallet(wallet);
        let held = Account::Held(wallet);
        let (amount, key) = (Microcents::new, || "a key".to_owned());
        let check = |made: Result<Posting, MoneyError>, reason, moved: &[(Account, i64)]| {
            let made = made.unwrap();
            assert_eq!((made.wallet(), made.key(), made.reason()), (wallet, "a key", reason));
            let entries: Vec<_> =
                made.entries().iter().map(|it| (it.account, it.amount.units())).collect();
            assert_eq!(entries, moved);
        };
        let five = amount(5);
        let bought = Posting::purchase(wallet, five, key());
        check(bought, PostingReason::Purchase, &[(Account::External, -5), (own, 5)]);
        check(Posting::hold(wallet, five, key()), PostingReason::Hold, &[(own, -5), (held, 5)]);
        let part = [(held, -5), (own, 2), (Account::Revenue, 3)];
        check(Posting::close(wallet, five, amount(3), key()), PostingReason::Charge, &part);
        let all = [(held, -5), (Account::Revenue, 5)];
        check(Posting::close(wallet, five, five, key()), PostingReason::Charge, &all);
        let nothing = [(held, -5), (own, 5)];
        check(Posting::close(wallet, five, amount(0), key()), PostingReason::Release, &nothing);
        let given = [(own, -5), (Account::Wallet(other), 5)];
        check(Posting::transfer(wallet, other, five, key()), PostingReason::Transfer, &given);
        let unsold = [(own, -5), (Account::External, 5)];
        check(Posting::refund_purchase(wallet, five, key()), PostingReason::Refund, &unsold);
        let ran = [(own, -5), (Account::Revenue, 5)];
        check(Posting::machine(wallet, five, key()), PostingReason::Machine, &ran);
        assert!(Posting::machine(wallet, amount(0), key()).is_err());
        let uncharged = [(Account::Revenue, -5), (own, 5)];
        check(Posting::refund_charge(wallet, five, key()), PostingReason::Refund, &uncharged);
    }

    #[test]
    fn accounts_and_reasons_have_names_of_their_own_and_one_may_owe() {
        let wallet = Address::repeat_byte(7);
        for (account, parts) in [
            (Account::Wallet(wallet), ("wallet", Some(&wallet))),
            (Account::Held(wallet), ("held", Some(&wallet))),
            (Account::External, ("external", None)),
            (Account::Revenue, ("revenue", None)),
        ] {
            assert_eq!(account.parts(), parts);
            assert_eq!(account.may_be_negative(), account == Account::External);
        }
        use PostingReason::{Charge, Hold, Machine, Purchase, Refund, Release, Transfer};
        let names =
            [Purchase, Hold, Charge, Release, Transfer, Refund, Machine].map(PostingReason::name);
        assert_eq!(
            names,
            ["purchase", "hold", "charge", "release", "transfer", "refund", "machine"]
        );
    }
}
