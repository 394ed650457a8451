//! The machine: commands and files, all within the sandbox.

pub(crate) mod exec;
pub(crate) mod read_file;
pub(crate) mod write_file;
