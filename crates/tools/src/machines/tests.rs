//! Requests to the cloud, and reports of its answers.

use automaton_core::wire::cloud::MachineReply;
use serde_json::json;

use crate::error::ToolError;
use crate::testing::{Fake, run};

const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn machine() -> MachineReply {
    let reply = json!({
        "id": ID, "name": "web\nserver", "status": "running", "region": "local", "vcpu": 1,
        "memory_mb": 512, "disk_gb": 5, "monthly_cents": 505, "reason": "x",
    });
    serde_json::from_value(reply).unwrap()
}

#[test]
fn a_machine_is_told_on_one_line_with_its_price() {
    let fake = Fake { machines: Some(vec![machine()]), ..Fake::default() };
    let told = |tool, arguments| run(&fake, tool, &arguments).unwrap().text.text;
    let line =
        format!("{ID} [running] web\\nserver, 1 vCPU, 512 MiB, 5 GiB, local, $5.05 a month (x)");
    let created = told("create_sandbox", json!({"name": "web", "memory_mb": 1024}));
    assert_eq!(created, format!("Sandbox created: {line}"));
    assert_eq!(told("list_sandboxes", json!({})), format!("{line}\n[1 sandboxes]"));
    let deleted = told("delete_sandbox", json!({"sandbox_id": ID}));
    assert_eq!(deleted, format!("Sandbox deleted: {ID}"));
    assert_eq!(fake.log(), ["rent web 1 1024 5", "machines", &format!("end {ID}")]);
}

#[test]
fn a_port_is_opened_at_its_price_and_closed() {
    let fake = Fake { machines: Some(Vec::new()), ..Fake::default() };
    let told = |tool, arguments| run(&fake, tool, &arguments).unwrap().text.text;
    let open = told("expose_port", json!({"port": 80, "price_usdc": "0.01"}));
    assert_eq!(open, "Port 80 exposed at: http://public, for 0.01 USDC a request");
    assert_eq!(told("expose_port", json!({"port": 80})), "Port 80 exposed at: http://public");
    assert_eq!(told("remove_port", json!({"port": 80})), "Port 80 removed");
    assert_eq!(fake.log(), ["open 80 0.01", "open 80 ", "close 80"]);
}

#[test]
fn what_the_cloud_refuses_is_told() {
    let fake = Fake::default();
    let error = run(&fake, "create_sandbox", &json!({"name": "a"})).unwrap_err();
    assert!(matches!(error, ToolError::Machine(_)) && !error.is_fatal());
    let error = run(&fake, "expose_port", &json!({"port": 80})).unwrap_err();
    assert!(matches!(error, ToolError::Port(_)) && !error.is_fatal());
}
