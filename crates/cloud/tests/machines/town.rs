//! A cloud with machines, and two who have accounts there.

use std::path::PathBuf;
use std::sync::OnceLock;

use alloy_primitives::U256;
use automaton_core::time::{Clock as _, Span};
use automaton_core::wire::x402::Authorization;
use automaton_sandbox::Launcher;
use serde_json::{Value, json};

use crate::peers;
use crate::world::{Reply, Wallet, World, get, post, send, until};

/// Nobody thinks there.
pub(crate) const UPSTREAM: &str = r#"{"base_url":"http://127.0.0.1:9/v1"}"#;

/// The socket of podman, where the machines of this process are containers.
pub(crate) static CONTAINERS: OnceLock<PathBuf> = OnceLock::new();

fn rents() -> String {
    CONTAINERS.get().map(|socket| peers::rents(socket, peers::IMAGE)).unwrap_or_default()
}

pub(crate) fn run<T>(case: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(case)
}

/// A cloud, in which the first wallet has five dollars and the second nothing.
pub(crate) struct Town {
    pub(crate) world: World,
    pub(crate) wallets: [Wallet; 2],
    pub(crate) key: String,
    pub(crate) other: String,
}

impl Town {
    pub(crate) async fn new() -> Self {
        Self::over(Launcher::new(std::env::current_exe().unwrap())).await
    }

    pub(crate) async fn over(launcher: Launcher) -> Self {
        Self::renting(launcher, rents()).await
    }

    /// With machines that may reach this, as the configuration says it.
    pub(crate) async fn reaching(launcher: Launcher, egress: &str) -> Self {
        Self::renting(launcher, format!(r#","egress":{egress}"#)).await
    }

    async fn renting(launcher: Launcher, machines: String) -> Self {
        let world = World::renting(UPSTREAM.to_owned(), Some(launcher), machines).await.unwrap();
        let wallets = [Wallet::new(1), Wallet::new(2)];
        let (key, other) = (world.key(&wallets[0]).await, world.key(&wallets[1]).await);
        world.give(&wallets[0], 50);
        let town = Self { world, wallets, key, other };
        town.buy(1).await;
        town
    }

    /// Buys five dollars of credits, and waits until they are there: where the disk is slow, the
    /// answer comes while the payment is under way.
    pub(crate) async fn buy(&self, nonce: u8) {
        let before = self.world.balance(&self.key).await;
        let now = self.world.clock.now().as_millis().unsigned_abs() / 1000;
        let valid_before = U256::from(now + 300);
        let paid = Authorization { valid_before, ..self.wallets[0].authorize(5, nonce) };
        let reply = self.world.pay(&self.wallets[0], paid).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        until("the credits are there", async || self.world.balance(&self.key).await > before).await;
    }

    /// Signs in as a program in a machine does: for the address at which it reaches the cloud.
    pub(crate) async fn sign_in_inside(&self, domain: &str) -> Reply {
        let wallet = &self.wallets[0];
        let mut message = self.world.message(wallet, &self.world.nonce().await);
        message.uri = "http://127.0.0.1:3128/v1/auth/verify".to_owned();
        message.domain = domain.to_owned();
        self.world.verify(wallet, &message.to_string()).await
    }

    pub(crate) async fn crash(self) -> Self {
        Self { world: self.world.crash().await, ..self }
    }

    /// Returns the folder of its cloud.
    pub(crate) fn home(&self) -> PathBuf {
        self.world.config().data
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        get(self.world.at(), path, &[("Authorization", &self.key)]).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        // As clients in the field do, even where there is no body.
        let headers = [("Authorization", self.key.as_str()), ("Content-Type", "application/json")];
        post(self.world.at(), path, &headers, &body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &str) -> Reply {
        let headers = [("Authorization", self.key.as_str())];
        send(self.world.at(), &format!("PUT {path}"), &headers, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        let headers = [("Authorization", self.key.as_str())];
        send(self.world.at(), &format!("DELETE {path}"), &headers, "").await
    }

    pub(crate) async fn named(&self, path: &str, name: &str, body: &Value) -> Reply {
        let headers = [
            ("Authorization", self.key.as_str()),
            ("Content-Type", "application/json"),
            ("Idempotency-Key", name),
        ];
        post(self.world.at(), path, &headers, &body.to_string()).await
    }

    /// A machine that runs.
    pub(crate) async fn machine(&self) -> Machine<'_> {
        self.sized(512).await
    }

    pub(crate) async fn sized(&self, memory_mb: u32) -> Machine<'_> {
        let body = json!({ "name": "m", "vcpu": 1, "memory_mb": memory_mb, "disk_gb": 5 });
        let reply = self.post("/v1/sandboxes", &body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let told = reply.json();
        assert_eq!(told["status"], "running", "{told}");
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        Machine { town: self, id: text("id"), short_id: text("short_id") }
    }
}

pub(crate) struct Machine<'a> {
    pub(crate) town: &'a Town,
    pub(crate) id: String,
    pub(crate) short_id: String,
}

impl Machine<'_> {
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/v1/sandboxes/{}{rest}", self.id)
    }

    pub(crate) async fn told(&self) -> Value {
        let reply = self.town.get(&self.path("")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    pub(crate) async fn metrics(&self) -> Value {
        let reply = self.town.get(&self.path("/metrics")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    pub(crate) async fn ask(&self, command: &str) -> Reply {
        let command = format!("cd /root && {command}");
        self.town.post(&self.path("/exec"), &json!({ "command": command })).await
    }

    /// The output of a command that has to succeed.
    pub(crate) async fn exec(&self, command: &str) -> String {
        let reply = self.ask(command).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.json()["exit_code"], 0, "{reply:?}");
        reply.json()["stdout"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn write(&self, path: &str, content: &str) -> Reply {
        let body = json!({ "path": path, "content": content });
        self.town.post(&self.path("/files/upload/json"), &body).await
    }

    pub(crate) async fn read(&self, path: &str) -> Reply {
        self.town.get(&self.path(&format!("/files/read?path={path}"))).await
    }

    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        until(what, async || holds(&self.told().await)).await;
        self.told().await
    }

    /// Lets time go by and waits until so many minutes were charged.
    pub(crate) async fn billed(&self, after: Span, minutes: u64) {
        self.town.world.clock.step(after);
        let what = format!("{minutes} minutes are billed");
        until(&what, async || self.metrics().await["billed_minutes"] == minutes).await;
    }
}
