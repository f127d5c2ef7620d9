//! Launch plan: everything that the start of an agent needs, looked up and made before.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::{Launcher, SessionOwner, agent_memory};
use crate::domain::id::SessionId;
use crate::runtime::agent_directories::DirectoryMaker;
use crate::runtime::config::{AgentConfig, SandboxMode};
use crate::runtime::dialect::{Protocol, Transport};
use crate::runtime::error::AgentError;
use crate::runtime::process::ProcessSpec;
use crate::runtime::process_environment::{self, Account, Environment};
use crate::runtime::sandbox::granted_paths::{self, Program};
use crate::runtime::sandbox::{Confinement, ProcessLimits};
use crate::runtime::workspace::{self, Workspace};

const SOCKET_DIR: &str = "sockets";
const SOCKET_NAME: &str = "agent.sock";
/// The longest path of a socket's directory: Unix sockets have at most 108 bytes, name and `.events`
/// included.
const MAX_SOCKET_DIR_BYTES: usize = 80;
/// Certificates that the operator chose.
const CERTIFICATE_VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

#[derive(Debug)]
pub(in crate::runtime) struct LaunchPlan {
    pub(in crate::runtime) directory: PathBuf,
    pub(super) socket: Option<PathBuf>,
    /// Removed when the agent has ended.
    pub(super) temporary: Option<PathBuf>,
    pub(in crate::runtime) process: Option<ProcessSpec>,
}

impl Launcher {
    /// Looks up everything that an agent needs. Blocks for a few system calls.
    pub(in crate::runtime) fn prepare(
        &self,
        config: &AgentConfig,
        protocol: &Protocol,
        owner: &SessionOwner,
    ) -> Result<LaunchPlan, AgentError> {
        let names = |text: &str| {
            text.replace("{user}", &owner.user_name)
                .replace("{session}", &owner.session.to_string())
        };
        let user = match &config.user {
            None => None,
            Some(user) => Some(find_account(&names(user))?),
        };
        let account = user.as_ref().map(|user| user.account);
        let workspace = workspace::make(&self.data, &config.workspace, names, account)?;
        let directory = workspace.path.clone();
        let socket = match config.transport(protocol) {
            Transport::Stdio => None,
            Transport::Unix | Transport::UnixPair => Some(match &config.socket {
                Some(socket) => self.data.join(names(socket)),
                None => self.socket_path(owner.session).map_err(AgentError::Spawn)?,
            }),
        };
        let mut plan = LaunchPlan {
            directory,
            socket,
            temporary: None,
            process: None,
        };
        let process = ProcessPlan {
            launcher: self,
            config,
            owner,
            user,
            names: &names,
        };
        process.add_to(&mut plan, workspace)?;
        Ok(plan)
    }

    /// What of the data directory no agent may reach: all of it, or, if it is a shared home too (as in
    /// images of former versions), everything but its hidden files, which are the agents' settings.
    fn own_paths(&self, home: Option<&Path>) -> Vec<PathBuf> {
        let resolved = |path: &Path| path.canonicalize().ok();
        if home.and_then(resolved) != resolved(&self.data) {
            return vec![self.data.clone()];
        }
        let entries = std::fs::read_dir(&self.data)
            .into_iter()
            .flatten()
            .flatten();
        let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
        let own = entries.filter(|entry| !is_hidden(&entry.file_name()));
        own.map(|entry| entry.path()).collect()
    }

    /// Gives the agent of a branch what the agent of the original session keeps beside its socket. Agents
    /// under a system user of their own do not get it.
    pub(in crate::runtime) fn copy_memory(&self, plan: &LaunchPlan, original: SessionId) {
        let process = plan.process.as_ref();
        let own = process.is_some_and(|process| process.account.is_none());
        let to = plan.socket.as_deref().and_then(Path::parent);
        let (true, Some(to)) = (own, to) else { return };
        let from = self.socket_dir(original);
        if let Err(error) = agent_memory::copy(&from, to) {
            tracing::warn!(%error, session.id = %original, "a branch of this session starts without its agent's memory");
        }
    }

