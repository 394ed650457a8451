//! A process of a world, and its output lines.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, fs, thread};

use automaton_core::event::{Event, StampedEvent};

use super::{COMMAND_TIME_MAX, TempDir, WorldError};

/// The most lines that are kept of one output.
const LINES_MAX: usize = 100_000;

/// The longest line that is kept, in bytes.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The lines of each output that an error shows.
const SHOWN_LINES: usize = 15;

/// The interval at which the end of a process is checked.
const POLL: Duration = Duration::from_millis(10);

/// The agent's name in the process list.
const AGENT_ARG0: &str = "automaton-agent";

/// A running process. Dropping it kills the process.
pub struct ProcessRun {
    child: Child,
    stdout: OutputLines,
    stderr: OutputLines,
    /// The number of events that earlier waits have passed.
    passed: usize,
    /// The directory that it uses, which is removed after it.
    _dir: Arc<TempDir>,
}

/// The exit code and the output of a process.
#[derive(Debug)]
pub struct ProcessOutput {
    /// The exit code, or `None` if a signal ended the process.
    pub code: Option<i32>,
    /// The events among its lines, in order.
    pub events: Vec<StampedEvent>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

impl ProcessRun {
    pub(super) fn start(mut command: Command, dir: Arc<TempDir>) -> Result<Self, WorldError> {
        let spawned = command.spawn();
        let program = command.get_program().into();
        let mut child = spawned.map_err(|source| WorldError::Start { program, source })?;
        let stdout = OutputLines::default();
        let stderr = OutputLines::default();
        if let Some(pipe) = child.stdout.take() {
            stdout.collect(pipe);
        }
        if let Some(pipe) = child.stderr.take() {
            stderr.collect(pipe);
        }
        Ok(Self { child, stdout, stderr, passed: 0, _dir: dir })
    }

    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the events so far.
    #[must_use]
    pub fn events(&self) -> Vec<StampedEvent> {
        events(&self.stdout.get().all)
    }

    /// Waits for an event that `wanted` accepts. The next wait starts after it.
    ///
    /// # Errors
    /// Fails if it does not come in time, or the process ends without it.
    pub fn wait_for(
        &mut self,
        wanted: impl Fn(&Event) -> bool,
        limit: Duration,
    ) -> Result<StampedEvent, WorldError> {
        let mut seen = self.passed;
        let mut found = None;
        let waiting = |lines: &mut LineBuffer| {
            while found.is_none() && seen < lines.all.len() {
                found = event(&lines.all[seen]).filter(|stamped| wanted(&stamped.event));
                seen += 1;
            }
            found.is_none() && !lines.ended
        };
        let (lock, condvar) = &*self.stdout.0;
        let kept = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, timeout) = condvar
            .wait_timeout_while(kept, limit, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        drop(kept);
        let Some(stamped) = found else {
            let why =
                if timeout.timed_out() { format!("{limit:?}") } else { "it ended".to_owned() };
            return Err(self.in_vain("an event", why));
        };
        self.passed = seen;
        Ok(stamped)
    }

    /// Waits for a line of the standard output at an index, and returns it.
    ///
    /// # Errors
    /// Fails if it does not come in time, or the process ends without it.
    pub fn line(&self, place: usize, limit: Duration) -> Result<String, WorldError> {
        let (lock, condvar) = &*self.stdout.0;
        let kept = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |lines: &mut LineBuffer| lines.all.len() <= place && !lines.ended;
        let (kept, _) = condvar
            .wait_timeout_while(kept, limit, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        let line = kept.all.get(place).cloned();
        drop(kept);
        line.ok_or_else(|| self.in_vain("a line", format!("{limit:?}")))
    }

    /// Kills the agent, not its supervisor, as a crash would.
    ///
    /// # Errors
    /// Fails if there is no agent, or it cannot be killed.
    pub fn kill_agent(&self) -> Result<u32, WorldError> {
        self.kill_child(AGENT_ARG0)
    }

    /// Kills the supervisor's child with this name.
    ///
    /// # Errors
    /// Fails if there is none, or it cannot be killed.
    pub fn kill_child(&self, arg0: &str) -> Result<u32, WorldError> {
        let pid = self.child_pid(arg0).ok_or(WorldError::NoAgent { pid: self.pid() })?;
        let failed = |source| WorldError::Process { what: "kill", pid, source };
        // Uses the shell's `kill`, since this crate may not make system calls.
        let status = sh(&format!("kill -KILL {pid}")).map_err(failed)?;
        if status.success() { Ok(pid) } else { Err(failed(io::ErrorKind::NotFound.into())) }
    }

    /// Returns the process id of the agent, if the supervisor currently has one.
    #[must_use]
    pub fn agent_pid(&self) -> Option<u32> {
        self.child_pid(AGENT_ARG0)
    }

    /// Returns the process id of the supervisor's child with this name, if there is one.
    #[must_use]
    pub fn child_pid(&self, arg0: &str) -> Option<u32> {
        let supervisor = self.pid();
        pids().find(|pid| parent(*pid) == Some(supervisor) && is_called(*pid, arg0))
    }

    /// Kills the process and all its children at once, as a power failure would.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn kill_all(&mut self) -> Result<(), WorldError> {
        let pid = self.pid();
        let children = pids().filter(|child| parent(*child) == Some(pid));
        let all = children.fold(pid.to_string(), |all, child| format!("{all} {child}"));
        let failed = |source| WorldError::Process { what: "kill", pid, source };
        // A process that is already gone is not an error.
        sh(&format!("kill -KILL {all}")).map_err(failed)?;
        self.kill()
    }

