//! Pure: a share, as a model writes it and as it is stored.

use schemars::JsonSchema;
use serde::Deserialize;

/// A share in percent; written as a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
#[schemars(inline, extend("minimum" = 0, "maximum" = 1))]
pub(super) struct Percent(pub(super) u8);

impl TryFrom<f64> for Percent {
    type Error = &'static str;

    #[expect(clippy::float_arithmetic, reason = "a number of the wire becomes whole percents here")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is within 0 and 100"
    )]
    fn try_from(number: f64) -> Result<Self, &'static str> {
        let in_range = (0.0..=1.0).contains(&number);
        let percent = || Self((number * 100.0).round() as u8);
        in_range.then(percent).ok_or("it is a number from 0 to 1")
    }
}
