//! Pure: what is wrong enough to tell the operator of.
//!
//! Six of the seven rules of the first seed, and one of another; the seventh comes with children. A rule
//! looks at counts of the record, over a window that slides, so no restart changes
//! what it says. It fires when it begins to hold, and again after its cooldown for as
//! long as it holds; it is over by itself when it holds no more. What is not known must
//! neither fire nor end an alert.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::{MicroUsdc, Microcents};
use crate::names::Names;
use crate::record::{SleepState, StopReason};
use crate::state::AgentState;
use crate::time::{Span, Timestamp};

/// The window of everything that is a rate.
pub const WINDOW: Span = Span::from_secs(3600);

/// The fewest decisions of which a share is taken.
const DECISIONS_MIN: u64 = 10;

/// The wakes whose turns an automaton may take in an hour of its own accord.
const WAKES_MAX: u64 = 4;

/// Two looks at whether it owes a thought are one stretch when they are no farther apart:
/// a machine that was off owed nothing.
pub const APART_MAX: Span = Span::from_secs(25 * 60);

/// A rule.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Names,
)]
#[serde(rename_all = "snake_case")]
pub enum AlertRule {
    /// Credits and USDC together are worth less than the reserve.
    BalanceBelowReserve,
    /// More than a fifth of the heartbeat's runs failed.
    HeartbeatHighFailureRate,
    /// More than half of at least ten decisions were refusals.
    PolicyHighDenyRate,
    /// The last prompt took more than nine tenths of its room.
    ContextNearCapacity,
    /// Thinking of 24 hours cost more than four fifths of what it may.
    InferenceBudgetWarning,
    /// For an hour there was something to think about, and no turn came of it.
    ZeroTurnsLastHour,
    /// More turns of an hour were caused by nobody's word than four wakes may have.
    ExcessiveTurns,
}

/// Severity of an alert.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Names,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Somebody should look at it some time.
    Warning,
    /// It wakes the automaton when it begins.
    Critical,
}

impl AlertRule {
    /// Returns the severity of the rule and its cooldown in minutes.
    const fn facts(self) -> (Severity, i64) {
        use Severity::{Critical, Warning};
        match self {
            Self::BalanceBelowReserve => (Critical, 5),
            Self::HeartbeatHighFailureRate | Self::PolicyHighDenyRate => (Warning, 15),
            Self::ContextNearCapacity => (Warning, 10),
            Self::InferenceBudgetWarning => (Warning, 30),
            Self::ZeroTurnsLastHour => (Critical, 60),
            Self::ExcessiveTurns => (Warning, 60),
        }
    }

    /// Returns the severity of the rule.
    #[must_use]
    pub const fn severity(self) -> Severity {
        self.facts().0
    }

    /// The least time from one firing to the next, whatever happens in between.
    #[must_use]
    pub const fn cooldown(self) -> Span {
        Span::from_secs(self.facts().1 * 60)
    }
}

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ratio {
    /// Those that are counted.
    pub part: u64,
    /// All of them.
    pub of: u64,
}

/// Limits from the configuration that the rules compare with. A missing limit never fires its
/// rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thresholds {
    /// Smallest sum of credits and USDC at face value.
    pub reserve: Option<Microcents>,
    /// Tokens that a prompt may have.
    pub prompt_room: Option<u32>,
    /// Most that model calls may cost in any 24 hours.
    pub inference_per_day: Option<Microcents>,
    /// Turns that a wake may have which the creator did not cause.
    pub turns_per_wake: Option<u32>,
}

/// Measurements that the rules judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AlertInputs {
    /// Credits that were last read.
    pub credits: Option<Microcents>,
    /// USDC that was last read.
    pub usdc: Option<MicroUsdc>,
    /// Runs of the heartbeat that failed, in the window.
    pub heartbeat_runs: Ratio,
    /// Decisions that refused, in the window.
    pub decisions: Ratio,
    /// Tokens of the prompt of the last turn.
    pub prompt_tokens: Option<u32>,
    /// Cost of model calls in the last 24 hours.
    pub thinking: Microcents,
    /// Turns that were committed in the window.
    pub turns: u64,
    /// Those of them whose wakes the creator did not cause.
    pub unattended_turns: u64,
    /// Time for which it has been seen to owe a thought, see [`owes`].
    pub owing: Span,
}

