//! Commands in machines: each request name is one command, however often it is sent.
//!
//! A client gives up after 30 seconds without the head of an answer and asks again with the
//! same name, so the head goes out as soon as the command is accepted, with spaces after it
//! until the result is there. After that nothing can fail with a status: what goes wrong is an
//! exit code. A command runs to its end though nobody listens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use automaton_core::error::chain;
use automaton_core::wire::cloud::ExecReply;
use automaton_sqlite::chain::Hash;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use super::Machines;
use super::driver::MachineCommand;
use super::lifecycle::MachineState;
use crate::db::machines::{ExecutionOutcome, Machine, NewExecution};
use crate::error::ApiError;

/// The pause between spaces sent to a client that waits.
const PAD_EVERY: Duration = Duration::from_secs(10);
/// The exit code of a command that could not be run, or not be followed.
const NOT_RUN: i32 = 125;

/// Commands that are asked for under a name and are not over, by API key and name.
#[derive(Default)]
pub(crate) struct CommandRuns(Mutex<HashMap<(Hash, String), Arc<CommandRun>>>);

/// One command, for any number of clients.
pub(crate) struct CommandRun {
    request: Hash,
    progress: watch::Sender<RunProgress>,
}

#[derive(Debug, Clone, Default)]
enum RunProgress {
    #[default]
    Asked,
    Accepted,
    Refused(ApiError),
    Done(Bytes),
}

/// A request to run a command.
pub(crate) struct RunRequest {
    /// The hash of the API key.
    pub(crate) key: Hash,
    /// The client's name of it.
    pub(crate) name: Option<String>,
    /// The hash of the request.
    pub(crate) request: Hash,
    pub(crate) machine: Machine,
    pub(crate) command: MachineCommand,
}

/// Returns the result for clients that repeat a command which was under way when the cloud ended.
pub(crate) fn interrupted() -> Bytes {
    let why = "[the cloud was started anew while this ran; how it ended is not known]\n";
    result(&ExecReply::new(String::new(), why.to_owned(), NOT_RUN))
}

fn result(reply: &ExecReply) -> Bytes {
    // silent-ok: texts and numbers always have a JSON form.
    serde_json::to_vec(reply).unwrap_or_default().into()
}

impl CommandRun {
    fn new(request: Hash) -> Arc<Self> {
        Arc::new(Self { request, progress: watch::Sender::default() })
    }

    /// The answer for one more client.
    pub(crate) async fn response(self: Arc<Self>) -> Response {
        let mut watched = self.progress.subscribe();
        // silent-ok: the sender lives as long as `self`.
        watched.wait_for(|progress| !matches!(progress, RunProgress::Asked)).await.ok();
        let begun = watched.borrow_and_update().clone();
        let body = match begun {
            RunProgress::Refused(error) => return error.into_response(),
            RunProgress::Done(result) => Body::from(result),
            // A space at once: it takes the head along.
            RunProgress::Asked | RunProgress::Accepted => {
                let state = Some((self, watched, Duration::ZERO));
                Body::from_stream(stream::unfold(state, padded))
            }
        };
        let json = HeaderValue::from_static("application/json");
        ([(header::CONTENT_TYPE, json)], body).into_response()
    }
}

/// A client's connection, and after how long it is sent a space.
type RunWait = Option<(Arc<CommandRun>, watch::Receiver<RunProgress>, Duration)>;

async fn padded(state: RunWait) -> Option<(Result<Bytes, std::convert::Infallible>, RunWait)> {
    let (run, mut watched, patience) = state?;
    let done = watched.wait_for(|progress| matches!(progress, RunProgress::Done(_)));
    let piece = match timeout(patience, done).await {
        Ok(Ok(progress)) => match &*progress {
            RunProgress::Done(result) => Some(result.clone()),
            _ => None,
        },
        _ => None,
    };
    match piece {
        Some(result) => Some((Ok(result), None)),
        None => Some((Ok(Bytes::from_static(b" ")), Some((run, watched, PAD_EVERY)))),
    }
}

