//! What fuzzers have come upon still holds.

use std::fs;
use std::path::Path;

use automaton_testkit::fuzz::target;

#[test]
fn what_was_found_by_fuzzing_holds() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora/fuzz");
    for name in ["guard", "command", "path", "call", "asked", "reply"] {
        let check = target(name).unwrap();
        let mut files = 0;
        for file in fs::read_dir(corpora.join(name)).unwrap() {
            check(&fs::read(file.unwrap().path()).unwrap());
            files += 1;
        }
        assert!(files >= 20, "{name} has {files} files");
    }
    assert!(target("nothing").is_none());
}
