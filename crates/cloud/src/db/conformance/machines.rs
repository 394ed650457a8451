//! Machines: that each is made once and charged once, commands by name, ports.

use automaton_core::id::MachineId;

use super::*;
use crate::db::machines::{
    ChargeOutcome, CreateOutcome, ExecutionOutcome, Machine, MachineQuota, NewExecution, NewMachine,
};
use crate::machines::lifecycle::{MachineEvent, MachineState};
use crate::machines::tier::TIERS;

/// The cost of the first minute of the smallest machine.
const MINUTE: i64 = 11_575;

const LIMITS: MachineQuota =
    MachineQuota { per_owner: 2, in_all: 3, disk_gib: None, has_room: true };

fn new(ids: &IdGenerator, owner: u8) -> NewMachine {
    NewMachine {
        id: ids.id(),
        owner: wallet(owner),
        name: "m".to_owned(),
        tier: TIERS[0],
        request_name: None,
        request: Hash::of(b"m"),
        limits: LIMITS,
    }
}

fn created(outcome: CreateOutcome) -> Machine {
    match outcome {
        CreateOutcome::Created(machine) => machine,
        other => panic!("{other:?}"),
    }
}

async fn step(db: &Db, id: MachineId, events: &[MachineEvent]) -> Machine {
    let mut last = None;
    for event in events {
        last = db.step_machine(id, *event, None).await.unwrap();
        assert!(last.is_some(), "{event:?}");
    }
    last.unwrap()
}

pub(super) async fn lives(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let ids = ids(&clock);
    let poor = db.create_machine(new(&ids, 1)).await.unwrap();
    let required = Microcents::new(16_666_667);
    let available = Microcents::ZERO;
    assert_eq!(poor, CreateOutcome::Insufficient { required, available });
    fund(&db).await;
    let named = |request: &[u8]| NewMachine {
        request_name: Some("n".to_owned()),
        request: Hash::of(request),
        ..new(&ids, 1)
    };
    let first = created(db.create_machine(named(b"a")).await.unwrap());
    assert_eq!(
        (first.state, first.since, first.was_healthy),
        (MachineState::Requested, START, false)
    );
    let again = db.create_machine(named(b"a")).await.unwrap();
    assert_eq!(again, CreateOutcome::Again(first.clone()), "once under one name");
    assert_eq!(db.create_machine(named(b"b")).await.unwrap(), CreateOutcome::OtherName);
    let second = created(db.create_machine(new(&ids, 1)).await.unwrap());
    assert_eq!(db.create_machine(new(&ids, 1)).await.unwrap(), CreateOutcome::TooMany);
    let full =
        NewMachine { limits: MachineQuota { per_owner: 9, in_all: 2, ..LIMITS }, ..new(&ids, 1) };
    assert_eq!(db.create_machine(full).await.unwrap(), CreateOutcome::Full);
    let promised = |disk_gib| MachineQuota { per_owner: 9, disk_gib: Some(disk_gib), ..LIMITS };
    let all = NewMachine { limits: promised(14), ..new(&ids, 1) };
    assert_eq!(db.create_machine(all).await.unwrap(), CreateOutcome::Full, "three of 5 GiB");
    let cramped = MachineQuota { has_room: false, ..promised(15) };
    let cramped = NewMachine { limits: cramped, ..new(&ids, 1) };
    assert_eq!(db.create_machine(cramped).await.unwrap(), CreateOutcome::NoRoom);
    let own = db.machines(Some(wallet(1))).await.unwrap();
    assert_eq!(own.iter().map(|it| it.id).collect::<BTreeSet<_>>(), [first.id, second.id].into());
    assert_eq!(db.machines(Some(wallet(2))).await.unwrap(), []);

    assert_eq!(
        db.step_machine(first.id, MachineEvent::Healthy, None).await.unwrap(),
        None,
        "too early"
    );
    let why = Some("no room".to_owned());
    step(&db, first.id, &[MachineEvent::BootBegun]).await;
    let failed = db.step_machine(first.id, MachineEvent::BootFailed, why.clone()).await.unwrap();
    assert_eq!(failed.unwrap().reason, why);
    let full =
        NewMachine { limits: MachineQuota { per_owner: 9, in_all: 2, ..LIMITS }, ..new(&ids, 1) };
    let third = created(db.create_machine(full).await.unwrap()).id;
    step(&db, third, &[MachineEvent::DeleteAsked, MachineEvent::Erased]).await;
    step(&db, first.id, &[MachineEvent::DeleteAsked, MachineEvent::Erased]).await;
    assert_eq!(db.machine(first.id).await.unwrap().unwrap().state, MachineState::Deleted);
    let anew = created(db.create_machine(named(b"c")).await.unwrap());
    let anew = step(&db, anew.id, &[MachineEvent::BootBegun, MachineEvent::Healthy]).await;
    assert_eq!((anew.state, anew.was_healthy), (MachineState::Running, true));
    step(&db, anew.id, &[MachineEvent::DeleteAsked, MachineEvent::Erased]).await;
    let gone = db.create_machine(named(b"c")).await.unwrap();
    assert!(
        matches!(gone, CreateOutcome::Again(it) if it.state == MachineState::Deleted),
        "it was there"
    );

    step(&db, second.id, &[MachineEvent::BootBegun, MachineEvent::Healthy]).await;
    drop(db);
    let db = home.open(&clock);
    assert_eq!(db.restart_machines(bytes::Bytes::from_static(b"{}")).await.unwrap(), 0);
    let left = db.machines(None).await.unwrap();
    assert_eq!(
        left.iter().map(|it| (it.id, it.state)).collect::<Vec<_>>(),
        [(second.id, MachineState::Requested)]
    );
}

