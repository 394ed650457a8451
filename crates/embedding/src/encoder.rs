//! Pure except for reading: a small encoder of the BERT or MPNet family on the CPU, with weights of
//! eight bits.
//!
//! It has post-norm transformer layers as in Devlin et al. 2019. A text's vector is the mean of
//! its pieces, or its first piece (Reimers and Gurevych 2019). Each row of weights and each row
//! of input has its own scale (symmetric, rounded to nearest). Products are summed as integers.
//! It uses one thread, and no tables beyond the weights. It must never take a file for another
//! model: every shape is compared with the configuration.

#![expect(clippy::float_arithmetic, reason = "a neural network; nothing of money is here")]

use std::io::{Read, Seek};

use automaton_core::embedding::EmbeddingVector;

use crate::config::EncoderFamily;
use crate::relative::RelativeBias;
use crate::safetensors::Tensors;
use crate::{EmbeddingModelError, EncoderConfig, WordPieces};

/// The most pieces of a text that are read. Models of this family were trained with 128 to 512.
const PIECES_MAX: usize = 256;

/// The largest integer of a stored weight.
const WEIGHT_MAX: f32 = 127.0;

/// The largest integer of an input. Times 127 and the longest row (8,192), it gives the largest
/// sum that fits into 32 bits.
const INPUT_MAX: f32 = 2_047.0;

/// The way to compute a text's vector from those of its pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of all pieces.
    Mean,
    /// The first piece.
    First,
}

/// Rows of weights as integers, each with its scale.
#[derive(Debug)]
struct QuantizedRows {
    columns: usize,
    weights: Vec<i8>,
    scales: Vec<f32>,
}

impl QuantizedRows {
    fn new(numbers: &[f32], columns: usize) -> Self {
        let mut weights = Vec::with_capacity(numbers.len());
        let mut scales = Vec::new();
        for row in numbers.chunks_exact(columns) {
            let (whole, scale) = to_bytes(row);
            weights.extend(whole);
            scales.push(scale);
        }
        Self { columns, weights, scales }
    }
}

/// A linear layer: weights and a bias.
#[derive(Debug)]
struct Linear {
    rows: QuantizedRows,
    bias: Vec<f32>,
}

impl Linear {
    fn apply(&self, input: &[f32], output: &mut Vec<f32>) {
        let columns = self.rows.columns;
        let width = self.bias.len();
        let texts = input.len() / columns;
        let scale_of_input = |row| scale_of(row, INPUT_MAX);
        let scales: Vec<f32> = input.chunks_exact(columns).map(scale_of_input).collect();
        let rows = input.chunks_exact(columns).zip(&scales);
        let whole: Vec<i16> = rows
            .flat_map(|(row, scale)| row.iter().map(|number| to_whole(*number, *scale)))
            .collect();
        output.clear();
        output.resize(texts * width, 0.0);
        let mut wide = vec![0_i16; columns];
        let weights = self.rows.weights.chunks_exact(columns).zip(&self.rows.scales);
        for (at, ((weights, scale), bias)) in weights.zip(&self.bias).enumerate() {
            wide.iter_mut().zip(weights).for_each(|(wide, weight)| *wide = i16::from(*weight));
            let inputs = whole.chunks_exact(columns).zip(&scales);
            for ((input, input_scale), row) in inputs.zip(output.chunks_exact_mut(width)) {
                row[at] = to_float(dot(input, &wide)) * (input_scale * scale) + bias;
            }
        }
    }
}

/// Returns the sum of the products, which no row is long enough to overflow. The compiler
/// vectorises it as long as nothing checks each step.
fn dot(left: &[i16], right: &[i16]) -> i32 {
    let products = left.iter().zip(right).map(|(left, right)| i32::from(*left) * i32::from(*right));
    products.fold(0, i32::wrapping_add)
}

#[expect(clippy::cast_precision_loss, reason = "at most 8192 x 127 x 2047, which is near enough")]
const fn to_float(sum: i32) -> f32 {
    sum as f32
}

/// Returns the value of one integer step of a row, if its largest number becomes `whole_max`.
fn scale_of(row: &[f32], whole_max: f32) -> f32 {
    row.iter().fold(0.0_f32, |most, number| most.max(number.abs())) / whole_max
}

#[expect(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
fn to_whole(number: f32, scale: f32) -> i16 {
    if scale > 0.0 { (number / scale).round() as i16 } else { 0 }
}

