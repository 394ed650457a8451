//! Pure: the extension `payment-identifier`: a payment's name.
//!
//! Source: the x402 specification, extension payment-identifier. The same name with
//! the same payment gets the same answer, and must never pay for another one.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The extension's key among the others.
pub const KEY: &str = "payment-identifier";

/// Length of a name, in characters.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=128;

/// Content of the extension in a demand and in a payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentIdentifierInfo {
    /// True if a payment without a name is refused.
    #[serde(default, deserialize_with = "super::lenient::or_default")]
    pub required: bool,
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// A name is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{KEY}: the id must be 16 to 128 letters, digits, hyphens or underscores")]
pub struct IdentifierError;

/// Returns the extension of a demand by a server that accepts names.
#[must_use]
pub fn offered() -> Value {
    let id = json!({
        "type": "string",
        "minLength": LENGTHS.start(),
        "maxLength": LENGTHS.end(),
        "pattern": "^[a-zA-Z0-9_-]+$",
    });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "required": { "type": "boolean" }, "id": id },
        "required": ["required"],
    });
    json!({ KEY: { "info": PaymentIdentifierInfo { required: false, id: None }, "schema": schema } })
}

/// The name among the extensions of a payment, if it has one.
///
/// # Errors
/// When it is there and is no name.
pub fn id_in(extensions: Option<&Value>) -> Result<Option<String>, IdentifierError> {
    let Some(info) = extensions.and_then(|all| all.get(KEY)).and_then(|own| own.get("info")) else {
        return Ok(None);
    };
    let info: PaymentIdentifierInfo =
        serde_json::from_value(info.clone()).map_err(|_| IdentifierError)?;
    let good = |id: &String| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        LENGTHS.contains(&id.len()) && id.bytes().all(plain)
    };
    match info.id {
        Some(id) if !good(&id) => Err(IdentifierError),
        id => Ok(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_where_clients_put_it_and_checked() {
        let read = |id: Value| {
            let all = json!({ KEY: { "info": { "required": false, "id": id }, "schema": {} } });
            id_in(Some(&all))
        };
        assert_eq!(read(json!("pay_0123456789-abc")).unwrap().unwrap(), "pay_0123456789-abc");
        for bad in
            [json!("short"), json!("with a space in its middle"), json!(7), json!("x".repeat(129))]
        {
            assert_eq!(read(bad), Err(IdentifierError));
        }
        assert_eq!(id_in(Some(&offered())), Ok(None), "an echo without a name");
        assert_eq!(id_in(Some(&json!({}))), Ok(None));
        assert_eq!(id_in(None), Ok(None));
    }
}
