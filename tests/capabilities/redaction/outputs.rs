//! Outputs: logs, metrics, traces and command output of a gateway, and a search for secrets in them.

use std::process::Output;

use crate::actors::{Collector, Gateway, HttpClient};

/// In every secret and every content; never in an output.
pub(super) const CANARY: &str = "kanarienvogel";

pub(super) fn canary(of: &str) -> String {
    format!("{CANARY}-{of}")
}

/// Secrets that must appear in no output, collected during the test.
#[derive(Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn adds(&mut self, secret: impl Into<String>) -> String {
        let secret = secret.into();
        assert!(secret.len() > 5, "{secret} could be anywhere");
        self.0.push(secret.clone());
        secret
    }

    /// Adds the access token, by its parts too, and the refresh token.
    pub(super) fn adds_tokens_of(&mut self, browser: &HttpClient) {
        let token = browser.token.clone().unwrap();
        let (_, signature) = token.rsplit_once('.').expect("a token is signed");
        self.adds(signature);
        self.adds(token);
        let cookie = browser.cookie.as_ref().expect("a login has a cookie");
        self.adds(cookie.split_once('=').unwrap().1);
    }

    /// All secrets, and the canary itself.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).chain([CANARY])
    }
}

/// The text of each output, by name.
#[derive(Clone, Default)]
pub(super) struct Outputs(Vec<(&'static str, String)>);

impl Outputs {
    /// The outputs of a gateway so far.
    pub(super) async fn of(gateway: &Gateway, admin: &HttpClient, collector: &Collector) -> Self {
        let metrics = admin.gets("/metrics").await.is(200).text;
        let requests = collector.requests().into_iter();
        let traces: Vec<String> = requests.map(|(_, body)| body.to_string()).collect();
        // The setup link is meant for the terminal.
        let greeting = gateway.startup_output().split("#t=").next().unwrap();
        Self(vec![
            ("metrics", metrics),
            ("traces", traces.join("\n")),
            ("greeting", greeting.to_owned()),
            ("log", gateway.log()),
        ])
    }

    /// Adds the output of commands.
    pub(super) fn with_commands(mut self, commands: &[Output]) -> Self {
        let joined = |of: fn(&Output) -> &Vec<u8>| {
            let texts = commands.iter().map(of);
            let texts: Vec<_> = texts.map(|text| String::from_utf8_lossy(text)).collect();
            texts.join("\n")
        };
        let (out, error) = (joined(|done| &done.stdout), joined(|done| &done.stderr));
        self.0
            .extend([("standard output", out), ("standard error", error)]);
        self
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }

    pub(super) fn text_of(&self, name: &str) -> &str {
        let channel = self.0.iter().find(|(known, _)| *known == name);
        &channel.unwrap().1
    }

    /// Each output that contains the secret, in any case, with the first such line.
    pub(super) fn containing(&self, secret: &str) -> Vec<(&'static str, &str)> {
        let secret = secret.to_ascii_lowercase();
        let first = |text: &'_ str| {
            let mut lines = text.lines();
            lines.position(|line| line.to_ascii_lowercase().contains(&secret))
        };
        let channels = self.0.iter();
        let found = channels.filter_map(|(name, text)| {
            let line = first(text)?;
            Some((*name, text.lines().nth(line)?))
        });
        found.collect()
    }

    /// Fails if an output contains a secret, or is empty.
    #[track_caller]
    pub(super) fn contain_none_of(&self, secrets: &Secrets) {
        for (name, text) in &self.0 {
            assert!(!text.trim().is_empty(), "{name}: nothing was said");
        }
        for secret in secrets.all() {
            let found = self.containing(secret);
            assert!(found.is_empty(), "{secret} is in {found:#?}");
        }
    }
}