pub(super) async fn charges(home: &DbHome) {
    let clock = FakeClock::at(START);
    let mut db = home.open(&clock);
    let ids = ids(&clock);
    fund(&db).await;
    let id = created(db.create_machine(new(&ids, 1)).await.unwrap()).id;
    assert_eq!(db.charge_machine(id).await.unwrap(), ChargeOutcome::NotDue, "it never ran");
    step(&db, id, &[MachineEvent::BootBegun, MachineEvent::Healthy]).await;
    let paid = |units| ChargeOutcome::Charged(Microcents::new(units));
    assert_eq!(db.charge_machine(id).await.unwrap(), paid(MINUTE));
    assert_eq!(db.charge_machine(id).await.unwrap(), ChargeOutcome::NotDue, "each minute once");
    clock.step(Span::from_secs(59));
    assert_eq!(db.charge_machine(id).await.unwrap(), ChargeOutcome::NotDue);
    clock.step(Span::from_secs(62));
    assert_eq!(db.charge_machine(id).await.unwrap(), paid(2 * (MINUTE - 1)), "two were due");
    drop(db);
    // Down for a while, however short: what was between is nobody's.
    clock.step(Span::from_secs(240));
    db = home.open(&clock);
    db.restart_machines(bytes::Bytes::new()).await.unwrap();
    assert_eq!(db.charge_machine(id).await.unwrap(), ChargeOutcome::NotDue);
    step(&db, id, &[MachineEvent::BootBegun, MachineEvent::Healthy]).await;
    assert_eq!(db.charge_machine(id).await.unwrap(), paid(MINUTE - 1));
    // Stopped and started within a minute that is paid.
    let round = [
        MachineEvent::StopAsked,
        MachineEvent::Ended,
        MachineEvent::StartAsked,
        MachineEvent::BootBegun,
    ];
    step(&db, id, &round).await;
    step(&db, id, &[MachineEvent::Healthy]).await;
    assert_eq!(db.charge_machine(id).await.unwrap(), ChargeOutcome::NotDue);
    // So late that the machine cannot be said to have run.
    clock.step(Span::from_secs(3600));
    assert_eq!(db.charge_machine(id).await.unwrap(), paid(MINUTE - 1));
    // Set forward and back again: one minute was paid, and none is waited for or paid twice.
    clock.step(Span::from_secs(90 * 24 * 3600));
    assert_eq!(db.charge_machine(id).await.unwrap(), paid(MINUTE - 1));
    clock.set(clock.now().before(Span::from_secs(90 * 24 * 3600)));
    assert_eq!(db.charge_machine(id).await.unwrap(), ChargeOutcome::NotDue);
    clock.step(Span::from_secs(60));
    assert_eq!(db.charge_machine(id).await.unwrap(), paid(MINUTE - 1));
    let machine = db.machine(id).await.unwrap().unwrap();
    let billed = 500_000_000 - balance(&db).await.0;
    assert_eq!((machine.billed_minutes, machine.billed.units()), (7, billed));
    let newest = &db.history(wallet(1), PageRange { limit: 1, offset: 0 }).await.unwrap()[0];
    assert_eq!((newest.reason, newest.amount.units()), (PostingReason::Machine, 1 - MINUTE));
    assert_eq!(newest.description, Some(id.to_string()));

    let rest = hold(&ids, 500_000_000 - billed - 1, 0);
    assert_eq!(db.open_hold(rest).await.unwrap(), HoldOutcome::Held);
    clock.step(Span::from_secs(60));
    assert_eq!(db.charge_machine(id).await.unwrap(), ChargeOutcome::Broke);
    step(&db, id, &[MachineEvent::DeleteAsked]).await;
    assert_eq!(db.charge_machine(id).await.unwrap(), ChargeOutcome::NotDue, "at once");
    let books = db.check_books().await.unwrap();
    assert_eq!((books.faults, books.revenue.units()), (0, billed));
    assert!(db.charge_machine(ids.id()).await.is_err(), "there is none");
}

