//! The planted targets outside of the sandbox.
//!
//! Everything here belongs to the drill, is worth nothing, and is removed with it. It must never
//! name a thing of the machine that an attempt could harm.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;

use super::FIXTURE_INSIDE;
use super::attempt::WORD;
use crate::probe::{CgroupBase, Feature, Probe};
use crate::process::{Child, ProcessCommand, Stdio, effective_user, spawn};

/// The text that every planted secret contains.
pub(super) const SECRET: &str = "planted-secret";
/// The lowest number of the leaked descriptor.
const LEAKED_MIN: i32 = 200;

/// The planted targets. They exist as long as this value.
#[derive(Debug)]
pub(super) struct AttackSite {
    pub(super) folder: PathBuf,
    victim: Child,
    segment: Option<i32>,
    /// The values that an attempt's words can name in braces.
    facts: BTreeMap<&'static str, String>,
    /// Descriptors that have to stay open.
    _open: Vec<OwnedFd>,
}

impl AttackSite {
    /// Plants the targets in an empty folder, and starts `program` as the victim process.
    pub(super) fn make(program: &Path, folder: &Path, probe: &Probe) -> io::Result<Self> {
        let at = |name: &str| folder.join(name);
        plant_files(folder)?;
        let key = key();
        let (victim, victims_input) = victim(program)?;
        let leaked = leak(&File::open(at("home/state.db"))?)?;
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        // silent-ok: the machine may have no IPv6.
        let tcp6 = TcpListener::bind("[::1]:0").ok();
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        // silent-ok: the machine may have no System V memory.
        let segment = segment(key).ok();
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut facts = BTreeMap::from([
            ("home", text(at("home"))),
            ("taken", text(at("workspace/taken"))),
            ("fixture", text(at("fixture"))),
            ("root", format!("/proc/{}/root{}", victim.pid(), at("home").display())),
            ("pid", victim.pid().to_string()),
            ("user", effective_user().to_string()),
            ("leaked", leaked.as_raw_fd().to_string()),
            ("tcp", tcp.local_addr()?.to_string()),
            ("udp", udp.local_addr()?.to_string()),
            ("key", key.to_string()),
            ("host-name", nix::unistd::gethostname()?.to_string_lossy().into_owned()),
        ]);
        let mut add = |name, fact: Option<String>| facts.extend(fact.map(|fact| (name, fact)));
        add("tcp6", tcp6.as_ref().and_then(|tcp6| Some(tcp6.local_addr().ok()?.to_string())));
        add("segment", segment.map(|_| key.to_string()));
        if let Some(handle) = handle(&at("home/state.db"))? {
            fs::write(at("fixture/handle"), handle)?;
            add("handle", Some(format!("{FIXTURE_INSIDE}/handle")));
        }
        add("variable", foreign_variable());
        let disks = ["/dev/vda", "/dev/sda", "/dev/nvme0n1"].into_iter();
        add("disk", disks.map(str::to_owned).find(|path| File::open(path).is_ok()));
        if let Feature::Available(CgroupBase::V1 { memory, .. }) = &probe.cgroup {
            let members = memory.join("cgroup.procs");
            let ours = File::options().write(true).open(&members).is_ok();
            add("members", ours.then(|| text(members)));
        }
        let terminal = nix::pty::openpty(None, None)?;
        add("terminal", Some(text(nix::unistd::ttyname(&terminal.slave)?)));
        let mut open: Vec<OwnedFd> = vec![
            terminal.master,
            terminal.slave,
            victims_input,
            leaked,
            tcp.into(),
            udp.into(),
            UnixListener::bind(at("home/control.sock"))?.into(),
            UnixListener::bind(at("home/creator.sock"))?.into(),
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(key.to_string())?)?.into(),
            UnixDatagram::bind(at("home/datagrams"))?.into(),
        ];
        open.extend(tcp6.map(OwnedFd::from));
        Ok(Self { folder: folder.to_owned(), victim, segment, facts, _open: open })
    }

    /// Replaces the name in braces by its value. Returns `None` if this site has no such value.
    pub(super) fn fill(&self, word: &str) -> Option<String> {
        let Some((before, rest)) = word.split_once('{') else { return Some(word.to_owned()) };
        let (name, after) = rest.split_once('}')?;
        Some(format!("{before}{}{after}", self.facts.get(name)?))
    }
}

