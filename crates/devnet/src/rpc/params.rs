//! Pure: parameters of a method as a tuple of types.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::error::{PARAMS, RpcError};

/// Reads between `least` and `most` parameters. Omitted ones are `null`, so the tuple's type uses
/// `Option` for them.
///
/// # Errors
/// Fails if there are too few or too many, or if one has another form.
pub(crate) fn read<T: DeserializeOwned>(
    params: Option<&RawValue>,
    least: usize,
    most: usize,
) -> Result<T, RpcError> {
    let wrong = |why: String| RpcError::new(PARAMS, why);
    let given: Vec<&RawValue> = match params {
        Some(params) => serde_json::from_str(params.get()).map_err(|e| wrong(e.to_string()))?,
        None => Vec::new(),
    };
    if !(least..=most).contains(&given.len()) {
        return Err(wrong(format!("{} parameters, of {least} to {most}", given.len())));
    }
    let absent = std::iter::repeat_n("null", most - given.len());
    let all: Vec<&str> = given.into_iter().map(RawValue::get).chain(absent).collect();
    serde_json::from_str(&format!("[{}]", all.join(","))).map_err(|e| wrong(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: DeserializeOwned + PartialEq + std::fmt::Debug>(text: &str, expected: &Option<T>) {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        assert_eq!(&read::<T>(Some(&raw), 1, 2).ok(), expected, "{text}");
    }

    #[test]
    fn what_is_left_out_is_null() {
        check("[1]", &Some((1, None::<u8>)));
        check("[1, null]", &Some((1, None::<u8>)));
        check("[1, 2]", &Some((1, Some(2))));
        for text in ["[]", "[1,2,3]", "{}", "1", "[null]", "[\"1\"]"] {
            check::<(u8, Option<u8>)>(text, &None);
        }
    }
}
