//! The signing process, from its start to the end of its agent.
//!
//! It closes itself before it reads the passphrase, drops the passphrase as
//! soon as the key is open, and gives up network and programs before it listens.
//! It must never log what it is asked or what it answers.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use automaton_core::error::chain;
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::secret::Secret;
use automaton_core::time::{Clock, Timestamp};
use automaton_core::wire::x402::{ExactPayload, TokenDomain};
use automaton_sandbox::process::{LockGuard, lock};
use automaton_sandbox::{confine_key_holder, harden};
use serde::de::DeserializeOwned;

use crate::creator;
use crate::error::{Code, Refusal, SignerError};
use crate::home::Home;
use crate::journal::Journal;
use crate::key::{Key, Signature};
use crate::keystore::Keystore;
use crate::passphrase::PassphraseSource;
use crate::payload::{
    Audience, Payload, PaymentIntent, Register, Registration, SignIn, SignInMessage, Transfer,
};
use crate::protocol::{Lines, Reply, Request, VERSION};

/// What a signer serves with.
#[derive(Debug)]
pub struct Config {
    /// Its home: keystore, ledger, socket.
    pub home: PathBuf,
    /// Where the passphrase is.
    pub passphrase: PassphraseSource,
    /// The tokens that may be paid in.
    pub assets: Vec<TokenDomain>,
    /// Whom the automaton may sign in to.
    pub audiences: Vec<Audience>,
}

/// What comes in from outside.
#[derive(Clone)]
pub struct Parts {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Crashes, when they are rehearsed, at [`FaultPoint::SIGNER`].
    pub faults: Arc<dyn Faults>,
}

/// Serves the agent at the other end of a connected socket until it hangs up.
/// This is the whole life of a process of its own: it cannot start threads or
/// programs or open sockets afterwards.
///
/// # Errors
/// When the process cannot be closed, the key cannot be opened, or the agent
/// breaks the protocol. The agent is told why before this returns.
pub fn serve(config: Config, parts: Parts, agent: OwnedFd) -> Result<(), SignerError> {
    harden()?;
    let mut agent = Lines::new(UnixStream::from(agent));
    let opened = open(config, parts);
    let (signer, _lock) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let reason = chain(&error).to_string();
            // silent-ok: an agent that is gone needs no reason; the caller gets it.
            agent.send(&Reply::Locked { reason }).ok();
            return Err(error);
        }
    };
    let failed = |source| SignerError::System { doing: "serve the agent".to_owned(), source };
    signer.converse(&mut agent, |request| signer.answer(request)).map_err(failed)
}

/// Opens the key and the ledger, begins to listen to the creator, and then
/// leaves this process nothing but to sign.
fn open(config: Config, parts: Parts) -> Result<(Arc<Signer>, LockGuard), SignerError> {
    let home = Home::open(&config.home)?;
    let guard = lock(&home.lock())?;
    let keystore = Keystore::read(&home.keystore())?;
    let key = {
        let passphrase = config.passphrase.read()?;
        keystore.unlock(&passphrase)?
    };
    let journal = Journal::open(&home.ledger(), Arc::clone(&parts.faults))?;
    let listener = bind(&home.creator_socket())?;
    let signer = Arc::new(Signer {
        key,
        keystore,
        journal: Mutex::new(journal),
        assets: config.assets,
        audiences: config.audiences,
        parts,
    });
    let answering = Arc::clone(&signer);
    let thread = thread::Builder::new().name("creator".to_owned());
    thread.spawn(move || creator::listen(&listener, &answering)).map_err(|source| {
        SignerError::System { doing: "start the creator's thread".to_owned(), source }
    })?;
    confine_key_holder()?;
    Ok((signer, guard))
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

/// An unlocked key and what decides on its use.
pub(crate) struct Signer {
    key: Key,
    keystore: Keystore,
    journal: Mutex<Journal>,
    assets: Vec<TokenDomain>,
    audiences: Vec<Audience>,
    parts: Parts,
}

impl Signer {
    /// Says hello and answers requests until the other side hangs up.
    pub(crate) fn converse<R: DeserializeOwned>(
        &self,
        peer: &mut Lines<UnixStream>,
        answer: impl Fn(R) -> Result<Reply, Refusal>,
    ) -> io::Result<()> {
        peer.send(&Reply::Hello { version: VERSION, address: self.key.address() })?;
        loop {
            let reply = match peer.next() {
                Ok(None) => return Ok(()),
                Ok(Some(line)) => {
                    let request = serde_json::from_slice(&line).map_err(|error| malformed(&error));
                    request.and_then(&answer).unwrap_or_else(Reply::Refused)
                }
                Err(error) => {
                    let refusal = Refusal::new(Code::Malformed, error.to_string());
                    // silent-ok: the error that led here is what the caller must learn.
                    peer.send(&Reply::Refused(refusal)).ok();
                    return Err(error);
                }
            };
            peer.send(&reply)?;
            if matches!(reply, Reply::Paid(_)) {
                self.parts.faults.reach(FaultPoint::SignerAnswered);
            }
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    pub(crate) fn accepts(&self, passphrase: &Secret) -> bool {
        self.keystore.check(passphrase).is_ok()
    }

    /// The ledger; a thread that panicked while it had it has closed it for good.
    pub(crate) fn journal(&self) -> Result<MutexGuard<'_, Journal>, Refusal> {
        let broken = |_| Refusal::new(Code::Ledger, "the ledger was left in the middle of a write");
        self.journal.lock().map_err(broken)
    }

    fn answer(&self, request: Request) -> Result<Reply, Refusal> {
        match request {
            Request::Pay(intent) => self.pay(&intent),
            Request::SignIn(asked) => self.sign_in(&asked),
            Request::Register(asked) => self.register(&asked),
            Request::Limits {} => Ok(Reply::Limits(self.journal()?.standing(self.now())?)),
        }
    }

    fn pay(&self, intent: &PaymentIntent) -> Result<Reply, Refusal> {
        self.parts.faults.reach(FaultPoint::SignerAsked);
        let (now, payer) = (self.now(), self.key.address());
        let payment = self.journal()?.pay(payer, intent, now, || {
            let transfer = Transfer::new(payer, &self.assets, intent, now)?;
            let authorization = transfer.authorization().clone();
            let signature = self.sign(&Payload::Transfer(transfer))?;
            Ok(ExactPayload { authorization, signature: signature.into() })
        })?;
        self.parts.faults.reach(FaultPoint::SignerCounted);
        Ok(Reply::Paid(payment))
    }

    fn sign_in(&self, asked: &SignIn) -> Result<Reply, Refusal> {
        let message = SignInMessage::new(self.key.address(), &self.audiences, asked, self.now())?;
        let text = message.text();
        let signature = self.sign(&Payload::SignIn(message))?;
        Ok(Reply::SignedIn { message: text, signature })
    }

    fn register(&self, asked: &Registration) -> Result<Reply, Refusal> {
        let register = Register::new(self.key.address(), asked)?;
        let payload_hash = register.payload_hash();
        let signature = self.sign(&Payload::Register(register))?;
        Ok(Reply::Registered { payload_hash, signature })
    }

    fn sign(&self, payload: &Payload) -> Result<Signature, Refusal> {
        self.key.sign(payload).map_err(|error| Refusal::new(Code::Signature, error.to_string()))
    }
}

/// The refusal of a line. It never repeats the line, which may hold a passphrase.
fn malformed(error: &serde_json::Error) -> Refusal {
    let column = error.column();
    Refusal::new(Code::Malformed, format!("the line is no request: see its column {column}"))
}