/// Returns the integers of a row of weights or of a vector, with the value of one step.
#[expect(clippy::cast_possible_truncation, reason = "none is larger than the largest weight")]
fn to_bytes(row: &[f32]) -> (impl Iterator<Item = i8>, f32) {
    let scale = scale_of(row, WEIGHT_MAX);
    (row.iter().map(move |number| to_whole(*number, scale) as i8), scale)
}

/// Layer normalisation: rows get mean 0 and variance 1, then a learned scale and offset.
#[derive(Debug)]
struct LayerNorm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl LayerNorm {
    fn apply(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.weight.len()) {
            let mean = mean_of(row.iter().copied());
            let variance = mean_of(row.iter().map(|number| (number - mean).powi(2)));
            let spread = 1.0 / (variance + self.epsilon).sqrt();
            for ((number, weight), bias) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
                *number = (*number - mean) * spread * weight + bias;
            }
        }
    }
}

fn mean_of(numbers: impl ExactSizeIterator<Item = f32>) -> f32 {
    let count = u16::try_from(numbers.len()).unwrap_or(u16::MAX);
    numbers.sum::<f32>() / f32::from(count.max(1))
}

/// The Gaussian error linear unit, by the error function of Abramowitz and Stegun 7.1.26. Its
/// error is at most 1.5e-7.
fn gelu(number: f32) -> f32 {
    let at = (number * std::f32::consts::FRAC_1_SQRT_2).abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * at);
    let terms = [1.061_405_4, -1.453_152, 1.421_413_8, -0.284_496_74, 0.254_829_6];
    let sum = terms.iter().fold(0.0, |sum, term| (sum + term) * t);
    let erf = (1.0 - sum * (-at * at).exp()).copysign(number);
    0.5 * number * (1.0 + erf)
}

/// One transformer layer.
#[derive(Debug)]
struct EncoderLayer {
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: LayerNorm,
    up: Linear,
    down: Linear,
    output_norm: LayerNorm,
}

impl EncoderLayer {
    fn apply(&self, rows: &mut [f32], heads: usize, bias: Option<&RelativeBias>) {
        let width = self.attended.bias.len();
        let mut query = Vec::new();
        let mut key = Vec::new();
        let mut value = Vec::new();
        self.query.apply(rows, &mut query);
        self.key.apply(rows, &mut key);
        self.value.apply(rows, &mut value);
        let attended = attention([&query, &key, &value], width, heads, bias);
        let mut output = query;
        self.attended.apply(&attended, &mut output);
        add(rows, &output);
        self.attended_norm.apply(rows);
        let mut inner = key;
        self.up.apply(rows, &mut inner);
        inner.iter_mut().for_each(|number| *number = gelu(*number));
        self.down.apply(&inner, &mut output);
        add(rows, &output);
        self.output_norm.apply(rows);
    }
}

fn add(rows: &mut [f32], more: &[f32]) {
    rows.iter_mut().zip(more).for_each(|(number, more)| *number += more);
}

/// Computes scaled dot-product attention of each head (Vaswani et al. 2017), with the bias of
/// distances.
fn attention(
    [query, key, value]: [&[f32]; 3],
    width: usize,
    heads: usize,
    bias: Option<&RelativeBias>,
) -> Vec<f32> {
    let texts = query.len() / width;
    let size = width / heads;
    let root = f32::from(u16::try_from(size).unwrap_or(u16::MAX)).sqrt();
    let mut output = vec![0.0; query.len()];
    let mut turned = vec![0.0; size * texts];
    let mut weights = vec![0.0; texts];
    for (head, from) in (0..width).step_by(size).enumerate() {
        for (at, row) in key.chunks_exact(width).enumerate() {
            row[from..from + size]
                .iter()
                .enumerate()
                .for_each(|(n, k)| turned[n * texts + at] = *k);
        }
        let rows = query.chunks_exact(width).zip(output.chunks_exact_mut(width));
        for (at, (query, output)) in rows.enumerate() {
            weights.fill(0.0);
            for (number, keys) in query[from..from + size].iter().zip(turned.chunks_exact(texts)) {
                weights.iter_mut().zip(keys).for_each(|(sum, key)| *sum += number * key);
            }
            if let Some(bias) = bias {
                let more = bias.row(head, at, texts).iter().zip(&mut weights);
                more.for_each(|(bias, weight)| *weight += bias * root);
            }
            softmax(&mut weights, root);
            let output = &mut output[from..from + size];
            for (weight, value) in weights.iter().zip(value.chunks_exact(width)) {
                let value = &value[from..from + size];
                output.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value);
            }
        }
    }
    output
}

fn softmax(numbers: &mut [f32], root: f32) {
    let most = numbers.iter().copied().fold(f32::MIN, f32::max);
    numbers.iter_mut().for_each(|number| *number = ((*number - most) / root).exp());
    let sum: f32 = numbers.iter().sum();
    numbers.iter_mut().for_each(|number| *number /= sum);
}

