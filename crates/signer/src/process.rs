//! The signing process, from its start until its agents have hung up.
//!
//! The process closes itself to others before it reads the passphrase. It drops the passphrase as
//! soon as the key is open. It gives up network and programs before it answers. It must never log
//! a request or a reply.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use automaton_core::error::{Classified as _, chain};
use automaton_core::faults::Faults;
use automaton_core::time::{Clock, Timestamp};
use automaton_core::window::BootClock;
use automaton_core::wire::x402::TokenDomain;
use automaton_sandbox::process::fd_passing::receive_fd;
use automaton_sandbox::process::{LockError, LockGuard, lock};
use automaton_sandbox::{confine_key_holder, harden};

use crate::creator::CreatorDesk;
use crate::error::SignerError;
use crate::home::SignerHome;
use crate::journal::{ClockStart, SignerLedger};
use crate::keystore::Keystore;
use crate::passphrase::PassphraseSource;
use crate::payload::{Audience, Contract, GasRules};
use crate::protocol::{LineStream, SignerResponse};
use crate::rules;
use crate::seats::SEATS;
use crate::signer::Signer;

/// Interval, and number of tries, to wait for the home's last signer: five seconds in all.
const LOCK_POLL: Duration = Duration::from_millis(50);
const LOCK_TRIES: u32 = 100;

/// The configuration of a signer.
#[derive(Debug)]
pub struct SignerConfig {
    /// The signer's home: keystore, ledger and socket.
    pub home: PathBuf,
    /// The source of the passphrase.
    pub passphrase: PassphraseSource,
    /// The permitted payloads.
    pub permits: SigningPermits,
    /// The time of the chain's last block, read just before. If `None`, the signer assumes that
    /// no time passed since the ledger was last written.
    pub chain: Option<Timestamp>,
}

/// The payloads that a signer may sign. Everything else is refused.
#[derive(Debug, Clone, Default)]
pub struct SigningPermits {
    /// The tokens that may be paid in.
    pub assets: Vec<TokenDomain>,
    /// The servers that the automaton may sign in to.
    pub audiences: Vec<Audience>,
    /// The contracts that may be called.
    pub contracts: Vec<Contract>,
    /// The gas limits of such calls.
    pub gas: GasRules,
}

/// The injected dependencies.
#[derive(Clone)]
pub struct SignerDeps {
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// The clock since boot.
    pub boot: Arc<dyn BootClock>,
    /// Rehearsed crashes at [`FaultPoint::SIGNER`].
    ///
    /// [`FaultPoint::SIGNER`]: automaton_core::faults::FaultPoint::SIGNER
    pub faults: Arc<dyn Faults>,
}

/// The agents that a signer serves.
#[derive(Debug)]
pub enum SignerClients {
    /// Serves the agents at the other ends of these sockets at once, until all have hung up.
    Here(Vec<OwnedFd>),
    /// Serves agents one after the other. Each comes with a socket that is passed over this
    /// one, until it is closed. The key stays open in between.
    Passed(OwnedFd),
}

/// Serves agents until all have hung up. It must be the only task of its process, which cannot
/// start threads or programs or open sockets afterwards.
///
/// # Errors
/// Fails if the process cannot be closed, the key cannot be opened, or an agent breaks the
/// protocol. The agents are told the reason before this returns.
pub fn serve(
    config: SignerConfig,
    parts: SignerDeps,
    agents: SignerClients,
) -> Result<(), SignerError> {
    harden()?;
    let lines = |agent| LineStream::new(UnixStream::from(agent));
    let knocked = |source| SignerError::System { doing: "let an agent in".to_owned(), source };
    let (mut agents, passing) = match agents {
        SignerClients::Here(agents) => (agents.into_iter().map(lines).collect::<Vec<_>>(), None),
        SignerClients::Passed(passing) => {
            let passing = UnixStream::from(passing);
            let first = receive_fd(&passing).map_err(knocked)?;
            (first.into_iter().map(lines).collect(), Some(passing))
        }
    };
    let (desks, _lock) = match open(config, parts, agents.len()) {
        Ok(opened) => opened,
        Err(error) => {
            let reason = chain(&error).to_string();
            let kind = error.kind();
            let hint = error.hint();
            let locked = SignerResponse::Locked { reason, kind, hint };
            for agent in &mut agents {
                // silent-ok: an agent that has gone needs no reason. The caller gets it.
                agent.send(&locked).ok();
            }
            return Err(error);
        }
    };
    let failed = |source| SignerError::System { doing: "serve the agent".to_owned(), source };
    let mut served = Ok(());
    for (desk, agent) in desks.iter().zip(agents) {
        // silent-ok: the thread has panicked. Joining it below reports that.
        desk.agents.send(agent).ok();
    }
    if let (Some(passing), [desk]) = (passing, desks.as_slice()) {
        while let Some(next) = receive_fd(&passing).map_err(knocked)? {
            // silent-ok: as above.
            desk.agents.send(lines(next)).ok();
        }
    }
    let working: Vec<_> = desks.into_iter().map(|desk| desk.thread).collect();
    for thread in working {
        // Every agent is served until it hangs up, even if another one fails.
        let panicked = |_| Err(io::Error::other("a thread of the signer panicked"));
        served = served.and(thread.join().unwrap_or_else(panicked).map_err(failed));
    }
    served
}

