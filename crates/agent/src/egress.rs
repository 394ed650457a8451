//! The gate of the sandbox's one way out: each request of a command is judged, written down
//! and only then sent; what came of it is written down after.
//!
//! What may be reached is the creator's list and nothing else. A request is judged under
//! what its call was judged under; who runs a command by hand is its creator, and then
//! nothing is recorded. Credentials are handed to the proxy alone. A request that could not
//! be judged or written down is refused.

use std::net::TcpListener as StdListener;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use automaton_core::egress::EgressOutcome;
use automaton_core::error::chain;
use automaton_core::id::{CallId, IdGenerator};
use automaton_core::intent::{Intent, Intentional};
use automaton_core::record::{Authority, DecisionOutcome};
use automaton_core::secret::Secret;
use automaton_core::tool::{Risk, ToolName};
use automaton_core::trust::Label;
use automaton_net::proxy::{
    AllowedRequest, BoxFuture, EgressRefusal, EgressRequest, Gate, Proxy, SystemResolver,
};
use automaton_net::{Allowance, NetError, Origin};
use automaton_policy::guard::secrets;
use automaton_policy::{Decision, Facts, Judge, Reachable, RuleContext, Verdict, explain};
use automaton_sandbox::{HOME_INSIDE, Network};
use automaton_store::{DecisionContext, NewDecision, NewEgress, Store};
use automaton_tools::context::CallProvenance;
use automaton_tools::list;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tracing::warn;

/// Places that the description of the tool names.
const NAMED_MAX: usize = 12;

/// Refusals of one command that are judged and written down; what it asks then is neither.
const REFUSALS_MAX: u32 = 100;

/// Destinations of commands' requests. By default none: commands have only their own loopback.
#[derive(Debug, Clone, Default)]
pub struct EgressConfig {
    /// The creator's list.
    pub reachable: Arc<Reachable>,
    /// Credentials for requests, by origin.
    pub credentials: Vec<Credential>,
    /// Limits of requests and bytes.
    pub allowance: Allowance,
}

/// A header that the proxy puts into requests to one origin.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Destination. Inside the sandbox a destination behind TLS is requested by `http://`, at the
    /// same port or at 80.
    pub origin: Origin,
    /// The header.
    pub header: String,
    /// Its value.
    pub value: Secret,
}

impl Credential {
    /// Returns true if a request to this origin, as it is made inside, gets the credential.
    fn is_for(&self, asked: &Origin, method: &str) -> bool {
        method != "CONNECT" && (self.origin == *asked || self.origin == asked.over_tls())
    }
}

impl EgressConfig {
    /// The network that commands get.
    #[must_use]
    pub fn network(&self) -> Network {
        match self.places().next() {
            Some(_) => Network::Proxied,
            None => Network::Loopback,
        }
    }

    /// Every place on the list, as the creator wrote it.
    pub fn places(&self) -> impl Iterator<Item = String> {
        let Reachable { hosts, origins } = &*self.reachable;
        let signed = self.credentials.iter().map(|credential| {
            let asked = inside(&credential.origin);
            let header = &credential.header;
            format!("{asked} ({header} is put in)")
        });
        hosts.iter().chain(origins).cloned().chain(signed)
    }

    /// Returns the words that tell the model of its commands' network; nothing when they have
    /// none.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let mut places: Vec<String> = self.places().collect();
        let more = places.len().saturating_sub(NAMED_MAX);
        places.truncate(NAMED_MAX);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = places.join(", ");
        (!places.is_empty())
            .then(|| format!("Network: only {named}{rest}, by the proxy that HTTP_PROXY names."))
    }

    /// The proxy that keeps to this.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn proxy(&self) -> Result<Proxy, NetError> {
        Proxy::new(self.allowance, Arc::new(SystemResolver))
    }

    /// Returns the list for the policy: the creator's, with the origins that get a credential.
    fn listed(&self) -> Arc<Reachable> {
        let mut all = Reachable::clone(&self.reachable);
        all.origins.extend(self.credentials.iter().map(|it| inside(&it.origin)));
        Arc::new(all)
    }
}

/// Returns the address inside of an origin with a credential: without TLS, as far as the proxy.
fn inside(origin: &Origin) -> String {
    let text = origin.to_string();
    text.strip_prefix("https://").map_or(text.clone(), |place| format!("http://{place}"))
}

