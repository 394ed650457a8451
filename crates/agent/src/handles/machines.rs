//! Machines for rent, and ports that everybody may reach, with the cloud of the account.
//!
//! Nothing is rented here by itself, nor beyond what the creator lets be spent unasked, and the
//! machine that commands run on is ended by nobody but the creator.

use std::sync::Arc;

use automaton_client::MachineRef;
use automaton_core::error::ErrorClass;
use automaton_core::id::{CallId, RemoteMachineId};
use automaton_core::money::Microcents;
use automaton_core::trust::Label;
use automaton_core::wire::cloud::{CreateMachineRequest, MachineReply, MachineTier};
use automaton_policy::{PaymentLimits, PaymentVerdict};
use automaton_sandbox::HOME_INSIDE;
use automaton_store::{PublicationState, PublishedPort, Store};
use automaton_tools::HandleError;
use automaton_tools::context::{self, CallProvenance, HandleFuture};

use super::background::Background;
use super::rented_machine::{RentedMachine, failed, unknown};
use super::tunnel::TunnelClient;
use crate::deps::AgentDeps;
use crate::settings::Settings;
use crate::treasury::CloudAccount;

/// The machines of one automaton.
pub(crate) struct RentedMachines {
    account: Option<CloudAccount>,
    limits: PaymentLimits,
    store: Store,
    own: Option<RentedMachine>,
    /// Background processes of the sandbox here.
    here: Arc<Background>,
    /// To the sandbox here, where there is an account and no machine in its place.
    tunnel: Option<TunnelClient>,
}

/// The machine that the creator has named, where the cloud of the account is known.
pub(super) fn rented(
    settings: &Settings,
    deps: &AgentDeps,
) -> Option<Result<RentedMachine, HandleError>> {
    let id = settings.machine.clone()?;
    let account = account(deps).ok_or_else(|| no_account(&format!("machine {id}")));
    Some(account.map(|CloudAccount { cloud, key }| RentedMachine { cloud, key, id }))
}

fn account(deps: &AgentDeps) -> Option<CloudAccount> {
    deps.treasury.as_ref().and_then(|treasury| treasury.account())
}

fn no_account(what: &str) -> HandleError {
    let message = format!("there is no account with a cloud for {what}");
    let hint = "The creator can make one: `automaton provision`.".to_owned();
    HandleError { kind: ErrorClass::Config, message, hint: Some(hint) }
}

fn refused(message: &str, hint: &str) -> HandleError {
    HandleError { kind: ErrorClass::User, message: message.to_owned(), hint: Some(hint.to_owned()) }
}

impl RentedMachines {
    pub(super) fn new(settings: &Settings, deps: &AgentDeps, here: Arc<Background>) -> Self {
        // silent-ok: what is wrong with it is told by the first command.
        let own = rented(settings, deps).and_then(Result::ok);
        let account = account(deps);
        let limits = deps.treasury.as_ref().map(|treasury| treasury.limits().clone());
        let limits = limits.unwrap_or_default();
        let store = deps.store.clone();
        let tunnel = account.clone().filter(|_| settings.machine.is_none());
        let treasury = deps.treasury.clone();
        let beside = Arc::clone(&here);
        let tunnel =
            tunnel.map(|account| TunnelClient::new(account, deps.store.clone(), beside, treasury));
        Self { account, limits, store, own, tunnel, here }
    }

    fn account(&self) -> Result<&CloudAccount, HandleError> {
        self.account.as_ref().ok_or_else(|| no_account("machines"))
    }

