//! The new root, built from nothing and then made the only one.
//!
//! Host paths are opened before the new root covers anything, and are attached as separate
//! mounts. So a path is looked up once, as the host sees it. Nothing may be mounted after the
//! root is sealed.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::NixPath as _;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::fstat;
use nix::unistd::{chdir, pivot_root};

use super::{StepContext as _, StepFailure};
use crate::plan::{BindAccess, Presence, ProcSource, RootNode};
use crate::process::new_descriptor;

/// The place where the new root is built. It covers the host's directory of that name only in the
/// new mount namespace, and only until it becomes the root.
const BASE: &str = "/tmp";

/// Empty places of the new root that cover other paths. They must exist before anything is
/// covered.
const EMPTY_FILE: &str = "dev/null";
const EMPTY_FOLDER: &str = "mnt";

/// The length of a file of zeros, which takes no space on disk or in memory.
const ZEROS_BYTES: u64 = 1 << 60;

/// Enough for directories, links and small files.
const ROOT_OPTIONS: &str = "mode=0755,size=1m";

/// Applies to the mounts below too.
const RECURSIVE: libc::c_uint = libc::AT_RECURSIVE as libc::c_uint;

/// Stops the exchange of mounts with the host, in both directions.
pub(crate) fn make_private() -> Result<(), StepFailure> {
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).step("make mounts private")
}

/// The nodes of the root, each with its opened but unattached host tree.
pub(crate) type HostTrees = Vec<(RootNode, Option<OwnedFd>)>;

/// Opens the host trees of these nodes. If `lent` is a user namespace, the trees that the caller
/// named are mapped to its user.
pub(crate) fn open_trees(
    nodes: &[RootNode],
    lent: Option<&OwnedFd>,
) -> Result<HostTrees, StepFailure> {
    let open = |node: RootNode| {
        let tree = open_host(&node, lent)?;
        Ok((node, tree))
    };
    nodes.iter().flat_map(name_members).map(open).collect()
}

/// Returns the node itself, or for a family of paths its members on this host.
fn name_members(node: &RootNode) -> Vec<RootNode> {
    let RootNode::Family { folder, prefix } = node else { return vec![node.clone()] };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let members = entries.filter(|entry| {
        let is_member = entry.file_name().to_string_lossy().starts_with(prefix);
        is_member && entry.path().is_dir()
    });
    let bind = |path: PathBuf| RootNode::Bind {
        host: path.clone(),
        inside: path,
        access: BindAccess::ReadOnly,
        presence: Presence::IfPresent,
    };
    members.map(|entry| bind(entry.path())).collect()
}

/// Builds the root from the opened trees, or opens them here, and makes it the only root. If the
/// command is root on the host, configuration that only root may read is covered by empty files.
pub(crate) fn build_root(
    nodes: &[RootNode],
    trees: Option<HostTrees>,
    is_hosts_root: bool,
) -> Result<(), StepFailure> {
    let trees = trees.map_or_else(|| open_trees(nodes, None), Ok)?;
    mount_tmpfs(Path::new(BASE), ROOT_OPTIONS).step("mount the new root")?;
    let mut shown = Vec::new();
    for (node, tree) in trees {
        let is_configuration = matches!(
            &node,
            RootNode::Bind { access: BindAccess::ReadOnly, presence: Presence::IfPresent, inside, .. }
                if inside.starts_with("/etc")
        );
        let is_there = tree.is_some();
        let at = create_node(&node, tree)?;
        shown.extend(Some(at).filter(|_| is_hosts_root && is_configuration && is_there));
    }
    for at in shown {
        cover_private(&at).step(format!("hide private files of {}", at.display()))?;
    }
    chdir(BASE).step("enter the new root")?;
    // The old root is mounted over the new one and then detached.
    pivot_root(".", ".").step("change the root")?;
    umount2(".", MntFlags::MNT_DETACH).step("detach the host's root")?;
    chdir("/").step("enter the new root")?;
    seal(c"/").step("seal the new root")
}

/// Mounts this namespace's process file system.
pub(crate) fn mount_proc(at: &Path) -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), at, Some("proc"), flags, None::<&str>)
}

/// Makes `/proc` read-only: for user 0 of the host it contains settings of the whole machine.
pub(crate) fn seal_proc() -> Result<(), StepFailure> {
    seal(c"/proc").step("seal /proc")
}

/// Tries the calls that this file needs, in a disposable namespace.
pub(crate) fn try_interface() -> Result<(), StepFailure> {
    let tree = open_tree(Path::new("/usr"), 0).step("open_tree")?;
    set_attributes(&tree, libc::MOUNT_ATTR_RDONLY, None).step("mount_setattr")?;
    mount_tmpfs(Path::new(BASE), ROOT_OPTIONS).step("mount")?;
    attach(&tree, Path::new(BASE)).step("move_mount")
}

