//! Pure: what belongs together, below each other.

use super::wrap::{columns, wrapped};

/// Names with what they stand for: names to the left, the rest broken at words to the
/// window, below itself.
pub(crate) fn rows(rows: &[(&str, String)], width: Option<usize>) -> String {
    let widest = rows.iter().map(|(name, _)| columns(name)).max().unwrap_or_default();
    let next = " ".repeat(widest + 2);
    let line = |(name, value): &(&str, String)| {
        let first = format!("{name}{}", " ".repeat(widest + 2 - columns(name)));
        wrapped(value, width, &first, &next)
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A list of lines whose cells stand below each other, the last as long as it likes: it is
/// broken at words to the window.
pub(crate) fn list<const N: usize>(lines: &[[String; N]], width: Option<usize>) -> String {
    let widths: [usize; N] = std::array::from_fn(|at| {
        lines.iter().map(|line| columns(&line[at])).max().unwrap_or_default()
    });
    let line = |cells: &[String; N]| {
        let (last, others) = cells.split_last()?;
        let mut first = String::new();
        for (cell, width) in others.iter().zip(widths) {
            first.push_str(cell);
            first.extend(std::iter::repeat_n(' ', width + 2 - columns(cell)));
        }
        // Where the cells before leave too little room, the last goes on below them.
        let roomy = width.is_none_or(|width| columns(&first) * 2 <= width);
        let next = " ".repeat(if roomy { columns(&first) } else { 4 });
        Some(wrapped(last, width, &first, &next).trim_end().to_owned())
    };
    lines.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_below_each_other_and_are_broken_at_words() {
        let text = rows(
            &[("Name", "Ada".to_owned()), ("Brain", "a model with a long name".to_owned())],
            Some(20),
        );
        assert_eq!(text, "Name   Ada\nBrain  a model with\n       a long name");
        let text = list(
            &[["1".into(), "ab".into(), "one".into()], ["12".into(), "c".into(), "two".into()]],
            None,
        );
        assert_eq!(text, "1   ab  one\n12  c   two");
    }
}
