//! Pure: what ended a wake, in words for the creator.
//!
//! Each way to end says what happened, which command goes on, and which key of
//! `automaton.json` would have let it go on, where there is one. No limit may end work
//! without such a sentence.

use std::fmt;

use crate::inference_budget::CeilingScope;
use crate::money::Microcents;
use crate::record::StopReason;

/// End of a wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeEnd {
    /// Reason of the stop.
    pub reason: StopReason,
    /// Turns it had.
    pub turns: u32,
    /// The exhausted limit, if that ended it.
    pub used_up: Option<ExhaustedLimit>,
    /// Cost of model calls in the last 24 hours, and its ceiling; `None` if the model costs
    /// nothing or there is no ceiling.
    pub day: Option<(Microcents, Microcents)>,
    /// Last failure, or the loss that was reached.
    pub why: Option<String>,
}

/// A limit that a wake exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
pub enum ExhaustedLimit {
    /// So many turns.
    #[display("{_0} turns of one wake used")]
    Turns(u32),
    /// Answers since the creator last called, and how many there may be.
    #[display("{_0} of {_1} answers used since you last called it")]
    Answers(u32, u32),
    /// Cost, and its ceiling.
    #[display("{_0} of {_1} used since you last called it")]
    Cost(Microcents, Microcents),
    /// Cost in the period of a ceiling, and the ceiling.
    #[display("{_1} of {_2} used {_0}")]
    Ceiling(CeilingScope, Microcents, Microcents),
}

impl ExhaustedLimit {
    /// The key of `automaton.json` that sets the limit.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Turns(_) => "maxTurnsPerCycle",
            Self::Answers(..) => "wakeEnvelope.answers",
            Self::Cost(..) => "wakeEnvelope.cents",
            Self::Ceiling(scope, ..) => scope.key(),
        }
    }
}

impl WakeEnd {
    /// Returns true if the end is a normal one: the model said its last word, chose to sleep, or
    /// the process was to end.
    #[must_use]
    pub const fn is_usual(&self) -> bool {
        use StopReason::{Asked, Crash, Interrupted, Said, Shutdown, TurnsUsed};
        matches!(self.reason, Asked | Said | TurnsUsed | Interrupted | Shutdown | Crash)
    }

    /// Returns true if the creator has to mend the reason, whatever caused the wake.
    #[must_use]
    pub const fn is_creators_to_mend(&self) -> bool {
        use StopReason::{Blocked, Idle, Repetition};
        !self.is_usual() && !matches!(self.reason, Idle | Repetition | Blocked)
    }
}

