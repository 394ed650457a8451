//! The signing process as tests start it, and the attempts that they make inside it.
//!
//! `serve HOME [WORD…]` serves the descriptors from 4 on, with the passphrase of descriptor 3. A
//! word is the point at which it kills itself, `slow` for a slow disk, `second-token`, or
//! `agents=N`. `pay NUMBER UNITS` asks the signer at descriptor 3 for a payment and prints the
//! result. `full HOME BALLAST` pays until the disk of a home is full, removes the ballast and
//! continues. `confined ATTEMPT` tries an action that a confined process must not be able to
//! perform. `read PID` tries to read another process's memory. `idle` waits with its memory open
//! to others. `reach SOCKET` prints what it can connect or write to, and `reach-sandboxed SOCKET`
//! does the same in a sandbox.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program of the tests"
)]

use std::fs::{self, File};
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, address};
use automaton_core::error::{Classified as _, ErrorClass};
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::money::MicroUsdc;
use automaton_core::time::SystemClock;
use automaton_core::wire::x402::{ChainId, TokenDomain};
use automaton_sandbox::process::{self, kill_self, take_inherited};
use automaton_sandbox::{
    Bind, ExitStatus, Launcher, Program, SandboxSpec, SystemBootClock, plan, probe,
};
use automaton_signer::payload::{Audience, Contract, GasRules, PaymentIntent};
use automaton_signer::{
    PassphraseSource, SignerClients, SignerConfig, SignerConnection, SignerConnectionError,
    SignerDeps, SignerRefusalCode, SigningPermits, serve,
};

/// The faults rehearsed while a payment is signed.
#[derive(Default)]
struct Rehearsed {
    die_at: Option<FaultPoint>,
    slow: bool,
}

impl Faults for Rehearsed {
    fn reach(&self, point: FaultPoint) {
        if self.slow && point == FaultPoint::SignerSigned {
            std::thread::sleep(Duration::from_millis(200));
        }
        if self.die_at == Some(point) {
            kill_self();
        }
    }
}

/// The path of this program in the sandbox.
const INSIDE: &str = "/opt/attempt";

