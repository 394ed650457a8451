//! Pure: prices that hold from a day on, as an operator names them.
//!
//! Must never let a price hold before its day, or guess one where no row names the model.

use automaton_core::model::ModelId;
use automaton_core::time::Timestamp;

use crate::cost::ModelPrices;

/// Prices of models of one name, from a day on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatedPrices {
    /// The model's id; a `*` at its end stands for any ending.
    pub model: String,
    /// First day of these prices.
    pub from: Timestamp,
    /// The prices.
    pub prices: ModelPrices,
}

impl DatedPrices {
    fn names(&self, id: &ModelId) -> bool {
        match self.model.strip_suffix('*') {
            Some(beginning) => id.as_str().starts_with(beginning),
            None => id.as_str() == self.model,
        }
    }
}

/// Prices of models, from their days on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceSchedule(Vec<DatedPrices>);

impl PriceSchedule {
    /// Creates a schedule. Of rows with the same day the last one counts.
    #[must_use]
    pub fn new(mut rows: Vec<DatedPrices>) -> Self {
        rows.sort_by_key(|row| row.from);
        Self(rows)
    }

    /// Returns the current price of a model by the newest valid row.
    #[must_use]
    pub fn at(&self, model: &ModelId, now: Timestamp) -> Option<ModelPrices> {
        let mut held = self.0.iter().rev().filter(|row| row.from <= now);
        held.find(|row| row.names(model)).map(|row| row.prices)
    }
}

#[cfg(test)]
mod tests {
    use automaton_core::money::Microcents;

    use super::*;

    #[test]
    fn the_newest_price_that_holds_counts() {
        let row = |model: &str, from, input| DatedPrices {
            model: model.to_owned(),
            from: Timestamp::from_millis(from),
            prices: ModelPrices {
                input_per_million: Microcents::new(input),
                ..ModelPrices::default()
            },
        };
        let list = PriceSchedule::new(vec![
            row("gpt-5*", 200, 3),
            row("gpt-5-mini", 0, 1),
            row("gpt-5*", 100, 2),
            row("gpt-5*", 200, 4),
        ]);
        let at = |model: &str, now| {
            let held = list.at(&model.into(), Timestamp::from_millis(now));
            held.map(|prices| prices.input_per_million.units())
        };
        assert_eq!([at("gpt-5-mini", 0), at("gpt-5-mini", 99)], [Some(1), Some(1)]);
        assert_eq!([at("gpt-5-mini", 100), at("gpt-5.2", 199)], [Some(2), Some(2)]);
        assert_eq!(at("gpt-5.2", 200), Some(4), "of one day the last row");
        assert_eq!([at("gpt-5.2", 99), at("gpt-4.1", 999)], [None, None]);
    }
}
