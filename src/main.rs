//! The program: parses the command line, runs the command, and returns its exit code.

use clap::Parser;
use env_logger::{Target, WriteStyle};
use std::io::Write;
use std::panic;
use std::process::ExitCode;
use sted::commands::{Cli, Exit};
use sted::os::{console, signal};

fn main() -> ExitCode {
    signal::merge_freed_memory();
    let cli = Cli::parse();
    start_log(&cli);
    // A panic is an internal error; the panic itself has printed its message.
    let exit = match panic::catch_unwind(|| cli.run()) {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => {
            console::write_final(&failure.to_string());
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
        // The level applies to the crawler's own messages; libraries log only warnings and errors.
        log.filter_level(level.min(log::LevelFilter::Warn)).filter_module("sted", level);
    }
    let is_plain = !signal::is_terminal() || std::env::var_os("NO_COLOR").is_some();
    let style = if is_plain { WriteStyle::Never } else { WriteStyle::Always };
    log.write_style(style).target(Target::Pipe(Box::new(console::Console)));
    if cli.log_json {
        console::write_json();
        log.write_style(WriteStyle::Never);
    }
    log.format(|out, record| {
        if console::is_json() {
            let line = console::json_line(record.level().as_str(), &record.args().to_string());
            return out.write_all(line.as_bytes());
        }
        let (level, time) = (record.level(), out.timestamp_seconds());
        let style = out.default_level_style(level);
        let text = record.args().to_string();
        writeln!(out, "[{time} {style}{level:<5}{style:#}] {}", console::printable(&text))
    });
    log.init();
}
