//! What an alert does to a life: it is told, it wakes once, and never one that is broke.

use std::sync::Arc;

use automaton_core::alert::AlertRule;
use automaton_core::event::Event;
use automaton_core::faults::NoFaults;
use automaton_core::id::SessionId;
use automaton_core::money::Microcents;
use automaton_core::time::Span;

use crate::life::Home;
use crate::survival::{Life, say};
use crate::town::{DOLLAR, Town};

const RESERVE: Microcents = Microcents::new(10 * DOLLAR);

fn raised(events: &[Event]) -> Vec<(AlertRule, u32)> {
    let alert = |event: &Event| match event {
        Event::AlertRaised { rule, times, .. } => Some((*rule, *times)),
        _ => None,
    };
    events.iter().filter_map(alert).collect()
}

fn is_alert(event: &Event) -> bool {
    matches!(event, Event::AlertRaised { .. })
}

fn is_thought(event: &Event) -> bool {
    matches!(event, Event::TurnCommitted { .. })
}

/// Lives until `wanted` happens, three quarters of an hour after the last time: one that
/// is poor looks at what it measures every forty minutes.
async fn later(home: &Home, town: &Town, wanted: impl Fn(&Event) -> bool) -> (Vec<Event>, String) {
    town.clock.step(Span::from_secs(2700));
    let (life, store) = Life::begin_with(home, town, RESERVE).await;
    life.until("what is waited for", wanted).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    // A wake that is cut short is told of again in the next life.
    let awake = || {
        let (mut begun, mut over) = (0, 0);
        for event in life.events.all() {
            begun += u32::from(matches!(event, Event::WakeStarted { .. }));
            over += u32::from(matches!(event, Event::WakeEnded { .. }));
        }
        begun > over
    };
    for _ in 0..500 {
        if !awake() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let asked = life.brain.asked().join("\n");
    let events = life.end().await;
    store.close().await.unwrap();
    (events, asked)
}

#[tokio::test]
async fn a_reserve_that_is_gone_is_told_each_time_and_wakes_once() {
    let home = Home::new();
    let town = Town::new(3, 3 * DOLLAR);
    let (mut all, mut asked) = later(&home, &town, is_thought).await;
    for _ in 0..3 {
        let (events, more) = later(&home, &town, is_alert).await;
        all.extend(events);
        asked.push_str(&more);
    }
    let alerts = raised(&all);
    // A slow machine may owe a thought for an hour of this clock, which is told as well.
    let of_money = alerts.iter().filter(|(rule, _)| *rule == AlertRule::BalanceBelowReserve);
    let times: Vec<u32> = of_money.map(|(_, times)| *times).collect();
    let counted: Vec<u32> = (1..).take(times.len()).collect();
    assert!(times.len() >= 3 && times == counted, "{alerts:?}");
    let told = "Something is wrong: $3.00 of credits and 3.00 USDC are $6.00, below the reserve";
    // A wake that was stopped before its first turn leaves its cause to the next one.
    let has_turn = |wake: &SessionId| {
        all.iter()
            .any(|event| matches!(event, Event::TurnStarted { session, .. } if session == wake))
    };
    let woken = |event: &Event| match event {
        Event::WakeStarted { session, causes } if has_turn(session) => {
            causes.iter().filter(|cause| cause.reason.text.starts_with(told)).count()
        }
        _ => 0,
    };
    // One that is awake just then is told so in its next turn.
    assert!(all.iter().map(woken).sum::<usize>() <= 1, "{all:?}");
    assert!(asked.contains(told), "{asked}");

    town.counts().usdc = 8_000_000;
    let store = home.store_by(town.ids(), Arc::new(NoFaults)).await;
    say(&store, "Is there money?").await;
    store.close().await.unwrap();
    later(&home, &town, is_thought).await;
    let is_over = |event: &Event| matches!(event, Event::AlertCleared { .. });
    if home.reader().alerts(1).unwrap()[0].is_active() {
        later(&home, &town, is_over).await;
    }
    let alerts = home.reader().alerts(10).unwrap();
    assert!(alerts.iter().all(|alert| !alert.is_active()), "{alerts:?}");
}

#[tokio::test]
async fn who_is_broke_is_told_of_and_asks_no_model() {
    let home = Home::new();
    let town = Town::new(0, DOLLAR / 100);
    let broke = |event: &Event| matches!(event, Event::BrokeStarted { .. });
    let (mut all, before) = later(&home, &town, broke).await;
    let (events, after) = later(&home, &town, is_alert).await;
    all.extend(events);
    assert_eq!(raised(&all)[0], (AlertRule::BalanceBelowReserve, 1));
    assert_eq!((before.as_str(), after.as_str()), ("", ""));
    let wakes = home.reader().pending_wakes().unwrap();
    assert!(wakes.iter().all(|(_, cause)| !cause.reason.text.contains("wrong")), "{wakes:?}");
}
