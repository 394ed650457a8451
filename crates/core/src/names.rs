//! Pure: names of the values of an enumeration, and the way back.
//!
//! It must never change a name that is stored: databases and other programs know it.

pub use automaton_derive::Names;
