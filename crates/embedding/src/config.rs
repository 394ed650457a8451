//! Pure: a model's `config.json`, and whether this crate supports it. An unsupported model must
//! never be run by guessing.

use serde::Deserialize;

use crate::EmbeddingModelError;

/// The architecture of a model, which determines the names of its weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncoderFamily {
    /// Devlin et al. 2019.
    Bert,
    /// Song et al. 2020: the distance of two pieces counts too.
    Mpnet,
}

impl EncoderFamily {
    /// Returns the pieces that begin and end each text.
    pub(crate) const fn special_pieces(self) -> [&'static str; 2] {
        match self {
            Self::Bert => ["[CLS]", "[SEP]"],
            Self::Mpnet => ["<s>", "</s>"],
        }
    }

    /// Returns the number of the first position. Lower numbers are not positions.
    pub(crate) const fn first_position(self) -> usize {
        match self {
            Self::Bert => 0,
            Self::Mpnet => 2,
        }
    }
}

/// A model's configuration in its `config.json`.
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
    /// Used by MPNet only.
    #[serde(default)]
    pub(crate) relative_attention_num_buckets: usize,
}

impl EncoderConfig {
    /// Returns the architecture.
    ///
    /// # Errors
    /// Returns [`EmbeddingModelError::Config`] if the architecture is not supported.
    pub(crate) fn family(&self) -> Result<EncoderFamily, EmbeddingModelError> {
        let Self { model_type, hidden_act, .. } = self;
        match (model_type.as_str(), hidden_act.as_str()) {
            ("bert", "gelu") => Ok(EncoderFamily::Bert),
            ("mpnet", "gelu") => Ok(EncoderFamily::Mpnet),
            _ => Err(EmbeddingModelError::Config {
                why: format!(
                    "it is '{model_type}' with '{hidden_act}', not 'bert' or 'mpnet' with 'gelu'"
                ),
            }),
        }
    }

    /// Checks that the model is supported and of a permitted size.
    ///
    /// # Errors
    /// Returns [`EmbeddingModelError::Config`] with the unsupported value.
    pub(crate) fn check(&self, pieces: usize) -> Result<(), EmbeddingModelError> {
        let Self { hidden_size, num_attention_heads: heads, .. } = *self;
        let bad = |why: String| Err(EmbeddingModelError::Config { why });
        let family = self.family()?;
        if !(16..=1024).contains(&hidden_size) || heads == 0 || hidden_size % heads != 0 {
            return bad(format!("{hidden_size} numbers with {heads} heads are not understood"));
        }
        let sizes = [
            (self.intermediate_size, 1..=8192),
            (self.num_hidden_layers, 1..=48),
            // A text has at least its first piece and its last.
            (self.max_position_embeddings, family.first_position() + 2..=8192),
            (self.vocab_size, 3..=500_000),
        ];
        if let Some((size, range)) = sizes.iter().find(|(size, range)| !range.contains(size)) {
            return bad(format!(
                "a size of {size} is not from {} to {}",
                range.start(),
                range.end()
            ));
        }
        let buckets = self.relative_attention_num_buckets;
        if family == EncoderFamily::Mpnet && !(4..=1024).contains(&buckets) {
            return bad(format!("{buckets} buckets of distances are not from 4 to 1024"));
        }
        if pieces > self.vocab_size {
            return bad(format!("{pieces} pieces of words, and {} are known", self.vocab_size));
        }
        Ok(())
    }
}
