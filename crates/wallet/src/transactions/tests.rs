//! Every history of a transaction: a chain that drops, delays and forgets, a node that lies, and
//! a process that dies between any two effects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use automaton_core::time::Span;
use proptest::prelude::*;

use super::*;

const POLICY: FeePolicy = FeePolicy { replace_after: Span::from_secs(30), fee_max: 100_000 };
/// Blocks that have to come after one before it stays.
const DEPTH: usize = 2;

/// The process died, or the chain could not be asked.
#[derive(Debug, PartialEq, Eq)]
struct Cut;

/// A row and the payment that it is for.
#[derive(Debug, Clone)]
struct Row {
    payment: usize,
    transaction: OpenTransaction,
    end: Option<TransactionEnd>,
}

/// A signed attempt as the world knows it.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    intent: TransactionId,
    nonce: u64,
    fees: Fees,
}

/// The chain, the signer, the rows and the clock.
#[derive(Default)]
struct World {
    rows: BTreeMap<TransactionId, Row>,
    /// The signer's journal: the nonce of each intent.
    journal: BTreeMap<TransactionId, u64>,
    signed: BTreeMap<B256, Attempt>,
    /// The pool of the node: one attempt a nonce.
    pool: BTreeMap<u64, B256>,
    blocks: Vec<Vec<B256>>,
    now: i64,
    fee_floor: u64,
    /// The effects until the process dies.
    fuse: Option<u32>,
    /// Attempts that a node refused since their raise was too small.
    underpriced: u32,
    ids: u8,
}

impl World {
    /// The hashes in the blocks that stay.
    fn firm(&self) -> impl Iterator<Item = B256> + '_ {
        let firm = self.blocks.len().saturating_sub(DEPTH);
        self.blocks[..firm].iter().flatten().copied()
    }

    fn final_count(&self) -> u64 {
        self.firm().count() as u64
    }

    fn next_nonce(&self) -> u64 {
        self.blocks.iter().flatten().count() as u64
    }

    fn is_mined(&self, hash: B256) -> bool {
        self.blocks.iter().flatten().any(|mined| *mined == hash)
    }

    fn mine(&mut self) {
        let mut block = Vec::new();
        let mut nonce = self.next_nonce();
        while let Some(hash) = self.pool.get(&nonce).copied() {
            if self.signed[&hash].fees.max < self.fee_floor {
                break;
            }
            self.pool.remove(&nonce);
            block.push(hash);
            nonce += 1;
        }
        self.blocks.push(block);
    }

    /// Takes the newest block away, unless it stays.
    fn reorganize(&mut self) {
        self.blocks.pop();
    }

    fn broadcast(&mut self, raw: &Bytes) {
        let hash = B256::from_slice(raw);
        let attempt = self.signed[&hash];
        if attempt.nonce < self.next_nonce() {
            return;
        }
        if let Some(other) = self.pool.get(&attempt.nonce) {
            let before = self.signed[other].fees;
            let is_raised = |old: u64, new: u64| new * 10 >= old * 11;
            if *other != hash
                && !(is_raised(before.max, attempt.fees.max)
                    && is_raised(before.priority, attempt.fees.priority))
            {
                // A late copy of an older attempt is below the newest; that is no defect.
                self.underpriced += u32::from(attempt.fees.max > before.max);
                return;
            }
        }
        self.pool.insert(attempt.nonce, hash);
    }

    fn open_rows(&self) -> Vec<Row> {
        self.rows.values().filter(|row| row.end.is_none()).cloned().collect()
    }
}

/// The effects of one payment's transaction, on a world that many share.
struct Driver<'a> {
    world: &'a Mutex<World>,
    payment: usize,
}

impl Driver<'_> {
    /// Does an effect, unless the process dies before it.
    fn effect(&self) -> Result<MutexGuard<'_, World>, Cut> {
        let mut world = self.world.lock().unwrap();
        match &mut world.fuse {
            Some(0) => return Err(Cut),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(world)
    }
}

fn hash_of(attempt: Attempt) -> B256 {
    let words = [attempt.nonce, attempt.fees.max, attempt.fees.priority].map(u64::to_be_bytes);
    let intent = attempt.intent.to_string();
    alloy_primitives::keccak256([intent.as_bytes(), &words.concat()].concat())
}