pub(super) async fn executions(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let ids = ids(&clock);
    fund(&db).await;
    let machine = created(db.create_machine(new(&ids, 1)).await.unwrap()).id;
    let run = |key: &[u8], name: &str, request: &[u8]| NewExecution {
        key: Hash::of(key),
        name: name.to_owned(),
        request: Hash::of(request),
        machine,
        may_start: true,
    };
    let begin = async |db: &Db, new| db.begin_execution(new).await.unwrap();
    let not_now = NewExecution { may_start: false, ..run(b"k", "a", b"1") };
    assert_eq!(begin(&db, not_now).await, ExecutionOutcome::Unstarted);
    assert_eq!(begin(&db, run(b"k", "a", b"1")).await, ExecutionOutcome::New);
    assert_eq!(begin(&db, run(b"k", "a", b"1")).await, ExecutionOutcome::Running);
    assert_eq!(begin(&db, run(b"k", "a", b"2")).await, ExecutionOutcome::OtherRequest);
    assert_eq!(begin(&db, run(b"l", "a", b"2")).await, ExecutionOutcome::New, "another's");
    let result = bytes::Bytes::from_static(b"done");
    for given in [result.clone(), bytes::Bytes::from_static(b"late")] {
        db.end_execution(Hash::of(b"k"), "a".to_owned(), given).await.unwrap();
    }
    let done = ExecutionOutcome::Done(result);
    assert_eq!(begin(&db, run(b"k", "a", b"1")).await, done);
    drop(db);
    let db = home.open(&clock);
    let cut = bytes::Bytes::from_static(b"cut");
    assert_eq!(db.restart_machines(cut.clone()).await.unwrap(), 1);
    assert_eq!(begin(&db, run(b"k", "a", b"1")).await, done);
    assert_eq!(begin(&db, run(b"l", "a", b"2")).await, ExecutionOutcome::Done(cut));
    clock.step(Span::from_secs(601));
    assert_eq!(begin(&db, run(b"k", "a", b"1")).await, done, "ten minutes");
    clock.step(Span::from_secs(600));
    assert_eq!(begin(&db, run(b"k", "a", b"1")).await, ExecutionOutcome::New, "no hour");
    for name in 1..5_u8 {
        let new = run(b"big", &name.to_string(), b"1");
        assert_eq!(begin(&db, new).await, ExecutionOutcome::New);
        let result = bytes::Bytes::from(vec![0; 16 << 20]);
        db.end_execution(Hash::of(b"big"), name.to_string(), result).await.unwrap();
    }
    assert_eq!(begin(&db, run(b"big", "5", b"1")).await, ExecutionOutcome::Busy);
    assert_eq!(begin(&db, run(b"fresh", "5", b"1")).await, ExecutionOutcome::Busy, "keys");
    let purchase = Some(CreditPurchase { recipient: wallet(2), usd: 5 });
    let other = NewIncomingPayment { purchase, ..payment(2, 5) };
    let BeginPaymentOutcome::New(id) = db.begin_payment(other).await.unwrap() else {
        panic!("known")
    };
    assert!(db.mark_settled(id, SettledBy::transaction(B256::repeat_byte(2))).await.unwrap());
    let theirs = created(db.create_machine(new(&ids, 2)).await.unwrap()).id;
    let theirs = NewExecution { machine: theirs, ..run(b"theirs", "5", b"1") };
    assert_eq!(begin(&db, theirs).await, ExecutionOutcome::New, "another owner's");
}