/// A model that computes vectors of texts.
#[derive(Debug)]
pub struct SentenceEncoder {
    pieces: WordPieces,
    pooling: Pooling,
    heads: usize,
    pieces_max: usize,
    words: QuantizedRows,
    /// The position embeddings, with the embedding of the first segment added to each.
    positions: Vec<f32>,
    bias: Option<RelativeBias>,
    norm: LayerNorm,
    layers: Vec<EncoderLayer>,
}

impl SentenceEncoder {
    /// Reads the weights of a model.
    ///
    /// # Errors
    /// Fails if its files do not fit together.
    pub fn read(
        config: &EncoderConfig,
        pieces: WordPieces,
        pooling: Pooling,
        file: impl Read + Seek,
    ) -> Result<Self, EmbeddingModelError> {
        config.check(pieces.len())?;
        let family = config.family()?;
        let mut reader = WeightReader { tensors: Tensors::open(file)?, config, family };
        let width = config.hidden_size;
        let words =
            reader.numbers("embeddings.word_embeddings.weight", &[config.vocab_size, width])?;
        let skipped = family.first_position();
        let pieces_max = (config.max_position_embeddings - skipped).min(PIECES_MAX);
        let shape = [config.max_position_embeddings, width];
        let mut positions = reader.numbers("embeddings.position_embeddings.weight", &shape)?;
        positions.drain(..skipped * width);
        positions.truncate(pieces_max * width);
        let heads = config.num_attention_heads;
        let bias = match family {
            EncoderFamily::Bert => {
                let name = "embeddings.token_type_embeddings.weight";
                let kinds = reader.tensors.shape(name)?.first().copied().unwrap_or_default();
                let kinds = reader.numbers(name, &[kinds, width])?;
                let first = &kinds[..width.min(kinds.len())];
                positions.chunks_exact_mut(width).for_each(|row| add(row, first));
                None
            }
            EncoderFamily::Mpnet => {
                let shape = [config.relative_attention_num_buckets, heads];
                let table = reader.numbers("encoder.relative_attention_bias.weight", &shape)?;
                Some(RelativeBias::new(&table, heads, pieces_max))
            }
        };
        Ok(Self {
            pieces,
            pooling,
            heads,
            pieces_max,
            words: QuantizedRows::new(&words, width),
            positions,
            bias,
            norm: reader.norm("embeddings.LayerNorm")?,
            layers: (0..config.num_hidden_layers)
                .map(|layer| reader.layer(&format!("encoder.layer.{layer}")))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns the vector of a text. Of a long text only the beginning counts.
    pub fn encode(&self, text: &str) -> EmbeddingVector {
        let width = self.words.columns;
        let pieces = self.pieces.split_text(text, self.pieces_max);
        let mut rows = Vec::with_capacity(pieces.len() * width);
        for piece in &pieces {
            let scale = self.words.scales[*piece];
            let word = &self.words.weights[piece * width..(piece + 1) * width];
            rows.extend(word.iter().map(|weight| f32::from(*weight) * scale));
        }
        let places = rows.len();
        add(&mut rows, &self.positions[..places]);
        self.norm.apply(&mut rows);
        let bias = self.bias.as_ref();
        self.layers.iter().for_each(|layer| layer.apply(&mut rows, self.heads, bias));
        if self.pooling == Pooling::Mean {
            let (first, rest) = rows.split_at_mut(width);
            rest.chunks_exact(width).for_each(|row| add(first, row));
        }
        quantized(&rows[..width])
    }
}

/// Returns an integer vector with the same direction. The length is not kept.
pub fn quantized(numbers: &[f32]) -> EmbeddingVector {
    EmbeddingVector::new(to_bytes(numbers).0.collect())
}

/// Reads the weights of layers by their names.
struct WeightReader<'a, R> {
    tensors: Tensors<R>,
    config: &'a EncoderConfig,
    family: EncoderFamily,
}

impl<R: Read + Seek> WeightReader<'_, R> {
    fn numbers(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EmbeddingModelError> {
        self.tensors.read(name, shape)
    }

    fn linear(
        &mut self,
        name: &str,
        to: usize,
        from: usize,
    ) -> Result<Linear, EmbeddingModelError> {
        let weights = self.numbers(&format!("{name}.weight"), &[to, from])?;
        let bias = self.numbers(&format!("{name}.bias"), &[to])?;
        Ok(Linear { rows: QuantizedRows::new(&weights, from), bias })
    }

    fn norm(&mut self, name: &str) -> Result<LayerNorm, EmbeddingModelError> {
        let shape = [self.config.hidden_size];
        Ok(LayerNorm {
            weight: self.numbers(&format!("{name}.weight"), &shape)?,
            bias: self.numbers(&format!("{name}.bias"), &shape)?,
            epsilon: self.config.layer_norm_eps,
        })
    }

    fn layer(&mut self, name: &str) -> Result<EncoderLayer, EmbeddingModelError> {
        let width = self.config.hidden_size;
        let inner = self.config.intermediate_size;
        let [query, key, value, attended, norm] = match self.family {
            EncoderFamily::Bert => {
                ["self.query", "self.key", "self.value", "output.dense", "output.LayerNorm"]
            }
            EncoderFamily::Mpnet => ["attn.q", "attn.k", "attn.v", "attn.o", "LayerNorm"],
        };
        Ok(EncoderLayer {
            query: self.linear(&format!("{name}.attention.{query}"), width, width)?,
            key: self.linear(&format!("{name}.attention.{key}"), width, width)?,
            value: self.linear(&format!("{name}.attention.{value}"), width, width)?,
            attended: self.linear(&format!("{name}.attention.{attended}"), width, width)?,
            attended_norm: self.norm(&format!("{name}.attention.{norm}"))?,
            up: self.linear(&format!("{name}.intermediate.dense"), inner, width)?,
            down: self.linear(&format!("{name}.output.dense"), width, inner)?,
            output_norm: self.norm(&format!("{name}.output.LayerNorm"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_activation_is_that_of_its_definition() {
        // x / 2 (1 + erf(x / sqrt 2)), by tables of the normal distribution.
        for (x, y) in [(0.0, 0.0), (1.0, 0.841_345), (-1.0, -0.158_655), (3.0, 2.995_95)] {
            assert!((gelu(x) - y).abs() < 1e-4, "{x}: {}", gelu(x));
        }
    }

    #[test]
    fn a_query_looks_at_the_key_that_is_like_it() {
        // Two heads of two numbers. Each text has its own value.
        let query = [9.0, 0.0, 0.0, 9.0, 0.0, 9.0, 9.0, 0.0];
        let value = [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0];
        let found = attention([&query, &query, &value], 4, 2, None);
        for (found, value) in found.iter().zip(value) {
            assert!((found - value).abs() < 1e-3, "{found} {value}");
        }
    }

    #[test]
    fn what_is_small_beside_much_is_not_lost_and_the_longest_row_does_not_overflow() {
        let linear = |weights: &[f32]| Linear {
            rows: QuantizedRows::new(weights, weights.len()),
            bias: vec![0.0],
        };
        let mut found = Vec::new();
        linear(&[0.0, 1.0]).apply(&[500.0, 1.0], &mut found);
        assert!((found[0] - 1.0).abs() < 0.05, "{}", found[0]);
        linear(&[1.0; 8_192]).apply(&[1.0; 8_192], &mut found);
        assert!((found[0] - 8_192.0).abs() < 1.0, "{}", found[0]);
    }

    proptest! {
        #[test]
        fn whole_numbers_are_near_enough(
            weights in prop::collection::vec(-2.0_f32..2.0, 24), input in prop::collection::vec(-5.0_f32..5.0, 16),
        ) {
            let linear = Linear { rows: QuantizedRows::new(&weights, 8), bias: vec![1.0, 2.0, 3.0] };
            let mut found = Vec::new();
            linear.apply(&input, &mut found);
            for (text, row) in input.chunks(8).zip(found.chunks(3)) {
                for (at, found) in row.iter().enumerate() {
                    let products = text.iter().zip(&weights[at * 8..]).map(|(x, w)| x * w);
                    let wanted = products.sum::<f32>() + linear.bias[at];
                    // Each factor may lose half a step of 127.
                    prop_assert!((found - wanted).abs() < 8.0 * 10.0 / 127.0, "{} {}", found, wanted);
                }
            }
        }

        #[test]
        fn a_norm_leaves_no_mean_and_no_spread(mut row in prop::collection::vec(-9.0_f32..9.0, 8)) {
            prop_assume!(row.iter().any(|number| (number - row[0]).abs() > 0.1));
            LayerNorm { weight: vec![1.0; 8], bias: vec![0.0; 8], epsilon: 1e-12 }.apply(&mut row);
            prop_assert!(mean_of(row.iter().copied()).abs() < 1e-3);
            prop_assert!((mean_of(row.iter().map(|number| number * number)) - 1.0).abs() < 1e-2);
        }
    }
}
