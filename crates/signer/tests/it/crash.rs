//! The signer dies at each moment of a payment. The payment counts once, and a retry gets the
//! same bytes.

use automaton_core::faults::FaultPoint;
use automaton_core::money::MicroUsdc;
use automaton_signer::{
    SignerConnection, SignerConnectionError, SignerRefusalCode, SpendingTotals,
};

use crate::support::{PASSPHRASE, World, intent, is_gone};

const FIVE: MicroUsdc = MicroUsdc::new(5_000_000);
const ONCE: SpendingTotals =
    SpendingTotals { hour: FIVE, day: FIVE, payee: FIVE, ever: FIVE, payments: 1 };

#[test]
fn a_payment_counts_once_whenever_the_signer_dies() {
    let world = World::new();
    for (point, number) in FaultPoint::SIGNER.into_iter().zip(1..) {
        let before = u64::from(number) - 1;
        let asked = intent(number, 1_000_000);
        let (mut process, stream) = world.start_with(PASSPHRASE, Some(point));
        let mut client = SignerConnection::connect(stream).unwrap();
        let answer = client.sign_payment(&asked);
        let died_with = match (point, answer) {
            (FaultPoint::SignerAnswered, answer) => Some(answer.unwrap()),
            (_, Err(error)) => {
                assert!(is_gone(&error), "{point}: {error}");
                None
            }
            (_, Ok(_)) => panic!("{point}: a signature left"),
        };
        assert!(!process.ended_well(), "{point}");

        let (_process, mut client) = world.start();
        let counted = client.limits().unwrap().spent;
        let expected = match point {
            FaultPoint::SignerAsked | FaultPoint::SignerSigned => before,
            _ => before + 1,
        };
        assert_eq!(counted.payments, expected, "{point}");
        let again = client.sign_payment(&asked).unwrap();
        if let Some(first) = died_with {
            assert_eq!(again, first);
        }
        assert_eq!(client.sign_payment(&asked).unwrap(), again);
        let counted = client.limits().unwrap().spent;
        let day = MicroUsdc::new((before + 1) * 1_000_000);
        assert_eq!(
            counted,
            SpendingTotals { hour: day, day, payee: day, ever: day, payments: before + 1 },
            "{point}"
        );
    }
}

#[test]
fn a_signer_that_is_killed_between_requests_forgets_nothing() {
    let world = World::new();
    let (mut process, mut client) = world.start();
    let first = client.sign_payment(&intent(1, 5_000_000)).unwrap();
    process.kill();
    assert!(is_gone(&client.limits().unwrap_err()));

    let (mut process, mut client) = world.start();
    assert_eq!(client.sign_payment(&intent(1, 5_000_000)).unwrap(), first);
    assert_eq!(client.limits().unwrap().spent, ONCE);
    let other = client.sign_payment(&intent(1, 4_000_000)).unwrap_err();
    assert!(matches!(other, SignerConnectionError::Conflict(_)), "{other}");
    let dear = client.sign_payment(&intent(2, 25_000_001)).unwrap_err();
    assert!(
        matches!(dear, SignerConnectionError::Refused(it) if it.code == SignerRefusalCode::PerPayment)
    );
    assert_eq!(client.limits().unwrap().spent, ONCE);
    drop(client);
    assert!(process.ended_well(), "{}", world.log());
}
