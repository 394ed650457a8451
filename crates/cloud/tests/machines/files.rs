//! Files in and out, and never beyond what is the machine's own.

use serde_json::json;

use crate::town::{Town, run};

pub(crate) const ALL: &[(&str, fn())] = &[
    ("a_file_goes_in_and_comes_out_as_it_was", round_trip),
    ("no_path_leads_out_of_a_machine", beneath),
];

pub(crate) fn round_trip() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let wrote = machine.write("~/notes/a.txt", "grüße\n").await;
        let told = json!({ "success": true, "path": "/root/notes/a.txt", "bytes": 8 });
        assert_eq!((wrote.status, wrote.json()), (200, told), "{wrote:?}");
        assert_eq!(machine.exec("cat notes/a.txt").await, "grüße\n");
        for path in ["notes/a.txt", "/root/notes/a.txt", "%7E/notes/a.txt"] {
            let read = machine.read(path).await;
            assert_eq!((read.status, read.body.as_str()), (200, "grüße\n"), "{path}");
            assert_eq!(read.header("content-type"), Some("text/plain; charset=utf-8"));
        }
        let raw = "a\0b".repeat(100_000);
        let put = town.put(&machine.path("/files/upload?path=/opt/data.bin"), &raw).await;
        assert_eq!((put.status, &put.json()["bytes"]), (200, &json!(300_000)), "{put:?}");
        let back = town.get(&machine.path("/files/download?path=/opt/data.bin")).await;
        assert_eq!((back.status, back.body.len(), back.body == raw), (200, 300_000, true));
        assert_eq!(back.header("content-length"), Some("300000"));
        let read = machine.read("/opt/data.bin").await;
        assert_eq!(read.header("content-type"), Some("application/octet-stream"));
        assert_eq!(machine.exec("wc -c < /opt/data.bin").await.trim(), "300000");

        machine.exec("ln -s a.txt notes/link; mkdir notes/in; mkfifo notes/pipe").await;
        let list = town.get(&machine.path("/files/list?path=notes")).await.json();
        let rows: Vec<_> = list["files"].as_array().unwrap().iter().collect();
        let kinds: Vec<_> = rows
            .iter()
            .map(|it| (it["name"].as_str().unwrap(), it["type"].as_str().unwrap()))
            .collect();
        assert_eq!(
            kinds,
            [("a.txt", "file"), ("in", "directory"), ("link", "link"), ("pipe", "special")]
        );
        assert_eq!((&rows[0]["path"], &rows[0]["size"]), (&json!("/root/notes/a.txt"), &json!(8)));
        assert_eq!(machine.read("notes/none").await.status, 404);
        assert_eq!(machine.read("notes").await.status, 422, "a folder");
        assert_eq!(machine.read("notes/pipe").await.status, 422);
    });
}

pub(crate) fn beneath() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let secret = town.home().join("secret");
        std::fs::write(&secret, "precious").unwrap();
        let home = town.home().display().to_string();
        machine.exec(&format!("ln -s {home} out; ln -s /etc etc; ln -s {home}/secret one")).await;
        machine.exec(&format!("ln -s {home} /opt/out")).await;
        let paths = [
            "../../../cloud.db",
            "/etc/passwd",
            "etc/passwd",
            "out/secret",
            "one",
            "/opt/out/secret",
            "/opt/../../../cloud.db",
            "~/../x",
            "~root/x",
            "",
            "/proc/self/environ",
            "/tmp/x",
            "/usr/bin/env",
        ];
        for path in paths {
            let read = machine.read(path).await;
            assert_eq!(read.status, 422, "{path}: {read:?}");
            assert!(!read.body.contains("precious"));
            let wrote = machine.write(path, "mine").await;
            assert_eq!(wrote.status, 422, "{path}: {wrote:?}");
            if !path.is_empty() {
                let put =
                    town.put(&machine.path(&format!("/files/upload?path={path}")), "mine").await;
                assert_eq!(put.status, 422, "{path}: {put:?}");
            }
        }
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "precious");
        let list = town.get(&machine.path("/files/list?path=out")).await;
        assert_eq!(list.status, 422, "{list:?}");
    });
}
