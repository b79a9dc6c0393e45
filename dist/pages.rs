//! Writes the manual pages to a directory: `cargo run --example pages -- DIR`.
//!
//! sted(1) and a page for each command are made of the command line's own help, sted.toml(5) of the
//! declarations of the keys, and sted-job(5) of the documents about the job directory and the crawl
//! log. So the pages say what the program says.

#![allow(clippy::disallowed_methods, reason = "a tool that writes files")]

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use roff::{Roff, bold, italic, roman};
use std::path::PathBuf;
use sted::commands::Cli;
use sted::conf::{Compare, Conf, Lab, Profile};

/// The documents that sted-job(5) is made of: the heading of the part, and its text.
const FILES: &str = include_str!("../src/ARCHITECTURE.md");
const LOG: &str = include_str!("../src/store/CRAWL-LOG.md");

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "target/man".into()));
    std::fs::create_dir_all(&folder)?;
    for (name, text) in pages() {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// Returns all manual pages: the name of the file, and its text.
pub fn pages() -> Vec<(String, String)> {
    let mut command = Cli::command();
    command.build();
    let mut pages = Vec::new();
    commands(&command, &mut pages);
    pages.push(("sted.toml.5".to_owned(), configuration()));
    pages.push(("sted-job.5".to_owned(), job()));
    pages
}

/// Adds the page of a command, and those of its own commands.
fn commands(command: &Command, pages: &mut Vec<(String, String)>) {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    let man = Man::new(command.clone()).title(name.to_uppercase()).manual("sted manual");
    man.render(&mut page).expect("writing to memory");
    let mut page = String::from_utf8(page).expect("text");
    if name == "sted" {
        let see = "sted.toml(5), sted-job(5); the commands have pages of their own: sted-crawl(1)";
        page.push_str(&format!(".SH \"SEE ALSO\"\n{see}\n"));
    } else {
        page.push_str(".SH \"SEE ALSO\"\nsted(1), sted.toml(5), sted-job(5)\n");
    }
    pages.push((format!("{name}.1"), page));
    let own =
        command.get_subcommands().filter(|own| !own.is_hide_set() && own.get_name() != "help");
    own.for_each(|own| commands(own, pages));
}

/// Begins a page of section 5.
fn begin(name: &str, what: &str) -> Roff {
    let mut page = Roff::new();
    let version = concat!("sted ", env!("CARGO_PKG_VERSION"));
    page.control("TH", [&*name.to_uppercase(), "5", "", version, "sted manual"]);
    page.control("SH", ["NAME"]).text([roman(format!("{name} - {what}"))]);
    page
}

/// Returns the page sted.toml(5), which is made of the blocks of the manual: comments, and a key or
/// a section below them.
fn configuration() -> String {
    let mut page = begin("sted.toml", "configuration of the web crawler sted");
    page.control("SH", ["DESCRIPTION"]).text([roman(
        "A configuration is a TOML file with the sections and keys below, in the order in which they \
         affect a URL. An absent key has its default value, which is shown. Durations and sizes have \
         units. `sted check` reports all mistakes, or prints the effective configuration; --set \
         section.key=value replaces a value. Keys that can be reloaded may change while the crawl \
         runs (`sted ctl JOB reload`).",
    )]);
    let (lab, compare) = (Some(Lab::default()), Some(Compare::default()));
    let profile = Some(Profile::default());
    let manual = Conf { lab, compare, profile, ..Conf::default() }.manual();
    for block in manual.split("\n\n") {
        let (remarks, rest): (Vec<&str>, Vec<&str>) =
            block.lines().filter(|line| !line.is_empty()).partition(|line| line.starts_with('#'));
        let is_section = remarks.first().is_some_and(|line| line.starts_with("# ---"));
        let remarks = &remarks[usize::from(is_section)..];
        if is_section {
            page.control("SH", [rest.first().copied().unwrap_or("[[site]]")]);
        } else if let Some((name, value)) = rest.join(" ").split_once(" = ") {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            page.control("TP", []);
            page.text([bold(name), roman(" = "), roman(value)]);
        }
        comment(remarks, if is_section { "PP" } else { "IP" }, &mut page);
    }
    page.control("SH", ["SEE ALSO"]).text([roman("sted(1), sted-check(1), sted-job(5)")]);
    page.to_roff()
}

/// Adds a comment of the manual. An empty line, and a line that says what is allowed, end a
/// paragraph; `paragraph` begins one. Lines without a blank after the mark are an example.
fn comment(lines: &[&str], paragraph: &str, page: &mut Roff) {
    let mut is_example = false;
    for line in lines {
        let text = &line[1..];
        let is_code = !text.is_empty() && !text.starts_with(' ');
        if is_code != is_example && !text.is_empty() {
            page.control(if is_code { "nf" } else { "fi" }, []);
            is_example = is_code;
        }
        let is_allowed = text.starts_with(" Allowed: ");
        match text.is_empty() {
            true if is_example => {
                page.text([roman("\u{a0}")]);
            }
            true => {
                page.control(paragraph, []);
            }
            false => {
                if is_allowed {
                    page.control(paragraph, []);
                }
                page.text([roman(text.trim())]);
                if is_allowed {
                    page.control(paragraph, []);
                }
            }
        }
    }
    if is_example {
        page.control("fi", []);
    }
}

/// Returns the page sted-job(5).
fn job() -> String {
    let mut page =
        begin("sted-job", "the job directory of the web crawler sted, and its crawl log");
    let (_, files) = FILES.split_once("\n## Files of a job\n").expect("a section about files");
    let files = files.split("\nThe formats,").next().expect("an end of the table");
    page.control("SH", ["FILES"]);
    markdown(files, &mut page);
    let log = LOG.split_once('\n').expect("a heading").1;
    page.control("SH", ["THE CRAWL LOG"]);
    markdown(log, &mut page);
    page.control("SH", ["SEE ALSO"]).text([roman("sted(1), sted-audit(1), sted.toml(5)")]);
    page.to_roff()
}

/// Adds a text in Markdown to a page. Rows of tables become paragraphs with a hanging tag: the
/// first cell, and the others.
fn markdown(text: &str, page: &mut Roff) {
    let mut line = Vec::new();
    let (mut cell, mut is_head, mut is_bold) = (0, false, false);
    let mut is_code = false;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. } | Tag::Paragraph | Tag::Item) => line.clear(),
            Event::End(TagEnd::Heading(_)) => {
                let title: String = line.drain(..).map(|part: roff::Inline| plain(&part)).collect();
                page.control("SS", [&*title]);
            }
            Event::End(TagEnd::Paragraph) => {
                page.control("PP", []).text(std::mem::take(&mut line));
            }
            Event::End(TagEnd::Item) if !line.is_empty() => {
                page.control("IP", ["\u{2022}", "2"]).text(std::mem::take(&mut line));
            }
            Event::Start(Tag::TableHead) => is_head = true,
            Event::End(TagEnd::TableHead) => is_head = false,
            Event::Start(Tag::TableRow) => cell = 0,
            Event::End(TagEnd::TableCell) if is_head => line.clear(),
            Event::End(TagEnd::TableCell) => {
                if cell == 0 {
                    page.control("TP", []);
                } else if cell > 1 {
                    page.control("IP", []);
                }
                page.text(std::mem::take(&mut line));
                cell += 1;
            }
            Event::Start(Tag::CodeBlock(_)) => {
                is_code = true;
                page.control("PP", []).control("nf", []);
            }
            Event::End(TagEnd::CodeBlock) => {
                is_code = false;
                page.control("fi", []);
            }
            Event::Start(Tag::Strong | Tag::Emphasis) => is_bold = true,
            Event::End(TagEnd::Strong | TagEnd::Emphasis) => is_bold = false,
            Event::Text(text) if is_code => {
                for code in text.lines() {
                    page.text([roman(code)]);
                }
            }
            Event::Code(text) => line.push(bold(text.to_string())),
            Event::Text(text) if is_bold => line.push(italic(text.to_string())),
            Event::Text(text) => line.push(roman(text.to_string())),
            Event::SoftBreak | Event::HardBreak => line.push(roman(" ")),
            _ => {}
        }
    }
}

fn plain(part: &roff::Inline) -> String {
    match part {
        roff::Inline::Roman(text) | roff::Inline::Italic(text) | roff::Inline::Bold(text) => {
            text.clone()
        }
        roff::Inline::LineBreak => " ".to_owned(),
    }
}