pub(super) async fn ports(home: &DbHome) {
    let clock = FakeClock::at(START);
    let db = home.open(&clock);
    let ids = ids(&clock);
    fund(&db).await;
    let machine = created(db.create_machine(new(&ids, 1)).await.unwrap());
    let id = machine.id;
    let price = Some(MicroUsdc::new(10_000));
    let at = |port, price| crate::db::machines::Port { port, price };
    for port in [at(8080, None), at(80, None), at(8080, price)] {
        assert!(db.expose_port(id, port).await.unwrap());
    }
    let told = |ports: Vec<crate::db::machines::Port>| {
        ports.into_iter().map(|it| (it.port, it.price)).collect::<Vec<_>>()
    };
    assert_eq!(told(db.ports(id).await.unwrap()), [(80, None), (8080, price)]);
    assert!(db.expose_port(id, at(8080, None)).await.unwrap(), "free again");
    assert_eq!(told(db.ports(id).await.unwrap()), [(80, None), (8080, None)]);
    let route = async |port| db.route(machine.short_id.clone(), port).await.unwrap();
    assert_eq!(route(80).await.map(|(it, port)| (it.id, port.port)), Some((id, 80)));
    assert!(route(81).await.is_none() && db.route("other".to_owned(), 80).await.unwrap().is_none());
    assert!(db.withdraw_port(id, 80).await.unwrap());
    assert!(!db.withdraw_port(id, 80).await.unwrap());
    assert!(route(80).await.is_none());
    for port in 1..32 {
        assert!(db.expose_port(id, at(port, None)).await.unwrap());
    }
    assert!(!db.expose_port(id, at(99, None)).await.unwrap(), "one too many");
    assert!(db.expose_port(id, at(8080, price)).await.unwrap(), "it is exposed already");
    assert_eq!(route(8080).await.map(|(_, port)| port.price), Some(price));

    // An owner has one tunnel, which has ports and is in no other sense a machine.
    let owner = machine.owner;
    let tunnel = db.tunnel(owner, ids.id()).await.unwrap().unwrap();
    assert_eq!(db.tunnel(owner, ids.id()).await.unwrap(), Some(tunnel.clone()));
    let other = db.tunnel(Address::repeat_byte(77), ids.id()).await.unwrap().unwrap();
    assert!(other.id != tunnel.id && tunnel.is_tunnel && !machine.is_tunnel);
    assert!(db.machines(None).await.unwrap().iter().all(|it| !it.is_tunnel));
    assert!(db.expose_port(tunnel.id, at(80, price)).await.unwrap());
    let routed = db.route(tunnel.short_id.clone(), 80).await.unwrap();
    assert_eq!(routed.map(|(it, port)| (it.id, port.price)), Some((tunnel.id, price)));
    for event in [MachineEvent::StartAsked, MachineEvent::Restarted, MachineEvent::DeleteAsked] {
        assert_eq!(db.step_machine(tunnel.id, event, None).await.unwrap(), None, "{event:?}");
    }

    // A payment for a request is for that port, and nothing else.
    let sale = |port| Some(Sale { machine: id, port });
    let paid = NewIncomingPayment { purchase: None, sale: sale(8080), ..payment(9, 5) };
    let begin = async |new: &NewIncomingPayment| db.begin_payment(new.clone()).await.unwrap();
    let BeginPaymentOutcome::New(first) = begin(&paid).await else { panic!("known") };
    assert_eq!(begin(&paid).await, BeginPaymentOutcome::Known(first));
    for other in [sale(80), None] {
        let other = NewIncomingPayment { sale: other, ..paid.clone() };
        assert_eq!(begin(&other).await, BeginPaymentOutcome::Conflict, "{:?}", other.sale);
    }
    assert_eq!(find(&db, &paid).await.unwrap().sale, sale(8080));
    let before = balance(&db).await;
    assert!(db.mark_settled(first, SettledBy::transaction(B256::repeat_byte(9))).await.unwrap());
    assert_eq!(balance(&db).await, before, "it credits nobody");
    let all = PageRange { limit: 9, offset: 0 };
    let sold = db.sales(wallet(0xEE), all).await.unwrap();
    let told = sold.iter().map(|it| (it.sale, it.amount, it.payer, it.transaction));
    let wanted = (sale(8080).unwrap(), paid.value, wallet(1), B256::repeat_byte(9));
    assert_eq!(told.collect::<Vec<_>>(), [wanted]);
    assert_eq!(db.sales(wallet(1), all).await.unwrap(), []);
    assert!(db.mark_delivered(first).await.unwrap());
    assert!(!db.mark_delivered(first).await.unwrap(), "passed on once");
    assert_eq!(db.check_books().await.unwrap().faults, 0);
    step(&db, id, &[MachineEvent::DeleteAsked, MachineEvent::Erased]).await;
    assert!(route(8080).await.is_none() && db.ports(id).await.unwrap().is_empty());
}
