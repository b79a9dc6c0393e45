//! The bodies of `tests/props` for libFuzzer: `make fuzz` runs each of them.

#[path = "../props/coding.rs"]
pub mod coding;
#[path = "../props/conf.rs"]
pub mod conf;
#[path = "../props/links.rs"]
pub mod links;
#[path = "../props/log.rs"]
pub mod log;
#[path = "../props/response.rs"]
pub mod response;
#[path = "../props/robots.rs"]
pub mod robots;
#[path = "../props/script.rs"]
pub mod script;
#[path = "../props/seeds.rs"]
pub mod seeds;
#[path = "../props/target.rs"]
mod target;
#[path = "../props/url.rs"]
pub mod url;

pub use target::Target;
use target::seeded;

/// Writes what fuzzing begins with into the folder that `STED_FUZZ_SAMPLES` names: the samples of
/// the target, and its words as a dictionary beside them.
pub fn write_samples(target: &Target) {
    let Some(folder) = std::env::var_os("STED_FUZZ_SAMPLES").map(std::path::PathBuf::from) else {
        return;
    };
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    for (number, sample) in target.samples.iter().enumerate() {
        std::fs::write(folder.join(format!("sample-{number}")), sample).expect("there is room");
    }
    let escape = |byte: u8| format!("\\x{byte:02x}");
    let line = |word: &&str| format!("\"{}\"\n", word.bytes().map(escape).collect::<String>());
    let words: String = target.words.iter().filter(|word| !word.is_empty()).map(line).collect();
    std::fs::write(folder.with_extension("dict"), words).expect("there is room");
}