impl TransactionDriver for Driver<'_> {
    type Error = Cut;

    async fn current_fees(&self) -> Result<Fees, Cut> {
        let world = self.effect()?;
        Ok(Fees { max: 1000 + world.now.unsigned_abs() % 7, priority: 100 })
    }

    async fn is_mined(&self, hash: B256) -> Result<bool, Cut> {
        Ok(self.effect()?.is_mined(hash))
    }

    async fn store_intent(&self, fees: Fees) -> Result<OpenTransaction, Cut> {
        let mut world = self.effect()?;
        world.ids += 1;
        let intent: TransactionId = format!("{:026}", world.ids).parse().unwrap();
        let since = Timestamp::from_millis(world.now);
        let transaction = OpenTransaction::new(intent, 21_000, fees, since);
        let row = Row { payment: self.payment, transaction: transaction.clone(), end: None };
        assert!(world.rows.insert(intent, row).is_none(), "an intent is stored once");
        Ok(transaction)
    }

    async fn store_fees(&self, transaction: &OpenTransaction, fees: Fees) -> Result<(), Cut> {
        let mut world = self.effect()?;
        let since = Timestamp::from_millis(world.now);
        let row = world.rows.get_mut(&transaction.intent).unwrap();
        let before = row.transaction.fees;
        assert!(u128::from(fees.max) * 8 >= u128::from(before.max) * 9, "an eighth more");
        assert!(u128::from(fees.priority) * 8 >= u128::from(before.priority) * 9, "an eighth more");
        assert!(fees.max <= POLICY.fee_max, "within the limit");
        (row.transaction.fees, row.transaction.since, row.transaction.raw) = (fees, since, None);
        Ok(())
    }

    async fn sign(&self, transaction: &OpenTransaction) -> Result<Submission, Cut> {
        let mut world = self.effect()?;
        let intent = transaction.intent;
        let row = &world.rows[&intent].transaction;
        assert_eq!(row.fees, transaction.fees, "the attempt is stored before it is signed");
        let first_free = (world.final_count()..)
            .find(|nonce| !world.journal.values().any(|taken| taken == nonce))
            .unwrap();
        let nonce = *world.journal.entry(intent).or_insert(first_free);
        assert!(transaction.nonce.is_none_or(|known| known == nonce), "one intent, one nonce");
        let attempt = Attempt { intent, nonce, fees: transaction.fees };
        let hash = hash_of(attempt);
        world.signed.insert(hash, attempt);
        Ok(Submission { hash, raw: Bytes::copy_from_slice(hash.as_slice()), gas_nonce: nonce })
    }

    async fn store_signed(
        &self,
        transaction: &OpenTransaction,
        signed: &Submission,
    ) -> Result<(), Cut> {
        let mut world = self.effect()?;
        let row = &mut world.rows.get_mut(&transaction.intent).unwrap().transaction;
        assert!(row.nonce.is_none_or(|nonce| nonce == signed.gas_nonce), "the nonce stays");
        row.nonce = Some(signed.gas_nonce);
        row.raw = Some(signed.raw.clone());
        row.hashes.push(signed.hash);
        Ok(())
    }

    async fn broadcast(&self, raw: &Bytes, _is_first: bool) -> Result<(), Cut> {
        let mut world = self.effect()?;
        let hash = B256::from_slice(raw);
        let intent = world.signed[&hash].intent;
        let is_stored = world.rows[&intent].transaction.hashes.contains(&hash);
        assert!(is_stored, "the bytes are stored before they are sent");
        world.broadcast(raw);
        Ok(())
    }

    async fn store_end(
        &self,
        transaction: &OpenTransaction,
        end: TransactionEnd,
    ) -> Result<(), Cut> {
        let mut world = self.effect()?;
        let row = world.rows.get_mut(&transaction.intent).unwrap();
        assert!(row.end.is_none_or(|before| before == end), "an end stays");
        row.end = Some(end);
        Ok(())
    }
}

