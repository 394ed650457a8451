//! Gives each build an id. Programs in one folder use it to recognise each other.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

/// The sources of the small programs: the sandbox's helper and the signer.
const MADE_OF: [&str; 7] = [
    "src",
    "../core/src",
    "../sqlite/src",
    "../signer/src",
    "../automaton/src/role/signer.rs",
    "../automaton/src/role/launch_config.rs",
    "../../Cargo.lock",
];

fn main() -> io::Result<()> {
    let mut files = BTreeMap::new();
    for path in MADE_OF {
        println!("cargo::rerun-if-changed={path}");
        read(Path::new(path), &mut files)?;
    }
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), files).hash(&mut hasher);
    println!("cargo::rustc-env=AUTOMATON_BUILD={:016x}", hasher.finish());
    Ok(())
}

fn read(path: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    if !path.is_dir() {
        files.insert(path.to_owned(), fs::read(path)?);
        return Ok(());
    }
    fs::read_dir(path)?.try_for_each(|entry| read(&entry?.path(), files))
}
