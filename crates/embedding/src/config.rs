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
            (self.intermediate_size, 1..=8192),
            (self.num_hidden_layers, 1..=48),
            // A text has at least its first piece and its last.
            (self.max_position_embeddings, 2..=8192),
            (self.vocab_size, 3..=500_000),
        ];
        if let Some((size, range)) = sizes.iter().find(|(size, range)| !range.contains(size)) {
            return bad(format!(
                "a size of {size} is not from {} to {}",
                range.start(),
                range.end()
            ));
        }
        if pieces > self.vocab_size {
            return bad(format!("{pieces} pieces of words, and {} are known", self.vocab_size));
        }
        Ok(())
    }
}
