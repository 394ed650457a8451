//! Random histories of payments, clocks, restarts and ceilings.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Pay {
        number: u32,
        amount: u64,
        payee: u8,
    },
    /// True time passes.
    Pass {
        minutes: i64,
    },
    /// The wall clock is set.
    Set {
        minutes: i64,
    },
    /// The signer restarts, with a chain whose last block is so old, or without one.
    Restart {
        age_s: Option<i64>,
    },
    Limits(SigningLimits),
}

fn step() -> impl Strategy<Value = Step> {
    let limits = (0..120_u64, [0..300_u64, 0..300, 0..300, 0..2000], 0..40_u64);
    let limits = limits.prop_map(|(per_payment, [hour, day, payee, lifetime], payments_max)| {
        let per_payment = usdc(per_payment);
        let per_hour = usdc(hour);
        let per_day = usdc(day);
        let per_payee = usdc(payee);
        let lifetime = usdc(lifetime);
        Step::Limits(SigningLimits {
            per_payment,
            per_hour,
            per_day,
            per_payee,
            lifetime,
            payments_max,
        })
    });
    let pay = (0..40_u32, 1..100_u64, 1..4_u8);
    let age = prop_oneof![1 => Just(None), 4 => (0..120_i64).prop_map(Some)];
    prop_oneof![
        8 => pay.prop_map(|(number, amount, payee)| Step::Pay { number, amount, payee }),
        3 => (0..1500_i64).prop_map(|minutes| Step::Pass { minutes }),
        3 => (-9000..9000_i64).prop_map(|minutes| Step::Set { minutes }),
        2 => age.prop_map(|age_s| Step::Restart { age_s }),
        1 => limits,
    ]
}

/// A payment and its true time.
struct Paid {
    intent: PaymentIntent,
    bytes: ExactPayload,
    at: i64,
}

/// Returns the sum of the payments to one payee, or to all, within a span before a moment.
fn sum(paid: &[Paid], until: i64, span: Span, payee: Option<Address>) -> u64 {
    let within = |it: &&Paid| until - it.at < span.as_millis();
    let to = |it: &&Paid| payee.is_none_or(|payee| it.intent.payee == payee);
    paid.iter().filter(within).filter(to).map(|it| it.intent.amount.units()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// No window of true time ever holds more than its ceiling, whatever clocks, restarts and
    /// chains do. A payment that fits is signed while only true time passes.
    #[test]
    fn no_ceiling_is_ever_exceeded(steps in prop::collection::vec(step(), 1..80)) {
        let mut bench = Bench::new(80, 200, 20);
        let mut limits = bench.journal.status(NOON).unwrap().limits;
        let mut paid: Vec<Paid> = Vec::new();
        let mut undisturbed = true;
        for step in steps {
            match step {
                Step::Restart { age_s } => {
                    let chain = age_s.and_then(|age| bench.clocks.chain(Span::from_secs(age)));
                    bench.restart(chain);
                    undisturbed = false;
                }
                Step::Pass { minutes } => bench.clocks.pass(Span::from_secs(minutes * 60)),
                Step::Set { minutes } => bench.clocks.set_wall(minutes * 60_000),
                Step::Limits(to) => {
                    set(&mut bench.journal, all(to)).unwrap();
                    limits = to;
                }
                Step::Pay { number, amount, payee } => {
                    let payee = Address::repeat_byte(payee);
                    let asked = PaymentIntent { payee, ..intent(number, amount) };
                    let now = bench.clocks.now();
                    let with = |span, to| sum(&paid, now, span, to) + amount;
                    let fits = amount <= limits.per_payment.units()
                        && with(HOUR, None) <= limits.per_hour.units()
                        && with(DAY, None) <= limits.per_day.units()
                        && with(DAY, Some(payee)) <= limits.per_payee.units()
                        && with(Span::from_millis(i64::MAX), None) <= limits.lifetime.units()
                        && u64::try_from(paid.len()).unwrap() < limits.payments_max;
                    let before = paid.iter().find(|it| it.intent.intent == asked.intent);
                    match (bench.pay(&asked), before) {
                        (Ok(got), Some(it)) => {
                            prop_assert_eq!((&got, &asked), (&it.bytes, &it.intent));
                        }
                        (Err(refusal), Some(it)) => {
                            prop_assert_eq!(refusal.code, SignerRefusalCode::Conflict);
                            prop_assert_ne!(&it.intent, &asked);
                        }
                        (Ok(bytes), None) => {
                            prop_assert!(fits, "{} was too much", amount);
                            paid.push(Paid { intent: asked, bytes, at: now });
                        }
                        (Err(it), None) => prop_assert!(!(fits && undisturbed), "{}", it),
                    }
                }
            }
        }
        let ever = MicroUsdc::new(paid.iter().map(|it| it.intent.amount.units()).sum());
        prop_assert_eq!(bench.spent().ever, ever);
        prop_assert_eq!(usize::try_from(bench.signed.get()).unwrap(), paid.len());
    }
}
