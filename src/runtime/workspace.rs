//! Workspace: creates an agent's working directory, inside the configured root and nowhere else.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub(super) enum WorkspaceError {
    #[error("the working directory {} cannot be made: {source}", .path.display())]
    Make { path: PathBuf, source: io::Error },
    #[error(
        "the working directory {} leads out of {}: look for symbolic links", .path.display(), .root.display()
    )]
    Outside { path: PathBuf, root: PathBuf },
}

/// Creates the directory of a pattern such as `workspaces/{user}/{session}`, below `base` if it is
/// relative. No name can lead out of the fixed part of the pattern, before the first placeholder.
pub(super) fn make(
    base: &Path,
    pattern: &str,
    fill: impl Fn(&str) -> String,
) -> Result<PathBuf, WorkspaceError> {
    let mut root = base.to_path_buf();
    let mut rest = PathBuf::new();
    for part in Path::new(pattern).components() {
        let name = part.as_os_str().to_string_lossy();
        if rest.as_os_str().is_empty() && !name.contains('{') {
            root.push(part);
        } else {
            rest.push(safe(&fill(&name)));
        }
    }
    let path = root.join(&rest);
    let failed = |source| WorkspaceError::Make {
        path: path.clone(),
        source,
    };
    create(&path).map_err(failed)?;
    let root = root.canonicalize().map_err(failed)?;
    let real = path.canonicalize().map_err(failed)?;
    if !real.starts_with(&root) {
        return Err(WorkspaceError::Outside { path: real, root });
    }
    Ok(real)
}

fn create(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A name as exactly one component of a path.
fn safe(name: &str) -> String {
    let is_safe =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '@');
    let name: String = name
        .chars()
        .map(|letter| if is_safe(letter) { letter } else { '_' })
        .collect();
    match Path::new(&name).components().next() {
        Some(Component::Normal(_)) => name,
        _ => "_".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(base: &Path, user: &str) -> Result<PathBuf, WorkspaceError> {
        make(base, "spaces/{user}/{session}", |part| {
            part.replace("{user}", user).replace("{session}", "ses_1")
        })
    }

    #[test]
    fn no_name_leads_out_of_the_workspace() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap().join("spaces");
        for user in ["ada", "..", ".", "/", "../../etc", "a/b", "", "~", "\0"] {
            let path = filled(base.path(), user).unwrap();
            assert!(path.starts_with(&root), "{user:?}: {}", path.display());
            assert!(path.ends_with("ses_1"));
            assert!(path.is_dir());
        }
    }

    #[test]
    fn a_symlink_that_leads_out_is_refused() {
        let (base, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(base.path().join("spaces")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), base.path().join("spaces/ada")).unwrap();
        assert!(matches!(
            filled(base.path(), "ada"),
            Err(WorkspaceError::Outside { .. })
        ));
    }

    #[test]
    fn the_operator_may_name_any_directory() {
        let (base, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let pattern = elsewhere.path().join("project");
        let path = make(base.path(), pattern.to_str().unwrap(), str::to_owned).unwrap();
        assert_eq!(path, pattern.canonicalize().unwrap());
    }
}
