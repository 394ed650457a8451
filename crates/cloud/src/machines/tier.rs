//! Pure: the machines that are for rent, and what a minute of one costs.
//!
//! A price is for a month of 30 days. What any number of minutes costs in all is that part of it,
//! rounded up once: no rounding is repeated from minute to minute, and a whole month costs what
//! it says.

use automaton_core::money::{Microcents, MoneyError};
use automaton_core::wire::cloud::{CreateMachineRequest, MachineTier};

/// Minutes of a month of 30 days.
const MINUTES: i128 = 30 * 24 * 60;
/// Minutes that a wallet has to be able to pay before a machine is started: a day.
const FIRST_MINUTES: u64 = 24 * 60;

/// A kind of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineTierSpec {
    /// Its name.
    pub name: &'static str,
    /// Processors.
    pub vcpu: u32,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// Disk in GiB.
    pub disk_gb: u32,
    /// The price of a month.
    pub monthly_cents: i64,
}

/// All there are, from the smallest: the sizes that clients in the field ask for.
pub const TIERS: [MachineTierSpec; 5] = [
    MachineTierSpec { name: "nano", vcpu: 1, memory_mb: 512, disk_gb: 5, monthly_cents: 500 },
    MachineTierSpec { name: "micro", vcpu: 1, memory_mb: 1024, disk_gb: 10, monthly_cents: 800 },
    MachineTierSpec { name: "small", vcpu: 2, memory_mb: 2048, disk_gb: 20, monthly_cents: 1400 },
    MachineTierSpec { name: "medium", vcpu: 2, memory_mb: 4096, disk_gb: 40, monthly_cents: 2500 },
    MachineTierSpec { name: "large", vcpu: 4, memory_mb: 8192, disk_gb: 80, monthly_cents: 4500 },
];

impl MachineTierSpec {
    /// Returns the smallest tier with the requested resources.
    #[must_use]
    pub fn for_request(asked: &CreateMachineRequest) -> Option<Self> {
        TIERS.into_iter().find(|tier| {
            tier.vcpu >= asked.vcpu
                && tier.memory_mb >= asked.memory_mb
                && tier.disk_gb >= asked.disk_gb
        })
    }

    /// Returns the tier with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        TIERS.into_iter().find(|tier| tier.name == name)
    }

    /// Returns the tier's description for clients.
    #[must_use]
    pub fn to_wire(&self) -> MachineTier {
        MachineTier {
            name: self.name.to_owned(),
            vcpu: self.vcpu,
            memory_mb: self.memory_mb,
            disk_gb: self.disk_gb,
            monthly_cents: self.monthly_cents,
        }
    }

    /// Its memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.memory_mb) << 20
    }

    /// Its disk, in bytes.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        u64::from(self.disk_gb) << 30
    }
}

/// Returns the cost of the first `minutes` minutes at this monthly price.
///
/// # Errors
/// Fails if it cannot be counted.
pub fn cost(monthly: Microcents, minutes: u64) -> Result<Microcents, MoneyError> {
    let product =
        i128::from(monthly.units()).checked_mul(minutes.into()).ok_or(MoneyError::Overflow)?;
    let rounded = product.div_euclid(MINUTES) + i128::from(product.rem_euclid(MINUTES) != 0);
    i64::try_from(rounded).map(Microcents::new).map_err(|_| MoneyError::Overflow)
}

/// Returns the cost of `more` minutes after the first `before`.
///
/// # Errors
/// Fails if it cannot be counted.
pub fn charge(monthly: Microcents, before: u64, more: u64) -> Result<Microcents, MoneyError> {
    let all = before.checked_add(more).ok_or(MoneyError::Overflow)?;
    cost(monthly, all)?.minus(cost(monthly, before)?)
}

/// Returns the credits that a wallet needs before a machine of this price is started.
///
/// # Errors
/// Fails if it cannot be counted.
pub fn first_period(monthly: Microcents) -> Result<Microcents, MoneyError> {
    cost(monthly, FIRST_MINUTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn minutes_add_up_to_the_price_of_a_month(
            units in 0_i64..1_000_000_000_000,
            steps in proptest::collection::vec(1_u64..5_000, 1..20),
        ) {
            let monthly = Microcents::new(units);
            let mut minutes = 0;
            let mut sum = 0;
            for step in steps {
                let part = charge(monthly, minutes, step).unwrap();
                prop_assert!(part >= Microcents::ZERO);
                sum += part.units();
                minutes += step;
            }
            prop_assert_eq!(cost(monthly, minutes).unwrap().units(), sum);
            let exact = i128::from(units) * i128::from(minutes);
            let over = i128::from(sum) * MINUTES - exact;
            prop_assert!((0..MINUTES).contains(&over), "rounded up once");
        }
    }

    #[test]
    fn a_month_costs_what_it_says_and_a_day_a_thirtieth() {
        for tier in TIERS {
            let monthly = Microcents::from_cents(tier.monthly_cents).unwrap();
            assert_eq!(cost(monthly, 43_200).unwrap(), monthly);
            assert_eq!(MachineTierSpec::from_name(tier.name), Some(tier));
        }
        let five = Microcents::from_cents(500).unwrap();
        assert_eq!(first_period(five).unwrap().cents_ceil(), 17);
        assert_eq!(cost(five, 1).unwrap().units(), 11_575, "$5 / 43200, rounded up");
        assert_eq!(charge(five, 1, 1).unwrap().units(), 11_574);
        assert!(cost(Microcents::new(i64::MAX), u64::MAX).is_err());
    }

    #[test]
    fn the_smallest_that_has_enough_is_taken() {
        let asked = |vcpu, memory_mb, disk_gb| CreateMachineRequest {
            vcpu,
            memory_mb,
            disk_gb,
            ..CreateMachineRequest::default()
        };
        let name = |asked| MachineTierSpec::for_request(&asked).map(|tier| tier.name);
        assert_eq!(name(CreateMachineRequest::default()), Some("nano"));
        assert_eq!(name(asked(1, 1024, 10)), Some("micro"));
        assert_eq!(name(asked(2, 512, 1)), Some("small"));
        assert_eq!(name(asked(4, 8192, 80)), Some("large"));
        assert_eq!(name(asked(4, 8193, 80)), None);
    }
}
