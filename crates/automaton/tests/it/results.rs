//! What becomes of a long output, through the real program and its sandbox.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::background::story;
use super::world;

const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn a_long_output_is_shown_by_its_ends_kept_whole_and_read_on_and_nothing_changes_it() {
    let flood: &[(&str, Value)] = &[
        ("exec", json!({"command": "seq 1 100000"})),
        ("exec", json!({"command": "seq 7 70000"})),
    ];
    let world = world().story(&story(&[flood])).unwrap();
    let lived = world.up(&["--turns", "2", "--ask", "Count."]).unwrap();
    assert_eq!(lived.finish_within(LIMIT).unwrap().code, Some(0));
    let turns = || world.command(&["turns", "--json"]).unwrap().stdout;
    let told = turns();
    for expected in [
        "exit_code: 0\\nstdout: 1\\n2\\n3\\n",
        " lines left out here: lines ",
        "\\n99999\\n100000\\nstderr: \\n",
        "\\n[all 100002 lines are in /root/.logs/",
        ".log: read_file with offset ",
        "\\n69999\\n70000\\nstderr: \\n",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let folder = world.home().join("workspace/.logs");
    let mut logs: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    logs.sort();
    assert_eq!(logs.len(), 2, "each call has a log of its own: {logs:?}");
    let kept: Vec<String> = logs.iter().map(|log| fs::read_to_string(log).unwrap()).collect();
    assert_eq!(kept.iter().filter(|log| log.starts_with("7\n8\n")).count(), 1);
    let first = kept.iter().position(|log| log.starts_with("1\n2\n")).unwrap();

    let name = logs[first].file_name().unwrap().to_str().unwrap();
    let path = format!("/root/.logs/{name}");
    let spoil = format!(
        "echo x >> {path}; rm -f {path}; mv ~/.logs ~/old; echo x > ~/.messages/new; \
         cat {path} | wc -l"
    );
    let reading: &[(&str, Value)] = &[
        ("read_file", json!({"path": path, "offset": 50_000, "limit": 2})),
        ("search_files", json!({"pattern": "^777.7$", "path": path})),
        ("exec", json!({"command": spoil})),
        ("start_process", json!({"command": spoil})),
        ("read_process", json!({"process": 1, "wait": 20_000})),
        ("write_file", json!({"path": path, "content": "mine"})),
    ];
    fs::write(world.dir().join("story.toml"), story(&[reading])).unwrap();
    let lived = world.up(&["--turns", "2", "--ask", "Read on."]).unwrap();
    assert_eq!(lived.finish_within(LIMIT).unwrap().code, Some(0));
    let told = turns();
    for expected in [
        "50000\\n50001\\n[lines 50000 to 50001 of 100002; go on with offset 50002]",
        ":77707: 77707\\n",
        "[10 matches in 1 file searched]",
        "nothing changes them",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert_eq!(told.matches("stdout: 100002\\n").count(), 2, "{told}");
    assert!(told.matches("Read-only file system").count() >= 6, "{told}");
    let still: Vec<String> = logs.iter().map(|log| fs::read_to_string(log).unwrap()).collect();
    assert!(still == kept, "a log that a notice names stays as it was");
}
