//! Tests of the disk: names, the cache of open files, several instances, the lock.

use super::*;
use crate::ground::random::Random;
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

fn disk() -> (tempfile::TempDir, OsDisk) {
    let root = tempfile::tempdir().unwrap();
    let disk = OsDisk::open(root.path()).unwrap();
    (root, disk)
}

fn whole(disk: &mut dyn Disk, name: &str) -> Vec<u8> {
    let len = disk.len(name).unwrap().unwrap_or_else(|| panic!("{name} exists"));
    let mut bytes = vec![0; usize::try_from(len).unwrap() + 10];
    let count = disk.read_at(name, 0, &mut bytes).unwrap();
    bytes.truncate(count);
    bytes
}

#[test]
fn names_outside_the_root_are_refused() {
    let (root, mut disk) = disk();
    let outside = root.path().parent().unwrap().join("sted-outside");
    let names = [
        ("", "the root itself"),
        ("..", "above"),
        ("../sted-outside", "above"),
        ("a/../../sted-outside", "above by a detour"),
        ("/sted-outside", "absolute"),
        ("a//b", "two spellings of a/b"),
        ("a/./b", "two spellings of a/b"),
        ("a/", "a folder"),
        ("a\0b", "the system would cut it"),
    ];
    for (name, why) in names {
        let mut buffer = [0; 4];
        let refused = [
            disk.append(name, b"x").unwrap_err(),
            disk.read_at(name, 0, &mut buffer).unwrap_err(),
            disk.len(name).unwrap_err(),
            disk.sync(name).unwrap_err(),
            disk.truncate(name, 0).unwrap_err(),
            disk.rename(name, "b").unwrap_err(),
            disk.rename("b", name).unwrap_err(),
            disk.remove(name).unwrap_err(),
        ];
        for error in refused {
            assert_eq!(error.source.kind(), io::ErrorKind::InvalidInput, "{why}: {error}");
        }
    }
    assert!(disk.list("..").is_err());
    assert!(!outside.exists());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "nothing came into being");
}

#[test]
fn what_is_not_there_is_told_apart() {
    let (_root, mut disk) = disk();
    let not_found = |error: Error| assert_eq!(error.source.kind(), io::ErrorKind::NotFound);
    assert_eq!(disk.len("a/b").unwrap(), None);
    assert_eq!(disk.list("a").unwrap(), Vec::<String>::new());
    not_found(disk.read_at("a/b", 0, &mut [0]).unwrap_err());
    not_found(disk.sync("a/b").unwrap_err());
    not_found(disk.truncate("a/b", 0).unwrap_err());
    not_found(disk.remove("a/b").unwrap_err());
    disk.append("a/b", b"x").unwrap();
    assert_eq!(disk.len("a").unwrap_err().source.kind(), io::ErrorKind::IsADirectory);
}

#[test]
fn lists_hold_files_only_in_order() {
    let (root, mut disk) = disk();
    for name in ["b", "a/z", "a/y", "a/deep/er", "B", "a0"] {
        disk.append(name, b"").unwrap();
    }
    symlink(root.path().join("b"), root.path().join("link")).unwrap();
    assert_eq!(disk.list("").unwrap(), ["B", "a0", "b"]);
    assert_eq!(disk.list("a").unwrap(), ["y", "z"]);
}

/// Law: whatever is done through any of several instances, each of them sees the files of a table
/// of byte strings. There are more names than open files, so the cache evicts.
#[test]
fn instances_agree_with_a_table_of_bytes() {
    let (_root, first) = disk();
    let mut disks: Vec<Box<dyn Disk>> = vec![first.handle(), first.handle(), Box::new(first)];
    let mut model: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut random = Random(1);
    let mut next = |below: usize| random.below(below);
    for step in 0..6_000 {
        let disk = &mut disks[next(3)];
        let name = format!("{}/{}", ["x", "y", "x/z"][next(3)], next(50));
        match next(10) {
            0..=4 => {
                let bytes = vec![u8::try_from(next(256)).unwrap(); next(40)];
                disk.append(&name, &bytes).unwrap();
                model.entry(name).or_default().extend(bytes);
            }
            5 => {
                let to = format!("x/{}", next(50));
                let there = model.remove(&name);
                assert_eq!(disk.rename(&name, &to).is_ok(), there.is_some(), "step {step}");
                there.and_then(|bytes| model.insert(to, bytes));
            }
            6 => assert_eq!(disk.remove(&name).is_ok(), model.remove(&name).is_some()),
            7 => {
                let len = next(60) as u64;
                let there = model.get_mut(&name);
                assert_eq!(disk.truncate(&name, len).is_ok(), there.is_some());
                if let Some(bytes) = there {
                    bytes.resize(usize::try_from(len).unwrap(), 0);
                }
            }
            8 if model.contains_key(&name) => {
                assert_eq!(whole(&mut **disk, &name), model[&name], "step {step}: {name}");
            }
            _ => {
                let len = model.get(&name).map(|bytes| bytes.len() as u64);
                assert_eq!(disk.len(&name).unwrap(), len, "step {step}: {name}");
            }
        }
    }
    for disk in &mut disks {
        for (name, bytes) in &model {
            assert_eq!(&whole(&mut **disk, name), bytes);
        }
        let names: Vec<String> =
            model.keys().filter_map(|name| name.strip_prefix("y/")).map(str::to_owned).collect();
        assert_eq!(disk.list("y").unwrap(), names);
    }
}

