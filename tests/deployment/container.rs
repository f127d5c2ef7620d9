//! Container: the gateway in `runc`, with the image's configuration and the limits of `docker-compose.yml`.
//! Not applied: docker's seccomp profile, and the open-files limit, which not every machine lets a test raise.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    BINARY, builds_as_the_image_does, instructions, interpolate, services, step, succeeds,
};

const BUILT: &str = "SWITCHBOARD_TEST_IMAGE";

/// Whether this process may create containers: root, and not inside one that forbids it. A given image is
/// always tried.
pub(crate) fn is_possible() -> bool {
    let tried = Command::new("unshare").args(["--mount", "true"]).output();
    std::env::var_os(BUILT).is_some() || tried.is_ok_and(|output| output.status.success())
}

/// A root file system, and its configuration in docker's terms.
pub(crate) struct Image {
    pub(crate) root: PathBuf,
    config: Value,
    /// Temporary; removed when dropped.
    dir: Option<TempDir>,
}

impl Image {
    /// The image that `scripts/image/try` has built, or else one with the binary of these tests, installed by
    /// the script that the Dockerfile calls.
    pub(crate) fn under_test() -> Self {
        match std::env::var_os(BUILT).map(PathBuf::from) {
            Some(built) => Self {
                root: fs::canonicalize(built.join("root")).unwrap(),
                config: serde_json::from_slice(&fs::read(built.join("config.json")).unwrap())
                    .unwrap(),
                dir: None,
            },
            None => Self::of_these_tests(),
        }
    }

    fn of_these_tests() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (built, root) = (dir.path().join("switchboard"), dir.path().join("root"));
        builds_as_the_image_does(dir.path(), &built);
        succeeds(Command::new(step("install.sh")).args([&built, &root]));
        fs::remove_file(&built).unwrap();
        for name in ["proc", "sys", "dev", "tmp", "run"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        // As in every distribution; a mount there takes its mode.
        fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
        let tini = "/usr/bin/tini";
        assert!(
            Path::new(tini).exists(),
            "no tini; ./scripts/test installs it"
        );
        let listed = Command::new("ldd").args([BINARY, tini]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let libraries = listed
            .split_whitespace()
            .filter(|word| word.starts_with("/lib"));
        for file in libraries.chain([tini]) {
            succeeds(
                Command::new("install")
                    .args(["-D", file])
                    .arg(root.join(&file[1..])),
            );
        }
        Self {
            root,
            config: config_of_the_dockerfile(),
            dir: Some(dir),
        }
    }

    /// Whether this is a built image.
    pub(crate) fn is_built(&self) -> bool {
        self.dir.is_none()
    }

    fn words(&self, key: &str) -> Vec<String> {
        serde_json::from_value(self.config[key].clone()).unwrap_or_default()
    }

    /// Its user id and group id.
    fn user(&self) -> (u32, u32) {
        let user = self.config["User"].as_str().unwrap();
        let (user, group) = user.split_once(':').unwrap();
        (user.parse().unwrap(), group.parse().unwrap())
    }

    /// A new volume for a path, initialised with the image's content there.
    pub(crate) fn volume(&self, place: &str) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        let mut copy = Command::new("cp");
        copy.arg("--archive").arg(self.root.join(&place[1..]));
        succeeds(copy.arg(dir.path().join("volume")));
        dir
    }

    /// Its variables, then those of the service, then what docker adds.
    fn environment(&self) -> Vec<String> {
        let mut variables = BTreeMap::new();
        let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        for pair in [path.to_owned()].into_iter().chain(self.words("Env")) {
            let (name, value) = pair.split_once('=').unwrap();
            variables.insert(name.to_owned(), value.to_owned());
        }
        let given: BTreeMap<String, String> =
            serde_yaml_ng::from_value(services()["switchboard"]["environment"].clone()).unwrap();
        for (name, value) in given {
            variables.insert(name, interpolate(&value, &BTreeMap::new()));
        }
        let passwd = fs::read_to_string(self.root.join("etc/passwd")).unwrap();
        let mut users = passwd
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>());
        let user = users.find(|user| user[2] == self.user().0.to_string());
        variables
            .entry("HOME".to_owned())
            .or_insert_with(|| user.unwrap()[5].to_owned());
        let pair = |(name, value)| format!("{name}={value}");
        variables.into_iter().map(pair).collect()
    }
}

