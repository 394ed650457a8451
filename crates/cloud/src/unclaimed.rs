//! Credits that were given to wallets which never signed in, for the operator to see.
//!
//! They belong to the wallet and wait for it, however long that takes. Nothing here may
//! take them away.

use std::sync::Arc;

use automaton_core::time::Clock;

use crate::app::DATABASE;
use crate::config::CloudConfig;
use crate::db::{Db, UnclaimedCredits};
use crate::error::CloudError;

/// Wallets that are listed at most, those that wait longest first.
const WALLETS_MAX: u32 = 1_000;

/// Reads the credits of wallets that never signed in, oldest first, a thousand at most. The
/// cloud may run meanwhile.
///
/// # Errors
/// Fails if the database is missing or cannot be read.
pub async fn unclaimed_credits(
    config: &CloudConfig,
    clock: Arc<dyn Clock>,
) -> Result<Vec<UnclaimedCredits>, CloudError> {
    let path = config.data.join(DATABASE);
    let missing = |source| CloudError::File { path: path.clone(), source };
    // Opening makes what is missing, and a cloud that never ran has no credits.
    std::fs::metadata(&path).map_err(missing)?;
    Ok(Db::open(&path, clock)?.unclaimed(WALLETS_MAX).await?)
}
