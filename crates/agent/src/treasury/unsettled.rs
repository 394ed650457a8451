//! Answers that were paid for and not heard, since the process ended first: the cloud says by
//! the name of each what it cost.
//!
//! What nobody can tell stays booked at the most that it can have cost, and is told. Must run
//! while nothing is being asked, before each wake, and never keep one from beginning: what
//! the record refuses here is told as well, and tried again before the next one. A record that
//! is out of reach ends the life where that needs it, by its own words.

use std::time::Duration;

use automaton_core::error::{Classified as _, ErrorClass, chain};
use automaton_core::event::Event;
use automaton_core::money::Microcents;
use automaton_core::record::Usage;
use automaton_core::wire::cloud::{CallReply, CallState};
use automaton_store::{StoreError, UnsettledCost};
use tokio::time::timeout;

use super::{PaymentContext, Treasury};
use crate::deps::AgentDeps;

/// How long the cloud may take to say what all of them cost.
const WITHIN: Duration = Duration::from_secs(3);

/// Settles what an earlier life asked for and did not hear.
pub(crate) async fn settle_unsettled(deps: &AgentDeps) {
    let Err(error) = settle_all(deps).await else { return };
    deps.emit(Event::ErrorReported {
        kind: error.kind(),
        error: format!(
            "answers that were paid for and not heard stay booked at the most that they can have \
             cost: {}",
            chain(&error)
        ),
        hint: error.hint(),
    });
}

async fn settle_all(deps: &AgentDeps) -> Result<(), StoreError> {
    let cloud = deps.treasury.as_deref().map(Treasury::cloud);
    let (mut lost, mut count) = (Microcents::ZERO, 0_u32);
    let mut open = Vec::new();
    for one in deps.store.unsettled_costs().await? {
        if cloud.is_some() && one.cloud.as_deref() == cloud {
            open.push(one);
            continue;
        }
        (lost, count) =
            (lost.plus(one.reservation.most()).unwrap_or(lost), count.saturating_add(1));
        deps.store.write_off_cost(one.reservation).await?;
    }
    if count > 0 {
        deps.emit(Event::ErrorReported {
            kind: ErrorClass::Upstream,
            error: format!(
                "answers that were asked for and never heard: {count}. Their server does not tell \
                 what they cost, so the most that they can have cost stays booked: {lost}"
            ),
            hint: None,
        });
    }
    match deps.treasury.as_deref() {
        // silent-ok: what the cloud does not say in time, it says at the next start.
        Some(treasury) => timeout(WITHIN, treasury.settle(deps, open)).await.unwrap_or(Ok(())),
        None => Ok(()),
    }
}

impl Treasury {
    async fn settle(&self, deps: &AgentDeps, open: Vec<UnsettledCost>) -> Result<(), StoreError> {
        let PaymentContext { cloud, key: Some(key), .. } = &self.payment_context else {
            return Ok(());
        };
        for UnsettledCost { turn, reservation: asked, .. } in open {
            match cloud.call(key, &asked.name()).await {
                // It cannot have cost less than nothing, nor more than it was asked for with.
                Ok(Some(call))
                    if call.state == CallState::Settled
                        && !(Microcents::ZERO..=asked.most())
                            .contains(&call.charged_microcents) =>
                {
                    let (said, most) = (call.charged_microcents, asked.most());
                    self.store.write_off_cost(asked).await?;
                    deps.emit(Event::ErrorReported {
                        kind: ErrorClass::Upstream,
                        error: format!(
                            "the cloud says that an answer cost {said}, which it cannot have; \
                             {most} stays booked for it"
                        ),
                        hint: None,
                    });
                }
                Ok(Some(call)) if call.state == CallState::Settled => {
                    self.store.settle_cost(Some(asked), turn, &usage(&call)).await?;
                }
                Ok(Some(CallReply { state: CallState::Open, .. })) => {}
                Ok(_) => self.store.release_cost(asked).await?,
                // silent-ok: a cloud that cannot be asked now is asked at the next start.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }
}

/// What the cloud counted.
fn usage(call: &CallReply) -> Usage {
    Usage {
        prompt_tokens: call.prompt_tokens,
        cached_tokens: call.cached_tokens,
        completion_tokens: call.completion_tokens,
        cost: call.charged_microcents,
        ..Usage::default()
    }
}
