//! Finding: the doctor's result for one check.

use serde::Serialize;

use super::super::output::{Output, OutputError};
use super::proxy_advice::Lines;

/// Severity.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Warning,
    Problem,
}

/// The result of one check.
#[derive(Serialize)]
pub(super) struct Finding {
    what: &'static str,
    verdict: Verdict,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// The configuration line that each proxy lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    proxies: Option<Lines>,
}

impl Finding {
    pub(super) fn ok(what: &'static str, found: impl Into<String>) -> Self {
        Self {
            what,
            verdict: Verdict::Ok,
            found: found.into(),
            fix: None,
            proxies: None,
        }
    }

    pub(super) fn warning(
        what: &'static str,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Warning,
            fix: Some(fix.into()),
            ..Self::ok(what, found)
        }
    }

    pub(super) fn problem(
        what: &'static str,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Problem,
            ..Self::warning(what, found, fix)
        }
    }

    pub(super) fn in_proxies(self, lines: Lines) -> Self {
        Self {
            proxies: Some(lines),
            ..self
        }
    }

    pub(super) fn is_problem(&self) -> bool {
        self.verdict == Verdict::Problem
    }

    pub(super) fn print(&self, out: &mut Output) -> Result<(), OutputError> {
        let mark = match self.verdict {
            Verdict::Ok => "ok     ",
            Verdict::Warning => "warning",
            Verdict::Problem => "PROBLEM",
        };
        out.line(format!("{mark}  {:<14} {}", self.what, self.found))?;
        let below = "                        ";
        for line in self.fix.iter().flat_map(|fix| fix.lines()) {
            out.line(format!("{below}{line}"))?;
        }
        for (proxy, line) in self.proxies.iter().flat_map(Lines::each) {
            out.line(format!("{below}in {proxy}: {line}"))?;
        }
        Ok(())
    }
}
