//! The life of machines, and its cost.

use std::fs;

use automaton_core::time::Span;
use automaton_sandbox::Launcher;
use serde_json::json;

use crate::town::{Machine, Town, run};
use crate::world::{get, post, until};

pub(crate) const ALL: &[(&str, fn())] = &[
    ("a_machine_is_made_once_and_for_its_owner_alone", made),
    ("a_machine_is_billed_while_it_runs_and_goes_with_its_files", billed),
    ("credits_that_run_out_stop_a_machine_and_keep_its_files", broke),
    ("where_no_sandbox_can_be_had_no_machine_is_made", nowhere),
    ("a_machine_that_takes_too_much_memory_comes_back_with_its_files", greedy),
    ("a_crash_leaves_no_machine_behind_and_bills_no_gap", crashed),
];

const MINUTE: Span = Span::from_secs(60);

pub(crate) fn made() {
    run(async {
        let town = Town::new().await;
        let tiers = town.get("/v1/credits/pricing").await.json();
        let first = json!({ "name": "nano", "vcpu": 1, "memory_mb": 512, "disk_gb": 5, "monthly_cents": 500 });
        assert_eq!(
            (&tiers["tiers"][0], tiers["tiers"][1]["monthly_cents"].as_i64()),
            (&first, Some(800))
        );

        let poor = [("Authorization", town.other.as_str())];
        let body = json!({ "name": "m", "vcpu": 1, "memory_mb": 512, "disk_gb": 5 }).to_string();
        let refused = post(town.world.at(), "/v1/sandboxes", &poor, &body).await;
        assert_eq!(refused.status, 402);
        assert_eq!(
            refused.body,
            r#"{"error":"Insufficient credits","code":"INSUFFICIENT_CREDITS","details":{"required_cents":17,"current_balance_cents":0},"detail":"Minimum balance of 17 cents required. Current balance: 0 cents."}"#
        );

        let body = json!({ "name": "m", "vcpu": 1, "memory_mb": 1000, "disk_gb": 5, "region": "eu-north" });
        let one = town.named("/v1/sandboxes", "k", &body).await;
        assert_eq!(one.status, 200, "{one:?}");
        let told = one.json();
        assert_eq!(
            (&told["status"], &told["memory_mb"], &told["disk_gb"], &told["name"]),
            (&json!("running"), &json!(1024), &json!(10), &json!("m")),
            "the smallest that has enough"
        );
        assert_eq!(town.named("/v1/sandboxes", "k", &body).await.json()["id"], told["id"]);
        let other = json!({ "name": "n", "vcpu": 1, "memory_mb": 512, "disk_gb": 5 });
        assert_eq!(town.named("/v1/sandboxes", "k", &other).await.status, 409);
        let list = town.get("/v1/sandboxes").await.json();
        assert_eq!(list["sandboxes"].as_array().unwrap().len(), 1);
        assert_eq!(list["sandboxes"][0]["id"], told["id"]);

        let id = told["id"].as_str().unwrap();
        let path = format!("/v1/sandboxes/{id}");
        let foreign = get(town.world.at(), &path, &poor).await;
        let absent = town.get("/v1/sandboxes/01ARZ3NDEKTSV4RRFFQ69G5FAV").await;
        let blank = town.get("/v1/sandboxes/null").await;
        for reply in [&foreign, &absent, &blank] {
            assert_eq!(reply.status, 403, "{reply:?}");
            assert_eq!(reply.json()["error"], "Sandbox not found or access denied");
        }
        let exec = format!("{path}/exec");
        let foreign = post(town.world.at(), &exec, &poor, r#"{"command":"true"}"#).await;
        assert_eq!(foreign.status, 403);
        assert_eq!(
            get(town.world.at(), "/v1/sandboxes", &poor).await.json()["sandboxes"],
            json!([])
        );
        assert_eq!(get(town.world.at(), "/v1/sandboxes", &[]).await.status, 401);
        let large = json!({ "name": "m", "memory_mb": 9000 });
        assert_eq!(town.post("/v1/sandboxes", &large).await.status, 422);
    });
}

fn billed() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let before = 500_000_000;
        assert_eq!(town.world.balance(&town.key).await, before - 11_575, "the first minute");
        machine.exec("echo kept > file; mkdir -p /opt/tool; echo x > /opt/tool/x").await;
        machine.billed(MINUTE, 2).await;
        machine.billed(Span::from_secs(120), 4).await;
        assert_eq!(town.world.balance(&town.key).await, before - 46_297, "4/43200 of $5");
        let metrics = machine.metrics().await;
        assert_eq!(metrics["billed_microcents"], 46_297);
        assert!(metrics["disk_bytes"].as_u64().unwrap() > 0, "{metrics}");
        assert_eq!(metrics["memory_limit_bytes"], 512 << 20);
        let history = town.get("/v1/credits/history?limit=1").await.json();
        assert_eq!(history["history"][0]["type"], "machine");
        assert_eq!(history["history"][0]["description"], machine.id.as_str());

        let stopped = town.post(&machine.path("/stop"), &json!({})).await;
        assert_eq!((stopped.status, &stopped.json()["status"]), (200, &json!("stopped")));
        assert_eq!(machine.ask("true").await.status, 409);
        assert_eq!(
            machine.read("file").await.body,
            "kept\n",
            "a machine that stands still has files"
        );
        town.world.clock.step(Span::from_secs(3600));
        let started = town.post(&machine.path("/start"), &json!({})).await;
        assert_eq!((started.status, &started.json()["status"]), (200, &json!("running")));
        assert_eq!(machine.exec("cat file /opt/tool/x").await, "kept\nx\n");
        assert_eq!(machine.metrics().await["billed_minutes"], 5, "none of that hour");

        let folder = town.home().join("machines").join(&machine.id);
        assert!(folder.join("root/file").exists());
        let gone = town.delete(&machine.path("")).await;
        assert_eq!((gone.status, gone.body.as_str(), gone.header("content-type")), (204, "", None));
        assert!(!folder.exists());
        assert_eq!(town.get(&machine.path("")).await.status, 403);
        assert_eq!(town.get("/v1/sandboxes").await.json()["sandboxes"], json!([]));
        let after = town.world.balance(&town.key).await;
        town.world.clock.step(Span::from_secs(7200));
        // A machine that runs is billed, so the keeper has been around.
        town.machine().await.billed(MINUTE, 2).await;
        assert_eq!(town.world.balance(&town.key).await, after - 11_575 - 11_574);
    });
}

