//! Each cell of the table, and what else is in a value.

use super::*;
use crate::ground::random::Random;

/// Returns the standings for search, archive, mining, training and input: `+` allowed, `-`
/// reserved, `.` silent.
fn row(consent: Consent) -> String {
    let letter = |purpose| match consent.standing(purpose) {
        Standing::Silent => '.',
        Standing::Allowed => '+',
        Standing::Reserved => '-',
    };
    Purpose::ALL.map(letter).into_iter().collect()
}

#[test]
fn content_signal() {
    for (value, expected) in [
        ("search=yes", "+...."),
        ("search=no", "-...."),
        ("ai-train=yes", "...+."),
        ("ai-train=no", "...-."),
        ("ai-input=yes", "....+"),
        ("ai-input=no", "....-"),
        ("search=yes, ai-train=no", "+..-."),
        (" Search = YES ,AI-Train=No", "+..-."),
        ("search=yes, search=no", "-...."),
        ("use=reference, ai-train=no;x", "....."),
        ("search, ai-train, =no, search=maybe", "....."),
        ("", "....."),
    ] {
        assert_eq!(row(Consent::of_content_signal(value.as_bytes())), expected, "{value}");
    }
}

#[test]
fn content_usage() {
    for (value, expected) in [
        ("search=y", "+...."),
        ("search=n", "-...."),
        ("train-ai=y", "...+."),
        ("train-ai=n", "...-."),
        ("ai-use=y", "....+"),
        ("ai-use=n", "....-"),
        ("bots=y", "+++++"),
        ("bots=n", "-----"),
        ("train-genai=n", "...-."),
        // The narrower category counts.
        ("bots=n, search=y", "+----"),
        // The strictest counts.
        ("train-ai=n, train-genai=y", "...-."),
        ("train-ai=y, train-genai=n", "...-."),
        ("train-genai=y, bots=n", "---+-"),
        ("train-ai=n;exceptions=2, search=y", "+..-."),
        // The last value counts; what isn't y or n says nothing.
        ("train-ai=y, train-ai=n", "...-."),
        ("train-ai=?0, search=\"y\", ai-use=(y), x=n", "....."),
        ("train-ai=n search=y", "....."),
        ("", "....."),
    ] {
        assert_eq!(row(Consent::of_content_usage(value.as_bytes())), expected, "{value}");
    }
}

#[test]
fn tdm_reservation() {
    for (value, expected) in [(" 1 ", "..---"), ("0", "..+++"), ("2", "....."), ("", ".....")] {
        assert_eq!(row(Consent::of_tdm_reservation(value.as_bytes())), expected, "{value}");
    }
}

#[test]
fn directives() {
    for (name, page, image) in [
        ("noindex", "-....", "-...."),
        ("None", "-....", "-...."),
        ("noarchive", ".-...", ".-..."),
        ("noai", "...--", "...--"),
        ("noimageai", ".....", "...--"),
        ("nofollow", ".....", "....."),
        ("nosnippet", ".....", "....."),
        ("", ".....", "....."),
    ] {
        assert_eq!(row(Consent::of_directive(name.as_bytes(), false)), page, "{name}");
        assert_eq!(row(Consent::of_directive(name.as_bytes(), true)), image, "{name}, an image");
    }
}

/// Law: the strictest counts, in any order, and nothing lifts a reservation.
#[test]
fn the_strictest_counts() {
    let [no, yes] = ["search=no", "search=yes"].map(|it| Consent::of_content_signal(it.as_bytes()));
    let silent = Consent::default();
    assert_eq!((no | yes, yes | no, no | silent, silent | no), (no, no, no, no));
    assert_eq!((yes | silent, silent | silent), (yes, silent));
}

/// Law: no bytes panic.
#[test]
fn any_bytes_are_read() {
    let mut random = Random(7);
    let words = ["search", "=y", "=no", ", ", "train-ai=n", "bots", "\0", ";", "(", "\"", "\u{e9}"];
    for _ in 0..20_000 {
        let text: String = (0..random.below(8)).map(|_| random.pick(&words)).collect();
        let mut bytes = text.into_bytes();
        if !bytes.is_empty() && random.one_in(2) {
            let at = random.below(bytes.len());
            bytes[at] = random.word() as u8;
        }
        let _ = Consent::of_content_signal(&bytes) | Consent::of_content_usage(&bytes);
        let _ = Consent::of_tdm_reservation(&bytes);
    }
}
