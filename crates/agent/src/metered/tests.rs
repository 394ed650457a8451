//! Every end of a paid request, with what it books.

use std::collections::VecDeque;
use std::sync::Mutex;

use automaton_core::entropy::SystemEntropy;
use automaton_core::faults::NoFaults;
use automaton_core::record::Usage;
use automaton_core::time::SystemClock;
use automaton_inference::routing::RoutingMatrix;
use automaton_inference::{
    BoxFuture, FinishReason, Message, ModelPrices, RegisteredModel, TokenCountSource, catalogue,
};
use automaton_store::{Hash, NewAutomaton};

use super::*;

/// Price of a token, in microcents.
const PER_TOKEN: i64 = 1;

/// Highest cost of a request: the text, what a chat template adds, and a whole answer.
const MOST: i64 = 2 + 16 + 256 + 100;

/// Estimated cost of a request.
const LIKELY: i64 = 10 + 100;

#[derive(Debug, Clone, Copy)]
enum Reply {
    Answers(i64),
    /// Refuses, and charges nothing.
    IsBusy,
    /// Fails in the middle of its answer.
    BreaksOff,
    Hangs,
}

/// A model with scripted replies. It keeps the names of its requests.
struct ScriptedModel {
    info: ModelInfo,
    replies: Mutex<VecDeque<Reply>>,
    names: Mutex<Vec<Option<String>>>,
}

impl ScriptedModel {
    fn new(id: &str, per_token: i64, replies: &[Reply]) -> Arc<Self> {
        let mut info = catalogue::model("gpt-5.2").unwrap();
        let per_million = Microcents::new(per_token * 1_000_000);
        info.id = id.into();
        info.prices = ModelPrices {
            input_per_million: per_million,
            output_per_million: per_million,
            ..ModelPrices::default()
        };
        let replies = Mutex::new(replies.iter().copied().collect());
        Arc::new(Self { info, replies, names: Mutex::default() })
    }

    fn names(&self) -> Vec<Option<String>> {
        self.names.lock().unwrap().clone()
    }
}

impl Provider for ScriptedModel {
    fn model(&self) -> &ModelInfo {
        &self.info
    }

    fn complete<'a>(
        &'a self,
        ask: &'a CompletionRequest,
        _sink: &'a dyn TokenSink,
    ) -> BoxFuture<'a, Result<Completion, InferenceError>> {
        self.names.lock().unwrap().push(ask.name.clone());
        let reply = self.replies.lock().unwrap().pop_front().expect("one request too many");
        let endpoint = "http://cloud".to_owned();
        let text = "no".to_owned();
        Box::pin(async move {
            match reply {
                Reply::Answers(cost) => {
                    let usage = Usage { cost: Microcents::new(cost), ..Usage::default() };
                    Ok(Completion {
                        text: "yes".to_owned(),
                        calls: Vec::new(),
                        finish: FinishReason::Stop,
                        usage,
                        counted: TokenCountSource::Reported,
                    })
                }
                Reply::IsBusy => {
                    let wait = Duration::from_secs(1);
                    Err(InferenceError::Busy { endpoint, status: 429, text, wait })
                }
                Reply::BreaksOff => Err(InferenceError::Failed { endpoint, text }),
                Reply::Hangs => pending().await,
            }
        })
    }
}

/// A question of two letters, which keeps what it is told.
struct Question {
    turn: TurnId,
    urgency: Urgency,
    model: ModelInfo,
    /// True if it is interrupted once it was sent.
    is_interrupted: bool,
    notes: Vec<String>,
}

impl ModelRequest for Question {
    type Sent = ModelIndex;

    fn urgency(&self) -> Urgency {
        self.urgency
    }

    fn turn(&self) -> TurnId {
        self.turn
    }

    async fn prepare(
        &mut self,
        model: ModelIndex,
        limits: RouteLimits,
    ) -> Result<PricedRequest<ModelIndex>, NotAnswered> {
        let ask = CompletionRequest {
            messages: vec![Arc::new(Message::user("hi"))],
            tools: Arc::default(),
            left_out: Vec::new(),
            max_tokens: 100,
            seed: 1,
            temperature_milli: 0,
            name: None,
            silence: Some(limits.silence),
        };
        let cost = AnswerCost::new(&self.model, &ask, 10).unwrap();
        Ok(PricedRequest { ask, tokens: 10, cost, sent: model })
    }

