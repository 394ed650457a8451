//! `kill -9` at any moment, again and again, of any process, under load: messages come
//! in, each is answered by a command and a message, thinking is paid for and credits
//! are bought, the heart beats every second. Afterwards the record is as if nothing had
//! happened but delays.
//!
//! A seed draws who dies when. `AUTOMATON_STORM_SEED` tells the same storm again, as far
//! as a machine's own moods allow.

mod oracle;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use automaton_core::entropy::{Entropy, SystemEntropy};
use automaton_core::event::{Event, Service, StampedEvent};
use automaton_core::record::{CallRecord, CallStatus, TurnRecord, TurnStatus};
use automaton_core::state::AgentState;
use automaton_store::Reader;
use automaton_testkit::entropy::SeededEntropy;
use automaton_testkit::world::{ProcessRun, World};

use super::paying_world;

/// Long enough for key derivations on a loaded machine.
const LIMIT: Duration = Duration::from_secs(180);
/// How long it rests where its model gave nothing but errors, as when its cloud died too often.
const RESTS: Duration = Duration::from_secs(300);
/// What no way back may take, however loaded the machine is.
const BACK_MAX: Duration = Duration::from_secs(10);
/// Crashes of one kind after which all die: a supervisor gives up at the fifth in a
/// minute.
const OF_ONE_MAX: usize = 2;
/// The longest time from being back to the next death, in milliseconds.
const CALM_MAX_MS: u32 = 500;
/// What an answer costs, in cents: so little that nobody is down to the last credits within a
/// minute of a purchase, where no command is run and none is bought again yet.
const CENTS_AN_ANSWER: u64 = 3;
/// The least time between two messages.
const PAUSE: Duration = Duration::from_millis(150);
/// Messages of a storm, however long it takes: each is answered by one, and an automaton sends no
/// more than 60 in an hour.
const MESSAGES_MAX: u32 = 50;

/// Tasks that run each second, and each other one.
const HEARTBEAT: &str = "defaultIntervalMs: 1000\nentries:\n\
    - {name: heartbeat_ping, intervalMs: 1000}\n- {name: check_credits, intervalMs: 1000}\n\
    - {name: check_usdc_balance, intervalMs: 1000}\n\
    - {name: check_social_inbox, intervalMs: 1000}\n\
    - {name: reconcile_payments, intervalMs: 1000}\n\
    - {name: health_check, intervalMs: 2000}\n- {name: refresh_models, intervalMs: 2000}\n\
    - {name: state_maintenance, intervalMs: 2000}\n";
const CONFIG: &str = r#"{"name": "Ada", "genesisPrompt": "Answer.", "maxTokensPerTurn": 256,
    "wakeEnvelope": {"answers": 0, "cents": 0},
    "treasuryPolicy": {"maxInferenceDailyCents": 100000}}"#;

/// Who dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Agent,
    Signer,
    Cloud,
    Chain,
    /// The one that starts the others, who end by themselves then.
    Supervisor,
    /// It and all the others at once.
    All,
}

const VICTIMS: [Victim; 6] =
    [Victim::Agent, Victim::Signer, Victim::Cloud, Victim::Chain, Victim::Supervisor, Victim::All];

impl Victim {
    const fn name(self) -> &'static str {
        match self {
            Self::Agent => "automaton-agent",
            Self::Signer => "automaton-signer",
            Self::Cloud => "automaton-cloud",
            Self::Chain => "automaton-chain",
            Self::Supervisor => "automaton",
            Self::All => "all five",
        }
    }

    /// Whether an event says that it is back.
    fn is_back(self, event: &Event) -> bool {
        let serves =
            |wanted| matches!(event, Event::ServiceReady { service, .. } if *service == wanted);
        match self {
            Self::Cloud => serves(Service::Cloud),
            Self::Chain => serves(Service::Chain),
            Self::Agent | Self::Signer | Self::Supervisor | Self::All => {
                matches!(event, Event::BrainReady { .. })
            }
        }
    }
}

/// A storm that goes on.
struct Storm<'a> {
    world: &'a World,
    run: ProcessRun,
    /// How long each way back took, in milliseconds.
    back: BTreeMap<Victim, Vec<u128>>,
    events: Vec<StampedEvent>,
}

#[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
fn watch() -> Instant {
    Instant::now()
}

