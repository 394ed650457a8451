//! The system calls that a sandboxed program may make.
//!
//! There are several filters. A call must pass all of them, and the strictest answer counts. One
//! filter checks the number of a call: it permits a list, answers `EPERM` to calls refused on
//! purpose, and `ENOSYS` to all others. So a call of a future kernel is refused, and a C library
//! falls back, as it does for `clone3`, whose flags a filter cannot see. The next filter checks
//! arguments and the architecture. The others give a special answer to a few calls. Never permit
//! a call by its absence from the others.

use std::collections::BTreeMap;
use std::num::TryFromIntError;

use nix::errno::Errno;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use super::syscalls::{self, CHANGES_OF_OWNER, PERMITTED_IF_COUNTED};
use super::{StepContext as _, StepFailure};
use crate::plan::{SharedMemory, SyscallFilter};
use crate::spec::Network;

/// The rules of each system call. No rules means that the answer always applies.
type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

const NAMESPACE_FLAGS: [libc::c_int; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWTIME,
];

/// `TIOCSTI` types into a terminal, `TIOCLINUX` pastes into a console, `TIOCSETD` loads line
/// disciplines.
const REFUSED_IOCTLS: [u64; 3] = [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD];

/// The permitted commands of `fcntl`. All others are refused, including those of later kernels. A
/// lease or a delegation (`F_SETLEASE`, `F_SETDELEG`) would keep every other program of the
/// machine from opening a file that can be read here, and nothing counts `F_NOTIFY`.
const FILE_COMMANDS: [libc::c_int; 29] = [
    libc::F_DUPFD,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_SETOWN,
    libc::F_GETOWN,
    F_SETSIG,
    F_GETSIG,
    F_SETOWN_EX,
    F_GETOWN_EX,
    libc::F_OFD_GETLK,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
    libc::F_GETLEASE,
    F_DUPFD_QUERY,
    F_CREATED_QUERY,
    libc::F_DUPFD_CLOEXEC,
    libc::F_SETPIPE_SZ,
    libc::F_GETPIPE_SZ,
    libc::F_ADD_SEALS,
    libc::F_GET_SEALS,
    F_GET_RW_HINT,
    F_SET_RW_HINT,
    F_GET_FILE_RW_HINT,
    F_SET_FILE_RW_HINT,
];

// From the kernel's interface (`asm-generic/fcntl.h`, `linux/fcntl.h`).
const F_SETSIG: libc::c_int = 10;
const F_GETSIG: libc::c_int = 11;
const F_SETOWN_EX: libc::c_int = 15;
const F_GETOWN_EX: libc::c_int = 16;
const F_DUPFD_QUERY: libc::c_int = 1024 + 3;
const F_CREATED_QUERY: libc::c_int = 1024 + 4;
const F_GET_RW_HINT: libc::c_int = 1024 + 11;
const F_SET_RW_HINT: libc::c_int = 1024 + 12;
const F_GET_FILE_RW_HINT: libc::c_int = 1024 + 13;
const F_SET_FILE_RW_HINT: libc::c_int = 1024 + 14;

/// Calls that can ask for huge pages, which no memory limit counts: the call, the argument with
/// its flags, and the flag.
const HUGE_PAGES: [(i64, u8, u32); 3] = [
    (libc::SYS_mmap, 3, libc::MAP_HUGETLB.cast_unsigned()),
    (libc::SYS_memfd_create, 1, libc::MFD_HUGETLB),
    (libc::SYS_shmget, 2, libc::SHM_HUGETLB.cast_unsigned()),
];

/// Options that make a socket hold more than the size that the watcher assumes without a control
/// group: larger queues, and pages of the program.
const SOCKET_SIZES: [libc::c_int; 5] = [
    libc::SO_SNDBUF,
    libc::SO_RCVBUF,
    libc::SO_SNDBUFFORCE,
    libc::SO_RCVBUFFORCE,
    libc::SO_ZEROCOPY,
];

/// `TCP_ULP`: a protocol in the kernel over a connection, such as TLS. Programs have their own.
const TCP_ULP: u64 = 31;

/// The flags of a shared anonymous mapping. `MAP_SHARED_VALIDATE` contains the bit of
/// `MAP_SHARED`, and `MAP_PRIVATE` does not.
const SHARED_AND_OF_NO_FILE: u64 =
    libc::MAP_SHARED.cast_unsigned() as u64 | libc::MAP_ANONYMOUS.cast_unsigned() as u64;