#[test]
fn open_files_are_bounded() {
    let (_root, mut disk) = disk();
    for at in 0..3 * OPEN_MAX {
        disk.append(&at.to_string(), b"x").unwrap();
        disk.append("often", b"y").unwrap();
        assert!(disk.open.len() <= OPEN_MAX);
    }
    assert!(disk.open.contains_key("often"), "the one used longest ago goes first");
    assert_eq!(disk.len("often").unwrap(), Some(3 * OPEN_MAX as u64));
}

/// Law: after a sync every folder above the file is synced, and none needlessly twice. (The test
/// can't check the drive itself.)
#[test]
fn a_sync_makes_the_folders_above_durable() {
    let (_root, mut disk) = disk();
    let pending = |disk: &OsDisk| {
        let folders = disk.shared.folders();
        let mut names: Vec<String> = folders
            .iter()
            .filter(|(_, at)| at.synced < at.changed)
            .map(|(name, _)| name.to_string())
            .collect();
        names.sort_unstable();
        names
    };
    disk.append("a/b/c", b"x").unwrap();
    assert_eq!(pending(&disk), ["", "a", "a/b"]);
    let mut other = disk.handle();
    other.sync("a/b/c").unwrap();
    assert_eq!(pending(&disk), [""; 0], "another instance's sync counts");
    disk.append("a/b/c", b"x").unwrap();
    assert_eq!(pending(&disk), [""; 0], "no name is new");
    disk.append("a/d", b"x").unwrap();
    assert_eq!(pending(&disk), ["a"]);
    disk.rename("a/d", "e").unwrap();
    assert_eq!(pending(&disk), ["", "a"]);
    disk.sync("e").unwrap();
    assert_eq!(pending(&disk), ["a"]);
    disk.remove("a/b/c").unwrap();
    assert_eq!(pending(&disk), ["a", "a/b"]);
}

/// A disk that is opened again doesn't know what the earlier run has synced.
#[test]
fn folders_of_an_earlier_run_count_as_unsynced() {
    let (root, mut disk) = disk();
    disk.append("a/b", b"x").unwrap();
    let mut later = OsDisk::open(root.path()).unwrap();
    later.sync("a/b").unwrap();
    let folders = later.shared.folders();
    assert_eq!(folders.len(), 2);
    assert!(folders.values().all(|folder| folder.synced == 1));
}

/// `/dev/full` stands in for a full drive.
#[test]
fn a_full_drive_is_told() {
    let mut full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = Error::new("append", "full", append_whole(&mut full, b"x").unwrap_err());
    assert!(error.is_full(), "{error}");
    assert_eq!(error.to_string().split(':').next(), Some("cannot append full"));
}

