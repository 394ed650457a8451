//! Two thousand histories of money, and two defects that they find.

use std::ops::Range;

use automaton_lab::sim::{PlantedDefect, SimError, SimStats, Simulator};

/// Histories of one test: eight tests tell two thousand, side by side.
const EACH: u64 = 250;
/// Histories in which a defect has to be found.
const FOUND_WITHIN: u64 = 200;

/// Tells the histories of some seeds; a failure prints the seed and its history.
fn tell(seeds: Range<u64>) {
    let simulator = Simulator::new().unwrap();
    let mut tally = SimStats::default();
    for seed in seeds {
        match simulator.run_seed(seed, None) {
            Ok(told) => tally.add(told),
            Err(error) => panic!("{error}"),
        }
    }
    // Something has happened in them.
    assert!(tally.settled > tally.histories && tally.deaths > tally.histories, "{tally}");
    assert!(tally.forks > 0 && tally.settled < tally.intents, "{tally}");
}

macro_rules! histories {
    ($($name:ident: $part:literal;)+) => {$(
        #[test]
        fn $name() {
            tell($part * EACH..($part + 1) * EACH);
        }
    )+};
}

histories! {
    every_history_keeps_its_promises_part_1: 0;
    every_history_keeps_its_promises_part_2: 1;
    every_history_keeps_its_promises_part_3: 2;
    every_history_keeps_its_promises_part_4: 3;
    every_history_keeps_its_promises_part_5: 4;
    every_history_keeps_its_promises_part_6: 5;
    every_history_keeps_its_promises_part_7: 6;
    every_history_keeps_its_promises_part_8: 7;
}

/// What is found first, of a signer with a defect.
fn found(plant: PlantedDefect) -> String {
    let simulator = Simulator::new().unwrap();
    let broken = |seed| match simulator.run_seed(seed, Some(plant)) {
        Ok(_) => None,
        Err(SimError::Broken { what, .. }) => Some(what),
        Err(error) => panic!("{error}"),
    };
    (0..FOUND_WITHIN).find_map(broken).unwrap()
}

#[test]
fn a_nonce_that_is_not_the_intents_is_found() {
    let what = found(PlantedDefect::FreshNonce);
    assert!(what.contains("nonce") || what.contains("bought"), "{what}");
}

#[test]
fn a_ceiling_that_is_asked_after_signing_is_found() {
    let what = found(PlantedDefect::CountedLate);
    assert!(what.contains("ceiling") || what.contains("agree"), "{what}");
}

#[test]
fn a_seed_tells_the_same_history_each_time() {
    let simulator = Simulator::new().unwrap();
    for seed in 0..30 {
        assert_eq!(
            simulator.run_seed(seed, None).unwrap(),
            simulator.run_seed(seed, None).unwrap()
        );
    }
}
