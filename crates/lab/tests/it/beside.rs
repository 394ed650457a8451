//! The product becomes the laboratory that lies beside it, and the laboratory finds the
//! product.

use std::path::Path;

use automaton_testkit::world::World;

use super::world;

#[test]
fn what_is_typed_is_read_by_the_laboratory() {
    let world = world();
    for (arguments, code, shown) in [
        (&["drill", "--help"][..], 0, "Usage: automaton drill [OPTIONS] <COMMAND>"),
        (&["--utc", "bench", "work", "-h"], 0, "Usage: automaton bench work [OPTIONS]"),
        (&["bench", "work", "--list", "--task", "audit"], 0, "audit "),
        (&["--json", "bench", "work", "--list"], 0, "\"name\":\"audit\""),
        (&["drill", "money", "--json", "--seed", "x"], 1, "\"code\":\"user\""),
    ] {
        let finished = world.command(arguments).unwrap();
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.stdout.contains(shown), "{shown}: {finished:?}");
    }
    let wrong = world.command(&["bench", "flight"]).unwrap();
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(1), ""), "{wrong:?}");
    assert!(wrong.stderr.contains("'flight'"), "{wrong:?}");
}

#[test]
fn a_laboratory_without_the_product_tells_what_is_missing() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let alone = folder.path().join("automaton-lab");
    std::fs::hard_link(Path::new(env!("CARGO_BIN_EXE_automaton-lab")), &alone).unwrap();
    let finished = World::new(alone).unwrap().command(&["bench", "sandbox"]).unwrap();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("automaton, which is tried and measured,"), "{finished:?}");
}
