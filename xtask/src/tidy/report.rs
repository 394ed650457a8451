//! Pure: the table of sizes that `tidy` prints for people.

use super::budget::Budget;
use super::measure::{Counts, FileSize, Sizes};

/// Columns of the table.
const COLUMNS: usize = 12;

/// One row a package, then the totals against their ceilings.
pub(crate) fn table(sizes: &Sizes, budget: &Budget) -> String {
    let mut rows = vec![
        [
            "crate",
            "lines",
            "code",
            "characters",
            "tests",
            "test:prod",
            "comment",
            "newtype",
            "str/kloc",
            "Value/kloc",
            "longest file",
            "longest fn",
        ]
        .map(str::to_owned),
    ];
    let mut packages: Vec<(&str, Counts)> = sizes.by_package().into_iter().collect();
    // What users do not run stands below what they do.
    packages.sort_by_key(|(name, _)| !sizes.ships(name));
    for (name, counts) in packages {
        let files: Vec<&FileSize> =
            sizes.files.iter().filter(|file| file.package == name).collect();
        let name = if sizes.ships(name) { name.to_owned() } else { format!("({name})") };
        rows.push(row(name, &counts, &files));
    }
    let shipped: Vec<&FileSize> = sizes.files.iter().filter(|file| file.shipped).collect();
    rows.push(row("shipped".to_owned(), &sizes.shipped(), &shipped));

    let mut text = align(&rows);
    let ceilings = budget.ceilings;
    let lines = [
        ("nine in ten files within", sizes.file_p90(), ceilings.file_p90),
        ("packages in Cargo.lock", sizes.packages, ceilings.packages),
        (
            "doc comments that begin with a question word",
            sizes.plain().question_docs,
            ceilings.question_docs,
        ),
        ("functions with a bare name", sizes.plain().bare_names, ceilings.bare_names),
        ("lets of tuples", sizes.plain().tuple_lets, ceilings.tuple_lets),
    ];
    for (name, size, ceiling) in lines {
        text.push_str(&format!("{name}: {size} of {ceiling}\n"));
    }
    text.push_str(&format!("shipped lines of code: {}\n", sizes.shipped().code));
    text.push_str(&format!("lab lines, which no product links: {}\n", sizes.lab().code));
    text
}

fn row(name: String, counts: &Counts, files: &[&FileSize]) -> [String; COLUMNS] {
    let longest_file = files.iter().map(|file| file.counts.lines).max().unwrap_or(0);
    let functions = files.iter().flat_map(|file| &file.functions);
    let longest_function = functions.map(|function| function.lines).max().unwrap_or(0);
    [
        name,
        counts.lines.to_string(),
        counts.code.to_string(),
        counts.characters.to_string(),
        counts.test_lines.to_string(),
        ratio(counts.test_lines, counts.lines),
        percent(counts.comments, counts.code + counts.comments),
        percent(counts.newtypes, counts.structs),
        per_thousand(counts.strings, counts.code),
        per_thousand(counts.values, counts.code),
        longest_file.to_string(),
        longest_function.to_string(),
    ]
}

fn ratio(part: usize, whole: usize) -> String {
    share(part, whole, 100).map_or_else(none, |share| format!("{}.{:02}", share / 100, share % 100))
}

fn percent(part: usize, whole: usize) -> String {
    share(part, whole, 100).map_or_else(none, |share| format!("{share} %"))
}

fn per_thousand(part: usize, whole: usize) -> String {
    share(part, whole, 10_000).map_or_else(none, |share| format!("{}.{}", share / 10, share % 10))
}

/// How many of `scale` equal parts of the whole a part makes; nothing of nothing.
fn share(part: usize, whole: usize, scale: usize) -> Option<usize> {
    (part * scale).checked_div(whole)
}

fn none() -> String {
    "–".to_owned()
}

/// The first column to the left, the others to the right.
fn align(rows: &[[String; COLUMNS]]) -> String {
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width - cell.chars().count());
            let cell = if column == 0 { format!("{cell}{gap}") } else { format!("  {gap}{cell}") };
            text.push_str(&cell);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_numbers_or_tenths() {
        assert_eq!(ratio(3, 4), "0.75");
        assert_eq!(ratio(5, 4), "1.25");
        assert_eq!(percent(1, 3), "33 %");
        assert_eq!(per_thousand(7, 1000), "7.0");
        for nothing in [ratio(1, 0), percent(1, 0), per_thousand(1, 0)] {
            assert_eq!(nothing, "–");
        }
    }

    #[test]
    fn columns_stand_below_each_other() {
        let mut rows = vec![[""; COLUMNS].map(str::to_owned); 2];
        rows[0][0] = "crate".to_owned();
        rows[0][1] = "–".to_owned();
        rows[1][1] = "12".to_owned();
        let text = align(&rows);
        let lines: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(lines[0], lines[1]);
        assert!(text.starts_with("crate   –  "), "{text:?}");
    }
}
