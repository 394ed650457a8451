//! A model of meanings that a test can foresee: words of one meaning have one vector, and a text
//! has the sum of its words'.
//!
//! It is written in the files of a true one. Its layers do nothing, so that nothing but the words
//! counts.

use std::fs;
use std::io;
use std::path::Path;

/// Numbers of a vector, and of a layer within.
const WIDTH: usize = 16;

/// Writes a model that knows these words, each list of one meaning, into a folder.
///
/// # Errors
/// When a file cannot be written.
pub fn write_model(folder: &Path, meanings: &[&[&str]]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let config = format!(
        r#"{{"model_type":"bert","hidden_act":"gelu","hidden_size":{WIDTH},"intermediate_size":{WIDTH},"num_attention_heads":2,"num_hidden_layers":1,"max_position_embeddings":64,"vocab_size":{},"layer_norm_eps":1e-12}}"#,
        vocabulary(meanings).len()
    );
    fs::write(folder.join("config.json"), config)?;
    fs::write(folder.join("vocab.txt"), vocabulary(meanings).join("\n"))?;
    fs::write(folder.join("model.safetensors"), weights(meanings))
}

fn vocabulary<'a>(meanings: &[&[&'a str]]) -> Vec<&'a str> {
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].into_iter().chain(meanings.concat()).collect()
}

/// The tensors of the format's layout, with the words' directions and zeros elsewhere.
fn weights(meanings: &[&[&str]]) -> Vec<u8> {
    let mut words = vec![0.0_f32; 4 * WIDTH];
    for (nth, meaning) in meanings.iter().enumerate() {
        for _ in *meaning {
            // Two of the numbers, so that the mean is 0 and the layers' norms keep the direction.
            let mut row = [0.0; WIDTH];
            (row[2 * nth % WIDTH], row[(2 * nth + 1) % WIDTH]) = (1.0, -1.0);
            words.extend(row);
        }
    }
    let pieces = vocabulary(meanings).len();
    let norm = |name: &str| {
        [(format!("{name}.weight"), vec![WIDTH], 1.0), (format!("{name}.bias"), vec![WIDTH], 0.0)]
    };
    let dense = |name: &str| {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        [(weight, vec![WIDTH, WIDTH], 0.0), (bias, vec![WIDTH], 0.0)]
    };
    let layer = "encoder.layer.0";
    let parts: Vec<(String, Vec<usize>, f32)> = [
        norm("embeddings.LayerNorm"),
        dense(&format!("{layer}.attention.self.query")),
        dense(&format!("{layer}.attention.self.key")),
        dense(&format!("{layer}.attention.self.value")),
        dense(&format!("{layer}.attention.output.dense")),
        norm(&format!("{layer}.attention.output.LayerNorm")),
        dense(&format!("{layer}.intermediate.dense")),
        dense(&format!("{layer}.output.dense")),
        norm(&format!("{layer}.output.LayerNorm")),
    ]
    .into_iter()
    .flatten()
    .chain([
        ("embeddings.position_embeddings.weight".to_owned(), vec![64, WIDTH], 0.0),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, WIDTH], 0.0),
    ])
    .collect();
    let (mut header, mut data) = (Vec::new(), Vec::new());
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
