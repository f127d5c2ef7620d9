//! Tests of all layers together, as an operator meets them.

use proptest::prelude::*;

use super::*;
use sample::{DEFAULTS, Format, RULES, Sample, file, load_from, problems, variables};

#[path = "layers_sample.rs"]
mod sample;

#[test]
fn a_flag_outranks_a_variable_outranks_the_file_outranks_the_default() {
    let file = file("server = { listen = '1.1.1.1:1', max_connections = 1, quiet = true }");
    let sources = Sources {
        defaults: DEFAULTS,
        file: Some(file.path()),
        variables: variables(&[
            ("SERVER__LISTEN", "2.2.2.2:2"),
            ("SERVER__MAX_CONNECTIONS", "2"),
        ]),
        flags: vec![Flag {
            key: "server.listen",
            value: "3.3.3.3:3".into(),
            name: "--listen",
        }],
    };
    let layered: Layered<Sample> = load(&sources, &RULES).unwrap();
    assert_eq!(layered.value.server.listen.to_string(), "3.3.3.3:3");
    assert_eq!(layered.value.server.max_connections, 2);
    assert!(layered.value.server.quiet);
    assert_eq!(layered.value.log.format, Format::Text);
    assert_eq!(
        layered.origin_of("server.listen"),
        Place::Flag("--listen".into())
    );
    assert_eq!(
        layered.origin_of("server.quiet").to_string(),
        format!("{}:1", file.path().display())
    );
    assert_eq!(layered.origin_of("log.format"), Place::Default);
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let text = "[server]\nlisten = 'nowhere'\nmax_connections = 70000\nlisten_on = 1\nquiet = 1\n\
                trusted_proxies = [\n  'a',\n  5,\n]\n[log]\nformat = 'jsn'\n";
    let shown = problems(
        text,
        &[
            ("SERVER__PUBLIC_PORT", "high"),
            ("SERVER", "x"),
            ("FOO", "x"),
        ],
    );
    let wanted = "\
s.toml:2: `server.listen` is not accepted: invalid socket address syntax
s.toml:3: `server.max_connections` must be an integer from 0 to 65535, found integer `70000`
s.toml:4: unknown key `server.listen_on`
  did you mean `server.listen`?
s.toml:5: `server.quiet` must be `true` or `false`, found an integer
s.toml:8: `server.trusted_proxies[1]` must be a string, found integer `5`
s.toml:11: `log.format` must be `text` or `json`, found `jsn`
  did you mean `json`?
SWITCHBOARD__FOO: unknown key `foo`
  the sections are: admin, agents, log, server
SWITCHBOARD__SERVER: `server` is a table, and a variable sets one key
  write `SWITCHBOARD__SECTION__KEY`
SWITCHBOARD__SERVER__PUBLIC_PORT: `server.public_port` must be an integer from 0 to 65535, \
found string \"high\"";
    assert_eq!(shown, wanted);
}