    /// Refuses a machine that costs more, with all that are rented, than may be spent unasked.
    async fn afford(&self, wanted: &CreateMachineRequest) -> Result<(), HandleError> {
        let CloudAccount { cloud, key } = self.account()?;
        let tiers = cloud.pricing(key).await.map_err(|error| failed(&error))?.tiers;
        let fits = |it: &&MachineTier| {
            it.vcpu >= wanted.vcpu
                && it.memory_mb >= wanted.memory_mb
                && it.disk_gb >= wanted.disk_gb
        };
        let tier = tiers.iter().filter(fits).min_by_key(|it| it.monthly_cents);
        let tier = tier.ok_or_else(|| refused("no machine is that large", "Ask for less."))?;
        let rented = cloud.machines(key).await.map_err(|error| failed(&error))?.sandboxes;
        let unknown = || refused("what a sandbox costs is not known", "list_sandboxes shows them.");
        let costs = |sum: Microcents, it: &MachineReply| {
            // silent-ok: what cannot be counted is not known.
            it.monthly_cents.and_then(|cents| sum.plus(Microcents::from_cents(cents).ok()?).ok())
        };
        let sum = rented.iter().try_fold(Microcents::ZERO, costs).ok_or_else(unknown)?;
        let more = Microcents::from_cents(tier.monthly_cents).map_err(|_| unknown())?;
        match self.limits.judge_rent(sum, more) {
            PaymentVerdict::Allow => Ok(()),
            PaymentVerdict::Ask(_, why) | PaymentVerdict::Deny(_, why) => {
                Err(refused(&why, "Delete one, or ask your creator, who sets this limit."))
            }
        }
    }

    /// The way to the sandbox here; without a cloud there is none.
    fn tunnel(&self) -> Result<&TunnelClient, HandleError> {
        self.tunnel.as_ref().ok_or_else(|| {
            refused(
                "your sandbox is on your creator's machine, and nobody can reach it from outside",
                "Ask your creator to make an account with a cloud (`automaton provision`), whose \
                 gateway can lead to it.",
            )
        })
    }
}

impl context::MachinesHandle for RentedMachines {
    fn rent(&self, wanted: CreateMachineRequest, call: CallId) -> HandleFuture<'_, MachineReply> {
        Box::pin(async move {
            // The creator has seen the machine in the question about the call.
            let approved = self.store.is_approved_call(call).await;
            if !approved.map_err(|error| HandleError::from_error(&error))? {
                self.afford(&wanted).await?;
            }
            let CloudAccount { cloud, key } = self.account()?;
            let made = cloud.create_machine(key, &wanted, &call.to_string()).await;
            made.map_err(|error| {
                unknown(&error, "Look with list_sandboxes before you rent another one.")
            })
        })
    }

    fn all(&self) -> HandleFuture<'_, Vec<MachineReply>> {
        Box::pin(async move {
            let CloudAccount { cloud, key } = self.account()?;
            Ok(cloud.machines(key).await.map_err(|error| failed(&error))?.sandboxes)
        })
    }

    fn end<'a>(&'a self, id: &'a str) -> HandleFuture<'a, ()> {
        Box::pin(async move {
            let CloudAccount { cloud, key } = self.account()?;
            let unusable =
                |_| refused("that is no id of a sandbox", "list_sandboxes shows those you have.");
            let id: RemoteMachineId = id.parse().map_err(unusable)?;
            // A cloud may read an id in either case.
            let is_own = |own: &RentedMachine| own.id.as_str().eq_ignore_ascii_case(id.as_str());
            if self.own.as_ref().is_some_and(is_own) {
                let why = "your own commands and files are on that machine";
                return Err(refused(why, "Ask your creator to name another one first."));
            }
            cloud.delete_machine(MachineRef { key, id: &id }).await.map_err(|error| failed(&error))
        })
    }

    fn open(
        &self,
        port: u16,
        price: Option<String>,
        provenance: CallProvenance,
    ) -> HandleFuture<'_, String> {
        Box::pin(async move {
            let Some(own) = &self.own else {
                let url = self.tunnel()?.open(port, price.clone()).await?;
                let published = PublishedPort {
                    port,
                    price,
                    url: url.clone(),
                    commands: self.here.running_commands().await,
                    call: provenance.call,
                    turn: provenance.turn,
                    state: PublicationState::Open,
                };
                let noted = self.store.note_published(published).await;
                noted.map_err(|error| HandleError::from_error(&error))?;
                return Ok(url);
            };
            // Before anybody can come in: what is there may be others' from then on.
            let labelled = self.store.label_path(HOME_INSIDE.to_owned(), Label::Web).await;
            labelled.map_err(|error| HandleError::from_error(&error))?;
            own.open(port, price).await
        })
    }

    fn close(&self, port: u16) -> HandleFuture<'_, ()> {
        Box::pin(async move {
            match &self.own {
                Some(own) => own.close(port).await,
                None => {
                    let forgotten = self.store.forget_published(port).await;
                    forgotten.map_err(|error| HandleError::from_error(&error))?;
                    self.tunnel()?.close(port).await
                }
            }
        })
    }
}
