//! Money: what is there, and buying the credits to think with.

pub(crate) mod check_credits;
pub(crate) mod check_usdc_balance;
pub(crate) mod topup_credits;
