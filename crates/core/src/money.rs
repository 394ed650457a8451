//! Pure: money as integers, one type per unit.
//!
//! The credit ledger counts [`Microcents`], since a call to a small model costs
//! a fraction of a cent; USDC is counted in its base unit, [`MicroUsdc`].
//! Arithmetic is checked, decimal text is parsed as decimal, and nothing here
//! may ever pass through a float.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount cannot be read or computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// The text is not a decimal number.
    #[error("'{0}' is not a decimal amount, such as 12 or 0.05")]
    NotDecimal(String),
    /// The text has more digits after the point than the unit can hold.
    #[error("'{text}' has more than {places} digits after the point")]
    TooPrecise {
        /// The text.
        text: String,
        /// Digits that the unit holds.
        places: u32,
    },
    /// The amount does not fit.
    #[error("the amount is too large to be counted")]
    Overflow,
}

/// Credits in units of 10⁻⁶ US cent (10⁻⁸ US dollar). Negative is debt.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Microcents(i64);

impl Microcents {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// Units in one cent.
    pub const PER_CENT: i64 = 1_000_000;

    /// An amount from its base units.
    #[must_use]
    pub const fn new(units: i64) -> Self {
        Self(units)
    }

    /// The amount in base units.
    #[must_use]
    pub const fn units(self) -> i64 {
        self.0
    }

    /// Whole cents as an amount.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`] beyond 9.2 × 10¹² cents.
    pub fn from_cents(cents: i64) -> Result<Self, MoneyError> {
        cents.checked_mul(Self::PER_CENT).map(Self).ok_or(MoneyError::Overflow)
    }

    /// Whole cents, rounded towards minus infinity: how a balance is shown.
    #[must_use]
    pub const fn cents_floor(self) -> i64 {
        self.0.div_euclid(Self::PER_CENT)
    }

    /// Whole cents, rounded towards plus infinity: how a price is shown.
    #[must_use]
    pub const fn cents_ceil(self) -> i64 {
        self.0.div_euclid(Self::PER_CENT) + (self.0.rem_euclid(Self::PER_CENT) != 0) as i64
    }

    /// Whole cents, rounded towards zero: how a change is shown.
    #[must_use]
    pub const fn cents_towards_zero(self) -> i64 {
        self.0 / Self::PER_CENT
    }

    /// The sum.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`] when it does not fit.
    pub fn plus(self, other: Self) -> Result<Self, MoneyError> {
        self.0.checked_add(other.0).map(Self).ok_or(MoneyError::Overflow)
    }

    /// The difference.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`] when it does not fit.
    pub fn minus(self, other: Self) -> Result<Self, MoneyError> {
        self.0.checked_sub(other.0).map(Self).ok_or(MoneyError::Overflow)
    }

    /// The price of `count` items at this amount per million items, rounded up.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`] when it does not fit.
    pub fn per_million(self, count: u64) -> Result<Self, MoneyError> {
        let product = i128::from(self.0) * i128::from(count);
        let rounded =
            product.div_euclid(1_000_000) + i128::from(product.rem_euclid(1_000_000) != 0);
        i64::try_from(rounded).map(Self).map_err(|_| MoneyError::Overflow)
    }
}

impl fmt::Display for Microcents {
    /// Dollars with two to eight decimals, `$0.00012`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}${}", Decimal { units: self.0.unsigned_abs(), places: 8, shown: 2 })
    }
}

/// Microcents in one base unit of USDC, at its face value.
const MICROCENTS_PER_UNIT: u64 = 100;
/// Base units of USDC in one cent, at its face value.
const UNITS_PER_CENT: u64 = 10_000;

/// USDC in its base unit, 10⁻⁶ USDC. Never negative.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct MicroUsdc(u64);

impl MicroUsdc {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// An amount from its base units.
    #[must_use]
    pub const fn new(units: u64) -> Self {
        Self(units)
    }

    /// The amount in base units.
    #[must_use]
    pub const fn units(self) -> u64 {
        self.0
    }

    /// The amount that a decimal text such as `12.5` names.
    ///
    /// # Errors
    /// When the text is no decimal, is finer than 10⁻⁶ or too large.
    pub fn parse(text: &str) -> Result<Self, MoneyError> {
        parse_decimal(text, 6).map(Self)
    }

    /// The sum.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`] when it does not fit.
    pub fn plus(self, other: Self) -> Result<Self, MoneyError> {
        self.0.checked_add(other.0).map(Self).ok_or(MoneyError::Overflow)
    }

