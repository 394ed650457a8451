//! Staying alive: rest, and a look at oneself.

pub(crate) mod sleep;
pub(crate) mod system_synopsis;