    fn note_over_ceiling(&mut self, _model: ModelIndex, over: &OverCeiling) {
        self.notes.push(format!("over {}", over.limit.units()));
    }

    fn note_start(&mut self, _model: ModelIndex, _tokens: u32, failed: Option<&NotAnswered>) {
        let after = failed.map_or("", |_| " after a failure");
        self.notes.push(format!("start{after}"));
    }

    async fn note_failure(&mut self, _model: ModelIndex, error: &NotAnswered) {
        self.notes.push(error.brief());
    }

    async fn interrupted(&self) {
        if !self.is_interrupted {
            pending::<()>().await;
        }
        // The other arm sends first.
        tokio::task::yield_now().await;
    }
}

/// An automaton whose models are scripted.
struct World {
    store: Store,
    ids: IdGenerator,
    providers: ProviderRegistry,
    prices_of: ModelInfo,
    cloud: Option<&'static str>,
    _home: tempfile::TempDir,
}

/// What is booked, what was counted, and how many requests wait for the word of the cloud.
type Books = (i64, i64, usize);

impl World {
    async fn new(models: &[&Arc<ScriptedModel>]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let ids = IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
        let path = home.path().join("state.db");
        let store = Store::open(&path, ids.clone(), Arc::new(NoFaults)).unwrap();
        let genesis_sha256 = Hash::of(b"genesis");
        let constitution_sha256 = Hash::of(b"laws");
        let born = NewAutomaton { name: "Ada".to_owned(), genesis_sha256, constitution_sha256 };
        store.birth(born).await.unwrap();
        let (first, others) = models.split_first().unwrap();
        let matrix = RoutingMatrix::built_in().unwrap();
        let first = Arc::clone(*first);
        let prices_of = first.info.clone();
        let mut providers = ProviderRegistry::new(first, "the cloud", matrix);
        for other in others {
            let provider: Arc<dyn Provider> = Arc::<ScriptedModel>::clone(other);
            let seller = "the cloud".to_owned();
            providers = providers.with(RegisteredModel { provider, seller, roles: Vec::new() });
        }
        Self { store, ids, providers, prices_of, cloud: Some("cloud"), _home: home }
    }

    fn question(&self, urgency: Urgency) -> Question {
        let model = self.prices_of.clone();
        let notes = Vec::new();
        Question { turn: self.ids.id(), urgency, model, is_interrupted: false, notes }
    }

    async fn complete(
        &self,
        question: &mut Question,
        soft_limit: Option<i64>,
        spending: SpendingLimits,
    ) -> Result<PaidAnswer<ModelIndex>, Unanswered<ModelIndex>> {
        let limits = RouteLimits {
            max_tokens: None,
            per_call: soft_limit.map(Microcents::new),
            silence: Duration::from_secs(1),
        };
        let models = self.providers.all().into_iter().map(|(index, _)| index).collect();
        let route = Route { models, skipped: Vec::new(), limits };
        let Self { store, providers, ids, cloud, .. } = self;
        let models = MeteredModels { store, providers, ids, cloud: *cloud };
        models.complete(&route, spending, question).await
    }

    /// Asks a needed question without limits.
    async fn ask(&self) -> Result<PaidAnswer<ModelIndex>, Unanswered<ModelIndex>> {
        let mut question = self.question(Urgency::Needed);
        self.complete(&mut question, None, SpendingLimits::default()).await
    }

    async fn books(&self) -> Books {
        let booked = self.store.thinking_cost().await.unwrap().day;
        let counted = self.store.totals().await.unwrap().cost;
        (booked.units(), counted.units(), self.store.unsettled_costs().await.unwrap().len())
    }
}

fn ceiling(per_day: i64) -> SpendingLimits {
    let per_day = Some(Microcents::new(per_day));
    let ceilings = InferenceCeilings { per_day, ..InferenceCeilings::default() };
    SpendingLimits { ceilings, credits: None }
}

