//! A signer with a temporary home.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::faults::FaultPoint;
use automaton_core::money::MicroUsdc;
use automaton_core::secret::Secret;
use automaton_sandbox::process::{Child, ProcessCommand, Stdio, spawn};
use automaton_signer::payload::{PaymentIntent, TransactionCall};
use automaton_signer::{SignerConnection, SignerConnectionError, SignerHome};

/// The variable that names a folder with a copy of the test process that every user can execute.
pub(crate) const PROGRAMS: &str = "SIGNER_TEST_PROGRAMS";

pub(crate) const PASSPHRASE: &str = "correct horse";

/// The longest time that a process may take to end.
const END_MAX: Duration = Duration::from_secs(20);

pub(crate) fn program() -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_automaton-signer-test-process"));
    match std::env::var_os(PROGRAMS) {
        Some(folder) => Path::new(&folder).join(built.file_name().unwrap()),
        None => built.to_owned(),
    }
}

pub(crate) fn passphrase() -> Secret {
    Secret::new(PASSPHRASE.to_owned())
}

/// Returns a descriptor from which the words can be read once.
fn holding(words: &str) -> OwnedFd {
    let (read, mut write) = std::io::pipe().unwrap();
    write.write_all(words.as_bytes()).unwrap();
    read.into()
}

/// The keystore of the tests, written by Foundry's `cast`. Its parameters are weak, so that a
/// signer starts quickly.
pub(crate) const KEYSTORE: &str = include_str!("keystore.json");

/// A home with a key.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        let home = SignerHome::make(&world.path()).unwrap();
        std::fs::write(home.keystore(), KEYSTORE).unwrap();
        world
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn home(&self) -> SignerHome {
        SignerHome::open(&self.path()).unwrap()
    }

    pub(crate) fn start_with(
        &self,
        passphrase: &str,
        die_at: Option<FaultPoint>,
    ) -> (Process, UnixStream) {
        let words: Vec<&str> = die_at.iter().map(|point| point.name()).collect();
        self.start_as(&words, passphrase)
    }

    /// Starts a signer with these arguments of the test process.
    pub(crate) fn start_as(&self, words: &[&str], passphrase: &str) -> (Process, UnixStream) {
        let (process, mut agents) = self.start_for(1, words, passphrase);
        (process, agents.remove(0))
    }

    /// Starts a signer for this number of agents.
    pub(crate) fn start_for(
        &self,
        agents: usize,
        words: &[&str],
        passphrase: &str,
    ) -> (Process, Vec<UnixStream>) {
        let log = File::create(self.folder.path().join("log")).unwrap();
        let mut command = ProcessCommand::new(&program()).arg("serve").arg(self.path());
        command = words.iter().fold(command, |command, word| command.arg(word));
        command = command
            .arg(format!("agents={agents}"))
            .stderr(Stdio::Descriptor(log.into()))
            .descriptor(holding(passphrase), 3);
        let mut ours = Vec::new();
        for number in (4..).take(agents) {
            let (here, there) = UnixStream::pair().unwrap();
            command = command.descriptor(there.into(), number);
            ours.push(here);
        }
        (Process(spawn(command).unwrap()), ours)
    }

    pub(crate) fn start(&self) -> (Process, SignerConnection) {
        let (process, stream) = self.start_with(PASSPHRASE, None);
        (process, SignerConnection::connect(stream).unwrap())
    }

    /// Returns the standard error of the last process.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

/// A signer process that is killed when dropped.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn pid(&self) -> i32 {
        self.0.pid()
    }

    /// Waits until the process has ended. Returns true if it succeeded.
    pub(crate) fn ended_well(&mut self) -> bool {
        self.0.wait_timeout(END_MAX).unwrap().expect("the signer goes on").is_success()
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait_timeout(END_MAX).unwrap().expect("the signer goes on");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn intent(number: u32, amount: u64) -> PaymentIntent {
    PaymentIntent {
        intent: format!("0000000000000000000000{number:04}").parse().unwrap(),
        chain_id: 8453,
        asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913".parse().unwrap(),
        payee: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().unwrap(),
        amount: MicroUsdc::new(amount),
        deadline_s: 300,
    }
}

pub(crate) fn is_gone(error: &SignerConnectionError) -> bool {
    matches!(error, SignerConnectionError::Gone(_))
}

/// Returns a call that the test process permits, at a gas price.
pub(crate) fn call(max_fee: u64) -> TransactionCall {
    TransactionCall {
        chain_id: 8453,
        to: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913".parse().unwrap(),
        data: vec![0xe3, 0xee, 0x16, 0x0e, 7].into(),
        gas: 100_000,
        max_fee,
        priority_fee: Some(1),
        nonce_hint: 5,
    }
}
