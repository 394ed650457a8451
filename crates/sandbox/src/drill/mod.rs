//! Escape attempts, tried on the current machine.
//!
//! The tests of this crate and an operator's drill share one list. Each attempt runs under the
//! full protection, then with each layer that stops it as the only one of those, and then, as a
//! control, with none of them. Only attempts ever run with less than the full protection: no code
//! outside of this module can switch a layer off.

mod attempt;
mod list;
mod world;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use attempt::{WORD, attempt_main_if_invoked};
pub use list::{Attempt, AttemptTarget};

use crate::launch::{LaunchError, Launcher};
use crate::outcome::ExitStatus;
use crate::plan::plan;
use crate::probe::Probe;
use crate::process::{ProcessCommand, effective_user, spawn};
use crate::spec::{Bind, Defence, Defences, Program, RunLimits, SandboxSpec};
use attempt::UNKNOWN;
use list::Control;
use world::AttackSite;

/// The path of the attempting program in the sandbox.
const PROGRAM_INSIDE: &str = "/opt/attempt";
/// The path of a planted read-only folder in the sandbox.
const FIXTURE_INSIDE: &str = "/opt/fixture";
/// The name of the read-only folder in the workspace.
const SEALED: &str = "sealed";
/// The time limit of one attempt.
const LIMIT: Duration = Duration::from_secs(20);

/// The reason why a control is skipped.
type SkipReason = &'static str;

/// The controls to run: attempts with all their defences off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controls {
    /// No controls.
    Without,
    /// Controls that touch only planted things.
    Harmless,
    /// All controls that a test machine permits.
    All,
}

/// The result of a control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlResult {
    /// Without the layers the attempt succeeds, so the layers stop it.
    Succeeded,
    /// Something else refused it, with this message.
    Refused(String),
    /// The control was skipped for this reason.
    Left(SkipReason),
}

/// The result of an attempt.
#[derive(Debug, Clone)]
pub struct AttemptVerdict {
    /// The combinations of defences under which it succeeded. Empty if all held.
    pub broken: Vec<String>,
    /// The message of the refusal under the full protection.
    pub said: String,
    /// The result of the control.
    pub control: ControlResult,
}

/// A planted site and the program that attacks it.
#[derive(Debug)]
pub struct Drill {
    launcher: Launcher,
    program: PathBuf,
    probe: Probe,
    world: AttackSite,
}

/// The result of one try.
struct AttemptOutcome {
    succeeded: bool,
    said: String,
}

impl Drill {
    /// Plants the site in an empty folder. The `main` of `program` must begin with
    /// [`attempt_main_if_invoked`].
    ///
    /// # Errors
    /// Fails if the site cannot be planted.
    pub fn new(
        launcher: Launcher,
        program: PathBuf,
        probe: Probe,
        folder: &Path,
    ) -> io::Result<Self> {
        let world = AttackSite::make(&program, folder, &probe)?;
        Ok(Self { launcher, program, probe, world })
    }

    /// Returns the attempts on one target that are possible on this machine.
    #[must_use]
    pub fn attempts(&self, subject: AttemptTarget) -> Vec<Attempt> {
        list::attempts(subject, &self.world, &self.probe)
    }

    /// Tries the attempt under every combination of defences that proves something.
    ///
    /// # Errors
    /// Fails if a try cannot be run: then this machine cannot build such a sandbox.
    pub fn run_all_combinations(
        &self,
        attempt: &Attempt,
        controls: Controls,
    ) -> Result<AttemptVerdict, LaunchError> {
        let mut broken = Vec::new();
        let mut note = |tried: &AttemptOutcome, what: String| {
            if tried.succeeded {
                broken.push(format!("{what}: {}", tried.said));
            }
        };
        let full = self.attempt(attempt, &[])?;
        note(&full, "it succeeds under the full protection".to_owned());
        for on in &attempt.defences {
            let others = attempt.defences.iter().filter(|defence| *defence != on);
            let off: Vec<Defence> = others.copied().chain(attempt.unsure).collect();
            if !off.is_empty() && can_be_without(&off) {
                let what = format!("it succeeds with only {on:?} of what stops it");
                note(&self.attempt(attempt, &off)?, what);
            }
        }
        let control = match self.skip_reason(attempt, controls)? {
            Some(reason) => ControlResult::Left(reason),
            None => {
                let all = attempt.defences.iter().copied().chain(attempt.unsure);
                let tried = self.attempt(attempt, &all.collect::<Vec<_>>())?;
                if tried.succeeded {
                    ControlResult::Succeeded
                } else {
                    ControlResult::Refused(tried.said)
                }
            }
        };
        Ok(AttemptVerdict { broken, said: full.said, control })
    }