/// The image configuration that `docker inspect` would show for the Dockerfile.
fn config_of_the_dockerfile() -> Value {
    let all = instructions("Dockerfile");
    let last = all.iter().rposition(|(word, _)| word == "FROM").unwrap();
    let printed = |wanted: &str| {
        let found = all[last..].iter().rfind(|(word, _)| word == wanted);
        found.unwrap().1.as_str()
    };
    let list = |text: &str| serde_json::from_str::<Vec<String>>(text).unwrap();
    let (_, check) = printed("HEALTHCHECK").split_once(" CMD ").unwrap();
    let check: Vec<String> = ["CMD".to_owned()].into_iter().chain(list(check)).collect();
    json!({
        "User": printed("USER"),
        "WorkingDir": printed("WORKDIR"),
        "Env": printed("ENV").split_whitespace().collect::<Vec<_>>(),
        "Entrypoint": list(printed("ENTRYPOINT")),
        "Cmd": list(printed("CMD")),
        "StopSignal": printed("STOPSIGNAL"),
        "Healthcheck": { "Test": check },
    })
}

/// The mounts of the service: its volume, its secrets, its temporary files.
fn mounts_of_the_service(volume: &Path) -> Vec<Value> {
    let service = &services()["switchboard"];
    let text = |value: &serde_yaml_ng::Value| value.as_str().unwrap().to_owned();
    let list = |key: &str| service[key].as_sequence().unwrap().clone();
    let mut mounts = Vec::new();
    for mount in list("volumes") {
        let (_, place) = text(&mount)
            .split_once(':')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        assert_eq!(place, "/data", "one volume");
        mounts.push(json!({ "destination": place, "type": "bind", "source": volume.join("volume"), "options": ["rbind", "rw"] }));
    }
    for mount in list("tmpfs") {
        let mount = text(&mount);
        let (place, given) = mount.split_once(':').unwrap_or((&mount, ""));
        // Docker's defaults, unless the file overrides them.
        let mut options = vec!["nosuid", "nodev", "noexec"];
        options.retain(|option| {
            !given
                .split(',')
                .any(|word| Some(word) == option.strip_prefix("no"))
        });
        options.extend(given.split(',').filter(|word| !word.is_empty()));
        mounts.push(
            json!({ "destination": place, "type": "tmpfs", "source": "tmpfs", "options": options }),
        );
    }
    for secret in list("secrets") {
        let (name, all) = (text(&secret), crate::yaml("docker-compose.yml"));
        let file = interpolate(
            &text(&all["secrets"][name.as_str()]["file"]),
            &BTreeMap::new(),
        );
        mounts.push(json!({
            "destination": format!("/run/secrets/{name}"),
            "type": "bind",
            "source": crate::root().join(file),
            "options": ["rbind", "ro"],
        }));
    }
    mounts
}

/// The limits of the service, in the kernel's units.
fn resources_of_the_service() -> Value {
    let limits = services()["switchboard"]["deploy"]["resources"]["limits"].clone();
    let printed = |key: &str| interpolate(limits[key].as_str().unwrap(), &BTreeMap::new());
    let gigabytes: i64 = printed("memory")
        .strip_suffix('g')
        .unwrap()
        .parse()
        .unwrap();
    let cpus: i64 = printed("cpus").parse().unwrap();
    json!({
        "memory": { "limit": gigabytes << 30 },
        "pids": { "limit": limits["pids"].as_i64().unwrap() },
        "cpu": { "period": 100_000, "quota": cpus * 100_000 },
    })
}

/// The specification that docker hands to `runc`.
fn specification(image: &Image, volume: &Path) -> Value {
    let service = &services()["switchboard"];
    assert_eq!(service["cap_drop"][0], "ALL");
    let is_fixed = service["security_opt"][0] == "no-new-privileges:true";
    let (user, group) = image.user();
    let command: Vec<String> = [image.words("Entrypoint"), image.words("Cmd")].concat();
    let mut mounts = vec![
        json!({ "destination": "/proc", "type": "proc", "source": "proc" }),
        json!({ "destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755", "size=65536k"] }),
        json!({ "destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"] }),
        json!({ "destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"] }),
        json!({ "destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"] }),
    ];
    mounts.extend(mounts_of_the_service(volume));
    let nothing: [&str; 0] = [];
    let kinds = ["pid", "ipc", "uts", "mount", "network"];
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": { "uid": user, "gid": group },
            "args": command,
            "env": image.environment(),
            "cwd": image.config["WorkingDir"],
            "noNewPrivileges": is_fixed,
            "capabilities": { "bounding": nothing, "effective": nothing, "permitted": nothing, "inheritable": nothing },
        },
        "root": { "path": image.root, "readonly": service["read_only"].as_bool().unwrap() },
        "mounts": mounts,
        "linux": {
            "namespaces": kinds.map(|kind| json!({ "type": kind })),
            "resources": resources_of_the_service(),
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    })
}

