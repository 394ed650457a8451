//! Pure: the values of `automaton.json` that have a range.
//!
//! Each type refuses a value outside its range while the file is read, so the
//! error names the line and the key; and each tells its range to the JSON
//! Schema. A value that was read is never checked again.

use core::net::{Ipv4Addr, SocketAddr};
use std::borrow::Cow;

use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::{Span, Timestamp, days_from_civil};
use automaton_inference::ModelPrices;
use automaton_net::{Origin, host_pattern, proxy};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Ranged<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Ranged<MIN, MAX> {
    /// The number, brought into the range.
    pub(crate) fn clamped(number: u64) -> Self {
        Self(number.clamp(MIN, MAX))
    }

    /// The number.
    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// The number as 32 bits; saturates where `MAX` does not fit.
    pub(crate) fn get_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Ranged<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        if (MIN..=MAX).contains(&number) {
            return Ok(Self(number));
        }
        let expected = format!("a number from {MIN} to {MAX}");
        Err(D::Error::invalid_value(Unexpected::Unsigned(number), &expected.as_str()))
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Ranged<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("From{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// The schema of a value, as it stands where it is used.
macro_rules! schema {
    ($name:ident $schema:tt) => {
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident { $schema:tt, $check:expr })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(String);

        impl $name {
            /// The text.
            pub(crate) fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let check: fn(&str) -> Result<(), String> = $check;
                check(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }

        schema! { $name $schema }
    )+};
}

texts! {
    /// The automaton's name: 1 to 64 characters, none of them a control character.
    Name {
        { "type": "string", "minLength": 1, "maxLength": 64 },
        |text| match text.chars().count() {
            0 => Err("a name cannot be empty".to_owned()),
            1..=64 if text.trim().is_empty() => Err("a name cannot be blank".to_owned()),
            1..=64 if text.chars().any(char::is_control) => {
                Err("a name holds no control characters".to_owned())
            }
            1..=64 => Ok(()),
            count => Err(format!("a name has at most 64 characters, not {count}")),
        }
    }

    /// A long text of the creator: 1 to 16,000 characters.
    Prompt {
        { "type": "string", "minLength": 1, "maxLength": 16_000 },
        |text| match text.chars().count() {
            _ if text.trim().is_empty() => Err("the text is empty".to_owned()),
            1..=16_000 => Ok(()),
            count => Err(format!("the text has at most 16000 characters, not {count}")),
        }
    }

    /// The address of a service: `http://` or `https://`, and a host.
    HttpUrl {
        { "type": "string", "pattern": "^https?://.+" },
        |text| {
            let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
            match rest {
                Some(rest) if !rest.is_empty() && !rest.starts_with('/') => Ok(()),
                _ => Err(format!("'{}' is no http:// or https:// address", shorten(text))),
            }
        }
    }

    /// A name of a host, or `*.` and a name that others lie under.
    HostPattern {
        { "type": "string", "pattern": "^(\\*\\.)?[^*/:@]+$" },
        |text| match host_pattern(text) {
            Some(_) => Ok(()),
            None => Err(format!(
                "'{}' is no host such as pypi.org, or *.pythonhosted.org for all under it",
                shorten(text)
            )),
        }
    }

    /// Scheme, host and port, and nothing after them.
    BareOrigin {
        { "type": "string", "pattern": "^https?://.+" },
        |text| match text.parse::<Origin>() {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The name of a header that a program may set.
    HeaderName {
        { "type": "string", "pattern": "^[A-Za-z0-9-]{1,64}$" },
        |text| {
            let name = text.to_ascii_lowercase();
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            let fits = (1..=64).contains(&name.len()) && name.bytes().all(plain);
            // These say where a request goes and how it is framed.
            let framing = ["host", "content-length"].contains(&name.as_str());
            if !fits || framing || proxy::is_of_one_hop(&name) {
                return Err(format!("'{}' is no header that a credential can be in", shorten(text)));
            }
            Ok(())
        }
    }

    /// A day, as `2026-12-01`.
    Day {
        { "type": "string", "format": "date" },
        |text| match beginning_of_day(text) {
            Some(_) => Ok(()),
            None => Err(format!("'{}' is no day such as 2026-12-01", shorten(text))),
        }
    }

    /// SHA-256 of a file: 64 hexadecimal digits in lower case.
    FileHash {
        { "type": "string", "pattern": "^[0-9a-f]{64}$" },
        |text| {
            let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            if text.len() == 64 && text.bytes().all(digit) {
                Ok(())
            } else {
                Err(format!("'{}' is no SHA-256 (64 of 0-9, a-f)", shorten(text)))
            }
        }
    }
}

impl Day {
    /// Returns its beginning, in UTC.
    pub(crate) fn beginning(&self) -> Timestamp {
        beginning_of_day(self.as_str()).unwrap_or(Timestamp::EPOCH)
    }
}

/// The beginning of a day of the form `YYYY-MM-DD`, in UTC.
fn beginning_of_day(text: &str) -> Option<Timestamp> {
    let [year, month, day] = text.split('-').collect::<Vec<_>>().try_into().ok()?;
    let digits = |part: &str, count| {
        let is_plain = part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| part.parse::<i64>().ok())?
    };
    let days = days_from_civil(digits(year, 4)?, digits(month, 2)?, digits(day, 2)?)?;
    Some(Timestamp::EPOCH.after(Span::from_secs(days.checked_mul(86_400)?)))
}

/// Destination of a request: a host or an origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EgressTarget {
    Host(HostPattern),
    Origin(BareOrigin),
}

impl std::str::FromStr for EgressTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.contains("://") {
            true => text.parse().map(Self::Origin),
            false => text.parse().map(Self::Host),
        }
    }
}