impl Drop for AttackSite {
    fn drop(&mut self) {
        // silent-ok: it ends with its standard input in any case.
        drop(self.victim.kill().and_then(|()| self.victim.wait()));
        if let Some(segment) = self.segment {
            // SAFETY: the segment is this world's own; no pointer to it is left.
            unsafe { libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut()) };
        }
    }
}

fn plant_files(folder: &Path) -> io::Result<()> {
    let at = |name: &str| folder.join(name);
    for name in ["home", "workspace", "workspace/sealed", "fixture"] {
        fs::create_dir(at(name))?;
    }
    for name in ["home/automaton.json", "home/state.db", "fixture/file", "workspace/sealed/log"] {
        fs::write(at(name), SECRET)?;
    }
    fs::write(at("home/program"), "#!/bin/sh\n")?;
    fs::copy("/bin/sh", at("fixture/sh"))?;
    for name in ["home/program", "fixture/sh"] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755))?;
    }
    symlink(at("home/automaton.json"), at("workspace/link"))
}

/// Returns a number that no other site has.
fn key() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let world = NEXT.fetch_add(1, Ordering::Relaxed) & 0x7f;
    (world << 24) + std::process::id()
}

/// Creates a System V segment of 64 bytes that contains the secret.
fn segment(key: u32) -> nix::Result<i32> {
    // SAFETY: the segment is new and larger than the secret. The pointer is detached.
    unsafe {
        let flags = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;
        let segment = Errno::result(libc::shmget(key.cast_signed(), 64, flags))?;
        let place = libc::shmat(segment, std::ptr::null(), 0);
        if place as isize == -1 {
            return Err(Errno::last());
        }
        std::ptr::copy_nonoverlapping(SECRET.as_ptr(), place.cast(), SECRET.len());
        Errno::result(libc::shmdt(place)).map(|_| segment)
    }
}

/// Duplicates a descriptor without close-on-exec, as a careless library does.
fn leak(file: &File) -> nix::Result<OwnedFd> {
    // SAFETY: the call creates a descriptor that nobody else has.
    unsafe {
        let number = libc::fcntl(file.as_raw_fd(), libc::F_DUPFD, LEAKED_MIN);
        Errno::result(number).map(|number| OwnedFd::from_raw_fd(number))
    }
}

/// Starts a process of this user. Returns it with the descriptor whose closing ends it.
fn victim(program: &Path) -> io::Result<(Child, OwnedFd)> {
    let (input, ours) = io::pipe()?;
    let (told, output) = io::pipe()?;
    let victim = ProcessCommand::new(program)
        .arg(WORD)
        .arg("be-victim")
        .env("KEY", SECRET)
        .stdin(Stdio::Descriptor(input.into()))
        .stdout(Stdio::Descriptor(output.into()));
    let victim = spawn(victim).map_err(io::Error::other)?;
    let mut told = told;
    let mut ready = [0; 6];
    told.read_exact(&mut ready)?;
    Ok((victim, ours.into()))
}

/// Returns the name of a variable of this process that no sandbox has.
fn foreign_variable() -> Option<String> {
    let mut names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    names.find(|name| !["PATH", "HOME", "LANG", "TERM"].contains(&name.as_str()))
}

/// Returns the kernel's handle of a file, or `None` if the file system has none.
fn handle(path: &Path) -> io::Result<Option<[u8; 8 + 128]>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut bytes = [0u8; 8 + 128];
    bytes[..4].copy_from_slice(&128u32.to_ne_bytes());
    let mut mount = 0i32;
    // SAFETY: the path is terminated, the handle's size is given in it.
    let result = unsafe {
        let handle = bytes.as_mut_ptr();
        let mount = &raw mut mount;
        libc::syscall(libc::SYS_name_to_handle_at, libc::AT_FDCWD, path.as_ptr(), handle, mount, 0)
    };
    Ok((result == 0).then_some(bytes))
}
