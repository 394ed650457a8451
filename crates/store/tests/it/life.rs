//! Birth, states, sessions, wake events.

use automaton_core::id::SessionId;
use automaton_core::message::CLAIMED_PER_TURN_MAX;
use automaton_core::money::Microcents;
use automaton_core::record::{SleepState, StopReason, WakeSource};
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::Timestamp;
use automaton_core::trust::{Label, Labelled};
use automaton_core::vitals::{BalanceReading, DistressLevel};
use automaton_store::{DigestRow, HistoryPosition, StoreError};

use crate::{World, is_unfit, manual, newborn, said};

#[tokio::test]
async fn one_is_born_once() {
    let world = World::unborn();
    assert!(matches!(world.store.life().await, Err(StoreError::Unborn)));
    assert!(matches!(world.reader().life(), Err(StoreError::Unborn)));
    let id = world.store.birth(newborn()).await.unwrap();
    let again = automaton_store::NewAutomaton { name: "Eve".to_owned(), ..newborn() };
    assert_eq!(world.store.birth(again).await.unwrap(), id);
    let life = world.store.life().await.unwrap();
    assert_eq!((life.automaton, life.name.as_str(), life.turns), (id, "Ada", 0));
    assert_eq!((life.state, life.sleep), (AgentState::Setup, None));
    assert_eq!(life, world.reader().life().unwrap());
}

#[tokio::test]
async fn the_state_is_compared_and_set() {
    let world = World::born().await;
    let change = |from, to| world.store.transition(from, to, "test");
    assert!(matches!(
        change(AgentState::Setup, AgentState::Dead).await,
        Err(StoreError::IllegalTransition { .. })
    ));
    change(AgentState::Setup, AgentState::Waking).await.unwrap();
    assert!(matches!(
        change(AgentState::Setup, AgentState::Waking).await,
        Err(StoreError::LostRace { found: AgentState::Waking, .. })
    ));
    let (a, b) = tokio::join!(
        change(AgentState::Waking, AgentState::Running),
        change(AgentState::Waking, AgentState::Critical)
    );
    assert!(a.is_ok() != b.is_ok(), "one of two racers wins");
    let count = "SELECT count(*) FROM state_changes";
    assert_eq!(world.raw().query_row(count, [], |row| row.get(0)), Ok(2));
}

#[tokio::test]
async fn a_session_consumes_its_events_and_ends_the_sleep() {
    let world = World::born().await;
    let sleep = SleepState {
        since: Timestamp::from_millis(5),
        until: Some(Timestamp::from_millis(9)),
        reason: StopReason::Idle,
    };
    let first = world.session().await;
    world.answer(first).await;
    let note = Some("three turns changed nothing".to_owned());
    world.store.close_session(first, StopReason::Idle, Some(sleep), note.clone()).await.unwrap();
    let life = world.store.life().await.unwrap();
    assert_eq!((life.state, life.sleep), (AgentState::Sleeping, Some(sleep)));

    world.store.push_wake(manual("one")).await.unwrap();
    world.store.push_wake(manual("one")).await.unwrap();
    world.store.push_wake(manual("two")).await.unwrap();
    let pending = world.store.pending_wakes().await.unwrap();
    assert_eq!(pending.len(), 2, "events that say the same are one");
    let second = world.store.open_session(vec![pending[0].1.clone()]).await.unwrap();
    assert_eq!(world.store.pending_wakes().await.unwrap(), pending[1..], "two still waits");
    let life = world.store.life().await.unwrap();
    assert_eq!((life.state, life.sleep), (AgentState::Waking, None));

    let closed = world.store.last_session().await.unwrap().unwrap();
    assert_eq!((closed.id, closed.reason, closed.note), (first, StopReason::Idle, note));
    assert_eq!(causes_on_record(&world, second), ["one"]);
    assert_eq!(causes_on_record(&world, first), ["go"], "one that was not pushed is there too");

    world.store.close_session(second, StopReason::Errors, Some(sleep), None).await.unwrap();
    let causes = world.store.pending_wakes().await.unwrap().into_iter().map(|(_, cause)| cause);
    let causes: Vec<_> = causes.collect();
    assert_eq!(causes, [manual("two"), manual("one")], "no turn was told of what woke it");
    assert_eq!(causes_on_record(&world, second), ["one"], "still on record");
}

#[tokio::test]
async fn what_is_said_again_is_news_to_a_sleep_whatever_the_clock_shows() {
    let world = World::born().await;
    let peer = |text: &str| Labelled::new(Label::Peer, "0xabc", text);
    let session = world.session().await;
    world.store.receive(said("while it worked"), None).await.unwrap();
    world.store.receive(peer("while it worked"), None).await.unwrap();
    let until = Some(Timestamp::from_millis(9));
    let sleep = SleepState { since: Timestamp::from_millis(5), until, reason: StopReason::Errors };
    world.store.close_session(session, StopReason::Errors, Some(sleep), None).await.unwrap();
    assert!(!world.store.has_news().await.unwrap(), "it waited before");
    world.store.receive(peer("again"), None).await.unwrap();
    assert!(!world.store.has_news().await.unwrap(), "others cut no rest short by repetition");
    world.clock.0.store(1, std::sync::atomic::Ordering::SeqCst);
    world.store.receive(said("again"), None).await.unwrap();
    assert!(world.store.has_news().await.unwrap(), "the creator says it again");
    let pending = world.store.pending_wakes().await.unwrap();
    assert_eq!(pending.len(), 3, "each is one event all the same: {pending:?}");
}

