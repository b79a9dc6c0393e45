//! The registrable domain of a host: what one can buy, below which one party is responsible.
//!
//! By the public suffix list, its private part included: `a.github.io` and `b.github.io` are
//! different parties. A name below a suffix that the list doesn't know has its last two labels.
//! Cost: about 30 ns, no allocation. Source: publicsuffix.org/list.

use super::ip_of_host;

/// The registrable domain of a canonical host; the host itself if it is an address, a public
/// suffix, or a single label. A trailing dot is dropped from a name.
pub fn registrable(host: &str) -> &str {
    if ip_of_host(host).is_some() {
        return host;
    }
    psl::domain_str(host).unwrap_or_else(|| host.strip_suffix('.').unwrap_or(host))
}

/// Whether a name is a public suffix, below which anybody may have a host; a single label is one.
pub fn is_suffix(name: &str) -> bool {
    !is_address(name) && psl::suffix_str(name) == Some(name)
}

/// Whether a canonical host is an address.
pub fn is_address(host: &str) -> bool {
    ip_of_host(host).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

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
