//! The names of a crawl's things in the queue: its stream and subjects, its bucket and keys.
//!
//! | thing | name |
//! |---|---|
//! | stream of the logs | `sted-CRAWL` |
//! | log of partition 17 | subject `sted.CRAWL.log.17` |
//! | bucket of the entries | `sted-CRAWL` (stream `KV_sted-CRAWL`) |
//! | keys | `crawl`, `node.NAME`, `partition.17`, `report.NAME`, `orders` |

use crate::engine::contract::queue::{Key, Name, Partition};

/// The names of a crawl's things.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// The name of the stream and of the bucket.
    pub(super) stream: String,
    /// What the subjects of the logs begin with.
    prefix: String,
}

impl Names {
    pub(super) fn of(crawl: &str) -> Self {
        Self { stream: format!("sted-{crawl}"), prefix: format!("sted.{crawl}.log.") }
    }

    /// Returns the subjects of all logs.
    pub(super) fn all_logs(&self) -> String {
        format!("{}*", self.prefix)
    }

    /// Returns the subject of a partition's log.
    pub(super) fn log(&self, partition: Partition) -> String {
        format!("{}{}", self.prefix, partition.number())
    }

    /// Returns the subjects to which a node publishes.
    pub(super) fn published(&self) -> [String; 4] {
        let (bucket, logs) = (format!("$KV.{}.>", self.stream), self.all_logs());
        ["$JS.API.>".to_owned(), "$JS.FC.>".to_owned(), bucket, logs]
    }

    /// Returns the partition whose log has this subject.
    pub(super) fn partition(&self, subject: &str) -> Option<Partition> {
        number(subject.strip_prefix(&self.prefix)?)
    }
}

/// Returns the key of an entry in the bucket.
pub(super) fn key_text(key: &Key) -> String {
    match key {
        Key::Crawl => "crawl".to_owned(),
        Key::Node(name) => format!("node.{name}"),
        Key::Partition(partition) => format!("partition.{}", partition.number()),
        Key::Report(name) => format!("report.{name}"),
        Key::Orders => "orders".to_owned(),
    }
}

/// Returns the entry of a key in the bucket; `None` if it is a stranger's.
pub(super) fn key_of(text: &str) -> Option<Key> {
    match text.split_once('.') {
        None if text == "crawl" => Some(Key::Crawl),
        Some(("node", name)) => Name::new(name).map(Key::Node),
        None if text == "orders" => Some(Key::Orders),
        Some(("report", name)) => Name::new(name).map(Key::Report),
        Some(("partition", text)) => number(text).map(Key::Partition),
        _ => None,
    }
}

/// Reads the number of a partition, as it is written here and not otherwise.
fn number(text: &str) -> Option<Partition> {
    let number: u16 = text.parse().ok()?;
    Partition::new(number).filter(|_| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let names = Names::of("spring");
        for partition in Partition::all() {
            assert_eq!(names.partition(&names.log(partition)), Some(partition));
            let key = Key::Partition(partition);
            assert_eq!(key_of(&key_text(&key)), Some(key));
        }
        let name = Name::new("a-1").expect("a name");
        for key in [Key::Crawl, Key::Node(name.clone()), Key::Report(name), Key::Orders] {
            assert_eq!(key_of(&key_text(&key)), Some(key));
        }
    }

    #[test]
    fn names_of_others_are_no_keys() {
        for text in ["", "crawl.1", "node", "node.", "node.A", "node.a.b", "partition.007"] {
            assert_eq!(key_of(text), None, "{text}");
        }
        for text in ["partition.1024", "partition.-1", "partition.+1", "partition.", "other.1"] {
            assert_eq!(key_of(text), None, "{text}");
        }
        let names = Names::of("spring");
        for subject in ["sted.spring.log.", "sted.spring.log.01", "sted.other.log.1", "x"] {
            assert_eq!(names.partition(subject), None, "{subject}");
        }
    }
}
