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
use automaton_sandbox::process::{LockGuard, lock};
use automaton_sandbox::{confine_key_holder, harden};

use crate::creator;
use crate::error::SignerError;
use crate::home::Home;
use crate::journal::{Beginning, Journal};
use crate::keystore::Keystore;
use crate::passphrase::PassphraseSource;
use crate::payload::{Audience, Contract, GasRules};
use crate::protocol::{Lines, Reply};
use crate::rules;
use crate::signer::Signer;

/// What a signer serves with.
#[derive(Debug)]
pub struct Config {
    /// Its home: keystore, ledger, socket.
    pub home: PathBuf,
    /// Where the passphrase is.
    pub passphrase: PassphraseSource,
    /// What it may sign.
    pub permits: Permits,
    /// The time of the chain's last block, read just before; without it, no time
    /// passed since the ledger was last written.
    pub chain: Option<Timestamp>,
}

/// What a signer may sign, beyond which it refuses.
#[derive(Debug, Clone, Default)]
pub struct Permits {
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
pub struct Parts {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The time since boot.
    pub boot: Arc<dyn BootClock>,
    /// Crashes, when they are rehearsed, at [`FaultPoint::SIGNER`].
    ///
    /// [`FaultPoint::SIGNER`]: automaton_core::faults::FaultPoint::SIGNER
    pub faults: Arc<dyn Faults>,
}

/// Serves each agent at the other end of a connected socket until all have hung
/// up. This is the whole life of a process of its own: it cannot start threads or
/// programs or open sockets afterwards.
///
/// # Errors
/// When the process cannot be closed, the key cannot be opened, or an agent
/// breaks the protocol. The agents are told why before this returns.
pub fn serve(config: Config, parts: Parts, agents: Vec<OwnedFd>) -> Result<(), SignerError> {
    harden()?;
    let lines = agents.into_iter().map(|agent| Lines::new(UnixStream::from(agent)));
    let mut agents: Vec<_> = lines.collect();
    let (desks, _lock) = match open(config, parts, agents.len()) {
        Ok(opened) => opened,
        Err(error) => {
            let (reason, kind, hint) = (chain(&error).to_string(), error.kind(), error.hint());
            let locked = Reply::Locked { reason, kind, hint };
            for agent in &mut agents {
                // silent-ok: an agent that is gone needs no reason; the caller gets it.
                agent.send(&locked).ok();
            }
            return Err(error);
        }
    };
    let failed = |source| SignerError::System { doing: "serve the agent".to_owned(), source };
    let mut served = Ok(());
    let mut working = Vec::new();
    for (desk, agent) in desks.into_iter().zip(agents) {
        // silent-ok: a desk that is gone has panicked, which its end tells.
        desk.agent.send(agent).ok();
        working.push(desk.thread);
    }
    for thread in working {
        // Every agent is served to its end, whatever becomes of another.
        let panicked = |_| Err(io::Error::other("a thread of the signer panicked"));
        served = served.and(thread.join().unwrap_or_else(panicked).map_err(failed));
    }
    served
}

/// A thread that serves the one agent that it is given.
struct Desk {
    agent: SyncSender<Lines<UnixStream>>,
    thread: JoinHandle<io::Result<()>>,
}

/// Opens the key and the ledger, begins to listen to the creator, and then
/// leaves this process nothing but to sign. No thread can start after that, so
/// those that will serve the agents are there before.
fn open(
    config: Config,
    parts: Parts,
    agents: usize,
) -> Result<(Vec<Desk>, LockGuard), SignerError> {
    let home = Home::open(&config.home)?;
    let guard = lock(&home.lock())?;
    // Before the passphrase: typing it may take hours.
    let beginning = Beginning::now(&parts, config.chain)?;
    let keystore = Keystore::read(&home.keystore())?;
    let key = {
        let passphrase = config.passphrase.read()?;
        keystore.unlock(&passphrase)?
    };
    let mut journal = Journal::open(&home.ledger(), Arc::clone(&parts.faults), beginning)?;
    journal.name_wallet(key.address())?;
    journal.admit(&config.home, &rules::lines(&config.permits))?;
    let listener = bind(&home.creator_socket())?;
    let signer = Arc::new(Signer::new(key, journal, config.permits, parts));
    let desks = (0..agents).map(|_| desk(&signer)).collect::<io::Result<_>>();
    let creators = thread::Builder::new().name("creator".to_owned());
    let started = desks.and_then(|desks| {
        creators.spawn(move || creator::listen(&listener, &keystore, &signer))?;
        Ok(desks)
    });
    let desks = started.map_err(|source| SignerError::System {
        doing: "start the signer's threads".to_owned(),
        source,
    })?;
    confine_key_holder()?;
    Ok((desks, guard))
}

fn desk(signer: &Arc<Signer>) -> io::Result<Desk> {
    let (agent, given) = sync_channel::<Lines<UnixStream>>(1);
    let signer = Arc::clone(signer);
    let serve = move || match given.recv() {
        Ok(mut agent) => signer.converse(&mut agent, |request| signer.answer(request)),
        // The signer could not be opened.
        Err(_) => Ok(()),
    };
    let thread = thread::Builder::new().name("agent".to_owned()).spawn(serve)?;
    Ok(Desk { agent, thread })
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
