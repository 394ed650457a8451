//! The machine: commands and files, all within the sandbox.

pub(crate) mod edit_file;
pub(crate) mod exec;
pub(crate) mod list_files;
mod nearest;
mod outputs;
pub(crate) mod read_file;
pub(crate) mod read_process;
pub(crate) mod search_files;
pub(crate) mod start_process;
pub(crate) mod stop_process;
pub(crate) mod write_file;

pub(crate) use outputs::head;
