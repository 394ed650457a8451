//! Models that were brought to this machine, for whoever is told their names while an automaton
//! lives.
//!
//! Must never hand out a file that is not the one that was verified when it came.

use std::path::PathBuf;
use std::sync::Arc;

use automaton_core::model::ModelId;
use automaton_core::time::Clock;
use automaton_inference::providers::local::{LocalModel, LocalModelConfig, LocalModelFiles};
use automaton_inference::routing::ModelFinder;
use automaton_inference::{BoxFuture, RegisteredModel};
use automaton_sandbox::{Launcher, Probe};

use crate::config::resolve::{Brain, ResolvedConfig};
use crate::error::CliError;
use crate::local_models;

/// The models beside one home.
pub(crate) struct PulledModels {
    home: PathBuf,
    /// The program that runs them.
    helper: PathBuf,
    launcher: Launcher,
    probe: Probe,
    clock: Arc<dyn Clock>,
}

impl PulledModels {
    /// Those of this home, where there is a program that runs them.
    pub(crate) fn find(
        resolved: &ResolvedConfig,
        launcher: &Launcher,
        probe: &Probe,
        clock: Arc<dyn Clock>,
    ) -> Option<Self> {
        let helper = match &resolved.brain {
            Brain::Local(local) => &local.helper,
            Brain::Http(_) => &resolved.local_fallback.as_ref()?.helper,
        };
        Some(Self {
            home: resolved.home.clone(),
            helper: helper.clone(),
            launcher: launcher.clone(),
            probe: probe.clone(),
            clock,
        })
    }

    async fn model(&self, wanted: &ModelId) -> Result<Option<RegisteredModel>, CliError> {
        let here = local_models::pulled(&self.home)?;
        let Some((entry, _)) = here.into_iter().find(|(entry, _)| entry.name == wanted.as_str())
        else {
            return Ok(None);
        };
        let model = local_models::file_of(&self.home, &entry.name);
        let Some(sha256) = entry.sha256 else {
            let what = format!("nobody has verified {}", model.display());
            return Err(CliError::user(what).hint("`automaton model pull` takes it from elsewhere"));
        };
        let files = LocalModelFiles {
            model,
            helper: self.helper.clone(),
            sha256: Some(sha256.as_str().to_owned()),
            context_tokens: None,
        };
        let launcher = self.launcher.clone();
        let probe = self.probe.clone();
        let config = LocalModelConfig::of_machine(launcher, probe, files)?;
        let provider = Arc::new(LocalModel::on_demand(config, Arc::clone(&self.clock)).await?);
        let seller = "this machine".to_owned();
        let roles = Vec::new();
        Ok(Some(RegisteredModel { provider, seller, roles }))
    }
}

impl ModelFinder for PulledModels {
    fn find<'a>(
        &'a self,
        model: &'a ModelId,
    ) -> BoxFuture<'a, Result<Option<RegisteredModel>, String>> {
        Box::pin(async move { self.model(model).await.map_err(|failure| failure.line()) })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use automaton_core::time::SystemClock;

    use super::*;

    #[tokio::test]
    async fn only_what_was_verified_is_handed_out() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir(local_models::folder(&home)).unwrap();
        let file = local_models::file_of(&home, "small");
        fs::write(&file, local_models::MAGIC).unwrap();
        let models = PulledModels {
            helper: PathBuf::from("/bin/true"),
            launcher: Launcher::new(PathBuf::from("/nonexistent")),
            probe: Probe::nothing("no sandbox in this test"),
            clock: Arc::new(SystemClock),
            home: home.clone(),
        };
        let find = async |name: &str| models.find(&name.into()).await;
        assert!(find("other").await.unwrap().is_none());
        assert!(find("small").await.err().unwrap().contains("nobody has verified"));
        let note = |hash: &str| {
            let note = format!(r#"{{"name":"small","sha256":"{hash}"}}"#);
            fs::write(local_models::note_of(&home, "small"), note).unwrap();
        };
        note(&"0".repeat(64));
        assert!(find("small").await.is_err());
        note(&local_models::hash_file(&file).unwrap());
        let found = find("small").await.unwrap().unwrap();
        assert_eq!(found.provider.model().id.as_str(), "small");
        assert!(found.roles.is_empty(), "nobody thinks with it who was not told its name");
    }
}
