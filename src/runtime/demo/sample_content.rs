//! Sample content to try a page with: an answer with all kinds of markup, and a changed file. Pure.

use serde_json::{Value, json};

use super::super::FromAgent;
use super::script::{Step, Steps, WORD_PAUSE, answer, completed, stream_pieces, words};
use crate::domain::event::{Activity, Channel};
use crate::domain::id::RunId;
use crate::domain::tool::Tool;

const MARKDOWN: &str = "\
The retry loop gives up too early, because *every* error counts as final. Three things to know:

1. **Timeouts** are worth another try, refusals are not.
2. The wait grows with each try: 100 ms, 200 ms, 400 ms.
3. `MAX_TRIES` is read once, when the program starts.

```rust
fn is_final(error: &Error) -> bool {
    // A refusal stays one, however often we ask.
    !matches!(error, Error::Timeout | Error::Unavailable)
}
```

| error | tries | what the user sees |
|---|---|---|
| timeout | 3 | \"still trying\" |
| refused | 1 | the reason |

> Nothing is written before all of it is read.

See [the guide](https://example.org/retries) for the rest.
";

const FILE: &str = "src/retry.rs";
const BEFORE: &str = "\
//! Tries again.

pub fn fetch(url: &str) -> Result<Page, Error> {
    for attempt in 0..MAX_TRIES {
        match get(url) {
            Ok(page) => return Ok(page),
            Err(error) => return Err(error),
        }
    }
    Err(Error::GaveUp)
}
";
const AFTER: &str = "\
//! Tries again, as long as that can help.

pub fn fetch(url: &str) -> Result<Page, Error> {
    for attempt in 0..MAX_TRIES {
        match get(url) {
            Ok(page) => return Ok(page),
            Err(error) if is_final(&error) => return Err(error),
            Err(_) => sleep(100 << attempt),
        }
    }
    Err(Error::GaveUp)
}
";

/// `/markdown`: an answer with a list, code, a table, a quotation and a link.
pub(super) fn markdown(run: RunId) -> Steps {
    let said = stream_pieces(run, Channel::Text, words(MARKDOWN), WORD_PAUSE);
    Box::new(said.chain(completed(run, None)))
}

/// `/edit`: a tool that changes a file and reports the diff.
pub(super) fn edit(run: RunId) -> Steps {
    let diffs = json!({ "diffs": [{ "path": FILE, "oldText": BEFORE, "newText": AFTER }] });
    let done = [
        Step::Emit(FromAgent::Activity(Activity::ExecutingTool)),
        Step::Emit(tool(run, "running", None)),
        Step::Emit(tool(run, "completed", Some(diffs))),
        Step::Emit(FromAgent::Activity(Activity::Thinking)),
    ];
    let text = format!("I changed `{FILE}`: what is not final is tried again.");
    Box::new(done.into_iter().chain(answer(run, text)))
}

fn tool(run: RunId, status: &str, output: Option<Value>) -> FromAgent {
    let tool = Tool {
        kind: "edit".into(),
        title: format!("Edit {FILE}"),
        input: Some(json!({ "path": FILE })),
        output,
        ..Tool::new(format!("{run}.edit"), "edit", status)
    };
    FromAgent::ToolUpdate { run, tool }
}
