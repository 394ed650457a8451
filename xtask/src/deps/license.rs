//! Pure: whether a licence expression can be met with the allowed licences.
//!
//! SPDX expressions (annex D of the SPDX specification): `OR` binds weaker than
//! `AND`, which binds weaker than `WITH`; `/` is the old spelling of `OR`. What
//! cannot be read is not allowed.

use std::collections::BTreeSet;

/// Whether the allowed licences satisfy an expression.
pub(crate) fn allows(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    parser.either() == Some(true) && parser.words.is_empty()
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a BTreeSet<String>,
}

impl Parser<'_> {
    fn either(&mut self) -> Option<bool> {
        let mut met = self.both()?;
        while self.take("OR") {
            let other = self.both()?;
            met |= other;
        }
        Some(met)
    }

    fn both(&mut self) -> Option<bool> {
        let mut met = self.one()?;
        while self.take("AND") {
            let other = self.one()?;
            met &= other;
        }
        Some(met)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let met = self.either()?;
            return self.take(")").then_some(met);
        }
        let mut name = self.word()?.to_owned();
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.word()?);
        }
        Some(self.allowed.contains(&name))
    }

    fn word(&mut self) -> Option<&str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn take(&mut self, word: &str) -> bool {
        let there = self.words.first() == Some(&word);
        if there {
            self.words = &self.words[1..];
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_expressions() {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        let allowed = BTreeSet::from(allowed);
        let cases = [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("ISC AND MIT", true),
            ("MIT OR GPL-3.0 AND GPL-2.0", true),
            ("(MIT OR GPL-3.0) AND GPL-2.0", false),
            ("(MIT OR GPL-3.0) AND ISC", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0", false),
            ("", false),
            ("MIT OR", false),
            ("(MIT", false),
            ("MIT MIT", false),
        ];
        for (expression, met) in cases {
            assert_eq!(allows(expression, &allowed), met, "{expression:?}");
        }
    }
}
