//! The signing process as tests start it, and what they try inside it.
//!
//! `serve HOME [POINT]` serves descriptor 3 with the passphrase of descriptor 4,
//! and kills itself at the point. `confined ATTEMPT` tries what a confined
//! process must not be able to do. `read PID` tries to read another process's
//! memory. `idle` waits with its memory open to others. `reach SOCKET` tells what it
//! can connect or write to, and `reach-sandboxed SOCKET` what it can in a sandbox.

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

use alloy_primitives::address;
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::time::SystemClock;
use automaton_core::wire::x402::{ChainId, TokenDomain};
use automaton_sandbox::process::{kill_self, take_inherited};
use automaton_sandbox::{Bind, ExitStatus, Launcher, Program, Spec, SystemBootClock, plan, probe};
use automaton_signer::payload::{Audience, Contract, GasRules};
use automaton_signer::{Config, Parts, PassphraseSource, Permits, serve};

struct DieAt(Option<FaultPoint>);

impl Faults for DieAt {
    fn reach(&self, point: FaultPoint) {
        if self.0 == Some(point) {
            kill_self();
        }
    }
}

/// Where this program appears in the sandbox.
const INSIDE: &str = "/opt/attempt";

fn main() -> ExitCode {
    if let Some(code) = automaton_sandbox::helper_main_if_invoked() {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match *words.as_slice() {
        ["serve", home] => run(Path::new(home), None),
        ["serve", home, point] => {
            point.parse().map_err(io::Error::other).and_then(|it| run(Path::new(home), Some(it)))
        }
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

fn run(home: &Path, die_at: Option<FaultPoint>) -> io::Result<()> {
    let config = Config {
        home: home.to_owned(),
        passphrase: PassphraseSource::Descriptor(inherited(4)?),
        permits: Permits {
            assets: vec![TokenDomain {
                name: "USD Coin".to_owned(),
                version: "2".to_owned(),
                chain: ChainId::BASE,
                contract: address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
            }],
            audiences: vec![Audience {
                domain: "cloud.example".to_owned(),
                uri: "https://cloud.example/v1/auth/verify".to_owned(),
                chain_id: 8453,
            }],
            contracts: vec![Contract {
                chain_id: 8453,
                address: address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
                selectors: vec![[0xe3, 0xee, 0x16, 0x0e]],
            }],
            gas: GasRules { limit_max: 200_000, fee_max: 1_000, per_day: 300_000_000 },
        },
    };
    let parts = Parts {
        clock: Arc::new(SystemClock),
        boot: Arc::new(SystemBootClock),
        faults: Arc::new(DieAt(die_at)),
    };
    serve(config, parts, vec![inherited(3)?]).map_err(io::Error::other)
}

/// Succeeds when the attempt is refused with `EPERM`, and what must go on works.
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

/// Reads a word of another process's own program, which any debugger could.
fn read_memory(pid: &str) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let start = maps.lines().next().and_then(|line| line.split('-').next());
    let start = u64::from_str_radix(start.unwrap_or_default(), 16).map_err(io::Error::other)?;
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut [0; 8], start)
}

/// What takes a connection or a byte from this process.
fn reach(creator: &Path) -> Vec<String> {
    let socket = UnixStream::connect(creator).is_ok().then(|| "the creator's socket".to_owned());
    let takes =
        |number: &i32| inherited(*number).is_ok_and(|it| File::from(it).write(b"\n").is_ok());
    let descriptors = (3..64).filter(takes).map(|number| format!("descriptor {number}"));
    socket.into_iter().chain(descriptors).collect()
}

/// The same in a sandbox, as an agent starts it that has such descriptors.
fn reach_sandboxed(socket: &str) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let launcher = Launcher::new(program.clone());
    let argv = [INSIDE, "reach", socket].map(str::to_owned).to_vec();
    let spec = Spec {
        read_only: vec![Bind { host: program, inside: INSIDE.into() }],
        ..Spec::new(Program::Argv(argv))
    };
    let plan = plan(&spec, &probe(&launcher)).map_err(io::Error::other)?;
    let run = launcher.launch(&plan).and_then(|run| run.wait()).map_err(io::Error::other)?;
    print!("{}{}", run.stdout.text_lossy(), run.stderr.text_lossy());
    let ended = run.status == ExitStatus::Exited(0);
    ended.then_some(()).ok_or_else(|| io::Error::other(format!("{:?}", run.status)))
}
