//! Pure: what a model says of itself in its `config.json`, and whether it is understood here.
//! One that is not must never be run by guess.

use serde::Deserialize;

use crate::EmbeddingModelError;

/// What a model says of itself in its `config.json`.
#[derive(Debug, Clone, Deserialize)]
pub struct EncoderConfig {
    model_type: String,
    hidden_act: String,
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) max_position_embeddings: usize,
    pub(crate) vocab_size: usize,
    pub(crate) layer_norm_eps: f32,
}

impl EncoderConfig {
    /// Whether it is one that is understood here, of a size that is taken.
    ///
    /// # Errors
    /// [`EmbeddingModelError::Config`] with what does not fit.
    pub(crate) fn check(&self, pieces: usize) -> Result<(), EmbeddingModelError> {
        let Self { hidden_size, num_attention_heads: heads, .. } = *self;
        let bad = |why: String| Err(EmbeddingModelError::Config { why });
        if self.model_type != "bert" || self.hidden_act != "gelu" {
            let Self { model_type, hidden_act, .. } = self;
            return bad(format!(
                "it is '{model_type}' with '{hidden_act}', not 'bert' with 'gelu'"
            ));
        }
        if !(16..=1024).contains(&hidden_size) || heads == 0 || hidden_size % heads != 0 {
            return bad(format!("{hidden_size} numbers with {heads} heads are not understood"));
        }
        let sizes = [
            (self.intermediate_size, 8192),
            (self.num_hidden_layers, 48),
            (self.max_position_embeddings, 8192),
            (self.vocab_size, 500_000),
        ];
        if sizes.iter().any(|(size, most)| *size == 0 || size > most) {
            return bad("it is too large, or has a size of 0".to_owned());
        }
        if pieces > self.vocab_size {
            return bad(format!("{pieces} pieces of words, and {} are known", self.vocab_size));
        }
        Ok(())
    }
}
