//! `automaton-llama`: loads one GGUF file and answers on one Unix socket.
//!
//! Exit 0 when the peer hangs up, 1 for bad arguments, 2 when the model cannot be
//! loaded or the connection fails; one sentence on stderr says why. It must never read
//! the environment, nor any file but the model.

use std::error::Error;
use std::io::{BufReader, Write as _};
use std::os::fd::{FromRawFd as _, IntoRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;

use automaton_core::wire::brain::{
    LocalModelFailureCode, LocalModelHello, LocalModelResponse, VERSION,
};
use automaton_llama::generate::Brain;
use automaton_llama::load::{self, Terms};
use automaton_llama::serve::{failed, send, serve};
use automaton_llama::session::Shape;
use automaton_llama::watch::Stopwatch;
use llama_cpp_2::llama_backend::LlamaBackend;

/// How the program is called.
const USAGE: &str = "usage: automaton-llama --model PATH (--fd N | --socket PATH) [--sha256 HEX]
       [--threads N] [--context-tokens N] [--memory-bytes N] [--verbose]";
/// Most threads that are taken when none are named. One core is left to others: the
/// library's threads wait for each other by spinning, so that a single busy neighbour
/// on the last core slows every token down tenfold.
const THREADS_MAX: usize = 4;

/// Where the peer is.
enum Peer {
    /// An inherited descriptor of a connected stream.
    Descriptor(RawFd),
    /// A listening socket in the file system.
    Path(PathBuf),
}

/// The arguments, checked for form.
struct Args {
    model: PathBuf,
    peer: Peer,
    terms: Terms,
    threads: Option<u16>,
    logs: Logs,
}

/// Whether the library's own log is shown.
#[derive(PartialEq, Eq)]
enum Logs {
    Off,
    Stderr,
}

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(message) => return fail(&format!("{message}\n{USAGE}"), 1),
    };
    let stream = match connect(&args.peer) {
        Ok(stream) => stream,
        Err(message) => return fail(&message, 1),
    };
    match run(&args, &stream) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = sentence(error.as_ref());
            // silent-ok: the peer may be gone, and stderr says the same.
            send(&mut &stream, &failed(LocalModelFailureCode::Model, message.clone())).ok();
            fail(&message, 2)
        }
    }
}

/// Loads the model, greets and serves.
fn run(args: &Args, stream: &UnixStream) -> Result<(), Box<dyn Error>> {
    let watch = Stopwatch::start();
    let checked = load::check(&args.model, &args.terms)?;
    let mut backend = LlamaBackend::init()?;
    if args.logs == Logs::Off {
        backend.void_logs();
    }
    let model = load::load(&backend, &checked)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let spare = u16::try_from(cores.saturating_sub(1).clamp(1, THREADS_MAX))?;
    let threads = args.threads.unwrap_or(spare);
    let shape = Shape { context_tokens: checked.context_tokens, threads };
    let mut brain = Brain::open(&backend, &model, shape)?;
    let hello = LocalModelResponse::Hello(LocalModelHello {
        version: VERSION,
        model: checked.header.name().chars().filter(|letter| !letter.is_control()).collect(),
        parameters: model.n_params(),
        context_tokens: brain.context_tokens(),
        load_ms: watch.millis(),
    });
    send(&mut &*stream, &hello)?;
    serve(&mut brain, BufReader::new(stream), stream)?;
    Ok(())
}

/// Takes the inherited descriptor, or connects.
fn connect(peer: &Peer) -> Result<UnixStream, String> {
    match peer {
        Peer::Path(path) => UnixStream::connect(path)
            .map_err(|error| format!("could not connect to {}: {error}", path.display())),
        Peer::Descriptor(number) => {
            #[expect(unsafe_code, reason = "an inherited descriptor is only a number")]
            // SAFETY: standard streams are refused while parsing, nothing in this process
            // has opened a descriptor yet, and this is the only taker of this number.
            let stream = unsafe { UnixStream::from_raw_fd(*number) };
            match stream.peer_addr() {
                Ok(_) => Ok(stream),
                Err(error) => {
                    // Not ours to close after all.
                    let number = stream.into_raw_fd();
                    Err(format!("descriptor {number} is no connected Unix stream: {error}"))
                }
            }
        }
    }
}

/// Reads the arguments; an error is one sentence.
fn parse(mut args: impl Iterator<Item = String>) -> Result<Args, String> {
    let (mut model, mut peer, mut threads, mut logs) = (None, None, None, Logs::Off);
    let mut terms = Terms { sha256: None, context_tokens: None, memory_bytes: None };
    while let Some(flag) = args.next() {
        if flag == "--verbose" {
            logs = Logs::Stderr;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{flag} is unknown or needs a value"))?;
        match flag.as_str() {
            "--model" => model = Some(PathBuf::from(value)),
            "--socket" => peer = Some(Peer::Path(PathBuf::from(value))),
            "--fd" => peer = Some(Peer::Descriptor(descriptor(&value)?)),
            "--sha256" => terms.sha256 = Some(digest(&value)?),
            "--threads" => threads = Some(number::<u16>(&flag, &value)?.max(1)),
            "--context-tokens" => terms.context_tokens = Some(number(&flag, &value)?),
            "--memory-bytes" => terms.memory_bytes = Some(number(&flag, &value)?),
            _ => return Err(format!("{flag} is unknown")),
        }
    }
    let model = model.ok_or("--model is missing")?;
    let peer = peer.ok_or("--fd is missing")?;
    Ok(Args { model, peer, terms, threads, logs })
}

/// A number in decimal.
fn number<T: std::str::FromStr>(flag: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{flag} wants a whole number in range, not {value:?}"))
}

/// A descriptor that is not one of the standard streams.
fn descriptor(value: &str) -> Result<RawFd, String> {
    match number::<RawFd>("--fd", value)? {
        number @ 3.. => Ok(number),
        number => Err(format!("--fd wants a descriptor above 2, not {number}")),
    }
}

/// A SHA-256 in hex, lower-cased.
fn digest(value: &str) -> Result<String, String> {
    let good = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if good { Ok(value.to_ascii_lowercase()) } else { Err("--sha256 wants 64 hex digits".into()) }
}

/// An error with its causes as one sentence.
fn sentence(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Says why on stderr; the exit code.
fn fail(message: &str, code: u8) -> ExitCode {
    // silent-ok: with stderr gone there is nobody left to tell.
    writeln!(std::io::stderr(), "automaton-llama: {message}").ok();
    ExitCode::from(code)
}
