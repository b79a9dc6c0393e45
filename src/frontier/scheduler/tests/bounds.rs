//! What one call may do: many servers that are due at once, or held back at once, are dealt with in
//! steps, and none is lost.

use super::*;

const MANY: u32 = 3_000;

/// So many servers, each on a host of its own, in one domain.
fn many(settings: Settings) -> Scheduler {
    let mut scheduler = Scheduler::new(settings);
    for number in 0..MANY {
        let text = format!("http://h{number}.site.com/");
        let url = UrlRef::from_canonical(text.as_bytes()).expect("canonical");
        assert_eq!(scheduler.server_of(url), ServerId(number));
    }
    scheduler
}

fn settings() -> Settings {
    let schedule = policy::Settings { policy: Policy::Quality, ..policy::Settings::default() };
    Settings { schedule, domain_visits_max: 0, ..Settings::default() }
}

fn waiting(id: u32) -> Waiting {
    Waiting { urls: 1, at_hand: true, best_sum: u64::from(id * 7_919 % MANY) }
}

/// Laws: a call wakes few servers; of those awake it takes the best; the deadline is not later than
/// now while others are due.
#[test]
fn servers_that_are_due_at_once_wake_in_steps() {
    let mut scheduler = many(settings());
    let due = Instant::from_micros(1_000);
    for id in 0..MANY {
        scheduler.snooze(ServerId(id), due, Instant::ZERO);
        scheduler.set_waiting(ServerId(id), waiting(id), Instant::ZERO);
    }
    assert_eq!(scheduler.next(Instant::ZERO), None);
    let mut taken = vec![false; MANY as usize];
    for call in 1..=MANY as usize {
        let awake = (call * WAKES_MAX).min(MANY as usize);
        let expected = (0..awake).filter(|id| !taken[*id]);
        let expected = expected.max_by_key(|id| waiting(*id as u32).best_sum);
        let id = scheduler.next(due).map(ServerId::index);
        assert_eq!(id, expected, "call {call}");
        taken[id.expect("one is awake")] = true;
        let are_left = awake < MANY as usize;
        assert_eq!(scheduler.deadline(), are_left.then_some(due));
        assert_eq!(scheduler.snoozed(), MANY as usize - awake);
    }
    assert_eq!(scheduler.next(due), None);
}

/// Laws: a call moves few servers to a group that holds them back, and all are visited in the end.
#[test]
fn servers_that_are_held_back_at_once_move_in_steps() {
    let ms = Duration::from_millis;
    let mut scheduler = many(Settings { domain_delay: ms(1), delay: ms(9_999), ..settings() });
    let mut now = Instant::from_micros(1);
    (0..MANY).for_each(|id| scheduler.set_waiting(ServerId(id), waiting(id), now));
    let mut taken = Vec::new();
    while taken.len() < MANY as usize {
        let before = scheduler.snoozed();
        if let Some(id) = scheduler.next(now) {
            assert!(scheduler.begin(id, true, now));
            taken.push(waiting(id.0).best_sum);
            scheduler.finish(id, &Visit::new(1, now, now), now, |_| Waiting::default());
        } else if scheduler.ready() == 0 {
            let deadline = scheduler.deadline().expect("the domain rests");
            assert!(deadline > now);
            now = deadline;
        }
        assert!(scheduler.snoozed() <= before + MOVES_MAX);
    }
    assert!(taken.is_sorted_by(|one, next| one > next), "best first");
    assert_eq!((scheduler.ready(), scheduler.snoozed(), scheduler.next(now)), (0, 0, None));
}
