//! Times of schedules: over changes of the clocks, late, tight, and impossible.

use proptest::prelude::*;

use super::*;

fn cron(expression: &str, zone: &str) -> Result<ScheduleIter, ScheduleError> {
    let expression = expression.to_owned();
    let zone = zone.to_owned();
    ScheduleIter::new(&ScheduleRule::Cron { expression, zone })
}

/// Milliseconds of an ISO 8601 time.
fn at(text: &str) -> Timestamp {
    Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

/// The next times, in UTC without milliseconds.
fn times(schedule: &ScheduleIter, from: &str, count: usize) -> Vec<String> {
    let mut now = at(from);
    let next = || {
        now = schedule.next(now).unwrap();
        now.to_string().replace(".000Z", "Z")
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[test]
fn cron_fires_at_the_times_of_its_zone() {
    let noon = cron("0 12 * * *", "Europe/Berlin").unwrap();
    let winter = times(&noon, "2026-01-01T00:00:00Z", 1);
    let summer = times(&noon, "2026-07-01T00:00:00Z", 1);
    assert_eq!(
        (winter[0].as_str(), summer[0].as_str()),
        ("2026-01-01T11:00:00Z", "2026-07-01T10:00:00Z")
    );
    let seconds = cron("*/20 * * * * *", "UTC").unwrap();
    assert_eq!(
        times(&seconds, "2026-01-01T00:00:30Z", 2),
        ["2026-01-01T00:00:40Z", "2026-01-01T00:01:00Z"]
    );
}

#[test]
fn a_skipped_hour_fires_once_after_the_gap_and_a_doubled_one_once() {
    let daily = cron("30 2 * * *", "Europe/Berlin").unwrap();
    // Clocks go from 02:00 to 03:00 on 29 March and from 03:00 to 02:00 on 25 October.
    assert_eq!(
        times(&daily, "2026-03-28T12:00:00Z", 2),
        ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    );
    assert_eq!(
        times(&daily, "2026-10-24T12:00:00Z", 2),
        ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    );
    // What runs all the time does so through both.
    let often = cron("*/30 * * * *", "Europe/Berlin").unwrap();
    for from in ["2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z"] {
        let day: Vec<Timestamp> = times(&often, from, 8).iter().map(|time| at(time)).collect();
        assert!(
            day.windows(2).all(|pair| pair[1].since(pair[0]) == Span::from_secs(1800)),
            "{day:?}"
        );
    }
}

#[test]
fn what_cannot_be_kept_is_refused_with_its_value() {
    let refused = |expression: &str, zone: &str| cron(expression, zone).unwrap_err().to_string();
    assert!(refused("61 * * * *", "UTC").starts_with("'61 * * * *' is no cron expression"));
    assert!(refused("", "UTC").contains("no cron expression"));
    for nonsense in ["99 99 99 99 99", "- - - - -", "*/0 * * * *", "every day", "* * *"] {
        assert!(refused(nonsense, "UTC").contains("no cron expression"), "{nonsense}");
    }
    assert!(cron("0 0 * * MON", "UTC").is_ok(), "names are as good as numbers");
    assert!(refused("* * * * * * 2030", "UTC").contains("no cron expression"));
    assert_eq!(refused("0 0 30 2 *", "UTC"), "the cron expression '0 0 30 2 *' never fires");
    assert!(
        refused("* * * * *", "Mars/Olympus").starts_with("there is no time zone 'Mars/Olympus'")
    );
    assert!(refused(&"*".repeat(200), "UTC").contains("200 bytes"));
    for span in [Span::ZERO, Span::from_millis(999), INTERVAL_MAX.max(Span::from_millis(i64::MAX))]
    {
        assert!(matches!(
            ScheduleIter::new(&ScheduleRule::Every(span)),
            Err(ScheduleError::Interval(_))
        ));
    }
}

#[test]
fn gaps_are_those_of_the_tightest_and_the_loosest_hour() {
    let gaps = |expression| cron(expression, "UTC").unwrap().gaps(Timestamp::EPOCH);
    assert_eq!(gaps("*/15 * * * *"), (Span::from_secs(900), Span::from_secs(900)));
    assert_eq!(gaps("0,1 * * * *"), (Span::from_secs(60), Span::from_secs(59 * 60)));
    assert_eq!(gaps("*/5 * * * * *").0, Span::from_secs(5));
}

proptest! {
    #[test]
    fn an_interval_never_drifts_and_is_always_ahead(
        every in 1_000_i64..100_000_000,
        anchor in 0_i64..1_000_000_000_000,
        late in 0_i64..1_000_000_000_000,
    ) {
        let schedule = ScheduleIter::new(&ScheduleRule::Every(Span::from_millis(every))).unwrap();
        let begun = schedule.begin(Timestamp::from_millis(anchor));
        let now = begun.next.after(Span::from_millis(late));
        let served = schedule.served(begun, now);
        prop_assert!(served.anchor <= now && now < served.next);
        prop_assert_eq!((served.anchor.as_millis() - anchor) % every, 0);
    }

    #[test]
    fn no_text_breaks_the_parser(expression in "[-0-9*/,LW#?@a-z ]{0,40}", zone in "[A-Za-z/_]{0,20}") {
        if let Ok(schedule) = cron(&expression, &zone) {
            let now = Timestamp::from_millis(1_790_000_000_000);
            prop_assert!(schedule.next(now).is_none_or(|next| next > now));
        }
    }
}
