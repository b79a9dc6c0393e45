//! Scripts, and a player of them that receives any bytes.
//!
//! Laws: a mistake names a line of the script; a player comes to a stop, whatever it receives.

use super::Target;
use sted::ground::time::Instant;
use sted::study::web::script::{Play, Player, Script};

pub const TARGET: Target = Target {
    samples: &[
        include_bytes!("../scenarios/plain.txt"),
        include_bytes!("../scenarios/redirects.txt"),
        include_bytes!("../scenarios/cut-pipeline.txt"),
        include_bytes!("../scenarios/names.txt"),
        include_bytes!("../scenarios/retry-after.txt"),
        b"host a.test\non connection\nrequest /\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
    ],
    words: &[
        "\nhost a.test\n",
        "\non connection\n",
        "request /",
        "reply 200 ",
        "raw ",
        "\\r\\n",
        "\\x",
        "fill 9",
        "wait 1s",
        "close\n",
        "reset\n",
        "mute\n",
        "expect ",
        "after 2",
        "seed http://",
        "GET / HTTP/1.1\r\n\r\n",
        "links /a",
        "to /b",
        "#",
        "refuse a.test",
    ],
    check,
};

pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // Authors of scripts, who are trusted, choose how much is filled in: no gigabytes here.
    let is_large = |word: &str| word.len() > 6 && word.bytes().all(|byte| byte.is_ascii_digit());
    if text.split_whitespace().any(is_large) {
        return;
    }
    let script = match Script::parse(&text) {
        Ok(script) => script,
        Err(mistake) => {
            assert!((1..=text.lines().count()).contains(&mistake.line), "{mistake:?}");
            assert!(!mistake.reason.is_empty());
            return;
        }
    };
    for steps in script.hosts.values().flatten() {
        let mut player = Player::new(steps);
        let mut now = Instant::ZERO;
        player.received(bytes);
        // Each step is played once, and waited for once.
        for _ in 0..=2 * steps.len() {
            match player.play(now) {
                Play::Send(_) => {}
                Play::WaitUntil(until) => {
                    assert!(until > now);
                    now = until;
                }
                Play::WaitForBytes | Play::Close | Play::Reset => break,
            }
        }
        assert!(!matches!(player.play(now), Play::Send(_) | Play::WaitUntil(_)));
    }
}
