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

    /// Exit code, and both output streams.
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
fn an_unknown_key_is_reported_with_its_line_and_the_nearest_key() {
    let (code, shown) = Case::new()
        .file("[server]\n\nlisen = \"127.0.0.1:1\"\n")
        .check(&[]);
    assert_eq!(code, 78, "{shown}");
    assert!(
        shown.contains("own.toml:3") && shown.contains("server.listen"),
        "{shown}"
    );
}

#[test]
fn a_wrong_type_is_reported_with_the_expected_one() {
    let (code, shown) = Case::new()
        .file("[limits]\nlogins_per_minute = \"five\"\n")
        .check(&[]);
    assert_eq!(code, 78, "{shown}");
    assert!(
        shown.contains("own.toml:2") && shown.contains("logins_per_minute"),
        "{shown}"
    );
    assert!(shown.contains("integer"), "{shown}");
}

#[test]
fn an_impossible_combination_is_reported_where_it_was_set() {
    let case = Case::new().file("[server]\nmax_connections = 5\nmax_connections_per_address = 6\n");
    let (code, shown) = case.check(&[]);
    assert_eq!(code, 78, "{shown}");
    assert!(shown.contains("own.toml:3"), "{shown}");
}

#[test]
fn broken_toml_and_missing_files_are_reported() {
    let (code, shown) = Case::new().file("[server\n").check(&[]);
    assert_eq!(code, 78);
    assert!(shown.contains("own.toml:1"), "{shown}");
    let (code, shown) = Case::new().runs(&["config", "check", "--config", "missing.toml"], &[]);
    assert_eq!(code, 78);
    assert!(shown.contains("missing.toml"), "{shown}");
}

#[test]
fn all_configuration_errors_are_reported_at_once() {
    let case = Case::new().file("[server]\nlisen = 1\n[limits]\nlogins_per_minute = 0\n");
    let (_, shown) = case.check(&[
        ("SWITCHBOARD__LOG__FORMAT", "xml"),
        ("SWITCHBOARD__X__Y", "1"),
    ]);
    for place in [
        "own.toml:2",
        "own.toml:4",
        "SWITCHBOARD__LOG__FORMAT",
        "SWITCHBOARD__X__Y",
    ] {
        assert!(shown.contains(place), "{place} in {shown}");
    }
}

#[test]
fn a_bad_configuration_stops_the_start_and_creates_no_file() {
    let case = Case::new();
    let (code, _) = case.runs(&[], &[("SWITCHBOARD__SERVER__LISTEN", "nowhere")]);
    assert_eq!(code, 78);
    let (code, _) = case.runs(&["serve", "--listen", "nowhere"], &[]);
    assert_eq!(code, 78);
    assert!(std::fs::read_dir(case.dir.path()).unwrap().next().is_none());
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let case = Case::new().file("[server]\nlisten = \"127.0.0.1:1\"\n[log]\nlevel = \"warn\"\n");
    let variables = [
        ("SWITCHBOARD__SERVER__LISTEN", "127.0.0.1:2"),
        ("SWITCHBOARD_CONFIG", "own.toml"),
    ];
    let (code, shown) = case.runs(&["config", "print"], &variables);
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("127.0.0.1:2") && shown.contains("warn"),
        "{shown}"
    );
    assert!(
        shown.contains("SWITCHBOARD__SERVER__LISTEN"),
        "it says where a value comes from: {shown}"
    );
    let (_, shown) = case.runs(&["config", "print", "--listen", "127.0.0.1:3"], &variables);
    assert!(shown.contains("127.0.0.1:3"), "{shown}");
}

#[test]
fn secrets_are_read_from_files_and_never_printed() {
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
    let (code, shown) = case.runs(&["config", "print"], &variables);
    assert_eq!(code, 0, "{shown}");
    assert!(
        !shown.contains("secret word") && !shown.contains("hidden"),
        "{shown}"
    );
    assert!(shown.contains("********"), "{shown}");
    let missing = [("SWITCHBOARD__ADMIN__PASSWORD_FILE", "/nowhere/at/all")];
    let (code, shown) = case.runs(&["config", "check"], &missing);
    assert_eq!(code, 78);
    assert!(shown.contains("/nowhere/at/all"), "{shown}");
}

#[test]
fn the_printed_defaults_are_a_valid_configuration() {
    let case = Case::new();
    let (_, defaults) = case.runs(&["config", "default"], &[]);
    let (code, shown) = case.file(&defaults).check(&[]);
    assert_eq!(code, 0, "{shown}");
}
