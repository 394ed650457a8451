//! Pure: what a call is about to do, in the few words that the policy judges.
//!
//! A tool turns its typed arguments into intents; the policy judges intents,
//! not tool names. An intent must state the effect itself, never a description
//! of it that could differ from what runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Span;

/// One intended effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Intent {
    /// Run a command in the sandbox.
    Exec {
        /// The command as the shell gets it.
        command: String,
        /// Timeout in milliseconds; 0 for a background process.
        timeout_ms: i64,
    },
    /// Read a file of the workspace.
    ReadPath {
        /// The path as the model wrote it.
        path: String,
    },
    /// Write a file of the workspace.
    WritePath {
        /// The path as the model wrote it.
        path: String,
        /// The size of the new content.
        bytes: u64,
    },
    /// Send a message.
    Message {
        /// Recipient, as the model wrote it.
        recipient: String,
        /// The size of the message.
        bytes: u64,
    },
    /// Store a fact in the memory.
    Remember {
        /// The category of the fact.
        category: String,
        /// The key of the fact.
        key: String,
        /// The size of the value.
        bytes: u64,
    },
    /// Look into the memory.
    Recall,
    /// Sleep for a while.
    Sleep {
        /// Duration.
        span: SpanMillis,
    },
    /// Look at the automaton's own state, or have it told where it is always told.
    Observe,
    /// Ask for money, through every channel that there is.
    Plead {
        /// The size of what the model adds in its own words.
        bytes: u64,
    },
    /// Live cheaply for a while.
    Economise,
    /// Think with another model.
    SwitchModel {
        /// The model, as the thinking one wrote its name.
        model: String,
    },
    /// Change the schedule of the heartbeat.
    Schedule {
        /// The entry, as the model wrote its name.
        entry: String,
        /// Description of the change, in the model's words.
        change: String,
    },
    /// Change a section of what it thinks of itself.
    ChangeSoul {
        /// The section, as the model wrote its name.
        section: String,
        /// New content, in the model's words.
        change: String,
    },
    /// Change its genesis prompt.
    ChangeGenesis {
        /// New content, in the model's words.
        change: String,
    },
    /// Buy credits with the wallet's money.
    TopUp {
        /// For how many US dollars.
        usd: u32,
    },
    /// Give credits to somebody else.
    Transfer {
        /// Recipient, as the model wrote it.
        to: String,
        /// Amount in cents.
        cents: u64,
    },
    /// Ask for something on the net that may cost money.
    FetchPaid {
        /// Address, as the model wrote it.
        url: String,
        /// The most that it may cost, in cents.
        cap_cents: u64,
    },
    /// Send a request out of the sandbox, on behalf of a command that runs there.
    Egress {
        /// The method; of a tunnel `CONNECT`.
        method: String,
        /// Address, as the proxy reads it; of a tunnel only its origin.
        url: String,
        /// Scheme, host and port of that, in normal form.
        origin: String,
    },
    /// Rent a machine, which costs credits as long as it runs.
    Rent {
        /// Memory in MiB, at least.
        memory_mb: u32,
        /// Disk in GiB, at least.
        disk_gb: u32,
    },
    /// End a rented machine with all that is on it.
    EndMachine {
        /// Its id, as the model wrote it.
        machine: String,
    },
    /// Open a port of the sandbox to everybody, or close it.
    Publish {
        /// The port inside.
        port: u16,
        /// Price of a request, in the model's words; empty if it is free.
        price: String,
        /// True if the port is open afterwards.
        open: bool,
    },
}

/// Gives `Intent` the names of its kinds, as a list and for each value.
macro_rules! kinds {
    ($($kind:ident => $name:literal),+ $(,)?) => {
        impl Intent {
            /// The name of every kind.
            pub const KINDS: [&str; [$($name),+].len()] = [$($name),+];

            /// The kind's name in the database.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind { .. } => $name),+
                }
            }
        }
    };
}

kinds! {
    Exec => "exec", ReadPath => "read_path", WritePath => "write_path", Message => "message",
    Remember => "remember", Recall => "recall", Sleep => "sleep", Observe => "observe",
    Plead => "plead", Economise => "economise", SwitchModel => "switch_model", Schedule => "schedule",
    ChangeSoul => "soul", ChangeGenesis => "genesis", TopUp => "top_up", Transfer => "transfer", FetchPaid => "fetch_paid", Egress => "egress", Rent => "rent",
    EndMachine => "end_machine", Publish => "publish",
}

/// A span as it is written in an intent: whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SpanMillis(i64);

impl From<Span> for SpanMillis {
    fn from(span: Span) -> Self {
        Self(span.as_millis())
    }
}

impl SpanMillis {
    /// The span.
    #[must_use]
    pub const fn span(self) -> Span {
        Span::from_millis(self.0)
    }
}

/// A value that knows what it intends. What is judged is what runs: the policy
/// asks the value itself, so nobody can have one thing approved and run another.
pub trait Intentional {
    /// The effects that running this value would have. Never empty.
    fn intents(&self) -> Vec<Intent>;
}
