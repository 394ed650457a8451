//! Files in and out, and never beyond what is the machine's own.

use serde_json::json;

use crate::town::{Town, run};
use crate::world::send;

pub(crate) const ALL: &[(&str, fn())] = &[
    ("a_file_goes_in_and_comes_out_as_it_was", round_trip),
    ("no_path_leads_out_of_a_machine", beneath),
    ("a_file_goes_through_tmp_as_through_any_folder", through_tmp),
    ("a_file_is_taken_in_every_form_that_clients_send", every_form),
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

pub(crate) fn through_tmp() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let wrote = machine.write("/tmp/a b/c.txt", "grüße\n").await;
        let told = json!({ "success": true, "path": "/tmp/a b/c.txt", "bytes": 8 });
        assert_eq!((wrote.status, wrote.json()), (200, told), "{wrote:?}");
        assert_eq!(machine.exec("cat '/tmp/a b/c.txt'").await, "grüße\n");
        machine.exec("chmod 755 '/tmp/a b/c.txt'").await;
        assert_eq!(machine.write("/tmp/a b/c.txt", "").await.status, 200, "it is replaced");
        assert_eq!(machine.read("/tmp/a%20b/c.txt").await.body, "");
        assert_eq!(machine.exec("stat -c %a '/tmp/a b/c.txt'").await, "755\n");
        let raw = "a\0b\n".repeat(200_000);
        let put = town.put(&machine.path("/files/upload?path=/tmp/data.bin"), &raw).await;
        assert_eq!((put.status, &put.json()["bytes"]), (200, &json!(800_000)), "{put:?}");
        let back = town.get(&machine.path("/files/download?path=/tmp/data.bin")).await;
        assert_eq!((back.status, back.body == raw), (200, true));
        let list = town.get(&machine.path("/files/list?path=/tmp")).await.json();
        let names: Vec<_> =
            list["files"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
        assert!(names.contains(&&json!("/tmp/data.bin")), "{list}");
        assert!(!list.to_string().contains("automaton-upload"), "{list}");
        for (path, status) in [("none", 404), ("a%20b", 422), ("", 422), ("data.bin/x", 404)] {
            let read = machine.read(&format!("/tmp/{path}")).await;
            assert_eq!(read.status, status, "{path}: {read:?}");
        }
        assert_eq!(machine.write("/tmp/data.bin/x", "").await.status, 422);
        assert_eq!(machine.write("/tmp", "").await.status, 422);
    });
}

fn every_form() {
    run(async {
        let town = Town::new().await;
        let machine = town.machine().await;
        let send = async |line: &str, media: &str, body: &str| {
            let headers = [("Authorization", town.key.as_str()), ("Content-Type", media)];
            let line = format!(
                "{} {}",
                line.split_once(' ').unwrap().0,
                machine.path(line.split_once(' ').unwrap().1)
            );
            send(town.world.at(), &line, &headers, body).await
        };
        let upload = json!({ "path": "~/a", "content": "one" }).to_string();
        let form = "--x\r\nContent-Disposition: form-data; name=\"path\"\r\n\r\n/root/a\r\n--x\r\n\
            Content-Disposition: form-data; name=\"file\"; filename=\"b\"\r\n\r\none\r\n--x--\r\n";
        let json = "application/json";
        for (line, media, body) in [
            ("POST /files/upload/json", json, upload.as_str()),
            ("POST /files", json, &upload),
            ("POST /files/upload", json, &upload),
            ("POST /files/upload", "multipart/form-data; boundary=x", form),
            ("PUT /files/upload?path=a", "multipart/form-data; boundary=\"x\"", form),
            ("POST /files/upload?path=a", "text/plain", "one"),
            // What has its path is taken as it comes, JSON too.
            ("PUT /files/upload?path=/root/a", json, "one"),
        ] {
            machine.exec("rm -f a").await;
            let told = send(line, media, body).await;
            assert_eq!(
                (told.status, &told.json()["path"]),
                (200, &json!("/root/a")),
                "{line}: {told:?}"
            );
            let read = town.get(&machine.path("/files?path=a")).await;
            assert_eq!((read.status, read.body.as_str()), (200, "one"), "{line} {media}");
        }
        for (media, body) in
            [(json, "one"), (json, "{}"), ("multipart/form-data", form), ("text/plain", "one")]
        {
            let told = send("POST /files/upload", media, body).await;
            assert_eq!(told.status, 422, "{media} {body}: {told:?}");
        }
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
        machine.exec(&format!("ln -s {home} /opt/out; ln -s {home} /tmp/out")).await;
        machine.exec(&format!("ln -s {home}/secret /tmp/one")).await;
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
            "/tmp/out/secret",
            "/tmp/one",
            "/tmp/../cloud.db",
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
