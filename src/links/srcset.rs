//! Parses the URLs of a `srcset` attribute.
//!
//! Source: the HTML standard, "parsing a srcset attribute", without the check of descriptors: a
//! browser drops a candidate whose descriptors are invalid, this crawler fetches it.

use super::find::is_space;

/// Iterates over the URLs of a `srcset` value, in which character references are decoded already.
pub(super) struct Candidates<'a> {
    rest: &'a [u8],
}

impl<'a> Candidates<'a> {
    pub(super) fn of(list: &'a [u8]) -> Self {
        Self { rest: list }
    }
}

impl<'a> Iterator for Candidates<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let skip = self.rest.iter().position(|byte| !is_space(*byte) && *byte != b',')?;
        let text = &self.rest[skip..];
        let end = text.iter().position(|byte| is_space(*byte)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let commas = word.iter().rev().take_while(|byte| **byte == b',').count();
        self.rest = if commas > 0 { rest } else { &rest[descriptors(rest)..] };
        Some(&word[..word.len() - commas])
    }
}

/// Returns the length of the descriptors of a candidate, which end at the first comma outside
/// parentheses.
fn descriptors(text: &[u8]) -> usize {
    let mut inside = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'(' => inside = true,
            b')' => inside = false,
            b',' if !inside => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates() {
        let cases: [(&str, &[&str]); 8] = [
            ("a.png", &["a.png"]),
            ("a.png 1x, b.png 2x", &["a.png", "b.png"]),
            ("a.png, b.png", &["a.png", "b.png"]),
            ("a,b.png 1x,c", &["a,b.png", "c"]),
            ("  ,, a 100w ,b,,", &["a", "b"]),
            ("a (x, y) 1x, b", &["a", "b"]),
            (", ,", &[]),
            ("data:,x 1x", &["data:,x"]),
        ];
        for (list, expected) in cases {
            let text = |bytes| std::str::from_utf8(bytes).expect("ASCII");
            let urls: Vec<_> = Candidates::of(list.as_bytes()).map(text).collect();
            assert_eq!(urls, expected, "{list}");
        }
    }
}
