//! The environment: the only file that reads it.
//!
//! Every variable that changes what the program does is a constant here. What
//! was read is a plain value from then on; nothing may read the environment a
//! second time, and no child process inherits it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use automaton_core::secret::Secret;
use automaton_net::{PrivateAuthorities, TrustError};

/// The automaton's home directory; by default `.automaton` in [`HOME`].
pub(crate) const AUTOMATON_HOME: &str = "AUTOMATON_HOME";
/// The user's home directory, which `~` in paths of the configuration means.
pub(crate) const HOME: &str = "HOME";
/// Overrides `conwayApiUrl` of the configuration.
pub(crate) const CONWAY_API_URL: &str = "CONWAY_API_URL";
/// Overrides `conwayApiKey` of the configuration.
pub(crate) const CONWAY_API_KEY: &str = "CONWAY_API_KEY";
/// Overrides `rpcUrl` of the configuration.
pub(crate) const AUTOMATON_RPC_URL: &str = "AUTOMATON_RPC_URL";
/// Overrides `ollamaBaseUrl` of the configuration.
pub(crate) const OLLAMA_BASE_URL: &str = "OLLAMA_BASE_URL";
/// Address of Ollama, as its own client reads it. It counts if a model is named.
pub(crate) const OLLAMA_HOST: &str = "OLLAMA_HOST";
/// The key to the server that `--brain URL` or the key `brain` names.
pub(crate) const AUTOMATON_BRAIN_KEY: &str = "AUTOMATON_BRAIN_KEY";
/// The machine that this one is, where a cloud says so. It is told and never adopted.
pub(crate) const CONWAY_SANDBOX_ID: &str = "CONWAY_SANDBOX_ID";
/// Any text but an empty one switches colour off, see <https://no-color.org>.
pub(crate) const NO_COLOR: &str = "NO_COLOR";
/// Which diagnostics are told where `--log` names none.
pub(crate) const AUTOMATON_LOG: &str = "AUTOMATON_LOG";
/// Folder in which systemd puts the credentials of a unit.
pub(crate) const CREDENTIALS_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";
/// Columns of what is read later than it is written, as a file; a terminal knows its own.
pub(crate) const COLUMNS: &str = "COLUMNS";
/// The zone that times are shown in, as every program's; by default the system's.
pub(crate) const TZ: &str = "TZ";
/// Folder for homes that are deleted afterwards; by default `/tmp`.
pub(crate) const TMPDIR: &str = "TMPDIR";

/// The encoding of traces, as every program of OpenTelemetry reads it; overrides `otlpProtocol`
/// of the configuration. The first one goes before the second.
pub(crate) const OTLP_PROTOCOL: [&str; 2] =
    ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];

/// A file with certificates of authorities that are believed beside public ones.
pub(crate) const SSL_CERT_FILE: &str = PrivateAuthorities::FILE;
/// Folders with such files, between colons.
pub(crate) const SSL_CERT_DIR: &str = PrivateAuthorities::FOLDERS;

/// Values of the environment. An empty variable counts as unset.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// [`AUTOMATON_HOME`].
    pub(crate) automaton_home: Option<PathBuf>,
    /// [`HOME`].
    pub(crate) home: Option<PathBuf>,
    /// [`CONWAY_API_URL`].
    pub(crate) conway_api_url: Option<String>,
    /// [`CONWAY_API_KEY`].
    pub(crate) conway_api_key: Option<Secret>,
    /// [`AUTOMATON_RPC_URL`].
    pub(crate) rpc_url: Option<String>,
    /// [`OLLAMA_BASE_URL`].
    pub(crate) ollama_base_url: Option<String>,
    /// [`OLLAMA_HOST`].
    pub(crate) ollama_host: Option<String>,
    /// [`AUTOMATON_BRAIN_KEY`].
    pub(crate) brain_key: Option<Secret>,
    /// [`CONWAY_SANDBOX_ID`].
    pub(crate) sandbox_id: Option<String>,
    /// [`NO_COLOR`].
    pub(crate) no_color: Option<OsString>,
    /// [`AUTOMATON_LOG`].
    pub(crate) log: Option<String>,
    /// [`CREDENTIALS_DIRECTORY`].
    pub(crate) credentials_directory: Option<PathBuf>,
    /// [`TMPDIR`].
    pub(crate) tmpdir: Option<PathBuf>,
    /// [`TZ`].
    pub(crate) tz: Option<String>,
    /// The first of [`OTLP_PROTOCOL`] that is set, with its name.
    pub(crate) otlp_protocol: Option<(&'static str, String)>,
    /// [`COLUMNS`], where it is a number.
    pub(crate) columns: Option<usize>,
    /// Keys and addresses of the providers that are known by name, by their variables.
    pub(crate) providers: BTreeMap<String, Secret>,
    /// [`SSL_CERT_FILE`].
    pub(crate) authorities_file: Option<PathBuf>,
    /// [`SSL_CERT_DIR`].
    pub(crate) authorities_folders: Vec<PathBuf>,
}

impl Environment {
    /// Reads the process's environment.
    pub(crate) fn read() -> Self {
        let text = |name| variable(name).and_then(|value| value.into_string().ok());
        Self {
            automaton_home: variable(AUTOMATON_HOME).map(PathBuf::from),
            home: variable(HOME).map(PathBuf::from),
            conway_api_url: text(CONWAY_API_URL),
            conway_api_key: text(CONWAY_API_KEY).map(Secret::new),
            rpc_url: text(AUTOMATON_RPC_URL),
            ollama_base_url: text(OLLAMA_BASE_URL),
            ollama_host: text(OLLAMA_HOST),
            brain_key: text(AUTOMATON_BRAIN_KEY).map(Secret::new),
            sandbox_id: text(CONWAY_SANDBOX_ID),
            no_color: variable(NO_COLOR),
            log: text(AUTOMATON_LOG),
            credentials_directory: variable(CREDENTIALS_DIRECTORY).map(PathBuf::from),
            tmpdir: variable(TMPDIR).map(PathBuf::from),
            tz: text(TZ),
            otlp_protocol: OTLP_PROTOCOL.into_iter().find_map(|name| Some((name, text(name)?))),
            // silent-ok: what is no number means nothing, as to every program.
            columns: text(COLUMNS).and_then(|columns| columns.parse().ok()),
            // silent-ok: a test reads the built-in rows.
            providers: super::providers::variables()
                .unwrap_or_default()
                .into_iter()
                .filter_map(|name| {
                    Some((read_secret(&name)?, name)).map(|(value, name)| (name, value))
                })
                .collect(),
            authorities_file: variable(SSL_CERT_FILE).map(PathBuf::from),
            authorities_folders: variable(SSL_CERT_DIR)
                .map(|folders| std::env::split_paths(&folders).collect())
                .unwrap_or_default(),
        }
    }
}

impl Environment {
    /// The authorities that the operator trusts beside public ones.
    ///
    /// # Errors
    /// [`TrustError`], which names the file and the variable.
    pub(crate) fn authorities(&self) -> Result<PrivateAuthorities, TrustError> {
        PrivateAuthorities::read(self.authorities_file.as_deref(), &self.authorities_folders)
    }
}

/// A secret in a variable that the configuration names.
pub(crate) fn read_secret(name: &str) -> Option<Secret> {
    let fits = !name.is_empty() && !name.contains(['=', '\0']);
    let value = if fits { variable(name) } else { None };
    value.and_then(|value| value.into_string().ok()).map(Secret::new)
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
