//! Validates texts: names, addresses, URLs, patterns. Every error says what to write instead.

use super::{Hostile, mistake};
use crate::url::domain::is_within;
use std::net::{IpAddr, SocketAddr};

/// Host names reserved for documentation and tests, at which nobody can be reached.
const PLACEHOLDERS: [&str; 7] =
    ["example.com", "example.net", "example.org", "example", "invalid", "localhost", "test"];

/// Checks that a text may become part of file names.
pub(super) fn name(text: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if text.is_empty() || text.len() > 64 || !text.bytes().all(fits) || text.starts_with('.') {
        return Err(format!(
            "{text:?} can't be part of a file name; write 1 to 64 letters, digits, '.', '_' or \
             '-', not beginning with '.'"
        ));
    }
    Ok(())
}

/// Checks the product token of a crawler (RFC 9309), the name by which robots.txt addresses it.
pub(super) fn product(text: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphabetic() || b"_-".contains(&byte);
    if text.is_empty() || text.len() > 64 || !text.bytes().all(fits) {
        return Err(format!(
            "{text:?} is not a product token: robots.txt allows letters, '_' and '-' only (RFC \
             9309, 2.2.1); write it like \"sted\""
        ));
    }
    Ok(())
}

/// Checks how the operator can be contacted. The text may be empty, because a crawl of the lab (a
/// local synthetic web) needs no contact.
pub(super) fn contact(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    if text.starts_with("http://") || text.starts_with("https://") {
        let url = url::Url::parse(text).map_err(|error| format!("{text:?}: {error}"))?;
        header_text(text)?;
        return reached(text, url.host_str().unwrap_or(""));
    }
    mail(text.strip_prefix("mailto:").unwrap_or(text)).map_err(|_| {
        format!(
            "{text:?} is neither a URL nor a mail address; write it like \
             \"https://your.site/crawler\" or \"crawler@your.site\""
        )
    })?;
    reached(text, text.rsplit('@').next().unwrap_or(""))
}

fn reached(text: &str, host: &str) -> Result<(), String> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match PLACEHOLDERS.into_iter().find(|name| is_within(&host, name)) {
        Some(name) => Err(format!(
            "{text:?} reaches no one: {name} is reserved for documentation and tests; write your \
             own address"
        )),
        None => Ok(()),
    }
}

/// Checks a mail address: a user, an at sign, a host, and no character that could end a header
/// field.
pub(super) fn mail(text: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"()<>,;:\\\"[]".contains(&byte);
    let parts = text.split_once('@');
    let whole = |(user, host): (&str, &str)| {
        !user.is_empty() && !host.is_empty() && !host.contains('@') && !host.starts_with('.')
    };
    if !parts.is_some_and(whole) || !text.bytes().all(fits) {
        return Err(format!("{text:?} is not a mail address; write it like \"crawler@your.site\""));
    }
    Ok(())
}

/// Checks the value of a header field: printable ASCII, no blanks at its ends.
pub(super) fn header_text(text: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if text.is_empty() || text.trim() != text || !text.bytes().all(fits) || text.len() > 1_024 {
        return Err(format!(
            "{text:?} is not the value of a header field; write up to 1,024 printable ASCII \
             characters, without blanks at the ends"
        ));
    }
    Ok(())
}

/// The length of the longest value of an additional header field, in bytes. Tokens of logins take
/// some thousand.
const HEADER_BYTES_MAX: usize = 8 << 10;

/// Checks an additional header field. No message has its value, which may be a secret.
pub(super) fn header(text: &str) -> Result<(), String> {
    let (name, value) = text.split_once(':').ok_or_else(|| {
        "a header field has no colon; write it like \"Accept-Language: en\"".to_owned()
    })?;
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(format!(
            "{name:?} is not the name of a header field; write it like \"Accept-Language: en\""
        ));
    }
    let own = [
        "host",
        "user-agent",
        "from",
        "accept",
        "accept-encoding",
        "connection",
        "keep-alive",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "range",
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
        "if-range",
    ];
    if own.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("{name} is set by the crawler and can't be set here; remove it"));
    }
    let value = value.trim();
    let fits = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if value.is_empty() || !value.bytes().all(fits) || value.len() > HEADER_BYTES_MAX {
        return Err(format!(
            "the value of {name} can't be sent; write up to 8,192 printable ASCII characters"
        ));
    }
    Ok(())
}

/// Checks a seed: an absolute http(s) URL, or a bare host with or without a path.
pub(super) fn seed(text: &str) -> Result<(), String> {
    if text.contains("://") { absolute(text) } else { absolute(&format!("http://{text}")) }
        .map_err(|_| format!("{text:?} is not a URL; write it like \"https://host.name/\""))
}

/// Checks an absolute http(s) URL.
pub(super) fn absolute(text: &str) -> Result<(), String> {
    let blank = text.chars().any(|c| c.is_whitespace() || c.is_control());
    let known = text.starts_with("http://") || text.starts_with("https://");
    if blank || !known || url::Url::parse(text).is_err() {
        return Err(format!(
            "{text:?} is not an absolute URL; write it like \"https://host.name/a/\""
        ));
    }
    Ok(())
}

