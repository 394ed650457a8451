//! Ways out of the sandbox, tried on the machine at hand.
//!
//! One list serves the tests of this crate and the drill of an operator. Each attempt is tried
//! under the full protection; with each layer that stops it as the only one of those; and, as
//! a control, with none of them. What runs with less than the full protection is an attempt
//! and nothing else: nobody outside of this module can take a layer away.

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

/// Where the program that attempts something appears inside.
const PROGRAM_INSIDE: &str = "/opt/attempt";
/// Where a planted folder appears that may only be read.
const FIXTURE_INSIDE: &str = "/opt/fixture";
/// The folder of the workspace that may only be read.
const SEALED: &str = "sealed";
/// How long an attempt may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Why something is left out, to be told.
type SkipReason = &'static str;

/// Which attempts are also made with nothing on that stops them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controls {
    /// None.
    Without,
    /// Those that touch nothing but what was planted.
    Harmless,
    /// All that a machine can have that is there for tests.
    All,
}

/// What came of the control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlResult {
    /// Without the layers the attempt succeeds, so it is they that stop it.
    Succeeded,
    /// Something else refuses it here, which said this.
    Refused(String),
    /// It was not made, for this reason.
    Left(SkipReason),
}

/// What came of an attempt.
#[derive(Debug, Clone)]
pub struct AttemptVerdict {
    /// Under which defences it succeeded; none when all held.
    pub broken: Vec<String>,
    /// What was said when it was refused under the full protection.
    pub said: String,
    /// What came of the control.
    pub control: ControlResult,
}

/// Something to get at, and what tries to.
#[derive(Debug)]
pub struct Drill {
    launcher: Launcher,
    program: PathBuf,
    probe: Probe,
    world: AttackSite,
}

/// How one try ended.
struct AttemptOutcome {
    succeeded: bool,
    said: String,
}

impl Drill {
    /// Plants things in this empty folder. The `main` of the program must begin with
    /// [`attempt_main_if_invoked`].
    ///
    /// # Errors
    ///
    /// When they cannot be planted.
    pub fn new(
        launcher: Launcher,
        program: PathBuf,
        probe: Probe,
        folder: &Path,
    ) -> io::Result<Self> {
        let world = AttackSite::make(&program, folder, &probe)?;
        Ok(Self { launcher, program, probe, world })
    }

    /// The attempts on one subject, without those that this machine has no aim for.
    #[must_use]
    pub fn attempts(&self, subject: AttemptTarget) -> Vec<Attempt> {
        list::attempts(subject, &self.world, &self.probe)
    }

    /// Tries every combination that shows something.
    ///
    /// # Errors
    ///
    /// When one cannot be tried: then this machine gives no such sandbox.
    pub fn judge(
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
        let control = match self.left(attempt, controls)? {
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

    /// Why no control is made, if none is.
    fn left(
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

    /// Makes the attempt once, without these layers.
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
            Some(line) if ended.status.is_by_itself() => line.to_owned(),
            _ => ended.status.to_string(),
        };
        // What was not tried has not been refused.
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

/// Whether a sandbox can be built without these layers: only root can make the other
/// namespaces without one of users.
fn can_be_without(off: &[Defence]) -> bool {
    effective_user() == 0 || !off.contains(&Defence::Users)
}
