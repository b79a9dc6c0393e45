//! Lists of links and of hosts as text: what is read, and what is refused with which words.

use super::super::edges::{EdgeFlaw, EdgeList};
use super::super::hosts::{HostRanges, HostsFlaw};
use super::*;

fn edges(text: &str) -> Result<Links, String> {
    let mut list = EdgeList::default();
    for line in text.split('\n') {
        list.read_line(line.as_bytes(), 8).map_err(|flaw| flaw.to_string())?;
    }
    list.links().map_err(|flaw| flaw.to_string())
}

#[test]
fn links_are_those_of_the_list() {
    // Unsorted, with comments, tabs, repeats, a link to itself, and a page that only a number is.
    let found = edges("# a b\n\n5\t0\n  0 2 \n\t0 1\n#9 9\n0 2\n2 2").expect("a list");
    let pages = [vec![2, 1, 2], vec![], vec![2], vec![], vec![], vec![0]];
    let (degrees, targets) = arrays(&pages);
    assert_eq!(found, Links::read(&degrees, &targets).expect("the same"));
}

#[test]
fn law_any_list_is_the_graph_of_its_arrays() {
    let mut draw = Draw::new(5, Purpose::Noise, 0, 0);
    for _ in 0..200 {
        let count = 1 + draw.below(30);
        let mut pages = random(&mut draw, count, 6);
        // The last page has to be in the list.
        pages[0].push(count - 1);
        let mut list = EdgeList::default();
        let mut next: Vec<usize> = vec![0; pages.len()];
        while let Some(at) = (0..pages.len()).find(|at| next[*at] < pages[*at].len()) {
            let any = draw.below(count) as usize;
            let page = if next[any] < pages[any].len() { any } else { at };
            let line = format!("{page} {}", pages[page][next[page]]);
            list.read_line(line.as_bytes(), usize::MAX).expect("a link");
            next[page] += 1;
        }
        let (degrees, targets) = arrays(&pages);
        assert_eq!(list.links().expect("links"), Links::read(&degrees, &targets).expect("links"));
    }
}

#[test]
fn lists_of_links_are_refused_with_a_fix() {
    for (text, says) in [
        ("", "there is no link; write one a line"),
        ("# 1 2", "there is no link"),
        ("1", "1 words, not two"),
        ("1 2 0.5", "3 words, not two"),
        ("1 -2", "\"-2\" is not the number of a page"),
        ("1,2 3", "\"1,2\" is not the number of a page"),
        ("1 1000000000", "write 0 to 999999999"),
        ("1 4294967297", "is not the number of a page"),
        ("0 1\n900000000 1", "the largest page number is 900000000, but there are only 2 links"),
        ("0 1\n0 1\n0 1\n0 1\n0 1\n0 1\n0 1\n0 1\n0 1", "more than 8 links"),
    ] {
        let found = edges(text).expect_err(text);
        assert!(found.contains(says), "{text}: {found}");
    }
    let word = EdgeList::default().read_line(&[b'x'; 4_000], 1);
    assert_eq!(word, Err(EdgeFlaw::Words(1)));
}

fn hosts(text: &str, pages: u32) -> Result<Vec<u32>, String> {
    let mut ranges = HostRanges::default();
    for (line, number) in text.split('\n').zip(1..) {
        let read = ranges.read_line(line.as_bytes(), number);
        read.map_err(|flaw| format!("{number}: {flaw}"))?;
    }
    ranges.starts(pages).map_err(|(line, flaw)| format!("{line}: {flaw}"))
}

#[test]
fn hosts_are_those_of_the_list() {
    let found = hosts("# first last name\n3 3 b.test\n\n 4\t9 c.test\n0 2 a.test\n", 10);
    assert_eq!(found, Ok(vec![0, 3, 4, 10]), "in any order");
    assert_eq!(hosts("0 0 a", 1), Ok(vec![0, 1]));
}

#[test]
fn lists_of_hosts_are_refused_with_a_fix() {
    for (text, says) in [
        ("0 9", "1: 2 words, not three; write the first and the last page"),
        ("0 9 a b", "1: 4 words, not three"),
        ("0 x a", "1: \"x\" is not the number of a page"),
        ("5 4 a", "1: the last page, 4, is before the first, 5"),
        ("0 4 a.test\n5 9 A.test", "2: \"A.test\" is on line 1, too"),
        ("0 4 a\n4 9 b", "2: page 4 is in the range of line 1, too"),
        ("0 9 a\n4 5 b", "2: page 4 is in the range of line 1, too"),
        ("0 4 a\n6 9 b", "2: page 5 is on no host; add it to a range"),
        ("2 9 b", "1: pages 0 to 1 are on no host; add a range for them"),
        ("0 4 a\n5 7 b", "2: pages 8 to 9 are on no host"),
        ("", "0: pages 0 to 9 are on no host"),
        ("0 4 a\n5 10 b", "2: the range ends with page 10, but the last page of the graph is 9"),
        ("0 9 a\n70 80 b", "2: the range ends with page 80"),
    ] {
        let found = hosts(text, 10).expect_err(text);
        assert!(found.contains(says), "{text}: {found}");
    }
}

/// A list is accepted exactly if its ranges are a partition of the pages.
#[test]
fn law_accepted_hosts_are_a_partition() {
    let mut draw = Draw::new(6, Purpose::Noise, 0, 0);
    let mut accepted = 0;
    for _ in 0..4_000 {
        let pages = 1 + draw.below(6);
        let mut owners = vec![0; 8];
        let mut ranges = HostRanges::default();
        for number in 0..=draw.below(3) {
            let first = draw.below(pages);
            let last = first + draw.below(3).min(7 - first);
            owners[first as usize..=last as usize].iter_mut().for_each(|owners| *owners += 1);
            let line = format!("{first} {last} h{number}");
            ranges.read_line(line.as_bytes(), u64::from(number)).expect("a range");
        }
        let (inside, outside) = owners.split_at(pages as usize);
        let is_partition =
            inside.iter().all(|owners| *owners == 1) && outside.iter().all(|owners| *owners == 0);
        let found = ranges.starts(pages);
        assert_eq!(found.is_ok(), is_partition, "{owners:?} of {pages}: {found:?}");
        if let Err((_, HostsFlaw::Gap { first, last })) = found {
            assert!(first <= last && (first..=last).all(|page| owners[page as usize] == 0));
        }
        accepted += u32::from(is_partition);
    }
    assert!(accepted > 100, "{accepted}");
}