/// A running container, in a network of its own; removed when dropped.
pub(crate) struct Container {
    name: String,
    /// Its specification, output, and `runc`'s state.
    dir: TempDir,
    health: Vec<String>,
    stop_signal: String,
    process: Child,
}

impl Container {
    pub(crate) fn start(image: &Image, volume: &TempDir) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let specification = specification(image, volume.path());
        fs::write(dir.path().join("config.json"), specification.to_string()).unwrap();
        let name = dir.path().file_name().unwrap().to_str().unwrap();
        let name = format!("switchboard-test{}", name.replace('.', "-"));
        let file = |name: &str| File::create(dir.path().join(name)).unwrap();
        let process = runc(dir.path())
            .args(["run", "--bundle"])
            .arg(dir.path())
            .arg(&name)
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .unwrap_or_else(|error| panic!("runc: {error}; ./scripts/test installs it"));
        let health: Vec<String> =
            serde_json::from_value(image.config["Healthcheck"]["Test"].clone()).unwrap();
        assert_eq!(health[0], "CMD");
        let mut container = Self {
            name,
            dir,
            health: health[1..].to_vec(),
            stop_signal: image.config["StopSignal"].as_str().unwrap().to_owned(),
            process,
        };
        container.becomes_healthy();
        container
    }

    /// Runs the health check as docker does, but more often.
    fn becomes_healthy(&mut self) {
        let deadline = Instant::now() + Duration::from_mins(1);
        let check = self.health.clone();
        let check: Vec<&str> = check.iter().map(String::as_str).collect();
        while !self.runs(&check).status.success() {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {}", self.output("stderr"));
            assert!(Instant::now() < deadline, "{}", self.output("stderr"));
        }
    }

    /// `docker exec`.
    pub(crate) fn runs(&self, command: &[&str]) -> Output {
        let mut exec = runc(self.dir.path());
        exec.args(["exec", &self.name]).args(command);
        exec.stdin(Stdio::null()).output().unwrap()
    }

    /// Its `stdout` or `stderr` so far.
    pub(crate) fn output(&self, stream: &str) -> String {
        fs::read_to_string(self.dir.path().join(stream)).unwrap()
    }

    /// Its first process, by the host's pid.
    pub(crate) fn pid(&self) -> u64 {
        let state = runc(self.dir.path()).args(["state", &self.name]).output();
        let state: Value = serde_json::from_slice(&state.unwrap().stdout).unwrap();
        state["pid"].as_u64().unwrap()
    }

    /// A program of the host in the container's network.
    pub(crate) fn visited_by(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/proc/{}/ns/net", self.pid()))
            .arg(program)
            .stdin(Stdio::null());
        command
    }

    /// `docker stop`: exit status and duration.
    pub(crate) fn stops(mut self) -> (ExitStatus, Duration) {
        let asked = Instant::now();
        succeeds(runc(self.dir.path()).args(["kill", &self.name, &self.stop_signal]));
        let deadline = asked + Duration::from_mins(1);
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return (status, asked.elapsed());
            }
            assert!(Instant::now() < deadline, "{}", self.output("stderr"));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let mut delete = runc(self.dir.path());
        delete.args(["delete", "--force", &self.name]).output().ok();
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn runc(dir: &Path) -> Command {
    // Not every PATH has /usr/sbin, where Debian puts it.
    let program = ["/usr/sbin/runc", "/usr/bin/runc"];
    let found = program.iter().find(|path| Path::new(path).exists());
    let mut command = Command::new(found.unwrap_or(&"runc"));
    command.arg("--root").arg(dir.join("notes"));
    command
}
