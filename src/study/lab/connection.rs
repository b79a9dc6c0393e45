//! One client's connection: reads requests, queues acts (things to do on the connection), writes
//! bytes.
//!
//! The "client's end" is the end of the byte stream that the client sends; the "lab's end" is the
//! end of the stream that the lab sends.
//!
//! The acts in the queue are carried out strictly in order; one that has to wait (for the socket,
//! or for a think time) delays those behind it, as in a server that answers one request after
//! another. Reading stops while the queue is long.

use super::log::End;
use super::replies::{Page, Responder, Response};
use super::request::{Parsed, Request, parse};
use super::transport::Transport;
use super::{Error, sockets::Listener};
use crate::ground::time::Instant;
use crate::study::web::Muddle;
use crate::study::web::wire::{self, DRIP_EVERY};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::time::Duration;

/// The number of queued acts at which reading pauses.
const ACTS_MAX: usize = 256;
/// The most slices passed to one write.
const SLICES: usize = 16;
/// The most writes of an endless reply before other connections get their turn.
const REPEATS: usize = 16;

/// One thing to do on a connection.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Send bytes `at..end`.
    Send { bytes: Rc<[u8]>, at: usize, end: usize },
    /// Wait for this long before the next act.
    Think(Duration),
    /// Note that a request has its whole reply.
    Note,
    /// Send the bytes repeatedly, without end.
    Repeat { bytes: Rc<[u8]>, at: usize },
    /// Send one byte at a time, with a wait after each.
    Drip { bytes: Rc<[u8]>, at: usize },
    /// Wait until the client closes the connection.
    Stall,
    /// Close the connection in order; this is the reason for the log.
    Close(End),
    /// Reset the connection.
    Reset,
}

impl Act {
    pub(super) fn send(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        Self::Send { bytes: bytes.into(), at: 0, end }
    }

    /// Whether no request after this act is answered.
    fn is_last(&self) -> bool {
        !matches!(self, Self::Send { .. } | Self::Think(_) | Self::Note)
    }
}

/// What a connection needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It waits for an event on its socket.
    Wait,
    /// It is to be called at this time, or at an event on its socket.
    Sleep(Instant),
    /// It is to be called again soon: it has yielded to other connections.
    Again,
    /// It waits for the client's end; the lab's own end has been sent.
    Linger,
    /// It is to be dropped, for this reason.
    Gone(End),
}

/// One connection of a client.
#[derive(Debug)]
pub(super) struct Connection {
    transport: Transport,
    /// Index of the listener that accepted the connection.
    pub(super) listener: usize,
    /// Number of the connection, counted from the lab's start.
    pub(super) number: u64,
    /// Host of the last request; before the first one, the listener's first host.
    pub(super) host: u32,
    /// Requests answered, at least in part.
    pub(super) served: u32,
    /// Last time at which bytes were received or sent.
    pub(super) active: Instant,
    /// The beginning of an incomplete request.
    input: Vec<u8>,
    acts: VecDeque<Act>,
    /// The time that the first act waits for; `None` if it doesn't wait for a time.
    wake: Option<Instant>,
    readable: bool,
    /// Whether the poller has reported the client's end: reading continues until that end is read.
    ending: bool,
    /// Whether the client's end has been read.
    ended: bool,
    /// Whether an act that ends the connection is queued: further requests are not answered.
    ignores_input: bool,
    /// Why the lab has sent its end; `None` as long as it hasn't.
    lingers: Option<End>,
}

impl Connection {
    pub(super) fn new(
        transport: Transport,
        listener: usize,
        host: u32,
        number: u64,
        now: Instant,
    ) -> Self {
        Self {
            transport,
            listener,
            number,
            host,
            served: 0,
            active: now,
            input: Vec::new(),
            acts: VecDeque::new(),
            wake: None,
            readable: true,
            ending: false,
            ended: false,
            ignores_input: false,
            lingers: None,
        }
    }

