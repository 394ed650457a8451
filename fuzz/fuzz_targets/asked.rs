#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| automaton_testkit::fuzz::asked(bytes));
