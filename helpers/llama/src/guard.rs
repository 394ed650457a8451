//! Pure: notices an answer that goes round in circles.
//!
//! It must never end an answer for a few alike lines, which honest tables and
//! code have too: a run has to come back often before it counts.

/// Tokens of a run that is looked for.
const RUN: usize = 12;
/// How often the run must occur, the last time included.
const TIMES: usize = 4;
/// A shorter period must fill this many tokens at the end.
const FILLED: usize = 24;

/// When the end of `tokens` repeats what came before: how many tokens of the
/// answer are worth keeping.
#[must_use]
pub fn repeated<T: PartialEq>(tokens: &[T]) -> Option<usize> {
    short_period(tokens).or_else(|| long_run(tokens))
}

/// The end is one short period over and over.
fn short_period<T: PartialEq>(tokens: &[T]) -> Option<usize> {
    let mut start = tokens.len().checked_sub(FILLED)?;
    let end = &tokens[start..];
    let periodic = |period: &usize| end.iter().zip(&end[*period..]).all(|(a, b)| a == b);
    let period = (1..=FILLED / 3).find(periodic)?;
    while start > 0 && tokens[start - 1] == tokens[start - 1 + period] {
        start -= 1;
    }
    Some(start + period)
}

/// The last run of tokens occurred several times, whatever lay between.
fn long_run<T: PartialEq>(tokens: &[T]) -> Option<usize> {
    let last = &tokens[tokens.len().checked_sub(RUN)?..];
    let (mut at, mut times, mut first) = (0, 0, None);
    while let Some(run) = tokens.get(at..at + RUN) {
        if run == last {
            times += 1;
            first.get_or_insert(at + RUN);
            at += RUN;
        } else {
            at += 1;
        }
    }
    first.filter(|_| times >= TIMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_one_period_of_a_short_circle() {
        let mut tokens = vec![100, 101, 102];
        tokens.extend([1, 2, 3].repeat(20));
        assert_eq!(repeated(&tokens), Some(6));
    }

    #[test]
    fn sees_a_circle_with_a_counter_in_it() {
        let line: Vec<i32> = (0..14).collect();
        let tokens: Vec<i32> =
            (0..4).flat_map(|round| [100 + round].into_iter().chain(line.clone())).collect();
        assert_eq!(repeated(&tokens), Some(15));
    }

    #[test]
    fn leaves_honest_answers_alone() {
        assert_eq!(repeated::<u8>(&[]), None);
        assert_eq!(repeated(&[1; FILLED - 1]), None);
        assert_eq!(repeated(&(0..500).collect::<Vec<_>>()), None);
        let rows: Vec<i32> = (0..3).flat_map(|row| (0..14).chain([100 + row])).collect();
        assert_eq!(repeated(&rows), None);
    }
}
