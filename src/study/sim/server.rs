//! A web's server on one connection: receives requests and sends replies, one after the other.
//!
//! A server works on one request at a time, in order of arrival, and queues its whole reply at
//! once: it works on the next request while the reply is being sent. After the last request that a
//! connection may carry (the host's limit, or HTTP/1.0) it reads nothing more and closes after the
//! reply, announced or not. Requests pipelined behind that are lost, in one of four cases with a
//! reset (a socket that is closed with unread bytes is reset). An idle connection is closed after
//! the host's idle time. Hostile hosts follow the steps of [`wire::script`].
//!
//! Replies of well-behaved hosts are compact: they have their real head and links, and count with
//! the page's full length.

use super::draw::Draw;
use super::hosts::Hosts;
use super::observation::Observation;
use super::pipe::{End, Parcel};
use super::request::{Request, accepts, parse};
use super::scene::Scene;
use crate::engine::contract::ConnId;
use crate::ground::time::Instant;
use crate::study::web::wire::{self, DRIP_EVERY, Step, Terms};
use crate::study::web::{Answer, Manner, Muddle, Place, Proof, Reply, Resource, is_unmodified};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The server's side of one connection.
#[derive(Debug)]
pub(super) struct Server {
    conn: ConnId,
    pub(super) host: u32,
    manner: Manner,
    /// The beginning of a request that is still incomplete.
    input: Vec<u8>,
    /// Requests to be answered.
    waiting: VecDeque<Asked>,
    /// When the reply to the first waiting request is ready.
    thinks_until: Option<Instant>,
    /// The remaining steps of the current hostile reply.
    steps: Steps,
    /// Bytes that belong to no reply and are sent behind the current one, as some hosts do.
    padding: Option<Parcel>,
    /// Replies that have not wholly arrived at the crawler.
    answers: VecDeque<Sending>,
    served: u32,
    /// Whether the server reads nothing more.
    ignores_input: bool,
    /// Whether requests have arrived that the server will not read.
    unread: bool,
    idle_since: Instant,
    draw: Draw,
}

/// A request that waits for its answer.
#[derive(Clone, Debug)]
struct Asked {
    place: Option<Place>,
    coded: bool,
    /// The values of the fields If-None-Match and If-Modified-Since, which may be empty.
    terms: (Box<str>, Box<str>),
    /// Whether the connection ends with the reply.
    closes: bool,
    /// Whether the reply says that the connection ends.
    announces: bool,
    play: Option<Rc<[Step]>>,
}

/// The steps of a hostile reply, and the position within them.
#[derive(Debug, Default)]
struct Steps {
    steps: Rc<[Step]>,
    at: usize,
    /// While sending byte by byte: the number of bytes sent.
    dripped: usize,
    /// While sending byte by byte: when the next byte is due; `None` before the first.
    due: Option<Instant>,
    /// How the connection ends after the steps; `None` if it goes on.
    end: Option<End>,
}

/// A reply on its way to the crawler.
#[derive(Clone, Copy, Debug)]
struct Sending {
    place: Option<Place>,
    status: u16,
    /// A digest of the reply as a crawler compares it.
    content: u64,
    /// The number of bytes of the decoded text; 0 if the reply is not content-coded.
    text_bytes: u64,
    begun: bool,
}

/// What a server does next.
#[derive(Debug)]
pub(super) enum Doing {
    Send(Parcel),
    /// Nothing before this time, unless something happens on the connection.
    WaitUntil(Instant),
    /// Nothing before this time; whatever happens on the connection postpones it.
    IdleUntil(Instant),
    Wait,
    Ends(End),
}

/// Requests lost behind an unannounced close cause a reset in one of this many cases.
const RESETS_ONE_IN: u64 = 4;
/// How long a host waits for the first request of a connection: the default of common servers.
const FIRST_REQUEST_TIME: Duration = Duration::from_secs(60);

impl Server {
    pub(super) fn new(conn: ConnId, host: u32, manner: Manner, draw: Draw) -> Self {
        Self {
            conn,
            host,
            manner,
            input: Vec::new(),
            waiting: VecDeque::new(),
            thinks_until: None,
            steps: Steps::default(),
            padding: None,
            answers: VecDeque::new(),
            served: 0,
            ignores_input: manner == Manner::Mute,
            unread: false,
            idle_since: Instant::ZERO,
            draw,
        }
    }