/// A price in US dollars for a million tokens: text such as `"1.25"`, or a whole number. A
/// number with a point would pass through a float, which is no amount of money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dollars(MicroUsdc);

impl Dollars {
    /// The dearest price, in dollars.
    const MAX: u64 = 1_000_000;

    /// The price.
    pub(crate) fn worth(self) -> Microcents {
        // Below the greatest price every amount has its microcents.
        self.0.face_value().unwrap_or(Microcents::new(i64::MAX))
    }
}

impl std::str::FromStr for Dollars {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let most = MicroUsdc::new(Self::MAX * 1_000_000);
        let amount = MicroUsdc::parse(text).ok().filter(|amount| *amount <= most);
        amount.map(Self).ok_or_else(|| {
            format!(
                "'{}' is no price from 0 to {} US dollars, such as \"1.25\", with at most six places",
                shorten(text),
                Self::MAX
            )
        })
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.decimal())
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected US dollars as text, such as \"1.25\", or a whole number"
        )]
        enum NumberOrText {
            Whole(u64),
            Text(String),
        }
        let text = match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Whole(number) => number.to_string(),
            NumberOrText::Text(text) => text,
        };
        text.parse().map_err(D::Error::custom)
    }
}

schema! {
    Dollars {
        "type": ["string", "integer"],
        "pattern": "^[0-9]+(\\.[0-9]{1,6})?$",
        "minimum": 0,
        "maximum": Dollars::MAX
    }
}

/// Prices of a model, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PricesFile {
    /// Price of the prompt.
    pub(crate) input_per_million: Dollars,
    /// Price of the cached part of the prompt; by default the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cached_per_million: Option<Dollars>,
    /// Price of the part of the prompt that is written into the provider's cache; by default the
    /// same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write_per_million: Option<Dollars>,
    /// Price of the answer.
    pub(crate) output_per_million: Dollars,
}

impl PricesFile {
    /// The same in exact amounts.
    pub(crate) fn prices(self) -> ModelPrices {
        ModelPrices {
            input_per_million: self.input_per_million.worth(),
            cached_per_million: self.cached_per_million.unwrap_or(self.input_per_million).worth(),
            cache_write_per_million: self.cache_write_per_million.map(Dollars::worth),
            output_per_million: self.output_per_million.worth(),
        }
    }
}

impl std::str::FromStr for PricesFile {
    type Err = String;

    /// As the flag has them: `INPUT,OUTPUT`, then `CACHED`, then `CACHE_WRITE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let prices: Vec<Dollars> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let (input_per_million, output_per_million) = match prices[..] {
            [input, output] | [input, output, _] | [input, output, _, _] => (input, output),
            _ => return Err("expected INPUT,OUTPUT[,CACHED[,CACHE_WRITE]]".to_owned()),
        };
        Ok(Self {
            input_per_million,
            cached_per_million: prices.get(2).copied(),
            cache_write_per_million: prices.get(3).copied(),
            output_per_million,
        })
    }
}

