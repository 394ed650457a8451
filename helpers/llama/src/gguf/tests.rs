//! Headers made by hand, honest and hostile.

use proptest::prelude::*;

use super::*;

/// Writes the parts of a GGUF file.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn text(self, text: &str) -> Self {
        let mut this = self.u64(text.len() as u64);
        this.0.extend(text.as_bytes());
        this
    }

    fn key_text(self, key: &str, value: &str) -> Self {
        self.text(key).u32(8).text(value)
    }

    fn key_number(self, key: &str, value: u32) -> Self {
        self.text(key).u32(4).u32(value)
    }

    /// Magic, version and counts.
    fn start(tensors: u64, keys: u64) -> Self {
        Self(b"GGUF".to_vec()).u32(3).u64(tensors).u64(keys)
    }
}

/// A small honest file: seven keys, an array, one tensor of 8 × 4 floats.
fn honest() -> Vec<u8> {
    let mut bytes = Bytes::start(1, 8)
        .key_text("general.architecture", "llama")
        .key_text("general.name", "Small")
        .key_number("llama.context_length", 8192)
        .key_number("llama.block_count", 30)
        .key_number("llama.embedding_length", 576)
        .key_number("llama.attention.head_count", 9)
        .key_number("llama.attention.head_count_kv", 3);
    bytes = bytes.text("tokens").u32(9).u32(8).u64(2).text("a").text("bc");
    bytes = bytes.text("weight").u32(2).u64(8).u64(4).u32(0).u64(0);
    let mut bytes = bytes.0;
    bytes.resize(bytes.len().next_multiple_of(32) + 8 * 4 * 4, 0);
    bytes
}

fn checked(bytes: &[u8]) -> Result<Header, Flaw> {
    check(bytes, bytes.len() as u64)
}

#[test]
fn reads_what_the_header_says() {
    let header = checked(&honest()).unwrap();
    assert_eq!(header.name(), "Small");
    assert_eq!(header.number("context_length"), Some(8192));
    // 30 layers × 3 heads × (64 + 64) entries × 2 bytes.
    assert_eq!(header.cache_bytes_per_token(), Some(23_040));
}

#[test]
fn any_cut_is_found() {
    let whole = honest();
    for length in 0..whole.len() {
        let flaw = checked(&whole[..length]).unwrap_err();
        assert!(!flaw.to_string().is_empty());
        assert!(!matches!(flaw, Flaw::Read(_)), "at {length}: {flaw:?}");
    }
}

#[test]
fn lies_are_named() {
    let check = |bytes: Vec<u8>, words: &str| {
        let sentence = checked(&bytes).unwrap_err().to_string();
        assert!(sentence.contains(words), "{sentence}");
    };
    check(Vec::new(), "empty");
    check(b"GGML and more".to_vec(), "magic");
    check(Bytes(b"GGUF".to_vec()).u32(1).u64(0).u64(0).0, "version 1");
    check(Bytes(b"GGUF".to_vec()).u32(0x0300_0000).u64(0).u64(0).0, "version");
    check(Bytes::start(u64::MAX, 0).0, "absurd number of tensors");
    check(Bytes::start(0, u64::MAX).0, "absurd number of keys");
    let mut many = Bytes::start(0, 1 << 20).0;
    many.resize(64 << 20, 0);
    check(many, "absurd number of keys");
    let key = || Bytes::start(0, 1);
    let padded = |bytes: Bytes| [bytes.0, vec![0; 64]].concat();
    check(padded(key().u64(u64::MAX)), "absurd key");
    check(padded(key().u64(1 << 40)), "absurd key");
    check(padded(key().text("k").u32(8).u64(u64::MAX)), "absurd string");
    check(padded(key().text("k").u32(8).u64(1 << 20)), "cut off");
    check(padded(key().text("k").u32(99)), "unknown value type 99");
    check(padded(key().text("k").u32(9).u32(4).u64(u64::MAX / 2)), "absurd length of an array");
    check(padded(key().text("k").u32(9).u32(9).u64(1)), "unknown value type 9");
    let tensor = || Bytes::start(1, 0).text("t");
    check(padded(tensor().u32(5)), "absurd number of dimensions");
    check(padded(tensor().u32(1).u64(32).u32(77).u64(0)), "unknown tensor type 77");
    check(padded(tensor().u32(1).u64(u64::MAX).u32(0).u64(0)), "tensors need");
    check(padded(tensor().u32(2).u64(u64::MAX).u64(u64::MAX).u32(0).u64(0)), "tensors need");
    check(padded(tensor().u32(1).u64(4).u32(0).u64(u64::MAX)), "tensors need");
    check(padded(key().key_number("general.alignment", 3)), "absurd alignment");
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        prop_assert!(checked(&bytes).is_err());
    }

    #[test]
    fn random_bytes_behind_a_good_start_never_panic(
        tensors in 0_u64..4,
        keys in 0_u64..4,
        rest in proptest::collection::vec(prop_oneof![Just(0_u8), Just(8), Just(9), any::<u8>()], 0..512),
    ) {
        let bytes = [Bytes::start(tensors, keys).0, rest].concat();
        // Either answer is right; the check only has to come back.
        prop_assert!(checked(&bytes).is_err() || tensors + keys < 8);
    }

    #[test]
    fn one_changed_byte_never_panics(at in 0_usize..400, value in any::<u8>()) {
        let mut bytes = honest();
        let at = at % bytes.len();
        bytes[at] = value;
        // Many changes are harmless; none may do more than be refused.
        prop_assert!(checked(&bytes).map_or_else(|flaw| flaw.to_string().len() < 400, |_| true));
    }
}
