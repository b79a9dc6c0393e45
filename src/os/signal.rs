//! The process and its environment: signals, limits, memory, entropy, clocks.
//!
//! [`Signals`]: the first SIGINT, SIGTERM, SIGQUIT or SIGHUP asks for an orderly stop, the second
//! for an immediate one. SIGHUP never counts as the second, because a service manager or a
//! terminating shell sends it right after SIGTERM. Each signal wakes the loop through a socket
//! pair, so the handler only counts and writes one byte. SIGHUP stays ignored if it was ignored at
//! the start, as under `nohup`. SIGPIPE and SIGXFSZ are ignored: a closed connection and a file at
//! its size limit are errors of the write. A parent may have blocked these signals, and the mask is
//! inherited, so they are unblocked. Dropping `Signals` restores the previous handlers.
//!
//! SIGUSR1 asks for the crawl log to be reopened as a new file; it may arrive any number of times.

use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// Listens to the signals, and restores the previous handlers when dropped.
pub struct Signals {
    /// The socket that becomes readable when a signal arrives. It is never read, see
    /// [`Signals::new`]; closing it removes it from the poll.
    _wakes: mio::net::UnixStream,
    /// Each caught signal with the handler that it had before, which is restored on drop.
    before: [(libc::c_int, libc::sigaction); CAUGHT.len()],
}

/// The signals that ask for a stop, and the one that asks for a new crawl log.
const CAUGHT: [libc::c_int; 5] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGQUIT, libc::SIGHUP, libc::SIGUSR1];

/// What the signals so far ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing.
    Nothing,
    /// Finish open replies, write a checkpoint, exit.
    Stop,
    /// Exit now, without writing anything more.
    StopAtOnce,
}

/// Whether a new crawl log was asked for.
static ROTATE: AtomicBool = AtomicBool::new(false);
/// The number of stop signals since [`Signals::new`], or since [`catch_early`] if it was called.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// The descriptor that the signal handler writes a byte to; negative if no loop listens.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// Whether [`catch_early`] was called and no [`Signals`] has been created since. If so, the next
/// [`Signals::new`] keeps the count of signals.
static EARLY: AtomicBool = AtomicBool::new(false);

/// Catches the stop signals before there is a loop; the first [`Signals`] takes over those that
/// arrive until then. Without this call a signal would end the process while it reads its inputs.
/// In a container's first process the signal would be lost, because the system delivers only caught
/// signals there.
pub fn catch_early() {
    EARLY.store(true, Ordering::SeqCst);
    catch_all();
}

/// Catches and unblocks each signal of `CAUGHT`, and returns each with its previous handler.
fn catch_all() -> [(libc::c_int, libc::sigaction); CAUGHT.len()] {
    system::ignore(libc::SIGPIPE);
    system::ignore(libc::SIGXFSZ);
    let before = CAUGHT.map(|signal| {
        let before = system::catch(signal);
        if signal == libc::SIGHUP && before.sa_sigaction == libc::SIG_IGN {
            system::ignore(signal);
        }
        (signal, before)
    });
    // A signal that was pending while blocked is delivered to the new handler now.
    system::mask(libc::SIG_UNBLOCK, &CAUGHT);
    before
}

impl Signals {
    /// Listens to the signals from now on: each causes an event with `token`.
    ///
    /// The sending end is never closed: a handler on another thread may be about to write to it,
    /// and its number could belong to another file by then. The bytes are never read either: the
    /// poller reports each new byte, and a process gets few signals.
    ///
    /// # Errors
    /// No descriptors are left.
    ///
    /// # Panics
    /// If another loop of the process listens already.
    pub fn new(registry: &mio::Registry, token: mio::Token) -> io::Result<Self> {
        let (mut wakes, sender) = mio::net::UnixStream::pair()?;
        registry.register(&mut wakes, token, mio::Interest::READABLE)?;
        let nobody =
            PIPE.compare_exchange(-1, sender.as_raw_fd(), Ordering::SeqCst, Ordering::SeqCst);
        assert!(nobody.is_ok(), "one loop of the process listens to signals");
        let _never_closed = sender.into_raw_fd();
        if !EARLY.swap(false, Ordering::SeqCst) {
            COUNT.store(0, Ordering::SeqCst);
        }
        Ok(Self { _wakes: wakes, before: catch_all() })
    }

