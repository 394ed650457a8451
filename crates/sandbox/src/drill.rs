//! Takes single layers away, to show what each of them stops.
//!
//! For the tests of this crate only. A plan built from such defences must never
//! be launched with a program that is not part of a test.

use crate::spec::{Defence, Defences};

/// All layers but these.
#[must_use]
pub fn without(layers: &[Defence]) -> Defences {
    Defences::except(layers)
}
