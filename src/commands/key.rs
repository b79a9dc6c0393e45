//! `sted key`: makes the key that signs requests, and prints the document by which servers verify
//! the signatures.

use super::{Exit, Failure, inputs, print};
use crate::http::signature::{DIRECTORY_PATH, DIRECTORY_TYPE};
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Subcommand;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The exit codes of `sted key`, for its help text.
pub(super) const EXITS: &str = "Exit codes:
   0  the document was printed
   2  the file exists already (new), or has no key (show)
   3  the file could not be written
   4  the system has no random numbers";

/// What `sted key` does.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Make a key, write it to a new file, and print the document to publish
    ///
    /// Only you can read the file. Who has it can sign in your name: never publish it.
    ///
    /// Example: sted key new crawler.pem > directory.json
    #[command(after_long_help = EXITS)]
    New {
        /// The file to write, PEM with Ed25519
        file: PathBuf,
    },
    /// Print the document to publish for a key
    ///
    /// Example: sted key show crawler.pem
    #[command(after_long_help = EXITS)]
    Show {
        /// The file with the private key
        file: PathBuf,
    },
}

/// Makes a key, or reads one, and prints its document.
///
/// # Errors
/// The file exists already or can't be written; or it can't be read or has no key.
pub fn run(verb: &Verb) -> Result<Exit, Failure> {
    let (Verb::New { file } | Verb::Show { file }) = verb;
    if matches!(verb, Verb::New { .. }) {
        make(file)?;
    }
    print(&inputs::signing_key(file)?.directory())?;
    if matches!(verb, Verb::New { .. }) {
        let _ = writeln!(io::stderr(), "{}", next_steps(file));
    }
    Ok(Exit::Finished)
}

/// Says what to do with a new key.
fn next_steps(file: &Path) -> String {
    let name = file.display();
    format!(
        "{name} has the private key: keep it to yourself. Publish the document on stdout at\n\
         https://YOUR.ORIGIN{DIRECTORY_PATH}\n\
         as {DIRECTORY_TYPE}, and write in the configuration:\n\n\
         [identity.signature]\nsign = \"when-asked\"\nkey = \"{name}\"\n\
         agent = \"https://YOUR.ORIGIN\""
    )
}

/// Writes a new key to a new file.
fn make(file: &Path) -> Result<(), Failure> {
    let lacks = |_| Failure::new(Exit::System, "the system has no random numbers");
    let pair = Ed25519KeyPair::generate().map_err(lacks)?;
    let der = pair.to_pkcs8v1().map_err(lacks)?;
    let text = BASE64_STANDARD.encode(der.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let written = opened.and_then(|mut out| {
        let written = out.write_all(pem.as_bytes()).and_then(|()| out.sync_all());
        if written.is_err() {
            // A part of a key is of no use, and would be in the way.
            let _ = fs::remove_file(file);
        }
        written
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(
            Exit::Usage,
            format!(
                "{}: exists already, and a key is never replaced; name another file, or print its \
                 document with sted key show",
                file.display()
            ),
        ),
        _ => Failure::of_file(file, &error),
    })
}