    /// The difference; `None` when it would be negative.
    #[must_use]
    pub fn minus(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// Returns the value at one US dollar for one USDC.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`] beyond 9.2 × 10¹⁰ USDC.
    pub fn face_value(self) -> Result<Microcents, MoneyError> {
        let units = self.0.checked_mul(MICROCENTS_PER_UNIT).and_then(|units| units.try_into().ok());
        units.map(Microcents).ok_or(MoneyError::Overflow)
    }

    /// The amount as [`MicroUsdc::parse`] reads it, with two to six decimals.
    pub fn decimal(self) -> impl fmt::Display {
        Decimal { units: self.0, places: 6, shown: 2 }
    }

    /// USDC for whole cents, one USDC being one US dollar.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`] when it does not fit.
    pub fn from_cents(cents: u64) -> Result<Self, MoneyError> {
        cents.checked_mul(UNITS_PER_CENT).map(Self).ok_or(MoneyError::Overflow)
    }
}

impl fmt::Display for MicroUsdc {
    /// USDC with two to six decimals, `12.50 USDC`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} USDC", self.decimal())
    }
}

/// A scaled integer written as a decimal without its needless zeros.
struct Decimal {
    units: u64,
    places: usize,
    shown: usize,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:0width$}", self.units, width = self.places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - self.places);
        let kept = fraction.trim_end_matches('0').len().max(self.shown);
        write!(f, "{whole}.{}", &fraction[..kept])
    }
}

fn parse_decimal(text: &str, places: u32) -> Result<u64, MoneyError> {
    let not_decimal = || MoneyError::NotDecimal(text.chars().take(40).collect());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return Err(not_decimal());
    }
    let fraction = fraction.trim_end_matches('0');
    let missing = usize::try_from(places)
        .ok()
        .and_then(|places| places.checked_sub(fraction.len()))
        .ok_or_else(|| MoneyError::TooPrecise { text: text.chars().take(40).collect(), places })?;
    let digits = format!("{whole}{fraction}{}", "0".repeat(missing));
    digits.parse().map_err(|_| MoneyError::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn balances_round_down_and_prices_up() {
        let check = |units: i64, floor: i64, ceil: i64, towards_zero: i64| {
            let amount = Microcents::new(units);
            assert_eq!((amount.cents_floor(), amount.cents_ceil()), (floor, ceil), "{units}");
            assert_eq!(amount.cents_towards_zero(), towards_zero, "{units}");
        };
        check(0, 0, 0, 0);
        check(1, 0, 1, 0);
        check(999_999, 0, 1, 0);
        check(1_000_000, 1, 1, 1);
        check(-1, -1, 0, 0);
        check(-2_500_000, -3, -2, -2);
    }

    #[test]
    fn usdc_is_counted_in_its_base_unit() {
        assert_eq!(MicroUsdc::new(7).units(), 7);
        assert_eq!(MicroUsdc::from_cents(25), Ok(MicroUsdc::new(250_000)));
        assert_eq!(MicroUsdc::from_cents(u64::MAX / 9_999), Err(MoneyError::Overflow));
    }

    #[test]
    fn refuses_what_is_no_amount() {
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "NaN", "0x10", " 1", "1 "] {
            assert!(matches!(MicroUsdc::parse(text), Err(MoneyError::NotDecimal(_))), "{text}");
        }
        assert!(matches!(MicroUsdc::parse("0.0000001"), Err(MoneyError::TooPrecise { .. })));
        assert_eq!(MicroUsdc::parse("99999999999999"), Err(MoneyError::Overflow));
        assert_eq!(MicroUsdc::parse("1.50000000"), Ok(MicroUsdc::new(1_500_000)));
    }

    #[test]
    fn shows_dollars() {
        assert_eq!(Microcents::new(12_000).to_string(), "$0.00012");
        assert_eq!(Microcents::new(500_000_000).to_string(), "$5.00");
        assert_eq!(Microcents::new(-1).to_string(), "-$0.00000001");
        assert_eq!(Microcents::ZERO.to_string(), "$0.00");
    }

    proptest! {
        #[test]
        fn usdc_survives_its_text(units in any::<u64>()) {
            let shown = MicroUsdc::new(units).to_string();
            let text = shown.strip_suffix(" USDC").unwrap();
            prop_assert_eq!(MicroUsdc::parse(text), Ok(MicroUsdc::new(units)));
        }

        #[test]
        fn a_price_is_never_below_its_exact_value(units in 0_i64..1 << 40, count in 0_u64..1 << 20) {
            let price = Microcents::new(units).per_million(count).unwrap().units();
            let exact = i128::from(units) * i128::from(count);
            prop_assert!(i128::from(price) * 1_000_000 >= exact);
            prop_assert!((i128::from(price) - 1) * 1_000_000 < exact || exact == 0);
        }
    }
}