/// An address of this machine: an address with a port, or a port of 127.0.0.1 alone. Port 0
/// is any that is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoopbackAddr(SocketAddr);

impl LoopbackAddr {
    /// The address.
    pub(crate) const fn get(self) -> SocketAddr {
        self.0
    }
}

impl<'de> Deserialize<'de> for LoopbackAddr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected 127.0.0.1:PORT, or a port from 0 to 65535")]
        enum PortOrText {
            Port(u16),
            Text(String),
        }
        let of_port = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let address = match PortOrText::deserialize(deserializer)? {
            PortOrText::Port(port) => of_port(port),
            PortOrText::Text(text) => {
                let port = text.parse().map(of_port);
                port.or_else(|_| text.parse()).map_err(|_| {
                    let shown = shorten(&text);
                    D::Error::custom(format!("'{shown}' is neither 127.0.0.1:PORT nor a port"))
                })?
            }
        };
        if !address.ip().is_loopback() {
            let what = format!("{address} is not this machine's own; take 127.0.0.1 or [::1]");
            return Err(D::Error::custom(what));
        }
        Ok(Self(address))
    }
}

schema! {
    LoopbackAddr { "type": ["string", "integer"], "minimum": 0, "maximum": 65_535 }
}

/// A stranger's text, short enough for an error.
fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_out_of_range() {
        type Percent = Ranged<1, 100>;
        assert_eq!(serde_json::from_str::<Percent>("100").unwrap().get_u32(), 100);
        for text in ["0", "101", "-1", "1.5", "\"5\"", "null"] {
            assert!(serde_json::from_str::<Percent>(text).is_err(), "{text}");
        }
        assert_eq!(Percent::clamped(900).get_u32(), 100);
    }

    #[test]
    fn metrics_stay_on_this_machine() {
        let read = |text: &str| serde_json::from_str::<LoopbackAddr>(text).map(LoopbackAddr::get);
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 9464));
        for text in ["9464", "\"9464\"", "\"127.0.0.1:9464\""] {
            assert_eq!(read(text).unwrap(), local, "{text}");
        }
        assert!(read("\"[::1]:0\"").is_ok());
        for text in ["\"0.0.0.0:1\"", "\"10.0.0.1:1\"", "70000", "-1", "true", "\"x\"", "\"\""] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prices_are_exact_dollars() {
        let read = |text: &str| serde_json::from_str::<Dollars>(text).map(Dollars::worth);
        for (text, units) in
            [("\"1.25\"", 125_000_000), ("3", 300_000_000), ("\"0\"", 0), ("\"0.000001\"", 100)]
        {
            assert_eq!(read(text).unwrap(), Microcents::new(units), "{text}");
        }
        for text in
            ["1.25", "-1", "\"-1\"", "\"\"", "\"1,5\"", "1000001", "\"0.0000001\"", "null", "true"]
        {
            assert!(read(text).is_err(), "{text}");
        }
        let flag: PricesFile = "1.25,10,0.125".parse().unwrap();
        assert_eq!(flag.prices().cached_per_million, Microcents::new(12_500_000));
        assert_eq!(
            "2,8".parse::<PricesFile>().unwrap().prices().cached_per_million.units(),
            200_000_000
        );
        let written = "1.25,10,0.125,1.5".parse::<PricesFile>().unwrap().prices();
        assert_eq!(written.cache_write(), Microcents::new(150_000_000));
        for text in ["", "1", "1,2,3,4,5", "a,b"] {
            assert!(text.parse::<PricesFile>().is_err(), "{text}");
        }
        let written = serde_json::to_string(&flag).unwrap();
        assert_eq!(serde_json::from_str::<PricesFile>(&written).unwrap(), flag, "{written}");
    }

    #[test]
    fn refuses_texts_that_are_none() {
        assert!("".parse::<Name>().is_err());
        assert!(" ".parse::<Name>().is_err());
        assert!("a\u{1b}[31m".parse::<Name>().is_err());
        assert!("ä".repeat(64).parse::<Name>().is_ok());
        assert!("ä".repeat(65).parse::<Name>().is_err());
        assert!("ftp://x".parse::<HttpUrl>().is_err());
        assert!("http:///x".parse::<HttpUrl>().is_err());
        assert!("AB".repeat(32).parse::<FileHash>().is_err());
    }
}
