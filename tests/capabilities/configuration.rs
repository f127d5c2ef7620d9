//! Configuration: layers, and errors that say where.

use std::os::unix::fs::PermissionsExt as _;

use crate::actors::program;

struct Case {
    dir: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn file(self, text: &str) -> Self {
        std::fs::write(self.dir.path().join("own.toml"), text).unwrap();
        self
    }

    /// Exit code and what was said, on either stream.
    fn runs(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
        let output = program(self.dir.path(), arguments, variables);
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8(text).unwrap(),
        )
    }

    fn check(&self, variables: &[(&str, &str)]) -> (i32, String) {
        self.runs(&["config", "check", "--config", "own.toml"], variables)
    }
}

#[test]
fn an_unknown_key_is_told_with_its_line_and_the_nearest_one() {
    let (code, told) = Case::new()
        .file("[server]\n\nlisen = \"127.0.0.1:1\"\n")
        .check(&[]);
    assert_eq!(code, 78, "{told}");
    assert!(
        told.contains("own.toml:3") && told.contains("server.listen"),
        "{told}"
    );
}

#[test]
fn a_wrong_type_is_told_with_what_was_expected() {
    let (code, told) = Case::new()
        .file("[limits]\nlogins_per_minute = \"five\"\n")
        .check(&[]);
    assert_eq!(code, 78, "{told}");
    assert!(
        told.contains("own.toml:2") && told.contains("logins_per_minute"),
        "{told}"
    );
    assert!(told.contains("integer"), "{told}");
}

#[test]
fn an_impossible_combination_is_told_where_it_was_set() {
    let case = Case::new().file("[server]\nmax_connections = 5\nmax_connections_per_address = 6\n");
    let (code, told) = case.check(&[]);
    assert_eq!(code, 78, "{told}");
    assert!(told.contains("own.toml:3"), "{told}");
}

#[test]
fn broken_toml_and_missing_files_are_told() {
    let (code, told) = Case::new().file("[server\n").check(&[]);
    assert_eq!(code, 78);
    assert!(told.contains("own.toml:1"), "{told}");
    let (code, told) = Case::new().runs(&["config", "check", "--config", "missing.toml"], &[]);
    assert_eq!(code, 78);
    assert!(told.contains("missing.toml"), "{told}");
}

#[test]
fn all_problems_are_told_at_once() {
    let case = Case::new().file("[server]\nlisen = 1\n[limits]\nlogins_per_minute = 0\n");
    let (_, told) = case.check(&[
        ("SWITCHBOARD__LOG__FORMAT", "xml"),
        ("SWITCHBOARD__X__Y", "1"),
    ]);
    for place in [
        "own.toml:2",
        "own.toml:4",
        "SWITCHBOARD__LOG__FORMAT",
        "SWITCHBOARD__X__Y",
    ] {
        assert!(told.contains(place), "{place} in {told}");
    }
}

#[test]
fn a_bad_configuration_opens_nothing() {
    let case = Case::new();
    let (code, _) = case.runs(&[], &[("SWITCHBOARD__SERVER__LISTEN", "nowhere")]);
    assert_eq!(code, 78);
    let (code, _) = case.runs(&["serve", "--listen", "nowhere"], &[]);
    assert_eq!(code, 78);
    assert!(std::fs::read_dir(case.dir.path()).unwrap().next().is_none());
}

#[test]
fn flags_outrank_the_environment_which_outranks_the_file() {
    let case = Case::new().file("[server]\nlisten = \"127.0.0.1:1\"\n[log]\nlevel = \"warn\"\n");
    let variables = [
        ("SWITCHBOARD__SERVER__LISTEN", "127.0.0.1:2"),
        ("SWITCHBOARD_CONFIG", "own.toml"),
    ];
    let (code, told) = case.runs(&["config", "print"], &variables);
    assert_eq!(code, 0, "{told}");
    assert!(
        told.contains("127.0.0.1:2") && told.contains("warn"),
        "{told}"
    );
    assert!(
        told.contains("SWITCHBOARD__SERVER__LISTEN"),
        "it says where a value comes from: {told}"
    );
    let (_, told) = case.runs(&["config", "print", "--listen", "127.0.0.1:3"], &variables);
    assert!(told.contains("127.0.0.1:3"), "{told}");
}

#[test]
fn secrets_come_from_files_and_are_never_shown() {
    let case = Case::new();
    let secret = case.dir.path().join("secret");
    std::fs::write(&secret, "a very secret word\n").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let path = secret.to_str().unwrap();
    let variables = [
        ("SWITCHBOARD__ADMIN__USERNAME", "root"),
        ("SWITCHBOARD__ADMIN__PASSWORD_FILE", path),
        (
            "SWITCHBOARD__DATA__DATABASE_URL",
            "postgres://u:hidden@127.0.0.1/x",
        ),
    ];
    let (code, told) = case.runs(&["config", "print"], &variables);
    assert_eq!(code, 0, "{told}");
    assert!(
        !told.contains("secret word") && !told.contains("hidden"),
        "{told}"
    );
    assert!(told.contains("********"), "{told}");
    let missing = [("SWITCHBOARD__ADMIN__PASSWORD_FILE", "/nowhere/at/all")];
    let (code, told) = case.runs(&["config", "check"], &missing);
    assert_eq!(code, 78);
    assert!(told.contains("/nowhere/at/all"), "{told}");
}

#[test]
fn the_printed_defaults_are_a_good_configuration() {
    let case = Case::new();
    let (_, defaults) = case.runs(&["config", "default"], &[]);
    let (code, told) = case.file(&defaults).check(&[]);
    assert_eq!(code, 0, "{told}");
}