/// The size in bytes from which an uncounted mapping ends the program. A smaller one is refused,
/// since programs that try one can do without.
const UNCOUNTED_BYTES: u64 = 1 << 20;

/// `SECCOMP_FILTER_FLAG_NEW_LISTENER`: a filter that outlives its program.
const LASTING_FILTER: u64 = 1 << 3;

/// The ids that a change of owner may name: user and group 0, and -1 for "unchanged". The kernel
/// judges these. There is no other user or group inside.
const OWN_OWNERS: [u64; 2] = [0, 0xffff_ffff];

/// The process id of the sandbox's first process. Slowing it down needs capabilities that no
/// program has. Limiting it, and so ending it, needs none.
const FIRST_PROCESS: u64 = 1;

/// The bit that only `O_TMPFILE` has. It creates a file that gets its name later, without
/// `O_CREAT`.
const NAMELESS: u64 = 0o20_000_000;

/// The permitted transports of the internet families: the default of a type, TCP, UDP and ICMP.
/// Others are large parts of the kernel that few programs use, and asking for one loads it.
const TRANSPORTS: [libc::c_int; 5] =
    [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_ICMP, libc::IPPROTO_ICMPV6];

/// The part of a socket's type that is not a flag.
const SOCKET_TYPE_MASK: u64 = 0xf;

/// The permitted arguments of `personality`: the query, the default, and the default without
/// address randomisation, which debuggers and test tools use.
const PERSONALITIES: [u64; 3] = [0xffff_ffff, 0, 0x0004_0000];

/// The filters in the kernel's form. Compiling them takes longer than starting a program.
pub(crate) struct Filters(Vec<BpfProgram>);

impl Filters {
    pub(crate) fn make(filter: &SyscallFilter) -> Result<Self, StepFailure> {
        let step = "make the list of system calls";
        let refuse = SeccompAction::Errno(Errno::EPERM as u32);
        let by_arguments = argument_rules(filter).and_then(|rules| with_action(rules, refuse));
        let owners = owner_rules().and_then(|rules| with_action(rules, SeccompAction::Errno(0)));
        let mut filters =
            vec![by_arguments.step(step)?, owners.step(step)?, by_number(filter).step(step)?];
        if filter.shared_memory == SharedMemory::Refused {
            let too_much = uncounted_memory_rules();
            let too_much =
                too_much.and_then(|rules| with_action(rules, SeccompAction::KillProcess));
            filters.push(too_much.step(step)?);
            // After this error, programs copy the data themselves.
            let instead = SeccompAction::Errno(Errno::EINVAL as u32);
            let pinned = SyscallRules::from([(libc::SYS_sendfile, Vec::new())]);
            filters.push(with_action(pinned, instead).step(step)?);
        }
        Ok(Self(filters))
    }

    /// Confines this process and its descendants.
    pub(crate) fn apply(&self) -> Result<(), StepFailure> {
        self.0.iter().try_for_each(install).step("apply the list of system calls")
    }
}

/// Returns the reason why this machine lacks such filters, or `None` if it has them.
pub(crate) fn unavailable_reason() -> Option<String> {
    if let Err(error) = architecture() {
        return Some(error.to_string());
    }
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the pointer to the action is valid during the call, which only queries.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)
    };
    Errno::result(result).err().map(|errno| errno.to_string())
}

fn architecture() -> Result<TargetArch, BackendError> {
    std::env::consts::ARCH.try_into()
}

/// Builds a filter that gives this answer if one of the rules matches, and permits all else.
fn with_action(rules: SyscallRules, action: SeccompAction) -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(rules, SeccompAction::Allow, action, architecture()?)?.try_into()
}

/// Returns rules that match a change of owner to an id that does not exist inside. Such a call
/// reports success and does nothing, as under fakeroot: the owner stays, and archives unpack.
fn owner_rules() -> Result<SyscallRules, BackendError> {
    let other = |argument| {
        let differs = OWN_OWNERS.map(|own| differs(argument, own));
        rule(&differs.into_iter().collect::<Result<Vec<_>, _>>()?)
    };
    CHANGES_OF_OWNER
        .iter()
        .map(|(call, user)| Ok((*call, vec![other(*user)?, other(*user + 1)?])))
        .collect()
}

