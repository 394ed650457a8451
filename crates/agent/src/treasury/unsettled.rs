//! Answers that were paid for and not heard, since the process ended first: the cloud says by
//! the name of each what it cost.
//!
//! What nobody can tell stays booked at the most that it can have cost, and is told. It runs
//! before each wake, and must never keep one from beginning: what the record refuses here is told
//! as well, and tried again before the next one. A record that is out of reach ends the life where
//! that needs it, by its own words. Nor must it touch what the heartbeat still waits for.

use std::time::Duration;

use automaton_core::error::{Classified as _, ErrorClass, chain};
use automaton_core::event::Event;
use automaton_core::money::Microcents;
use automaton_core::record::Usage;
use automaton_core::wire::cloud::{CallReply, CallState};
use automaton_store::{StoreError, UnsettledCost};
use tokio::time::timeout;

use super::{PaymentContext, Treasury, TreasuryError};
use crate::deps::AgentDeps;

/// Time for the cloud's answers about all of them.
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
    let mut lost = Microcents::ZERO;
    let mut count = 0_u32;
    let mut open = Vec::new();
    for one in deps.store.unsettled_costs().await? {
        if cloud.is_some() && one.cloud.as_deref() == cloud {
            open.push(one);
            continue;
        }
        (lost, count) =
            (lost.plus(one.reservation.cost_max()).unwrap_or(lost), count.saturating_add(1));
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

/// Cost of answers that were not received.
pub(super) struct UnsettledTotals {
    /// As the cloud says of those that it charged.
    pub(super) charged: Microcents,
    /// At most, of the others.
    pub(super) most: Microcents,
}

impl Treasury {
    /// Reads the cost of answers that were not received, as far as the cloud tells. Each is asked
    /// about alone, so that the uncertainty of one hides nothing else.
    pub(super) async fn unsettled(&self) -> Result<UnsettledTotals, TreasuryError> {
        let mut known = Microcents::ZERO;
        let mut charged = Microcents::ZERO;
        let PaymentContext { cloud, key, origin, .. } = &self.payment_context;
        let open = self.store.unsettled_costs().await?;
        for UnsettledCost { reservation: asked, cloud: by, .. } in open {
            let Some(key) = key.as_ref().filter(|_| by.as_ref() == Some(origin)) else { continue };
            // silent-ok: what the cloud does not say may have cost the most that it can.
            match timeout(WITHIN, cloud.call(key, &asked.name())).await.ok().and_then(Result::ok) {
                Some(Some(call)) => match call.state {
                    CallState::Open => continue,
                    CallState::Settled => charged = charged.plus(call.charged_microcents)?,
                    CallState::Released => {}
                },
                Some(None) => {}
                None => break,
            }
            known = known.plus(asked.cost_max())?;
        }
        let most = self.store.unsettled_most().await?.minus(known)?.max(Microcents::ZERO);
        Ok(UnsettledTotals { charged, most })
    }

    async fn settle(&self, deps: &AgentDeps, open: Vec<UnsettledCost>) -> Result<(), StoreError> {
        let PaymentContext { cloud, key: Some(key), .. } = &self.payment_context else {
            return Ok(());
        };
        for UnsettledCost { turn, reservation: asked, .. } in open {
            match cloud.call(key, &asked.name()).await {
                // It cannot have cost less than nothing, nor more than it was asked for with.
                Ok(Some(call))
                    if call.state == CallState::Settled
                        && !(Microcents::ZERO..=asked.cost_max())
                            .contains(&call.charged_microcents) =>
                {
                    let said = call.charged_microcents;
                    let most = asked.cost_max();
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

/// Returns the cloud's counts.
fn usage(call: &CallReply) -> Usage {
    Usage {
        prompt_tokens: call.prompt_tokens,
        cached_tokens: call.cached_tokens,
        completion_tokens: call.completion_tokens,
        cost: call.charged_microcents,
        estimated: call.estimated,
        ..Usage::default()
    }
}
