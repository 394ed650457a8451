//! The creator's hand: shows and sets the ceilings, over a socket of its own while
//! a signer runs.
//!
//! Every request carries the passphrase. Wrong ones in a row are counted, and each
//! makes the next wait longer. The key itself
//! must never leave by this way: `automaton export-key` opens the keystore.

use std::cell::Cell;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use automaton_core::faults::NoFaults;
use automaton_core::secret::Secret;
use automaton_core::time::Timestamp;
use automaton_sandbox::process::lock;

use crate::ceiling::{Change, Standing};
use crate::client::{ClientError, greet, unexpected};
use crate::error::{Code, Refusal, SignerError};
use crate::home::Home;
use crate::journal::Journal;
use crate::keystore::Keystore;
use crate::protocol::{CreatorRequest, Lines, Reply};
use crate::signer::Signer;

/// How long the creator's command may take to send a request or take a reply.
const IO_MAX: Duration = Duration::from_secs(10);

/// The longest wait after wrong passphrases.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How long to rest when no connection can be taken, as when descriptors ran out.
const REST: Duration = Duration::from_millis(200);

/// A connection of the creator's command to a running signer.
pub struct Creator(Lines<UnixStream>);

impl Creator {
    /// Connects to the signer that serves from this home.
    ///
    /// # Errors
    /// `Gone` when none does.
    pub fn connect(home: &Home) -> Result<Self, ClientError> {
        let (lines, _) = greet(UnixStream::connect(home.creator_socket())?)?;
        Ok(Self(lines))
    }

    /// Changes the ceilings, if that is asked, and tells what holds then.
    ///
    /// # Errors
    /// `Refused` when the passphrase is wrong; after wrong ones the answer takes
    /// up to a minute.
    pub fn limits(&mut self, passphrase: &Secret, set: Change) -> Result<Standing, ClientError> {
        let passphrase = passphrase.reveal().to_owned().into();
        self.0.send(&CreatorRequest { passphrase, set })?;
        match self.0.receive()? {
            Reply::Limits(standing) => Ok(standing),
            other => Err(unexpected(other)),
        }
    }
}

/// The same where no signer runs: in its ledger, under its lock. The key stays
/// encrypted.
///
/// # Errors
/// When the passphrase is wrong, a signer runs after all, or its home cannot be used.
pub fn limits_at_rest(
    home: &Home,
    passphrase: &Secret,
    set: Change,
    now: Timestamp,
) -> Result<Standing, SignerError> {
    let _guard = lock(&home.lock())?;
    Keystore::read(&home.keystore())?.check(passphrase)?;
    let mut journal = Journal::open(&home.ledger(), Arc::new(NoFaults))?;
    Ok(journal.change(set, now)?)
}

/// Answers the creator, one connection after the other, until the process ends.
pub(crate) fn listen(listener: &UnixListener, keystore: &Keystore, signer: &Signer) {
    // Whoever can end this process to forget the count can also try passphrases
    // on the keystore itself: what slows him down there is scrypt.
    let wrong_in_a_row = Cell::new(0_u32);
    for stream in listener.incoming() {
        match stream {
            // silent-ok: a command that went away has nobody to tell it to.
            Ok(stream) => drop(converse(stream, (keystore, signer), &wrong_in_a_row)),
            Err(_) => thread::sleep(REST),
        }
    }
}

fn converse(
    stream: UnixStream,
    (keystore, signer): (&Keystore, &Signer),
    wrong: &Cell<u32>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(IO_MAX))?;
    stream.set_write_timeout(Some(IO_MAX))?;
    signer.converse(&mut Lines::new(stream), |mut request: CreatorRequest| {
        let passphrase = Secret::new(std::mem::take(&mut *request.passphrase));
        thread::sleep(wait_after(wrong.get()));
        if keystore.check(&passphrase).is_err() {
            wrong.set(wrong.get().saturating_add(1));
            return Err(Refusal::new(Code::Passphrase, "the passphrase is wrong"));
        }
        wrong.set(0);
        Ok(Reply::Limits(signer.journal()?.change(request.set, signer.now())?))
    })
}

/// Nothing at first, then a second, doubled with each further wrong one.
fn wait_after(wrong: u32) -> Duration {
    let Some(doublings) = wrong.checked_sub(1) else { return Duration::ZERO };
    let seconds = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    Duration::from_secs(seconds).min(WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrong_passphrase_doubles_the_wait_up_to_a_minute() {
        let waits: Vec<u64> = (0..9).map(|wrong| wait_after(wrong).as_secs()).collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(wait_after(64), WAIT_MAX);
        assert_eq!(wait_after(u32::MAX), WAIT_MAX);
    }
}