impl Storm<'_> {
    /// How often this supervisor has started somebody again, the agent and its signer
    /// together: one that begins while its cloud is gone dies of that, too.
    fn deaths(&self, of: Victim) -> usize {
        let counts = |stamped: &&StampedEvent| match (&stamped.event, of) {
            (Event::AgentRestarted { .. }, Victim::Agent | Victim::Signer) => true,
            (Event::ServiceRestarted { service, .. }, _) => matches!(
                (service, of),
                (Service::Signer, Victim::Agent | Victim::Signer)
                    | (Service::Cloud, Victim::Cloud)
                    | (Service::Chain, Victim::Chain)
            ),
            _ => false,
        };
        self.run.events().iter().filter(counts).count()
    }

    /// Kills somebody, and waits until they are back.
    fn strike(&mut self, drawn: Victim) {
        let victim = if self.deaths(drawn) >= OF_ONE_MAX { Victim::All } else { drawn };
        // What came before does not count: it is there, and is to go.
        while self.run.wait_for(|_| true, Duration::ZERO).is_ok() {}
        let watch = watch();
        if [Victim::Supervisor, Victim::All].contains(&victim) {
            self.begin_anew(victim);
        } else if self.run.kill_child(victim.name()).is_err() {
            // It was gone already, and comes back by itself.
            return;
        }
        let back = self.run.wait_for(|event| victim.is_back(event), LIMIT);
        back.unwrap_or_else(|error| panic!("{victim:?}: {error}"));
        let took = watch.elapsed();
        assert!(took < BACK_MAX, "{victim:?} was back after {took:?}");
        self.back.entry(victim).or_default().push(took.as_millis());
    }

    /// Kills the supervisor, or everybody, and starts anew.
    fn begin_anew(&mut self, victim: Victim) {
        match victim {
            Victim::All => self.run.kill_all().unwrap(),
            _ => self.run.kill().unwrap(),
        }
        self.events.extend(self.run.events());
        self.run = self.world.up(&[]).unwrap();
    }
}

/// Sends as many messages as are due, until it is told to stop; how many were sent.
fn send(world: &World, stop: &AtomicBool, due: &AtomicU32, sent: &Mutex<u32>) {
    let mut number = 0;
    while !stop.load(Ordering::SeqCst) {
        if number >= due.load(Ordering::SeqCst) {
            thread::sleep(PAUSE);
            continue;
        }
        let text = format!("{} What do you say?", oracle::mark(number));
        let said = world.command(&["send", &text]).unwrap();
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        number += 1;
        *sent.lock().unwrap() = number;
        thread::sleep(PAUSE);
    }
}

/// The seed that is asked for, or one that is drawn.
#[expect(clippy::disallowed_methods, reason = "whoever starts the test may say which storm")]
fn seed() -> u64 {
    let asked = std::env::var("AUTOMATON_STORM_SEED").ok();
    asked.map_or_else(|| u64::from(SystemEntropy.below(u32::MAX)), |text| text.parse().unwrap())
}

/// A storm of so many deaths; what it was, in words.
fn storm(seed: u64, rounds: u32) -> String {
    let (mut told, began) = (String::new(), watch());
    let model = oracle::serve();
    let world = paying_world().brain(&model);
    world.write_home("automaton.json", CONFIG).unwrap();
    world.write_home("heartbeat.yml", HEARTBEAT).unwrap();
    let price = CENTS_AN_ANSWER * 1_000_000_000_000 / oracle::ANSWER_TOKENS;
    let prices = format!(
        r#"{{"input_microcents_per_million": 1000000, "cached_microcents_per_million": 1000000,
            "output_microcents_per_million": {price}}}"#
    );
    fs::create_dir(world.dir().join("home-dev")).unwrap();
    fs::write(world.dir().join("home-dev/prices.json"), prices).unwrap();
    let mut run = world.up(&[]).unwrap();
    run.wait_for(|event| matches!(event, Event::TopupSettled { .. }), LIMIT).unwrap();
    let mut storm = Storm { world: &world, run, back: BTreeMap::new(), events: vec![] };
    let (stop, sent) = (AtomicBool::new(false), Mutex::new(0));
    let due = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| send(&world, &stop, &due, &sent));
        let dice = SeededEntropy::new(seed);
        let stormed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 1..=rounds {
                due.store((MESSAGES_MAX * round).div_ceil(rounds), Ordering::SeqCst);
                let calm = dice.below(CALM_MAX_MS);
                thread::sleep(Duration::from_millis(calm.into()));
                let nth = usize::try_from(dice.below(6)).unwrap();
                storm.strike(VICTIMS[nth]);
            }
        }));
        stop.store(true, Ordering::SeqCst);
        stormed.unwrap_or_else(|broken| std::panic::resume_unwind(broken));
    });
    let sent = sent.into_inner().unwrap();
    settle(&world, &storm.run, sent);
    let Storm { run, back, mut events, .. } = storm;
    assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    events.extend(finished.events.iter().cloned());
    for (victim, mut took) in back {
        took.sort_unstable();
        let at = |share: usize| took[(took.len() - 1) * share / 100];
        let (least, half, most) = (at(0), at(50), at(100));
        let deaths = took.len();
        writeln!(
            told,
            "{:>16}: {deaths:>3} deaths, back after {least}/{half}/{most} ms",
            victim.name()
        )
        .unwrap();
    }
    told += &check(&world, sent, &finished.events);
    let seconds = began.elapsed().as_secs_f32();
    writeln!(told, "{sent} messages, {} events, {seconds:.1} s", events.len()).unwrap();
    told
}

