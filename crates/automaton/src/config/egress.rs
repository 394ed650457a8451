//! The key `egress`: where commands in the sandbox may send requests.
//!
//! The file names places and where credentials are, never a credential itself. Those are
//! read once, when an automaton is started or a command is run by hand, and go to the
//! process that runs the proxy. They must never lie where the automaton can read.

use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use automaton_agent::{Credential, EgressConfig};
use automaton_core::error::ErrorClass;
use automaton_core::secret::Secret;
use automaton_net::{Allowance, Origin, host_pattern};
use automaton_policy::Reachable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::env;
use super::file::FILE_NAME;
use super::resolve::secret_text;
use super::values::{BareOrigin, HeaderName, HostPattern, Ranged};
use crate::error::CliError;
use crate::home::WORKSPACE;
use crate::text_file;

/// The longest credential, in bytes.
const CREDENTIAL_BYTES_MAX: u64 = 16 << 10;

/// Hosts that sandboxed commands may reach, through a proxy that judges and records each request.
/// None by default: then commands have only their own loopback.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct EgressFile {
    /// Hosts by name, as `pypi.org`, or `*.pythonhosted.org` for every name under it. They
    /// are reached over TLS at port 443 and by plain HTTP at port 80.
    hosts: Vec<HostPattern>,
    /// Origins with scheme, host and port, as `http://127.0.0.1:8000`. They may be on this
    /// machine or in a private network.
    origins: Vec<BareOrigin>,
    /// Headers that the proxy puts into requests, so that no command ever sees them.
    credentials: Vec<CredentialFile>,
    /// Requests in any minute; 120 by default.
    requests_per_minute: Option<Ranged<1, 6000>>,
    /// Bytes of one request in each direction; 64 MiB by default.
    bytes_per_request: Option<Ranged<1024, { 1 << 40 }>>,
    /// Bytes of all requests of one command together; 256 MiB by default.
    bytes_per_run: Option<Ranged<1024, { 1 << 40 }>>,
}

/// A header that the proxy puts into requests to one origin.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CredentialFile {
    /// Destination, as `https://api.example.com`. Commands ask for `http://api.example.com/…`,
    /// and the proxy speaks TLS to it.
    origin: BareOrigin,
    /// The header, as `authorization`.
    header: HeaderName,
    /// Place of its value.
    value_from: ValueFrom,
}

/// Place of the value of a credential.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum ValueFrom {
    /// In a variable of the environment that the automaton is started in.
    Env(String),
    /// In a file that only its owner can read, outside the workspace; a relative path begins
    /// at the home.
    File(PathBuf),
}

