//! Everything through which a gateway speaks to its operator, and a net for what must not be there.

use std::process::Output;

use crate::actors::{Browser, Collector, Gateway};

/// In every secret and every content; never in what an operator sees.
pub(super) const CANARY: &str = "kanarienvogel";

pub(super) fn canary(of: &str) -> String {
    format!("{CANARY}-{of}")
}

/// What must be found nowhere, collected on the way.
#[derive(Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn keeps(&mut self, secret: impl Into<String>) -> String {
        let secret = secret.into();
        assert!(secret.len() > 5, "{secret} could be anywhere");
        self.0.push(secret.clone());
        secret
    }

    /// The access token and the refresh token. Of the former every part alone gives it away.
    pub(super) fn keeps_those_of(&mut self, browser: &Browser) {
        let token = browser.token.clone().unwrap();
        let (_, signature) = token.rsplit_once('.').expect("a token is signed");
        self.keeps(signature);
        self.keeps(token);
        let cookie = browser.cookie.as_ref().expect("a login has a cookie");
        self.keeps(cookie.split_once('=').unwrap().1);
    }

    /// Those, and the canary by itself.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).chain([CANARY])
    }
}

/// What was said in each of them.
#[derive(Clone, Default)]
pub(super) struct Channels(Vec<(&'static str, String)>);

impl Channels {
    /// What a gateway has said until now, where the administrator may look.
    pub(super) async fn of(gateway: &Gateway, admin: &Browser, collector: &Collector) -> Self {
        let metrics = admin.gets("/metrics").await.is(200).text;
        let requests = collector.requests().into_iter();
        let traces: Vec<String> = requests.map(|(_, body)| body.to_string()).collect();
        // The link that sets it up is for whoever reads the terminal.
        let greeting = gateway.greeting().split("#t=").next().unwrap();
        Self(vec![
            ("metrics", metrics),
            ("traces", traces.join("\n")),
            ("greeting", greeting.to_owned()),
            ("log", gateway.log()),
        ])
    }

    /// And what commands beside it have printed.
    pub(super) fn and_those_of(mut self, commands: &[Output]) -> Self {
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

    /// The names of all.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }

    pub(super) fn text_of(&self, name: &str) -> &str {
        let channel = self.0.iter().find(|(known, _)| *known == name);
        &channel.unwrap().1
    }

    /// Where this is: each channel that has it, in capitals or not, and the first line there.
    pub(super) fn having(&self, secret: &str) -> Vec<(&'static str, &str)> {
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

    /// Fails if any of it is in any of them, or if one of them is empty.
    #[track_caller]
    pub(super) fn have_nothing_of(&self, secrets: &Secrets) {
        for (name, text) in &self.0 {
            assert!(!text.trim().is_empty(), "{name}: nothing was said");
        }
        for secret in secrets.all() {
            let found = self.having(secret);
            assert!(found.is_empty(), "{secret} is in {found:#?}");
        }
    }
}
