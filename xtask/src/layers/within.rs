//! Pure: modules of one crate that may not name another module of it.

use crate::tree::TextFile;

use super::table::Table;

/// A sentence for each line of a file that names a module which its own may not.
pub(crate) fn check(table: &Table, TextFile { path, text }: &TextFile) -> Vec<String> {
    let mut findings = Vec::new();
    for rule in &table.within {
        let source = format!("crates/{}/src/", rule.krate);
        let Some(inside) = path.strip_prefix(&source) else { continue };
        let module = inside.split(['/', '.']).next().unwrap_or(inside);
        if !rule.from.contains(module) {
            continue;
        }
        for (number, line) in (1..).zip(text.lines()) {
            if names(line.split("//").next().unwrap_or(line), &rule.never) {
                findings.push(format!(
                    "{path}:{number}: names `{}`: {}. Move what both need below it.",
                    rule.never, rule.reason
                ));
            }
        }
    }
    findings
}

/// Whether a module is a part of a path in this code, however the path begins: `crate::`,
/// `super::` or the list of a `use`.
fn names(code: &str, module: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(module).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + module.len()..]);
        let is_whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        is_whole && (before.ends_with("::") || after.starts_with("::"))
    })
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
        [[within]]
        crate = "automaton"
        from = ["role", "stack"]
        never = "cmd"
        reason = "commands are above"
    "#;

    #[test]
    fn only_the_modules_that_are_named_may_not() {
        let table = Table::parse(TABLE).unwrap();
        let found = |path: &str, text: &str| {
            let file = TextFile { path: format!("crates/{path}"), text: text.to_owned() };
            check(&table, &file).len()
        };
        let upward = "use crate::cmd::live;\n";
        assert_eq!(found("automaton/src/role/agent.rs", upward), 1);
        assert_eq!(found("automaton/src/stack.rs", upward), 1);
        for other in
            ["use super::cmd::live;\n", "use crate::{\n    cmd::live,\n};\n", "crate::cmd;"]
        {
            assert_eq!(found("automaton/src/stack.rs", other), 1, "{other}");
        }
        assert_eq!(found("automaton/src/stack.rs", "let cmd = 1; // of no module\n"), 0);
        assert_eq!(found("automaton/src/cmd/up.rs", upward), 0);
        assert_eq!(found("agent/src/role.rs", upward), 0);
        assert_eq!(found("automaton/src/stack.rs", "use crate::cmdline::x; // crate::cmd\n"), 0);
    }
}