    /// The path of the socket that a process is to open: always the same for a session, because some
    /// agents keep their memory beside it.
    fn socket_path(&self, session: SessionId) -> io::Result<PathBuf> {
        let dir = self.socket_dir(session);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)?;
        Ok(dir.join(SOCKET_NAME))
    }

    fn socket_dir(&self, session: SessionId) -> PathBuf {
        let short = short(session);
        let dir = self.data.join(SOCKET_DIR).join(&short);
        if dir.as_os_str().len() > MAX_SOCKET_DIR_BYTES {
            let root = format!("switchboard-{}", &self.tag[..16]);
            return std::env::temp_dir().join(root).join(short);
        }
        dir
    }
}

/// A name for a session in paths that must be short.
fn short(session: SessionId) -> String {
    let session = session.to_string();
    session[session.len() - 16..].to_owned()
}

/// The part of a plan for an agent that is a process of ours.
struct ProcessPlan<'a> {
    launcher: &'a Launcher,
    config: &'a AgentConfig,
    owner: &'a SessionOwner,
    user: Option<SystemUser>,
    /// Fills in the names of user and session.
    names: &'a dyn Fn(&str) -> String,
}

impl ProcessPlan<'_> {
    fn add_to(self, plan: &mut LaunchPlan, workspace: Workspace) -> Result<(), AgentError> {
        let Some((program, arguments)) = self.config.command.split_first() else {
            return Ok(());
        };
        let directory = plan.directory.to_string_lossy().into_owned();
        let socket = plan.socket.as_deref().unwrap_or(Path::new(""));
        let socket = socket.to_string_lossy().into_owned();
        let fill = |text: &str| {
            (self.names)(text)
                .replace("{workspace}", &directory)
                .replace("{socket}", &socket)
        };
        let mut environment = self.environment(&fill)?;
        let program = environment.program(&fill(program))?;
        let arguments: Vec<String> = arguments.iter().map(|word| fill(word)).collect();
        let mut directories = self.directories(&mut environment)?;
        let mode = self.launcher.sandbox(self.config);
        let mut confinement = None;
        if mode != SandboxMode::Off {
            let temporary = self.temporary(&mut environment)?;
            plan.temporary = temporary.as_ref().map(|made| made.path.clone());
            directories.extend(temporary);
            directories.extend(socket_directory(plan.socket.as_deref())?);
            let mut allowed = self.confine(&program, &arguments, &environment)?;
            allowed.is_required = mode == SandboxMode::Required;
            confinement = Some(allowed);
        }
        let link = uuid::Uuid::now_v7().simple();
        plan.process = Some(ProcessSpec {
            program,
            arguments,
            workspace,
            directories,
            environment,
            account: self.account(),
            umask: self.config.umask(),
            tag: format!("{}/{link}", self.launcher.tag),
            limits: ProcessLimits::default(),
            confinement,
        });
        Ok(())
    }

    fn account(&self) -> Option<Account> {
        self.user.as_ref().map(|user| user.account)
    }

    fn environment(&self, fill: &dyn Fn(&str) -> String) -> Result<Environment, AgentError> {
        let filled = |(name, value): (&String, &String)| (name.clone(), fill(value));
        let set: BTreeMap<_, _> = self.config.env.iter().map(filled).collect();
        let own = |name: &str| std::env::var_os(name);
        let (passed, files) = (&self.config.pass_env, &self.config.env_files);
        let mut environment = Environment::new(own, passed, &set, files)?;
        if let Some(user) = &self.user {
            user.describe(&set, &mut environment);
        }
        Ok(environment)
    }

    fn maker<'b>(&'b self, fill: &'b dyn Fn(&str) -> String) -> DirectoryMaker<'b> {
        DirectoryMaker {
            data: &self.launcher.data,
            config: self.config,
            fill,
            account: self.account(),
        }
    }

    /// The directories in which the agent stores things.
    fn directories(&self, environment: &mut Environment) -> Result<Vec<Workspace>, AgentError> {
        let maker = self.maker(self.names);
        let mut made = maker.named_in_environment(environment)?;
        made.extend(maker.home(self.launcher.has_user_homes, environment)?);
        Ok(made)
    }

    /// A temporary directory with a short path: agents open sockets there.
    fn temporary(&self, environment: &mut Environment) -> Result<Option<Workspace>, AgentError> {
        let short = short(self.owner.session);
        let fill = |text: &str| text.replace("{session}", &short);
        self.maker(&fill).temporary(environment)
    }

    /// What the agent may reach, besides the directories that were made for it.
    fn confine(
        &self,
        program: &Path,
        arguments: &[String],
        environment: &Environment,
    ) -> Result<Confinement, AgentError> {
        let variable = |name: &str| environment.variables.get(name);
        let home = variable("HOME").map(Path::new);
        let mut protected = self.launcher.protected.clone();
        protected.extend(self.launcher.own_paths(home));
        let mut read = granted_paths::needed_by(Program {
            path: program,
            arguments,
            search_path: variable("PATH").map(std::ffi::OsString::as_os_str),
            home,
        });
        // Files that the operator names to the agent.
        let set = self.config.env.keys().map(String::as_str);
        let named = set.chain(CERTIFICATE_VARIABLES).filter_map(variable);
        let named = named.map(PathBuf::from);
        read.extend(named.filter(|path| path.is_absolute() && path.exists()));
        let mut write: Vec<PathBuf> = home.map(Path::to_owned).into_iter().collect();
        for (key, paths, granted) in [
            ("read", &self.config.read, &mut read),
            ("write", &self.config.write, &mut write),
        ] {
            for path in paths {
                let path = PathBuf::from((self.names)(path));
                check_grant(key, &path, &protected)?;
                granted.push(path);
            }
        }
        Ok(Confinement {
            is_required: false,
            read: granted_paths::without_protected(read, &protected),
            write: granted_paths::without_protected(write, &protected),
            network: self.config.network.clone(),
        })
    }
}