/// Waits until every message is answered and every task has run since.
fn settle(world: &World, run: &ProcessRun, sent: u32) {
    let watch = watch();
    let reader = Reader::open(&world.state_db()).unwrap();
    let started = reader.schedule().unwrap();
    loop {
        let counts = reader.inbox_counts().unwrap();
        let rows = reader.schedule().unwrap();
        let ran = rows
            .iter()
            .zip(&started)
            .filter(|(now, then)| then.task.enabled && now.runs > then.runs + 1);
        let waits: Vec<_> = rows.iter().filter(|row| row.leased.is_some()).collect();
        let short =
            rows.iter().filter(|row| row.task.schedule.to_string().contains("every")).count();
        let open = counts.received + counts.in_progress;
        // What it has read it may still be at.
        let rests = reader.life().unwrap().state == AgentState::Sleeping;
        if rests
            && open == 0
            && counts.processed + counts.failed >= u64::from(sent)
            && ran.count() >= short
        {
            return;
        }
        if watch.elapsed() > LIMIT + RESTS {
            let mut last = String::new();
            let is_run = |stamped: &&StampedEvent| {
                !matches!(stamped.event, Event::HeartbeatRan { .. } | Event::MessageReceived { .. })
            };
            for stamped in run.events().iter().rev().filter(is_run).take(20) {
                writeln!(last, "{} {:?}", stamped.at, stamped.event).unwrap();
            }
            panic!("{counts:?}, {waits:?}\n{last}");
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// What has to be true of a record, whatever happened; in words, what is in it.
fn check(world: &World, sent: u32, last: &[StampedEvent]) -> String {
    let reader = Reader::open(&world.state_db()).unwrap();
    let counts = reader.inbox_counts().unwrap();
    assert_eq!((counts.received, counts.in_progress, counts.failed), (0, 0, 0), "{counts:?}");
    assert_eq!(counts.processed, u64::from(sent), "a message is lost or there twice");
    let turns = reader.turns(100_000).unwrap();
    let ended = [TurnStatus::Committed, TurnStatus::Abandoned];
    let half: Vec<_> = turns.iter().filter(|turn| !ended.contains(&turn.status)).collect();
    assert!(half.is_empty(), "half recorded: {half:?}");
    let committed: Vec<&TurnRecord> =
        turns.iter().filter(|turn| turn.status == TurnStatus::Committed).collect();
    let outbox = reader.outbox_since(0, 100_000).unwrap();
    let ran = fs::read_to_string(world.home().join("workspace/ran")).unwrap_or_default();
    let mut unknown = 0;
    for number in 0..sent {
        let mark = oracle::mark(number);
        let read = committed
            .iter()
            .filter(|turn| turn.inputs.iter().any(|it| it.said.text.contains(&mark)));
        assert_eq!(read.count(), 1, "{mark} was read by so many turns");
        let did = |tool: &str, effects: usize| {
            let calls = committed.iter().flat_map(|turn| &turn.calls);
            let calls = calls.filter(|call| call.tool == tool && call.arguments.contains(&mark));
            let calls: Vec<_> = calls.collect();
            let of = |wanted| calls.iter().filter(|call| call.status == wanted).count();
            // A process that is asked to end stops its command, and says so.
            let stopped = |call: &&&CallRecord| {
                let result = call.result.as_ref();
                result.is_some_and(|result| result.text.contains("stopped by its owner"))
            };
            let stopped = calls.iter().filter(stopped).count();
            let (done, lost) = (of(CallStatus::Done) - stopped, of(CallStatus::Unknown) + stopped);
            assert!(
                done + lost == 1 && done <= effects && effects <= done + lost,
                "{mark}: {effects} effects of {calls:?}"
            );
            lost
        };
        unknown += did("exec", ran.lines().filter(|line| line.contains(&mark)).count());
        unknown +=
            did("send_message", outbox.iter().filter(|it| it.body.text.starts_with(&mark)).count());
    }
    assert!(reader.verify_chain().unwrap().is_whole(), "the chain of the record is broken");
    let books = last.iter().rev().find_map(|stamped| match &stamped.event {
        Event::BooksChecked { books, agree } => Some((*books, *agree)),
        _ => None,
    });
    let (books, agree) = books.unwrap();
    assert!(agree && books.agree(), "{books:?}");
    format!(
        "{} turns, {} given up, {unknown} calls of unknown outcome; {} answers, {} unsettled, paid {}, \
         signed and moved the same\n",
        committed.len(),
        turns.len() - committed.len(),
        books.answers,
        books.unsettled,
        books.paid,
    )
}

#[test]
fn twenty_deaths_lose_nothing_and_do_nothing_twice() {
    let seed = seed();
    // A failure tells which storm it was.
    println!("AUTOMATON_STORM_SEED={seed}");
    println!("{}", storm(seed, 20));
}

#[test]
#[ignore = "takes minutes: ./test --slow"]
fn two_hundred_deaths_lose_nothing_and_do_nothing_twice() {
    let seed = seed();
    // A failure tells which storm it was.
    println!("AUTOMATON_STORM_SEED={seed}");
    println!("{}", storm(seed, 200));
}
