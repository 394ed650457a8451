//! The servers behind the cloud of a home's stack, with their keys in files for its user alone.
//!
//! A key of a server that is not asked any more must never stay.

use std::fs;
use std::path::PathBuf;

use automaton_core::model::ModelId;
use automaton_inference::RequestDialect;
use automaton_inference::providers::http::ApiFormat;
use serde::Serialize;

use super::{Stack, write_atomically};
use crate::config::file::LocalBrain;
use crate::config::resolve::{Brain, HttpBrain, KeyScheme, ResolvedConfig};
use crate::error::CliError;
use crate::role::provider;

/// The most servers behind a cloud.
const KEYS_MAX: usize = 8;

/// One of them, as the cloud reads it.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum StackUpstream<'a> {
    Http {
        base_url: String,
        format: ApiFormat,
        #[serde(skip_serializing_if = "Option::is_none")]
        anthropic_version: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        key_file: Option<PathBuf>,
        #[serde(skip_serializing_if = "Option::is_none")]
        token_limit_name: Option<&'static str>,
        models: Vec<ModelId>,
    },
    Local {
        local: &'a LocalBrain,
    },
}

impl Stack {
    /// The servers behind its cloud: that of the brain, and those that stand in for it.
    pub(super) fn upstreams<'a>(
        &self,
        resolved: &'a ResolvedConfig,
        cheaper: &[ModelId],
    ) -> Result<Vec<StackUpstream<'a>>, CliError> {
        for nth in 0..KEYS_MAX {
            // silent-ok: there is usually none of an earlier brain.
            fs::remove_file(self.key_file(nth)).unwrap_or_default();
        }
        let http = match &resolved.brain {
            Brain::Local(local) => return Ok(vec![StackUpstream::Local { local }]),
            Brain::Http(http) if http.scheme == KeyScheme::Raw => {
                let what = format!("{} is a cloud already", http.url);
                return Err(CliError::user(what).hint("think with it directly: give --direct"));
            }
            Brain::Http(http) => http,
        };
        let usual: Vec<ModelId> = std::iter::once(&http.model).chain(cheaper).cloned().collect();
        let mut servers = vec![(http, usual)];
        for server in resolved.other_sellers.iter().take(KEYS_MAX - 1) {
            let of = provider::stand_ins(resolved).filter(|(it, _)| it.url == server.url);
            let is_new = |name: &&ModelId| servers.iter().all(|(_, known)| !known.contains(name));
            let models: Vec<ModelId> = of.map(|(_, name)| name).filter(is_new).cloned().collect();
            if !models.is_empty() {
                servers.push((server, models));
            }
        }
        let servers = servers.into_iter().enumerate();
        servers.map(|(nth, (server, models))| self.server(nth, server, models)).collect()
    }

    fn key_file(&self, nth: usize) -> PathBuf {
        match nth {
            0 => self.folder.join("upstream.key"),
            nth => self.folder.join(format!("upstream-{nth}.key")),
        }
    }

    fn server<'a>(
        &self,
        nth: usize,
        http: &'a HttpBrain,
        models: Vec<ModelId>,
    ) -> Result<StackUpstream<'a>, CliError> {
        // What is wrong with it is told before a cloud is started.
        http.format.url(&http.url)?;
        let key_file = self.key_file(nth);
        if let Some(key) = &http.key {
            write_atomically(&key_file, key.reveal().as_bytes(), 0o600)?;
        }
        let limit = match provider::served_by(http, &http.model)?.dialect {
            RequestDialect::Reasoning => Some("max_completion_tokens"),
            _ => None,
        };
        Ok(StackUpstream::Http {
            base_url: http.url.clone(),
            format: http.format,
            anthropic_version: http.anthropic_version.as_deref(),
            key_file: http.key.as_ref().map(|_| key_file),
            token_limit_name: limit,
            models,
        })
    }
}
