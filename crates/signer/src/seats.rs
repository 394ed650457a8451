//! Seats for the clients of the creator's socket: few at once, each for a short time.
//!
//! Threads cannot start once the process is confined, so there are a fixed number of seats. A
//! silent or slow client loses its seat to a newer one, but never while its request is being
//! processed. A silent client must never keep a newer one waiting.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use automaton_core::time::Span;
use automaton_core::window::BootClock;

/// The number of clients served at once.
pub(crate) const SEATS: usize = 4;

/// The timeout of one exchange: sending a request and receiving its reply.
const EXCHANGE_MAX: Span = Span::from_secs(10);

/// The time that a silent client keeps its seat while others wait.
const GRACE: Span = Span::from_millis(250);

/// The seats.
pub(crate) struct Seats {
    boot: Arc<dyn BootClock>,
    taken: Mutex<Vec<Place>>,
    freed: Condvar,
}

struct Place {
    stream: Arc<UnixStream>,
    /// The start of the current silence, or `None` if the clock cannot be read.
    quiet_since: Option<Span>,
    at_work: bool,
}

impl Seats {
    pub(crate) fn new(boot: Arc<dyn BootClock>) -> Self {
        Self { boot, taken: Mutex::default(), freed: Condvar::new() }
    }

    /// Waits for a free seat. Takes the seat of the longest silent client if necessary.
    pub(crate) fn seat(&self, stream: UnixStream) -> Seat<'_> {
        let stream = Arc::new(stream);
        let mut taken = self.lock();
        loop {
            let now = self.boot.since_boot();
            if taken.len() < SEATS {
                let stream = Arc::clone(&stream);
                taken.push(Place { stream, quiet_since: now, at_work: false });
                break;
            }
            let quiet = taken.iter().enumerate().filter(|(_, place)| !place.at_work);
            match quiet.min_by_key(|(_, place)| place.quiet_since) {
                Some((oldest, place)) if !within(GRACE, place.quiet_since, now) => {
                    // silent-ok: a client that has hung up has left its seat as well.
                    place.stream.shutdown(Shutdown::Both).ok();
                    taken.remove(oldest);
                }
                _ => {
                    let waited = self.freed.wait_timeout(taken, GRACE.to_std());
                    taken = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        drop(taken);
        Seat { seats: self, stream, until: Cell::new(self.deadline()) }
    }

    /// Locks the list of taken seats. A panic of another thread leaves them consistent.
    fn lock(&self) -> MutexGuard<'_, Vec<Place>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deadline(&self) -> Option<Span> {
        Some(self.boot.since_boot()?.plus(EXCHANGE_MAX))
    }
}

/// Returns true if less than `span` has passed. Returns false if a time is unknown.
fn within(span: Span, since: Option<Span>, now: Option<Span>) -> bool {
    since.zip(now).is_some_and(|(since, now)| now < since.plus(span))
}

/// A client's seat. Dropping it frees the seat.
pub(crate) struct Seat<'a> {
    seats: &'a Seats,
    stream: Arc<UnixStream>,
    /// The deadline of the current exchange.
    until: Cell<Option<Span>>,
}

impl Seat<'_> {
    /// Returns the client's stream. Each read and write ends at the exchange's deadline.
    pub(crate) const fn stream(&self) -> TimedStream<'_> {
        TimedStream(self)
    }

    /// Performs the client's request, unless the seat was lost meanwhile. The next exchange
    /// begins with the reply.
    pub(crate) fn work<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        self.set_at_work(true)?;
        let done = work();
        self.until.set(self.seats.deadline());
        self.set_at_work(false)?;
        Some(done)
    }

    fn set_at_work(&self, at_work: bool) -> Option<()> {
        let mut taken = self.seats.lock();
        let place = taken.iter_mut().find(|place| Arc::ptr_eq(&place.stream, &self.stream))?;
        (place.at_work, place.quiet_since) = (at_work, self.seats.boot.since_boot());
        drop(taken);
        self.seats.freed.notify_one();
        Some(())
    }

    fn time_left(&self) -> io::Result<Duration> {
        let Some((until, now)) = self.until.get().zip(self.seats.boot.since_boot()) else {
            return Ok(EXCHANGE_MAX.to_std());
        };
        let left = Span::from_millis(until.as_millis() - now.as_millis());
        match left > Span::ZERO {
            true => Ok(left.to_std()),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.seats.lock().retain(|place| !Arc::ptr_eq(&place.stream, &self.stream));
        self.seats.freed.notify_one();
    }
}

/// A stream whose reads and writes end at the exchange's deadline.
pub(crate) struct TimedStream<'a>(&'a Seat<'a>);

impl Read for TimedStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = &*self.0.stream;
        stream.set_read_timeout(Some(self.0.time_left()?))?;
        stream.read(buffer)
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stream = &*self.0.stream;
        stream.set_write_timeout(Some(self.0.time_left()?))?;
        stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    /// A clock that a test sets, in milliseconds.
    #[derive(Default)]
    struct Hand(AtomicI64);

    impl BootClock for Hand {
        fn since_boot(&self) -> Option<Span> {
            Some(Span::from_millis(self.0.load(Ordering::SeqCst)))
        }
    }

    fn seats() -> (Seats, Arc<Hand>) {
        let clock = Arc::new(Hand::default());
        let boot: Arc<dyn BootClock> = Arc::<Hand>::clone(&clock);
        (Seats::new(boot), clock)
    }

    #[test]
    fn an_exchange_has_one_end_however_its_bytes_come() {
        let (seats, clock) = seats();
        let (here, mut there) = UnixStream::pair().unwrap();
        let seat = seats.seat(here);
        let mut byte = [0];
        for second in 0..10 {
            clock.0.store(second * 1000, Ordering::SeqCst);
            there.write_all(b"x").unwrap();
            assert_eq!(seat.stream().read(&mut byte).unwrap(), 1);
        }
        clock.0.store(10_000, Ordering::SeqCst);
        there.write_all(b"x").unwrap();
        let error = seat.stream().read(&mut byte).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // The work started the next exchange.
        assert_eq!(seat.work(|| 1), Some(1));
        assert_eq!(seat.stream().read(&mut byte).unwrap(), 1);
    }

    #[test]
    fn the_quietest_loses_its_place_and_whoever_is_at_work_does_not() {
        let (seats, clock) = seats();
        let mut others = Vec::new();
        let mut come = || {
            let (here, there) = UnixStream::pair().unwrap();
            others.push(there);
            here
        };
        let first = seats.seat(come());
        clock.0.store(1, Ordering::SeqCst);
        let second = seats.seat(come());
        clock.0.store(2, Ordering::SeqCst);
        let _more: Vec<_> = (2..SEATS).map(|_| seats.seat(come())).collect();
        clock.0.store(1000, Ordering::SeqCst);
        let newer = first.work(|| seats.seat(come())).unwrap();
        let mut byte = [0];
        assert_eq!(second.stream().read(&mut byte).unwrap(), 0, "it was hung up on");
        assert_eq!(second.work(|| ()), None, "and nothing is done for it");
        assert!(newer.work(|| ()).is_some() && first.work(|| ()).is_some());
        assert_eq!(seats.lock().len(), SEATS);
        drop(newer);
        assert_eq!(seats.lock().len(), SEATS - 1);
    }
}