/// A thread that serves the agents given to it, one after the other.
struct SignerThread {
    agents: SyncSender<LineStream<UnixStream>>,
    thread: JoinHandle<io::Result<()>>,
}

/// Locks a home. A signer whose agents were killed ends soon. Until it has, the next one waits, at
/// most `tries` times [`LOCK_POLL`].
fn lock_within(path: &Path, tries: u32) -> Result<LockGuard, LockError> {
    let mut tried = 0;
    loop {
        match lock(path) {
            Err(LockError::Held { .. }) if tried < tries => tried += 1,
            taken => return taken,
        }
        thread::sleep(LOCK_POLL);
    }
}

/// Opens the key and the ledger, starts to listen for the creator, and then confines the process
/// to signing. No thread can start after that, so the agents' threads are started here.
fn open(
    config: SignerConfig,
    parts: SignerDeps,
    agents: usize,
) -> Result<(Vec<SignerThread>, LockGuard), SignerError> {
    let home = SignerHome::open(&config.home)?;
    let guard = lock_within(&home.lock(), LOCK_TRIES)?;
    // Read before the passphrase, since typing that may take hours.
    let beginning = ClockStart::now(&parts, config.chain)?;
    let keystore = Keystore::read(&home.keystore())?;
    let key = {
        let passphrase = config.passphrase.read()?;
        keystore.unlock(&passphrase)?
    };
    let mut journal = SignerLedger::open(&home.ledger(), Arc::clone(&parts.faults), beginning)?;
    journal.set_wallet(key.address())?;
    journal.admit(&config.home, &rules::permit_lines(&config.permits))?;
    let listener = bind(&home.creator_socket())?;
    let boot = Arc::clone(&parts.boot);
    let signer = Arc::new(Signer::new(key, journal, config.permits, parts));
    let desks = (0..agents).map(|_| spawn_agent_thread(&signer)).collect::<io::Result<_>>();
    let creators = Arc::new((listener, CreatorDesk::new(keystore, Arc::clone(&signer), boot)));
    let started = desks.and_then(|desks| {
        // One thread more than there are seats, so that a newcomer can be let in.
        for _ in 0..=SEATS {
            let creators = Arc::clone(&creators);
            let thread = thread::Builder::new().name("creator".to_owned());
            thread.spawn(move || creators.1.serve(&creators.0))?;
        }
        Ok(desks)
    });
    let desks = started.map_err(|source| SignerError::System {
        doing: "start the signer's threads".to_owned(),
        source,
    })?;
    confine_key_holder()?;
    Ok((desks, guard))
}

fn spawn_agent_thread(signer: &Arc<Signer>) -> io::Result<SignerThread> {
    let (agents, given) = sync_channel::<LineStream<UnixStream>>(1);
    let signer = Arc::clone(signer);
    // An agent that breaks the protocol is hung up on. The result of the last agent is returned.
    let serve = move || {
        let mut served = Ok(());
        for mut agent in given {
            served = signer.converse(&mut agent, |request| signer.answer(request));
        }
        served
    };
    let thread = thread::Builder::new().name("agent".to_owned()).spawn(serve)?;
    Ok(SignerThread { agents, thread })
}

/// Binds the creator's socket. An existing socket belongs to a dead signer, since this process
/// holds the lock on the home.
fn bind(path: &Path) -> Result<UnixListener, SignerError> {
    let make = || {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    };
    let doing = || format!("make the creator's socket {}", path.display());
    make().map_err(|source| SignerError::System { doing: doing(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_waited_for_until_its_last_signer_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signer.lock");
        let last = lock(&path).unwrap();
        assert!(matches!(lock_within(&path, 2), Err(LockError::Held { .. })));
        let ending = thread::spawn(move || drop(last));
        lock_within(&path, LOCK_TRIES).unwrap();
        ending.join().unwrap();
    }
}
