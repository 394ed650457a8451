//! Pure: each provider of models is made by the program.
//!
//! One that is only written is public code of its crate, which no lint calls dead. Here only
//! a function of it is looked for; whether it is asked, the tests of the program show.

use super::Finding;
use super::source::Source;

const PROVIDERS: &str = "crates/inference/src/providers/";
const PROGRAM: &str = "crates/automaton/src/";

/// A finding for each type that implements `Provider` and that the program does not name.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let is_named = |name: &str| {
        let program = sources.iter().filter(|source| source.path.starts_with(PROGRAM));
        program.into_iter().any(|source| {
            source.tokens().windows(2).any(|two| {
                let made = two[0].text == name && two[1].text.starts_with(':');
                made && !source.is_test_line(two[0].line)
            })
        })
    };
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with(PROVIDERS)) {
        for four in source.tokens().windows(4) {
            let [a, b, c, name] = four else { continue };
            let implements = [a.text, b.text, c.text] == ["impl", "Provider", "for"];
            if implements && !source.is_test_line(name.line) && !is_named(name.text) {
                let sentence = format!(
                    "Nothing in `{PROGRAM}` makes the provider `{}`, so nobody asks it. Make it \
                     in `role/provider.rs` there, or delete it.",
                    name.text
                );
                findings.push(Finding::new(&source.path, name.line, sentence));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_only_tests_or_nobody_makes_is_found() {
        let provider = format!("{PROVIDERS}new.rs");
        let written = "//! N.\nimpl Provider for New {}\n#[cfg(test)]\nmod tests {\n    impl Provider for Fake {}\n}\n";
        let found = |program: &str| {
            let program = Source::sample(&format!("{PROGRAM}role/provider.rs"), program);
            check(&[Source::sample(&provider, written), program])
        };
        assert_eq!(found("//! P.\nfn start() {\n    New::start();\n}\n"), []);
        for program in [
            "//! P.\nuse New;\n// New::start\n",
            "//! P.\n#[cfg(test)]\nmod tests {\n    New::start();\n}\n",
        ] {
            let found = found(program);
            assert_eq!(found.len(), 1, "{program}");
            assert!(found[0].to_string().contains("new.rs:2: "), "{found:?}");
        }
    }
}
