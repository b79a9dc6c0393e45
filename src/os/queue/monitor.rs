//! Asks the monitoring port of a server what its clients can't see: when it syncs to disk.

use super::failure::{Failure, all, block_on, trouble};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The longest reply that is read, in bytes.
const REPLY_BYTES_MAX: usize = 1 << 20;
/// The longest time for the exchange.
const PATIENCE: Duration = Duration::from_secs(10);

/// When a server syncs messages to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Before it acknowledges them.
    Always,
    /// At the end of each interval: what it has acknowledged since is lost when power fails.
    Each(Duration),
}

#[derive(Deserialize)]
struct Answer {
    config: Option<Config>,
}

/// The settings of JetStream; times are in nanoseconds.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    sync_always: bool,
    #[serde(default)]
    sync_interval: u64,
}

/// Asks the monitoring port when its server syncs.
///
/// # Errors
/// It can't be reached, or its answer makes no sense.
pub fn sync_of(monitor: SocketAddr) -> Result<Sync, Failure> {
    let failed = |how: String| trouble("cluster.monitor", format!("{monitor}: {how}"));
    block_on(async {
        let exchange = timeout(PATIENCE, get(monitor, "/jsz?config=1")).await;
        let bytes = exchange.map_err(|_| failed("no answer".to_owned()))?.map_err(failed)?;
        read(&bytes).map_err(failed)
    })
}

async fn get(from: SocketAddr, path: &str) -> Result<Bytes, String> {
    let stream = TcpStream::connect(from).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| all(&error))?;
    tokio::spawn(connection);
    let request = hyper::Request::get(path).header(HOST, from.to_string());
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| all(&error))?;
    let response = sender.send_request(request).await.map_err(|error| all(&error))?;
    let body = Limited::new(response.into_body(), REPLY_BYTES_MAX).collect().await;
    Ok(body.map_err(|error| error.to_string())?.to_bytes())
}

fn read(answer: &[u8]) -> Result<Sync, String> {
    let answer: Answer = serde_json::from_slice(answer)
        .map_err(|error| format!("it isn't the monitoring port of a NATS server: {error}"))?;
    let config = answer.config.ok_or("the server's JetStream isn't on")?;
    Ok(match config.sync_always {
        true => Sync::Always,
        false => Sync::Each(Duration::from_nanos(config.sync_interval)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let always = br#"{"config":{"sync_interval":120000000000,"sync_always":true}}"#;
        assert_eq!(read(always), Ok(Sync::Always));
        let timed = br#"{"now":"x","config":{"sync_interval":120000000000}}"#;
        assert_eq!(read(timed), Ok(Sync::Each(Duration::from_secs(120))));
        for answer in [&b""[..], b"{}", b"<html>", b"{\"config\":{\"sync_interval\":-1}}"] {
            assert!(read(answer).is_err());
        }
    }
}
