//! Pure: which snapshots are deleted.
//!
//! The newest are kept, and of the days before the first of each day: a command that is run over
//! and over must not push out the state of yesterday. The newest one is always kept, and the
//! newest complete one too.

use automaton_core::id::SnapshotId;
use automaton_core::snapshot::{SnapshotLimits, SnapshotRecord};

/// Days, besides those of the newest snapshots, of which one is kept.
const DAYS_KEPT: usize = 7;
const DAY_MILLIS: i64 = 86_400_000;

/// Returns the snapshots that are too many, oldest first. The records are sorted, oldest first.
pub(super) fn surplus(records: &[SnapshotRecord], limits: &SnapshotLimits) -> Vec<SnapshotId> {
    let newest = usize::try_from(limits.kept).unwrap_or(usize::MAX).max(1);
    let (older, _) = records.split_at(records.len().saturating_sub(newest));
    let mut kept_days: Vec<i64> = Vec::new();
    let mut kept: Vec<SnapshotId> = Vec::new();
    let day_of = |record: &SnapshotRecord| record.at.as_millis().div_euclid(DAY_MILLIS);
    for record in older {
        if kept_days.last() != Some(&day_of(record)) {
            kept_days.push(day_of(record));
            kept.push(record.id);
        }
    }
    let first_kept = kept.len().saturating_sub(DAYS_KEPT);
    let kept = kept.get(first_kept..).unwrap_or_default();
    let protected = protected(records);
    let is_surplus = |id: &SnapshotId| !kept.contains(id) && !protected.contains(id);
    older.iter().map(|record| record.id).filter(is_surplus).collect()
}

/// Returns the snapshots that no limit deletes: the newest, and the newest complete one.
pub(super) fn protected(records: &[SnapshotRecord]) -> Vec<SnapshotId> {
    let newest = records.last();
    let complete = records.iter().rev().find(|record| record.is_complete());
    newest.into_iter().chain(complete).map(|record| record.id).collect()
}

#[cfg(test)]
mod tests {
    use automaton_core::snapshot::{LeftOut, LeftOutReason, SnapshotCause};
    use automaton_core::time::Timestamp;

    use super::*;

    fn record(hours: i64, nth: u64) -> SnapshotRecord {
        let at = Timestamp::from_millis(hours * 3_600_000);
        let text = format!("{nth:026}");
        SnapshotRecord {
            id: text.parse().unwrap(),
            at,
            cause: SnapshotCause::Manual,
            files: 1,
            bytes: 1,
            copied_bytes: 1,
            took_ms: 1,
            left_out: Vec::new(),
            left_out_more: 0,
        }
    }

    #[test]
    fn a_storm_of_snapshots_leaves_the_first_of_each_day() {
        let limits = SnapshotLimits { kept: 3, ..SnapshotLimits::default() };
        let records: Vec<_> = (0..48).map(|nth| record(nth, nth.unsigned_abs())).collect();
        let gone = surplus(&records, &limits);
        let left: Vec<_> = records.iter().map(|it| it.id).filter(|id| !gone.contains(id)).collect();
        let wanted = [0, 24, 45, 46, 47].map(|nth| record(0, nth).id);
        assert_eq!(left, wanted);
        let long: Vec<_> = (0..400).map(|nth| record(nth * 12, nth.unsigned_abs())).collect();
        assert_eq!(long.len() - surplus(&long, &limits).len(), 3 + DAYS_KEPT);
    }

    #[test]
    fn the_newest_complete_one_stays() {
        let limits = SnapshotLimits { kept: 1, ..SnapshotLimits::default() };
        let mut records: Vec<_> = (0..5).map(|nth| record(0, nth)).collect();
        let lost = LeftOut { path: "a".to_owned(), why: LeftOutReason::Time, bytes: 1 };
        records[3].left_out.push(lost.clone());
        records[4].left_out.push(lost);
        let gone = surplus(&records, &limits);
        // The first of the day, the newest complete one, the newest.
        assert_eq!(gone, [records[1].id, records[3].id]);
        assert_eq!(protected(&records), [records[4].id, records[2].id]);
        assert_eq!(surplus(&[], &limits), []);
    }
}