pub(crate) fn broke() {
    run(async {
        let town = Town::new().await;
        let machine = town.sized(8192).await;
        machine.exec("echo kept > file").await;
        // All but less than a cent goes elsewhere; a minute costs about a tenth.
        let rest = town.world.balance(&town.key).await / 1_000_000;
        let gift = json!({ "to_address": town.wallets[1].address, "amount_cents": rest });
        assert_eq!(town.post("/v1/credits/transfer", &gift).await.status, 200);
        machine.billed(Span::from_secs(119), 2).await;
        for minutes in [4, 6, 8] {
            machine.billed(Span::from_secs(120), minutes).await;
        }
        town.world.clock.step(Span::from_secs(120));
        let told = machine.until("it is stopped", |told| told["status"] == "stopped").await;
        assert!(told["reason"].as_str().unwrap().contains("credits ran out"), "{told}");
        assert!(town.world.balance(&town.key).await >= 0);
        let refused = town.post(&machine.path("/start"), &json!({})).await;
        assert_eq!(
            (refused.status, &refused.json()["details"]["required_cents"]),
            (402, &json!(150))
        );
        town.buy(2).await;
        let started = town.post(&machine.path("/start"), &json!({})).await;
        assert_eq!((started.status, &started.json()["status"]), (200, &json!("running")));
        assert!(started.json().get("reason").is_none());
        assert_eq!(machine.exec("cat file").await, "kept\n");
    });
}

