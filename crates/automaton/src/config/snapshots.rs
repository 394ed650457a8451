//! The key `snapshots`: copies of the workspace before commands that may delete files.

use automaton_core::snapshot::SnapshotLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::Ranged;

const MEGABYTE: u64 = 1_000_000;

/// Snapshots of the workspace, from which `automaton workspace restore` brings files back. One is
/// taken before the first command of a wake that may delete files.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct SnapshotsFile {
    /// Whether they are taken before commands; `true` by default. By hand they always can.
    automatic: Option<bool>,
    /// Megabytes of all files of one snapshot; 2000 by default. What is over it is left out and
    /// named, caches first.
    megabytes_max: Option<Ranged<1, 10_000_000>>,
    /// Files, folders and links of one snapshot; 100000 by default.
    files_max: Option<Ranged<1, 10_000_000>>,
    /// Seconds that one may take; 30 by default.
    seconds_max: Option<Ranged<1, 600>>,
    /// The newest that are kept; 10 by default, and besides them the first of each of seven days.
    kept: Option<Ranged<1, 1000>>,
    /// Megabytes of all together; 4000 by default. The newest one stays in any case.
    kept_megabytes_max: Option<Ranged<1, 100_000_000>>,
}

impl SnapshotsFile {
    /// The limits, with the defaults for what the file does not say.
    pub(crate) fn limits(&self) -> SnapshotLimits {
        let usual = SnapshotLimits::default();
        SnapshotLimits {
            automatic: self.automatic.unwrap_or(usual.automatic),
            bytes_max: self.megabytes_max.map_or(usual.bytes_max, |it| it.get() * MEGABYTE),
            entries_max: self.files_max.map_or(usual.entries_max, Ranged::get),
            seconds_max: self.seconds_max.map_or(usual.seconds_max, Ranged::get),
            kept: self.kept.map_or(usual.kept, Ranged::get_u32),
            kept_bytes_max: self
                .kept_megabytes_max
                .map_or(usual.kept_bytes_max, |it| it.get() * MEGABYTE),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::file::parse;
    use super::*;

    #[test]
    fn what_the_file_says_holds_and_the_rest_is_as_usual() {
        let read = |text: &str| parse(Path::new("x"), text).map(|file| file.snapshots.limits());
        assert_eq!(read("{}").unwrap(), SnapshotLimits::default());
        let limits = read(r#"{"snapshots": {"megabytesMax": 3, "kept": 2, "automatic": false}}"#);
        let limits = limits.unwrap();
        assert_eq!((limits.bytes_max, limits.kept, limits.automatic), (3_000_000, 2, false));
        for bad in [r#"{"snapshots": {"kept": 0}}"#, r#"{"snapshots": {"keep": 1}}"#] {
            assert!(read(bad).unwrap_err().line().contains("snapshots.ke"), "{bad}");
        }
    }
}