/// Judges the requests of one command.
pub struct EgressGate {
    egress: EgressConfig,
    judge: Judge,
    ids: IdGenerator,
    /// Provenance of the last command that joined, with the lowest labels of all.
    behalf: Mutex<CallProvenance>,
    /// True if any request was allowed.
    passed: AtomicBool,
    /// Number of refused requests.
    refused: AtomicU32,
    facts: Facts,
    tool: ToolName,
    /// Secrets that no request may hold.
    own: Vec<Secret>,
    /// Record of requests; `None` for a command that a person runs.
    store: Option<Store>,
}

/// One request, as the policy asks it.
struct EgressIntent(Intent);

impl Intentional for EgressIntent {
    fn intents(&self) -> Vec<Intent> {
        vec![self.0.clone()]
    }
}

impl EgressGate {
    /// The gate of a command on somebody's behalf. What is judged is recorded where there
    /// is a store; `own` may be in no request, nor may the credentials.
    #[must_use]
    pub fn new(
        egress: &EgressConfig,
        judge: Judge,
        ids: IdGenerator,
        behalf: CallProvenance,
        own: Vec<Secret>,
        store: Option<Store>,
    ) -> Self {
        let CallProvenance { input, heard, .. } = behalf;
        let facts = Facts {
            input,
            heard,
            risk: Risk::Caution,
            egress: egress.listed(),
            secrets: Vec::new(),
            origins: Default::default(),
            creator: None,
            paid_hosts: Vec::new(),
            attempts: Default::default(),
            creator_waits: false,
            gives_alone: false,
            published_before: false,
            purpose_asks: false,
            tier: None,
            hard_limit: None,
        };
        // The key itself, without the word before it: in a URL that is written otherwise.
        let key = |it: &Credential| it.value.reveal().rsplit(' ').next().map(str::to_owned);
        let keys = egress.credentials.iter().filter_map(key).map(Secret::new);
        let own = own.into_iter().chain(keys).collect();
        let tool = list::commands();
        let behalf = Mutex::new(behalf);
        let passed = AtomicBool::new(false);
        let refused = AtomicU32::new(0);
        let egress = egress.clone();
        Self { egress, judge, ids, behalf, passed, refused, facts, tool, own, store }
    }

    /// Another command has come to use it. Who sent a request cannot be told from then on, so
    /// all are judged as the least trusted.
    pub fn join(&self, behalf: CallProvenance) {
        let mut one = self.behalf.lock().unwrap_or_else(PoisonError::into_inner);
        let input = one.input.meet(behalf.input);
        let heard = one.heard.meet(behalf.heard);
        // One approval of many commands is an approval of none.
        *one = CallProvenance { input, heard, approval: None, ..behalf };
    }

    /// Returns the lowest label of the texts that commands may have received.
    #[must_use]
    pub fn label(&self) -> Label {
        if self.passed.load(Ordering::Acquire) { Label::Web } else { Label::Tool }
    }