#[tokio::test]
async fn an_answer_is_booked_at_its_highest_cost_until_it_is_settled() {
    let model = ScriptedModel::new("first", PER_TOKEN, &[Reply::Answers(7)]);
    let world = World::new(&[&model]).await;
    let paid = world.ask().await.ok().unwrap();
    assert_eq!(world.books().await, (MOST, 0, 0), "it is awaited");
    let turn = world.ids.id();
    assert_eq!(model.names(), [paid.reservation.name()]);
    paid.reservation.settle(turn, &paid.answer.usage).await.unwrap();
    assert_eq!(world.books().await, (7, 7, 0));
}

#[tokio::test]
async fn a_model_that_costs_nothing_books_nothing_and_is_not_asked_again() {
    let model = ScriptedModel::new("first", 0, &[Reply::Answers(0), Reply::BreaksOff]);
    let world = World::new(&[&model]).await;
    let paid = world.ask().await.ok().unwrap();
    assert!(paid.reservation.into_booked().is_none());
    assert!(world.ask().await.is_err());
    assert_eq!(model.names(), [None, None]);
    assert_eq!(world.books().await, (0, 0, 0));
}

#[tokio::test]
async fn a_refusal_that_costs_nothing_releases_the_booking_and_the_next_model_is_asked() {
    let first = ScriptedModel::new("first", PER_TOKEN, &[Reply::IsBusy]);
    let second = ScriptedModel::new("second", PER_TOKEN, &[Reply::Answers(9)]);
    let world = World::new(&[&first, &second]).await;
    let mut question = world.question(Urgency::Needed);
    let asked = world.complete(&mut question, None, SpendingLimits::default()).await;
    let paid = asked.ok().unwrap();
    assert_eq!(question.notes.len(), 3, "{:?}", question.notes);
    assert_eq!((&*question.notes[0], &*question.notes[2]), ("start", "start after a failure"));
    assert_eq!(paid.sent, paid.model);
    assert_eq!(world.books().await, (MOST, 0, 0), "nothing is booked for the first");
    assert_ne!(first.names(), second.names());
    let avoided = |index| world.providers.is_avoided(index, world.ids.now());
    let indexes: Vec<_> = world.providers.all().into_iter().map(|(index, _)| index).collect();
    assert!(avoided(indexes[0]) && !avoided(indexes[1]), "health is noted");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_requested_again_by_its_name_and_paid_once() {
    let model = ScriptedModel::new("first", PER_TOKEN, &[Reply::BreaksOff, Reply::Answers(7)]);
    let world = World::new(&[&model]).await;
    let paid = world.ask().await.ok().unwrap();
    let names = model.names();
    assert!(names.len() == 2 && names[0].is_some() && names[0] == names[1], "{names:?}");
    paid.reservation.settle(world.ids.id(), &paid.answer.usage).await.unwrap();
    assert_eq!(world.books().await, (7, 7, 0));
}

#[tokio::test]
async fn a_lost_answer_stays_booked_until_the_cloud_tells_its_cost() {
    // The second refusal costs nothing, and says nothing about the first request.
    let model = ScriptedModel::new("first", PER_TOKEN, &[Reply::BreaksOff, Reply::IsBusy]);
    let world = World::new(&[&model]).await;
    let unanswered = world.ask().await.err().unwrap();
    assert!(matches!(unanswered.error, NotAnswered::Inference(InferenceError::Failed { .. })));
    assert!(unanswered.asked.unwrap().reservation.is_none());
    assert_eq!(world.books().await, (MOST, 0, 1));
    let lost = world.store.unsettled_costs().await.unwrap().pop().unwrap();
    assert_eq!(Some(lost.reservation.name()), model.names()[0]);
    assert_eq!(lost.cloud.as_deref(), world.cloud);
    let usage = Usage { cost: Microcents::new(5), ..Usage::default() };
    world.store.settle_cost(Some(lost.reservation), lost.turn, &usage).await.unwrap();
    assert_eq!(world.books().await, (5, 5, 0));
}

#[tokio::test]
async fn only_a_needed_answer_of_a_cloud_is_requested_again() {
    let replies = [Reply::BreaksOff, Reply::BreaksOff];
    let model = ScriptedModel::new("first", PER_TOKEN, &replies);
    let mut world = World::new(&[&model]).await;
    let mut question = world.question(Urgency::Optional);
    let limits = SpendingLimits::default();
    assert!(world.complete(&mut question, None, limits).await.is_err());
    assert_eq!(model.names().len(), 1);
    world.cloud = None;
    assert!(world.ask().await.is_err());
    assert_eq!(model.names().len(), 2);
    assert_eq!(world.books().await, (2 * MOST, 0, 2));
}

#[tokio::test]
async fn a_request_over_a_ceiling_is_neither_booked_nor_sent() {
    let model = ScriptedModel::new("first", PER_TOKEN, &[Reply::Answers(7)]);
    let world = World::new(&[&model]).await;
    let mut question = world.question(Urgency::Needed);
    let unanswered = world.complete(&mut question, None, ceiling(MOST - 1)).await.err().unwrap();
    let NotAnswered::OverCeiling(over) = unanswered.error else { panic!("{unanswered:?}") };
    assert_eq!((over.most.units(), over.limit.units()), (MOST, MOST - 1));
    assert!(unanswered.asked.is_none());
    assert_eq!(question.notes, [format!("over {}", MOST - 1)]);
    assert!(model.names().is_empty());
    assert_eq!(world.books().await, (0, 0, 0));
    assert!(world.complete(&mut question, None, ceiling(MOST)).await.is_ok());
}

#[tokio::test]
async fn the_soft_limit_is_waived_for_a_needed_answer_alone() {
    let model = ScriptedModel::new("first", PER_TOKEN, &[Reply::Answers(7)]);
    let world = World::new(&[&model]).await;
    let limits = SpendingLimits::default();
    let mut optional = world.question(Urgency::Optional);
    let asked = world.complete(&mut optional, Some(LIKELY - 1), limits).await;
    let unanswered = asked.err().unwrap();
    let NotAnswered::OverSoftLimit(over) = unanswered.error else { panic!("{unanswered:?}") };
    assert_eq!((over.most.units(), over.limit.units()), (LIKELY, LIKELY - 1));
    let poor = SpendingLimits { credits: Some(Microcents::new(MOST - 1)), ..limits };
    let unanswered = world.complete(&mut optional, None, poor).await.err().unwrap();
    assert!(matches!(unanswered.error, NotAnswered::OverSoftLimit(_)), "{unanswered:?}");
    assert_eq!(world.books().await, (0, 0, 0));
    assert!(model.names().is_empty());
    let mut needed = world.question(Urgency::Needed);
    assert!(world.complete(&mut needed, Some(LIKELY - 1), poor).await.is_ok());
    assert_eq!(needed.notes, [format!("over {}", LIKELY - 1), "start".to_owned()]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_request_waits_a_moment_for_a_paid_answer() {
    let replies = [Reply::Hangs];
    let model = ScriptedModel::new("first", PER_TOKEN, &replies);
    let world = World::new(&[&model]).await;
    let limits = SpendingLimits::default();
    let mut question = Question { is_interrupted: true, ..world.question(Urgency::Needed) };
    let unanswered = world.complete(&mut question, None, limits).await.err().unwrap();
    assert!(matches!(unanswered.error, NotAnswered::Interrupted));
    let asked = unanswered.asked.unwrap();
    assert!(asked.reservation.is_some() && matches!(asked.end, AnswerEnd::Unheard));
    drop(asked);
    assert_eq!(world.books().await, (MOST, 0, 1), "it may have been charged");
}

#[tokio::test]
async fn without_a_model_nothing_is_asked() {
    let model = ScriptedModel::new("first", PER_TOKEN, &[]);
    let world = World::new(&[&model]).await;
    let World { store, providers, ids, cloud, .. } = &world;
    let models = MeteredModels { store, providers, ids, cloud: *cloud };
    let limits = RouteLimits { max_tokens: None, per_call: None, silence: Duration::from_secs(1) };
    let route = Route { models: Vec::new(), skipped: Vec::new(), limits };
    let mut question = world.question(Urgency::Needed);
    let asked = models.complete(&route, SpendingLimits::default(), &mut question).await;
    assert!(matches!(asked.err().unwrap().error, NotAnswered::NoModel));
    assert_eq!(world.books().await, (0, 0, 0));
}