/// An event in the life of some payments.
#[derive(Debug, Clone, Copy)]
enum Event {
    Pay,
    /// One step of each open row. With a number the process dies after so many effects.
    Step(Option<u32>),
    Mine,
    Reorganize,
    DropPool,
    Wait(u8),
    FeeFloor(u16),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => Just(Event::Pay),
        6 => proptest::option::of(0_u32..9).prop_map(Event::Step),
        4 => Just(Event::Mine),
        2 => Just(Event::Reorganize),
        1 => Just(Event::DropPool),
        3 => (1_u8..60).prop_map(Event::Wait),
        1 => (0_u16..3000).prop_map(Event::FeeFloor),
    ]
}

async fn step_all(world: &Mutex<World>) {
    let (rows, count, now) = {
        let world = world.lock().unwrap();
        (world.open_rows(), world.final_count(), Timestamp::from_millis(world.now))
    };
    for Row { payment, transaction, .. } in rows {
        let driver = Driver { world, payment };
        if advance(&driver, POLICY, &transaction, count, now).await == Err(Cut) {
            break;
        }
    }
    // The process starts again.
    world.lock().unwrap().fuse = None;
}

async fn apply(world: &Mutex<World>, event: Event, payments: &mut usize) {
    match event {
        Event::Pay => {
            let payment = *payments;
            *payments += 1;
            // A crash inside is another event's.
            reserve_and_send(&Driver { world, payment }, POLICY).await.unwrap();
        }
        Event::Step(fuse) => {
            world.lock().unwrap().fuse = fuse;
            step_all(world).await;
        }
        Event::Mine => world.lock().unwrap().mine(),
        Event::Reorganize => {
            let mut world = world.lock().unwrap();
            // Blocks that stay do so.
            let firm = world.final_count();
            world.reorganize();
            if world.final_count() < firm {
                world.blocks.push(Vec::new());
            }
        }
        Event::DropPool => world.lock().unwrap().pool.clear(),
        Event::Wait(seconds) => world.lock().unwrap().now += i64::from(seconds) * 1000,
        Event::FeeFloor(floor) => world.lock().unwrap().fee_floor = floor.into(),
    }
}

/// Checks the rules that hold at any time.
fn check(world: &World) {
    assert_eq!(world.underpriced, 0, "a node takes each replacement");
    let mut payment_of_nonce: BTreeMap<u64, usize> = BTreeMap::new();
    for attempt in world.signed.values() {
        let payment = world.rows[&attempt.intent].payment;
        let before = payment_of_nonce.insert(attempt.nonce, payment);
        assert!(before.is_none_or(|it| it == payment), "a nonce is one payment's");
    }
    let mined: Vec<TransactionId> =
        world.blocks.iter().flatten().map(|hash| world.signed[hash].intent).collect();
    let intents: BTreeSet<_> = mined.iter().collect();
    assert_eq!(intents.len(), mined.len(), "an intent has one receipt");
    let firm: BTreeSet<_> = world.firm().map(|hash| world.signed[&hash].intent).collect();
    for (intent, row) in &world.rows {
        if row.end.is_some() {
            assert!(firm.contains(intent), "a row is closed when its block stays");
        }
    }
}

fn run(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_history_pays_twice_or_gives_a_nonce_up(
        events in prop::collection::vec(event(), 1..60),
    ) {
        run(async {
            let world = Mutex::new(World::default());
            let mut payments = 0;
            for event in events {
                if payments < 8 || !matches!(event, Event::Pay) {
                    apply(&world, event, &mut payments).await;
                }
                check(&world.lock().unwrap());
            }
            // A chain that works again has each transaction once, and all rows are closed.
            world.lock().unwrap().fee_floor = 0;
            for _ in 0..2 * DEPTH + 2 {
                step_all(&world).await;
                world.lock().unwrap().mine();
                check(&world.lock().unwrap());
            }
            step_all(&world).await;
            let world = world.lock().unwrap();
            check(&world);
            assert!(world.rows.values().all(|row| row.end == Some(TransactionEnd::Spent)));
            assert_eq!(world.next_nonce(), payments as u64, "one nonce a payment");
        });
    }

    #[test]
    fn the_next_step_follows_from_the_row_and_the_chain_alone(
        nonce in proptest::option::of(0_u64..4),
        is_signed in any::<bool>(),
        is_mined in any::<bool>(),
        final_count in 0_u64..4,
        waited in 0_i64..60,
    ) {
        let raw = is_signed.then(|| Bytes::from_static(b"raw"));
        let fees = Fees { max: 1000, priority: 100 };
        let intent = format!("{:026}", 1).parse().unwrap();
        let new = OpenTransaction::new(intent, 1, fees, Timestamp::EPOCH);
        let pending = OpenTransaction { nonce, raw, ..new };
        let now = Timestamp::from_millis(waited * 1000);
        match pending.next_step(is_mined, final_count, now, POLICY) {
            TransactionStep::Close(end) => {
                prop_assert!(nonce.is_some_and(|nonce| nonce < final_count));
                prop_assert_eq!(end == TransactionEnd::Spent, is_mined);
            }
            step => {
                prop_assert!(nonce.is_none_or(|nonce| nonce >= final_count));
                prop_assert_eq!(step == TransactionStep::Wait, is_mined);
                prop_assert_eq!(step == TransactionStep::Sign, !is_mined && !is_signed);
                let replaces = matches!(step, TransactionStep::Replace(_));
                prop_assert_eq!(replaces, !is_mined && is_signed && waited >= 30);
            }
        }
    }
}

