//! Kernel support: what of the sandbox the running kernel can enforce.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    Scope,
};

/// What the running kernel can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelSupport {
    /// The version of Landlock, up to the last one that adds a restriction; 0 without Landlock.
    pub(crate) landlock_abi: u8,
}

/// What each version of Landlock adds: without it, an agent can do the thing on the right.
const LACKS: [(u8, &str); 7] = [
    (
        1,
        "files: an agent reaches every file that its system user can",
    ),
    (
        2,
        "moving files between directories: an agent cannot, and some programs fail",
    ),
    (
        3,
        "truncation: an agent can empty files that its system user can write",
    ),
    (
        4,
        "TCP ports: `network` with a list of ports is not enforced",
    ),
    (
        5,
        "devices: an agent can use `ioctl` on devices that it can open",
    ),
    (
        6,
        "signals and abstract sockets: an agent can signal processes of its system user",
    ),
    (
        9,
        "named sockets: an agent can connect to those that its system user can open",
    ),
];

impl KernelSupport {
    /// Asks the kernel. Restricts nothing.
    pub(crate) fn detect() -> Self {
        let supported = LACKS.iter().map(|(abi, _)| *abi);
        let landlock_abi = supported.take_while(|abi| has(*abi)).last().unwrap_or(0);
        Self { landlock_abi }
    }

    /// What cannot be enforced, although newer kernels can, as sentences.
    pub(crate) fn missing(self) -> Vec<&'static str> {
        let newer = LACKS.iter().filter(|(abi, _)| *abi > self.landlock_abi);
        newer.map(|(_, lack)| *lack).collect()
    }

    /// Whether files are protected at all.
    pub(crate) fn has_landlock(self) -> bool {
        self.landlock_abi > 0
    }
}

/// Whether the kernel knows the restrictions that a version added.
fn has(abi: u8) -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let handled = match abi {
        1 => ruleset.handle_access(AccessFs::from_all(ABI::V1)),
        2 => ruleset.handle_access(AccessFs::Refer),
        3 => ruleset.handle_access(AccessFs::Truncate),
        4 => ruleset.handle_access(AccessNet::ConnectTcp),
        5 => ruleset.handle_access(AccessFs::IoctlDev),
        6 => ruleset.scope(Scope::from_all(ABI::V6)),
        _ => ruleset.handle_access(AccessFs::ResolveUnix),
    };
    handled.and_then(Ruleset::create).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_lacks_shrinks_with_its_version() {
        let missing = |landlock_abi| KernelSupport { landlock_abi }.missing().len();
        assert_eq!(missing(0), LACKS.len());
        assert_eq!(missing(3), 4);
        assert_eq!(missing(9), 0);
        assert!(missing(KernelSupport::detect().landlock_abi) <= LACKS.len());
    }
}