    /// Sends a signal to the process itself, named as for `kill` ("INT").
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn signal(&self, name: &str) -> Result<(), WorldError> {
        let pid = self.pid();
        let failed = |source| WorldError::Process { what: "signal", pid, source };
        let status = sh(&format!("kill -{name} {pid}")).map_err(failed)?;
        if status.success() { Ok(()) } else { Err(failed(io::ErrorKind::NotFound.into())) }
    }

    /// Kills the process itself, and waits until it is gone and its resources are free.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn kill(&mut self) -> Result<(), WorldError> {
        let pid = self.pid();
        let gone = self.child.kill().and_then(|()| self.child.wait());
        gone.map(drop).map_err(|source| WorldError::Process { what: "kill", pid, source })
    }

    /// Waits for the end of the process, at most [`COMMAND_TIME_MAX`].
    ///
    /// # Errors
    /// Fails if it does not end.
    pub fn finish(self) -> Result<ProcessOutput, WorldError> {
        self.finish_within(COMMAND_TIME_MAX)
    }

    /// Waits for the end of the process. Kills it if it does not end.
    ///
    /// # Errors
    /// Fails if it does not end in time.
    pub fn finish_within(mut self, limit: Duration) -> Result<ProcessOutput, WorldError> {
        let status = self.wait(limit)?;
        for lines in [&self.stdout, &self.stderr] {
            // A grandchild may hold the pipe. Its output is not awaited.
            lines.wait_end(Duration::from_secs(2));
        }
        let stdout = self.stdout.get().all.clone();
        let stderr = self.stderr.get().all.join("\n");
        let code = status.code();
        Ok(ProcessOutput { code, events: events(&stdout), stdout: stdout.join("\n"), stderr })
    }

    fn wait(&mut self, limit: Duration) -> Result<ExitStatus, WorldError> {
        let pid = self.pid();
        let polls = limit.as_millis().div_ceil(POLL.as_millis());
        for _ in 0..=polls {
            let status = self.child.try_wait();
            let failed = |source| WorldError::Process { what: "wait for", pid, source };
            if let Some(status) = status.map_err(failed)? {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
        Err(self.in_vain("the end of the process", format!("{limit:?}")))
    }

    fn in_vain(&self, what: &'static str, why: String) -> WorldError {
        let mut transcript = String::new();
        for (name, lines) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            let kept = lines.get();
            let shown = kept.all.len().saturating_sub(SHOWN_LINES);
            for line in &kept.all[shown..] {
                transcript.push_str(&format!("\n{name}: {line}"));
            }
        }
        WorldError::InVain { what, why, transcript }
    }
}

impl fmt::Debug for ProcessRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Run({})", self.pid())
    }
}

impl Drop for ProcessRun {
    fn drop(&mut self) {
        // silent-ok: both fail only if the process has ended and was waited for.
        drop(self.child.kill());
        drop(self.child.wait()); // silent-ok: as above.
    }
}

/// The lines of an output so far.
#[derive(Default)]
struct OutputLines(Arc<(Mutex<LineBuffer>, Condvar)>);

#[derive(Default)]
struct LineBuffer {
    all: Vec<String>,
    ended: bool,
}

impl OutputLines {
    fn get(&self) -> MutexGuard<'_, LineBuffer> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a pipe to its end in a thread, so that a process that nobody waits for does not
    /// block. Output beyond the limits is dropped.
    fn collect(&self, pipe: impl Read + Send + 'static) {
        let shared = Self(Arc::clone(&self.0));
        thread::spawn(move || {
            let mut reader = BufReader::new(pipe);
            while let Some(line) = next_line(&mut reader) {
                let mut kept = shared.get();
                if kept.all.len() < LINES_MAX {
                    kept.all.push(line);
                }
                shared.0.1.notify_all();
            }
            shared.get().ended = true;
            shared.0.1.notify_all();
        });
    }

    fn wait_end(&self, limit: Duration) {
        let kept = self.get();
        // silent-ok: a poisoned lock means that the reader has ended.
        drop(self.0.1.wait_timeout_while(kept, limit, |kept| !kept.ended));
    }
}

