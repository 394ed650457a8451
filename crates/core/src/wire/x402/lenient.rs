//! Pure: reads the fields of x402 as other programs write them.
//!
//! A field that only describes may be `null`. A number may be written as a number or as
//! decimal digits. Each reader has one result for both spellings. A fraction, a sign or an
//! exponent must never be read as an amount.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a value that may be `null`, which means the same as a missing one.
///
/// # Errors
/// When there is a value of another type.
pub(super) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// Reads decimal digits, from a text or from a whole number.
///
/// The text itself is not checked here: `atomic` does that, and shows the text that it refuses.
///
/// # Errors
/// When the value is neither a text nor a whole number from 0 to 2⁶⁴ - 1.
pub(super) fn digits<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    digits_of(Value::deserialize(from)?)
}

/// Reads decimal digits that may be missing or `null`.
///
/// # Errors
/// As [`digits`].
pub(super) fn optional_digits<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<String>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        value => digits_of(value).map(Some),
    }
}

fn digits_of<E: Error>(value: Value) -> Result<String, E> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => match number.as_u64() {
            Some(whole) => Ok(whole.to_string()),
            None => Err(E::custom(format!("expected a whole number, found {number}"))),
        },
        other => Err(E::custom(format!("expected decimal digits, found {}", kind(&other)))),
    }
}

/// Reads a whole number, from a number or from a text of decimal digits. `60.0` is 60.
///
/// # Errors
/// When the value is no whole number that fits.
pub(super) fn whole<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let value = Value::deserialize(from)?;
    let text = match &value {
        Value::String(text) => text.as_str().to_owned(),
        Value::Number(number) => number.to_string(),
        other => {
            let found = kind(other);
            return Err(D::Error::custom(format!("expected a whole number, found {found}")));
        }
    };
    let digits = text.strip_suffix(".0").unwrap_or(&text);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    // silent-ok: digits that do not fit are refused below, with the text.
    let number: Option<u64> = if is_plain { digits.parse().ok() } else { None };
    // silent-ok: as above.
    let fitting = number.and_then(|number| T::try_from(number).ok());
    fitting.ok_or_else(|| D::Error::custom(format!("expected a whole number, found {text}")))
}

/// Reads an object that is only passed on. A value of another form counts as missing.
///
/// # Errors
/// When the JSON is broken.
pub(super) fn if_readable<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    // silent-ok: nothing depends on it.
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// The name of a JSON type, for an error.
const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
