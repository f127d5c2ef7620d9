//! Deployment: the files in `deploy/` and the image are pinned, free of secrets, and match the binary.
//!
//! No image is built here. Its steps are in `scripts/image/`; the tests run the same scripts into a
//! directory and start the gateway from there. `scripts/image/try` builds one, and runs `in_container` with it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod container;
mod in_container;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_yaml_ng::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_switchboard");
const DOCKERFILES: [&str; 2] = ["Dockerfile", "deploy/docker/agents.Dockerfile"];
/// The user in the image.
const USER: u32 = 10001;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn yaml(name: &str) -> Value {
    let mut value: Value = serde_yaml_ng::from_str(&text(name)).unwrap();
    value.apply_merge().unwrap();
    value
}

/// The instructions of a Dockerfile with their arguments, continued lines joined.
fn instructions(name: &str) -> Vec<(String, String)> {
    let lines: Vec<String> = text(name)
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .map(str::to_owned)
        .collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    joined
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .map(|(word, rest)| (word.to_owned(), rest.trim().to_owned()))
        .collect()
}

fn services() -> BTreeMap<String, Value> {
    serde_yaml_ng::from_value(yaml("docker-compose.yml")["services"].clone()).unwrap()
}

/// Expands `${NAME:-default}` as compose does.
fn interpolate(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, behind) = after.split_once('}').expect("a closing brace");
        let (name, default) = inside.split_once(":-").unwrap_or((inside, ""));
        let value = variables.get(name).filter(|value| !value.is_empty());
        done += before;
        done += value.map_or(default, String::as_str);
        rest = behind;
    }
    done + rest
}