#[test]
fn a_death_after_any_effect_of_the_first_attempt_leaves_one_transaction() {
    for fuse in 0..8 {
        run(async {
            let world = Mutex::new(World { fuse: Some(fuse), ..World::default() });
            let sent = reserve_and_send(&Driver { world: &world, payment: 0 }, POLICY).await;
            assert_eq!(sent.is_ok(), fuse >= 5, "{fuse}");
            world.lock().unwrap().fuse = None;
            for _ in 0..2 * DEPTH {
                step_all(&world).await;
                world.lock().unwrap().mine();
            }
            step_all(&world).await;
            let world = world.lock().unwrap();
            check(&world);
            // Before the row is stored there is nothing to go on with.
            let rows = usize::from(fuse >= 2);
            assert_eq!((world.rows.len(), world.signed.len()), (rows, rows), "{fuse}");
            assert!(world.rows.values().all(|row| row.end == Some(TransactionEnd::Spent)));
        });
    }
}

#[test]
fn a_stuck_transaction_is_replaced_until_a_block_takes_it_and_never_beyond_the_limit() {
    run(async {
        let world = Mutex::new(World { fee_floor: 1400, ..World::default() });
        reserve_and_send(&Driver { world: &world, payment: 0 }, POLICY).await.unwrap();
        for _ in 0..3 {
            world.lock().unwrap().now += 31_000;
            step_all(&world).await;
            world.lock().unwrap().mine();
        }
        {
            let world = world.lock().unwrap();
            // 1000, 1125, 1266 are too little; 1425 is not.
            assert_eq!((world.signed.len(), world.next_nonce()), (4, 1));
        }
        {
            let mut world = world.lock().unwrap();
            (0..DEPTH).for_each(|_| world.mine());
            world.fee_floor = u64::MAX;
        }
        reserve_and_send(&Driver { world: &world, payment: 1 }, POLICY).await.unwrap();
        for _ in 0..80 {
            world.lock().unwrap().now += 31_000;
            step_all(&world).await;
        }
        let world = world.lock().unwrap();
        check(&world);
        assert!(world.signed.values().all(|attempt| attempt.fees.max <= POLICY.fee_max));
        assert_eq!(world.open_rows().len(), 1, "its nonce is still filled");
    });
}

#[test]
fn a_nonce_that_another_program_used_is_lost() {
    run(async {
        let world = Mutex::new(World::default());
        reserve_and_send(&Driver { world: &world, payment: 0 }, POLICY).await.unwrap();
        {
            let mut world = world.lock().unwrap();
            world.pool.clear();
            let intent = format!("{:026}", 99).parse().unwrap();
            let attempt = Attempt { intent, nonce: 0, fees: Fees { max: 1, priority: 1 } };
            let hash = hash_of(attempt);
            world.signed.insert(hash, attempt);
            world.blocks.extend([vec![hash], Vec::new(), Vec::new()]);
        }
        step_all(&world).await;
        let world = world.lock().unwrap();
        let ends: Vec<_> = world.rows.values().map(|row| row.end).collect();
        assert_eq!(ends, [Some(TransactionEnd::Lost)]);
    });
}
