//! Views of the list of views.

use schemars::JsonSchema;
use serde::Serialize;

use super::{OutputForm, OutputView};

/// The name of an output, with its content.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct OutputNameView {
    /// The name for `schema --output`.
    name: &'static str,
    /// True if the command prints one such object a line.
    lines: bool,
    /// The content, in one phrase.
    about: &'static str,
}

impl From<&OutputView> for OutputNameView {
    fn from(view: &OutputView) -> Self {
        let OutputView { name, form, about, .. } = *view;
        Self { name, lines: form == OutputForm::Lines, about }
    }
}