    /// Returns the reason to skip the control, if there is one.
    fn skip_reason(
        &self,
        attempt: &Attempt,
        controls: Controls,
    ) -> Result<Option<SkipReason>, LaunchError> {
        Ok(match (controls, attempt.control) {
            (Controls::Without, _) => Some("no controls were asked for"),
            (_, Control::Nowhere(reason)) => Some(reason),
            (Controls::Harmless, Control::InTests(reason)) => Some(reason),
            _ if !can_be_without(&attempt.defences) => Some("only root can be without Users"),
            (_, Control::WherePermitted) => {
                let bare = ProcessCommand::new(&self.program).arg(WORD);
                let bare = attempt.words.iter().fold(bare, ProcessCommand::arg);
                let permitted = spawn(bare)?.wait()?.is_success();
                (!permitted).then_some("this machine refuses it to everybody")
            }
            (_, Control::Anywhere | Control::InTests(_)) => None,
        })
    }

    /// Makes the attempt once, with these layers off.
    fn attempt(&self, attempt: &Attempt, off: &[Defence]) -> Result<AttemptOutcome, LaunchError> {
        let plan = plan(&self.spec(attempt, off), &self.probe)?;
        let ended = match self.launcher.launch(&plan).and_then(|running| running.wait()) {
            Ok(ended) => ended,
            Err(LaunchError::Lost | LaunchError::Silent) => {
                return Ok(AttemptOutcome {
                    succeeded: true,
                    said: "the sandbox was lost".to_owned(),
                });
            }
            Err(error) => return Err(error),
        };
        let said = ended.stderr.text_lossy();
        let said = match said.lines().last() {
            Some(line) if ended.status.exited_by_itself() => line.to_owned(),
            _ => ended.status.to_string(),
        };
        // An attempt that did not run has not been refused.
        let untried = ended.status == ExitStatus::Exited(UNKNOWN.into());
        Ok(AttemptOutcome { succeeded: untried || ended.status.is_success(), said })
    }

    fn spec(&self, attempt: &Attempt, off: &[Defence]) -> SandboxSpec {
        let inside = Path::new(PROGRAM_INSIDE);
        let program = if off.contains(&Defence::Files) { &self.program } else { inside };
        let argv = [program.to_string_lossy().into_owned(), WORD.to_owned()].into_iter();
        let bind = |host: PathBuf, inside: &str| Bind { host, inside: inside.into() };
        SandboxSpec {
            workspace: Some(self.world.folder.join("workspace")),
            sealed: vec![SEALED.to_owned()],
            read_only: vec![
                bind(self.program.clone(), PROGRAM_INSIDE),
                bind(self.world.folder.join("fixture"), FIXTURE_INSIDE),
            ],
            limits: RunLimits { wall: Some(LIMIT), ..attempt.limits },
            network: attempt.network,
            defences: Defences::except(off),
            ..SandboxSpec::new(Program::Argv(argv.chain(attempt.words.iter().cloned()).collect()))
        }
    }
}

/// Returns true if a sandbox can be built without these layers. Only root can make the other
/// namespaces without a user namespace.
fn can_be_without(off: &[Defence]) -> bool {
    effective_user() == 0 || !off.contains(&Defence::Users)
}