fn greedy() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        machine.exec("echo kept > file").await;
        let hog = machine.ask("python3 -c 'x = [bytearray(64 << 20) for _ in range(99)]'").await;
        assert_ne!((hog.status, &hog.json()["exit_code"]), (200, &json!(0)), "{hog:?}");
        until("it runs commands again", async || machine.ask("true").await.status == 200).await;
        assert_eq!(machine.exec("cat file").await, "kept\n");
        assert_eq!(machine.metrics().await["billed_minutes"], 1, "in the same minute");
    });
}

fn nowhere() {
    run(async {
        let town = Town::over(Launcher::new("/nowhere/helper".into())).await;
        let body = json!({ "name": "m", "vcpu": 1, "memory_mb": 512, "disk_gb": 5 });
        for _ in 0..2 {
            let refused = town.named("/v1/sandboxes", "k", &body).await;
            assert_eq!((refused.status, refused.header("retry-after")), (503, Some("2")));
            let told = refused.json();
            assert_eq!(told["error"], "No healthy workers available");
            assert!(told["detail"].as_str().unwrap().contains("no machine can run here"), "{told}");
        }
        assert_eq!(town.get("/v1/sandboxes").await.json()["sandboxes"], json!([]));
        assert_eq!(town.world.balance(&town.key).await, 500_000_000, "it costs nothing");
        let machines = town.home().join("machines");
        let names = fs::read_dir(machines).unwrap().map(|it| it.unwrap().file_name());
        assert!(names.into_iter().all(|name| name == ".trash"));
    });
}

fn crashed() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let (id, stopped) = (machine.id.clone(), town.machine().await);
        let stopped_id = stopped.id.clone();
        town.post(&stopped.path("/stop"), &json!({})).await;
        machine.write("file", "kept").await;
        let path = machine.path("/exec");
        let endless =
            json!({ "command": "cd /root && touch begun && sleep 600", "timeout": 600_000 });
        let headers = [("Authorization", town.key.as_str()), ("Idempotency-Key", "cut")];
        let line = format!("POST {path}");
        let _asked =
            crate::world::open(town.world.at(), &line, &headers, &endless.to_string()).await;
        until("the command runs", async || machine.read("begun").await.status == 200).await;
        let billed = machine.metrics().await["billed_minutes"].clone();
        assert_eq!(billed, 1);
        let machines = town.home().join("machines");
        let orphan = machines.join("01ARZ3NDEKTSV4RRFFQ69G5FAV");
        fs::create_dir(&orphan).unwrap();
        fs::write(orphan.join("file"), "kept").unwrap();

        let clock = town.world.clock.clone();
        clock.step(Span::from_secs(240));
        let town = town.crash().await;
        let machine = Machine { town: &town, id: id.clone(), short_id: String::new() };
        machine.until("it runs again", |told| told["status"] == "running").await;
        assert_eq!(machine.read("file").await.body, "kept");
        machine.exec("! pgrep sleep").await;
        assert_eq!(machine.metrics().await["billed_minutes"], 2, "no minute of the gap");
        let cut = town.named(&path, "cut", &endless).await.json();
        assert_eq!(cut["exit_code"], 125, "it is not run once more: {cut}");
        until("the orphan is put aside", async || !orphan.exists()).await;
        let aside = machines.join("lost/01ARZ3NDEKTSV4RRFFQ69G5FAV/file");
        assert_eq!(fs::read_to_string(aside).unwrap(), "kept");
        let stopped = Machine { town: &town, id: stopped_id, short_id: String::new() };
        assert_eq!(stopped.told().await["status"], "stopped");
        // And once more, at once: a minute that is paid is not paid again.
        let town = town.crash().await;
        let machine = Machine { town: &town, id, short_id: String::new() };
        machine.until("it runs again", |told| told["status"] == "running").await;
        assert_eq!(machine.metrics().await["billed_minutes"], 2);
        machine.billed(MINUTE, 3).await;
    });
}
