//! The new root: built from nothing, then made the only one.
//!
//! Host paths are opened before the new root covers anything, and attached as
//! mounts of their own, so a path is looked up once and in the host's view.
//! Nothing may be mounted after the root is sealed.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{chdir, pivot_root};

use super::{Named as _, Problem};
use crate::plan::{Access, Node, Presence, ProcSource};

/// Where the new root is built. It covers the host's directory of that name
/// only in the new mount namespace, and only until it becomes the root.
const BASE: &str = "/tmp";

/// Enough for directories, links and small files.
const ROOT_OPTIONS: &str = "mode=0755,size=1m";

/// `struct mount_attr` of the kernel's interface.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Whether an operation covers the mounts below.
#[derive(Debug, Clone, Copy)]
enum Depth {
    One,
    All,
}

/// A node with everything of the host's that it needs.
enum Staged<'a> {
    Nothing,
    Tree { tree: OwnedFd, inside: &'a Path },
    Link { path: &'a Path, target: PathBuf },
    Plain(&'a Node),
}

/// Stops the exchange of mounts with the host, in both directions.
pub(crate) fn make_private() -> Result<(), Problem> {
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).step("make mounts private")
}

/// Builds the root and makes it the only one.
pub(crate) fn build_root(nodes: &[Node]) -> Result<(), Problem> {
    let staged = nodes.iter().map(stage).collect::<Result<Vec<_>, _>>()?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), BASE, Some("tmpfs"), flags, Some(ROOT_OPTIONS))
        .step("mount the new root")?;
    for node in &staged {
        place(node)?;
    }
    chdir(BASE).step("enter the new root")?;
    // The old root comes to lie over the new one and is then taken off.
    pivot_root(".", ".").step("change the root")?;
    umount2(".", MntFlags::MNT_DETACH).step("detach the host's root")?;
    chdir("/").step("enter the new root")?;
    set_attributes_at(Path::new("/"), libc::MOUNT_ATTR_RDONLY).step("seal the new root")
}

/// Mounts this namespace's process file system over the host's.
pub(crate) fn mount_proc(at: &Path) -> Result<(), Problem> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), at, Some("proc"), flags, None::<&str>).step("mount /proc")
}

/// Makes `/proc` read-only: for user 0 of the host it holds switches of the
/// whole machine.
pub(crate) fn seal_proc() -> Result<(), Problem> {
    set_attributes_at(Path::new("/proc"), libc::MOUNT_ATTR_RDONLY).step("seal /proc")
}

/// Tries the calls on which this file depends, in a namespace to be thrown
/// away.
pub(crate) fn try_interface() -> Result<(), Problem> {
    let tree = open_tree(Path::new("/usr"), Depth::All).step("open_tree")?;
    set_attributes(tree.as_fd(), libc::MOUNT_ATTR_RDONLY).step("mount_setattr")?;
    let flags = MsFlags::empty();
    mount(Some("tmpfs"), BASE, Some("tmpfs"), flags, Some(ROOT_OPTIONS)).step("mount")?;
    attach(tree.as_fd(), Path::new(BASE)).step("move_mount")
}

fn stage(node: &Node) -> Result<Staged<'_>, Problem> {
    match node {
        Node::System { path } => match fs::read_link(path) {
            Ok(target) => Ok(Staged::Link { path, target }),
            Err(_) => open(path, path, Access::ReadOnly, Presence::IfPresent),
        },
        Node::Bind { host, inside, access, presence } => open(host, inside, *access, *presence),
        Node::Proc { source: ProcSource::Host } => {
            let path = Path::new("/proc");
            open(path, path, Access::Write, Presence::Required)
        }
        Node::Directory { .. }
        | Node::Link { .. }
        | Node::Text { .. }
        | Node::Memory { .. }
        | Node::Proc { source: ProcSource::Own } => Ok(Staged::Plain(node)),
    }
}

fn open<'a>(
    host: &Path,
    inside: &'a Path,
    access: Access,
    presence: Presence,
) -> Result<Staged<'a>, Problem> {
    let name = || format!("open {} of the host", host.display());
    let tree = match (open_tree(host, Depth::All), presence) {
        (Ok(tree), _) => tree,
        (Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES), Presence::IfPresent) => {
            return Ok(Staged::Nothing);
        }
        (Err(errno), _) => return Err(errno).step(name()),
    };
    let attributes = match access {
        Access::ReadOnly => {
            libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV
        }
        Access::Write => libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        Access::Device => {
            libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC
        }
    };
    set_attributes(tree.as_fd(), attributes).step(name())?;
    Ok(Staged::Tree { tree, inside })
}

