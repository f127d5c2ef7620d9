//! Agent logins: how the usual agents show that they are logged in, and how to log in.
//!
//! Only for advice: a login may also be in a key ring, or come from a file that nobody expects here.

/// What is known of a program.
pub(super) struct AgentLogin {
    /// The name of its file.
    pub(super) name: &'static str,
    /// Variables that hold a login.
    pub(super) variables: &'static [&'static str],
    /// The variables count only together with the option `auth_method`.
    pub(super) needs_auth_method: bool,
    /// Files that hold a login: a variable that replaces a directory of the home, that directory, and
    /// the file in it.
    pub(super) files: &'static [(&'static str, &'static str, &'static str)],
    /// The command that logs it in.
    pub(super) login: &'static str,
}

const fn program(
    name: &'static str,
    variables: &'static [&'static str],
    files: &'static [(&'static str, &'static str, &'static str)],
    login: &'static str,
) -> AgentLogin {
    AgentLogin {
        name,
        variables,
        needs_auth_method: false,
        files,
        login,
    }
}

const ANTHROPIC: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
];
const CODEX_FILES: &[(&str, &str, &str)] = &[("CODEX_HOME", ".codex", "auth.json")];

const PROGRAMS: &[AgentLogin] = &[
    program(
        "opencode",
        // A configuration of its own may name a model that needs no login.
        &[
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_CONTENT",
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "OPENROUTER_API_KEY",
        ],
        &[
            ("XDG_DATA_HOME", ".local/share", "opencode/auth.json"),
            ("XDG_CONFIG_HOME", ".config", "opencode/opencode.json"),
        ],
        "opencode auth login",
    ),
    program(
        "gemini",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        &[("", ".gemini", "oauth_creds.json")],
        "gemini",
    ),
    AgentLogin {
        needs_auth_method: true,
        ..program(
            "codex-acp",
            &["OPENAI_API_KEY", "CODEX_API_KEY"],
            CODEX_FILES,
            "codex login",
        )
    },
    program("codex", &["CODEX_API_KEY"], CODEX_FILES, "codex login"),
    program(
        "claude-agent-acp",
        ANTHROPIC,
        &[("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json")],
        "claude, then /login",
    ),
    program(
        "qwen",
        &["OPENAI_API_KEY"],
        &[("", ".qwen", "oauth_creds.json")],
        "qwen",
    ),
    program(
        "pi",
        &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"],
        &[
            ("PI_CODING_AGENT_DIR", ".pi/agent", "auth.json"),
            ("PI_CODING_AGENT_DIR", ".pi/agent", "models.json"),
        ],
        "pi, then /login",
    ),
];

/// What is known of the program of this file name.
pub(super) fn find(name: &str) -> Option<&'static AgentLogin> {
    PROGRAMS.iter().find(|known| known.name == name)
}
