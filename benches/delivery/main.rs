//! Delivery under load: the real binary, real sockets, SQLite. Prints each figure with its unit and its
//! goal, beside the same figure of a bare server that stores nothing, and of another gateway binary if
//! `SWITCHBOARD_BENCH_BASELINE` names one; all interleaved in one run.
//!
//! `cargo bench --bench delivery -- [idle|stream|hot|fanout|resting]`; without a name, all of them.
//! Processor time and memory are read from /proc of the server's process, so the load generator
//! beside it does not count.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on has failed"
)]
#![allow(clippy::print_stdout, reason = "printing is what it is for")]
#![allow(
    clippy::cast_precision_loss,
    reason = "figures for people have few digits"
)]

mod bare;
mod client;
mod figures;
mod load;
mod report;
mod resting;
mod server;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

/// Of both servers, so that it makes no difference between them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments
        .peek()
        .is_some_and(|first| first == bare::ARGUMENT)
    {
        return bare::serve().await;
    }
    // What cargo itself adds begins with dashes.
    let wanted: Vec<String> = arguments.filter(|word| !word.starts_with("--")).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    raise_open_files();
    let measuring = async {
        if is_wanted("idle") {
            figures::idle().await;
        }
        if is_wanted("stream") {
            figures::stream().await;
        }
        if is_wanted("hot") {
            figures::hot().await;
        }
        if is_wanted("fanout") {
            figures::fanout().await;
        }
        if is_wanted("resting") {
            figures::resting().await;
        }
    };
    tokio::select! {
        biased;
        // Dropping what is under way ends its server.
        () = interrupted() => {}
        () = measuring => {}
    }
}

async fn interrupted() {
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

/// Servers inherit it.
fn raise_open_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, wanted).unwrap();
    let needed = figures::IDLE as u64 + 100;
    assert!(
        maximum.is_none_or(|most| most >= needed),
        "at most {maximum:?} files may be open here; {needed} are needed"
    );
}
