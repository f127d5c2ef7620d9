//! Pages without npm: login, first setup, invitation. For a gateway built without npm; they need only a browser.

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

pub(super) fn document(name: &str) -> Option<Page> {
    find(DOCUMENTS, name)
}

pub(super) fn asset(name: &str) -> Option<Page> {
    find(ASSETS, name)
}

fn find(files: &[Page], name: &str) -> Option<Page> {
    files.iter().find(|file| file.name == name).copied()
}
