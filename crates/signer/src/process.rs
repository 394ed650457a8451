//! The signing process, from its start to the end of its agents.
//!
//! It closes itself before it reads the passphrase, drops the passphrase as
//! soon as the key is open, and gives up network and programs before it answers.
//! It must never log what it is asked or what it answers.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use automaton_core::error::{Classified as _, chain};
use automaton_core::faults::Faults;
use automaton_core::time::{Clock, Timestamp};
use automaton_core::window::BootClock;
use automaton_core::wire::x402::TokenDomain;
use automaton_sandbox::process::fd_passing::receive_fd;
use automaton_sandbox::process::{LockGuard, lock};
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

/// What a signer serves with.
#[derive(Debug)]
pub struct SignerConfig {
    /// Its home: keystore, ledger, socket.
    pub home: PathBuf,
    /// Where the passphrase is.
    pub passphrase: PassphraseSource,
    /// What it may sign.
    pub permits: SigningPermits,
    /// The time of the chain's last block, read just before; without it, no time
    /// passed since the ledger was last written.
    pub chain: Option<Timestamp>,
}

/// What a signer may sign, beyond which it refuses.
#[derive(Debug, Clone, Default)]
pub struct SigningPermits {
    /// The tokens that may be paid in.
    pub assets: Vec<TokenDomain>,
    /// Whom the automaton may sign in to.
    pub audiences: Vec<Audience>,
    /// The contracts that may be called.
    pub contracts: Vec<Contract>,
    /// What such calls may cost.
    pub gas: GasRules,
}

/// What comes in from outside.
#[derive(Clone)]
pub struct SignerDeps {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The time since boot.
    pub boot: Arc<dyn BootClock>,
    /// Crashes, when they are rehearsed, at [`FaultPoint::SIGNER`].
    ///
    /// [`FaultPoint::SIGNER`]: automaton_core::faults::FaultPoint::SIGNER
    pub faults: Arc<dyn Faults>,
}

/// Whom a signer serves.
#[derive(Debug)]
pub enum SignerClients {
    /// Those at the other ends of these sockets, at once, until all have hung up.
    Here(Vec<OwnedFd>),
    /// One after the other, each with a socket that is passed over this one, until it
    /// is closed: the key stays open while agents come and go.
    Passed(OwnedFd),
}

/// Serves agents. This is the whole life of a process of its own: it cannot start threads or
/// programs or open sockets afterwards.
///
/// # Errors
/// When the process cannot be closed, the key cannot be opened, or an agent
/// breaks the protocol. The agents are told why before this returns.
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
                // silent-ok: an agent that is gone needs no reason; the caller gets it.
                agent.send(&locked).ok();
            }
            return Err(error);
        }
    };
    let failed = |source| SignerError::System { doing: "serve the agent".to_owned(), source };
    let mut served = Ok(());
    for (desk, agent) in desks.iter().zip(agents) {
        // silent-ok: a desk that is gone has panicked, which its end tells.
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
        // Every agent is served to its end, whatever becomes of another.
        let panicked = |_| Err(io::Error::other("a thread of the signer panicked"));
        served = served.and(thread.join().unwrap_or_else(panicked).map_err(failed));
    }
    served
}

/// A thread that serves the agents that it is given, one after the other.
struct SignerThread {
    agents: SyncSender<LineStream<UnixStream>>,
    thread: JoinHandle<io::Result<()>>,
}

/// Opens the key and the ledger, begins to listen to the creator, and then
/// leaves this process nothing but to sign. No thread can start after that, so
/// those that will serve the agents are there before.
fn open(
    config: SignerConfig,
    parts: SignerDeps,
    agents: usize,
) -> Result<(Vec<SignerThread>, LockGuard), SignerError> {
    let home = SignerHome::open(&config.home)?;
    let guard = lock(&home.lock())?;
    // Before the passphrase: typing it may take hours.
    let beginning = ClockStart::now(&parts, config.chain)?;
    let keystore = Keystore::read(&home.keystore())?;
    let key = {
        let passphrase = config.passphrase.read()?;
        keystore.unlock(&passphrase)?
    };
    let mut journal = SignerLedger::open(&home.ledger(), Arc::clone(&parts.faults), beginning)?;
    journal.name_wallet(key.address())?;
    journal.admit(&config.home, &rules::lines(&config.permits))?;
    let listener = bind(&home.creator_socket())?;
    let boot = Arc::clone(&parts.boot);
    let signer = Arc::new(Signer::new(key, journal, config.permits, parts));
    let desks = (0..agents).map(|_| desk(&signer)).collect::<io::Result<_>>();
    let creators = Arc::new((listener, CreatorDesk::new(keystore, Arc::clone(&signer), boot)));
    let started = desks.and_then(|desks| {
        // One more than there are places lets the next one in.
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

fn desk(signer: &Arc<Signer>) -> io::Result<SignerThread> {
    let (agents, given) = sync_channel::<LineStream<UnixStream>>(1);
    let signer = Arc::clone(signer);
    // One that breaks the protocol is hung up on, and tells how this ended if it was the last.
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

/// The creator's socket. One that lies there is a dead signer's, since the lock
/// on the home is ours.
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
