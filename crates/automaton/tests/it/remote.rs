//! A life away from home: cloud and chain are processes that somebody else started, and all
//! that the automaton knows of them is in its configuration.

mod deaths;
mod elsewhere;
mod story;
mod transcripts;

use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::money::MicroUsdc;

pub(crate) use self::elsewhere::{ChainPlace, Elsewhere, model};
use self::elsewhere::{books, count, dollars};
pub(crate) use self::story::{WHOLE, lives_wholly};

#[test]
fn it_lives_from_a_cloud_and_a_chain_that_it_was_only_told_of() {
    lives_wholly(Elsewhere::with(WHOLE, 31337, "dev", 6), &[]);
}

#[test]
fn killed_at_any_point_of_a_purchase_it_pays_once() {
    for point in [
        FaultPoint::PaymentProposed,
        FaultPoint::PaymentSigned,
        FaultPoint::PaymentSubmitted,
        FaultPoint::PaymentAnswered,
    ] {
        let town = Elsewhere::new(31337, "own");
        // The agent dies; the supervisor starts it again, and it goes on with the same purchase.
        let lived = town.run(&["--turns", "1", "--fault", point.name()]);
        assert_eq!(lived.code, Some(0), "{point:?}\n{}\n{}", lived.stdout, lived.stderr);
        let restarts = count(&lived.events, |event| matches!(event, Event::AgentRestarted { .. }));
        assert_eq!(restarts, 1, "{point:?} was not reached");
        let books = books(&lived.events);
        assert_eq!(books.bought.plus(books.pending).unwrap(), dollars(5), "{point:?} {books:?}");
        assert_eq!(books.signed, Some(MicroUsdc::new(5_000_000)), "{point:?}");
    }
}

#[test]
fn what_is_not_as_it_was_chosen_is_told_before_anything_is_paid() {
    let mut town = Elsewhere::new(31337, "base");
    for (network, wrong, remedy) in [
        ("base", "serves the chain 31337, not 8453", "set `network` to dev"),
        ("mars", "there is no network 'mars'", "take one of own, wrong, bare, base,"),
        ("wrong", "does not call itself 'USD Coin', version '1'", "correct `tokenName`"),
        ("bare", "there is no USDC at 0x7099", "correct `usdc`"),
    ] {
        town.config["network"] = network.into();
        town.world.write_home("automaton.json", &town.config.to_string()).unwrap();
        let refused = town.run(&["--turns", "1"]);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        let told = &refused.stderr;
        assert!(told.contains(wrong) && told.contains(remedy), "{network}: {told}");
        assert!(!town.world.home().join("cloud-key.json").exists(), "{network}");
    }
    town.config["network"] = "dev".into();
    town.world.write_home("automaton.json", &town.config.to_string()).unwrap();
    let told = town.world.command(&["run", "--turns", "1"]).unwrap().stderr;
    assert!(told.contains("nobody says where the wallet's passphrase is"), "{told}");
    town.config["conwayApiKey"] = "cnwy_k_nobodys".into();
    town.world.write_home("automaton.json", &town.config.to_string()).unwrap();
    let told = town.run(&["--turns", "1"]).stderr;
    assert!(told.contains("correct the key `conwayApiKey`"), "{told}");
}

#[test]
fn a_row_of_another_network_is_all_that_changes() {
    Elsewhere::new(84532, "own").lives_and_pays();
}
