//! Pure: JSON without a type stays at the edges.

use crate::tidy::Finding;
use crate::tidy::paths::paths;
use crate::tidy::source::Source;

/// Where untyped JSON may be: what other programs send (such as the error of a node, which may
/// have any form), the schemas and raw
/// arguments of tools, extensions of x402 that are echoed to their server, the file of the configuration with its schema, the cloud's OpenAPI document, and the
/// programs around the product.
const ALLOWED: [&str; 13] = [
    "crates/agent/src/prompt/history.rs",
    "crates/automaton/src/config/",
    "crates/cloud/src/api/table.rs",
    "crates/core/src/arguments.rs",
    "crates/core/src/wire",
    "crates/core/src/tool.rs",
    "crates/inference/src/",
    "crates/tools/src/",
    "crates/lab/src/",
    "crates/wallet/src/rpc/node/refusal.rs",
    "crates/wallet/src/x402/offer.rs",
    "helpers/",
    "xtask/",
];

/// A finding for each mention of `serde_json::Value` or `Map` elsewhere. Tests are free.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    if ALLOWED.iter().any(|prefix| source.path.starts_with(prefix)) {
        return Vec::new();
    }
    let tokens = source.tokens();
    let untyped = paths(&tokens).into_iter().filter(|path| {
        ["Value", "Map", "*"].iter().any(|name| path.is_below(&["serde_json", name]))
    });
    untyped
        .filter(|path| !source.is_test_line(path.line))
        .map(|path| {
            let sentence = "Untyped JSON this far in. Give it a type, or list the file in \
                            xtask/src/tidy/rules/json_value.rs with the reason.";
            Finding::new(&source.path, path.line, sentence)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::{NOTHING, lines_found};

    const DIRTY: &str = "use serde_json::{json,\n Value};\nfn f(a: serde_json::Map<String, u8>) {}";

    #[test]
    fn untyped_json_is_for_the_edges() {
        assert_eq!(lines_found(check, "crates/agent/src/a.rs", DIRTY), [2, 3]);
        for path in ["crates/core/src/wire/brain.rs", "crates/agent/tests/it/main.rs"] {
            assert_eq!(lines_found(check, path, DIRTY), NOTHING, "{path}");
        }
    }

    #[test]
    fn other_values_are_free() {
        let clean = "use crate::Value;\nuse serde_json::to_string;\nenum Map { Value }";
        assert_eq!(lines_found(check, "crates/agent/src/a.rs", clean), NOTHING);
    }
}