/// Refuses to grant what no agent may reach.
fn check_grant(key: &str, path: &Path, protected: &[PathBuf]) -> Result<(), AgentError> {
    let granted = granted_paths::without_protected(vec![path.to_owned()], protected);
    if path.exists() && granted.is_empty() {
        let path = path.display();
        let reason = format!("`{key}` names {path}, which no agent may reach: choose another path");
        return Err(AgentError::Sandbox { reason });
    }
    Ok(())
}

/// The directory in which the agent opens its socket.
fn socket_directory(socket: Option<&Path>) -> Result<Option<Workspace>, AgentError> {
    let directory = socket.and_then(Path::parent).filter(|dir| dir.is_dir());
    Ok(directory.map(workspace::open_existing).transpose()?)
}

/// The system user that an agent runs as.
struct SystemUser {
    name: String,
    account: Account,
    home: PathBuf,
}

fn find_account(name: &str) -> Result<SystemUser, AgentError> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = process_environment::account(&users, name);
    let (account, home) = found.ok_or_else(|| AgentError::NoUser {
        user: name.to_owned(),
    })?;
    Ok(SystemUser {
        name: name.to_owned(),
        account,
        home,
    })
}

impl SystemUser {
    /// The variables that name it, unless the operator set them.
    fn describe(&self, set: &BTreeMap<String, String>, environment: &mut Environment) {
        for (name, value) in [
            ("HOME", self.home.clone().into_os_string()),
            ("USER", self.name.clone().into()),
            ("LOGNAME", self.name.clone().into()),
        ] {
            if !set.contains_key(name) {
                environment.variables.insert(name.into(), value);
            }
        }
    }
}
