//! Tells a story: a scripted model in this process, and its creator's part.
//!
//! The scripted server answers the agent and says what was met. What the
//! creator of the story says goes through the same code as `automaton send`,
//! over the control socket; the story must never reach the agent another way.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::event::{Event, MetStep};
use automaton_core::id::IdGenerator;
use automaton_script::model::{CreatorTiming, MODEL, ScriptServer, StoryProgress};
use automaton_script::story::Story;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::args::{BrainArg, BrainFlags, RemoteFlags};
use crate::cmd::send;
use crate::config::env::Environment;
use crate::config::file::ConfigFile;
use crate::config::resolve::{self, Brain, FallbackModels, ResolvedConfig};
use crate::error::CliError;
use crate::ui::console::Console;

/// Time that the agent may take to fall asleep after the last answer.
const LAST_TURN_MAX: Duration = Duration::from_secs(20);

/// Next step of the supervisor.
#[derive(Debug)]
pub(crate) enum StoryStage {
    /// Tell an event.
    Tell(Event),
    /// The story is told, or a step of it cannot be met any more.
    Ended {
        /// That step.
        unmet: Option<String>,
    },
    /// The creator's part could not be played.
    Failed(CliError),
}

/// A story that is being told.
pub(crate) struct StoryDriver {
    server: ScriptServer,
    home: PathBuf,
    ids: IdGenerator,
    /// Message of the creator for the next time that the automaton falls asleep.
    for_sleep: Option<String>,
    sending: Option<JoinHandle<Result<send::DeliveryReceipt, CliError>>>,
    /// The last answer is given; until then the last turn may take.
    ends_by: Option<Instant>,
}

impl StoryDriver {
    /// Starts the model of a story.
    ///
    /// # Errors
    /// When no port can be had.
    pub(crate) async fn start(
        story: Story,
        home: PathBuf,
        ids: IdGenerator,
    ) -> Result<Self, CliError> {
        let server = ScriptServer::start(story).await?;
        Ok(Self { server, home, ids, for_sleep: None, sending: None, ends_by: None })
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
    ) -> Result<ResolvedConfig, CliError> {
        Self::resolve_at(&self.server.base_url(), home, file, environment)
    }

    /// The same for a model at some address, which need not be there yet.
    ///
    /// # Errors
    /// When the configuration is not complete.
    pub(crate) fn resolve_at(
        url: &str,
        home: &Path,
        file: &ConfigFile,
        environment: &Environment,
    ) -> Result<ResolvedConfig, CliError> {
        let url = url.parse().map_err(|error: String| {
            CliError::internal(
                format!("'{url}' is no address of a model"),
                &io::Error::other(error),
            )
        })?;
        let flags = BrainFlags {
            brain: Some(BrainArg::Url(url)),
            brain_model: Some(MODEL.to_owned()),
            ..BrainFlags::default()
        };
        // The key of a real server has no business here.
        let environment = Environment { brain_key: None, ..environment.clone() };
        let mut resolved =
            resolve::resolve(home, file, &flags, &RemoteFlags::default(), &environment)?;
        // A story is told by one model.
        if let Brain::Http(brain) = &mut resolved.brain {
            brain.cheaper = FallbackModels::default();
        }
        Ok(resolved)
    }

    /// Returns the next step. Cancel-safe: running work is kept in `self`.
    pub(crate) async fn next(&mut self) -> StoryStage {
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
                    let broken = |error| Err(CliError::internal("the creator's part failed", &error));
                    if let Err(failure) = sent.unwrap_or_else(broken) {
                        return StoryStage::Failed(failure);
                    }
                }
                progress = self.server.next_progress() => match progress {
                    StoryProgress::StepMet { step, of, what } => {
                        return StoryStage::Tell(Event::StoryMet(MetStep { step, of, what }));
                    }
                    StoryProgress::CreatorSays { text, when: CreatorTiming::Now, .. } => self.send(text),
                    StoryProgress::CreatorSays { text, when: CreatorTiming::Asleep, .. } => {
                        self.for_sleep = Some(text);
                    }
                    StoryProgress::Ended => self.ends_by = Some(Instant::now() + LAST_TURN_MAX),
                    StoryProgress::Unmet(step) => return StoryStage::Ended { unmet: Some(step) },
                },
                () = until(self.ends_by) => {
                    self.ends_by = None;
                    return StoryStage::Ended { unmet: None };
                }
            }
        }
    }

    /// Takes note of what the agent does.
    pub(crate) fn on_event(&mut self, event: &Event) -> Option<StoryStage> {
        if !matches!(event, Event::SleepStarted { .. }) {
            return None;
        }
        if let Some(text) = self.for_sleep.take() {
            self.send(text);
        }
        self.ends_by.take().map(|_| StoryStage::Ended { unmet: None })
    }

    fn send(&mut self, text: String) {
        let home = self.home.clone();
        let key = send::new_key(&self.ids);
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
    ) -> Result<(), CliError> {
        match self.server.open_step() {
            Some(_) if turns_max.is_some() => Ok(()),
            unmet => {
                console.report(Event::StoryEnded { unmet: unmet.clone() })?;
                judged(unmet)
            }
        }
    }
}

/// Returns the result of the run from the end of a story.
pub(crate) fn judged(unmet: Option<String>) -> Result<(), CliError> {
    unmet.map_or(Ok(()), |step| {
        Err(CliError::user(format!("the story was not told: {step}"))
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