    /// Returns whether SIGUSR1, which asks for a new crawl log, arrived since the last call.
    pub fn asked_to_rotate(&self) -> bool {
        ROTATE.load(Ordering::SeqCst) && ROTATE.swap(false, Ordering::SeqCst)
    }

    /// Returns what the signals so far ask for. It only reads a counter, so it may be called every
    /// turn.
    pub fn asked(&self) -> Asked {
        match COUNT.load(Ordering::SeqCst) {
            0 => Asked::Nothing,
            1 => Asked::Stop,
            _ => Asked::StopAtOnce,
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, action) in &self.before {
            system::restore(*signal, action);
        }
        PIPE.store(-1, Ordering::SeqCst);
    }
}

/// Raises the limit of open descriptors as far as the system allows, and returns the new limit.
pub fn descriptor_limit() -> u64 {
    system::raise_descriptor_limit()
}

/// Makes the allocator merge freed memory at once.
///
/// By default glibc keeps small freed pieces apart and merges all of them at the next large
/// request: after a million queues have become empty, that stalls the loop for a tenth of a second
/// (`bench/frontier.rs`). Other allocators are not changed.
pub fn merge_freed_memory() {
    system::keep_no_fast_bins();
}

/// Returns sixteen unpredictable bytes, for keys. May wait for the system's entropy pool at boot.
pub fn entropy() -> [u8; 16] {
    system::entropy()
}

/// Returns monotonic time in nanoseconds since a fixed point: the meter's tick function.
pub fn tick() -> u64 {
    system::clock_ns(libc::CLOCK_MONOTONIC)
}

/// Returns the time since the machine was booted, suspended or not, in nanoseconds.
pub fn boot_ns() -> u64 {
    system::clock_ns(libc::CLOCK_BOOTTIME)
}

/// Returns the CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    system::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the CPU time of another thread, in nanoseconds; 0 once it has ended.
pub fn cpu_of_ns<T>(thread: &std::thread::JoinHandle<T>) -> u64 {
    system::thread_clock(thread).map_or(0, system::clock_ns)
}

/// Returns the CPU time of another process with all its threads, in nanoseconds. `None` if there is
/// no such process or access is denied; 0 once it has ended and was not waited for.
pub fn cpu_of_process_ns(id: u32) -> Option<u64> {
    system::process_clock(id.try_into().ok()?).map(system::clock_ns)
}

/// CPU time of the whole process, or of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Time in user mode, in microseconds.
    pub user_us: u64,
    /// Time that the kernel spent for the process or thread, in microseconds.
    pub system_us: u64,
}

impl Cpu {
    /// Returns the sum of user and kernel time, in microseconds.
    pub fn sum_us(self) -> u64 {
        self.user_us + self.system_us
    }

    /// Returns the time used since `earlier`, an older reading of the same process or thread.
    pub fn since(self, earlier: Self) -> Self {
        let user_us = self.user_us.saturating_sub(earlier.user_us);
        Self { user_us, system_us: self.system_us.saturating_sub(earlier.system_us) }
    }

    fn of(usage: &libc::rusage) -> Self {
        let us = |time: libc::timeval| {
            let whole = u64::try_from(time.tv_sec).expect("CPU time is not negative");
            whole * 1_000_000 + u64::try_from(time.tv_usec).expect("CPU time is not negative")
        };
        Self { user_us: us(usage.ru_utime), system_us: us(usage.ru_stime) }
    }
}

/// Returns the CPU time of the process, with all its threads, so far.
pub fn process_cpu() -> Cpu {
    Cpu::of(&system::usage(libc::RUSAGE_SELF))
}

/// Returns the CPU time of the calling thread so far.
pub fn thread_cpu() -> Cpu {
    Cpu::of(&system::usage(libc::RUSAGE_THREAD))
}

/// Returns whether a write of up to 4 KiB to `descriptor` would return at once, with success or an
/// error.
pub(super) fn is_writable(descriptor: i32) -> bool {
    system::is_writable(descriptor)
}

/// Returns whether standard error is a terminal, where progress can be shown.
pub fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// The unsafe calls, each with a proof that it is safe.
mod system {
    use super::{COUNT, PIPE, ROTATE};
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::unix::thread::JoinHandleExt;
    use std::ptr;
    use std::sync::atomic::Ordering;
    use std::thread::JoinHandle;