    pub(super) fn transport(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// Makes the connection never answer.
    pub(super) fn silence(&mut self) {
        self.push(Act::Stall);
    }

    /// Whether no reply is queued or being sent.
    pub(super) fn is_idle(&self) -> bool {
        self.acts.is_empty()
    }

    /// Returns why the lab has sent its end; `None` if it hasn't.
    pub(super) fn lingers(&self) -> Option<End> {
        self.lingers
    }

    /// Marks the socket as readable; `ending`: the client's end may be among what can be read.
    pub(super) fn mark_readable(&mut self, ending: bool) {
        self.readable = true;
        self.ending |= ending;
    }

    /// Reads, answers and writes as far as possible; returns what the connection needs next.
    /// `scratch` is a buffer that all connections share.
    pub(super) fn pump(
        &mut self,
        from: &Listener,
        responder: &mut Responder,
        scratch: &mut [u8],
        now: Instant,
    ) -> Result<Fate, Error> {
        loop {
            if let Some(end) = self.lingers {
                let fate = self.discard(scratch);
                return Ok(if fate == Fate::Wait { Fate::Linger } else { Fate::Gone(end) });
            }
            if self.wants_input() {
                match self.take_in(from, responder, scratch, now) {
                    Ok(()) => {}
                    Err(PumpError::Client) => return Ok(Fate::Gone(End::Failed)),
                    Err(PumpError::Log(error)) => return Err(error),
                }
            }
            match self.advance(responder, scratch, now)? {
                Some(fate) => return Ok(fate),
                None if self.lingers.is_some() || self.wants_input() => {}
                None if self.ended => return Ok(Fate::Gone(End::Client)),
                None => {
                    // Bytes of a handshake, or the rest of a TLS record, wait for the socket.
                    return Ok(match self.transport.flush() {
                        Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                            Fate::Gone(End::Failed)
                        }
                        _ => Fate::Wait,
                    });
                }
            }
        }
    }

    fn wants_input(&self) -> bool {
        self.readable && !self.ended && !self.ignores_input && self.acts.len() < ACTS_MAX
    }

    /// Reads once and queues the answers to what was read.
    fn take_in(
        &mut self,
        from: &Listener,
        responder: &mut Responder,
        scratch: &mut [u8],
        now: Instant,
    ) -> Result<(), PumpError> {
        let kind = responder.hosts[from.hosts[0] as usize].hostile;
        let peeks = kind.is_some_and(wire::resets);
        let read = match &mut self.transport {
            Transport::Plain(socket) if peeks => socket.peek(scratch),
            transport => transport.read(scratch),
        };
        let length = match read {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(_) => return Err(PumpError::Client),
        };
        if length == 0 {
            (self.readable, self.ended) = (false, true);
            return Ok(());
        }
        self.active = now;
        if length < scratch.len() && matches!(self.transport, Transport::Plain(_)) {
            // A short read has emptied the socket; only the client's end may still be in it.
            self.readable = self.ending;
        }
        let queued = self.acts.len();
        self.take_bytes(&scratch[..length], from, responder, now)?;
        if peeks {
            // A reset needs a socket with unread bytes: the last byte is left unread for that.
            let reset = self.acts.iter().skip(queued).any(|act| matches!(act, Act::Reset));
            let taken = length - usize::from(reset);
            let _ = self.transport.read(&mut scratch[..taken]);
        }
        Ok(())
    }

