//! The routes of the control socket: reads a request, and writes the reply.
//!
//! Replies are JSON, except that of `/`, which explains the routes. An error is
//! `{"done":false,"error":"..."}` with a status that says whose fault it is.

use super::request::{Answer, Ask, Desk, Request};
use crate::engine::contract::{Command, Order, Reply};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;
use url::form_urlencoded;

/// The most bytes of a request's body.
const BODY_BYTES_MAX: usize = 1 << 20;
/// The most bytes of a too long body that are read and dropped, so that the client finishes sending
/// and reads the reply.
const DROPPED_BYTES_MAX: usize = 16 << 20;
/// How long the loop may take to answer: a command is answered when it is on disk.
const ANSWER_TIME: Duration = Duration::from_secs(25);

/// Path, method and meaning of each route.
const ROUTES: [(&str, Method, &str); 4] = [
    ("/", Method::GET, "this text"),
    ("/status", Method::GET, "what the crawl does, and what holds it up"),
    ("/why", Method::GET, "why the URL in ?url= was fetched, was not, or waits"),
    ("/commands", Method::POST, "carries out a command"),
];

/// The user at the other end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// The name of the user, for the log.
    pub(super) name: String,
    /// Whether the user may give commands.
    pub(super) is_allowed: bool,
}

/// A reply.
pub(super) type Page = Response<Full<Bytes>>;

/// Answers a request.
pub(super) async fn answer(request: hyper::Request<Incoming>, peer: &Peer, desk: &Desk) -> Page {
    if !peer.is_allowed {
        let text = format!("{} may not control this crawl; only its own user and root", peer.name);
        log::warn!("the control socket: {text}");
        return error(StatusCode::FORBIDDEN, &text);
    }
    let (head, body) = request.into_parts();
    let body = match read(body).await {
        Ok(body) => body,
        Err((status, text)) => return error(status, &text),
    };
    let path = head.uri.path();
    let Some((_, method, _)) = ROUTES.iter().find(|(known, ..)| *known == path) else {
        return error(StatusCode::NOT_FOUND, &format!("no route {path:?}; GET / lists them"));
    };
    if *method != head.method {
        let mut page = error(StatusCode::METHOD_NOT_ALLOWED, &format!("{path} takes {method}"));
        let allow = HeaderValue::from_str(method.as_str()).expect("a method is a valid value");
        page.headers_mut().insert(ALLOW, allow);
        return page;
    }
    match path {
        "/" => page(StatusCode::OK, "text/plain; charset=utf-8", usage()),
        "/status" => ask(Ask::Status, desk).await,
        "/why" => match url_of(head.uri.query().unwrap_or_default()) {
            Some(url) => ask(Ask::Why(url), desk).await,
            None => error(StatusCode::BAD_REQUEST, "no URL; write /why?url=, and the URL escaped"),
        },
        _ => match serde_json::from_slice::<Command>(&body) {
            Ok(Command::Reload { .. }) => reload(peer, desk).await,
            Ok(command) => ask(Ask::Order(Order::new(peer.name.as_str(), command)), desk).await,
            Err(fault) => error(StatusCode::BAD_REQUEST, &format!("no command: {fault}")),
        },
    }
}

/// Returns the URL that the query of a request asks about.
fn url_of(query: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(name, _)| name == "url").map(|(_, url)| url.into_owned())
}

/// Reads the body of a request.
async fn read(mut body: Incoming) -> Result<Vec<u8>, (StatusCode, String)> {
    let mut bytes = Vec::new();
    let mut dropped = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        if dropped == 0 && bytes.len() + data.len() <= BODY_BYTES_MAX {
            bytes.extend_from_slice(&data);
            continue;
        }
        dropped += data.len();
        if dropped > DROPPED_BYTES_MAX {
            break;
        }
    }
    if dropped > 0 {
        let text = format!("the body is longer than {BODY_BYTES_MAX} bytes; send several commands");
        return Err((StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    Ok(bytes)
}

/// Loads the configuration and has the loop adopt it.
async fn reload(peer: &Peer, desk: &Desk) -> Page {
    let mut reloader = desk.reloader.lock().await;
    match reloader.load() {
        Ok(reload) => {
            let page = ask(Ask::Reload(peer.name.clone(), Box::new(reload)), desk).await;
            if page.status() == StatusCode::OK {
                reloader.accept();
            }
            page
        }
        Err(why) => error(StatusCode::CONFLICT, &why),
    }
}

/// Has the loop answer, and writes its answer.
async fn ask(ask: Ask, desk: &Desk) -> Page {
    let (request, answer) = Request::new(ask);
    desk.post(request);
    match timeout(ANSWER_TIME, answer).await {
        Ok(Ok(Answer::Status(status))) => json(StatusCode::OK, &status),
        Ok(Ok(Answer::Why(why))) => json(StatusCode::OK, &why),
        Ok(Ok(Answer::Reply(Reply::Done { number, text }))) => {
            json(StatusCode::OK, &json!({ "done": true, "number": number, "text": text }))
        }
        Ok(Ok(Answer::Reply(Reply::Refused(why)))) => error(StatusCode::CONFLICT, &why),
        Ok(Err(_)) => error(StatusCode::SERVICE_UNAVAILABLE, "the crawl has ended"),
        Err(_) => {
            let text = "no answer within 25 s: the disk is slow or full; a command may still take \
                        effect";
            error(StatusCode::GATEWAY_TIMEOUT, text)
        }
    }
}

fn error(status: StatusCode, text: &str) -> Page {
    json(status, &json!({ "done": false, "error": text }))
}

fn json(status: StatusCode, value: &impl Serialize) -> Page {
    let mut text = serde_json::to_string_pretty(value).expect("plain values with names as keys");
    text.push('\n');
    page(status, "application/json", text)
}

fn page(status: StatusCode, kind: &'static str, text: String) -> Page {
    let mut page = Response::new(Full::new(Bytes::from(text)));
    *page.status_mut() = status;
    page.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    page
}

/// Explains the routes.
fn usage() -> String {
    let mut text = String::from("The control socket of a running crawl.\n\n");
    for (path, method, meaning) in ROUTES {
        text += &format!("  {:<5}{path:<11}{meaning}\n", method.as_str());
    }
    text += "\nExamples, in the job directory:\n\n  \
             curl --unix-socket control.sock http://localhost/status\n  \
             curl --unix-socket control.sock http://localhost/commands \\\n    \
             -d '{\"verb\":\"pause\",\"target\":\"host:a.example\"}'\n\n\
             `sted ctl` and `sted status` do the same; `sted ctl --help` explains the commands.\n";
    text
}