/// Returns rules that match a large request for memory that the watcher cannot count. The program
/// then ends, as at its memory limit.
fn uncounted_memory_rules() -> Result<SyscallRules, BackendError> {
    let shared = masked(3, SHARED_AND_OF_NO_FILE, SHARED_AND_OF_NO_FILE)?;
    let size = SeccompCmpArgLen::Qword;
    let at_least = SeccompCmpOp::Ge;
    let large = SeccompCondition::new(1, size, at_least, UNCOUNTED_BYTES)?;
    Ok(SyscallRules::from([
        (libc::SYS_mmap, vec![rule(&[shared, large])?]),
        (libc::SYS_vmsplice, Vec::new()),
    ]))
}

/// Builds the filter of call numbers. The kernel runs it for every number when it is installed,
/// so it searches by bisection instead of comparing each number.
fn by_number(filter: &SyscallFilter) -> Result<BpfProgram, TryFromIntError> {
    let unknown = libc::SECCOMP_RET_ERRNO | Errno::ENOSYS as u32;
    let refuse = libc::SECCOMP_RET_ERRNO | Errno::EPERM as u32;
    let counted = filter.shared_memory == SharedMemory::Counted;
    let counted = PERMITTED_IF_COUNTED.iter().copied().filter(|_| counted);
    // The second filter judges these two.
    let judged = [libc::SYS_clone, libc::SYS_personality];
    let permitted = syscalls::permitted().chain(counted).chain(judged);
    let permitted = permitted.map(|call| (call, libc::SECCOMP_RET_ALLOW));
    let answers: BTreeMap<i64, u32> =
        permitted.chain(syscalls::refused().map(|call| (call, refuse))).collect();
    let beyond = answers.last_key_value().map_or(0, |(last, _)| last + 1);
    let mut steps: Vec<FilterStep> = Vec::new();
    for (call, first) in (0..=beyond).zip(0..) {
        let answer = answers.get(&call).copied().unwrap_or(unknown);
        if steps.last().is_none_or(|step| step.answer != answer) {
            steps.push(FilterStep { first, answer });
        }
    }
    // The number comes first in the input of a filter.
    let number = instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0);
    Ok([vec![number], bisect(&steps)?].concat())
}

/// A range of call numbers with the same answer. It ends at the next step.
struct FilterStep {
    first: u32,
    answer: u32,
}

fn bisect(steps: &[FilterStep]) -> Result<BpfProgram, TryFromIntError> {
    match steps.split_at(steps.len() / 2) {
        (_, []) => Ok(Vec::new()),
        ([], [step, ..]) => Ok(vec![instruction(libc::BPF_RET | libc::BPF_K, 0, step.answer)]),
        (low, high @ [step, ..]) => {
            let low = bisect(low)?;
            let high = bisect(high)?;
            let is_high = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
            let jump = instruction(is_high, u8::try_from(low.len())?, step.first);
            Ok([vec![jump], low, high].concat())
        }
    }
}

/// Returns an instruction that continues with the next one if it does not jump.
fn instruction(code: u32, jump: u8, operand: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: jump, jf: 0, k: operand }
}

