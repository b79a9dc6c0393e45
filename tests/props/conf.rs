//! Configuration files.
//!
//! Laws: an accepted file, printed and parsed again, gives the same configuration; a refused one
//! names its mistakes.

use super::Target;
use sted::conf::Conf;

pub const TARGET: Target = Target {
    samples: &[
        include_bytes!("../../conf/quickstart.toml"),
        include_bytes!("../../conf/polite.toml"),
        include_bytes!("../../conf/lab.toml"),
    ],
    words: &[
        "[politeness]\n",
        "[[",
        "]",
        " = ",
        "\"",
        "\n",
        "1s",
        "-1",
        "0",
        "1e9",
        "\"10s\"",
        "true",
        "[\"a\"]",
        "\"2MiB\"",
        "{",
        "'",
        "\\u0000",
        "burst = 1",
        "delay",
        "99999999999999999999",
        "[lab]\n",
        "\"http://\"",
        "#",
    ],
    check,
};

pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Conf::parse(&text, "a.toml") {
        Ok(conf) => {
            let printed = conf.render();
            match Conf::parse(&printed, "b.toml") {
                Ok(again) => assert_eq!(again, conf, "{printed}"),
                Err(mistakes) => panic!("{mistakes}\n{printed}"),
            }
        }
        Err(mistakes) => assert!(mistakes.to_string().contains("a.toml"), "{mistakes}"),
    }
}