    /// The exit code of a process that a second signal ended: `commands::Exit::Forced`.
    const FORCED: libc::c_int = 13;

    /// The signal handler: counts the signal, writes a byte to wake the loop, and preserves
    /// `errno`. It ends the process at the second signal if no loop listens.
    extern "C" fn on_signal(signal: libc::c_int) {
        let earlier = match signal {
            libc::SIGUSR1 => {
                ROTATE.store(true, Ordering::SeqCst);
                0
            }
            libc::SIGHUP => {
                let _ = COUNT.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst);
                0
            }
            _ => COUNT.fetch_add(1, Ordering::SeqCst),
        };
        let pipe = PIPE.load(Ordering::SeqCst);
        if pipe < 0 {
            if earlier > 0 {
                // SAFETY: _exit(2) may be called in a handler (signal-safety(7)).
                unsafe { libc::_exit(FORCED) };
            }
            return;
        }
        // SAFETY: write(2) may be called in a handler (signal-safety(7)); the byte outlives the
        // call; `pipe` is a descriptor that is never closed (`Signals::new`). A full pipe is fine:
        // it has a byte that was not reported yet. `errno` is this thread's own.
        unsafe {
            let errno = libc::__errno_location();
            let kept = *errno;
            libc::write(pipe, ptr::from_ref(&0_u8).cast(), 1);
            *errno = kept;
        }
    }

    /// Installs `on_signal` for `signal` and returns the previous handler.
    pub(super) fn catch(signal: libc::c_int) -> libc::sigaction {
        let handler: extern "C" fn(libc::c_int) = on_signal;
        set(signal, handler as libc::sighandler_t)
    }

    /// Ignores `signal`.
    pub(super) fn ignore(signal: libc::c_int) {
        set(signal, libc::SIG_IGN);
    }

    fn set(signal: libc::c_int, disposition: libc::sighandler_t) -> libc::sigaction {
        // SAFETY: all zeroes are a valid `sigaction` (numbers, a bit set, an optional pointer).
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = disposition;
        // The kernel restarts calls of other threads that a signal interrupts.
        action.sa_flags = libc::SA_RESTART;
        let mut before = MaybeUninit::zeroed();
        // SAFETY: both point to a `sigaction` of ours; the handler calls only what a handler may.
        let code = unsafe { libc::sigaction(signal, &raw const action, before.as_mut_ptr()) };
        assert_eq!(code, 0, "{}: the signal can be caught", io::Error::last_os_error());
        // SAFETY: the call succeeded and has filled it.
        unsafe { before.assume_init() }
    }

    /// Blocks or unblocks `signals`, as `how` says, for the calling thread and the threads that it
    /// starts.
    pub(super) fn mask(how: libc::c_int, signals: &[libc::c_int]) {
        let mut set = MaybeUninit::zeroed();
        // SAFETY: fills a `sigset_t` of ours.
        let code = unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        assert_eq!(code, 0, "a set can be emptied");
        for &signal in signals {
            // SAFETY: the set was filled above.
            let code = unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
            assert_eq!(code, 0, "the signal exists");
        }
        // SAFETY: reads the set; nothing is written through the null pointer.
        let code = unsafe { libc::pthread_sigmask(how, set.as_ptr(), ptr::null_mut()) };
        assert_eq!(code, 0, "the set can be masked");
    }

    /// Restores the handler `action` of `signal`, which `catch` returned.
    pub(super) fn restore(signal: libc::c_int, action: &libc::sigaction) {
        // SAFETY: `action` came from the kernel; nothing is written through the null pointer.
        let code = unsafe { libc::sigaction(signal, ptr::from_ref(action), ptr::null_mut()) };
        assert_eq!(code, 0, "{}: the signal can be put back", io::Error::last_os_error());
    }

    #[cfg(target_env = "gnu")]
    pub(super) fn keep_no_fast_bins() {
        // SAFETY: sets a parameter of the allocator, under its own lock. An allocator in place of
        // glibc's may not know it and returns an error, which changes nothing.
        unsafe { libc::mallopt(libc::M_MXFAST, 0) };
    }

    #[cfg(not(target_env = "gnu"))]
    pub(super) fn keep_no_fast_bins() {}

    pub(super) fn raise_descriptor_limit() -> u64 {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: writes one `rlimit`, which is ours.
        let code = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        assert_eq!(code, 0, "{}: the limit can be read", io::Error::last_os_error());
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        // SAFETY: reads one `rlimit`, which is ours.
        let code = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) };
        if code == 0 { raised.rlim_cur } else { limit.rlim_cur }
    }

    pub(super) fn entropy() -> [u8; 16] {
        let mut bytes = [0; 16];
        loop {
            // SAFETY: the pointer and the length are those of `bytes`.
            let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
            if usize::try_from(got) == Ok(bytes.len()) {
                return bytes;
            }
            // Up to 256 bytes are returned whole or, if interrupted while the pool fills, not at
            // all.
            let error = io::Error::last_os_error();
            let again = error.kind() == io::ErrorKind::Interrupted;
            assert!(again, "{error}: the system gives random bytes");
        }
    }

    /// Returns the time of a clock in nanoseconds; 0 for a thread that has ended in the meantime.
    pub(super) fn clock_ns(clock: libc::clockid_t) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes one `timespec`, which is ours.
        let code = unsafe { libc::clock_gettime(clock, &raw mut time) };
        assert!(code == 0 || clock < 0, "the system's clocks exist");
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
    }

    /// Returns the CPU-time clock of a process. `None` if there is no such process or access is
    /// denied.
    pub(super) fn process_clock(id: libc::pid_t) -> Option<libc::clockid_t> {
        let mut clock = 0;
        // SAFETY: writes one `clockid_t`, which is ours; any id may be asked about.
        let code = unsafe { libc::clock_getcpuclockid(id, &raw mut clock) };
        (code == 0).then_some(clock)
    }

    /// Returns the CPU-time clock of a thread; `None` once it has ended.
    pub(super) fn thread_clock<T>(thread: &JoinHandle<T>) -> Option<libc::clockid_t> {
        if thread.is_finished() {
            return None;
        }
        let mut clock = 0;
        // SAFETY: the handle has not been joined, so the thread's id is valid even if it ends
        // meanwhile; writes one `clockid_t`, which is ours.
        let code = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &raw mut clock) };
        (code == 0).then_some(clock)
    }

    /// Returns whether a write to `descriptor` would return at once. Linux reports a pipe as
    /// writable if it has space for at least a page, and any descriptor whose write would fail at
    /// once.
    pub(super) fn is_writable(descriptor: libc::c_int) -> bool {
        let mut asked = libc::pollfd { fd: descriptor, events: libc::POLLOUT, revents: 0 };
        // SAFETY: the pointer and the count are those of `asked`; a time-out of 0 doesn't wait.
        let count = unsafe { libc::poll(&raw mut asked, 1, 0) };
        count != 0
    }

    pub(super) fn usage(whose: libc::c_int) -> libc::rusage {
        let mut usage = MaybeUninit::zeroed();
        // SAFETY: writes one `rusage`, which is ours.
        let code = unsafe { libc::getrusage(whose, usage.as_mut_ptr()) };
        assert_eq!(code, 0, "a process may ask for its own usage");
        // SAFETY: the call succeeded and has filled it.
        unsafe { usage.assume_init() }
    }

    /// Returns how many bytes of freed memory the allocator keeps unmerged.
    #[cfg(all(test, target_env = "gnu"))]
    pub(super) fn laid_aside_bytes() -> usize {
        // SAFETY: adds up the allocator's numbers, under its own locks.
        unsafe { libc::mallinfo2() }.fsmblks
    }

    #[cfg(test)]
    pub(super) fn raise(signal: libc::c_int) {
        // SAFETY: sends this thread a signal; the tests have it caught.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
    }

    #[cfg(test)]
    pub(super) fn disposition(signal: libc::c_int) -> libc::sighandler_t {
        let mut action: MaybeUninit<libc::sigaction> = MaybeUninit::zeroed();
        // SAFETY: a null pointer asks without setting; the other one is ours.
        let code = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
        assert_eq!(code, 0);
        // SAFETY: the call succeeded and has filled it.
        unsafe { action.assume_init() }.sa_sigaction
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn boot_time_is_the_uptime_of_the_kernel() {
        let text = std::fs::read_to_string("/proc/uptime").expect("Linux has it");
        let seconds: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap();
        let found = boot_ns() as f64 / 1e9;
        assert!((seconds - 0.1..seconds + 60.0).contains(&found), "{found}, not {seconds}");
    }

    /// A single test, because signal handlers belong to the whole process.
    #[test]
    fn signals_wake_and_count_and_are_put_back() {
        const TOKEN: mio::Token = mio::Token(3);
        let before = CAUGHT.map(system::disposition);
        let mut poll = mio::Poll::new().unwrap();
        let mut events = mio::Events::with_capacity(8);
        system::mask(libc::SIG_BLOCK, &CAUGHT); // as a parent may have done
        let signals = Signals::new(poll.registry(), TOKEN).unwrap();
        assert_eq!(signals.asked(), Asked::Nothing);
        let cases = [
            (libc::SIGTERM, Asked::Stop),
            (libc::SIGINT, Asked::StopAtOnce),
            (libc::SIGHUP, Asked::StopAtOnce),
            (libc::SIGQUIT, Asked::StopAtOnce),
        ];
        let hangup = CAUGHT.iter().position(|signal| *signal == libc::SIGHUP).unwrap();
        let is_ignored = before[hangup] == libc::SIG_IGN; // as nohup(1) has it
        for (signal, asked) in cases {
            if is_ignored && signal == libc::SIGHUP {
                continue;
            }
            system::raise(signal);
            assert_eq!(signals.asked(), asked);
            // The signal may interrupt the poll itself.
            while let Err(error) = poll.poll(&mut events, Some(Duration::from_secs(5))) {
                assert_eq!(error.kind(), io::ErrorKind::Interrupted);
            }
            let tokens: Vec<mio::Token> = events.iter().map(mio::event::Event::token).collect();
            assert_eq!(tokens, [TOKEN], "each signal causes an event");
        }
        drop(signals);
        assert_eq!(CAUGHT.map(system::disposition), before);
        assert_eq!(system::disposition(libc::SIGXFSZ), libc::SIG_IGN);
        assert_eq!(system::disposition(libc::SIGPIPE), libc::SIG_IGN);
        let again = Signals::new(poll.registry(), TOKEN).unwrap();
        assert_eq!(again.asked(), Asked::Nothing, "a new listener counts from nought");
    }

    #[test]
    fn clocks_go_forward_and_agree_about_work() {
        let (tick_at, thread_at, process_at) = (tick(), thread_cpu_ns(), process_cpu());
        let own_at = thread_cpu();
        let mut state = 1_u64;
        while thread_cpu_ns() < thread_at + 20_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        std::hint::black_box(state);
        assert!(tick() - tick_at >= 19_000_000, "CPU time took no longer than time");
        let before = process_cpu().sum_us();
        let itself = cpu_of_process_ns(std::process::id()).unwrap() / 1_000;
        assert!(itself + 10_000 >= before, "{itself} us and {before} us");
        assert_eq!(cpu_of_process_ns(1 << 28), None, "no process has this number");
        let (own, process) = (thread_cpu().since(own_at), process_cpu().since(process_at));
        assert!(own.sum_us() >= 19_000, "two clocks of one thread: {own:?}");
        assert!(process.sum_us() >= 10_000, "the process's holds the thread's");
    }

    #[test]
    fn another_thread_has_a_clock_until_it_ends() {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            while thread_cpu_ns() < 5_000_000 {}
            let _ = wait.recv();
        });
        let began = tick();
        while cpu_of_ns(&thread) < 5_000_000 {
            assert!(tick() - began < 60_000_000_000, "its clock goes");
            std::thread::yield_now();
        }
        go.send(()).unwrap();
        while !thread.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(cpu_of_ns(&thread), 0);
        thread.join().unwrap();
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn no_freed_memory_is_laid_aside() {
        merge_freed_memory();
        let before = system::laid_aside_bytes();
        let pieces: Vec<Box<[u8; 64]>> = (0..500).map(|_| Box::new([1; 64])).collect();
        drop(std::hint::black_box(pieces));
        let after = system::laid_aside_bytes();
        assert!(after <= before, "{before} bytes, then {after}");
    }

    #[test]
    fn the_limit_is_stable_and_entropy_is_not() {
        let limit = descriptor_limit();
        assert!(limit >= 64);
        assert_eq!(descriptor_limit(), limit, "raised as far as it goes the first time");
        assert_ne!(entropy(), entropy());
    }
}