fn argument_rules(filter: &SyscallFilter) -> Result<SyscallRules, BackendError> {
    let mut rules = SyscallRules::new();
    let usual = PERSONALITIES.iter().map(|value| differs(0, *value));
    let unusual = rule(&usual.collect::<Result<Vec<_>, _>>()?)?;
    rules.insert(libc::SYS_personality, vec![unusual]);
    let flags = NAMESPACE_FLAGS.iter().map(|flag| {
        let flag = u64::from(flag.cast_unsigned());
        rule(&[masked(0, flag, flag)?])
    });
    rules.insert(libc::SYS_clone, flags.collect::<Result<_, _>>()?);
    let ioctls = REFUSED_IOCTLS.iter().map(|request| rule(&[equal(1, *request)?]));
    rules.insert(libc::SYS_ioctl, ioctls.collect::<Result<_, _>>()?);
    let known = FILE_COMMANDS.iter().map(|command| differs(1, command.cast_unsigned().into()));
    let unknown = rule(&known.collect::<Result<Vec<_>, _>>()?)?;
    rules.insert(libc::SYS_fcntl, vec![unknown]);
    for (call, argument, flag) in HUGE_PAGES {
        let flag = u64::from(flag);
        rules.insert(call, vec![rule(&[masked(argument, flag, flag)?])?]);
    }
    rules.insert(libc::SYS_prlimit64, vec![rule(&[equal(0, FIRST_PROCESS)?])?]);
    rules.insert(libc::SYS_socket, socket_rules(filter.network)?);
    let layer = [equal(1, libc::IPPROTO_TCP.cast_unsigned().into())?, equal(2, TCP_ULP)?];
    rules.insert(libc::SYS_setsockopt, vec![rule(&layer)?]);
    if filter.shared_memory == SharedMemory::Refused {
        refuse_uncounted(&mut rules)?;
    }
    rules.insert(
        libc::SYS_socketpair,
        vec![rule(&[differs(0, libc::AF_UNIX.cast_unsigned().into())?])?],
    );
    rules.insert(libc::SYS_mknodat, [device_rules(2)?, privilege_rules(&[], 2)?].concat());
    for (call, mode) in [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2)] {
        rules.insert(call, privilege_rules(&[], mode)?);
    }
    let create = libc::O_CREAT.cast_unsigned().into();
    let makes = |flags, mode| {
        let named = privilege_rules(&[masked(flags, create, create)?], mode)?;
        let nameless = privilege_rules(&[masked(flags, NAMELESS, NAMELESS)?], mode)?;
        Ok::<_, BackendError>([named, nameless].concat())
    };
    rules.insert(libc::SYS_openat, makes(2, 3)?);
    #[cfg(target_arch = "x86_64")]
    {
        rules.insert(libc::SYS_mknod, [device_rules(1)?, privilege_rules(&[], 1)?].concat());
        rules.insert(libc::SYS_chmod, privilege_rules(&[], 1)?);
        rules.insert(libc::SYS_creat, privilege_rules(&[], 1)?);
        rules.insert(libc::SYS_open, makes(1, 2)?);
    }
    Ok(rules)
}

/// Returns rules that match sockets which are not for programs of the same sandbox, and raw ones.
/// With a loopback, interfaces can be listed. Changing them needs a capability that no program
/// has.
fn socket_rules(network: Network) -> Result<Vec<SeccompRule>, BackendError> {
    let unix = libc::AF_UNIX.cast_unsigned().into();
    if network == Network::None {
        return Ok(vec![rule(&[differs(0, unix)?])?]);
    }
    let inet = libc::AF_INET.cast_unsigned().into();
    let inet6 = libc::AF_INET6.cast_unsigned().into();
    let netlink = libc::AF_NETLINK.cast_unsigned().into();
    let raw = libc::SOCK_RAW.cast_unsigned().into();
    let routes = libc::NETLINK_ROUTE.cast_unsigned().into();
    let family = [differs(0, unix)?, differs(0, inet)?, differs(0, inet6)?, differs(0, netlink)?];
    let raw = [differs(0, unix)?, differs(0, netlink)?, masked(1, SOCKET_TYPE_MASK, raw)?];
    let other_netlink = [equal(0, netlink)?, differs(2, routes)?];
    let other_transport = |family| {
        let known = TRANSPORTS.iter().map(|known| differs(2, known.cast_unsigned().into()));
        let known = known.collect::<Result<Vec<_>, _>>()?;
        rule(&[&[equal(0, family)?], &known[..]].concat())
    };
    let others = [other_transport(inet)?, other_transport(inet6)?];
    Ok([&[rule(&family)?, rule(&raw)?, rule(&other_netlink)?], &others[..]].concat())
}

/// Refuses memory that the watcher over processes does not see.
fn refuse_uncounted(rules: &mut SyscallRules) -> Result<(), BackendError> {
    let shared = rule(&[masked(3, SHARED_AND_OF_NO_FILE, SHARED_AND_OF_NO_FILE)?])?;
    rules.entry(libc::SYS_mmap).or_default().push(shared);
    let lasting = rule(&[masked(1, LASTING_FILTER, LASTING_FILTER)?])?;
    rules.insert(libc::SYS_seccomp, vec![lasting]);
    let level = equal(1, libc::SOL_SOCKET.cast_unsigned().into())?;
    let sizes = SOCKET_SIZES.iter().map(|option| {
        let option = equal(2, option.cast_unsigned().into())?;
        rule(&[level.clone(), option])
    });
    let sizes = sizes.collect::<Result<Vec<_>, _>>()?;
    rules.entry(libc::SYS_setsockopt).or_default().extend(sizes);
    Ok(())
}

