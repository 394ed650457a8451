//! Tells a story: a scripted model in this process, and its creator's part.
//!
//! The scripted server answers the agent and says what was met. What the
//! creator of the story says goes through the same code as `automaton send`,
//! over the control socket; the story must never reach the agent another way.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::event::Event;
use automaton_core::id::Mint;
use automaton_script::model::{MODEL, Progress, ScriptServer, When};
use automaton_script::story::Story;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::args::{BrainArg, BrainFlags};
use crate::cmd::send;
use crate::config::env::Environment;
use crate::config::file::ConfigFile;
use crate::config::resolve::{self, Brain, Cheaper, Resolved};
use crate::error::Failure;
use crate::ui::console::Console;

/// How long the agent may take to go to sleep after the last answer.
const LAST_TURN_MAX: Duration = Duration::from_secs(20);

/// What the supervisor has to do.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Tell an event.
    Tell(Event),
    /// The story is told, or a step of it cannot be met any more.
    Ended {
        /// That step.
        unmet: Option<String>,
    },
    /// The creator's part could not be played.
    Failed(Failure),
}

/// A story that is being told.
pub(crate) struct Telling {
    server: ScriptServer,
    home: PathBuf,
    mint: Mint,
    /// What the creator says when the automaton next falls asleep.
    for_sleep: Option<String>,
    sending: Option<JoinHandle<Result<send::Delivered, Failure>>>,
    /// The last answer is given; until then the last turn may take.
    ends_by: Option<Instant>,
}

impl Telling {
    /// Starts the model of a story.
    ///
    /// # Errors
    /// When no port can be had.
    pub(crate) async fn start(story: Story, home: PathBuf, mint: Mint) -> Result<Self, Failure> {
        let server = ScriptServer::start(story).await?;
        Ok(Self { server, home, mint, for_sleep: None, sending: None, ends_by: None })
    }

    /// The configuration as it holds while the story is told: its own model
    /// instead of whatever the file names.
    ///
    /// # Errors
    /// When the configuration is not complete.
    pub(crate) fn resolve(
        &self,
        home: &Path,
        file: &ConfigFile,
        environment: &Environment,
    ) -> Result<Resolved, Failure> {
        Self::resolve_at(&self.server.base_url(), (home, file, environment))
    }

    /// The same for a model at some address, which need not be there yet.
    ///
    /// # Errors
    /// When the configuration is not complete.
    pub(crate) fn resolve_at(
        url: &str,
        (home, file, environment): (&Path, &ConfigFile, &Environment),
    ) -> Result<Resolved, Failure> {
        let url = url.parse().map_err(|error: String| {
            Failure::internal(format!("'{url}' is no address of a model"), &io::Error::other(error))
        })?;
        let flags = BrainFlags {
            brain: Some(BrainArg::Url(url)),
            brain_model: Some(MODEL.to_owned()),
            ..BrainFlags::default()
        };
        // The key of a real server has no business here.
        let environment = Environment { brain_key: None, ..environment.clone() };
        let mut resolved = resolve::resolve(home, file, &flags, &environment)?;
        // A story is told by one model.
        if let Brain::Http(brain) = &mut resolved.brain {
            brain.cheaper = Cheaper::default();
        }
        Ok(resolved)
    }

    /// What comes next. Cancel-safe: what is under way is kept in `self`.
    pub(crate) async fn next(&mut self) -> Stage {
        loop {
            let sent = async {
                match &mut self.sending {
                    Some(sending) => sending.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                sent = sent => {
                    self.sending = None;
                    let broken = |error| Err(Failure::internal("the creator's part failed", &error));
                    if let Err(failure) = sent.unwrap_or_else(broken) {
                        return Stage::Failed(failure);
                    }
                }
                progress = self.server.next_progress() => match progress {
                    Progress::StepMet { step, of, what } => {
                        return Stage::Tell(Event::StoryMet { step, of, what });
                    }
                    Progress::CreatorSays { text, when: When::Now, .. } => self.say(text),
                    Progress::CreatorSays { text, when: When::Asleep, .. } => {
                        self.for_sleep = Some(text);
                    }
                    Progress::Ended => self.ends_by = Some(Instant::now() + LAST_TURN_MAX),
                    Progress::Unmet(step) => return Stage::Ended { unmet: Some(step) },
                },
                () = until(self.ends_by) => {
                    self.ends_by = None;
                    return Stage::Ended { unmet: None };
                }
            }
        }
    }

    /// Takes note of what the agent does.
    pub(crate) fn on_event(&mut self, event: &Event) -> Option<Stage> {
        if !matches!(event, Event::SleepStarted { .. }) {
            return None;
        }
        if let Some(text) = self.for_sleep.take() {
            self.say(text);
        }
        self.ends_by.take().map(|_| Stage::Ended { unmet: None })
    }

    fn say(&mut self, text: String) {
        let (home, key) = (self.home.clone(), send::new_key(&self.mint));
        self.sending = Some(tokio::task::spawn_blocking(move || send::deliver(&home, &text, &key)));
    }

    /// Judges the story when the agent has ended by itself. A run of so many
    /// turns ends with them; any other ends with the story.
    ///
    /// # Errors
    /// When a step is still open.
    pub(crate) fn check_told(
        &self,
        turns_max: Option<u32>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        match self.server.open_step() {
            Some(_) if turns_max.is_some() => Ok(()),
            unmet => {
                console.tell(Event::StoryEnded { unmet: unmet.clone() })?;
                judged(unmet)
            }
        }
    }
}

/// What the end of a story means for the run.
pub(crate) fn judged(unmet: Option<String>) -> Result<(), Failure> {
    unmet.map_or(Ok(()), |step| {
        Err(Failure::user(format!("the story was not told: {step}"))
            .hint("correct the story, or the automaton that does otherwise; nothing was lost"))
    })
}

/// Waits for a moment, for ever when there is none.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