#[tokio::test]
async fn an_interruption_drops_what_a_turn_has_read_and_keeps_the_rest() {
    let world = World::born().await;
    let store = &world.store;
    store.push_wake(manual("do it")).await.unwrap();
    let causes = vec![manual("do it")];
    let session = store.open_session(causes).await.unwrap();
    let read = store.receive(said("the long job"), None).await.unwrap();
    let turn = store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap().id;
    let unread = store.receive(said("typed meanwhile"), None).await.unwrap();
    store.abandon_turn(turn, automaton_store::FailureCause::Turn).await.unwrap();
    let dropped = store.drop_read_messages().await.unwrap();
    assert_eq!(dropped, [(read, "the long job".to_owned())]);
    assert!(store.drop_read_messages().await.unwrap().is_empty());
    let open: Vec<_> = store.open_messages().await.unwrap().iter().map(|it| it.id).collect();
    assert_eq!((open, store.messages_unread().await.unwrap()), (vec![unread], 1));
    let sleep =
        SleepState { since: Timestamp::EPOCH, until: None, reason: StopReason::Interrupted };
    store.close_session(session, StopReason::Interrupted, Some(sleep), None).await.unwrap();
    let pending = store.pending_wakes().await.unwrap();
    assert!(pending.iter().all(|(_, cause)| cause.source == WakeSource::Inbox), "{pending:?}");
}