/// Tries whether files of a place can be mapped by this namespace.
pub(crate) fn try_lending(place: &Path, lent: &OwnedFd) -> nix::Result<()> {
    set_attributes(&open_tree(place, 0)?, libc::MOUNT_ATTR_NOSUID, Some(lent))
}

/// Opens the host tree that a node shows, if it shows one that exists.
fn open_host(node: &RootNode, lent: Option<&OwnedFd>) -> Result<Option<OwnedFd>, StepFailure> {
    let (host, access, presence) = match node {
        // Inside, it is the same link.
        RootNode::System { path } if path.is_symlink() => return Ok(None),
        RootNode::System { path } => (path.as_path(), BindAccess::ReadOnly, Presence::IfPresent),
        RootNode::Bind { host, access, presence, .. } => (host.as_path(), *access, *presence),
        RootNode::Proc { source: ProcSource::Host } => {
            (Path::new("/proc"), BindAccess::Write, Presence::Required)
        }
        _ => return Ok(None),
    };
    let name = || format!("open {} of the host", host.display());
    let tree = match (open_tree(host, 0), presence) {
        (Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES), Presence::IfPresent) => {
            return Ok(None);
        }
        (tree, _) => tree.step(name())?,
    };
    let attributes = match access {
        BindAccess::ReadOnly => {
            libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV
        }
        BindAccess::Write => libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        BindAccess::Device => {
            libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC
        }
    };
    // System files are those that every user may read, and devices are open to everybody.
    let is_named = matches!(node, RootNode::Bind { presence: Presence::Required, .. });
    let is_named = is_named && access != BindAccess::Device;
    set_attributes(&tree, attributes, lent.filter(|_| is_named)).step(name())?;
    Ok(Some(tree))
}

/// Creates one entry of the root, with its opened tree. Returns its path below the base.
fn create_node(node: &RootNode, tree: Option<OwnedFd>) -> Result<PathBuf, StepFailure> {
    let (verb, inside) = match node {
        RootNode::Directory { path } => ("make", path.as_path()),
        RootNode::Text { path, .. } => ("write", path.as_path()),
        RootNode::Memory { path, .. } | RootNode::Terminals { path, .. } => {
            ("mount", path.as_path())
        }
        RootNode::Zeros { path } => ("make", path.as_path()),
        RootNode::Family { folder, .. } => ("attach", folder.as_path()),
        RootNode::Sealed { path } => ("make read-only", path.as_path()),
        RootNode::Covered { path } => ("cover", path.as_path()),
        RootNode::Link { path, .. } | RootNode::System { path } => ("link", path.as_path()),
        RootNode::Bind { inside, .. } => ("attach", inside.as_path()),
        RootNode::Proc { .. } => ("mount", Path::new("/proc")),
    };
    let verb = if tree.is_some() { "attach" } else { verb };
    let at = Path::new(BASE).join(inside.strip_prefix("/").unwrap_or(inside));
    fill_node(node, tree, &at).step(format!("{verb} {}", inside.display()))?;
    Ok(at)
}

fn fill_node(node: &RootNode, tree: Option<OwnedFd>, at: &Path) -> io::Result<()> {
    let make_parent = || at.parent().map_or(Ok(()), fs::create_dir_all);
    match (node, tree) {
        (_, Some(tree)) => {
            if fstat(&tree)?.st_mode & libc::S_IFMT == libc::S_IFDIR {
                fs::create_dir_all(at)?;
            } else {
                make_parent()?;
                fs::write(at, "")?;
            }
            Ok(attach(&tree, at)?)
        }
        (RootNode::System { path }, None) => match fs::read_link(path) {
            Ok(target) => make_parent().and_then(|()| symlink(target, at)),
            // The host has neither a directory nor a link.
            Err(_) => Ok(()),
        },
        (RootNode::Bind { .. } | RootNode::Family { .. }, None) => Ok(()),
        (RootNode::Directory { .. }, None) => fs::create_dir_all(at),
        (RootNode::Link { target, .. }, None) => make_parent().and_then(|()| symlink(target, at)),
        (RootNode::Text { text, .. }, None) => {
            make_parent()?;
            fs::write(at, text)?;
            fs::set_permissions(at, fs::Permissions::from_mode(0o444))
        }
        (RootNode::Memory { bytes_max, .. }, None) => {
            fs::create_dir_all(at)?;
            let mut options = "mode=1777".to_owned();
            if let Some(bytes) = bytes_max {
                // Empty files cost memory too, so their number is limited to the number of pages.
                let files = (bytes / 4096).max(1024);
                options = format!("{options},size={bytes},nr_inodes={files}");
            }
            Ok(mount_tmpfs(at, &options)?)
        }
        (RootNode::Zeros { .. }, None) => {
            make_parent()?;
            File::create(at)?.set_len(ZEROS_BYTES)
        }
        (RootNode::Terminals { count_max, .. }, None) => {
            fs::create_dir_all(at)?;
            mount_terminals(at, *count_max)
        }
        (RootNode::Sealed { .. }, None) => seal_folder(at),
        (RootNode::Covered { .. }, None) => match fs::metadata(at) {
            // A path that the kernel does not have now will not appear later.
            Err(_) => Ok(()),
            Ok(found) => cover(at, if found.is_dir() { EMPTY_FOLDER } else { EMPTY_FILE }),
        },
        (RootNode::Proc { .. }, None) => {
            fs::create_dir_all(at)?;
            Ok(mount_proc(at)?)
        }
    }
}