fn place(staged: &Staged<'_>) -> Result<(), Problem> {
    match staged {
        Staged::Nothing => Ok(()),
        Staged::Tree { tree, inside } => {
            let step = format!("attach {}", inside.display());
            let at = below_base(inside);
            let kind = fstat(tree).step(&step)?.st_mode & SFlag::S_IFMT.bits();
            if kind == SFlag::S_IFDIR.bits() {
                fs::create_dir_all(&at).step(&step)?;
            } else {
                create_parent(&at).and_then(|()| fs::write(&at, "")).step(&step)?;
            }
            attach(tree.as_fd(), &at).step(&step)
        }
        Staged::Link { path, target } => link(path, target),
        Staged::Plain(Node::Link { path, target }) => link(path, target),
        Staged::Plain(Node::Directory { path }) => {
            fs::create_dir_all(below_base(path)).step(format!("make {}", path.display()))
        }
        Staged::Plain(Node::Text { path, text }) => {
            let at = below_base(path);
            create_parent(&at)
                .and_then(|()| fs::write(&at, text))
                .and_then(|()| fs::set_permissions(&at, fs::Permissions::from_mode(0o444)))
                .step(format!("write {}", path.display()))
        }
        Staged::Plain(Node::Memory { path, bytes_max }) => mount_memory(path, *bytes_max),
        Staged::Plain(Node::Proc { .. }) => {
            let at = below_base(Path::new("/proc"));
            fs::create_dir_all(&at).step("make /proc")?;
            mount_proc(&at)
        }
        // Both were opened by `stage`.
        Staged::Plain(Node::System { .. } | Node::Bind { .. }) => Ok(()),
    }
}

fn mount_memory(path: &Path, bytes_max: Option<u64>) -> Result<(), Problem> {
    let step = format!("mount {}", path.display());
    let at = below_base(path);
    fs::create_dir_all(&at).step(&step)?;
    let mut options = "mode=1777".to_owned();
    if let Some(bytes) = bytes_max {
        // Empty files cost memory too: as many as there can be pages.
        let files = (bytes / 4096).max(1024);
        options = format!("{options},size={bytes},nr_inodes={files}");
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), &at, Some("tmpfs"), flags, Some(options.as_str())).step(&step)
}

fn link(path: &Path, target: &Path) -> Result<(), Problem> {
    let at = below_base(path);
    create_parent(&at)
        .and_then(|()| std::os::unix::fs::symlink(target, &at))
        .step(format!("link {}", path.display()))
}

fn below_base(path: &Path) -> PathBuf {
    Path::new(BASE).join(path.strip_prefix("/").unwrap_or(path))
}

fn create_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// A copy of the mounts at a path, attached nowhere.
fn open_tree(path: &Path, depth: Depth) -> nix::Result<OwnedFd> {
    let path = terminated(path)?;
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | at_flags(depth);
    // SAFETY: the path is terminated and outlives the call, which makes a new
    // descriptor that nobody else owns.
    unsafe {
        let fd = libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags);
        let fd = RawFd::try_from(Errno::result(fd)?).map_err(|_| Errno::ERANGE)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn attach(tree: BorrowedFd<'_>, at: &Path) -> io::Result<()> {
    let at = terminated(at)?;
    // SAFETY: both paths are terminated and outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            at.as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    Ok(Errno::result(result).map(drop)?)
}

fn set_attributes(tree: BorrowedFd<'_>, set: u64) -> nix::Result<()> {
    let flags = libc::AT_EMPTY_PATH as libc::c_uint | at_flags(Depth::All);
    mount_setattr(tree.as_raw_fd(), c"", flags, set)
}

fn set_attributes_at(path: &Path, set: u64) -> nix::Result<()> {
    mount_setattr(libc::AT_FDCWD, &terminated(path)?, at_flags(Depth::One), set)
}

fn mount_setattr(
    fd: RawFd,
    path: &std::ffi::CStr,
    flags: libc::c_uint,
    set: u64,
) -> nix::Result<()> {
    let attributes = MountAttributes { set, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the path is terminated; the structure has the kernel's layout,
    // its true size is given, and both outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    Errno::result(result).map(drop)
}

const fn at_flags(depth: Depth) -> libc::c_uint {
    match depth {
        Depth::One => 0,
        Depth::All => libc::AT_RECURSIVE as libc::c_uint,
    }
}

fn terminated(path: &Path) -> nix::Result<std::ffi::CString> {
    std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)
}
