//! The models that there are, and which of them answers.
//!
//! [`ProviderRegistry`] holds them with what each is for and how well it has answered lately; a
//! route is chosen purely, by the rules of a [`RoutingMatrix`]. Must never ask a model anything.

mod health;
mod matrix;
mod select;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use automaton_core::model::{InferenceTask, ModelId};
use automaton_core::tier::ModelTier;
use automaton_core::time::Timestamp;

use crate::cost::ModelPrices;
use crate::error::InferenceError;
use crate::price_schedule::PriceSchedule;
use crate::provider::{BoxFuture, Provider};

use health::ModelHealth;
use select::{RoutePreference, RouteRow};

pub use matrix::{RouteLimits, RoutingMatrix, RoutingRules};
pub use select::{ModelSkipReason, RouteQuery};

/// The place of a model in its registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ModelIndex(u16);

impl ModelIndex {
    /// The place with this number; more models than fit a registry does not take.
    fn from_place(place: usize) -> Self {
        Self(u16::try_from(place).unwrap_or(u16::MAX))
    }

    const fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// A model that may answer.
#[derive(Clone)]
pub struct RegisteredModel {
    /// Provider that answers.
    pub provider: Arc<dyn Provider>,
    /// Seller, for people.
    pub seller: String,
    /// Roles; empty for a model that answers only when it is named.
    pub roles: Vec<ModelTier>,
}

/// Knows models that nobody has listed, as those whose files came to this machine meanwhile.
pub trait ModelFinder: Send + Sync {
    /// The model of this name; nothing where there is none. What keeps it from answering is told
    /// in a sentence.
    fn find<'a>(
        &'a self,
        model: &'a ModelId,
    ) -> BoxFuture<'a, Result<Option<RegisteredModel>, String>>;
}

/// The models of one automaton, the usual one first.
#[derive(Clone)]
pub struct ProviderRegistry {
    matrix: Arc<RoutingMatrix>,
    may_fall_back: bool,
    finder: Option<Arc<dyn ModelFinder>>,
    state: Arc<Mutex<RegistryState>>,
}

/// State that changes while an automaton lives.
#[derive(Default)]
struct RegistryState {
    /// The usual one first; there always is one.
    models: Vec<Arc<RegisteredModel>>,
    health: Vec<ModelHealth>,
    chosen: Option<ModelId>,
    prices: PriceSchedule,
}

impl RegistryState {
    /// Has a model cost this from now on; what it cost before, where that is another price and
    /// its provider can take it.
    fn reprice(&mut self, at: usize, prices: ModelPrices) -> Option<ModelPrices> {
        let known = self.models.get_mut(at)?;
        let before = known.provider.model().prices;
        let provider = known.provider.at(prices).filter(|_| prices != before)?;
        Arc::make_mut(known).provider = provider;
        Some(before)
    }

    /// Has those prices of its creator hold whose day has come.
    fn hold_prices(&mut self, now: Timestamp) {
        for at in 0..self.models.len() {
            let due = self.prices.at(&self.models[at].provider.model().id, now);
            due.and_then(|prices| self.reprice(at, prices));
        }
    }
}

/// Which models may do a task now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The models, best first.
    pub models: Vec<ModelIndex>,
    /// Those that may not, each with the reason.
    pub skipped: Vec<(ModelIndex, ModelSkipReason)>,
    /// Limits of one answer.
    pub limits: RouteLimits,
}

impl ProviderRegistry {
    /// With the model that its creator gave it, served by somebody.
    #[must_use]
    pub fn new(usual: Arc<dyn Provider>, seller: impl Into<String>, matrix: RoutingMatrix) -> Self {
        let seller = seller.into();
        let roles = vec![ModelTier::Usual];
        let usual = Arc::new(RegisteredModel { provider: usual, seller, roles });
        let state = RegistryState { models: vec![usual], ..RegistryState::default() };
        let matrix = Arc::new(matrix);
        let state = Arc::new(Mutex::new(state));
        Self { matrix, may_fall_back: true, finder: None, state }
    }

    /// With one more, that is asked after those which are there. Of the same name and seller as
    /// another it is that one, with more roles.
    #[must_use]
    pub fn with(self, model: RegisteredModel) -> Self {
        self.add(model);
        self
    }

    fn add(&self, model: RegisteredModel) {
        let mut state = self.state();
        let is_same = |known: &&mut Arc<RegisteredModel>| {
            known.provider.model().id == model.provider.model().id && known.seller == model.seller
        };
        match state.models.iter_mut().find(is_same) {
            Some(known) => Arc::make_mut(known).roles.extend(model.roles),
            None => state.models.push(Arc::new(model)),
        }
    }

    /// The same, which asks this for a model that is called by its name and is not in the list.
    #[must_use]
    pub fn with_finder(mut self, finder: Arc<dyn ModelFinder>) -> Self {
        self.finder = Some(finder);
        self
    }

    /// The model of this name, which is in the list from now on where it can be found.
    ///
    /// # Errors
    /// A sentence that says why it cannot answer.
    pub async fn find(&self, model: &ModelId) -> Result<Option<Arc<RegisteredModel>>, String> {
        let listed = || {
            let all = self.state().models.clone();
            all.into_iter().find(|known| known.provider.model().id == *model)
        };
        if let (None, Some(finder)) = (listed(), &self.finder)
            && let Some(found) = finder.find(model).await?
        {
            self.add(found);
        }
        Ok(listed())
    }

