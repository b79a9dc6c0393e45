//! What a page of the open web costs at least, each part by itself and nothing around it.
//!
//! The pages are those of an uncompressed archive that `sted` wrote, so that bytes and their number
//! are the same. The parts: *kernel*, a TCP connection over loopback on which a request is sent and
//! the reply read to its end; *tls*, the client's part of a resumed handshake, of a request, and of
//! decrypting the reply, in memory; *decode*, one pass of libdeflate; *write*, the records written
//! to a file in mebibytes. Only the CPU time of this thread counts: a second one serves.
//!
//! Pages whose coding isn't gzip are decoded at no cost, so such webs have no floor here.

use super::archive::{Record, read, split, timed, us, write};
use libdeflater::Decompressor;
use memchr::memmem;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

const NAME: &str = "floor.test";
const READ_BYTES: usize = 64 << 10;
const REQUEST: &[u8] = b"GET /a-path-of-usual-length/page.html HTTP/1.1\r\nHost: floor.test\r\n\
    User-Agent: a name and a contact, as the crawler sends them\r\nAccept: */*\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\r\n";

/// Microseconds of CPU a page for each part, one line of JSON.
pub(crate) fn run(files: &[&str]) -> io::Result<String> {
    let archives = read(files)?;
    let records: Vec<Record<'_>> = archives.iter().flat_map(|bytes| split(bytes)).collect();
    let replies: Vec<&[u8]> =
        records.iter().filter(|each| each.is_response).map(|each| each.block).collect();
    let kernel_ns = kernel(&replies)?;
    let tls_ns = tls(&replies)?;
    let (decode_ns, text_bytes) = timed(|| Ok(decode(&replies)))?;
    let beside = Path::new(files[0]).with_extension("floor");
    let (write_ns, ()) = timed(|| write(&beside, records.iter().map(|each| each.whole)))?;
    fs::remove_file(&beside)?;
    let pages = replies.len();
    let parts = [kernel_ns, tls_ns, decode_ns, write_ns].map(|ns| us(ns, pages));
    let [kernel, tls, decode, write] = parts;
    let sum: f64 = parts.iter().sum();
    Ok(format!(
        "{{\"pages\":{pages},\"kernel_us\":{kernel:.1},\"tls_us\":{tls:.1},\
         \"decode_us\":{decode:.1},\"write_us\":{write:.1},\"sum_us\":{sum:.1},\
         \"text_bytes\":{text_bytes}}}"
    ))
}

/// Fetches each reply over a connection of its own.
fn kernel(replies: &[&[u8]]) -> io::Result<u64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::scope(|scope| {
        let server = scope.spawn(move || -> io::Result<()> {
            for reply in replies {
                let (mut stream, _) = listener.accept()?;
                stream.read_exact(&mut [0; REQUEST.len()])?;
                stream.write_all(reply)?;
            }
            Ok(())
        });
        let mut room = vec![0; READ_BYTES];
        let (ns, bytes) = timed(|| {
            let mut bytes = 0;
            for _ in replies {
                let mut stream = TcpStream::connect(address)?;
                stream.write_all(REQUEST)?;
                loop {
                    let count = stream.read(&mut room)?;
                    if count == 0 {
                        break;
                    }
                    bytes += count;
                }
            }
            Ok(bytes)
        })?;
        server.join().expect("the server doesn't panic")?;
        assert_eq!(bytes, replies.iter().map(|reply| reply.len()).sum::<usize>());
        Ok(ns)
    })
}

/// Both ends of TLS 1.3, with the key exchange and the suite that `sted` offers first.
fn ends() -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let provider = Arc::new(CryptoProvider {
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        ..aws_lc_rs::default_provider()
    });
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the suite is one of 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the suite is one of 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("the key is the certificate's");
    server.ticketer = aws_lc_rs::Ticketer::new().expect("random bytes");
    (Arc::new(client), Arc::new(server))
}