/// Returns the next line without its end. Invalid UTF-8 is replaced.
fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    // silent-ok: an unreadable pipe has ended.
    let read = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).ok()?;
    (read > 0).then(|| String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned())
}

fn events(lines: &[String]) -> Vec<StampedEvent> {
    lines.iter().filter_map(|line| event(line)).collect()
}

/// Returns the event in a line, if it is one.
fn event(line: &str) -> Option<StampedEvent> {
    // silent-ok: not every command prints events.
    serde_json::from_str(line).ok()
}

/// Returns the ids of all processes.
fn pids() -> impl Iterator<Item = u32> {
    // silent-ok: a name that is not a number is not a process.
    let pid = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    fs::read_dir("/proc").into_iter().flatten().filter_map(pid)
}

/// Returns the parent of a process, from the fourth field of `/proc/PID/stat`. The second field
/// contains the program's name, in which any character may occur.
fn parent(pid: u32) -> Option<u32> {
    // silent-ok: processes may end while they are read.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    // silent-ok: a field that is not a number is not a process id.
    after_name.split_whitespace().nth(1)?.parse().ok()
}

fn is_called(pid: u32, name: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arg0 = line.split(|byte| *byte == 0).next().unwrap_or_default();
    arg0.ends_with(name.as_bytes())
}

#[expect(clippy::disallowed_methods, reason = "tests may run a shell on the machine")]
fn sh(script: &str) -> io::Result<ExitStatus> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).stdin(Stdio::null()).stderr(Stdio::null()).status()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::World;
    use super::*;

    /// Creates a world with a program that runs the given script, whatever its arguments.
    fn world(script: &str) -> World {
        use std::os::unix::fs::PermissionsExt;
        let world = World::new("").unwrap();
        let program: PathBuf = world.dir().join("program");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        World { program, ..world }
    }

    const SECOND: Duration = Duration::from_secs(5);

    fn stopped(event: &Event) -> bool {
        matches!(event, Event::AgentStopped { .. })
    }

    #[test]
    fn waits_for_events_one_after_the_other_and_gives_all_at_the_end() {
        let line = |n: u8| format!(r#"echo '{{"at":{n},"event":"agent.stopped","reason":"r"}}'"#);
        let world =
            world(&format!("{}\necho no event\n{}\necho talk >&2\nexit 3", line(1), line(2)));
        let mut run = world.up(&["--turns", "1"]).unwrap();
        for at in [1, 2] {
            assert_eq!(run.wait_for(stopped, SECOND).unwrap().at.as_millis(), at);
        }
        let error = run.wait_for(stopped, SECOND).unwrap_err().to_string();
        assert!(error.starts_with("waited for an event in vain (it ended)"), "{error}");
        assert!(error.contains("\nstdout: no event"), "{error}");
        let finished = run.finish().unwrap();
        assert_eq!((finished.code, finished.events.len()), (Some(3), 2));
        assert_eq!(finished.stderr, "talk");
    }

    #[test]
    fn a_process_that_does_not_end_is_killed_at_its_deadline() {
        let run = world("exec sleep 60").up(&[]).unwrap();
        let pid = run.pid();
        let error = run.finish_within(Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.starts_with("waited for the end of the process in vain (50ms)"), "{error}");
        assert!(!PathBuf::from(format!("/proc/{pid}")).exists());
    }

    #[test]
    fn kills_the_agent_and_not_its_supervisor() {
        let world = world(
            "bash -c 'exec -a automaton-agent sleep 60' &\n\
             echo '{\"at\":1,\"event\":\"agent.stopped\",\"reason\":\"r\"}'\nwait $!\necho died $?",
        );
        let mut run = world.up(&[]).unwrap();
        run.wait_for(stopped, SECOND).unwrap();
        let killed = (0..500).find_map(|_| {
            thread::sleep(POLL);
            run.kill_agent().ok()
        });
        assert!(killed.is_some());
        // Its parent reports its death, and outlives it.
        assert_eq!(run.finish().unwrap().stdout.lines().last(), Some("died 137"));
    }

    #[test]
    fn a_world_has_a_home_of_its_own_and_an_environment_of_its_own() {
        let world = world("env; echo \"$@\"").arg("--name").arg("x");
        let other = World::new("").unwrap();
        assert_ne!(world.home(), other.home());
        assert!(automaton_script::fault::is_marked(world.home()));
        let finished = world.up(&["--turns", "2"]).unwrap().finish().unwrap();
        let home = format!("AUTOMATON_HOME={}", world.home().display());
        assert!(finished.stdout.lines().any(|line| line == home), "{}", finished.stdout);
        assert!(finished.stdout.ends_with("up --json --name x --turns 2"), "{}", finished.stdout);
        assert!(!finished.stdout.contains("CARGO"), "{}", finished.stdout);
        let dir = world.dir().to_owned();
        drop(world);
        assert!(!dir.exists());
    }
}