    /// The same, in which none stands in for another that does not answer.
    #[must_use]
    pub const fn without_fallback(mut self) -> Self {
        self.may_fall_back = false;
        self
    }

    /// The same, in which these prices hold before any other, each from its day on.
    #[must_use]
    pub fn with_prices(self, prices: PriceSchedule, now: Timestamp) -> Self {
        let mut state = self.state();
        state.prices = prices;
        state.hold_prices(now);
        drop(state);
        self
    }

    /// The model that its creator gave it.
    #[must_use]
    pub fn usual(&self) -> Arc<RegisteredModel> {
        self.get(ModelIndex::default())
    }

    /// A model; the usual one where there is none at this place.
    #[must_use]
    pub fn get(&self, at: ModelIndex) -> Arc<RegisteredModel> {
        let models = &self.state().models;
        Arc::clone(models.get(at.as_usize()).unwrap_or(&models[0]))
    }

    /// All of them, as they are now.
    #[must_use]
    pub fn all(&self) -> Vec<(ModelIndex, Arc<RegisteredModel>)> {
        let models = self.state().models.clone();
        models
            .into_iter()
            .enumerate()
            .map(|(at, model)| (ModelIndex::from_place(at), model))
            .collect()
    }

    /// Has a model cost this from now on; what it cost before, where that is another price and
    /// its provider can take it.
    pub fn reprice(&self, at: ModelIndex, prices: ModelPrices) -> Option<ModelPrices> {
        self.state().reprice(at.as_usize(), prices)
    }

    /// Returns the models that stand in for the default model in the higher tiers, for people.
    #[must_use]
    pub fn stand_ins(&self) -> Vec<String> {
        let task = InferenceTask::AgentTurn;
        let query = RouteQuery { tier: None, task, is_broke: false };
        let route = self.route_of(&self.state(), query, Timestamp::EPOCH);
        let others = route.models.iter().skip(1);
        let name = |at: &ModelIndex| {
            let known = self.get(*at);
            format!("{} of {}", known.provider.model().id, known.seller)
        };
        others.map(name).collect()
    }

    /// Returns true if any of the usable models costs something.
    #[must_use]
    pub fn costs_anything(&self) -> bool {
        self.thinkers().iter().any(|known| costs(&*known.provider))
    }

    /// The models that may think: those with a role, and the one that was chosen.
    #[must_use]
    pub fn thinkers(&self) -> Vec<Arc<RegisteredModel>> {
        let state = self.state();
        let is_chosen = |known: &RegisteredModel| {
            state.chosen.as_ref().is_some_and(|chosen| *chosen == known.provider.model().id)
        };
        let thinks = |known: &&Arc<RegisteredModel>| !known.roles.is_empty() || is_chosen(known);
        state.models.iter().filter(thinks).cloned().collect()
    }

    /// Which models may do a task now.
    #[must_use]
    pub fn route(&self, query: RouteQuery, now: Timestamp) -> Route {
        let mut state = self.state();
        state.hold_prices(now);
        self.route_of(&state, query, now)
    }

    fn route_of(&self, state: &RegistryState, query: RouteQuery, now: Timestamp) -> Route {
        let row = |(at, known): (usize, &'_ Arc<RegisteredModel>)| {
            let is_open = state.health.get(at).is_some_and(|health| health.is_open(now));
            (at, is_open, Arc::clone(known))
        };
        let known: Vec<_> = state.models.iter().enumerate().map(row).collect();
        let rows: Vec<RouteRow<'_>> = known
            .iter()
            .map(|(_, is_open, known)| {
                let model = known.provider.model();
                let roles = known.roles.as_slice();
                let is_free = !costs(&*known.provider);
                let is_weak = model.weak;
                RouteRow { id: &model.id, roles, is_free, is_weak, is_open: *is_open }
            })
            .collect();
        let preference =
            RoutePreference { chosen: state.chosen.as_ref(), may_fall_back: self.may_fall_back };
        let (places, skipped) = select::select(&self.matrix, &rows, &query, preference);
        Route {
            models: places.into_iter().map(ModelIndex::from_place).collect(),
            skipped: skipped
                .into_iter()
                .map(|(at, why)| (ModelIndex::from_place(at), why))
                .collect(),
            limits: self.matrix.limits(query.rules_of(), query.task),
        }
    }

    /// Notes how a model answered, or did not.
    pub fn note(&self, at: ModelIndex, failure: Option<&InferenceError>, now: Timestamp) {
        let mut state = self.state();
        let models = state.models.len();
        state.health.resize(models, ModelHealth::default());
        match (state.health.get_mut(at.as_usize()), failure) {
            (Some(health), None) => health.answered(),
            (Some(health), Some(error)) => health.failed(error, now),
            (None, _) => {}
        }
    }

    /// Has a model stand in the usual one's place; without one the usual one is again.
    pub fn choose(&self, model: Option<ModelId>) {
        self.state().chosen = model;
    }

    /// The model that stands in the usual one's place.
    #[must_use]
    pub fn chosen(&self) -> Option<ModelId> {
        self.state().chosen.clone()
    }

    /// Returns true if a model failed recently and is asked last.
    #[must_use]
    pub fn is_avoided(&self, at: ModelIndex, now: Timestamp) -> bool {
        self.state().health.get(at.as_usize()).is_some_and(|health| health.is_open(now))
    }

    fn state(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if answers cost something.
fn costs(provider: &dyn Provider) -> bool {
    provider.model().prices != ModelPrices::default()
}