/// Returns rules that match setting the set-user-id or set-group-id bit, with the mode in this
/// argument. On the host, the workspace's files belong to our user.
fn privilege_rules(
    when: &[SeccompCondition],
    argument: u8,
) -> Result<Vec<SeccompRule>, BackendError> {
    [libc::S_ISUID, libc::S_ISGID]
        .into_iter()
        .map(|bit| {
            let bit = masked(argument, bit.into(), bit.into())?;
            rule(&[when, &[bit]].concat())
        })
        .collect()
}

/// Returns rules that match creating a device node, with the mode in this argument.
fn device_rules(argument: u8) -> Result<Vec<SeccompRule>, BackendError> {
    let kind = u64::from(libc::S_IFMT);
    [libc::S_IFCHR, libc::S_IFBLK]
        .into_iter()
        .map(|device| rule(&[masked(argument, kind, u64::from(device))?]))
        .collect()
}

fn rule(conditions: &[SeccompCondition]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.to_vec())
}

// The compared arguments are 32 bits wide. The kernel ignores the bits above them, so the filter
// must too.

fn equal(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn differs(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
    let comparison = SeccompCmpOp::MaskedEq(mask);
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value)
}

/// Installs a filter. The library's own function would also set `no_new_privs`, which is a
/// separate step of our plans.
fn install(program: &BpfProgram) -> nix::Result<()> {
    let len = libc::c_ushort::try_from(program.len()).map_err(|_| Errno::E2BIG)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut().cast() };
    // SAFETY: the structure points to as many instructions as it says, in the kernel's layout.
    // The kernel only copies them, during the call.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    Errno::result(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_both_permitted_and_refused() {
        for call in syscalls::refused().chain([libc::SYS_clone3]) {
            assert!(syscalls::permitted().all(|permitted| permitted != call), "{call}");
            assert!(!PERMITTED_IF_COUNTED.contains(&call), "{call}");
        }
        // `clone3` needs the answer that makes C libraries fall back.
        assert!(syscalls::refused().all(|refused| refused != libc::SYS_clone3));
    }

    fn all() -> impl Iterator<Item = SyscallFilter> {
        [Network::None, Network::Loopback, Network::Served, Network::Proxied].into_iter().flat_map(
            |network| {
                [SharedMemory::Counted, SharedMemory::Refused]
                    .map(|shared_memory| SyscallFilter { network, shared_memory })
            },
        )
    }

    #[test]
    fn every_filter_fits_the_kernel() {
        for filter in all() {
            for program in Filters::make(&filter).unwrap().0 {
                assert!(program.len() < 4096, "{}", program.len());
            }
        }
    }

    /// Returns the answer of the number filter, as the kernel would run it.
    fn with_action(program: &[sock_filter], number: u32) -> u32 {
        let mut at = 1;
        loop {
            let step = &program[at];
            match u32::from(step.code) {
                libc::BPF_RET => return step.k,
                _ => at += 1 + if number >= step.k { usize::from(step.jt) } else { 0 },
            }
        }
    }

    #[test]
    fn every_number_gets_the_answer_of_its_list() {
        for filter in all() {
            let program = by_number(&filter).unwrap();
            let counted = filter.shared_memory == SharedMemory::Counted;
            for number in (0..1000).chain([0x4000_0000, 0x4000_0001, u32::MAX]) {
                let call = i64::from(number);
                let judged = [libc::SYS_clone, libc::SYS_personality].contains(&call);
                let permitted = syscalls::permitted().any(|known| known == call)
                    || counted && PERMITTED_IF_COUNTED.contains(&call);
                let expected = match (permitted || judged, syscalls::refused().any(|r| r == call)) {
                    (true, _) => libc::SECCOMP_RET_ALLOW,
                    (_, true) => libc::SECCOMP_RET_ERRNO | Errno::EPERM as u32,
                    _ => libc::SECCOMP_RET_ERRNO | Errno::ENOSYS as u32,
                };
                assert_eq!(with_action(&program, number), expected, "{number}");
            }
        }
    }
}
