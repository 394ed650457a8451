//! Money: what is there, buying the credits to think with, and spending them.

pub(crate) mod check_credits;
pub(crate) mod check_usdc_balance;
pub(crate) mod topup_credits;
pub(crate) mod transfer_credits;
pub(crate) mod x402_fetch;
