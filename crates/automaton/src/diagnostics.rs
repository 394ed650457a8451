//! Diagnostics: what a process does inside, for who looks for a fault in it.
//!
//! They are no events: nothing relies on their words, nothing is stored, and a process
//! that cannot write them goes on. They go to stderr, set up once per process, and a
//! child speaks as its parent does. They must never hold a secret: every type that
//! carries one shows it as `***`.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::io;
use std::str::FromStr;
use std::sync::OnceLock;

use automaton_core::time::{Clock, SystemClock, Timestamp};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{FmtSpan, FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;

use crate::config::env::{AUTOMATON_LOG, Environment};
use crate::error::CliError;
use crate::ui::text::{plain, short};

/// Default levels: only problems of our own code.
const QUIET: &str = "automaton=warn";

/// Directives of one text at most.
const DIRECTIVES_MAX: usize = 64;

/// Settings of this process, which its children get too.
static SPOKEN: OnceLock<Diagnostics> = OnceLock::new();

/// Settings for diagnostics of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Diagnostics {
    levels: Levels,
    format: LogFormat,
}

/// Which diagnostics are told, and how.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DiagnosticsArgs {
    /// Diagnostics on stderr: a level, or levels of modules, as
    /// info,automaton_agent::heartbeat=debug [default: $AUTOMATON_LOG, else automaton=warn]
    #[arg(long, value_name = "LEVELS")]
    log: Option<Levels>,
    /// Format of diagnostics
    #[arg(long, value_name = "FORMAT", default_value = "pretty")]
    log_format: LogFormat,
}

/// A form of diagnostics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// A line for people.
    #[default]
    Pretty,
    /// An object of JSON a line.
    Json,
}

impl DiagnosticsArgs {
    /// Begins to speak, in a process that a person started.
    ///
    /// # Errors
    /// When the environment names no levels.
    pub(crate) fn start(
        &self,
        environment: &Environment,
        process: &'static str,
    ) -> Result<(), CliError> {
        let levels = match (&self.log, &environment.log) {
            (Some(levels), _) => levels.clone(),
            (None, Some(text)) => text.parse().map_err(|error: String| {
                CliError::user(format!("{AUTOMATON_LOG}: {error}"))
                    .hint("name a level, as `info`, or levels of modules, as `automaton_net=debug`")
            })?,
            (None, None) => Levels::default(),
        };
        Diagnostics { levels, format: self.log_format }.start(process);
        Ok(())
    }
}

impl Diagnostics {
    /// Returns the settings of this process.
    pub(crate) fn spoken() -> Self {
        SPOKEN.get().cloned().unwrap_or_default()
    }

    /// Begins to speak, as a process of this name. The first call holds.
    pub(crate) fn start(self, process: &'static str) {
        let lines = LineFormatter { process, format: self.format };
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_span_events(FmtSpan::CLOSE)
            .with_writer(io::stderr)
            .event_format(lines)
            .with_filter(self.levels.targets());
        // silent-ok: a process that speaks already goes on as it does.
        SPOKEN.set(self).ok();
        // silent-ok: as above.
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).ok();
    }
}

/// Which diagnostics are told: one level for all, and levels of modules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Levels(String);

impl Default for Levels {
    fn default() -> Self {
        Self(QUIET.to_owned())
    }
}

impl Levels {
    fn targets(&self) -> Targets {
        // silent-ok: the text was checked when it was taken.
        directives(&self.0).map(|directives| directives.into_iter().collect()).unwrap_or_default()
    }
}

/// The directives of a text; the one without a module is for all.
fn directives(text: &str) -> Result<Vec<(&str, LevelFilter)>, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > DIRECTIVES_MAX {
        let found = parts.len();
        return Err(format!("{found} directives are more than the {DIRECTIVES_MAX} there may be"));
    }
    parts.into_iter().map(directive).collect()
}

