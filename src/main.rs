//! From the command line to a command, and from how it ended to an exit code.

use clap::Parser;
use std::panic;
use std::process::ExitCode;
use sted::commands::{Cli, Exit};
use sted::os::signal;

fn main() -> ExitCode {
    signal::join_freed_memory();
    let cli = Cli::parse();
    start_log(&cli);
    // A panic is a fault of the program; its message is printed by the panic itself.
    let exit = match panic::catch_unwind(|| cli.run()) {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => {
            eprintln!("{failure}");
            failure.exit
        }
        Err(_) => Exit::Internal,
    };
    exit.into()
}

fn start_log(cli: &Cli) {
    let mut log =
        env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn"));
    if let Some(level) = cli.log_level() {
        // What is asked for is the crawler's talk; of the libraries only what is wrong.
        log.filter_level(level.min(log::LevelFilter::Warn)).filter_module("sted", level);
    }
    log.format_target(false).init();
}