/// Verdict of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertFinding {
    /// It holds, for this reason.
    Holds(String),
    /// It does not.
    Fine,
    /// The measurement is not known.
    Unknown,
}

impl AlertFinding {
    fn when(holds: bool, reason: impl FnOnce() -> String) -> Self {
        if holds { Self::Holds(reason()) } else { Self::Fine }
    }
}

impl AlertRule {
    /// Judges the measurements against the limits.
    #[must_use]
    pub fn judge(self, signs: &AlertInputs, against: &Thresholds) -> AlertFinding {
        let AlertInputs { heartbeat_runs, decisions, thinking, turns, owing, .. } = *signs;
        match self {
            Self::BalanceBelowReserve => reserve(signs, against.reserve),
            Self::HeartbeatHighFailureRate => {
                AlertFinding::when(exceeds(heartbeat_runs.part, 1, 5, heartbeat_runs.of), || {
                    format!(
                        "{} of {} runs of the heartbeat failed in an hour",
                        heartbeat_runs.part, heartbeat_runs.of
                    )
                })
            }
            Self::PolicyHighDenyRate => {
                let Ratio { part, of } = decisions;
                AlertFinding::when(of >= DECISIONS_MIN && exceeds(part, 1, 2, of), || {
                    format!("{part} of {of} decisions of an hour were refusals")
                })
            }
            Self::ContextNearCapacity => {
                let Some(room) = against.prompt_room else { return AlertFinding::Fine };
                let Some(tokens) = signs.prompt_tokens else { return AlertFinding::Unknown };
                AlertFinding::when(exceeds(tokens.into(), 9, 10, room.into()), || {
                    format!("the last prompt had {tokens} tokens, and there is room for {room}")
                })
            }
            Self::InferenceBudgetWarning => {
                let Some(most) = against.inference_per_day else { return AlertFinding::Fine };
                let [spent, whole] =
                    [thinking, most].map(|sum| u64::try_from(sum.units()).unwrap_or(0));
                AlertFinding::when(exceeds(spent, 4, 5, whole), || {
                    format!("thinking cost {thinking} in 24 hours, and may cost {most}")
                })
            }
            Self::ZeroTurnsLastHour => AlertFinding::when(turns == 0 && owing >= WINDOW, || {
                format!("there was something to think about for {owing}, and no turn came of it")
            }),
            Self::ExcessiveTurns => {
                let Some(per_wake) = against.turns_per_wake else { return AlertFinding::Fine };
                let most = u64::from(per_wake).saturating_mul(WAKES_MAX);
                let turns = signs.unattended_turns;
                AlertFinding::when(turns > most, || {
                    format!(
                        "it took {turns} turns in an hour that you did not cause, more than \
                         {WAKES_MAX} wakes may have ({most})"
                    )
                })
            }
        }
    }
}

/// Returns true if `part` is more than the fraction of `of`.
fn exceeds(part: u64, numerator: u64, denominator: u64, of: u64) -> bool {
    u128::from(part) * u128::from(denominator) > u128::from(of) * u128::from(numerator)
}

/// The wallet counts as well: USDC buys credits. As long as it is not known, only
/// credits that are enough by themselves say anything.
fn reserve(signs: &AlertInputs, reserve: Option<Microcents>) -> AlertFinding {
    let Some(reserve) = reserve else { return AlertFinding::Fine };
    let Some(credits) = signs.credits else { return AlertFinding::Unknown };
    if credits >= reserve {
        return AlertFinding::Fine;
    }
    let Some(usdc) = signs.usdc else { return AlertFinding::Unknown };
    let whole = usdc.face_value().and_then(|value| credits.plus(value));
    match whole {
        // More than can be counted is enough.
        Err(_) => AlertFinding::Fine,
        Ok(whole) => AlertFinding::when(whole < reserve, || {
            format!("{credits} of credits and {usdc} are {whole}, below the reserve of {reserve}")
        }),
    }
}