/// Why a wake cycle began, from its rows.
fn causes_on_record(world: &World, session: SessionId) -> Vec<String> {
    let raw = world.raw();
    let statement = "SELECT w.reason FROM sessions AS s JOIN wake_events AS w ON w.session = s.seq \
                     WHERE s.id = ?1 ORDER BY w.seq";
    let mut statement = raw.prepare(statement).unwrap();
    let rows = statement.query_map([session.to_string()], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[tokio::test]
async fn sessions_do_not_overlap_and_close_once() {
    let world = World::born().await;
    let session = world.session().await;
    let overlap = world.store.open_session(Vec::new()).await.unwrap_err();
    assert_eq!(overlap.to_string(), format!("the wake cycle {session} is still open"));
    let turn = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap().id;
    let close = |reason| world.store.close_session(session, reason, None, None);
    let early = close(StopReason::Shutdown).await.unwrap_err();
    assert_eq!(early.to_string(), format!("the turn {turn} is not finished"));
    world.store.abandon_turn(turn, automaton_store::FailureCause::Turn).await.unwrap();
    close(StopReason::Shutdown).await.unwrap();
    close(StopReason::Shutdown).await.unwrap();
    assert!(is_unfit(&close(StopReason::Asked).await, "was already done differently"));
    let opened = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await;
    assert!(is_unfit(&opened, "has ended"));
    let life = world.store.life().await.unwrap();
    assert_eq!(life.state, AgentState::Waking, "without a sleep the state stays");
}

#[tokio::test]
async fn the_dead_are_not_woken_by_a_message() {
    let world = World::born().await;
    world.store.transition(AgentState::Setup, AgentState::Waking, "").await.unwrap();
    world.store.transition(AgentState::Waking, AgentState::Dead, "no credits").await.unwrap();
    world.store.receive(said("hello"), None).await.unwrap();
    let causes = vec![world.store.pending_wakes().await.unwrap()[0].1.clone()];
    assert_eq!(causes[0].source, WakeSource::Inbox);
    assert!(matches!(
        world.store.open_session(causes.clone()).await,
        Err(StoreError::IllegalTransition { from: AgentState::Dead, .. })
    ));
    assert_eq!(world.store.pending_wakes().await.unwrap().len(), 1, "nothing was consumed");
    world.store.transition(AgentState::Dead, AgentState::Waking, "funded").await.unwrap();
    world.store.open_session(causes).await.unwrap();
}

#[tokio::test]
async fn the_history_only_moves_forwards() {
    let world = World::born().await;
    let place =
        |from, whole_from| HistoryPosition { from, whole_from, arguments_from: 1, told: false };
    assert_eq!(world.store.place().await.unwrap(), place(1, 1));
    let sum = |upto| {
        let body = format!("{{\"upto\":{upto}}}");
        Some(DigestRow { upto, label: Label::Web, body, summaries: Vec::new() })
    };
    let lean = HistoryPosition { arguments_from: 20, told: true, ..place(8, 9) };
    world.store.move_history(lean, sum(8)).await.unwrap();
    assert_eq!(world.store.place().await.unwrap(), lean);
    world.store.move_history(place(3, 12), None).await.unwrap();
    let moved = HistoryPosition { arguments_from: 20, ..place(8, 12) };
    assert_eq!(world.store.place().await.unwrap(), moved);
    assert_eq!(world.reader().place().unwrap(), moved);
    for upto in 10..60 {
        world.store.move_history(place(upto, upto), sum(upto)).await.unwrap();
    }
    assert_eq!(world.store.digest().await.unwrap(), sum(59));
    assert_eq!(world.reader().digest(Some(50)).unwrap(), sum(50));
    assert_eq!(world.reader().digest(Some(8)).unwrap(), None, "only the newest are kept");
}

#[tokio::test]
async fn only_the_creator_begins_a_stretch_anew() {
    let world = World::born().await;
    let session = world.session().await;
    let turn = world.answer(session).await;
    world.store.settle_cost(None, turn, &crate::usage()).await.unwrap();
    let unattended = world.store.unattended_usage().await.unwrap();
    assert_eq!((unattended.answers, unattended.rests), (1, 0));
    assert!(unattended.cost > Microcents::ZERO);
    let rest = SleepState { since: Timestamp::EPOCH, until: None, reason: StopReason::Envelope };
    for rests in 1..3 {
        let session = if rests == 1 { session } else { world.session().await };
        world.store.close_session(session, StopReason::Envelope, Some(rest), None).await.unwrap();
        let unattended = world.store.unattended_usage().await.unwrap();
        assert_eq!(
            (unattended.answers, unattended.rests),
            (0, rests),
            "it begins anew after a rest"
        );
        assert_eq!(world.store.in_a_row(StopReason::Envelope).await.unwrap(), rests);
        assert_eq!(world.store.in_a_row(StopReason::Errors).await.unwrap(), 0);
    }
    let peer = Labelled::new(Label::Peer, "0xabc", "go on");
    world.store.receive(peer, None).await.unwrap();
    assert_eq!(world.store.unattended_usage().await.unwrap().rests, 2, "a peer calls in vain");
    world.store.receive(said("go on"), None).await.unwrap();
    assert_eq!(world.store.unattended_usage().await.unwrap().rests, 0);
}

#[tokio::test]
async fn a_wake_is_the_creators_until_it_ends_by_itself() {
    let world = World::born().await;
    let store = &world.store;
    let own = |text: &str| {
        let reason = Labelled::new(Label::Own, "timer", text);
        automaton_core::record::WakeCause { source: WakeSource::Timer, reason }
    };
    assert!(!store.is_creators_wake().await.unwrap(), "there was none");
    store.receive(said("Work."), None).await.unwrap();
    let causes: Vec<_> = store.pending_wakes().await.unwrap();
    let mut session = store.open_session(vec![causes[0].1.clone()]).await.unwrap();
    // It goes on after what was nobody's wish.
    for reason in [StopReason::Shutdown, StopReason::Errors, StopReason::Asked] {
        assert!(store.is_creators_wake().await.unwrap());
        store.close_session(session, reason, None, None).await.unwrap();
        session = store.open_session(vec![own(reason.name())]).await.unwrap();
    }
    assert!(!store.is_creators_wake().await.unwrap(), "the next one is its own");
    // What the creator says meanwhile makes it the creator's.
    store.receive(said("More."), None).await.unwrap();
    world.answer(session).await;
    assert!(store.is_creators_wake().await.unwrap());
}

#[tokio::test]
async fn living_cheaply_lasts_until_the_creator_wakes_it_and_pleas_of_its_own_have_a_clock() {
    let world = World::born().await;
    let store = &world.store;
    let credits = Some(Microcents::from_cents(300).unwrap());
    store
        .take_reading(BalanceReading {
            at: world.ids.now(),
            credits,
            usdc: None,
            least: Microcents::from_cents(10).unwrap(),
        })
        .await
        .unwrap();
    let chosen = store.enter_low_compute().await.unwrap();
    assert_eq!(chosen.effective_tier(), Some(SurvivalTier::LowCompute));
    assert_eq!(world.reader().vitals().unwrap(), chosen, "it is on record");
    store.receive(said("Hello."), None).await.unwrap();
    assert_eq!(store.vitals().await.unwrap(), chosen, "a message changes nothing");
    store.push_wake(manual("think")).await.unwrap();
    assert_eq!(store.vitals().await.unwrap().effective_tier(), Some(SurvivalTier::Normal));

    let first = world.ids.now();
    assert_eq!(store.record_own_distress(DistressLevel::Low).await.unwrap(), None);
    world.advance(DistressLevel::Low.every().as_millis() - 1);
    let next = Some(first.after(DistressLevel::Low.every()));
    assert_eq!(store.record_own_distress(DistressLevel::Low).await.unwrap(), next);
    assert_eq!(
        store.record_own_distress(DistressLevel::Critical).await.unwrap(),
        None,
        "that is more urgent"
    );
    assert!(
        store.record_distress(DistressLevel::Low).await.unwrap(),
        "the runtime's own count for themselves"
    );
}