/// No operation follows a link, neither as the file's name nor as a folder in it, and none reports
/// a missing file: the link's target stays as it is.
#[test]
fn links_are_not_followed() {
    let (root, mut disk) = disk();
    let elsewhere = tempfile::tempdir().unwrap();
    let (file, folder) = (elsewhere.path().join("file"), elsewhere.path().join("folder"));
    fs::write(&file, b"precious").unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("x"), b"precious").unwrap();
    symlink(&file, root.path().join("link")).unwrap();
    symlink(&folder, root.path().join("warc")).unwrap();
    symlink(elsewhere.path().join("nothing"), root.path().join("dangling")).unwrap();
    disk.append("own", b"own").unwrap();
    for name in ["link", "dangling", "warc/x", "warc/new"] {
        let refused = [
            disk.append(name, b"x").unwrap_err(),
            disk.read_at(name, 0, &mut [0]).unwrap_err(),
            disk.len(name).unwrap_err(),
            disk.sync(name).unwrap_err(),
            disk.truncate(name, 0).unwrap_err(),
        ];
        for error in refused {
            assert!(error.to_string().contains("symbolic link"), "{name}: {error}");
        }
    }
    assert!(disk.list("warc").unwrap_err().to_string().contains("symbolic link"));
    assert!(disk.rename("own", "warc/x").is_err() && disk.remove("warc/x").is_err());
    // A rename replaces a link, not its target.
    disk.rename("own", "link").unwrap();
    assert_eq!(whole(&mut disk, "link"), b"own");
    replace(root.path(), "dangling", b"new").unwrap();
    assert_eq!(read(root.path(), "dangling").unwrap(), b"new");
    assert!(!elsewhere.path().join("nothing").exists());
    assert_eq!(fs::read(&file).unwrap(), b"precious");
    assert_eq!(fs::read(folder.join("x")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

/// A file is replaced even if its name is a link or a second name of another file.
#[test]
fn what_is_replaced_is_not_written_through() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::write(at("other"), b"precious").unwrap();
    symlink(at("other"), at("conf.toml.new")).unwrap();
    replace(root.path(), "conf.toml", b"one").unwrap();
    fs::hard_link(at("other"), at("conf.toml.new")).unwrap();
    replace(root.path(), "conf.toml", b"two").unwrap();
    assert_eq!(fs::read(at("conf.toml")).unwrap(), b"two");
    assert_eq!(fs::read(at("other")).unwrap(), b"precious");
}

/// A log that another process renames, replaces or truncates continues under its own name; the
/// renamed file has everything that was written before.
#[test]
fn a_file_that_others_rename_is_noticed() {
    let (root, mut disk) = disk();
    let at = |name: &str| root.path().join(name);
    disk.append("log", b"one").unwrap();
    fs::rename(at("log"), at("log.1")).unwrap();
    disk.append("log", b"two").unwrap();
    assert_eq!(fs::read(at("log.1")).unwrap(), b"onetwo", "not noticed yet");
    disk.refresh("log").unwrap();
    assert_eq!(disk.len("log").unwrap(), None);
    assert_eq!(disk.shared.renamed.lock().unwrap().len(), 1, "to be synced");
    disk.append("log", b"three").unwrap();
    disk.handle().sync("log").unwrap();
    assert!(disk.shared.renamed.lock().unwrap().is_empty());
    fs::rename(at("log"), at("log.2")).unwrap();
    fs::write(at("log"), b"").unwrap();
    disk.refresh("log").unwrap();
    disk.append("log", b"four").unwrap();
    assert_eq!(fs::read(at("log")).unwrap(), b"four");
    fs::write(at("log"), b"").unwrap();
    disk.refresh("log").unwrap();
    disk.append("log", b"five").unwrap();
    assert_eq!(fs::read(at("log")).unwrap(), b"five", "no hole before it");
    assert_eq!(fs::read(at("log.2")).unwrap(), b"three");
}

/// Nobody can take the lock by removing, replacing or linking the lock file, and the link's target
/// doesn't change.
#[test]
fn a_lock_outlives_its_file() {
    let root = tempfile::tempdir().unwrap();
    let (job, other) = (root.path().join("job"), root.path().join("other"));
    fs::write(&other, b"precious").unwrap();
    let held = lock(&job).unwrap();
    assert!(is_locked(&job).unwrap());
    fs::remove_file(job.join("lock")).unwrap();
    assert!(is_locked(&job).unwrap());
    let error = lock(&job).unwrap_err();
    assert!(matches!(error, LockError::Held { process: None, .. }), "{error}");
    let lock_file = job.join("lock");
    for is_hard in [false, true] {
        let linked = match is_hard {
            true => fs::hard_link(&other, &lock_file),
            false => symlink(&other, &lock_file),
        };
        linked.unwrap();
        assert!(matches!(lock(&job).unwrap_err(), LockError::Held { .. }));
        assert_eq!(fs::read(&other).unwrap(), b"precious");
        fs::remove_file(&lock_file).unwrap();
    }
    drop(held);
    assert!(!is_locked(&job).unwrap());
    symlink(&other, job.join("lock")).unwrap();
    let error = lock(&job).unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    fs::remove_file(job.join("lock")).unwrap();
    fs::hard_link(&other, job.join("lock")).unwrap();
    let _held = lock(&job).unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"precious");
    assert_eq!(fs::read(job.join("lock")).unwrap(), format!("{}\n", std::process::id()).as_bytes());
}

#[test]
fn a_directory_that_others_can_write_to_is_exposed() {
    let root = tempfile::tempdir().unwrap();
    for (mode, exposed) in
        [(0o700, false), (0o755, false), (0o775, true), (0o777, true), (0o1777, false)]
    {
        fs::set_permissions(root.path(), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(exposure(root.path()).is_some(), exposed, "{mode:o}");
    }
}

#[test]
fn a_job_has_one_process() {
    let root = tempfile::tempdir().unwrap();
    let job = root.path().join("job");
    let held = lock(&job).unwrap();
    let error = lock(&job).unwrap_err();
    let own = std::process::id();
    assert!(matches!(error, LockError::Held { process: Some(process), .. } if process == own));
    assert!(error.to_string().starts_with(&format!("process {own} is working")), "{error}");
    drop(held);
    let again = lock(&job).unwrap();
    fs::write(job.join("lock"), b"no number").unwrap();
    let error = lock(&job).unwrap_err();
    assert!(matches!(error, LockError::Held { process: None, .. }), "{error}");
    drop(again);
    let blocked = root.path().join("file");
    fs::write(&blocked, b"").unwrap();
    let error = lock(&blocked).unwrap_err();
    assert!(matches!(error, LockError::Failed { .. }), "{error}");
}
