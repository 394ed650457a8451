//! Pure: fits items into a number of tokens, tier by tier.
//!
//! Each tier has a share, and what one leaves over the others use: none may crowd the others
//! out, and no room stays empty that somebody needs. One large item must never keep out the
//! small ones behind it.

use automaton_core::memory::MemoryTier;

/// The share of each tier in percent, in the order in which they are shown: 1,500, 3,000,
/// 3,000, 1,500 and 1,000 of 10,000 tokens.
pub const SHARES: [(MemoryTier, u32); 5] = [
    (MemoryTier::Working, 15),
    (MemoryTier::Episodic, 30),
    (MemoryTier::Semantic, 30),
    (MemoryTier::Procedural, 15),
    (MemoryTier::Relationship, 10),
];

/// The items that fit, in the order of their tiers and within one as they came, best first.
/// One that does not fit is skipped and the next is tried.
#[must_use]
pub fn pack<T>(
    items: Vec<T>,
    tokens_max: u32,
    tier: impl Fn(&T) -> MemoryTier,
    cost: impl Fn(&T) -> u32,
) -> Vec<T> {
    let mut left = tokens_max;
    let mut kept = Vec::new();
    let mut waiting = items;
    for (of, percent) in SHARES {
        let share = u64::from(tokens_max) * u64::from(percent) / 100;
        let mut room = u32::try_from(share).unwrap_or(u32::MAX);
        let fits = |item: &mut T| {
            let rest = if tier(item) == of { room.checked_sub(cost(item)) } else { None };
            left -= rest.map_or(0, |rest| room - rest);
            room = rest.unwrap_or(room);
            rest.is_some()
        };
        kept.extend(waiting.extract_if(.., fits));
    }
    // What the shares leave goes to whoever comes first.
    kept.extend(waiting.extract_if(.., |item| {
        let rest = left.checked_sub(cost(item));
        left = rest.unwrap_or(left);
        rest.is_some()
    }));
    let place = |item: &T| SHARES.iter().position(|(of, _)| *of == tier(item));
    kept.sort_by_key(place);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIERS: [MemoryTier; 5] = MemoryTier::ALL;

    fn packed(items: &[(MemoryTier, u32)], tokens_max: u32) -> Vec<(MemoryTier, u32)> {
        pack(items.to_vec(), tokens_max, |item| item.0, |item| item.1)
    }

    #[test]
    fn what_a_tier_leaves_the_others_use_and_a_large_item_is_skipped() {
        let fact = |cost| (MemoryTier::Semantic, cost);
        assert_eq!(packed(&[fact(20), fact(90), fact(30)], 60), [fact(20), fact(30)]);
        // Without rollover a tier would stop at its 30 %.
        assert_eq!(packed(&[fact(30), fact(30), fact(30)], 100).len(), 3);
    }

    #[test]
    fn no_tier_crowds_out_another() {
        let mut items = vec![(MemoryTier::Episodic, 10); 50];
        items.push((MemoryTier::Working, 10));
        items.push((MemoryTier::Relationship, 10));
        let kept = packed(&items, 100);
        assert_eq!(kept.len(), 10);
        assert_eq!(kept[0].0, MemoryTier::Working, "the order of the tiers");
        assert!(kept.contains(&(MemoryTier::Relationship, 10)));
    }

    proptest! {
        #[test]
        fn never_more_than_the_budget_and_nothing_that_would_fit_is_missing(items in prop::collection::vec((prop::sample::select(TIERS.to_vec()), 0..50_u32), 0..20), tokens_max in 0..200_u32) {
            let kept = packed(&items, tokens_max);
            let used: u32 = kept.iter().map(|item| item.1).sum();
            prop_assert!(used <= tokens_max);
            let mut missing = items.clone();
            for item in &kept {
                let at = missing.iter().position(|other| other == item);
                missing.remove(at.unwrap());
            }
            prop_assert!(missing.iter().all(|item| used + item.1 > tokens_max));
        }
    }
}
