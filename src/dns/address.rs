//! Decides which IP addresses a crawl may connect to: global ones, and those that the configuration
//! lists.
//!
//! The resolved address of every hop of a redirect chain is checked right before the connection is
//! requested, so that neither a redirect nor a name whose address changes can reach an internal
//! network. IPv6 addresses that contain an IPv4 address are checked by that one (design D13).
//! Source: the special-purpose registries of RFC 6890 and their updates.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses that share their first bits, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first address of the block: all bits after the prefix are zero.
    address: IpAddr,
    /// The number of bits that all addresses of the block share: 0 to 32 for IPv4, 0 to 128 for
    /// IPv6.
    prefix_bits: u32,
}

impl Block {
    /// Creates the block of all addresses that share their first `prefix_bits` bits with `address`;
    /// `None` if the address has fewer bits.
    pub fn new(address: IpAddr, prefix_bits: u32) -> Option<Self> {
        let width = width_bits(address);
        (prefix_bits <= width).then(|| Self { address: cut(address, prefix_bits), prefix_bits })
    }

    /// Returns whether the block contains the address. An IPv6 block never contains an IPv4
    /// address, so an IPv4 address that is mapped to IPv6 must be converted to IPv4 before.
    pub fn contains(&self, address: IpAddr) -> bool {
        width_bits(address) == width_bits(self.address)
            && cut(address, self.prefix_bits) == self.address
    }

    /// Returns the first address of the block.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the number of bits that all addresses of the block share.
    pub fn prefix_bits(&self) -> u32 {
        self.prefix_bits
    }

    /// Parses a block such as `10.0.0.0/8` or `fd00::/8`, or a single address.
    ///
    /// # Errors
    /// Returns a message that says what is wrong and how to write the block.
    pub fn read(text: &str) -> Result<Self, String> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| {
            format!("{text:?} is not an address range; write it like \"10.0.0.0/8\" or \"::1\"")
        })?;
        let width = width_bits(address);
        let bits = bits.map_or(Ok(width), |bits| {
            let plain = bits.bytes().all(|byte| byte.is_ascii_digit());
            bits.parse().ok().filter(|&bits| plain && bits <= width).ok_or_else(|| {
                format!("{text:?}: the number after the slash must be from 0 to {width}")
            })
        })?;
        let block = Self { address: cut(address, bits), prefix_bits: bits };
        if block.address != address {
            return Err(format!("{text:?} has bits set beyond its prefix; write \"{block}\""));
        }
        Ok(block)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

fn width_bits(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Returns the address with all but its first `bits` bits cleared.
fn cut(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

/// The addresses to which a crawl may connect, besides the global ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Blocks that are allowed although they are not global.
    pub allowed: Vec<Block>,
    /// Blocks that are refused, even if they are global or allowed.
    pub refused: Vec<Block>,
}

impl Default for Rules {
    fn default() -> Self {
        let refused = METADATA.map(|text| Block::read(text).expect("the list is right"));
        Self { allowed: Vec::new(), refused: refused.into() }
    }
}

/// The metadata services of cloud providers, which return data of the machine that asks, including
/// secrets: Azure, most others, Alibaba, Oracle, Equinix, AWS, Google. Some of their addresses are
/// global; the others would be reachable if a range around them were allowed.
const METADATA: [&str; 7] = [
    "168.63.129.16/32",
    "169.254.169.254/32",
    "100.100.100.200/32",
    "192.0.0.192/32",
    "192.80.8.124/32",
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
];

impl Rules {
    /// Returns whether the crawl may connect to `address`. An IPv6 address that contains an IPv4
    /// address is refused if either address is refused, and allowed if the contained one is
    /// allowed.
    pub fn allow(&self, address: IpAddr) -> bool {
        let carried = carried_ipv4(address);
        let judged = carried.map_or(address, IpAddr::V4);
        let has = |blocks: &[Block]| {
            blocks.iter().any(|block| block.contains(address) || block.contains(judged))
        };
        !has(&self.refused) && (is_global(judged) || has(&self.allowed))
    }
}

/// Returns the IPv4 address that an IPv6 address contains, if it is mapped, compatible, NAT64, 6to4
/// or that of a Teredo client; otherwise `None`.
fn carried_ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return None };
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0, 0, 0, 0, 0xffff, 0) => Some(join(g, h)),
        (0, 0, 0, 0, 0, 0) if (g, h) != (0, 0) && (g, h) != (0, 1) => Some(join(g, h)),
        (0x64, 0xff9b, 0, 0, 0, 0) => Some(join(g, h)),
        (0x2002, ..) => Some(join(b, c)),
        (0x2001, 0, ..) => Some(join(!g, !h)),
        _ => None,
    }
}

fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_global_v4(v4),
        IpAddr::V6(v6) => is_global_v6(v6),
    }
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127, ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18..=19, _)
            | (198, 51, 100)
            | (203, 0, 113)
            | (224..=255, ..)
    )
}

/// Returns whether an IPv6 address is global: in 2000::/3, without its special-purpose blocks.
fn is_global_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let unicast = a & 0xe000 == 0x2000;
    let special = matches!((a, b), (0x2001, 0..=0x01ff | 0x0db8) | (0x3fff, 0..=0x0fff));
    unicast && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_global_is_refused() {
        let refused = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.0.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::9",
            "ff02::1",
            "2001:db8::1",
            "3fff::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:0:1:2:3:4:80ff:fffe",
            "64:ff9b:1::1",
            "100::1",
            "::ffff:0:7f00:1",
        ];
        for text in refused {
            assert!(!Rules::default().allow(text.parse().unwrap()), "{text}");
        }
        let allowed = [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ];
        for text in allowed {
            assert!(Rules::default().allow(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn the_config_opens_what_it_lists_and_no_more() {
        let blocks = |texts: &[&str]| -> Vec<Block> {
            texts.iter().map(|text| Block::read(text).unwrap()).collect()
        };
        let allowed = blocks(&["127.0.0.0/8", "fd00::/8", "169.254.0.0/16"]);
        let rules = Rules { allowed, ..Rules::default() };
        for text in ["127.9.9.9", "::ffff:127.0.0.1", "fd12::9"] {
            assert!(rules.allow(text.parse().unwrap()), "{text}");
        }
        let metadata = ["169.254.169.254", "fd00:ec2::254", "168.63.129.16", "::ffff:a83f:8110"];
        for text in ["10.0.0.1", "fc00::1", "::1"].iter().chain(&metadata) {
            assert!(!rules.allow(text.parse().unwrap()), "{text}");
        }
        let refused = blocks(&["93.184.216.0/24", "2606:4700::/32", "127.0.0.1"]);
        let rules = Rules { refused, ..rules };
        for text in ["93.184.216.34", "64:ff9b::5db8:d822", "2606:4700::1111", "127.0.0.1"] {
            assert!(!rules.allow(text.parse().unwrap()), "{text}: refused wins");
        }
        assert!(rules.allow("168.63.129.16".parse().unwrap()), "a list replaces the default");
    }

    #[test]
    fn blocks_are_read_and_contain() {
        let inside = |block: &str, address: &str| {
            let address = address.parse().expect("test address");
            Block::read(block).expect("test block").contains(address)
        };
        assert!(inside("10.0.0.0/8", "10.255.255.255"));
        assert!(!inside("10.0.0.0/8", "11.0.0.0"));
        assert!(inside("0.0.0.0/0", "203.0.113.9"), "a prefix of no bits holds everything");
        assert!(!inside("0.0.0.0/0", "::1"), "of its own family");
        assert!(inside("127.0.0.1", "127.0.0.1") && !inside("127.0.0.1", "127.0.0.2"));
        assert!(inside("fd00::/8", "fdff::1") && !inside("fd00::/8", "fe80::1"));
        assert!(inside("::/0", "::1"));
        for (text, expected) in [
            ("10.1.2.3/8", "write \"10.0.0.0/8\""),
            ("10.0.0.0/33", "0 to 32"),
            ("::1/129", "0 to 128"),
            ("10.0.0.0/+8", "0 to 32"),
            ("10.0.0.0/", "0 to 32"),
            ("localhost", "not an address range"),
            ("10.0.0/8", "not an address range"),
        ] {
            let error = Block::read(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        let text = Block::read("10.0.0.0/8").expect("valid").to_string();
        assert_eq!(text, "10.0.0.0/8");
        assert_eq!(Block::new(IpAddr::from([10, 1, 2, 3]), 8), Block::read(&text).ok());
        assert_eq!(Block::new(IpAddr::from([10, 1, 2, 3]), 33), None);
    }
}
