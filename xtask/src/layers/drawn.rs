//! Pure: the table of crates in the documentation says what `layers.toml` says.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{AnyBelow, May, Table};

/// A row of the drawn table: layer and edges as text.
#[derive(Debug, PartialEq, Eq)]
struct Drawn {
    layer: String,
    edges: BTreeSet<String>,
}

/// A sentence for each crate that the two tables draw differently.
pub(crate) fn check(table: &Table, markdown: &str) -> Vec<String> {
    let drawn = rows(markdown);
    let mut findings = Vec::new();
    for (name, row) in &table.crates {
        let edges = match &row.may {
            May::Listed(list) => list.clone(),
            May::Word(AnyBelow::AnyBelow) => BTreeSet::from(["any below".to_owned()]),
        };
        let expected = Drawn { layer: row.layer.to_string(), edges };
        match drawn.get(name.as_str()) {
            None => findings.push(format!(
                "docs/ARCHITECTURE.md: the table of crates has no row for `{name}`. Add it."
            )),
            Some(found) if *found != expected => findings.push(format!(
                "docs/ARCHITECTURE.md: the row of `{name}` says layer {} and {:?}, \
                 xtask/layers.toml says layer {} and {:?}. Make them agree.",
                found.layer, found.edges, expected.layer, expected.edges
            )),
            Some(_) => {}
        }
    }
    for name in drawn.keys().filter(|name| !table.crates.contains_key(**name)) {
        findings.push(format!(
            "docs/ARCHITECTURE.md: the table of crates has a row for `{name}`, which \
             xtask/layers.toml does not know. Remove it."
        ));
    }
    findings
}

/// The rows of every table whose cells are crate, layer, role and edges.
fn rows(markdown: &str) -> BTreeMap<&str, Drawn> {
    let lines = markdown.lines().filter_map(|line| line.strip_prefix("| `"));
    lines.filter_map(row).collect()
}

fn row(line: &str) -> Option<(&str, Drawn)> {
    let (name, rest) = line.split_once("` |")?;
    let cells: Vec<&str> = rest.trim().trim_end_matches('|').split('|').map(str::trim).collect();
    let [layer, _role, edges] = cells[..] else { return None };
    layer.parse::<u32>().ok()?;
    let edges = edges.split(", ").filter(|edge| *edge != "–").map(str::to_owned).collect();
    Some((name, Drawn { layer: layer.to_owned(), edges }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
        edges_max = 9
        depth_max = 9
        uncounted = []
        dev_edges = []
        [crates]
        core = { layer = 0, may = [] }
        net = { layer = 1, may = ["core"] }
        lab = { layer = 5, may = "any below" }
    "#;

    const DRAWN: &str = "
| crate | layer | does | may depend on |
|---|---:|---|---|
| `core` | 0 | the nouns | – |
| `net` | 1 | the way out | core |
| `lab` | 5 | worlds | any below |

| `a fact` | `another table` |
";

    fn check_drawn(markdown: &str) -> Vec<String> {
        check(&Table::parse(TABLE).expect("the sample table is whole"), markdown)
    }

    #[test]
    fn equal_tables_pass() {
        assert_eq!(check_drawn(DRAWN), Vec::<String>::new());
    }

    #[test]
    fn each_difference_is_named() {
        let cases = [
            (DRAWN.replace("| 1 |", "| 2 |"), "the row of `net`"),
            (DRAWN.replace("| core |", "| core, lab |"), "the row of `net`"),
            (DRAWN.replace("| `net`", "| `web`"), "no row for `net`"),
            (DRAWN.replace("| `net`", "| `web`"), "a row for `web`"),
        ];
        for (markdown, sentence) in cases {
            let found = check_drawn(&markdown).join("\n");
            assert!(found.contains(sentence), "{found:?} lacks {sentence:?}");
        }
    }
}
