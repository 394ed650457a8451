//! Pure: fits items into a number of tokens.
//!
//! One large item must never keep out the small ones behind it.

/// The items that fit, in their order. One that does not fit is skipped and
/// the next is tried.
#[must_use]
pub fn pack<T>(items: Vec<T>, tokens_max: u32, cost: impl Fn(&T) -> u32) -> Vec<T> {
    let mut left = tokens_max;
    let fits = |item: &T| {
        let rest = left.checked_sub(cost(item));
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    items.into_iter().filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_large_item_is_skipped() {
        assert_eq!(pack(vec![3, 20, 4, 3, 1], 8, |cost| *cost), [3, 4, 1]);
        assert_eq!(pack(vec![u32::MAX, 1], 0, |cost| *cost), [0_u32; 0]);
    }

    proptest! {
        #[test]
        fn never_more_than_the_budget_and_nothing_that_would_fit_is_missing(items in prop::collection::vec(0..50_u32, 0..20), tokens_max in 0..200_u32) {
            let kept = pack(items.clone(), tokens_max, |cost| *cost);
            let used: u32 = kept.iter().sum();
            prop_assert!(used <= tokens_max);
            let mut rest = kept.iter();
            let all_found = items.iter().filter(|item| rest.as_slice().first() == Some(item) && rest.next().is_some()).count();
            prop_assert_eq!(all_found, kept.len());
            if kept.len() < items.len() {
                prop_assert!(items.iter().any(|item| used + item > tokens_max));
            }
        }
    }
}
