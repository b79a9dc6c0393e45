//! Compact replies equal the full ones in everything but their bulk, whose exact length they know.

use super::*;
use std::time::Duration;

#[test]
fn compact_replies_weigh_what_whole_ones_do() {
    let web = rich(9);
    let mut kinds = BTreeMap::new();
    for (number, page) in all_pages(&web) {
        let host = web.host(number);
        let whole = web.page_reply(number, page, Duration::ZERO);
        let html = whole.content_type.starts_with("text/html");
        for coded in [false, true] {
            let compact = web.compact(&host, page, coded, Duration::ZERO);
            let url = web.url(page_place(number, page));
            assert_eq!(compact.text_bytes, whole.body.len() as u64, "{url}");
            let packed =
                coded && html && host.coding != Coding::Identity && compact.text_bytes >= 200;
            let wire_bytes =
                if packed { compact.text_bytes.div_ceil(5) } else { compact.text_bytes };
            assert_eq!(compact.wire_bytes, wire_bytes, "{url}");
            assert!(compact.reply.body.len() <= whole.body.len(), "{url}");
            let kind = web.kind(number, page);
            if !matches!(kind, Kind::Html | Kind::Closed | Kind::Duplicate | Kind::Binary) {
                assert_eq!(compact.reply, whole, "{url}: there is no bulk to leave out");
            }
            let head = |reply: &Reply| (reply.status, reply.content_type, reply.fields.clone());
            assert_eq!(head(&compact.reply), head(&whole), "{url}");
            *kinds.entry(format!("{kind:?} {packed}")).or_insert(0) += 1;
        }
    }
    // Seven kinds, of which those with a longer body are coded, too.
    assert_eq!(kinds.len(), 10, "{kinds:?}");
}

/// Compact bodies are equal exactly if the full ones are, on all hosts.
#[test]
fn copies_stay_copies() {
    let web = rich(10);
    let (mut wholes, mut compacts) = (BTreeMap::new(), BTreeMap::new());
    let mut copies = 0;
    for (number, page) in all_pages(&web) {
        if !matches!(web.kind(number, page), Kind::Html | Kind::Duplicate) {
            continue;
        }
        let compact = web.compact(&web.host(number), page, true, Duration::ZERO).reply.body;
        let whole = web.page_reply(number, page, Duration::ZERO).body;
        let first = *wholes.entry(whole).or_insert((number, page));
        copies += u32::from(first != (number, page));
        assert_eq!(*compacts.entry(compact).or_insert((number, page)), first);
    }
    assert!(copies > 10, "{copies} copies");
}

/// The nominal length of a page is the length drawn for it, as long as its links fit.
#[test]
fn bulk_is_left_out() {
    let web = Web::new(Settings::bench(2), PORTS);
    let host = web.host(1);
    for page in 0..web.pages_of(1) {
        let compact = web.compact(&host, page, true, Duration::ZERO);
        assert_eq!((compact.text_bytes, compact.wire_bytes), (16_700, 16_700));
        assert!(compact.reply.body.len() < 200 + 25 * 80, "{}", compact.reply.body.len());
    }
}
