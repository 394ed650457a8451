//! Free space of the disks that a life writes to. Must never write to them itself.

use std::path::Path;
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_sandbox::fs::disk_space;

use crate::error::CliError;
use crate::role::signer;
use crate::stack;
use crate::ui::units::size;

/// Room without which a life that has stopped is not started again, in bytes.
const ROOM_MIN: u64 = 8 << 20;

/// Interval at which a full disk is checked.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Which disk of a life in this home is full, if one is.
pub(crate) fn shortage(home: &Path) -> Option<CliError> {
    let folders = [home.to_owned(), signer::home_of(home), stack::folder_of(home)];
    folders.iter().find_map(|folder| {
        // silent-ok: what is not there is not written to.
        let (left, _) = disk_space(folder).ok()?;
        let short = || {
            let folder = folder.display();
            let left = size(left);
            let needed = size(ROOM_MIN);
            let what =
                format!("the disk of {folder} is full: {left} are left, {needed} are needed");
            CliError::new(ErrorClass::Internal, what)
                .hint("Free some disk space; nothing that was stored is lost")
        };
        (left < ROOM_MIN).then(short)
    })
}