/// The same with the values of the credentials, in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EgressLaunchConfig {
    file: EgressFile,
    values: Vec<SecretValue>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SecretValue(#[serde(with = "secret_text")] Option<Secret>);

impl EgressFile {
    /// Reads the values of the credentials.
    ///
    /// # Errors
    /// When one is missing, or others could read it.
    pub(crate) fn gather(&self, home: &Path) -> Result<EgressLaunchConfig, CliError> {
        let value =
            |credential: &CredentialFile| credential.read(home).map(|it| SecretValue(Some(it)));
        let values = self.credentials.iter().map(value).collect::<Result<_, CliError>>()?;
        Ok(EgressLaunchConfig { file: self.clone(), values })
    }

    /// The same without the values, for those who only tell of it.
    pub(crate) fn unread(&self) -> EgressLaunchConfig {
        EgressLaunchConfig { file: self.clone(), values: Vec::new() }
    }
}

impl EgressLaunchConfig {
    /// Returns the configuration for the agent.
    pub(crate) fn open(&self) -> EgressConfig {
        let EgressFile { hosts, origins, credentials, .. } = &self.file;
        let hosts = hosts.iter().filter_map(|host| host_pattern(host.as_str())).collect();
        let origin = |text: &BareOrigin| text.as_str().parse::<Origin>().ok();
        let origins = origins.iter().filter_map(origin).map(|it| it.to_string()).collect();
        let values = self.values.iter().map(|value| value.0.clone()).chain(std::iter::repeat(None));
        let credentials = credentials.iter().zip(values).filter_map(|(credential, value)| {
            Some(Credential {
                origin: origin(&credential.origin)?,
                header: credential.header.as_str().to_ascii_lowercase(),
                value: value.unwrap_or_else(|| Secret::new(String::new())),
            })
        });
        let usual = Allowance::default();
        let allowance = Allowance {
            requests_per_minute: self
                .file
                .requests_per_minute
                .map_or(usual.requests_per_minute, Ranged::get_u32),
            bytes_per_request: self
                .file
                .bytes_per_request
                .map_or(usual.bytes_per_request, Ranged::get),
            bytes_per_run: self.file.bytes_per_run.map_or(usual.bytes_per_run, Ranged::get),
            ..usual
        };
        let reachable = Arc::new(Reachable { hosts, origins });
        EgressConfig { reachable, credentials: credentials.collect(), allowance }
    }
}

impl CredentialFile {
    fn read(&self, home: &Path) -> Result<Secret, CliError> {
        let bad = |what: String| {
            let origin = self.origin.as_str();
            let what = format!(
                "the credential for {origin} (key `egress.credentials` of {FILE_NAME}) {what}"
            );
            CliError::new(ErrorClass::Config, what)
        };
        let value = match &self.value_from {
            ValueFrom::Env(name) => env::read_secret(name).ok_or_else(|| {
                bad(format!("is in the environment variable {name}, which is not set"))
                    .hint(format!("set {name} where the automaton is started"))
            })?,
            ValueFrom::File(path) => {
                let path = home.join(path);
                let shown = path.display().to_string();
                let plain = path.components().all(|part| part != Component::ParentDir);
                if !plain || path.starts_with(home.join(WORKSPACE)) {
                    return Err(bad(format!("is in {shown}, which the automaton may read"))
                        .hint("move the file into the home, outside the workspace"));
                }
                read(&path).map_err(|error| {
                    bad(format!("cannot be read from {shown}")).because(&error).hint(format!(
                        "write the value into that file, then run `chmod 600 {shown}`"
                    ))
                })?
            }
        };
        let text = value.reveal().trim_end_matches(['\r', '\n']);
        if text.is_empty() || text.chars().any(|c| c.is_control() || !c.is_ascii()) {
            return Err(bad("is empty, or no text that fits into a header".to_owned())
                .hint("give the whole value of the header, such as `Bearer …`, on one line"));
        }
        Ok(Secret::new(text.to_owned()))
    }
}

/// The text of a file that nobody but its owner can read.
fn read(path: &Path) -> std::io::Result<Secret> {
    let file = File::open(path)?;
    text_file::check_private(&file)?;
    text_file::read_open(file, CREDENTIAL_BYTES_MAX).map(Secret::new)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::file::parse;

    fn told(egress: &str) -> Result<EgressFile, String> {
        let text = format!("{{\"egress\": {egress}}}");
        parse(Path::new("x"), &text).map(|file| file.egress).map_err(|failure| failure.line())
    }

    #[test]
    fn places_have_one_spelling() {
        let told = told(
            r#"{"hosts": ["PyPI.org", "*.Bücher.example", "a.example."],
                "origins": ["HTTP://127.1:8000/", "https://x.example:443"], "bytesPerRun": 4096}"#,
        );
        let egress = told.unwrap().unread().open();
        let Reachable { hosts, origins } = &*egress.reachable;
        assert_eq!(*hosts, ["pypi.org", "*.xn--bcher-kva.example", "a.example"]);
        assert_eq!(*origins, ["http://127.0.0.1:8000", "https://x.example"]);
        let usual = Allowance::default();
        assert_eq!(egress.allowance, Allowance { bytes_per_run: 4096, ..usual });
        assert!(EgressFile::default().unread().open().places().next().is_none());
    }

    #[test]
    fn what_is_too_wide_or_no_place_is_refused_with_its_line_and_key() {
        for host in [
            "",
            "*",
            "*.",
            "*.com",
            "*.*.org",
            "a.*.org",
            "127.0.0.1",
            "0x7f.1",
            "[::1]",
            "pypi.org:443",
            "https://pypi.org",
            "me@pypi.org",
            "pypi.org/x",
            "*.127.0.0.1",
            "pypi org",
        ] {
            let line = told(&format!("{{\"hosts\": [\"{host}\"]}}")).unwrap_err();
            assert!(
                line.contains("line 1, column") && line.contains("key `egress.hosts[0]`"),
                "{line}"
            );
        }
        for (wrong, key) in [
            (r#"{"origins": ["http://a.example/x"]}"#, "egress.origins[0]"),
            (r#"{"origins": ["http://me:pw@a.example"]}"#, "egress.origins[0]"),
            (r#"{"hots": []}"#, "egress.hots"),
            (r#"{"requestsPerMinute": 0}"#, "egress.requestsPerMinute"),
            (
                r#"{"credentials": [{"origin": "https://a.example", "header": "Host", "valueFrom": {"env": "A"}}]}"#,
                "egress.credentials[0].header",
            ),
            (
                r#"{"credentials": [{"origin": "https://a.example", "header": "x", "value": "secret"}]}"#,
                "egress.credentials[0].value",
            ),
        ] {
            let line = told(wrong).unwrap_err();
            assert!(line.contains(&format!("key `{key}`")), "{line}");
        }
    }

    #[test]
    fn a_credential_is_read_from_a_file_of_its_owners_alone() {
        let home = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str, mode: u32| {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        put("key", "Bearer abc\n", 0o600);
        put("open", "Bearer abc\n", 0o640);
        put("empty", "\n", 0o600);
        put("two", "a\nb\n", 0o600);
        put("workspace/key", "Bearer abc\n", 0o600);
        let read = |from: &str| {
            let told = told(&format!(
                r#"{{"credentials": [{{"origin": "https://a.example", "header": "Authorization", "valueFrom": {from}}}]}}"#
            ));
            told.unwrap().gather(home.path()).map_err(|failure| failure.line())
        };
        let config = read(r#"{"file": "key"}"#).unwrap();
        // As it goes to the agent's process.
        let text = serde_json::to_string(&config).unwrap();
        let config: EgressLaunchConfig = serde_json::from_str(&text).unwrap();
        assert_eq!(config.open().credentials[0].value.reveal(), "Bearer abc");
        assert_eq!(config.open().credentials[0].header, "authorization");
        assert!(!format!("{config:?}").contains("abc"));
        for from in [
            r#"{"file": "open"}"#,
            r#"{"file": "empty"}"#,
            r#"{"file": "two"}"#,
            r#"{"file": "none"}"#,
            r#"{"file": "."}"#,
            r#"{"file": "workspace/key"}"#,
            r#"{"file": "x/../workspace/key"}"#,
            r#"{"env": "NO_SUCH_VARIABLE_OF_THIS_TEST"}"#,
        ] {
            let line = read(from).unwrap_err();
            assert!(line.contains("https://a.example") && !line.contains("abc"), "{from}: {line}");
        }
    }
}
