//! An embedding model that a test can predict: words of one meaning have the same vector, and a
//! text has the sum of its words' vectors.
//!
//! It is written in the files of a real model. Its layers have no effect, so only the words
//! count.

use std::fs;
use std::io;
use std::path::Path;

/// The dimensions of a vector, and of a hidden layer.
const WIDTH: usize = 16;

/// The number of MPNet's distance buckets.
const BUCKETS: usize = 8;

/// Writes a model that knows these words into a folder. Each list has one meaning.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn write_model(folder: &Path, meanings: &[&[&str]]) -> io::Result<()> {
    write(folder, meanings, "bert", ["[CLS]", "[SEP]"])
}

/// Writes a model of the MPNet family.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn write_mpnet_model(folder: &Path, meanings: &[&[&str]]) -> io::Result<()> {
    write(folder, meanings, "mpnet", ["<s>", "</s>"])
}

fn write(folder: &Path, meanings: &[&[&str]], family: &str, marks: [&str; 2]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let special = ["[PAD]", "[UNK]", marks[0], marks[1]].into_iter();
    let vocabulary: Vec<&str> = special.chain(meanings.concat()).collect();
    let config = format!(
        r#"{{"model_type":"{family}","hidden_act":"gelu","hidden_size":{WIDTH},"intermediate_size":{WIDTH},"num_attention_heads":2,"num_hidden_layers":1,"max_position_embeddings":64,"vocab_size":{},"layer_norm_eps":1e-12,"relative_attention_num_buckets":{BUCKETS}}}"#,
        vocabulary.len()
    );
    fs::write(folder.join("config.json"), config)?;
    fs::write(folder.join("vocab.txt"), vocabulary.join("\n"))?;
    fs::write(folder.join("model.safetensors"), weights(meanings, family == "mpnet"))
}

/// Returns the tensors in the format's layout, with the words' directions and zeros elsewhere.
fn weights(meanings: &[&[&str]], is_mpnet: bool) -> Vec<u8> {
    let mut words = vec![0.0_f32; 4 * WIDTH];
    for (nth, meaning) in meanings.iter().enumerate() {
        for _ in *meaning {
            // Two of the numbers, so that the mean is 0 and the layers' norms keep the direction.
            let mut row = [0.0; WIDTH];
            (row[2 * nth % WIDTH], row[(2 * nth + 1) % WIDTH]) = (1.0, -1.0);
            words.extend(row);
        }
    }
    let pieces = words.len() / WIDTH;
    let norm = |name: &str| {
        [(format!("{name}.weight"), vec![WIDTH], 1.0), (format!("{name}.bias"), vec![WIDTH], 0.0)]
    };
    let dense = |name: &str| {
        let weight = format!("{name}.weight");
        let bias = format!("{name}.bias");
        [(weight, vec![WIDTH, WIDTH], 0.0), (bias, vec![WIDTH], 0.0)]
    };
    let layer = "encoder.layer.0";
    let [query, key, value, attended, attended_norm] = match is_mpnet {
        false => ["self.query", "self.key", "self.value", "output.dense", "output.LayerNorm"],
        true => ["attn.q", "attn.k", "attn.v", "attn.o", "LayerNorm"],
    };
    let other = match is_mpnet {
        false => ("embeddings.token_type_embeddings.weight", vec![2, WIDTH]),
        true => ("encoder.relative_attention_bias.weight", vec![BUCKETS, 2]),
    };
    let parts: Vec<(String, Vec<usize>, f32)> = [
        norm("embeddings.LayerNorm"),
        dense(&format!("{layer}.attention.{query}")),
        dense(&format!("{layer}.attention.{key}")),
        dense(&format!("{layer}.attention.{value}")),
        dense(&format!("{layer}.attention.{attended}")),
        norm(&format!("{layer}.attention.{attended_norm}")),
        dense(&format!("{layer}.intermediate.dense")),
        dense(&format!("{layer}.output.dense")),
        norm(&format!("{layer}.output.LayerNorm")),
    ]
    .into_iter()
    .flatten()
    .chain([
        ("embeddings.position_embeddings.weight".to_owned(), vec![64, WIDTH], 0.0),
        (other.0.to_owned(), other.1, 0.0),
    ])
    .collect();
    let mut header = Vec::new();
    let mut data = Vec::new();
    let mut add = |name: String, shape: Vec<usize>, numbers: Vec<f32>| {
        let from = data.len();
        data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let to = data.len();
        header.push(format!(
            r#""{name}":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{from},{to}]}}"#
        ));
    };
    add("embeddings.word_embeddings.weight".to_owned(), vec![pieces, WIDTH], words);
    for (name, shape, number) in parts {
        let count = shape.iter().product();
        add(name, shape, vec![number; count]);
    }
    let header = format!("{{{}}}", header.join(","));
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &data].concat()
}
