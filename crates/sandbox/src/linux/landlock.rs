//! Landlock: a second, independent barrier around files, and one around TCP, signals and abstract
//! sockets.
//!
//! All rights of the probed version are restricted. If the kernel enforces less than requested,
//! that is an error, never a lower level.

use std::fs;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};

use super::{StepContext as _, StepFailure};
use crate::plan::{FileRights, FileRule, LandlockRules};
use crate::spec::Network;

const STEP: &str = "apply Landlock";

/// Confines this process and its descendants.
pub(crate) fn apply(rules: &LandlockRules) -> Result<(), StepFailure> {
    let abi = ABI::from(rules.abi);
    let mut created = ruleset(abi, rules).step(STEP)?;
    for rule in &rules.files {
        let Some(rights) = present_rights(rule, abi) else { continue };
        let step = || format!("permit {} in Landlock", rule.path.display());
        let place = PathFd::new(&rule.path).step(step())?;
        created = created.add_rule(PathBeneath::new(place, rights)).step(step())?;
    }
    // The plan has its own step for that.
    let status = created.no_new_privs(false).restrict_self().step(STEP)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        partly => Err(StepFailure {
            step: STEP.to_owned(),
            problem: format!("the kernel enforces it only in part ({partly:?})"),
        }),
    }
}

fn ruleset(abi: ABI, rules: &LandlockRules) -> Result<landlock::RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    let tcp = AccessNet::from_all(abi);
    if rules.network == Network::None && !tcp.is_empty() {
        ruleset = ruleset.handle_access(tcp)?;
    }
    let scopes = Scope::from_all(abi);
    if rules.scoped && !scopes.is_empty() {
        ruleset = ruleset.scope(scopes)?;
    }
    ruleset.create()
}

/// Returns the rights of a rule, without those for directories if its path is a file. Returns
/// `None` if the path does not exist.
fn present_rights(rule: &FileRule, abi: ABI) -> Option<BitFlags<AccessFs>> {
    let metadata = fs::metadata(&rule.path).ok()?;
    let rights = match rule.rights {
        FileRights::List => AccessFs::ReadDir.into(),
        FileRights::Read => AccessFs::ReadFile | AccessFs::ReadDir,
        FileRights::Execute => AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute,
        FileRights::Device => AccessFs::ReadFile | AccessFs::WriteFile,
        FileRights::Terminal => {
            let rights = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir;
            (rights | AccessFs::IoctlDev) & AccessFs::from_all(abi)
        }
        FileRights::Write => AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
    };
    Some(if metadata.is_dir() { rights } else { rights & AccessFs::from_file(abi) })
}