#[test]
fn a_variable_takes_the_type_its_key_has_even_where_the_default_does_not_tell() {
    let list = [
        ("SERVER__PUBLIC_PORT", "443"),
        ("SERVER__PORTS", "1, 2"),
        ("ADMIN__USERNAME", "12"),
        ("AGENTS__MINE__PROTOCOL", "acp"),
        ("AGENTS__MINE__ENABLED", "true"),
        ("AGENTS__MINE__COMMAND", r#"["a", "b"]"#),
        ("AGENTS__MINE__ENV__LEVEL", "3"),
    ];
    let value = load_from("", &list).unwrap().value;
    assert_eq!(value.server.public_port, Some(443));
    assert_eq!(value.server.ports, [1, 2]);
    assert_eq!(value.admin.username.as_deref(), Some("12"));
    let mine = &value.agents["mine"];
    assert!(mine.enabled);
    assert_eq!(
        mine.command.as_deref(),
        Some(&["a".to_owned(), "b".to_owned()][..])
    );
    assert_eq!(mine.env["level"], "3");
}

#[test]
fn an_empty_variable_unsets_an_optional_key_of_the_file() {
    let text = "[admin]\nusername = 'alice'\npassword = 'long enough'\n";
    let list = [("ADMIN__USERNAME", ""), ("ADMIN__PASSWORD", "")];
    let value = load_from(text, &list).unwrap().value;
    assert_eq!(value.admin.username, None);
    assert!(value.admin.password.is_none());
}

#[test]
fn an_entry_of_an_open_table_is_checked_by_its_type() {
    let text = "[agents.a]\nprotocol = 'acp'\ncomand = []\n[agents.b]\nenabled = true\n[agents.c]\n\
                protocol = 'acpp'\n";
    assert_eq!(
        problems(text, &[]),
        "s.toml:3: unknown key `agents.a.comand`\n  did you mean `agents.a.command`?\n\
         s.toml:4: `agents.b.protocol` is missing\n\
         s.toml:7: `agents.c.protocol` must be `demo` or `acp`, found `acpp`\n  \
         did you mean `acp`?"
    );
}

#[test]
fn a_secret_comes_from_a_file_and_is_never_shown() {
    let secret = file("correct horse\n");
    let path = secret.path().to_str().unwrap();
    let layered = load_from("", &[("ADMIN__PASSWORD_FILE", path)]).unwrap();
    assert_eq!(
        layered.value.admin.password.as_ref().unwrap().0,
        "correct horse"
    );
    let printed = layered.print();
    let wanted = "password = \"********\"  # from SWITCHBOARD__ADMIN__PASSWORD_FILE";
    assert!(printed.contains(wanted), "{printed}");
    let text = format!("admin.password_file = '{path}'");
    let layered = load_from(&text, &[]).unwrap();
    assert_eq!(
        layered.value.admin.password.as_ref().unwrap().0,
        "correct horse"
    );
    for shown in [
        problems("admin.password = 'hunter2'", &[]),
        problems("", &[("ADMIN__PASSWORD", "hunter2")]),
    ] {
        assert!(
            shown.ends_with("`admin.password` has a value that is not accepted"),
            "{shown}"
        );
    }
    let both = [
        ("ADMIN__PASSWORD", "hunter2"),
        ("ADMIN__PASSWORD_FILE", path),
    ];
    let shown = problems("", &both);
    assert!(
        shown.contains("is also set by SWITCHBOARD__ADMIN__PASSWORD"),
        "{shown}"
    );
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_file_that_is_broken_or_missing_is_named_beside_the_other_problems() {
    let shown = problems("[server\n", &[("FOO", "1")]);
    assert!(shown.starts_with("s.toml:1: not valid TOML: "), "{shown}");
    assert!(
        shown.contains("SWITCHBOARD__FOO: unknown key `foo`"),
        "{shown}"
    );
    let sources = Sources {
        defaults: DEFAULTS,
        file: Some(Path::new("/no/such.toml")),
        ..Sources::default()
    };
    let shown = load::<Sample>(&sources, &RULES).unwrap_err().to_string();
    assert!(
        shown.starts_with("/no/such.toml: cannot read the configuration file: "),
        "{shown}"
    );
}

#[test]
fn a_key_without_end_is_refused_in_time() {
    let name = format!("AGENTS{}", "__A".repeat(30_000));
    let shown = problems("", &[(&name, "1")]);
    assert!(shown.contains(": unknown key `agents.a.a."));
    let shown = problems(&format!("agents{} = 1", ".a".repeat(60)), &[]);
    assert!(shown.contains("s.toml:1: unknown key `agents.a.a."));
}

#[test]
fn a_sections_complaint_stands_where_its_key_was_set() {
    let complaint = |key: &str| Complaint {
        key: key.to_owned(),
        message: "is not to our taste".to_owned(),
        hint: Some("take another".to_owned()),
    };
    let layered = load_from(
        "\n[server]\nquiet = true\n[agents.a]\nprotocol = 'acp'\n",
        &[],
    )
    .unwrap();
    let place = |key: &str| match layered.problem(complaint(key)).place {
        Place::File { line, .. } => line,
        _ => 0,
    };
    assert_eq!(place("server.quiet"), 3);
    assert_eq!(place("agents.a.command"), 4);
    assert_eq!(place("server.public_port"), 0);
    let error = layered.unless([complaint("log.format")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "default: `log.format`: is not to our taste\n  take another"
    );
}

#[test]
fn what_is_printed_can_be_loaded_again() {
    let text = "[server]\ntrusted_proxies = ['a\"b\\', 'c']\n[agents.'x y']\nprotocol = 'acp'\n";
    let printed = load_from(text, &[("LOG__FORMAT", "json")]).unwrap().print();
    assert!(
        printed.contains("format = \"json\"  # from SWITCHBOARD__LOG__FORMAT\n"),
        "{printed}"
    );
    let again = load_from(&printed, &[]).unwrap().value;
    assert_eq!(again.server.trusted_proxies, ["a\"b\\", "c"]);
    assert!(again.agents.contains_key("x y"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn garbage_is_refused_without_a_panic(
        text in "(\\[{0,2}(server|agents|x)[.a]{0,2}\\]{0,2}\n|[a-z.'\"]{0,6} ?= ?[\\[{'\"0-9a-z,=}\\]]{0,8}\n|\\PC{0,5}){0,6}",
        names in prop::collection::vec("(SERVER|AGENTS|ADMIN|)(__(LISTEN|PORTS|A|PASSWORD|PASSWORD_FILE|)){0,3}|\\PC{0,9}", 0..4),
        value in "\\PC{0,9}|[\\[\\],0-9\"{}=a ]{0,9}",
    ) {
        let list: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
        if let Ok(layered) = load_from(&text, &list) {
            prop_assert!(layered.print().parse::<toml::Table>().is_ok());
        }
    }
}