    fn take_bytes(
        &mut self,
        bytes: &[u8],
        from: &Listener,
        responder: &mut Responder,
        now: Instant,
    ) -> Result<(), PumpError> {
        let mut input = std::mem::take(&mut self.input);
        let pending = if input.is_empty() {
            bytes
        } else {
            input.extend(bytes);
            &input[..]
        };
        let mut rest = pending;
        // The positions in the queue at which the answers begin.
        let mut begins = Vec::new();
        let muddle = responder.hosts[self.host as usize].muddle;
        while !rest.is_empty() && !self.ignores_input {
            match parse(rest) {
                Parsed::Whole(request, used) => {
                    begins.push(self.acts.len());
                    self.answer(&request, from, responder, now).map_err(PumpError::Log)?;
                    let padding = muddle.map_or(&b""[..], Muddle::padding);
                    if !padding.is_empty() {
                        self.acts.push_back(Act::send(padding.to_vec()));
                    }
                    rest = &rest[used..];
                }
                Parsed::Partial => break,
                Parsed::Bad(status) => {
                    Responder::refusal(status).into_iter().for_each(|act| self.push(act));
                    self.push(Act::Close(End::Refused));
                }
            }
        }
        if let Some(muddle) = muddle {
            mix(muddle, &mut self.acts, &begins);
        }
        self.input = if self.ignores_input { Vec::new() } else { rest.to_vec() };
        Ok(())
    }

    fn answer(
        &mut self,
        request: &Request<'_>,
        from: &Listener,
        responder: &mut Responder,
        now: Instant,
    ) -> Result<(), Error> {
        let Some(number) = responder.route(&from.hosts, request.host) else {
            Responder::refusal(421).into_iter().for_each(|act| self.push(act));
            self.push(Act::Close(End::Refused));
            return Ok(());
        };
        self.host = number;
        self.served += 1;
        responder.totals.requests += 1;
        let host = &responder.hosts[number as usize];
        responder.log.requested(now, self.number, &host.name, request.path)?;
        let limit = self.served >= host.requests_max;
        let announces = request.close || limit && !host.closes_silently;
        if !host.think_time.is_zero() {
            self.push(Act::Think(responder.think_time(number)));
        }
        let mut closes = request.close || limit;
        match responder.respond(number, request, now) {
            Response::Page(page) => {
                closes |= page.closes;
                self.push_page(&page, announces);
            }
            Response::Acts(acts) => acts.into_iter().for_each(|act| self.push(act)),
        }
        if responder.log.has_requests() && !self.ignores_input {
            self.push(Act::Note);
        }
        if closes && !self.ignores_input {
            self.push(Act::Close(if limit { End::Limit } else { End::Asked }));
        }
        Ok(())
    }

    fn push_page(&mut self, page: &Page, announces_close: bool) {
        let end = page.bytes.len();
        let mut from = 0;
        if announces_close {
            self.push(Act::Send { bytes: page.bytes.clone(), at: 0, end: page.fields.start });
            self.push(Act::send(b"Connection: close\r\n".to_vec()));
            from = page.fields.end;
        }
        self.push(Act::Send { bytes: page.bytes.clone(), at: from, end });
    }

    fn push(&mut self, act: Act) {
        self.ignores_input |= act.is_last();
        self.acts.push_back(act);
    }

