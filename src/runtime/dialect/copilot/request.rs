//! The requests of a prompt: which there are, how long each may take, and how it is tried again.

use std::time::Duration;

use serde_json::{Value, json};

use crate::runtime::dialect::Setup;

/// What a prompt becomes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    /// It brings an API specification: make an interface for it.
    Generate {
        /// The specification.
        spec: Value,
    },
    /// There is an interface: change it.
    Customize,
    /// Anything else.
    Chat,
}

impl Request {
    /// As the protocol calls it.
    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Generate { .. } => "generate",
            Self::Customize => "customize",
            Self::Chat => "chat",
        }
    }

    /// Is code made, so that code is what streams?
    pub(super) fn is_code(&self) -> bool {
        !matches!(self, Self::Chat)
    }

    /// How long one try may take, all of it.
    pub(super) fn within(&self) -> Duration {
        Duration::from_secs(match self {
            Self::Generate { .. } => 60,
            Self::Customize => 30,
            Self::Chat => 15,
        })
    }

    /// How long to wait before each further try; there are as many as this.
    pub(super) fn again_after(&self) -> &'static [Duration] {
        const AT_ONCE: &[Duration] = &[Duration::ZERO];
        const SLOWLY: &[Duration] = &[Duration::from_secs(3), Duration::from_secs(6)];
        match self {
            Self::Generate { .. } | Self::Customize => AT_ONCE,
            Self::Chat => SLOWLY,
        }
    }
}

/// How code shall be made, by the options of the agent.
#[derive(Debug)]
pub(super) struct Style {
    format: String,
    theme: String,
    layout: String,
    include_auth: bool,
    pagination: bool,
}

impl Style {
    /// As it is configured, or as the protocol's document has it.
    pub(super) fn from(setup: &Setup) -> Self {
        let word = |name, usual: &str| setup.option(name).unwrap_or(usual).to_owned();
        let choice = |name| setup.options.get(name) != Some(&Value::Bool(false));
        Self {
            format: word("format", "react"),
            theme: word("theme", "light"),
            layout: word("layout", "default"),
            include_auth: choice("include_auth"),
            pagination: choice("pagination"),
        }
    }

    /// The parameters of `generate`. The document has no place for what the user said with the
    /// specification; it goes along as `prompt`.
    pub(super) fn generate(&self, spec: &Value, prompt: &str) -> Value {
        let mut params = json!({
            "spec": spec,
            "format": self.format,
            "theme": self.theme,
            "options": {
                "layout": self.layout,
                "includeAuth": self.include_auth,
                "pagination": self.pagination,
            },
        });
        if !prompt.trim().is_empty() {
            params["prompt"] = prompt.into();
        }
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_and_tries_are_those_of_the_document() {
        let generate = Request::Generate { spec: json!({}) };
        for (request, within, again_after) in [
            (generate, 60, &[0][..]),
            (Request::Customize, 30, &[0]),
            (Request::Chat, 15, &[3, 6]),
        ] {
            let pauses = request.again_after().iter().map(Duration::as_secs);
            assert_eq!(request.within().as_secs(), within, "{request:?}");
            assert_eq!(pauses.collect::<Vec<_>>(), again_after, "{request:?}");
        }
    }
}
