//! The calls under way, and the limits on their number.
//!
//! A repeated call is joined and counts once. The calls of each API key are limited, at a time and
//! in a minute, so that no key takes the others' place. Must never forget a call that is under way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use automaton_core::time::{Span, Timestamp};
use automaton_sqlite::chain::Hash;
use axum::http::StatusCode;
use tokio::sync::Semaphore;

use super::Recording;
use crate::config::CallLimits;
use crate::error::ApiError;

/// The time for which a finished answer is kept for repeated requests.
const KEPT: Span = Span::from_secs(120);
/// Bytes of finished answers that are kept.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Large documents that are made at a time.
const LARGE_AT_ONCE: usize = 4;
/// The milliseconds in which calls of a key are counted.
const MINUTE_MS: i64 = 60_000;
/// The code of a refusal of one more call of a key.
const RATE_LIMITED: &str = "RATE_LIMITED";

/// The admission of a request.
pub(super) enum CallAdmission {
    /// A call of its own.
    New(Arc<Recording>),
    /// The call that it repeats.
    Joined(Arc<Recording>),
}

/// The calls that are known. A std mutex, since nothing is awaited while it is held.
pub(crate) struct CallGate {
    limits: CallLimits,
    known: Mutex<KnownCalls>,
    /// Lets few large documents be made at a time, which are held in memory.
    pub(super) large: Semaphore,
}

#[derive(Default)]
struct KnownCalls {
    calls: HashMap<Hash, Arc<Recording>>,
    /// For each key, the time at which its calls so far will be used up. Only future times.
    busy_until: HashMap<Hash, Timestamp>,
}

impl CallGate {
    pub(crate) fn new(limits: CallLimits) -> Self {
        Self { limits, known: Mutex::default(), large: Semaphore::new(LARGE_AT_ONCE) }
    }

    /// Joins the call of this identity, or makes room for it and enters it.
    pub(super) fn admit(
        &self,
        identity: Hash,
        recording: Recording,
        now: Timestamp,
    ) -> Result<CallAdmission, ApiError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let KnownCalls { calls, busy_until } = &mut *known;
        let is_kept = |call: &Recording, end| now.since(end) <= KEPT && !call.is_spent();
        calls.retain(|_, call| call.ended_at().is_none_or(|end| is_kept(call, end)));
        let repeated = match recording.equal {
            Some(_) => calls.values().find(|call| call.is_taken_over_by(&recording)),
            None => calls.get(&identity),
        };
        match repeated {
            // What was refused is about to be forgotten.
            Some(known) if known.refused() => {}
            Some(known) if known.content == recording.content => {
                return Ok(CallAdmission::Joined(Arc::clone(known)));
            }
            Some(_) => {
                return Err(ApiError::conflict("this Idempotency-Key came with another body"));
            }
            None => {}
        }
        let open = calls.values().filter(|call| call.ended_at().is_none());
        let (all, own) = open.fold((0_u32, 0_u32), |(all, own), call| {
            (all.saturating_add(1), own.saturating_add(u32::from(call.key == recording.key)))
        });
        if all >= self.limits.at_once {
            return Err(ApiError::unavailable("too many calls are under way"));
        }
        if own >= self.limits.at_once_per_key {
            let what = format!("{own} calls of this API key are under way, and no more may be");
            return Err(limited(what, 1));
        }
        if let Some(most) = self.limits.per_minute_per_key {
            take_one(busy_until, recording.key, most, now)?;
        }
        make_room(calls);
        let recording = Arc::new(recording);
        calls.insert(identity, Arc::clone(&recording));
        Ok(CallAdmission::New(recording))
    }

    /// Forgets a call, unless another has taken its place.
    pub(super) fn forget(&self, identity: Hash, recording: &Arc<Recording>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.calls.get(&identity).is_some_and(|known| Arc::ptr_eq(known, recording)) {
            known.calls.remove(&identity);
        }
    }
}

/// Counts one more call of a key: each takes its part of a minute, and a minute's are let through
/// at once.
fn take_one(
    busy_until: &mut HashMap<Hash, Timestamp>,
    key: Hash,
    most: u32,
    now: Timestamp,
) -> Result<(), ApiError> {
    busy_until.retain(|_, end| *end > now);
    let part = Span::from_millis(MINUTE_MS / i64::from(most));
    let busy = busy_until.get(&key).copied().unwrap_or(now).max(now).after(part);
    let beyond = busy.since(now).as_millis() - MINUTE_MS;
    if beyond > 0 {
        let what = format!("an API key may begin {most} calls in a minute");
        return Err(limited(what, u64::try_from(beyond).unwrap_or(0).div_ceil(1000)));
    }
    busy_until.insert(key, busy);
    Ok(())
}

fn limited(what: String, again_after: u64) -> ApiError {
    let refusal = ApiError::new(StatusCode::TOO_MANY_REQUESTS, RATE_LIMITED, what);
    ApiError { again_after: Some(again_after), ..refusal }
}

/// Forgets the oldest answers, where all of them are too large.
fn make_room(calls: &mut HashMap<Hash, Arc<Recording>>) {
    let mut kept: Vec<_> =
        calls.iter().filter_map(|(id, call)| Some((call.ended_at()?, *id, call.bytes()))).collect();
    kept.sort_unstable();
    let mut bytes: usize = kept.iter().map(|(_, _, bytes)| bytes).sum();
    for (_, id, freed) in kept {
        if bytes <= KEPT_BYTES_MAX {
            break;
        }
        calls.remove(&id);
        bytes -= freed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_begins_so_many_calls_in_a_minute_and_then_as_they_come_free() {
        let key = Hash::of(b"a");
        let other = Hash::of(b"b");
        let mut busy = HashMap::new();
        let at = |secs: i64| Timestamp::from_millis(secs * 1000);
        let mut take = |key, now| take_one(&mut busy, key, 6, at(now)).map_err(|it| it.again_after);
        for _ in 0..6 {
            take(key, 0).unwrap();
        }
        assert_eq!(take(key, 0), Err(Some(10)));
        assert_eq!(take(key, 7), Err(Some(3)));
        assert_eq!(take(other, 7), Ok(()), "each key has its own");
        assert_eq!((take(key, 10), take(key, 10)), (Ok(()), Err(Some(10))));
        assert_eq!(take(key, 500), Ok(()));
    }
}
