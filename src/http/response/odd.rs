//! Parses malformed heads the way browsers do.
//!
//! Chromium (`HttpResponseHeaders`, `HttpStreamParser`) and Firefox (`nsHttpResponseHead`) skip an
//! invalid field line: one without a colon, without a name, with a name that is no token, or with
//! white space before the first name. They accept a status line whose version is missing, in lower
//! case, or not the requested one. This module does the same, on a copy of the head; `httparse`
//! skips the lines.
//!
//! Still refused are NUL in a field, a status that isn't three digits (Chromium reads it as 200;
//! six other clients refuse it), and a version with more digits than HTTP ever had.
//!
//! Source: RFC 9112 sections 2.2, 4 and 5; RFC 9110 sections 2.5 and 5.5; `net/http` of Chromium.

use super::Broken;

/// The maximum number of junk bytes before a status line, as in Chromium; for example a byte order
/// mark.
pub(super) const JUNK_BYTES_MAX: usize = 4;

/// The position at which a head begins in the bytes received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// The head begins after so many bytes of junk.
    At(usize),
    /// More bytes are needed to find the beginning. `is_likely` is true if the bytes so far begin
    /// like a head.
    Unknown { is_likely: bool },
    /// No head begins in these bytes: the reply is not HTTP.
    No,
}

/// Finds the beginning of the head, which is its status line.
pub(super) fn find_start(bytes: &[u8]) -> Start {
    for junk in 0..=JUNK_BYTES_MAX {
        let Some(rest) = bytes.get(junk..).filter(|rest| !rest.is_empty()) else {
            return Start::Unknown { is_likely: false };
        };
        if junk > 0 && bytes[junk - 1] == 0 {
            return Start::No;
        }
        let name = &rest[..rest.len().min(4)];
        let is_separated = rest.get(4).is_none_or(|byte| b"/ \t\r\n".contains(byte));
        if name.eq_ignore_ascii_case(&b"HTTP"[..name.len()]) && is_separated {
            let is_likely = junk == 0;
            return if rest.len() > 4 { Start::At(junk) } else { Start::Unknown { is_likely } };
        }
    }
    Start::No
}

/// The parsed status line of a malformed head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatusLine {
    /// The length of the status line with its line end, in bytes.
    pub(super) len: usize,
    /// The minor version of HTTP by which the reply is read: 1 for HTTP/1.1 to 1.9, otherwise 0.
    pub(super) minor: u8,
    pub(super) status: [u8; 3],
    /// True if the status line is valid. Minor versions above 1 are, because RFC 9110 section 2.5
    /// says to read them as 1.1.
    pub(super) is_valid: bool,
}

impl StatusLine {
    /// Parses the status line at the start of a head, which begins with `HTTP` in any case.
    pub(super) fn read(head: &[u8]) -> Result<Self, Broken> {
        let len = memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1);
        let line = head[4..len].trim_ascii_end();
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let (version, rest) = line.split_at(line.iter().position(blank).unwrap_or(line.len()));
        let minor = match version {
            [b'/', b'1', b'.', minor @ b'1'..=b'9'] => minor - b'0',
            [] | [b'/'] | [b'/', b'1'..=b'9'] | [b'/', b'1'..=b'9', b'.', b'0'..=b'9'] => 0,
            _ => return Err(Broken::Head("bad version")),
        };
        let text = rest.trim_ascii_start();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let ends_well = text.get(digits).is_none_or(|byte| *byte >= b' ' || *byte == b'\t');
        let status = <[u8; 3]>::try_from(&text[..digits]).ok().filter(|_| ends_well);
        let status = status.ok_or(Broken::Head("bad status line"))?;
        let is_spaced = text.get(digits).is_none_or(|byte| *byte == b' ');
        let is_printed = rest.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
        let is_valid = minor > 0 && head.starts_with(b"HTTP") && is_spaced && is_printed;
        Ok(Self { len, minor: minor.min(1), status, is_valid })
    }

    /// Returns a copy of `head` with a valid status line; the rest is unchanged.
    pub(super) fn rewrite(self, head: &[u8]) -> Vec<u8> {
        let minor = [b'0' + self.minor];
        [&b"HTTP/1."[..], &minor, b" ", &self.status, b"\r\n", &head[self.len..]].concat()
    }
}

/// Replaces characters that are not allowed in a field, in the lines after the status line. In
/// values a CR without LF and control characters become spaces (RFC 9112 section 2.2, RFC 9110
/// section 5.5). In a name a CR becomes another forbidden character, so that the line is skipped
/// and not split.
pub(super) fn mask_fields(fields: &mut [u8]) -> Result<(), Broken> {
    if fields.contains(&0) {
        return Err(Broken::Head("NUL in a field"));
    }
    for line in fields.split_inclusive_mut(|&byte| byte == b'\n') {
        let is_fold = matches!(line.first(), Some(b' ' | b'\t'));
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let value = if is_fold { 0 } else { colon };
        for at in 0..line.len() {
            let lone_cr = line[at] == b'\r' && line.get(at + 1) != Some(&b'\n');
            if at < value && lone_cr {
                line[at] = 1;
            } else if at >= value
                && (lone_cr || (line[at].is_ascii_control() && !b"\t\r\n".contains(&line[at])))
            {
                line[at] = b' ';
            }
        }
    }
    Ok(())
}