/// Checks a host name, a domain name or an IP address, each without a port.
pub(super) fn host(text: &str) -> Result<(), String> {
    let wrong = || {
        format!(
            "{text:?} is not a host name; write it in lower case, without scheme, port or path, \
             like \"www.host.name\""
        )
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]".contains(&byte);
    if !text.bytes().all(fits) {
        return Err(wrong());
    }
    let parsed = url::Url::parse(&format!("http://{text}/")).map_err(|_| wrong())?;
    // A name that the URL parser changes would never equal the host of a URL.
    if parsed.host_str() == Some(text) && parsed.port().is_none() && parsed.path() == "/" {
        Ok(())
    } else {
        Err(wrong())
    }
}

/// Checks a regular expression, which is matched in linear time.
pub(super) fn pattern(text: &str) -> Result<(), String> {
    regex::Regex::new(text).map(drop).map_err(|error| {
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or("").trim_start_matches("error: ").to_owned();
        format!("{text:?} is not a regular expression: {reason}")
    })
}

/// Checks the name of a query parameter, which may end in `*` for all names that begin so.
pub(super) fn param(text: &str) -> Result<(), String> {
    let stem = text.strip_suffix('*').unwrap_or(text);
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"*&=#".contains(&byte);
    if stem.is_empty() || !stem.bytes().all(fits) {
        return Err(format!(
            "{text:?} is not the name of a parameter; write it like \"utm_*\" or \"gclid\""
        ));
    }
    Ok(())
}

/// Parses the address of a name server, with or without a port.
pub(super) fn server(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse::<SocketAddr>().ok().filter(|address| address.port() > 0);
    let bare = || text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 53));
    with_port.or_else(bare).ok_or_else(|| {
        format!(
            "{text:?} is not the address of a name server; write it like \"9.9.9.9\", \
             \"127.0.0.1:5353\" or \"[::1]:53\""
        )
    })
}

/// Parses the address and port of a listener. Port 0 is any free one.
pub(super) fn listener(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "{text:?} is not an address with a port; write it like \"127.0.0.1:9600\" or \
             \"[::1]:9600\""
        )
    })
}

/// Checks the name of a shared crawl or of a node of one.
pub(super) fn node(text: &str) -> Result<(), String> {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    if !(1..=32).contains(&text.len()) || !text.bytes().all(fits) {
        return Err(format!("{text:?} is no name here; write 1 to 32 of a-z, 0-9 and '-'"));
    }
    Ok(())
}

/// Checks the URL of a NATS server. A password doesn't belong into it: the configuration is copied
/// into the job.
pub(super) fn queue(text: &str) -> Result<(), String> {
    let rest = text.strip_prefix("nats://").or_else(|| text.strip_prefix("tls://"));
    match rest {
        Some(rest) if rest.contains('@') => Err(format!(
            "{text:?} has a password or token in it, which would be copied into the job; use \
             cluster.user and password_file, or credentials_file"
        )),
        Some(rest) if !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(())
        }
        _ => Err(format!(
            "{text:?} is not the URL of a NATS server; write it like \"nats://127.0.0.1:4222\""
        )),
    }
}

/// Checks one segment of a URL's path: the text between two slashes.
pub(super) fn segment(text: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"/?#\"".contains(&byte);
    if text.is_empty() || !text.bytes().all(fits) {
        return Err(format!("{text:?} is not a path segment; write it like \"index.html\""));
    }
    Ok(())
}

/// Checks a word of a command: any text but the empty one, without NUL.
pub(super) fn word(text: &str) -> Result<(), String> {
    if text.is_empty() || text.contains('\0') {
        return Err(format!("{text:?} can't be a word of a command"));
    }
    Ok(())
}

/// Checks the name of a configuration key, written with its section: `section.key`.
pub(super) fn key(text: &str) -> Result<(), String> {
    let whole = |(section, name): (&str, &str)| !section.is_empty() && !name.is_empty();
    if text.rsplit_once('.').is_some_and(whole) {
        return Ok(());
    }
    Err(format!("{text:?} is not the name of a key; write it like \"connections.open_max\""))
}

/// Checks the name of a kind of hostile host, or of a group of kinds.
pub(super) fn hostile(text: &str) -> Result<(), String> {
    if text == "quick" || text == "all" || Hostile::named(text).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = Hostile::ALL.into_iter().map(Hostile::name).collect();
    Err(match mistake::nearest(text, names.iter().copied()) {
        Some(near) => format!("{text:?} is not a kind of hostile host; did you mean \"{near}\"?"),
        None => format!("{text:?} is not a kind of hostile host; they are {}", names.join(", ")),
    })
}

/// Checks an https origin: scheme, host and perhaps a port, as browsers write it (RFC 6454 6.2).
pub(super) fn origin(text: &str) -> Result<(), String> {
    let url = url::Url::parse(text).ok().filter(|url| url.scheme() == "https");
    if url.is_some_and(|url| url.origin().ascii_serialization() == text) {
        return Ok(());
    }
    Err(format!(
        "{text:?} is no https origin; write it like \"https://crawler.example\", without a path"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_as_browsers_do() {
        for (text, is) in [
            ("https://crawler.example", true),
            ("https://crawler.example:8443", true),
            ("https://crawler.example/", false),
            ("https://crawler.example:443", false),
            ("https://Crawler.example", false),
            ("http://crawler.example", false),
            ("https://a.example/\"b", false),
            ("crawler.example", false),
            ("", false),
        ] {
            assert_eq!(origin(text).is_ok(), is, "{text:?}");
        }
    }
}
