//! Files and arguments that are refused with a sentence, exit code 2 or 1.

use std::path::Path;

use automaton_core::wire::brain::{LocalModelFailureCode, LocalModelResponse};

use crate::helper::{Helper, model};

/// Starts on a file and expects a refusal that says `words`.
fn refused(path: &Path, more: &[&str], words: &str) {
    let mut helper = Helper::start(path, more);
    let LocalModelResponse::Failed(failed) = helper.read() else {
        panic!("{} was loaded", path.display())
    };
    assert_eq!(failed.code, LocalModelFailureCode::Model);
    assert!(failed.message.contains(words), "{}", failed.message);
    let (code, said) = helper.end();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&failed.message), "{said}");
}

#[test]
fn bad_files_are_refused_before_the_parser_sees_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    refused(&folder.path().join("missing.gguf"), &[], "could not be opened");
    refused(folder.path(), &[], "not a regular file");
    refused(&file("empty.gguf", b""), &[], "empty");
    refused(&file("text.gguf", b"this is not a model"), &[], "magic");
    refused(
        &file("absurd.gguf", &[b"GGUF\x03\0\0\0".as_slice(), &[255; 16]].concat()),
        &[],
        "absurd",
    );
}

#[test]
fn a_header_without_a_model_is_refused_by_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hollow.gguf");
    std::fs::write(&path, [b"GGUF\x03\0\0\0".as_slice(), &[0; 16]].concat()).unwrap();
    refused(&path, &[], "llama.cpp could not load");
}

#[test]
fn a_model_that_is_cut_off_or_another_one_is_refused() {
    let Some(model) = model() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.gguf");
    let whole = std::fs::read(&model).unwrap();
    for length in [100_000, 1 << 20, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        refused(&path, &[], "cut off");
    }
    refused(&model, &["--sha256", &"0".repeat(64)], "SHA-256");
    refused(&model, &["--memory-bytes", "100000000"], "MiB are allowed");
}

#[test]
fn a_damaged_model_never_takes_more_than_the_process() {
    let Some(model) = model() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.gguf");
    let whole = std::fs::read(&model).unwrap();
    // Somewhere in the keys, in the vocabulary and in the tensors' entries.
    for at in [300, 40_000, 900_000, 1_700_000] {
        let mut bytes = whole.clone();
        bytes[at..at + 64].fill(0xFF);
        std::fs::write(&path, &bytes).unwrap();
        let mut helper = Helper::start(&path, &[]);
        assert!(matches!(
            helper.read(),
            LocalModelResponse::Hello(_) | LocalModelResponse::Failed(_)
        ));
        let (code, said) = helper.end();
        assert!(matches!(code, Some(0 | 2)), "{code:?} {said}");
    }
}

#[test]
fn bad_arguments_are_the_callers_mistake() {
    let check = |more: &[&str], words: &str| {
        let (code, said) = Helper::start(Path::new("/dev/null"), more).end();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(words), "{said}");
    };
    check(&["--frobnicate", "1"], "--frobnicate is unknown");
    check(&["--threads"], "needs a value");
    check(&["--threads", "many"], "whole number");
    check(&["--sha256", "abc"], "64 hex digits");
    check(&["--fd", "0"], "above 2");
    check(&["--fd", "77"], "no connected Unix stream");
}