    /// Carries out acts from the front of the queue. Returns what the connection needs before it
    /// can go on; `None` when no act is left, or when the lab's end was sent.
    fn advance(
        &mut self,
        responder: &mut Responder,
        scratch: &mut [u8],
        now: Instant,
    ) -> Result<Option<Fate>, Error> {
        loop {
            if let Some(wake) = self.wake {
                if wake > now {
                    // While dripping, as while stalling, the client's end is watched for: the log
                    // records when it comes.
                    let drips = matches!(self.acts.front(), Some(Act::Drip { .. }));
                    let gone = drips && self.discard(scratch) != Fate::Wait;
                    return Ok(Some(if gone {
                        Fate::Gone(End::Client)
                    } else {
                        Fate::Sleep(wake)
                    }));
                }
                self.wake = None;
            }
            let Some(act) = self.acts.front_mut() else { return Ok(None) };
            let written = match act {
                Act::Send { .. } => self.send(),
                Act::Think(time) => {
                    let wake = now + *time;
                    self.wake = Some(wake);
                    self.acts.pop_front();
                    continue;
                }
                Act::Note => {
                    self.acts.pop_front();
                    let host = &responder.hosts[self.host as usize].name;
                    responder.log.replied(now, self.number, host)?;
                    continue;
                }
                Act::Repeat { .. } => match self.repeat() {
                    Ok(written) => {
                        responder.totals.bytes += written as u64;
                        return Ok(Some(Fate::Again));
                    }
                    failed => failed,
                },
                Act::Drip { .. } => self.drip(now),
                Act::Stall => return Ok(Some(self.discard(scratch))),
                Act::Close(end) => {
                    self.lingers = Some(*end);
                    // Sent bytes arrive even if requests are left unread: the lab sends its end
                    // first, then reads and discards until the client's end (RFC 9112, section
                    // 9.6).
                    let shut = self.transport.shutdown();
                    self.readable = true;
                    return Ok(shut.is_err().then_some(Fate::Gone(End::Client)));
                }
                Act::Reset => return Ok(Some(Fate::Gone(End::Reset))),
            };
            match written {
                Ok(written) => {
                    responder.totals.bytes += written as u64;
                    self.active = now;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Some(Fate::Wait));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(Some(Fate::Gone(End::Client))),
            }
        }
    }

    /// Writes the bytes of the acts at the front, as many as one call takes; returns how many.
    fn send(&mut self) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut count = 0;
        for (slice, act) in slices.iter_mut().zip(&self.acts) {
            let Act::Send { bytes, at, end } = act else { break };
            *slice = IoSlice::new(&bytes[*at..*end]);
            count += 1;
        }
        let written = self.transport.write(&slices[..count])?;
        let mut left = written;
        while let Some(Act::Send { at, end, .. }) = self.acts.front_mut() {
            let part = left.min(*end - *at);
            *at += part;
            left -= part;
            if at < end {
                break;
            }
            self.acts.pop_front();
        }
        Ok(written)
    }

    fn repeat(&mut self) -> io::Result<usize> {
        let Some(Act::Repeat { bytes, at }) = self.acts.front_mut() else { return Ok(0) };
        let mut sum = 0;
        for _ in 0..REPEATS {
            let written = match self.transport.write(&[IoSlice::new(&bytes[*at..])]) {
                Err(error) if sum > 0 && error.kind() == io::ErrorKind::WouldBlock => break,
                other => other?,
            };
            *at = (*at + written) % bytes.len();
            sum += written;
        }
        Ok(sum)
    }

    /// Sends one byte of the act at the front and sets the time of the next; after the last byte
    /// the connection stalls.
    fn drip(&mut self, now: Instant) -> io::Result<usize> {
        let Some(Act::Drip { bytes, at }) = self.acts.front_mut() else { return Ok(0) };
        let written = self.transport.write(&[IoSlice::new(&bytes[*at..*at + 1])])?;
        *at += written;
        if *at == bytes.len() {
            self.acts[0] = Act::Stall;
        }
        self.wake = Some(now + DRIP_EVERY);
        Ok(written)
    }

    /// Reads and discards until nothing is left; returns `Gone` if the client's end came or reading
    /// failed, else `Wait`.
    fn discard(&mut self, scratch: &mut [u8]) -> Fate {
        while self.readable {
            match self.transport.read(scratch) {
                Ok(0) => return Fate::Gone(End::Client),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Fate::Gone(End::Client),
            }
        }
        Fate::Wait
    }
}

/// Why reading stopped with an error.
enum PumpError {
    /// The client's socket has failed.
    Client,
    /// The log could not be written.
    Log(Error),
}

/// Mixes up the answers that begin at these positions of the queue.
fn mix(muddle: Muddle, acts: &mut VecDeque<Act>, begins: &[usize]) {
    let mut together: Vec<VecDeque<Act>> =
        begins.iter().rev().map(|begin| acts.split_off(*begin)).collect();
    together.reverse();
    muddle.mix(&mut together);
    acts.extend(together.into_iter().flatten());
}
