//! Time of snapshots, and the content that comes back with them. It must never start a real
//! agent.

use std::fs;

use automaton_core::entropy::SystemEntropy;
use automaton_core::faults::NoFaults;
use automaton_core::trust::Label;
use automaton_testkit::clock::FakeClock;
use tempfile::TempDir;

use super::*;
use crate::deps::NoEvents;
use crate::egress::manual_provenance;

struct World {
    home: TempDir,
    clock: FakeClock,
    store: Store,
    snapshots: WorkspaceSnapshots,
}

fn world(limits: SnapshotLimits) -> World {
    let home = tempfile::tempdir().unwrap();
    let workspace = home.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    fs::write(workspace.join("notes.md"), "old").unwrap();
    let clock = FakeClock::at(Timestamp::from_millis(1_800_000_000_000));
    let ids = IdGenerator::new(Arc::new(clock.clone()), Arc::new(SystemEntropy));
    let path = home.path().join("state.db");
    let store = Store::open(&path, ids.clone(), Arc::new(NoFaults)).unwrap();
    let places = SnapshotPlaces { workspace, home: home.path().to_owned(), limits };
    let snapshots = WorkspaceSnapshots::new(places, store.clone(), ids, Arc::new(NoEvents));
    World { home, clock, store, snapshots }
}

impl World {
    async fn run(&self, command: &str) -> Option<String> {
        let behalf = manual_provenance(&self.snapshots.ids);
        self.snapshots.before_command(command, Some(behalf)).await.note
    }

    fn count(&self) -> usize {
        self.snapshots.snapshots.list().unwrap().records.len()
    }

    fn write(&self, text: &str) {
        fs::write(self.home.path().join("workspace/notes.md"), text).unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(self.home.path().join("workspace/notes.md")).unwrap()
    }

    async fn restore(&self, snapshot: automaton_core::id::SnapshotId) -> RestoredWorkspace {
        let request = RestoreRequest { snapshot, paths: Vec::new(), keep_present: true };
        self.snapshots.restore(request).await.unwrap()
    }
}

#[tokio::test]
async fn the_first_destructive_command_of_a_wake_takes_a_snapshot_and_later_ones_after_a_while() {
    let world = world(SnapshotLimits::default());
    world.run("ls").await;
    assert_eq!(world.count(), 0);
    assert_eq!(world.run("rm notes.md").await, None);
    assert_eq!(world.count(), 1);
    world.write("two");
    world.run("rm notes.md").await;
    assert_eq!(world.count(), 1, "the same wake");
    world.clock.step(LASTS);
    world.run("rm notes.md").await;
    assert_eq!(world.count(), 2);
    world.write("three");
    world.snapshots.begin_wake();
    world.run("rm notes.md").await;
    assert_eq!(world.count(), 3);
}

#[tokio::test]
async fn what_is_left_out_is_told_and_a_failure_starves_no_command() {
    let world = world(SnapshotLimits { bytes_max: 1, ..SnapshotLimits::default() });
    let note = world.run("rm notes.md").await.unwrap();
    assert!(note.contains("has not notes.md (over the limit of bytes)"), "{note}");
    fs::remove_dir_all(world.home.path().join(SNAPSHOTS_FOLDER)).unwrap();
    fs::write(world.home.path().join(SNAPSHOTS_FOLDER), "in the way").unwrap();
    world.snapshots.begin_wake();
    let note = world.run("rm notes.md").await.unwrap();
    assert!(note.contains("no snapshot"), "{note}");
    let off = self::world(SnapshotLimits { automatic: false, ..SnapshotLimits::default() });
    assert_eq!(off.run("rm notes.md").await, None);
    assert_eq!(off.count(), 0);
}

#[tokio::test]
async fn a_restore_gives_labels_back_and_can_be_undone() {
    let world = world(SnapshotLimits::default());
    let name = "/root/notes.md".to_owned();
    world.store.label_path(name.clone(), Label::Web).await.unwrap();
    let TakenSnapshot::Taken(first) = world.snapshots.take(SnapshotCause::Manual).await.unwrap()
    else {
        panic!("nothing was taken");
    };
    world.store.clear_path(name.clone()).await.unwrap();
    world.write("its own words");
    let done = world.restore(first.id).await;
    assert_eq!(world.text(), "old");
    assert_eq!(done.report.replaced.first, ["notes.md"]);
    assert_eq!(world.store.path_label(name.clone()).await.unwrap(), Some(Label::Web));
    world.restore(done.before.unwrap()).await;
    assert_eq!(world.text(), "its own words");
}

#[tokio::test]
async fn nothing_is_restored_under_a_running_command() {
    let world = world(SnapshotLimits::default());
    world.run("rm notes.md").await;
    let snapshot = world.snapshots.snapshots.newest().unwrap().unwrap().id;
    let pass = world.snapshots.before_command("sleep 9", None).await;
    let request = RestoreRequest { snapshot, paths: Vec::new(), keep_present: true };
    let refused = world.snapshots.restore(request.clone()).await.unwrap_err();
    assert!(matches!(refused, WorkspaceSnapshotError::Busy), "{refused}");
    drop(pass);
    world.snapshots.restore(request).await.unwrap();
    let outside = RestoreRequest { snapshot, paths: vec!["../x".to_owned()], keep_present: true };
    assert!(world.snapshots.restore(outside).await.is_err());
}
