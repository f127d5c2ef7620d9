//! Names the state of the embedded pages, so that browsers notice a new build.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let mut files: Vec<PathBuf> = std::fs::read_dir("web/plain")?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        std::fs::read(file)?.hash(&mut hasher);
    }
    println!("cargo::rerun-if-changed=web/plain");
    println!("cargo::rerun-if-changed=migrations");
    println!(
        "cargo::rustc-env=SWITCHBOARD_WEB_HASH={:016x}",
        hasher.finish()
    );
    Ok(())
}
