//! Attempts to get out of the sandbox, one a run.
//!
//! `attempt NAME ARGUMENTS…` ends with 0 when the attempt succeeded, with 1
//! when it was refused, with 3 when it was called wrongly. Never harmful: an
//! attempt that succeeds reads a planted secret, writes a planted file, or
//! uses what belongs to the test.

mod files;
mod kernel;
mod limits;
mod processes;
mod sockets;

use std::io::{self, Write as _};
use std::process::ExitCode;

/// What every planted secret contains.
const SECRET: &str = "planted-secret";

type Attempt = fn(&[String]) -> io::Result<()>;

const ATTEMPTS: &[(&str, Attempt)] = &[
    ("read", files::read),
    ("write-any", files::write_any),
    ("hard-link", files::hard_link),
    ("make-device", files::make_device),
    ("open-device", files::open_device),
    ("open-by-handle", files::open_by_handle),
    ("run", files::run),
    ("list", files::list),
    ("see", files::see),
    ("make", files::make),
    ("rename", files::rename),
    ("truncate", files::truncate),
    ("change-mode", files::change_mode),
    ("change-time", files::change_time),
    ("watch", files::watch),
    ("leave-privileged", files::leave_privileged),
    ("read-descriptor", files::read_descriptor),
    ("see-process", processes::see),
    ("signal", processes::signal),
    ("trace", processes::trace),
    ("read-memory", processes::read_memory),
    ("take-descriptor", processes::take_descriptor),
    ("limit", processes::limit),
    ("slow-down", processes::slow_down),
    ("pin", processes::pin),
    ("enter", processes::enter),
    ("be-hardened", processes::be_hardened),
    ("end-itself", processes::end_itself),
    ("be-victim", processes::be_victim),
    ("linger", processes::linger),
    ("connect-tcp", sockets::connect_tcp),
    ("connect-tcp6", sockets::connect_tcp6),
    ("packet-socket", sockets::packet_socket),
    ("send-unix", sockets::send_unix),
    ("send-udp", sockets::send_udp),
    ("connect-abstract", sockets::connect_abstract),
    ("connect-unix", sockets::connect_unix),
    ("raw-socket", sockets::raw_socket),
    ("echo-descriptor", sockets::echo_descriptor),
    ("loopback", sockets::loopback),
    ("serve", sockets::serve),
    ("mount", kernel::mount_tmp),
    ("remount", kernel::remount),
    ("unmount", kernel::unmount),
    ("unshare-mounts", kernel::unshare_mounts),
    ("set-domain-name", kernel::set_domain_name),
    ("watch-everything", kernel::watch_everything),
    ("read-log", kernel::read_log),
    ("use-ports", kernel::use_ports),
    ("unshare-user", kernel::unshare_user),
    ("change-root", kernel::change_root),
    ("have-capabilities", kernel::have_capabilities),
    ("have-variable", kernel::have_variable),
    ("add-key", kernel::add_key),
    ("io-uring", kernel::io_uring),
    ("fault-descriptor", kernel::fault_descriptor),
    ("bpf", kernel::bpf),
    ("shared-memory", kernel::shared_memory),
    ("know-host-name", kernel::know_host_name),
    ("set-host-name", kernel::set_host_name),
    ("clone3", kernel::clone3),
    ("many-processes", limits::many_processes),
    ("much-memory", limits::much_memory),
    ("hidden-memory", limits::hidden_memory),
    ("fill", limits::fill),
    ("open-files", limits::open_files),
    ("spin", limits::spin),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let named = words.split_first().and_then(|(name, rest)| {
        ATTEMPTS.iter().find(|(known, _)| known == name).map(|(_, attempt)| (attempt, rest))
    });
    let Some((attempt, rest)) = named else { return ExitCode::from(3) };
    match attempt(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "{error}").ok();
            ExitCode::from(1)
        }
    }
}

/// An argument, parsed.
fn argument<T: std::str::FromStr>(words: &[String], index: usize) -> io::Result<T> {
    let word = words.get(index).and_then(|word| word.parse().ok());
    word.ok_or_else(|| io::Error::other(format!("argument {index} is missing or wrong")))
}

/// Success only if a secret came out.
fn require_secret(bytes: &[u8]) -> io::Result<()> {
    let found = String::from_utf8_lossy(bytes).contains(SECRET);
    if found { Ok(()) } else { Err(io::Error::other("there is no secret in it")) }
}

/// The answer of a raw system call.
fn answer(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
