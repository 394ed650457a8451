//! Pure: how the nouns of the core become columns and come back.
//!
//! Ids and names of enumerations are text, times and amounts integers, hashes
//! blobs. What calls say is text as well, or where it is long a blob of it, packed by
//! zlib. A column that holds anything else is an error of the row; nothing here
//! may ever guess a default for it.

use std::ops::RangeInclusive;

use alloy_primitives::{Address, B256};
use automaton_core::alert::AlertRule;
use automaton_core::egress::EgressEndReason;
use automaton_core::id::{
    ApprovalId, AutomatonId, CallId, DecisionId, HoldId, MessageId, PaymentId, RemoteMachineId,
    RunId, SessionId, TurnId,
};
use automaton_core::memory::MemoryTier;
use automaton_core::message::{AnsweredBy, InboxState};
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::payment::{PaymentState, Purpose, Rail};
use automaton_core::record::{
    Authority, CallStatus, DecisionOutcome, StopReason, TurnStatus, WakeSource,
};
use automaton_core::soul::SoulSource;
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_core::tool::{Effect, Risk};
use automaton_core::trust::{Label, Labelled};
use automaton_sqlite::chain::Hash;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use rusqlite::Row;
use rusqlite::types::{
    FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Type, Value, ValueRef,
};
use serde::de::DeserializeOwned;

use crate::PublicationState;
use crate::approvals::ApprovalState;
use crate::audit::LinkKind;
use crate::ledger::LedgerCategory;
use crate::schedule::{TaskOrigin, TaskResult};

/// A noun with one form in the database.
pub(crate) trait SqlText: Sized {
    fn encode(&self) -> Value;
    fn decode(value: ValueRef<'_>) -> Option<Self>;
}

/// A noun as a parameter or a column.
#[derive(Debug)]
pub(crate) struct Sql<T>(pub(crate) T);

impl<T: SqlText> ToSql for Sql<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(self.0.encode()))
    }
}

impl<T: SqlText> FromSql for Sql<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        T::decode(value).map(Self).ok_or(FromSqlError::InvalidType)
    }
}

/// The noun in a column.
pub(crate) fn get<T: SqlText>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    row.get::<_, Sql<T>>(column).map(|found| found.0)
}

/// The noun in a column that may be empty.
pub(crate) fn maybe<T: SqlText>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    row.get::<_, Option<Sql<T>>>(column).map(|found| found.map(|found| found.0))
}

/// A text with its origin, from the columns `label`, `source` and the one named.
pub(crate) fn labelled(row: &Row<'_>, text: &str) -> rusqlite::Result<Labelled> {
    let source: String = row.get("source")?;
    Ok(Labelled::new(get(row, "label")?, &source, row.get::<_, String>(text)?))
}

/// The value that a column holds as JSON.
pub(crate) fn json_of<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}

fn text(value: ValueRef<'_>) -> Option<&str> {
    // silent-ok: the caller makes an error of the `None`.
    value.as_str().ok()
}

fn integer(value: ValueRef<'_>) -> Option<i64> {
    // silent-ok: the caller makes an error of the `None`.
    value.as_i64().ok()
}

macro_rules! stored_by_display {
    ($($type:ty),+ $(,)?) => {$(
        impl SqlText for $type {
            fn encode(&self) -> Value {
                Value::Text(self.to_string())
            }

            fn decode(value: ValueRef<'_>) -> Option<Self> {
                // silent-ok: the caller makes an error of the `None`.
                text(value)?.parse().ok()
            }
        }
    )+};
}

stored_by_display!(
    ApprovalId,
    AutomatonId,
    SessionId,
    TurnId,
    CallId,
    DecisionId,
    HoldId,
    PaymentId,
    MessageId,
    RemoteMachineId,
    RunId,
    Address,
    B256,
);

macro_rules! stored_by_name {
    ($($type:ty),+ $(,)?) => {$(
        impl SqlText for $type {
            fn encode(&self) -> Value {
                Value::Text(self.name().to_owned())
            }

            fn decode(value: ValueRef<'_>) -> Option<Self> {
                Self::by_name(text(value)?)
            }
        }
    )+};
}

stored_by_name!(
    AgentState,
    AlertRule,
    MemoryTier,
    SoulSource,
    Label,
    CallStatus,
    TurnStatus,
    WakeSource,
    StopReason,
    SurvivalTier,
    DecisionOutcome,
    Authority,
    InboxState,
    AnsweredBy,
    PaymentState,
    Purpose,
    Rail,
    ApprovalState,
    LedgerCategory,
    TaskResult,
    TaskOrigin,
    EgressEndReason,
    PublicationState,
    LinkKind,
    Risk,
    Effect,
);

impl SqlText for Hash {
    fn encode(&self) -> Value {
        Value::Blob(self.as_bytes().to_vec())
    }

    fn decode(value: ValueRef<'_>) -> Option<Self> {
        // silent-ok: the caller makes an error of the `None`.
        Self::from_slice(value.as_blob().ok()?)
    }
}

/// Text of a call or of its result, which may be long.
#[derive(Debug)]
pub(crate) struct CallText(pub(crate) String);

/// Sizes of texts that are packed, in bytes.
const PACKED_BYTES: RangeInclusive<usize> = 256..=64 << 20;
/// Level of zlib: higher ones save one percent more, and take twice as long.
const PACKED_LEVEL: u8 = 1;

impl SqlText for CallText {
    fn encode(&self) -> Value {
        let whole = self.0.as_bytes();
        let packed = PACKED_BYTES
            .contains(&whole.len())
            .then(|| compress_to_vec_zlib(whole, PACKED_LEVEL))
            .filter(|packed| packed.len() < whole.len());
        packed.map_or_else(|| Value::Text(self.0.clone()), Value::Blob)
    }

    fn decode(value: ValueRef<'_>) -> Option<Self> {
        let ValueRef::Blob(packed) = value else { return Some(Self(text(value)?.to_owned())) };
        // silent-ok: the caller makes an error of the `None`, here and below.
        let whole = decompress_to_vec_zlib_with_limit(packed, *PACKED_BYTES.end()).ok()?;
        String::from_utf8(whole).ok().map(Self)
    }
}

macro_rules! stored_as_integer {
    ($($type:ty: $encode:expr, $decode:expr;)+) => {$(
        impl SqlText for $type {
            fn encode(&self) -> Value {
                let encode: fn(&$type) -> i64 = $encode;
                Value::Integer(encode(self))
            }

            fn decode(value: ValueRef<'_>) -> Option<Self> {
                let decode: fn(i64) -> Option<$type> = $decode;
                decode(integer(value)?)
            }
        }
    )+};
}

stored_as_integer! {
    Timestamp: |time| time.as_millis(), |millis| Some(Timestamp::from_millis(millis));
    Span: |span| span.as_millis(), |millis| Some(Span::from_millis(millis));
    Microcents: |amount| amount.units(), |units| Some(Microcents::new(units));
    MicroUsdc: |amount| i64::try_from(amount.units()).unwrap_or(i64::MAX), |units| u64::try_from(units).ok().map(MicroUsdc::new);
    // A count beyond 2⁶³ cannot be reached by counting; a limit may be written so.
    u64: |count| i64::try_from(*count).unwrap_or(i64::MAX), |count| u64::try_from(count).ok();
    u32: |count| i64::from(*count), |count| u32::try_from(count).ok();
    u8: |count| i64::from(*count), |count| u8::try_from(count).ok();
    usize: |count| i64::try_from(*count).unwrap_or(i64::MAX), |count| usize::try_from(count).ok();
}
