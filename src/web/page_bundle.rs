//! Page bundle: the full page, bundled at build time by `build.rs`.

use super::Page;

struct File {
    name: &'static str,
    content: &'static [u8],
    packed: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

pub(super) const fn is_built() -> bool {
    !FILES.is_empty()
}

pub(super) fn file(name: &str) -> Option<Page> {
    let file = FILES.iter().find(|file| file.name == name)?;
    Some(Page {
        name: file.name,
        content: file.content,
        packed: Some(file.packed),
    })
}