/// Returns true if the automaton should be thinking: it is awake, or it sleeps for a reason that
/// permits thinking and something waits for it.
#[must_use]
pub fn owes(state: AgentState, sleep: Option<&SleepState>, waiting: bool) -> bool {
    use StopReason::{Broke, Budget, Envelope, Interrupted, StopLoss, TurnsUsed};
    let may_not = |sleep: &SleepState| {
        matches!(sleep.reason, StopLoss | Budget | Envelope | Broke | TurnsUsed | Interrupted)
    };
    match state {
        AgentState::Sleeping => waiting && !sleep.is_some_and(may_not),
        awake => awake.is_awake(),
    }
}

/// Returns the time for which it has owed a thought without a break. `looks` are observations,
/// newest first.
pub fn owing(looks: impl IntoIterator<Item = (Timestamp, bool)>) -> Span {
    let mut range: Option<(Timestamp, Timestamp)> = None;
    for (at, owed) in looks {
        let (newest, oldest) = range.unwrap_or((at, at));
        if !owed || oldest.since(at) > APART_MAX {
            break;
        }
        range = Some((newest, at.min(oldest)));
    }
    range.map_or(Span::ZERO, |(newest, oldest)| newest.since(oldest))
}

/// A time for which a rule held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    /// The rule.
    pub rule: AlertRule,
    /// Its latest message.
    pub message: String,
    /// Since when it held.
    pub since: Timestamp,
    /// Time of the rule's latest firing, in this period or before it.
    pub fired_at: Option<Timestamp>,
    /// Firings in this period.
    pub times: u32,
    /// Time at which the condition ended; missing while it holds.
    pub cleared_at: Option<Timestamp>,
}

/// Next step of a rule's alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertTransition {
    /// Nothing is stored.
    Nothing,
    /// A new time began.
    Began(Alert, AlertVisibility),
    /// It goes on, with what it says now.
    GoesOn(Alert, AlertVisibility),
    /// It is over.
    Ended(Alert),
}

/// Audience of an alert's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertVisibility {
    /// It fires.
    Fires,
    /// It fired not long ago.
    Silent,
}

impl Alert {
    /// Returns true while the condition holds.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.cleared_at.is_none()
    }

    /// Applies a finding to the rule's last alert.
    #[must_use]
    pub fn step(
        last: Option<Self>,
        rule: AlertRule,
        finding: AlertFinding,
        now: Timestamp,
    ) -> AlertTransition {
        let fired_at = last.as_ref().and_then(|last| last.fired_at);
        // A firing of a time to come was by a clock that was wrong.
        let cool = fired_at.is_none_or(|at| now < at || now.since(at) >= rule.cooldown());
        let voice = if cool { AlertVisibility::Fires } else { AlertVisibility::Silent };
        let active = last.filter(Self::is_active);
        match (active, finding) {
            (None, AlertFinding::Holds(message)) => {
                let alert =
                    Self { rule, message, since: now, fired_at, times: 0, cleared_at: None };
                AlertTransition::Began(alert.heard(voice, now), voice)
            }
            (Some(alert), AlertFinding::Holds(message)) => {
                AlertTransition::GoesOn(Self { message, ..alert }.heard(voice, now), voice)
            }
            (Some(alert), AlertFinding::Fine) => {
                AlertTransition::Ended(Self { cleared_at: Some(now), ..alert })
            }
            (None, AlertFinding::Fine) | (_, AlertFinding::Unknown) => AlertTransition::Nothing,
        }
    }

    fn heard(self, voice: AlertVisibility, now: Timestamp) -> Self {
        match voice {
            AlertVisibility::Silent => self,
            AlertVisibility::Fires => {
                Self { fired_at: Some(now), times: self.times.saturating_add(1), ..self }
            }
        }
    }
}

#[cfg(test)]
#[path = "alert_tests.rs"]
mod tests;
