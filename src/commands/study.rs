//! The only module outside `src/study` that uses the study.
//!
//! It has the commands of the study (experiments with the crawler), the lab (a local synthetic web)
//! that a crawl may run against, and the files that the study's sections of a configuration name. A
//! binary built without the feature `study` refuses each of these and says how to build one with
//! it.

#[cfg(feature = "study")]
pub use crate::study::command::Command;
#[cfg(feature = "study")]
pub(super) use crate::study::{
    child::{lab_of, recall_lab},
    inputs::files_named,
};

#[cfg(not(feature = "study"))]
pub use without::Command;
#[cfg(not(feature = "study"))]
pub(super) use without::{files_named, lab_of, recall_lab};

#[cfg(not(feature = "study"))]
use super::ConfFile;
use super::{Exit, Failure};
use crate::conf::Conf;
use std::path::Path;

/// Whether this binary includes the study.
pub(super) const IS_BUILT_IN: bool = cfg!(feature = "study");

/// Refuses to crawl a lab with a binary that doesn't include the study.
///
/// # Errors
/// The configuration at `path` has a section `[lab]`, and the study is not built in.
pub(super) fn refuse_lab(conf: &Conf, path: &Path) -> Result<(), Failure> {
    if IS_BUILT_IN || conf.lab.is_none() {
        return Ok(());
    }
    Err(missing(&format!("{}: [lab]", path.display())))
}

fn missing(what: &str) -> Failure {
    let text = format!(
        "{what}: this binary was built without the study; build one that has it with `cargo build \
         --release` (its feature, `study`, is on by default)"
    );
    Failure::new(Exit::Usage, text)
}

/// What takes the place of the study in a binary that doesn't include it.
#[cfg(not(feature = "study"))]
mod without {
    use super::{Conf, ConfFile, Exit, Failure, Path, missing};
    use clap::{Args, Subcommand};
    use std::ffi::OsString;
    use std::path::PathBuf;

    /// The commands of the study, which are recognized only to report that they are missing.
    #[derive(Debug, Subcommand)]
    pub enum Command {
        /// `sted cache`
        #[command(hide = true)]
        Cache(Ignored),
        /// `sted compare`
        #[command(hide = true)]
        Compare(Ignored),
        /// `sted profile`
        #[command(hide = true)]
        Profile(Ignored),
        /// `sted web`
        #[command(hide = true)]
        Web(Ignored),
    }

    /// Arguments of a command that is not built in.
    #[derive(Args, Debug)]
    #[command(disable_help_flag = true)]
    pub struct Ignored {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        arguments: Vec<OsString>,
    }

    impl Command {
        /// Refuses the command, because the study is not built in.
        ///
        /// # Errors
        /// Always.
        pub fn run(&self) -> Result<Exit, Failure> {
            let name = match self {
                Self::Cache(_) => "cache",
                Self::Compare(_) => "compare",
                Self::Profile(_) => "profile",
                Self::Web(_) => "web",
            };
            Err(missing(&format!("sted {name}")))
        }
    }

    /// The lab of a crawl. It has no values, because the study is not built in.
    pub(crate) enum Lab {}

    impl Lab {
        /// Stops the lab. It is never called, because there is no lab.
        pub(crate) fn end(self) {
            match self {}
        }
    }

    /// Returns the lab that a crawl runs against: none, because [`super::refuse_lab`] has refused
    /// configurations that need one.
    pub(crate) fn lab_of(_: &mut Conf, _: &ConfFile, _: &Path) -> Result<Option<Lab>, Failure> {
        Ok(None)
    }

    /// Adapts the configuration of a crawl to the lab that it ran against: there is none.
    pub(crate) fn recall_lab(_: &mut Conf, _: &Path) {}

    /// Returns the files that sections of the study name: none, because no command here reads them.
    pub(crate) fn files_named(_: &Conf) -> Vec<(&'static str, PathBuf)> {
        Vec::new()
    }
}