    fn behalf(&self) -> CallProvenance {
        *self.behalf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges a request, and writes down what was decided.
    async fn decide(&self, asked: &EgressRequest) -> Result<Option<CallId>, EgressRefusal> {
        let method = asked.method.clone();
        let url = asked.url.to_string();
        let intent = Intent::Egress { method, url, origin: asked.origin.to_string() };
        let begun = self.ids.now();
        let own: Vec<&str> = self.own.iter().map(Secret::reveal).collect();
        if self.refused.load(Ordering::Acquire) >= REFUSALS_MAX {
            let sentence =
                format!("{REFUSALS_MAX} requests were refused; nothing is sent any more.");
            return Err(EgressRefusal { rule: "egress.refusals".to_owned(), sentence });
        }
        let behalf = self.behalf();
        let mut facts = self.facts.clone();
        (facts.input, facts.heard) = (behalf.input, behalf.heard);
        facts.secrets =
            secrets::find(asked.url.as_str(), &own).iter().map(|hit| hit.kind).collect();
        let CallProvenance { approval, tier, turn_of_wake: turn, place: call, .. } = behalf;
        let moment = RuleContext { tool: &self.tool, at: begun, tier, turn, call };
        let verdict = self.judge.judge(EgressIntent(intent.clone()), &facts, &moment, approval);
        let decision = verdict.decision();
        let under = DecisionContext {
            input: facts.input,
            heard: facts.heard,
            authority: Authority::of(facts.input.meet(facts.heard)),
            approval,
            latency_ms: self.ids.now().since(begun).into(),
        };
        let ticket = match &self.store {
            None => None,
            Some(store) => {
                let new = NewEgress {
                    call: behalf.call,
                    turn: behalf.turn,
                    method: asked.method.clone(),
                    origin: asked.origin.to_string(),
                    intent,
                    decision: row(decision, under),
                };
                let written = store.record_egress(new).await;
                Some(written.map_err(|error| unrecorded(&chain(&error).to_string()))?)
            }
        };
        match verdict {
            Verdict::Allowed(approved, _) => {
                if let (Some(store), false) = (&self.store, self.passed.load(Ordering::Acquire)) {
                    // Before anything can come in: what the command leaves may be others'.
                    let marked = store.label_path(HOME_INSIDE.to_owned(), Label::Web).await;
                    marked.map_err(|error| unrecorded(&chain(&error).to_string()))?;
                }
                // Opened here and nowhere else: what was judged is what is sent.
                let (EgressIntent(_), _permit) = approved.open();
                self.passed.store(true, Ordering::Release);
                Ok(ticket)
            }
            Verdict::Held(decision) | Verdict::Refused(decision) => {
                self.refused.fetch_add(1, Ordering::AcqRel);
                Err(refusal(asked, &decision))
            }
        }
    }
}

/// A request that cannot be written down is not sent.
fn unrecorded(error: &str) -> EgressRefusal {
    warn!(error, "a request could not be written down");
    let sentence = "The request could not be written down, so it is not sent.".to_owned();
    EgressRefusal { rule: "egress.record".to_owned(), sentence }
}

fn refusal(asked: &EgressRequest, decision: &Decision) -> EgressRefusal {
    let rule = decision.triggered().next().unwrap_or("egress.judged").to_owned();
    let origin = &asked.origin;
    let reason = &decision.reason;
    let advice = explain::advice(decision.code);
    let asks = match decision.outcome {
        DecisionOutcome::Ask => " It needs the creator's approval of the command.",
        DecisionOutcome::Allow | DecisionOutcome::Deny => "",
    };
    EgressRefusal { rule, sentence: format!("{origin} was refused: {reason}{asks} {advice}") }
}

fn row(decision: &Decision, under: DecisionContext) -> NewDecision {
    NewDecision {
        outcome: decision.outcome,
        code: decision.code.name().to_owned(),
        reason: decision.reason.to_string(),
        risk: Risk::Caution,
        rules_evaluated: decision.evaluated().map(str::to_owned).collect(),
        rules_triggered: decision.triggered().map(str::to_owned).collect(),
        under,
    }
}

impl Gate for EgressGate {
    type Ticket = Option<CallId>;

    fn judge(
        &self,
        asked: EgressRequest,
    ) -> BoxFuture<'_, Result<AllowedRequest<Option<CallId>>, EgressRefusal>> {
        Box::pin(async move {
            let ticket = self.decide(&asked).await?;
            let mut pass = AllowedRequest {
                ticket,
                allowlisted: self.egress.reachable.lists_origin(&asked.origin.to_string()),
                to: asked.origin.clone(),
                headers: Vec::new(),
            };
            let mut all = self.egress.credentials.iter();
            while let Some(credential) = all.find(|it| it.is_for(&asked.origin, &asked.method)) {
                let Credential { origin, header, value } = credential;
                (pass.to, pass.allowlisted) = (origin.clone(), true);
                pass.headers.push((header.clone(), value.clone()));
            }
            Ok(pass)
        })
    }

    fn ended(&self, ticket: Option<CallId>, came: EgressOutcome) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some((store, id)) = self.store.as_ref().zip(ticket) else { return };
            if let Err(error) = store.end_egress(id, came).await {
                // The row stays as one of which nothing is known.
                warn!(error = %chain(&error), "the end of a request could not be written down");
            }
        })
    }
}

/// On behalf of a person who runs a command by hand.
#[must_use]
pub fn manual_provenance(ids: &IdGenerator) -> CallProvenance {
    CallProvenance {
        call: ids.id(),
        turn: ids.id(),
        input: Label::Creator,
        heard: Label::Creator,
        approval: None,
        tier: None,
        turn_of_wake: 1,
        place: 1,
    }
}

/// Runs to the end of a command while its way out is served.
///
/// # Errors
/// When the listener cannot be taken.
pub async fn run_with_egress<T>(
    proxy: &Proxy,
    way: Option<(StdListener, Arc<EgressGate>)>,
    command: impl Future<Output = T>,
) -> std::io::Result<T> {
    let Some((way, gate)) = way else { return Ok(command.await) };
    let listener = TcpListener::from_std(way)?;
    let (end, ended) = oneshot::channel::<()>();
    let commanding = async move {
        let done = command.await;
        drop(end);
        done
    };
    // That the sender is gone is what is waited for.
    let over = async move { drop(ended.await) };
    let (done, ()) = tokio::join!(commanding, proxy.serve(listener, gate, over));
    Ok(done)
}

#[cfg(test)]
mod tests;
