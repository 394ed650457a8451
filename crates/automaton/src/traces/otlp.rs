//! Pure: the request of an OTLP export and its two encodings.
//!
//! OTLP 1 over HTTP has JSON (ids in hexadecimal, 64-bit numbers as strings) and protobuf.
//! Collectors take one of them or both. Both are written from the same values here, so they
//! cannot differ. The numbers of the fields are those of `opentelemetry/proto/trace/v1` and
//! `common/v1`, which never change within OTLP 1.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// The encoding of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) enum OtlpProtocol {
    /// JSON over HTTP.
    #[default]
    #[serde(rename = "http/json")]
    Json,
    /// Protobuf over HTTP.
    #[serde(rename = "http/protobuf")]
    Protobuf,
}

impl OtlpProtocol {
    /// Reads the name that OpenTelemetry's own variables have for it.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        match name.trim() {
            "http/json" => Some(Self::Json),
            "http/protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }

    /// Returns the media type.
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/x-protobuf",
        }
    }

    /// Returns the other one.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Json => Self::Protobuf,
            Self::Protobuf => Self::Json,
        }
    }
}

/// The request of an export: `ExportTraceServiceRequest`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OtlpExportRequest {
    pub(super) resource_spans: [ResourceSpans; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceSpans {
    pub(super) resource: OtlpResource,
    pub(super) scope_spans: [ScopeSpans; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct OtlpResource {
    pub(super) attributes: Vec<OtlpAttribute>,
}

#[derive(Debug, Serialize)]
pub(super) struct ScopeSpans {
    pub(super) scope: OtlpScope,
    pub(super) spans: Vec<OtlpSpan>,
}

#[derive(Debug, Serialize)]
pub(super) struct OtlpScope {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OtlpSpan {
    pub(super) trace_id: OtlpId,
    pub(super) span_id: OtlpId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_span_id: Option<OtlpId>,
    pub(super) name: String,
    pub(super) kind: u8,
    #[serde(serialize_with = "as_text")]
    pub(super) start_time_unix_nano: u64,
    #[serde(serialize_with = "as_text")]
    pub(super) end_time_unix_nano: u64,
    pub(super) attributes: Vec<OtlpAttribute>,
    pub(super) status: OtlpStatus,
}

/// The id of a trace, 16 bytes, or of a span, 8 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OtlpId(pub(super) Vec<u8>);

impl fmt::Display for OtlpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl Serialize for OtlpId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Debug, Serialize)]
pub(super) struct OtlpStatus {
    pub(super) code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct OtlpAttribute {
    pub(super) key: &'static str,
    pub(super) value: OtlpValue,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum OtlpValue {
    StringValue(String),
    /// A 64-bit number, which JSON would not hold.
    #[serde(serialize_with = "as_text")]
    IntValue(i64),
}

fn as_text<T: ToString, S: Serializer>(number: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&number.to_string())
}

impl OtlpExportRequest {
    /// Writes the request in an encoding.
    ///
    /// # Errors
    /// When the JSON writer fails.
    pub(super) fn encode(&self, protocol: OtlpProtocol) -> Result<Vec<u8>, serde_json::Error> {
        match protocol {
            OtlpProtocol::Json => serde_json::to_vec(self),
            OtlpProtocol::Protobuf => {
                let mut message = ProtobufMessage::default();
                for spans in &self.resource_spans {
                    message.message(1, |it| spans.write(it));
                }
                Ok(message.0)
            }
        }
    }
}

/// A protobuf message that is written field by field.
#[derive(Debug, Default)]
struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    /// Writes an unsigned number in base 128, the lowest seven bits first.
    fn varint(&mut self, mut number: u64) {
        loop {
            let [lowest, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                self.0.push(lowest & 0x7f);
                return;
            }
            self.0.push(lowest | 0x80);
        }
    }

    /// Writes the number of a field and how its value is written.
    fn tag(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn number(&mut self, field: u32, number: u64) {
        self.tag(field, 0);
        self.varint(number);
    }

    fn fixed64(&mut self, field: u32, number: u64) {
        self.tag(field, 1);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }
}

impl ResourceSpans {
    fn write(&self, message: &mut ProtobufMessage) {
        message.message(1, |resource| write_attributes(resource, 1, &self.resource.attributes));
        for scope_spans in &self.scope_spans {
            message.message(2, |it| scope_spans.write(it));
        }
    }
}

impl ScopeSpans {
    fn write(&self, message: &mut ProtobufMessage) {
        message.message(1, |scope| {
            scope.text(1, self.scope.name);
            scope.text(2, self.scope.version);
        });
        for span in &self.spans {
            message.message(2, |it| span.write(it));
        }
    }
}

impl OtlpSpan {
    fn write(&self, message: &mut ProtobufMessage) {
        message.bytes(1, &self.trace_id.0);
        message.bytes(2, &self.span_id.0);
        if let Some(parent) = &self.parent_span_id {
            message.bytes(4, &parent.0);
        }
        message.text(5, &self.name);
        message.number(6, u64::from(self.kind));
        message.fixed64(7, self.start_time_unix_nano);
        message.fixed64(8, self.end_time_unix_nano);
        write_attributes(message, 9, &self.attributes);
        message.message(15, |status| {
            if let Some(text) = &self.status.message {
                status.text(2, text);
            }
            status.number(3, u64::from(self.status.code));
        });
    }
}

fn write_attributes(message: &mut ProtobufMessage, field: u32, attributes: &[OtlpAttribute]) {
    for OtlpAttribute { key, value } in attributes {
        message.message(field, |pair| {
            pair.text(1, key);
            pair.message(2, |any| match value {
                OtlpValue::StringValue(text) => any.text(1, text),
                // A negative number is its two's complement of 64 bits.
                OtlpValue::IntValue(number) => any.number(3, number.cast_unsigned()),
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(value: i64) -> OtlpExportRequest {
        let span = OtlpSpan {
            trace_id: OtlpId(vec![0xab; 16]),
            span_id: OtlpId(vec![1, 2, 3, 4, 5, 6, 7, 8]),
            parent_span_id: None,
            name: "turn".to_owned(),
            kind: 3,
            start_time_unix_nano: 1,
            end_time_unix_nano: 0x0102_0304_0506_0708,
            attributes: vec![OtlpAttribute { key: "n", value: OtlpValue::IntValue(value) }],
            status: OtlpStatus { code: 2, message: Some("no".to_owned()) },
        };
        let text = OtlpValue::StringValue("ä".to_owned());
        let attributes = vec![OtlpAttribute { key: "k", value: text }];
        let scope = OtlpScope { name: "s", version: "1" };
        OtlpExportRequest {
            resource_spans: [ResourceSpans {
                resource: OtlpResource { attributes },
                scope_spans: [ScopeSpans { scope, spans: vec![span] }],
            }],
        }
    }

    #[test]
    fn the_same_values_are_written_as_json_and_as_protobuf() {
        let json = String::from_utf8(request(-1).encode(OtlpProtocol::Json).unwrap()).unwrap();
        for part in [
            r#""traceId":"abababababababababababababababab""#,
            r#""spanId":"0102030405060708""#,
            r#""endTimeUnixNano":"72623859790382856""#,
            r#"{"key":"n","value":{"intValue":"-1"}}"#,
        ] {
            assert!(json.contains(part), "{part}: {json}");
        }
        // Written down by hand from the definitions of OTLP.
        let mut span = vec![0x0a, 16];
        span.extend([0xab; 16]);
        span.extend([0x12, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
        span.extend([0x2a, 4, b't', b'u', b'r', b'n', 0x30, 3]);
        span.extend([0x39, 1, 0, 0, 0, 0, 0, 0, 0, 0x41, 8, 7, 6, 5, 4, 3, 2, 1]);
        let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        span.extend([0x4a, 16, 0x0a, 1, b'n', 0x12, 11, 0x18]);
        span.extend(minus_one);
        span.extend([0x7a, 6, 0x12, 2, b'n', b'o', 0x18, 2]);
        let scope = [0x0a, 6, 0x0a, 1, b's', 0x12, 1, b'1'];
        let span_len = u8::try_from(span.len()).unwrap();
        let scope_len = u8::try_from(scope.len() + 2 + span.len()).unwrap();
        let resource = [0x0a, 9 + 2, 0x0a, 9, 0x0a, 1, b'k', 0x12, 4, 0x0a, 2, 0xc3, 0xa4];
        let mut spans = [&resource[..], &[0x12, scope_len], &scope, &[0x12, span_len]].concat();
        spans.extend(span);
        let mut expected = vec![0x0a, u8::try_from(spans.len()).unwrap()];
        expected.extend(spans);
        assert_eq!(request(-1).encode(OtlpProtocol::Protobuf).unwrap(), expected);
    }

    proptest! {
        #[test]
        fn a_number_of_any_size_is_read_back(number: u64) {
            let mut message = ProtobufMessage::default();
            message.varint(number);
            let read = message.0.iter().rev().fold(0_u64, |sum, byte| sum << 7 | u64::from(byte & 0x7f));
            prop_assert_eq!(read, number);
            prop_assert!(message.0.len() <= 10);
            let (last, before) = message.0.split_last().unwrap();
            prop_assert!(last & 0x80 == 0 && before.iter().all(|byte| byte & 0x80 != 0));
        }
    }

    #[test]
    fn names_of_opentelemetry_are_read_and_no_others() {
        assert_eq!(OtlpProtocol::by_name(" http/protobuf "), Some(OtlpProtocol::Protobuf));
        assert_eq!(OtlpProtocol::by_name("http/json"), Some(OtlpProtocol::Json));
        for name in ["grpc", "", "protobuf", "HTTP/JSON"] {
            assert_eq!(OtlpProtocol::by_name(name), None, "{name}");
        }
    }
}