    /// Draws whether a segment of what is being sent is lost; the probability is `share`.
    pub(super) fn loses(&mut self, share: f64) -> bool {
        self.draw.chance(share)
    }

    /// Takes in bytes from the crawler, and queues the requests that are complete.
    pub(super) fn received(&mut self, bytes: &[u8], hosts: &mut Hosts, scene: &mut Scene) {
        let mut input = std::mem::take(&mut self.input);
        let pending = if input.is_empty() {
            bytes
        } else {
            input.extend_from_slice(bytes);
            &input[..]
        };
        let mut rest = pending;
        let first = self.waiting.len();
        while !rest.is_empty() && !self.ignores_input {
            let Some((request, used)) = parse(rest) else { break };
            self.ask(&request, hosts, scene);
            rest = &rest[used..];
        }
        if let Some(muddle) = hosts.at(self.host).host.muddle {
            let mut together: Vec<Asked> = self.waiting.drain(first..).collect();
            muddle.mix(&mut together);
            self.waiting.extend(together);
        }
        self.unread |= self.ignores_input && !rest.is_empty();
        self.input = if self.ignores_input { Vec::new() } else { rest.to_vec() };
    }

    fn ask(&mut self, request: &Request<'_>, hosts: &mut Hosts, scene: &mut Scene) {
        let named = hosts.web.host_named(request.host);
        let Some(number) = named.filter(|number| hosts.share_address(*number, self.host)) else {
            // The host is not served at this address: misdirected request (RFC 9110, section
            // 15.5.20).
            self.steps = Steps::refusal(421);
            self.ignores_input = true;
            return;
        };
        self.host = number;
        self.served += 1;
        let place = hosts.web.place(number, request.path);
        let (conn, host, unanswered) = (self.conn, number, self.unanswered());
        let proof = hosts.proof(request.head_bytes);
        let is_signed = proof == Some(Proof::Holds);
        scene.show(|| {
            let (path, authorization) = (request.path.into(), request.authorization.into());
            Observation::Request { conn, host, place, path, unanswered, authorization, proof }
        });
        let play = place.and_then(|place| hosts.play(place, is_signed));
        let traits = &hosts.at(number).host;
        let limit = self.served >= traits.requests_max;
        let coded = accepts(request.accept_encoding, traits.coding.name());
        let announces = limit && !traits.closes_silently;
        self.ignores_input = limit || play.as_ref().is_some_and(|steps| !steps.iter().all(is_send));
        let terms = (request.none_match.into(), request.modified_since.into());
        self.waiting.push_back(Asked { place, coded, terms, closes: limit, announces, play });
    }

    fn unanswered(&self) -> u32 {
        u32::try_from(self.waiting.len() + self.answers.len()).expect("pipelines are short")
    }

    /// Returns what the server does now. `backlog`: nominal bytes that have not left yet.
    pub(super) fn act(
        &mut self,
        now: Instant,
        backlog: u64,
        hosts: &mut Hosts,
        scene: &mut Scene,
    ) -> Doing {
        loop {
            if let Some(parcel) = self.padding.take() {
                return Doing::Send(parcel);
            }
            if let Some(doing) = self.play(now, backlog) {
                self.pad(&doing, hosts);
                return doing;
            }
            if self.waiting.is_empty() {
                return self.idle(now, backlog, hosts);
            }
            let until = *self.thinks_until.get_or_insert_with(|| now + hosts.think_time(self.host));
            if until > now {
                return Doing::WaitUntil(until);
            }
            self.thinks_until = None;
            let asked = self.waiting.pop_front().expect("it was looked at");
            self.idle_since = now;
            if let Some(parcel) = self.answer(asked, hosts, scene) {
                let doing = Doing::Send(parcel);
                self.pad(&doing, hosts);
                return doing;
            }
        }
    }

    /// Prepares the bytes that a confused host sends behind each reply, if `doing` sends the end of
    /// one.
    fn pad(&mut self, doing: &Doing, hosts: &mut Hosts) {
        let padding = hosts.at(self.host).host.muddle.map_or(&b""[..], Muddle::padding);
        if matches!(doing, Doing::Send(parcel) if parcel.ends_reply) && !padding.is_empty() {
            let nominal = padding.len() as u64;
            let bytes = padding.to_vec();
            self.padding = Some(Parcel { bytes, nominal, head: nominal, ends_reply: false });
        }
    }