impl fmt::Display for WakeEnd {
    /// Writes the event, the command, the key, and the state of the day's budget.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turns = self.turns;
        let why = self.why.as_deref().unwrap_or_default();
        let because = if why.is_empty() { String::new() } else { format!(" ({why})") };
        let said = why.trim_end_matches('.');
        let said = if said.is_empty() { String::new() } else { format!("{said}. ") };
        if let Some(used_up) = self.used_up {
            let key = used_up.key();
            write!(
                f,
                "Stopped: {used_up}{because}. `automaton wake` goes on; `{key}` in automaton.json raises it."
            )?;
            return self.budget(f);
        }
        match self.reason {
            StopReason::Asked => f.write_str("It chose to sleep. `automaton wake` wakes it.")?,
            StopReason::Said => {
                f.write_str("It said what it had to say. `automaton send` tells it more.")?;
            }
            StopReason::Errors => write!(
                f,
                "Stopped: its turns failed. {said}It tries again later, and `automaton wake` does at \
                 once; `brain` in automaton.json names its model."
            )?,
            StopReason::Idle => f.write_str(
                "Stopped: several turns in a row brought nothing new. `automaton turns` shows \
                 them; `automaton send` tells it how to go on.",
            )?,
            StopReason::Repetition => write!(
                f,
                "Stopped: the same calls gave the same results again and again{because}. \
                 `automaton turns` shows them; `automaton send` tells it how to go on."
            )?,
            StopReason::Blocked if !why.is_empty() => {
                write!(f, "Stopped: {why} `automaton send` tells it how to go on.")?;
            }
            StopReason::Blocked => f.write_str(
                "Stopped: of what it tried in several turns nothing was done. `automaton turns` \
                 shows what was refused or failed; `automaton send` tells it how to go on.",
            )?,
            StopReason::StopLoss => write!(f, "Stopped: {why}")?,
            StopReason::Broke => f.write_str(
                "Stopped: it has too few credits to think. `automaton fund` gives it money for \
                 more, `automaton credits` shows what is left.",
            )?,
            StopReason::TurnsUsed => write!(
                f,
                "Stopped: the turns that `--turns` gives it are used, {turns} of them in this \
                 wake. `automaton run` goes on."
            )?,
            StopReason::Shutdown => {
                f.write_str("Stopped: its process was asked to end. `automaton run` goes on.")?;
            }
            StopReason::Interrupted => {
                let drops =
                    if why.is_empty() { String::new() } else { format!(", and it drops {why}") };
                let next = "`automaton send` tells it what to do instead.";
                write!(f, "Stopped: you interrupted it{drops}. {next}")?;
            }
            StopReason::Crash => {
                f.write_str("Stopped: its process died. `automaton run` goes on where it was.")?
            }
            // What limits it is known in each of these.
            StopReason::TurnLimit | StopReason::Envelope | StopReason::Budget => {
                f.write_str("Stopped: a limit is used up. `automaton wake` goes on.")?;
            }
        }
        self.budget(f)
    }
}

impl WakeEnd {
    /// Returns true if the day's budget is exhausted.
    const fn says_day(&self) -> bool {
        matches!(self.used_up, Some(ExhaustedLimit::Ceiling(CeilingScope::Day, ..)))
    }

    /// Writes the state of the day's budget, unless it was written already.
    fn budget(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.day {
            Some((spent, of)) if !self.says_day() => {
                write!(f, " Thinking cost {spent} of {of} in 24 hours.")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CENT: i64 = Microcents::PER_CENT;

    fn end(reason: StopReason, used_up: Option<ExhaustedLimit>) -> WakeEnd {
        let day = Some((Microcents::new(23 * CENT), Microcents::new(2000 * CENT)));
        WakeEnd { reason, turns: 7, used_up, day, why: None }
    }

    #[test]
    fn a_limit_names_the_command_and_the_key() {
        let text = end(StopReason::Envelope, Some(ExhaustedLimit::Answers(30, 30))).to_string();
        assert_eq!(
            text,
            "Stopped: 30 of 30 answers used since you last called it. `automaton wake` goes on; \
             `wakeEnvelope.answers` in automaton.json raises it. Thinking cost $0.23 of $20.00 in \
             24 hours."
        );
        let spent = Microcents::new(24 * CENT);
        let of = Microcents::new(25 * CENT);
        let text = end(StopReason::Envelope, Some(ExhaustedLimit::Cost(spent, of))).to_string();
        assert!(text.contains("$0.24 of $0.25") && text.contains("`wakeEnvelope.cents`"), "{text}");
        let text = end(StopReason::TurnLimit, Some(ExhaustedLimit::Turns(25))).to_string();
        assert!(text.contains("25 turns") && text.contains("`maxTurnsPerCycle`"), "{text}");
        let day = ExhaustedLimit::Ceiling(CeilingScope::Day, spent, of);
        let text = end(StopReason::Budget, Some(day)).to_string();
        assert!(text.contains("`treasuryPolicy.maxInferenceDailyCents`"), "{text}");
        assert_eq!(text.matches("24 hours").count(), 1, "{text}");
    }

    #[test]
    fn every_end_names_a_command() {
        for reason in StopReason::ALL {
            let why = Some("$1 were lost; `automaton wake` ends the hibernation.".to_owned());
            let end = WakeEnd { why, ..end(reason, None) };
            let text = end.to_string();
            assert!(text.contains("`automaton "), "{reason}: {text}");
            assert!(!end.is_usual() || !end.is_creators_to_mend(), "{reason}");
        }
    }
}