fn main() -> ExitCode {
    if let Some(code) = automaton_sandbox::helper_main_if_invoked() {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match *words.as_slice() {
        ["serve", home, ref words @ ..] => run(Path::new(home), words),
        ["pay", number, units] => pay(number, units),
        ["full", home, ballast] => full(home, Path::new(ballast)),
        ["confined", attempt] => confined(attempt),
        ["read", pid] => read_memory(pid),
        ["reach", socket] => {
            println!("{}", reach(Path::new(socket)).join(", "));
            Ok(())
        }
        ["reach-sandboxed", socket] => reach_sandboxed(socket),
        ["idle"] => io::stdin().lock().read_line(&mut String::new()).map(drop),
        _ => Err(io::Error::other("unknown words")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn inherited(number: i32) -> io::Result<OwnedFd> {
    take_inherited(number).map_err(io::Error::other)
}

fn run(home: &Path, words: &[&str]) -> io::Result<()> {
    let token = |name: &str, contract| TokenDomain {
        name: name.to_owned(),
        version: "2".to_owned(),
        chain: ChainId::BASE,
        contract,
    };
    let usdc = address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913");
    let mut assets = vec![token("USD Coin", usdc)];
    let mut faults = Rehearsed::default();
    let mut agents = 1;
    for word in words {
        match *word {
            "slow" => faults.slow = true,
            "second-token" => assets.push(token("Other", Address::repeat_byte(0x22))),
            word => match word.strip_prefix("agents=") {
                Some(count) => agents = count.parse().map_err(io::Error::other)?,
                None => faults.die_at = Some(word.parse().map_err(io::Error::other)?),
            },
        }
    }
    let config = SignerConfig {
        home: home.to_owned(),
        passphrase: PassphraseSource::Descriptor(inherited(3)?),
        permits: SigningPermits {
            assets,
            audiences: vec![Audience {
                domain: "cloud.example".to_owned(),
                uri: "https://cloud.example/v1/auth/verify".to_owned(),
                chain_id: 8453,
            }],
            contracts: vec![Contract {
                chain_id: 8453,
                address: usdc,
                selectors: vec![[0xe3, 0xee, 0x16, 0x0e]],
            }],
            gas: GasRules { limit_max: 200_000, fee_max: 1_000, per_day: 300_000_000 },
        },
        chain: None,
    };
    let parts = SignerDeps {
        clock: Arc::new(SystemClock),
        boot: Arc::new(SystemBootClock),
        faults: Arc::new(faults),
    };
    let agents = (4..).take(agents).map(inherited).collect::<io::Result<_>>()?;
    serve(config, parts, SignerClients::Here(agents)).map_err(io::Error::other)
}

fn intent(number: &str, units: &str) -> io::Result<PaymentIntent> {
    Ok(PaymentIntent {
        intent: format!("{number:0>26}").parse().map_err(io::Error::other)?,
        chain_id: ChainId::BASE.0,
        asset: address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
        payee: Address::repeat_byte(0x33),
        amount: MicroUsdc::new(units.parse().map_err(io::Error::other)?),
        deadline_s: 300,
    })
}

/// Asks for a payment. Prints `signed`, or the rule that refused.
fn pay(number: &str, units: &str) -> io::Result<()> {
    let mut client =
        SignerConnection::connect(UnixStream::from(inherited(3)?)).map_err(io::Error::other)?;
    match client.sign_payment(&intent(number, units)?) {
        Ok(_) => print!("signed"),
        Err(SignerConnectionError::Refused(refusal)) => print!("{:?}", refusal.code),
        Err(other) => return Err(io::Error::other(other)),
    }
    Ok(())
}

/// Succeeds if a signer with a full disk refuses, and signs the refused payments once there is
/// room, having counted only what it signed.
fn full(home: &str, ballast: &Path) -> io::Result<()> {
    let (ours, theirs) = UnixStream::pair()?;
    let (read, mut write) = io::pipe()?;
    write.write_all(b"correct horse")?;
    drop(write);
    let command = process::ProcessCommand::new(&std::env::current_exe()?)
        .arg("serve")
        .arg(home)
        .descriptor(read.into(), 3)
        .descriptor(theirs.into(), 4);
    let _signer = process::spawn(command).map_err(io::Error::other)?;
    let mut client = SignerConnection::connect(ours).map_err(io::Error::other)?;
    let refused = (1..5000).find_map(|number| {
        let refused = client.sign_payment(&intent(&number.to_string(), "1").ok()?).err()?;
        Some((number, refused))
    });
    let (number, error) = refused.ok_or_else(|| io::Error::other("the disk is never full"))?;
    let no_room = matches!(&error, SignerConnectionError::Refused(it) if it.code == SignerRefusalCode::NoRoom);
    if !no_room || error.kind() != ErrorClass::Transient || error.hint().is_none() {
        return Err(io::Error::other(error));
    }
    let counted = client.limits().map_err(io::Error::other)?.spent.payments;
    fs::remove_file(ballast)?;
    client.sign_payment(&intent(&number.to_string(), "1")?).map_err(io::Error::other)?;
    let after = client.limits().map_err(io::Error::other)?.spent.payments;
    println!("refused after {counted} of {}, then {after}: {error}", number - 1);
    Ok(())
}

/// Succeeds if the attempt is refused with `EPERM` and permitted actions still work.
fn confined(attempt: &str) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let file = std::env::temp_dir().join(format!("signer-attempt-{}", std::process::id()));
    let path = file.with_extension("socket");
    let (mut one, mut other) = UnixStream::pair()?;
    let mut child = std::process::Command::new("/bin/sleep").arg("1").spawn()?;
    automaton_sandbox::confine_key_holder().map_err(io::Error::other)?;
    one.write_all(b"x")?;
    other.read_exact(&mut [0])?;
    fs::write(&file, b"x")?;
    fs::remove_file(&file)?;
    let tried = match attempt {
        "connect" => TcpStream::connect(address).map(drop),
        "bind" => TcpListener::bind("127.0.0.1:0").map(drop),
        "udp" => UdpSocket::bind("127.0.0.1:0").map(drop),
        "unix" => UnixListener::bind(&path).map(drop),
        "program" => std::process::Command::new("/bin/true").status().map(drop),
        "signal" => child.kill(),
        "thread" => std::thread::Builder::new().spawn(|| {}).map(drop),
        _ => return Err(io::Error::other("unknown attempt")),
    };
    match tried {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => Err(io::Error::other(format!("{attempt}: {other:?}"))),
    }
}

/// Reads a word of another process's memory, as a debugger could.
fn read_memory(pid: &str) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let start = maps.lines().next().and_then(|line| line.split('-').next());
    let start = u64::from_str_radix(start.unwrap_or_default(), 16).map_err(io::Error::other)?;
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut [0; 8], start)
}

/// Returns the targets that accept a connection or a byte from this process.
fn reach(creator: &Path) -> Vec<String> {
    let socket = UnixStream::connect(creator).is_ok().then(|| "the creator's socket".to_owned());
    let takes =
        |number: &i32| inherited(*number).is_ok_and(|it| File::from(it).write(b"\n").is_ok());
    let descriptors = (3..64).filter(takes).map(|number| format!("descriptor {number}"));
    socket.into_iter().chain(descriptors).collect()
}

/// Runs `reach` in a sandbox, as an agent with such descriptors starts it.
fn reach_sandboxed(socket: &str) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let launcher = Launcher::new(program.clone());
    let argv = [INSIDE, "reach", socket].map(str::to_owned).to_vec();
    let spec = SandboxSpec {
        read_only: vec![Bind { host: program, inside: INSIDE.into() }],
        ..SandboxSpec::new(Program::Argv(argv))
    };
    let plan = plan(&spec, &probe(&launcher)).map_err(io::Error::other)?;
    let run = launcher.launch(&plan).and_then(|run| run.wait()).map_err(io::Error::other)?;
    print!("{}{}", run.stdout.text_lossy(), run.stderr.text_lossy());
    let ended = run.status == ExitStatus::Exited(0);
    ended.then_some(()).ok_or_else(|| io::Error::other(format!("{:?}", run.status)))
}