    /// Continues with the steps of a hostile reply; `None` if there are none left.
    fn play(&mut self, now: Instant, backlog: u64) -> Option<Doing> {
        let steps = &mut self.steps;
        let Some(step) = steps.steps.get(steps.at) else {
            let end = steps.end?;
            // The system resets a connection that is closed while requests are unread in its
            // socket.
            let reset = end == End::InOrder
                && std::mem::take(&mut self.unread)
                && self.draw.below(RESETS_ONE_IN) == 0;
            if reset {
                steps.end = Some(End::Reset);
            }
            return Some(Doing::Ends(if reset { End::Reset } else { end }));
        };
        let (bytes, last) = match step {
            Step::Send(bytes) => {
                steps.at += 1;
                (bytes.clone(), steps.at == steps.steps.len())
            }
            Step::Repeat(_) if backlog > 0 => return Some(Doing::Wait),
            Step::Repeat(bytes) => (bytes.clone(), false),
            Step::Drip(bytes) => {
                let due = steps.due.unwrap_or(now);
                if due > now {
                    return Some(Doing::WaitUntil(due));
                }
                let Some(byte) = bytes.get(steps.dripped).copied() else {
                    return Some(Doing::Wait);
                };
                steps.dripped += 1;
                steps.due = Some(now + DRIP_EVERY);
                (vec![byte], false)
            }
            Step::Stall => return Some(Doing::Wait),
            Step::Close => return Some(Doing::Ends(End::InOrder)),
            Step::Reset => return Some(Doing::Ends(End::Reset)),
        };
        let nominal = bytes.len() as u64;
        let ends_reply = last && steps.end.is_none();
        Some(Doing::Send(Parcel { bytes, nominal, head: nominal, ends_reply }))
    }

    /// Closes the connection if it has been idle for the host's idle time; else says until when to
    /// wait.
    fn idle(&mut self, now: Instant, backlog: u64, hosts: &Hosts) -> Doing {
        if backlog > 0 || self.manner == Manner::Mute {
            return Doing::Wait;
        }
        // Real servers, too, wait longer for the first request than between requests.
        let patience = if self.served > 0 { Duration::ZERO } else { FIRST_REQUEST_TIME };
        let until = self.idle_since + hosts.web.settings().idle_time.max(patience);
        if until > now {
            return Doing::IdleUntil(until);
        }
        self.ignores_input = true;
        self.steps = Steps::end(End::InOrder);
        Doing::Ends(End::InOrder)
    }

    /// Restarts the idle time: something has left or arrived.
    pub(super) fn is_active(&mut self, now: Instant) {
        self.idle_since = self.idle_since.max(now);
    }

    /// Answers a request: returns the reply, or `None` if steps take its place (those of a hostile
    /// reply, or of a server that falls silent).
    fn answer(&mut self, asked: Asked, hosts: &mut Hosts, scene: &mut Scene) -> Option<Parcel> {
        let faults = hosts.faults(scene.now);
        if let Some(steps) = asked.play {
            let status = steps.first().map_or(0, status_of);
            let place = asked.place;
            let content = digest(status, "", b"");
            self.answers.push_back(Sending { place, status, content, text_bytes: 0, begun: false });
            let end = asked.closes.then_some(End::InOrder);
            self.steps = Steps { steps, end, ..Steps::default() };
            return None;
        }
        let mut made = made(&asked, self.host, hosts, scene.now);
        self.answers.push_back(made.said);
        if asked.closes {
            self.steps = Steps::end(End::InOrder);
        }
        let (silent, reset) = (self.draw.chance(faults.silences), self.draw.chance(faults.resets));
        if silent {
            scene.figures.faults += 1;
            self.ignores_input = true;
            self.waiting.clear();
            self.steps = Steps { steps: Rc::new([Step::Stall]), ..Steps::default() };
            return None;
        }
        if reset {
            scene.figures.faults += 1;
            self.ignores_input = true;
            self.waiting.clear();
            self.steps = Steps::end(End::Reset);
            cut(&mut made.parcel, &mut self.draw);
        }
        Some(made.parcel)
    }

    /// Records that bytes of the oldest unfinished reply have arrived at the crawler. `whole` says
    /// whether the reply is complete with them. Does nothing if no reply is being sent.
    pub(super) fn arrived(&mut self, whole: bool, scene: &mut Scene) {
        let Some(said) = self.answers.front_mut() else { return };
        said.begun = true;
        if whole {
            scene.figures.replies += 1;
            scene.figures.text_bytes += said.text_bytes;
            self.report_reply(true, scene);
        }
    }

