//! System call filter: calls that no agent needs and that reach around the sandbox are denied with EPERM.
//!
//! Nothing is killed: a program that tries one of them sees an error and can go on.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

use super::Network;

/// Other processes' memory, the kernel itself, and ways to files or sockets beside the usual calls.
const DENIED: [i64; 42] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_setns,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// Types a character into a terminal as if its user had, which is never an agent.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// All families but local sockets and the kernel's own tables.
const INTERNET_FAMILIES: [i32; 5] = [
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_PACKET,
    libc::AF_VSOCK,
    libc::AF_BLUETOOTH,
];

/// Bits of a filter's return value, and of a call number on x86-64.
const RETURN_ERRNO: u32 = 0x0005_0000;
const RETURN_KILL_PROCESS: u32 = 0x8000_0000;
#[cfg(target_arch = "x86_64")]
const X32_CALL: u32 = 0x4000_0000;

#[derive(Debug, thiserror::Error)]
#[error("system call filter: {0}")]
pub(super) struct FilterError(String);

/// Restricts the current thread for good. It must not be able to gain privileges.
pub(super) fn apply(network: &Network) -> Result<(), FilterError> {
    let failed = |error: &dyn std::fmt::Display| FilterError(error.to_string());
    let program = program(network).map_err(|error| failed(&error))?;
    rustix::thread::set_no_new_privs(true).map_err(|error| failed(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| failed(&error))
}

fn program(network: &Network) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let input: Result<Vec<_>, _> = TERMINAL_INPUT
        .iter()
        .map(|request| argument_is(1, *request))
        .collect();
    rules.insert(libc::SYS_ioctl, input?);
    if *network == Network::None {
        let families: Result<Vec<_>, _> = INTERNET_FAMILIES
            .iter()
            .map(|family| argument_is(0, u64::from(family.unsigned_abs())))
            .collect();
        rules.insert(libc::SYS_socket, families?);
    }
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch)?;
    Ok(without_killing(filter.try_into()?))
}

fn argument_is(index: u8, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?;
    SeccompRule::new(vec![condition])
}

/// Denies the calls of foreign architectures, which have other numbers, in place of killing.
fn without_killing(mut program: BpfProgram) -> BpfProgram {
    let deny = RETURN_ERRNO | libc::EPERM.unsigned_abs();
    for instruction in &mut program {
        if is_return(instruction) && instruction.k == RETURN_KILL_PROCESS {
            instruction.k = deny;
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        // The second table of 64-bit calls has the same architecture and a bit in the number.
        let load_number = sock_filter {
            code: 0x20,
            jt: 0,
            jf: 0,
            k: 0,
        };
        let is_x32 = sock_filter {
            code: 0x45,
            jt: 0,
            jf: 1,
            k: X32_CALL,
        };
        let answer = sock_filter {
            code: 0x06,
            jt: 0,
            jf: 0,
            k: deny,
        };
        program.splice(0..0, [load_number, is_x32, answer]);
    }
    program
}

fn is_return(instruction: &sock_filter) -> bool {
    instruction.code == 0x06
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_of_the_filter_kills() {
        for network in [Network::Open, Network::None, Network::Ports(vec![443])] {
            let program = program(&network).unwrap();
            let returns = program.iter().filter(|instruction| is_return(instruction));
            for answer in returns {
                let action = answer.k & 0xffff_0000;
                assert!(
                    action == RETURN_ERRNO || action == 0x7fff_0000,
                    "{:x}",
                    answer.k
                );
            }
            assert!(program.len() < 4096, "the kernel takes no longer one");
        }
    }

    /// On a thread of its own, which ends restricted.
    #[test]
    fn a_denied_call_fails_and_others_go_on() {
        let restricted = std::thread::spawn(|| {
            apply(&Network::None).unwrap();
            let udp = std::net::UdpSocket::bind("127.0.0.1:0").map(drop);
            let local = std::os::unix::net::UnixStream::pair().map(drop);
            let traced = rustix::process::getpid();
            let read = rustix::process::pidfd_open(traced, rustix::process::PidfdFlags::empty());
            let taken = rustix::process::pidfd_getfd(
                read.unwrap(),
                0,
                rustix::process::PidfdGetfdFlags::empty(),
            );
            (udp, local, taken.map(drop))
        });
        let (udp, local, taken) = restricted.join().unwrap();
        assert_eq!(udp.unwrap_err().raw_os_error(), Some(libc::EPERM));
        assert!(local.is_ok());
        assert_eq!(taken.unwrap_err(), rustix::io::Errno::PERM);
    }
}
