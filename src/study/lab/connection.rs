//! One client's connection: requests in, a queue of acts, bytes out.
//!
//! The queue is carried out strictly from the front; an act that has to wait (for the socket, for
//! a think time) holds up those behind it, as a server that answers one request after another
//! does. Reading stops while the queue is long.

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

/// Acts queued before reading pauses.
const ACTS_MAX: usize = 256;
/// Slices given to one write.
const SLICES: usize = 16;
/// Writes of an endless reply before others get their turn.
const REPEATS: usize = 16;

/// One thing to do on a connection.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Send bytes `at..end`.
    Send { bytes: Rc<[u8]>, at: usize, end: usize },
    /// Wait before what follows.
    Think(Duration),
    /// Send again and again.
    Repeat { bytes: Rc<[u8]>, at: usize },
    /// Send one byte at a time.
    Drip { bytes: Rc<[u8]>, at: usize },
    /// Wait until the client goes away.
    Stall,
    /// Close in order.
    Close(End),
    /// Reset.
    Reset,
}

impl Act {
    pub(super) fn send(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        Self::Send { bytes: bytes.into(), at: 0, end }
    }

    /// Nothing the client asks for afterwards will be answered.
    fn is_last(&self) -> bool {
        !matches!(self, Self::Send { .. } | Self::Think(_))
    }
}