/// Has each reply sent over a session of its own, in memory. Returns the client's time.
fn tls(replies: &[&[u8]]) -> io::Result<u64> {
    let (client, server) = ends();
    // The first handshake is a full one, and brings the tickets for the others.
    exchange(&client, &server, b"first", &mut Vec::new())?;
    let (mut ns, mut room) = (0, Vec::new());
    for reply in replies {
        ns += exchange(&client, &server, reply, &mut room)?;
        assert!(room == *reply, "the reply arrives as it was sent");
    }
    Ok(ns)
}

fn exchange(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
    reply: &[u8],
    room: &mut Vec<u8>,
) -> io::Result<u64> {
    let name = ServerName::try_from(NAME).expect("a host name");
    let mut far = ServerConnection::new(Arc::clone(server)).expect("a session");
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let mut ns = 0;
    room.clear();
    let (first_ns, mut near) = timed(|| {
        let mut near = ClientConnection::new(Arc::clone(client), name).expect("a session");
        near.write_tls(&mut up)?;
        Ok(near)
    })?;
    ns += first_ns;
    feed(&mut far, &mut up, &mut down)?;
    let (second_ns, ()) = timed(|| {
        feed(&mut near, &mut down, &mut up)?;
        near.writer().write_all(REQUEST)?;
        near.write_tls(&mut up).map(drop)
    })?;
    ns += second_ns;
    feed(&mut far, &mut up, &mut down)?;
    for part in reply.chunks(READ_BYTES / 2) {
        far.writer().write_all(part)?;
        while far.wants_write() {
            far.write_tls(&mut down)?;
        }
        let (part_ns, ()) = timed(|| {
            let mut rest = &down[..];
            while !rest.is_empty() {
                near.read_tls(&mut rest)?;
                let state = near.process_new_packets().map_err(io::Error::other)?;
                let start = room.len();
                room.resize(start + state.plaintext_bytes_to_read(), 0);
                near.reader().read_exact(&mut room[start..])?;
            }
            Ok(())
        })?;
        ns += part_ns;
        down.clear();
    }
    let (last_ns, ()) = timed(|| {
        near.send_close_notify();
        near.write_tls(&mut up)?;
        drop(near);
        Ok(())
    })?;
    Ok(ns + last_ns)
}

/// Gives one end all bytes that the other has sent, and collects its answer.
fn feed<Data, End>(end: &mut End, from: &mut Vec<u8>, to: &mut Vec<u8>) -> io::Result<()>
where
    End: std::ops::DerefMut<Target = rustls::ConnectionCommon<Data>>,
    Data: rustls::SideData,
{
    let mut rest = &from[..];
    while !rest.is_empty() {
        end.read_tls(&mut rest)?;
        end.process_new_packets().map_err(io::Error::other)?;
    }
    from.clear();
    while end.wants_write() {
        end.write_tls(to)?;
    }
    Ok(())
}

/// Decodes the gzip bodies. Returns the length of all text.
fn decode(replies: &[&[u8]]) -> usize {
    let (mut decompressor, mut room, mut bytes) = (Decompressor::new(), Vec::new(), 0);
    for reply in replies {
        let body = memmem::find(reply, b"\r\n\r\n").map_or(*reply, |end| &reply[end + 4..]);
        if !body.starts_with(b"\x1f\x8b") {
            continue;
        }
        let said = u32::from_le_bytes(*body.last_chunk().expect("a trailer")) as usize;
        room.resize(said.max(room.len()), 0);
        bytes += decompressor.gzip_decompress(body, &mut room[..said]).expect("a whole member");
    }
    bytes
}

/// Two pages come through all parts.
pub(crate) fn check() -> io::Result<()> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&b"text ".repeat(20_000))?;
    let body = encoder.finish()?;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let length = head.len() + body.len();
    let fields = format!("WARC/1.1\r\nWARC-Type: response\r\nContent-Length: {length}\r\n\r\n");
    let record = [fields.as_bytes(), head.as_bytes(), &body, b"\r\n\r\n"].concat();
    let path = std::env::temp_dir().join(format!("floor-{}.warc", std::process::id()));
    fs::write(&path, record.repeat(2))?;
    let line = run(&[path.to_str().expect("a plain path")])?;
    fs::remove_file(&path)?;
    assert!(line.contains("\"pages\":2,") && line.contains("\"text_bytes\":200000"), "{line}");
    Ok(())
}