    /// Reports the reply that the end of the connection has interrupted, if there is one.
    pub(super) fn over(&mut self, scene: &mut Scene) {
        if self.answers.front().is_some_and(|said| said.begun) {
            self.report_reply(false, scene);
        }
    }

    fn report_reply(&mut self, whole: bool, scene: &mut Scene) {
        let said = self.answers.pop_front().expect("it was looked at");
        let (conn, host) = (self.conn, self.host);
        let Sending { place, status, content, .. } = said;
        scene.show(|| Observation::Reply { conn, host, place, status, content, whole });
    }
}

impl Steps {
    fn end(end: End) -> Self {
        Self { end: Some(end), ..Self::default() }
    }

    fn refusal(status: u16) -> Self {
        let text =
            format!("HTTP/1.1 {status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let steps = Rc::new([Step::Send(text.into_bytes())]);
        Self { steps, end: Some(End::InOrder), ..Self::default() }
    }
}

fn is_send(step: &Step) -> bool {
    matches!(step, Step::Send(_))
}

fn status_of(step: &Step) -> u16 {
    let (Step::Send(bytes) | Step::Repeat(bytes) | Step::Drip(bytes)) = step else { return 0 };
    let digits = bytes.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// A reply ready to be sent.
struct Made {
    parcel: Parcel,
    said: Sending,
}

fn made(asked: &Asked, number: u32, hosts: &mut Hosts, now: Instant) -> Made {
    let at = now.since(Instant::ZERO);
    let web = Arc::clone(&hosts.web);
    let host = &hosts.at(number).host;
    let (reply, wire_bytes, text_bytes): (Reply, u64, u64) = match asked.place {
        Some(Place { resource: Resource::Page(page), .. }) => {
            let compact = web.compact(host, page, asked.coded, at);
            (compact.reply, compact.wire_bytes, compact.text_bytes)
        }
        place => {
            let answer = web.answer(place, at);
            let Answer::Reply(reply) = answer else { panic!("plays are carried out by steps") };
            let length = reply.body.len() as u64;
            (reply, length, length)
        }
    };
    let (none_match, modified_since) = (&asked.terms.0, &asked.terms.1);
    let unmodified = is_unmodified(&reply, none_match.as_bytes(), modified_since.as_bytes());
    let content = digest(reply.status, &reply.fields, &reply.body);
    // The coded length is only counted: the bytes moved are compact already.
    let mut wire = wire::encode(&reply, host, Terms { unmodified, ..Terms::default() });
    let (body, wire_bytes, text_bytes) =
        if unmodified { (0, 0, 0) } else { (reply.body.len(), wire_bytes, text_bytes) };
    let status = if unmodified { 304 } else { reply.status };
    if asked.announces {
        let own = wire.fields_at..wire.fields_end;
        wire.bytes.splice(own, *b"Connection: close\r\n");
    }
    let nominal = (wire.bytes.len() - body) as u64 + wire_bytes;
    let end = wire.bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let head = (end.expect("a reply has a head") as u64 + 4).min(nominal);
    let text_bytes = if wire_bytes == text_bytes { 0 } else { text_bytes };
    Made {
        parcel: Parcel { bytes: wire.bytes, nominal, head, ends_reply: true },
        said: Sending { place: asked.place, status, content, text_bytes, begun: false },
    }
}

/// Returns a digest of a reply as a crawler compares it: of its fields only `Location` counts; of
/// its body the beginning, the end and the length suffice.
fn digest(status: u16, fields: &str, body: &[u8]) -> u64 {
    let to = fields.lines().find(|line| line.starts_with("Location:"));
    let mut hasher = DefaultHasher::new();
    let end = &body[body.len().saturating_sub(32)..];
    (status, to, body.len(), &body[..body.len().min(256)], end).hash(&mut hasher);
    hasher.finish()
}

/// Cuts a reply to a drawn length: at least one byte, and never all of it.
fn cut(parcel: &mut Parcel, draw: &mut Draw) {
    let left = 1 + draw.below(parcel.bytes.len() as u64 - 1);
    parcel.cut(usize::try_from(left).expect("less than the whole"));
}