/// What a connection needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// An event on its socket.
    Wait,
    /// To be called at this time, or at an event.
    Sleep(Instant),
    /// To be called again soon: it has given way to others.
    Again,
    /// Its end has been sent; the client's end is waited for.
    Linger,
    /// To be dropped.
    Gone(End),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    transport: Transport,
    /// Index of the listener it came by.
    pub(super) listener: usize,
    /// Counted from the lab's start.
    pub(super) number: u64,
    /// Host of the last request; the listener's first before that.
    pub(super) host: u32,
    /// Requests answered, or begun to be.
    pub(super) served: u32,
    /// Last time something came or went.
    pub(super) active: Instant,
    /// The beginning of a request, its end still to come.
    input: Vec<u8>,
    acts: VecDeque<Act>,
    /// The front act waits for this.
    wake: Option<Instant>,
    readable: bool,
    /// The client's end has been announced: reading goes on until it is seen.
    ending: bool,
    /// The client's end has been seen.
    ended: bool,
    /// An act that ends the connection is queued: requests are no longer answered.
    deaf: bool,
    /// Our end has been sent, for this reason.
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
            deaf: false,
            lingers: None,
        }
    }

    pub(super) fn transport(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// Never answers.
    pub(super) fn mute(&mut self) {
        self.push(Act::Stall);
    }

    /// Nothing is being done for the client.
    pub(super) fn is_idle(&self) -> bool {
        self.acts.is_empty()
    }

    /// Why our end was sent, if it was.
    pub(super) fn lingers(&self) -> Option<End> {
        self.lingers
    }

    /// The socket has something to read, the client's end maybe included.
    pub(super) fn mark_readable(&mut self, ending: bool) {
        self.readable = true;
        self.ending |= ending;
    }

    /// Reads, answers and writes as far as it goes. `scratch` is anyone's.
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
                    Err(Trouble::Socket) => return Ok(Fate::Gone(End::Failed)),
                    Err(Trouble::Ours(error)) => return Err(error),
                }
            }
            match self.advance(responder, scratch, now) {
                Some(fate) => return Ok(fate),
                None if self.lingers.is_some() || self.wants_input() => {}
                None if self.ended => return Ok(Fate::Gone(End::Client)),
                None => {
                    // A handshake's bytes, or the tail of a record, wait for the socket.
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
        self.readable && !self.ended && !self.deaf && self.acts.len() < ACTS_MAX
    }

    /// Reads once and queues the answers to what came.
    fn take_in(
        &mut self,
        from: &Listener,
        responder: &mut Responder,
        scratch: &mut [u8],
        now: Instant,
    ) -> Result<(), Trouble> {
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
            Err(_) => return Err(Trouble::Socket),
        };
        if length == 0 {
            (self.readable, self.ended) = (false, true);
            return Ok(());
        }
        self.active = now;
        if length < scratch.len() && matches!(self.transport, Transport::Plain(_)) {
            // A short read has emptied the socket; only the end may still be in it.
            self.readable = self.ending;
        }
        let queued = self.acts.len();
        self.take_bytes(&scratch[..length], from, responder, now)?;
        if peeks {
            // A socket closed with bytes unread is reset: that is what the last byte is left for.
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
    ) -> Result<(), Trouble> {
        let mut input = std::mem::take(&mut self.input);
        let pending = if input.is_empty() {
            bytes
        } else {
            input.extend(bytes);
            &input[..]
        };
        let mut rest = pending;
        // Where each answer begins in the queue.
        let mut begins = Vec::new();
        let muddle = responder.hosts[self.host as usize].muddle;
        while !rest.is_empty() && !self.deaf {
            match parse(rest) {
                Parsed::Whole(request, used) => {
                    begins.push(self.acts.len());
                    self.answer(&request, from, responder, now).map_err(Trouble::Ours)?;
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
        self.input = if self.deaf { Vec::new() } else { rest.to_vec() };
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
        match responder.respond(number, request) {
            Response::Page(page) => {
                closes |= page.closes;
                self.push_page(&page, announces);
            }
            Response::Acts(acts) => acts.into_iter().for_each(|act| self.push(act)),
        }
        if closes && !self.deaf {
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
        self.deaf |= act.is_last();
        self.acts.push_back(act);
    }

    /// Carries acts out from the front. `None` when there are none left, or our end was sent.
    fn advance(
        &mut self,
        responder: &mut Responder,
        scratch: &mut [u8],
        now: Instant,
    ) -> Option<Fate> {
        loop {
            if let Some(wake) = self.wake {
                if wake > now {
                    // Who drips sees the client go, as who stalls does: the log tells when.
                    let drips = matches!(self.acts.front(), Some(Act::Drip { .. }));
                    let gone = drips && self.discard(scratch) != Fate::Wait;
                    return Some(if gone { Fate::Gone(End::Client) } else { Fate::Sleep(wake) });
                }
                self.wake = None;
            }
            let written = match self.acts.front_mut()? {
                Act::Send { .. } => self.send(),
                Act::Think(time) => {
                    let wake = now + *time;
                    self.wake = Some(wake);
                    self.acts.pop_front();
                    continue;
                }
                Act::Repeat { .. } => match self.repeat() {
                    Ok(written) => {
                        responder.totals.bytes += written as u64;
                        return Some(Fate::Again);
                    }
                    failed => failed,
                },
                Act::Drip { .. } => self.drip(now),
                Act::Stall => return Some(self.discard(scratch)),
                Act::Close(end) => {
                    self.lingers = Some(*end);
                    // What was sent arrives even if requests are left unread: our end first, then
                    // theirs is read away (RFC 9112 9.6).
                    let shut = self.transport.shutdown();
                    self.readable = true;
                    return shut.is_err().then_some(Fate::Gone(End::Client));
                }
                Act::Reset => return Some(Fate::Gone(End::Reset)),
            };
            match written {
                Ok(written) => {
                    responder.totals.bytes += written as u64;
                    self.active = now;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(Fate::Wait),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Some(Fate::Gone(End::Client)),
            }
        }
    }

    /// Writes what the foremost sends hold, as many as fit into one call.
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

    /// One byte, then a wait; after the last one the connection stalls.
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

    /// Reads and forgets until there is no more.
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

/// Why reading didn't go on.
enum Trouble {
    /// The client's socket failed.
    Socket,
    /// The log could not be written.
    Ours(Error),
}

/// Mixes up the answers that begin at these places of the queue.
fn mix(muddle: Muddle, acts: &mut VecDeque<Act>, begins: &[usize]) {
    let mut together: Vec<VecDeque<Act>> =
        begins.iter().rev().map(|begin| acts.split_off(*begin)).collect();
    together.reverse();
    muddle.mix(&mut together);
    acts.extend(together.into_iter().flatten());
}