fn directive(part: &str) -> Result<(&str, LevelFilter), String> {
    let (module, level) = part.split_once('=').unwrap_or(("", part));
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let named = !part.contains('=') || (!module.is_empty() && module.chars().all(known));
    let found = level_of(level).filter(|_| named).map(|level| (module, level));
    found.ok_or_else(|| {
        let part = short(part, 80);
        format!(
            "'{part}' is neither a level (off, error, warn, info, debug, trace) nor MODULE=LEVEL, \
             as in info,automaton_agent::heartbeat=debug"
        )
    })
}

fn level_of(name: &str) -> Option<LevelFilter> {
    Some(match name {
        "off" => LevelFilter::OFF,
        "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "info" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        _ => return None,
    })
}

impl FromStr for Levels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        directives(text)?;
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Levels {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Levels> for String {
    fn from(levels: Levels) -> Self {
        levels.0
    }
}

/// Writes each diagnostic as one line.
struct LineFormatter {
    process: &'static str,
    format: LogFormat,
}

/// One diagnostic, as JSON has it.
#[derive(Serialize)]
struct LogLine<'a> {
    at: Timestamp,
    level: &'static str,
    process: &'a str,
    target: &'a str,
    /// The spans that it is in, the outermost first.
    spans: Vec<String>,
    message: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<&'static str, String>,
}

impl<S, N> FormatEvent<S, N> for LineFormatter
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut said = LogFields::default();
        event.record(&mut said);
        let spans = context.event_scope().into_iter().flat_map(|scope| scope.from_root());
        let spans = spans.map(|span| {
            let extensions = span.extensions();
            let fields =
                extensions.get::<FormattedFields<N>>().map(|fields| fields.fields.as_str());
            match fields.filter(|fields| !fields.is_empty()) {
                Some(fields) => format!("{}{{{}}}", span.name(), plain(fields)),
                None => span.name().to_owned(),
            }
        });
        let line = LogLine {
            at: SystemClock.now(),
            level: event.metadata().level().as_str(),
            process: self.process,
            target: event.metadata().target(),
            spans: spans.collect(),
            message: said.message,
            fields: said.fields,
        };
        match self.format {
            LogFormat::Pretty => writeln!(writer, "{}", line.words()),
            LogFormat::Json => {
                let text = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
                writeln!(writer, "{text}")
            }
        }
    }
}

impl LogLine<'_> {
    fn words(&self) -> String {
        let Self { at, level, process, target, spans, message, fields } = self;
        let spans: String = spans.iter().map(|span| format!(" {span}")).collect();
        let fields: String =
            fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        let text = format!("{at} {level:>5} {process} {target}{spans}: {message}{fields}");
        plain(&text).replace('\n', " ")
    }
}

/// Fields of an event.
#[derive(Default)]
struct LogFields {
    message: String,
    fields: BTreeMap<&'static str, String>,
}

impl LogFields {
    fn record_text(&mut self, field: &Field, value: String) {
        if field.name() == "message" {
            self.message = value;
        } else {
            self.fields.insert(field.name(), value);
        }
    }
}

impl Visit for LogFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_text(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_text(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_levels_or_levels_of_modules() {
        for text in ["off", "debug", "info,automaton_agent::heartbeat=debug", "hyper=trace, warn"] {
            assert!(text.parse::<Levels>().is_ok(), "{text}");
        }
        for text in ["", "debgu", "info,", "=debug", "a=", "a b=info", "info;warn", "automaton_net"]
        {
            assert!(text.parse::<Levels>().is_err(), "{text}");
        }
        assert!("info,".repeat(DIRECTIVES_MAX + 1).parse::<Levels>().is_err());
        let told = Levels::default().targets();
        assert!(told.would_enable("automaton_agent::turn", &tracing::Level::WARN));
        assert!(!told.would_enable("automaton_agent::turn", &tracing::Level::INFO));
        assert!(!told.would_enable("hyper", &tracing::Level::ERROR));
    }
}
