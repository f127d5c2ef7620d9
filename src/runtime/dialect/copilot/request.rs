//! Requests: `generate`, `customize` and `chat`, with their timeouts and retries.

use std::time::Duration;

use serde_json::{Value, json};

use crate::runtime::dialect::Setup;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    /// The prompt has an API specification.
    Generate {
        spec: Value,
    },
    /// The session has generated code.
    Customize,
    Chat,
}

impl Request {
    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Generate { .. } => "generate",
            Self::Customize => "customize",
            Self::Chat => "chat",
        }
    }

    pub(super) fn is_code(&self) -> bool {
        !matches!(self, Self::Chat)
    }

    /// Of one attempt, with its stream.
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs(match self {
            Self::Generate { .. } => 60,
            Self::Customize => 30,
            Self::Chat => 15,
        })
    }

    pub(super) fn retry_delays(&self) -> &'static [Duration] {
        const IMMEDIATE: &[Duration] = &[Duration::ZERO];
        const DELAYED: &[Duration] = &[Duration::from_secs(3), Duration::from_secs(6)];
        match self {
            Self::Generate { .. } | Self::Customize => IMMEDIATE,
            Self::Chat => DELAYED,
        }
    }
}

#[derive(Debug)]
pub(super) struct GenerateOptions {
    format: String,
    theme: String,
    layout: String,
    include_auth: bool,
    pagination: bool,
}

impl GenerateOptions {
    pub(super) fn from(setup: &Setup) -> Self {
        let text = |name, default: &str| setup.option(name).unwrap_or(default).to_owned();
        let flag = |name| setup.options.get(name) != Some(&Value::Bool(false));
        Self {
            format: text("format", "react"),
            theme: text("theme", "light"),
            layout: text("layout", "default"),
            include_auth: flag("include_auth"),
            pagination: flag("pagination"),
        }
    }

    /// The protocol has no field for the prompt that came with the specification: it is sent as `prompt`.
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
    fn timeouts_and_retries_are_those_of_the_protocol() {
        let generate = Request::Generate { spec: json!({}) };
        for (request, timeout, retry_delays) in [
            (generate, 60, &[0][..]),
            (Request::Customize, 30, &[0]),
            (Request::Chat, 15, &[3, 6]),
        ] {
            let delays = request.retry_delays().iter().map(Duration::as_secs);
            assert_eq!(request.timeout().as_secs(), timeout, "{request:?}");
            assert_eq!(delays.collect::<Vec<_>>(), retry_delays, "{request:?}");
        }
    }
}