/// Mounts a folder over itself, read-only. A program may have created its content, so no link is
/// followed.
fn seal_folder(at: &Path) -> io::Result<()> {
    match fs::create_dir(at) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let tree = open_tree(at, libc::AT_SYMLINK_NOFOLLOW as libc::c_uint)?;
    if fstat(&tree)?.st_mode & libc::S_IFMT != libc::S_IFDIR {
        return Err(Errno::ENOTDIR.into());
    }
    set_attributes(&tree, libc::MOUNT_ATTR_RDONLY, None)?;
    Ok(attach(&tree, at)?)
}

/// Mounts a private instance of the terminal file system.
fn mount_terminals(at: &Path, count_max: u32) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = format!("newinstance,ptmxmode=0666,mode=0620,max={count_max}");
    match mount(Some("devpts"), at, Some("devpts"), flags, Some(options.as_str())) {
        // Terminals are no protection. If the kernel refuses them, programs run without them.
        Err(Errno::ENODEV | Errno::EPERM) => Ok(()),
        mounted => Ok(mounted?),
    }
}

/// Covers every path at and below `at` that not everybody may read. Follows no link.
fn cover_private(at: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(at)?;
    let everybody = found.permissions().mode() & 0o007;
    if found.is_symlink() {
        return Ok(());
    }
    if !found.is_dir() {
        return if everybody & 0o4 == 0 { cover(at, EMPTY_FILE) } else { Ok(()) };
    }
    if everybody & 0o5 != 0o5 {
        return cover(at, EMPTY_FOLDER);
    }
    fs::read_dir(at)?.try_for_each(|entry| cover_private(&entry?.path()))
}

/// Mounts an empty file or folder of the new root over a path.
fn cover(at: &Path, empty: &str) -> io::Result<()> {
    let tree = open_tree(&Path::new(BASE).join(empty), 0)?;
    let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
    set_attributes(&tree, attributes, None)?;
    Ok(attach(&tree, at)?)
}

fn mount_tmpfs(at: &Path, options: &str) -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), at, Some("tmpfs"), flags, Some(options))
}

/// Clones the mounts at and below a path without attaching them. `flags` control the lookup.
fn open_tree(path: &Path, flags: libc::c_uint) -> nix::Result<OwnedFd> {
    let flags = flags | libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | RECURSIVE;
    // SAFETY: the path is terminated and outlives the call, which creates a new descriptor.
    path.with_nix_path(|path| unsafe {
        new_descriptor(libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags))
    })?
}

fn attach(tree: &OwnedFd, at: &Path) -> nix::Result<()> {
    let tree = tree.as_raw_fd();
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
    // SAFETY: both paths are terminated and outlive the call.
    let result = at.with_nix_path(|at| unsafe {
        let from = c"".as_ptr();
        let to = at.as_ptr();
        libc::syscall(libc::SYS_move_mount, tree, from, libc::AT_FDCWD, to, flags)
    })?;
    Errno::result(result).map(drop)
}

/// Sets attributes of an unattached tree, makes it private, and maps its owners by `lent` if
/// given.
fn set_attributes(tree: &OwnedFd, attributes: u64, lent: Option<&OwnedFd>) -> nix::Result<()> {
    let flags = libc::AT_EMPTY_PATH as libc::c_uint | RECURSIVE;
    let mut attributes = libc::mount_attr { propagation: libc::MS_PRIVATE, ..setting(attributes) };
    if let Some(lent) = lent {
        attributes.attr_set |= libc::MOUNT_ATTR_IDMAP;
        attributes.userns_fd = lent.as_raw_fd().unsigned_abs().into();
    }
    mount_setattr(tree.as_raw_fd(), c"", flags, attributes)
}

const fn setting(attr_set: u64) -> libc::mount_attr {
    libc::mount_attr { attr_set, attr_clr: 0, propagation: 0, userns_fd: 0 }
}

/// Makes one mount read-only, without the mounts below it.
fn seal(path: &CStr) -> nix::Result<()> {
    mount_setattr(libc::AT_FDCWD, path, 0, setting(libc::MOUNT_ATTR_RDONLY))
}

fn mount_setattr(
    fd: RawFd,
    path: &CStr,
    flags: libc::c_uint,
    attributes: libc::mount_attr,
) -> nix::Result<()> {
    let path = path.as_ptr();
    let size = size_of_val(&attributes);
    // SAFETY: the path is terminated. The structure's true size is given. Both outlive the call.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, fd, path, flags, &raw const attributes, size)
    };
    Errno::result(result).map(drop)
}