impl Machines {
    fn runs(&self) -> MutexGuard<'_, HashMap<(Hash, String), Arc<CommandRun>>> {
        self.runs.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a command, or joins the one that runs or ran under its name.
    pub(crate) fn run(self: &Arc<Self>, asked: RunRequest) -> Result<Arc<CommandRun>, ApiError> {
        let run = CommandRun::new(asked.request);
        if let Some(name) = &asked.name {
            let mut runs = self.runs();
            let known = runs.entry((asked.key, name.clone())).or_insert_with(|| Arc::clone(&run));
            if known.request != asked.request {
                return Err(other_request());
            }
            if !Arc::ptr_eq(known, &run) {
                return Ok(Arc::clone(known));
            }
        }
        let own = Arc::clone(self);
        let led = Arc::clone(&run);
        self.tasks.spawn(async move {
            let named = asked.name.clone().map(|name| (asked.key, name));
            let end = match own.lead(&led, asked).await {
                Ok(result) => RunProgress::Done(result),
                Err(error) => RunProgress::Refused(error),
            };
            led.progress.send_replace(end);
            if let Some(named) = named {
                own.runs().remove(&named);
            }
        });
        Ok(run)
    }

    async fn lead(&self, run: &CommandRun, asked: RunRequest) -> Result<Bytes, ApiError> {
        let RunRequest { key, name, request, machine, command } = asked;
        let admitted = self.admit(&machine).await;
        let id = machine.id;
        let failed = |error| ApiError::of_db(&self.report, &error);
        if let Some(name) = name.clone() {
            let may_start = admitted.is_ok();
            let execution = NewExecution { key, name, request, machine: id, may_start };
            match self.db.begin_execution(execution).await.map_err(failed)? {
                ExecutionOutcome::New | ExecutionOutcome::Unstarted => {}
                ExecutionOutcome::Done(result) => return Ok(result),
                ExecutionOutcome::OtherRequest => return Err(other_request()),
                ExecutionOutcome::Running => {
                    return Err(ApiError::conflict("a command with this Idempotency-Key runs"));
                }
                ExecutionOutcome::Busy => {
                    return Err(too_many("too many results are kept: ask again later"));
                }
            }
        }
        let _permits = admitted?;
        run.progress.send_replace(RunProgress::Accepted);
        let mut reply = self.driver.exec(id, command).await.unwrap_or_else(|error| {
            ExecReply::new(String::new(), format!("[{}]\n", chain(&error)), NOT_RUN)
        });
        let ports = self.db.ports(id).await.map_err(failed)?;
        reply.isolated = Some(!self.driver.leads_out() && ports.is_empty());
        let result = result(&reply);
        if let Some(name) = name
            && let Err(error) = self.db.end_execution(key, name, result.clone()).await
        {
            (self.report)(format!("a command's result was not stored: {}", chain(&error)));
        }
        Ok(result)
    }

    /// Reserves the resources for one more command in a machine.
    async fn admit(&self, machine: &Machine) -> Result<[OwnedSemaphorePermit; 3], ApiError> {
        if machine.state != MachineState::Running {
            let why = format!("the sandbox is {}, not running: start it", machine.state.name());
            return Err(ApiError::conflict(why));
        }
        // silent-ok: it says the same in words for a client.
        let is_up = self.driver.is_up(machine.id).await.unwrap_or(false);
        if !is_up {
            return Err(ApiError::unavailable("the sandbox is being started again"));
        }
        let taken = |permits: &Arc<Semaphore>, what| {
            Arc::clone(permits).try_acquire_owned().map_err(|_| too_many(what))
        };
        let own = taken(
            &self.live_machine(machine.id).commands,
            "too many commands run in this sandbox",
        )?;
        let owner = self.commands_of(machine.owner);
        let owner = taken(&owner, "too many commands run in your sandboxes")?;
        Ok([own, owner, taken(&self.commands, "too many commands run in all sandboxes")?])
    }
}

fn other_request() -> ApiError {
    ApiError::conflict("this Idempotency-Key came with another command")
}

fn too_many(what: &str) -> ApiError {
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "BUSY", what)
}
