//! System services that every process of this program needs: a runtime, its own executable, and a
//! listener.
//!
//! It belongs to no command and must know none.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use automaton_core::error::ErrorClass;

use crate::error::CliError;

/// The time between two tries of a place.
const APART: Duration = Duration::from_millis(200);

/// A runtime for one command, on this thread alone.
///
/// # Errors
/// When the system has no descriptors left.
pub fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::internal("cannot start the runtime", &error))
}

/// Our own executable, which is looked up once and is a value from then on.
///
/// # Errors
/// When the system does not tell.
pub fn executable() -> Result<PathBuf, CliError> {
    std::env::current_exe()
        .map_err(|error| CliError::internal("cannot find the automaton's own executable", &error))
}

/// Checks that nobody has a place that is wanted; where whoever was killed there may take a
/// while to be gone, more than once.
///
/// # Errors
/// When somebody has it each time, or it cannot be had.
pub(crate) fn check_free(place: SocketAddr, mut again: u32) -> Result<(), CliError> {
    loop {
        match TcpListener::bind(place) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::AddrInUse && again > 0 => again -= 1,
            Err(error) => {
                let what = format!("cannot serve at {place}");
                return Err(CliError::new(ErrorClass::Config, what).because(&error));
            }
        }
        std::thread::sleep(APART);
    }
}
