//! The plain pages: sign in, first setup, invitation. They need nothing but a browser, and are what a
//! gateway shows that was built without npm.

use super::Page;

macro_rules! pages {
    ($($file:literal),*) => {
        &[$(Page {
            name: $file,
            content: include_bytes!(concat!("../../web/plain/", $file)),
            packed: None,
        }),*]
    };
}

const DOCUMENTS: &[Page] = pages!["index.html", "setup.html", "invite.html"];
const ASSETS: &[Page] = pages![
    "style.css",
    "api.js",
    "form.js",
    "devices.js",
    "index.js",
    "setup.js",
    "invite.js"
];

/// One of the documents that people open.
pub(super) fn document(name: &str) -> Option<Page> {
    find(DOCUMENTS, name)
}

/// What they are made of.
pub(super) fn asset(name: &str) -> Option<Page> {
    find(ASSETS, name)
}

fn find(files: &[Page], name: &str) -> Option<Page> {
    files.iter().find(|file| file.name == name).copied()
}
