//! Tests of the disk in memory: full, failing, lying, dying, and after a loss of power.

use super::*;

fn names(disk: &MemoryDisk) -> Vec<(String, Vec<u8>)> {
    disk.names().into_iter().map(|name| (name.clone(), disk.read(&name).unwrap())).collect()
}

/// Returns the file contents, as text, that remain after each of `seeds` losses of power that
/// follow `write`.
fn left(seeds: u64, write: impl Fn(&mut dyn Disk)) -> BTreeSet<String> {
    let run = |seed| {
        let disk = MemoryDisk::new();
        write(disk.handle().as_mut());
        disk.lose_power(seed);
        let shown = names(&disk).into_iter().map(|(name, bytes)| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            format!("{name}={text}")
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    (0..seeds).map(run).collect()
}

fn texts(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn a_full_disk_refuses_or_tears() {
    for (torn, left) in [(false, 6), (true, 10)] {
        let full = DiskFaults { room_bytes: Some(10), torn, ..DiskFaults::default() };
        let disk = MemoryDisk::with(full);
        let mut handle = disk.handle();
        handle.append("a/x", b"123456").unwrap();
        assert!(handle.append("a/x", b"7890ab").unwrap_err().is_full());
        assert_eq!((disk.used(), disk.read("a/x").unwrap().len()), (left, left as usize));
        handle.truncate("a/x", 2).unwrap();
        handle.append("a/b", b"12345678").unwrap();
        handle.rename("a/b", "a/x").unwrap();
        assert_eq!((disk.used(), disk.names()), (8, vec!["a/x".to_owned()]));
        assert!(handle.append("c", b"123").unwrap_err().is_full());
        assert_eq!(handle.len("c").unwrap().is_some(), torn, "a file of nothing isn't made");
        disk.set_faults(DiskFaults { room_of: "state/", ..full });
        handle.append("c", b"123").unwrap();
        assert!(handle.append("state/x", b"123").unwrap_err().is_full(), "it has no room left");
        handle.remove("a/x").unwrap();
        assert!(handle.append("state/x", b"123").is_ok(), "now it has");
    }
}

#[test]
fn a_sync_that_fails_makes_nothing_durable() {
    let disk = MemoryDisk::with(DiskFaults { syncs: 0.5, seed: 3, ..DiskFaults::default() });
    let mut handle = disk.handle();
    let (mut durable, mut failed) = (0, 0);
    for round in 1..=100 {
        handle.append("x", b"y").unwrap();
        match handle.sync("x") {
            Ok(()) => durable = round,
            Err(error) => failed += u32::from(!error.is_full()),
        }
        assert_eq!(disk.synced("x"), Some(durable));
    }
    assert!((30..70).contains(&failed), "{failed} of 100");
    assert!(handle.sync("y").is_err(), "there is none");
}

/// What was synced always remains, and everything that the model allows does happen.
#[test]
fn a_loss_of_power_leaves_what_was_synced() {
    let synced = |disk: &mut dyn Disk| {
        disk.append("a", b"12").unwrap();
        disk.sync("a").unwrap();
    };
    assert_eq!(left(50, synced), texts(&["a=12"]));
    let grown = |disk: &mut dyn Disk| {
        synced(disk);
        disk.append("a", b"34").unwrap();
    };
    let zeros = ["a=12", "a=123", "a=1234", "a=12\0", "a=12\0\0"];
    assert_eq!(left(200, grown), texts(&zeros), "a beginning of the rest, or zeros");
    let cut = |disk: &mut dyn Disk| {
        synced(disk);
        disk.truncate("a", 1).unwrap();
        disk.append("a", b"9").unwrap();
    };
    assert_eq!(left(200, cut), texts(&["a=1", "a=19", "a=1\0", "a=12"]), "the old end may be back");
    let twice = |disk: &mut dyn Disk| {
        cut(disk);
        disk.sync("a").unwrap();
        disk.truncate("a", 0).unwrap();
    };
    assert_eq!(left(50, twice), texts(&["a=", "a=19"]));
}

#[test]
fn names_are_as_durable_as_their_folder() {
    let renamed = |disk: &mut dyn Disk| {
        disk.append("s/old", b"1").unwrap();
        disk.sync("s/old").unwrap();
        disk.append("s/new", b"2").unwrap();
        disk.sync("s/new").unwrap();
        disk.rename("s/new", "s/old").unwrap();
    };
    let expected = ["s/new=2 s/old=1", "s/old=2"];
    assert_eq!(left(50, renamed), texts(&expected), "a rename has happened or not");
    let hasty = |disk: &mut dyn Disk| {
        disk.append("s/old", b"1").unwrap();
        disk.sync("s/old").unwrap();
        disk.append("s/new", b"2").unwrap();
        disk.rename("s/new", "s/old").unwrap();
    };
    let expected = [
        "s/old=1",
        "s/new= s/old=1",
        "s/new=2 s/old=1",
        "s/new=\0 s/old=1",
        "s/old=",
        "s/old=2",
        "s/old=\0",
    ];
    assert_eq!(left(300, hasty), texts(&expected), "what is renamed unsynced may be empty");
    let removed = |disk: &mut dyn Disk| {
        renamed(disk);
        disk.sync("s/old").unwrap();
        disk.remove("s/old").unwrap();
        disk.append("t/x", b"").unwrap();
        disk.sync("t/x").unwrap();
    };
    let expected = ["s/old=2 t/x=", "t/x="];
    assert_eq!(left(50, removed), texts(&expected), "the sync was in another folder");
    let kept = |disk: &mut dyn Disk| {
        removed(disk);
        disk.append("s/deep/y", b"").unwrap();
        disk.sync("s/deep/y").unwrap();
    };
    assert_eq!(left(50, kept), texts(&["s/deep/y= t/x="]), "a sync keeps the folders above");
    let two = |disk: &mut dyn Disk| {
        for name in ["a/1", "b/1", "a/2"] {
            disk.append(name, b"").unwrap();
        }
    };
    let all = left(300, two);
    assert_eq!(all.len(), 6, "none, one or two in a, and none or one in b: {all:?}");
    assert!(!all.contains("a/2="), "in a folder changes keep their order");
}

/// Law: whatever is done, a file that was synced and not changed since remains as it was, and every
/// other file was there before.
#[test]
fn nothing_is_lost_that_was_synced_nor_comes_from_nowhere() {
    const NAMES: [&str; 6] = ["a", "b", "f/a", "f/b", "f/g/a", "f/g/b"];
    let mut brought_back = 0;
    for seed in 0..400 {
        let mut draw = Draw::new(seed, Purpose::Cuts, 0, 0);
        let disk = MemoryDisk::new();
        let mut handle = disk.handle();
        let mut certain: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        let mut ever: BTreeSet<&str> = BTreeSet::new();
        for step in 0..60_u8 {
            let name = NAMES[draw.below(6) as usize];
            let there = disk.read(name);
            match (draw.below(8), there) {
                (0..=3, _) | (_, None) => {
                    handle.append(name, &[step; 3]).unwrap();
                    ever.insert(name);
                }
                (4 | 5, Some(bytes)) => {
                    handle.sync(name).unwrap();
                    certain.insert(name, bytes);
                }
                (6, Some(_)) => {
                    let other = name.strip_suffix('a').map(|stem| format!("{stem}b"));
                    let Some(other) = NAMES.into_iter().find(|one| Some(*one) == other.as_deref())
                    else {
                        continue;
                    };
                    handle.rename(name, other).unwrap();
                    certain.remove(name);
                    certain.remove(other);
                    ever.insert(other);
                }
                (_, Some(_)) => {
                    handle.remove(name).unwrap();
                    certain.remove(name);
                }
            }
        }
        let before: BTreeSet<String> = disk.names().into_iter().collect();
        disk.lose_power(seed);
        for (name, bytes) in &certain {
            let after = disk.read(name).unwrap_or_else(|| panic!("seed {seed}: {name} is gone"));
            assert!(after.starts_with(bytes), "seed {seed}: {name}");
        }
        let after = disk.names();
        brought_back += after.iter().filter(|name| !before.contains(*name)).count();
        assert!(after.iter().all(|name| ever.contains(&**name)), "seed {seed}: {after:?}");
        let used: usize = names(&disk).iter().map(|(_, bytes)| bytes.len()).sum();
        assert_eq!(disk.used(), used as u64, "seed {seed}");
        let again = names(&disk);
        disk.lose_power(seed + 1);
        assert_eq!(names(&disk), again, "what is left is durable");
    }
    assert!(brought_back > 20, "{brought_back} removed files came back");
}

/// A sync that lies reports success, and a loss of power reveals it.
#[test]
fn a_sync_may_lie() {
    let disk = MemoryDisk::with(DiskFaults { lies: true, ..DiskFaults::default() });
    let mut handle = disk.handle();
    handle.append("x", b"1").unwrap();
    assert_eq!(disk.promised("x"), None);
    handle.sync("x").unwrap();
    handle.append("x", b"2").unwrap();
    assert_eq!((disk.promised("x"), disk.synced("x")), (Some(b"1".to_vec()), Some(0)));
    let gone = (0..20).filter(|seed| {
        let disk = MemoryDisk::with(DiskFaults { lies: true, ..DiskFaults::default() });
        disk.handle().append("x", b"1").unwrap();
        disk.handle().sync("x").unwrap();
        disk.lose_power(*seed);
        disk.names().is_empty()
    });
    assert!(gone.count() > 3);
}

/// The last verb is done in part; later verbs do nothing.
#[test]
fn a_process_dies_amidst_a_verb() {
    let mut ends = BTreeSet::new();
    for seed in 0..40 {
        let disk = MemoryDisk::new();
        let mut handle = disk.handle();
        disk.die_after(1, seed);
        handle.append("x", b"12").unwrap();
        assert!(!disk.is_dead() && handle.append("x", b"34").is_err() && disk.is_dead());
        assert!(handle.append("x", b"5").is_err() && handle.read_at("x", 0, &mut [0]).is_err());
        assert!(handle.remove("x").is_err() && handle.sync("x").is_err());
        disk.revive();
        let left = disk.read("x").unwrap();
        assert_eq!(handle.len("x").unwrap(), Some(left.len() as u64));
        disk.die_after(0, seed + 1_000);
        assert!(handle.rename("x", "y").is_err());
        disk.revive();
        ends.insert((String::from_utf8(left).unwrap(), disk.names()[0].clone()));
    }
    assert_eq!(ends.len(), 6, "12, 123 or 1234, renamed or not: {ends:?}");
}