/// The variables of `.env.example`.
fn example() -> BTreeMap<String, String> {
    text(".env.example")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// `name:version` or `name:version-variant`, with a full version number.
fn is_pinned(image: &str) -> bool {
    let Some((_, tag)) = image.rsplit_once(':') else {
        return false;
    };
    let version = tag.trim_start_matches('v').split('-').next().unwrap();
    let numbers: Vec<&str> = version.split('.').collect();
    let enough = if image.starts_with("debian:") || image.starts_with("postgres:") {
        2
    } else {
        3
    };
    numbers.len() >= enough && numbers.iter().all(|number| number.parse::<u32>().is_ok())
}

#[test]
fn every_image_is_pinned() {
    let mut images: Vec<String> = Vec::new();
    for name in DOCKERFILES {
        let mut stages = Vec::new();
        for (word, rest) in instructions(name) {
            if word == "FROM" {
                let (image, stage) = rest.split_once(" AS ").unwrap_or((&rest, ""));
                if !stages.iter().any(|known| known == image) {
                    images.push(image.to_owned());
                }
                stages.push(stage.to_owned());
            }
        }
    }
    for service in services().values() {
        let image = service["image"].as_str().unwrap();
        images.push(interpolate(image, &BTreeMap::new()));
    }
    assert!(images.len() >= 9, "{images:?}");
    for image in images {
        assert!(is_pinned(&image), "{image}");
    }
    assert!(!is_pinned("caddy") && !is_pinned("caddy:2") && !is_pinned("x:latest"));
    let version = format!("switchboard:{}", env!("CARGO_PKG_VERSION"));
    assert!(text("docker-compose.yml").contains(&version));
    assert!(text("deploy/docker/agents.Dockerfile").contains(&format!("FROM {version}")));
}

#[test]
fn no_image_runs_as_root() {
    for name in DOCKERFILES {
        let last = instructions(name)
            .into_iter()
            .rfind(|(word, _)| word == "USER");
        assert_eq!(last.unwrap().1, format!("{USER}:{USER}"), "{name}");
    }
}

#[test]
fn the_repository_contains_no_password() {
    for name in [
        "Dockerfile",
        "deploy/docker/agents.Dockerfile",
        "docker-compose.yml",
        ".env.example",
    ] {
        for line in text(name)
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
        {
            let lower = line.to_lowercase();
            let suspicious = ["password", "secret", "token", "signing_key", "database_url"];
            if !suspicious.iter().any(|word| lower.contains(word)) {
                continue;
            }
            // A file, a list of files, or nothing.
            let by_file = lower.contains("_file")
                || lower.contains("./")
                || lower.contains("secrets:")
                || lower.trim().ends_with(':') && !lower.contains('=');
            assert!(by_file, "{name}: {line}");
        }
    }
    assert_eq!(text("deploy/docker/no-secret"), "");
    let ignored = text(".gitignore");
    assert!(ignored.contains("/secrets\n") && ignored.contains("/.env\n"));
    let allowed = text(".dockerignore");
    assert!(
        allowed.lines().any(|line| line == "*"),
        "the context is a list of what is allowed"
    );
    assert!(!allowed.contains("!secrets") && !allowed.contains("!.env"));
}

#[test]
fn secrets_are_generated_once_and_readable_only_by_their_owners() {
    let dir = tempfile::tempdir().unwrap();
    let make = || {
        let made = Command::new(root().join("deploy/docker/make-secrets"))
            .arg(dir.path())
            .output();
        assert!(made.unwrap().status.success());
        ["postgres_password", "database_url", "grafana_password"].map(|name| {
            let file = dir.path().join(name);
            assert_eq!(
                fs::metadata(&file).unwrap().permissions().mode() & 0o777,
                0o600
            );
            fs::read_to_string(file).unwrap()
        })
    };
    let first = make();
    assert!(first[0].len() >= 32 && first[0] != first[2]);
    assert!(first[1].contains(&format!(":{}@postgres/", first[0])));
    assert_eq!(make(), first);
}

/// The variables of a service for the gateway, as compose would set them.
fn gateway_variables(given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let service = &services()["switchboard"];
    let mut variables: BTreeMap<String, String> =
        serde_yaml_ng::from_value(service["environment"].clone()).unwrap();
    for (word, rest) in instructions("Dockerfile")
        .into_iter()
        .filter(|(word, _)| word == "ENV")
    {
        assert_eq!(word, "ENV");
        for pair in rest
            .split_whitespace()
            .filter(|pair| pair.starts_with("SWITCHBOARD__"))
        {
            let (name, value) = pair.split_once('=').unwrap();
            variables.entry(name.to_owned()).or_insert(value.to_owned());
        }
    }
    for value in variables.values_mut() {
        *value = interpolate(value, given);
    }
    variables
}

fn program(dir: &Path, arguments: &[&str], variables: &BTreeMap<String, String>) -> Output {
    let mut command = Command::new(BINARY);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SWITCHBOARD")) {
        command.env_remove(name);
    }
    let command = command.args(arguments).envs(variables).current_dir(dir);
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn the_gateway_accepts_every_variable_set_in_the_deployment_files() {
    let dir = tempfile::tempdir().unwrap();
    let url = dir.path().join("url");
    fs::write(&url, "postgres://switchboard:x@postgres/switchboard").unwrap();
    for given in [BTreeMap::new(), example()] {
        let mut variables = gateway_variables(&given);
        let file = variables
            .get_mut("SWITCHBOARD__DATA__DATABASE_URL_FILE")
            .unwrap();
        if !file.is_empty() {
            assert_eq!(file, "/run/secrets/database_url");
            *file = url.to_str().unwrap().to_owned();
        }
        let checked = program(dir.path(), &["config", "check"], &variables);
        assert!(
            checked.status.success(),
            "{}",
            String::from_utf8_lossy(&checked.stderr)
        );
    }
    let odd = BTreeMap::from([("SWITCHBOARD__SERVER__NO_SUCH".to_owned(), "1".to_owned())]);
    assert_eq!(
        program(dir.path(), &["config", "check"], &odd)
            .status
            .code(),
        Some(78)
    );
}

#[test]
fn the_services_of_the_team_deployment_fit_together() {
    let (services, team) = (services(), example());
    let variables = gateway_variables(&team);
    let setting = |name: &str| variables[&format!("SWITCHBOARD__{name}")].as_str();
    let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
    assert_eq!(
        setting("SERVER__PUBLIC_URL"),
        format!("https://{}", team["SWITCHBOARD_HOST"])
    );
    let caddy = &services["caddy"];
    assert_eq!(
        caddy["networks"]["edge"]["ipv4_address"],
        setting("SERVER__TRUSTED_PROXIES")
    );
    let upstream = caddy["environment"]["SWITCHBOARD_UPSTREAM"]
        .as_str()
        .unwrap();
    assert_eq!(
        upstream,
        format!("switchboard:{}", port(setting("SERVER__LISTEN")))
    );
    let targets =
        &yaml("deploy/prometheus/prometheus.yml")["scrape_configs"][0]["static_configs"][0];
    let target = format!("switchboard:{}", port(setting("METRICS__LISTEN")));
    assert_eq!(targets["targets"][0], target.as_str());
    let exposed = instructions("Dockerfile");
    assert!(exposed.contains(&("EXPOSE".to_owned(), port(setting("SERVER__LISTEN")))));
    let caddyfile = text("deploy/caddy/Caddyfile");
    for name in [
        "SWITCHBOARD_HOST",
        "SWITCHBOARD_UPSTREAM",
        "SWITCHBOARD_BASE_PATH",
    ] {
        assert!(caddyfile.contains(&format!("{{${name}")), "{name}");
        assert!(!caddy["environment"][name].is_null(), "{name}");
    }
    let dynamic = yaml("deploy/traefik/dynamic.yml");
    let service = dynamic["http"]["routers"]["switchboard"]["service"]
        .as_str()
        .unwrap();
    assert!(
        dynamic["http"]["services"][service]["loadBalancer"]["passHostHeader"]
            .as_bool()
            .unwrap()
    );
    let fixed = yaml("deploy/traefik/traefik.yml");
    let entry = dynamic["http"]["routers"]["switchboard"]["entryPoints"][0]
        .as_str()
        .unwrap();
    assert!(!fixed["entryPoints"][entry].is_null());
    assert_eq!(
        fixed["entryPoints"]["web"]["http"]["redirections"]["entryPoint"]["to"],
        entry
    );
}

#[test]
fn every_service_is_sandboxed() {
    for (name, service) in services() {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"][0], "ALL", "{name}");
        assert_eq!(
            service["security_opt"][0], "no-new-privileges:true",
            "{name}"
        );
        assert_eq!(service["restart"], "unless-stopped", "{name}");
        assert!(
            !service["logging"]["options"]["max-size"].is_null(),
            "{name}"
        );
        assert!(
            !service["deploy"]["resources"]["limits"]["memory"].is_null(),
            "{name}"
        );
        assert!(
            name == "switchboard" || !service["healthcheck"]["test"].is_null(),
            "{name}"
        );
        for port in service["ports"].as_sequence().into_iter().flatten() {
            let port = port.as_str().unwrap();
            assert!(
                name == "caddy" || port.starts_with("127.0.0.1:"),
                "{name}: {port}"
            );
        }
    }
}

#[test]
fn every_mounted_or_copied_file_exists() {
    for (name, service) in services() {
        for volume in service["volumes"].as_sequence().into_iter().flatten() {
            let from = volume.as_str().unwrap().split(':').next().unwrap();
            let own = from.starts_with("./");
            assert!(!own || root().join(from).exists(), "{name} mounts {from}");
            let known = &yaml("docker-compose.yml")["volumes"];
            assert!(own || known.get(from).is_some(), "{name}: no volume {from}");
        }
    }
    let allowed = text(".dockerignore");
    for (word, rest) in instructions("Dockerfile") {
        if word != "COPY" || rest.starts_with("--from") || rest.starts_with('.') {
            continue;
        }
        let from = rest.split(' ').next().unwrap();
        assert!(root().join(from).exists(), "the Dockerfile copies {from}");
        let top = from.split('/').next().unwrap();
        assert!(
            allowed.lines().any(|line| line == format!("!{top}")),
            "{from} is ignored"
        );
    }
}

#[test]
fn the_image_build_copies_every_cargo_target() {
    let manifest: toml::Table = text("Cargo.toml").parse().unwrap();
    let allowed = text(".dockerignore");
    for kind in ["bin", "test", "bench"] {
        for target in manifest[kind].as_array().unwrap() {
            let path = target
                .get("path")
                .map_or("benches/x.rs", |path| path.as_str().unwrap());
            let within = Path::new(path).parent().unwrap().display();
            let line = format!("!{within}");
            assert!(
                allowed.lines().any(|known| known == line),
                "{path} is ignored"
            );
        }
    }
}

#[test]
fn the_health_check_is_a_command_that_exists() {
    let dir = tempfile::tempdir().unwrap();
    let check = instructions("Dockerfile")
        .into_iter()
        .find(|(word, _)| word == "HEALTHCHECK");
    let check = check.unwrap().1;
    let (_, command) = check.split_once(" CMD ").unwrap();
    let command: Vec<String> = serde_json::from_str(command).unwrap();
    assert_eq!(command[0], "switchboard");
    let help = program(dir.path(), &[&command[1], "--help"], &BTreeMap::new());
    assert!(help.status.success(), "{help:?}");
}

/// Copies the files that a stage of the Dockerfile takes from the sources.
fn sources_of_stage(stage: &str, into: &Path) {
    let mut inside = false;
    for (word, rest) in instructions("Dockerfile") {
        match word.as_str() {
            "FROM" => inside = rest.ends_with(&format!(" AS {stage}")),
            "COPY" if inside => {
                let (from, to) = rest.split_once(' ').unwrap();
                let to = into.join(to);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                // As .dockerignore says: installed and built files are left out.
                let copied = Command::new("sh")
                    .arg("-c")
                    .arg("mkdir -p \"$2\" && tar -C \"$1\" --exclude=node_modules --exclude=dist -cf - . | tar -C \"$2\" -xf -")
                    .args(["copy".as_ref(), root().join(from).as_os_str(), to.as_os_str()])
                    .status();
                assert!(copied.unwrap().success(), "{from}");
            }
            _ => {}
        }
    }
}

/// The script that a step of the Dockerfile runs.
fn step(script: &str) -> PathBuf {
    let ran = instructions("Dockerfile");
    let is_run = ran
        .iter()
        .any(|(word, rest)| word == "RUN" && rest.contains(script));
    assert!(is_run, "no step runs {script}");
    root().join("scripts/image").join(script)
}

fn succeeds(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_page_stage_copies_all_its_inputs() {
    step("page.sh");
    let dir = tempfile::tempdir().unwrap();
    sources_of_stage("page", dir.path());
    let page = dir.path().join("page");
    let mut bundling = Command::new(dir.path().join("scripts/image/page.sh"));
    succeeds(bundling.arg(&page).current_dir(&dir));
    for name in ["index.html", "index.html.gz"] {
        assert!(page.join(name).exists(), "{name}");
    }
    assert!(fs::read_dir(page.join("assets")).unwrap().count() >= 4);
}

/// Runs the build step with the tests' binary in place of a cargo build, which would need other features of
/// the dependencies and take minutes.
fn builds_as_the_image_does(dir: &Path, built: &Path) {
    let manifest: toml::Table = text("Cargo.toml").parse().unwrap();
    assert!(manifest["profile"].get("dist").is_some());
    let cargo = dir.join("bin/cargo");
    fs::create_dir_all(cargo.parent().unwrap()).unwrap();
    let printed = dir.join("said");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >'{}'\ninstall -D '{BINARY}' \"$CARGO_TARGET_DIR/dist/switchboard\"\n",
        printed.display()
    );
    fs::write(&cargo, script).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", cargo.parent().unwrap().display());
    let target = dir.join("target");
    let mut build = Command::new(step("build.sh"));
    build
        .env("PATH", path)
        .env("CARGO_TARGET_DIR", &target)
        .arg(built);
    succeeds(build.current_dir(root()));
    let printed = fs::read_to_string(printed).unwrap();
    assert_eq!(
        printed.trim(),
        "build --locked --bin switchboard --profile dist"
    );
    fs::remove_dir_all(target).unwrap();
}

/// A gateway from an image's file system; ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn the_installed_gateway_runs_unprivileged_and_writes_only_to_its_volume() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (built, image) = (dir.path().join("switchboard"), dir.path().join("root"));
    builds_as_the_image_does(dir.path(), &built);
    succeeds(Command::new(step("install.sh")).args([&built, &image]));
    fs::remove_file(&built).unwrap();
    assert!(
        fs::read_to_string(image.join("etc/passwd"))
            .unwrap()
            .contains(&format!(":{USER}:{USER}:"))
    );
    let is_root = fs::read_to_string("/proc/self/status")
        .unwrap()
        .contains("Uid:\t0\t");
    let data = image.join("data");
    let command = || {
        let binary = image.join("usr/local/bin/switchboard");
        let mut command = if is_root {
            let mut command = Command::new("setpriv");
            command
                .args([format!("--reuid={USER}"), format!("--regid={USER}")])
                .args([
                    "--clear-groups",
                    "--no-new-privs",
                    "--bounding-set=-all",
                    "--inh-caps=-all",
                ])
                .arg(&binary);
            command
        } else {
            Command::new(binary)
        };
        let mut variables = gateway_variables(&BTreeMap::new());
        variables.insert(
            "SWITCHBOARD__DATA__DIR".into(),
            data.to_str().unwrap().into(),
        );
        variables.insert("SWITCHBOARD__SERVER__LISTEN".into(), "127.0.0.1:0".into());
        variables.insert("SWITCHBOARD__METRICS__LISTEN".into(), String::new());
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(variables)
            .current_dir(&data);
        command.process_group(0).stdin(Stdio::null());
        command
    };
    let quiet = || Stdio::null();
    let serving = command()
        .arg("serve")
        .stdout(quiet())
        .stderr(quiet())
        .spawn();
    let mut running = Running(serving.unwrap());
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let health = command().arg("health").output().unwrap();
        if health.status.success() {
            break;
        }
        assert!(running.0.try_wait().unwrap().is_none(), "it ended");
        assert!(
            Instant::now() < deadline,
            "{}",
            String::from_utf8_lossy(&health.stderr)
        );
    }
    if is_root {
        let status = fs::read_to_string(format!("/proc/{}/status", running.0.id())).unwrap();
        for line in [
            format!("Uid:\t{USER}\t"),
            "CapEff:\t0000000000000000".into(),
            "NoNewPrivs:\t1".into(),
        ] {
            assert!(status.contains(&line), "{line} in {status}");
        }
    }
    assert!(data.join("switchboard.db").exists());
    let outside: Vec<_> = fs::read_dir(&image)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(outside.len(), 3, "{outside:?}");
}

#[test]
fn systemd_accepts_the_unit() {
    let unit = text("deploy/systemd/switchboard.service");
    assert!(unit.contains("\nType=notify\n") && unit.contains("\nProtectSystem=strict\n"));
    if Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_err()
    {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("switchboard.service");
    let here = unit
        .replace("/usr/local/bin/switchboard", BINARY)
        .replace("User=switchboard", "User=daemon")
        .replace("Group=switchboard", "Group=daemon");
    fs::write(&file, here).unwrap();
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&file)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&verified.stderr).into_owned();
    let ours: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains("switchboard.service"))
        .collect();
    assert!(verified.status.success() && ours.is_empty(), "{printed}");
}
