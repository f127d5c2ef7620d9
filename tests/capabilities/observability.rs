//! Observability: metrics, dashboard, alerts and their documentation name what a gateway exports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::actors::{Gateway, Settings, SseClient, WsClient};
use crate::agents::{FakeAgent, runs_prompt};
use exposition::Exposition;

mod exposition;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// A gateway that has done some of everything, and its metrics.
async fn scrape() -> (Gateway, String) {
    let agents = FakeAgent::all();
    let acp = agents.iter().find(|agent| agent.name == "acp").unwrap();
    let gateway = Settings::new()
        .with_config_file(&acp.configuration(""))
        .start()
        .await;
    let mut page = gateway.logged_in("root").await;
    gateway.anonymous().logs_in("root", "wrong").await.is(401);
    let before = page.cookie.clone();
    page.refreshes().await.is(200);
    let mut thief = gateway.anonymous();
    thief.cookie = before;
    thief.refreshes().await.is(401);
    let page = gateway.logged_in("root").await;
    let token = page.token.clone().unwrap();
    let mut root = WsClient::connects(page.address(), &token, "").await;
    root.prompts("/tool").await;
    let question = root.sees("QUESTION").await["payload"]["questionId"].clone();
    root.sends(
        "ANSWER",
        json!({ "questionId": question, "optionId": "allow" }),
    )
    .await;
    root.sees_run_end().await;
    root.prompts("/fail").await;
    root.sees_run_end().await;
    let again = WsClient::connects(page.address(), &token, &root.position_after(0)).await;
    let stream = SseClient::follows(page.address(), &token, &root.session(), None).await;
    let upload = format!("/api/sessions/{}/attachments?name=x", root.session());
    page.posts(&upload, json!({ "a": "file" })).await.is(201);
    let mut crashing = WsClient::connects(page.address(), &token, "?agent=acp").await;
    runs_prompt(&mut crashing, "/crash").await;
    runs_prompt(&mut crashing, "/echo alive").await;
    let metrics = page.gets("/metrics").await.is(200).text;
    drop((again, stream));
    (gateway, metrics)
}

fn value(metrics: &str, sample: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(sample));
    let line = line.unwrap_or_else(|| panic!("{sample} in {metrics}"));
    line.trim().parse().unwrap()
}

#[tokio::test]
async fn metrics_count_what_happened() {
    let (_gateway, metrics) = scrape().await;
    for (sample, wanted) in [
        ("switchboard_runs_started_total{agent=\"demo\"}", 2.0),
        (
            "switchboard_runs_ended_total{agent=\"demo\",outcome=\"completed\"}",
            1.0,
        ),
        (
            "switchboard_runs_ended_total{agent=\"demo\",outcome=\"failed\"}",
            1.0,
        ),
        (
            "switchboard_run_failures_total{agent=\"demo\",code=\"TASK_FAILED\"}",
            1.0,
        ),
        (
            "switchboard_run_failures_total{agent=\"acp\",code=\"CONNECTION_LOST\"}",
            1.0,
        ),
        ("switchboard_runs_running{agent=\"demo\"}", 0.0),
        (
            "switchboard_run_duration_seconds_count{agent=\"demo\"}",
            2.0,
        ),
        (
            "switchboard_questions_asked_total{kind=\"permission\"}",
            1.0,
        ),
        (
            "switchboard_questions_ended_total{outcome=\"granted\"}",
            1.0,
        ),
        ("switchboard_questions_open", 0.0),
        ("switchboard_connections_open{door=\"ws\"}", 3.0),
        ("switchboard_connections_open{door=\"sse\"}", 1.0),
        ("switchboard_resumes_total{verdict=\"replayed\"}", 1.0),
        ("switchboard_auth_logins_total{outcome=\"started\"}", 2.0),
        ("switchboard_auth_logins_total{outcome=\"refused\"}", 1.0),
        ("switchboard_auth_refreshes_total{outcome=\"reused\"}", 1.0),
        ("switchboard_uploads_total{outcome=\"stored\"}", 1.0),
        ("switchboard_agent_crashes_total{agent=\"acp\"}", 1.0),
        ("switchboard_agent_starts_total{agent=\"acp\"}", 2.0),
        ("switchboard_isolation_violations_total", 0.0),
        ("switchboard_storage_errors_total{wanted=\"commit\"}", 0.0),
    ] {
        assert!(
            (value(&metrics, sample) - wanted).abs() < 0.5,
            "{sample} in {metrics}"
        );
    }
    for sample in [
        "switchboard_journal_events_total",
        "switchboard_journal_commit_seconds_count",
        "switchboard_delivery_seconds_count",
        "switchboard_agent_memory_bytes{agent=\"acp\"}",
        "switchboard_disk_free_bytes",
        "switchboard_connection_places_taken",
        "process_start_time_seconds",
    ] {
        assert!(value(&metrics, sample) > 0.0, "{sample} in {metrics}");
    }
}

/// Samples that a page or a query may name, with their labels.
fn known(metrics: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for sample in Exposition::read(metrics).unwrap().samples {
        let labels = sample.labels.into_iter().map(|(name, _)| name);
        known.entry(sample.name).or_default().extend(labels);
    }
    known.insert("up".to_owned(), BTreeSet::new());
    known
}

#[tokio::test]
async fn metrics_dashboard_alerts_and_documentation_name_the_same_metrics() {
    let (_gateway, metrics) = scrape().await;
    let reported = Exposition::read(&metrics).unwrap_or_else(|fault| panic!("{fault}"));
    checks_with_promtool(&["check", "metrics"], Some(&metrics));
    for sample in &reported.samples {
        for (label, value) in &sample.labels {
            assert!(
                !value.contains("ses_") && !value.contains("usr_"),
                "{label}={value}"
            );
        }
    }

    // The page has exactly one row for each metric, with its labels.
    let page = read("docs/observability.md");
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| `switchboard_") || line.starts_with("| `process_"));
    let written: BTreeMap<String, (String, BTreeSet<String>)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let labels = cells[3]
                .split(',')
                .map(|label| label.trim().trim_matches('`').to_owned());
            let labels = labels.filter(|label| !label.is_empty()).collect();
            let name = cells[1].trim_matches('`').to_owned();
            (name, (cells[2].to_owned(), labels))
        })
        .collect();
    // Postgres has no file size to export.
    let on_postgres = std::env::var("SWITCHBOARD_TEST_DATABASE").as_deref() == Ok("postgres");
    let mut real = reported.families();
    if on_postgres {
        let row = written["switchboard_database_size_bytes"].clone();
        real.insert("switchboard_database_size_bytes".to_owned(), row);
    }
    assert_eq!(written, real, "docs/observability.md and a scrape differ");

    let mut known = known(&metrics);
    known
        .entry("switchboard_database_size_bytes".to_owned())
        .or_default();
    let dashboard: Value =
        serde_json::from_str(&read("deploy/grafana/dashboards/switchboard.json")).unwrap();
    let mut expressions = Vec::new();
    collect(&dashboard, &mut expressions);
    assert!(expressions.len() > 40, "{expressions:?}");
    for expression in &expressions {
        names_what_is(expression, &known);
    }
    let rows = dashboard["panels"].as_array().unwrap().iter();
    let rows: Vec<&str> = rows
        .filter(|panel| panel["type"] == "row")
        .map(|row| row["title"].as_str().unwrap())
        .collect();
    assert_eq!(
        rows,
        [
            "Overview",
            "Delivery",
            "Runs and agents",
            "Storage",
            "Limits and security",
            "Process"
        ]
    );
    let shown: String = expressions.concat();
    for name in reported.families().keys() {
        assert!(shown.contains(name.as_str()), "no panel shows {name}");
    }
}

/// Labels that Prometheus adds to every sample.
const SCRAPE_LABELS: [&str; 2] = ["job=\"switchboard\"", "instance=\"gateway\""];

/// Prometheus computes every expression from a busy gateway's metrics.
#[tokio::test]
async fn every_dashboard_panel_has_data() {
    let (_gateway, metrics) = scrape().await;
    let samples = Exposition::read(&metrics).unwrap().samples.into_iter();
    let mut series: Vec<Value> = samples
        .map(|sample| {
            let labels = sample.labels.iter();
            let labels = labels.map(|(label, value)| format!("{label}={value:?}"));
            let labels: Vec<String> = SCRAPE_LABELS
                .map(str::to_owned)
                .into_iter()
                .chain(labels)
                .collect();
            rising(&format!("{}{{{}}}", sample.name, labels.join(", ")))
        })
        .collect();
    for more in ["up", "switchboard_database_size_bytes"] {
        // From Prometheus itself, or a database file, which Postgres lacks.
        if !metrics.contains(&format!("\n{more} ")) {
            series.push(rising(&format!("{more}{{{}}}", SCRAPE_LABELS.join(", "))));
        }
    }
    let dashboard: Value =
        serde_json::from_str(&read("deploy/grafana/dashboards/switchboard.json")).unwrap();
    let mut expressions = Vec::new();
    collect(&dashboard, &mut expressions);
    // Template variables are not PromQL.
    expressions.retain(|expression| !expression.starts_with("label_values("));
    assert!(expressions.len() > 40, "{expressions:?}");
    let judged: Vec<Value> = expressions
        .iter()
        .map(|expression| {
            let expression = expression
                .replace("$job", "switchboard")
                .replace("$instance", ".*")
                .replace("$__rate_interval", "4m");
            json!({
                "expr": format!("clamp_max(count({expression}), 1)"),
                "eval_time": "10m",
                "exp_samples": [{ "labels": "{}", "value": 1 }],
            })
        })
        .collect();
    let test = json!({ "interval": "1m", "input_series": series, "promql_expr_test": judged });
    let file = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
    // JSON is valid YAML.
    std::fs::write(file.path(), json!({ "tests": [test] }).to_string()).unwrap();
    checks_with_promtool(&["test", "rules", file.path().to_str().unwrap()], None);
}

fn rising(series: &str) -> Value {
    json!({ "series": series, "values": "0+1x10" })
}

#[tokio::test]
async fn every_alert_says_what_to_do() {
    let (_gateway, metrics) = scrape().await;
    let known = known(&metrics);
    let (rules, page) = (
        read("deploy/prometheus/rules.yml"),
        read("docs/observability.md"),
    );
    let mut seen = 0;
    for rule in rules.split("      - alert: ").skip(1) {
        seen += 1;
        let name = rule.lines().next().unwrap();
        let field = |key: &str| {
            let line = rule
                .lines()
                .find_map(|line| line.trim().strip_prefix(&format!("{key}: ")));
            line.unwrap_or_else(|| panic!("{name} has no {key}"))
                .trim_matches('\'')
                .to_owned()
        };
        names_what_is(&field("expr"), &known);
        assert!(
            ["critical", "warning", "info"].contains(&field("severity").as_str()),
            "{name}"
        );
        assert!(
            field("summary").len() > 10 && field("description").len() > 40,
            "{name}"
        );
        let runbook = format!("docs/observability.md#{}", name.to_lowercase());
        assert_eq!(field("runbook"), runbook);
        assert!(
            page.contains(&format!("\n### {name}\n")),
            "the runbook has no {name}"
        );
    }
    assert!(seen > 10, "the rules are not where they are looked for");
    let written = page
        .lines()
        .filter(|line| line.starts_with("### Switchboard"))
        .count();
    assert_eq!(written, seen, "the runbook has alerts that are not there");
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/prometheus/rules.yml");
    checks_with_promtool(&["check", "rules", rules.to_str().unwrap()], None);
}

#[test]
fn every_alert_fires_when_it_should_and_only_then() {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/prometheus/rules.yml");
    let names = read("deploy/prometheus/rules.yml");
    let judged = read("tests/capabilities/observability/alerts.yml");
    for rule in names.split("- alert: ").skip(1) {
        let name = rule.lines().next().unwrap();
        let expected = format!("alertname=\"{name}\"");
        assert!(judged.contains(&expected), "nobody tries out {name}");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("alerts.yml");
    let judged = judged.replace("[RULES]", &format!("[{}]", rules.display()));
    std::fs::write(&file, judged).unwrap();
    checks_with_promtool(&["test", "rules", file.to_str().unwrap()], None);
}

/// Every `expr` of a dashboard, and its variables' queries.
fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "expr" || key == "definition" => {
                        found.push(text.clone());
                    }
                    other => collect(other, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

/// Fails unless a gateway exports every metric of an expression with the labels it uses.
#[track_caller]
fn names_what_is(expression: &str, known: &BTreeMap<String, BTreeSet<String>>) {
    // Added by Prometheus.
    let mut labels: BTreeSet<&str> = BTreeSet::from(["job", "instance", "le"]);
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut metrics = 0;
    for word in expression.split(|letter| !is_name(letter)) {
        if word.starts_with("switchboard_") || word.starts_with("process_") || word == "up" {
            let reported = known.get(word);
            let reported =
                reported.unwrap_or_else(|| panic!("no gateway tells {word}: {expression}"));
            labels.extend(reported.iter().map(String::as_str));
            metrics += 1;
        }
    }
    assert!(metrics > 0, "{expression}");
    let asked_in_braces = expression.split('{').skip(1).flat_map(|rest| {
        let inside = rest.split('}').next().unwrap();
        inside
            .split(", ")
            .filter_map(|pair| Some(pair.split(['=', '!']).next()?.trim()))
    });
    let grouped = expression
        .split(" by (")
        .skip(1)
        .flat_map(|rest| rest.split(')').next().unwrap().split(", "));
    for label in asked_in_braces.chain(grouped) {
        assert!(
            labels.contains(label),
            "nothing has the label {label}: {expression}"
        );
    }
}

/// Runs promtool, which must succeed.
fn checks_with_promtool(arguments: &[&str], input: Option<&str>) {
    let tool = promtool();
    let mut command = Command::new(&tool);
    command.args(arguments);
    // promtool reads only the older format, without end mark and `info`.
    let input = input.map(|text| text.replace("# EOF\n", "").replace(" info\n", " gauge\n"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), input.unwrap_or_default()).unwrap();
    command.stdin(std::fs::File::open(file.path()).unwrap());
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}; ./scripts/test installs it", tool.display()));
    let reported = String::from_utf8_lossy(&output.stderr);
    // Exit code 3 is style advice; OpenMetrics names families without `_total`.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{reported}");
}

/// The one from `scripts/test`, or the installed one.
fn promtool() -> PathBuf {
    if let Some(path) = std::env::var_os("SWITCHBOARD_TEST_PROMTOOL") {
        return PathBuf::from(path);
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let fetched = cache.unwrap_or_default().join("switchboard-test/promtool");
    if fetched.exists() {
        fetched
    } else {
        PathBuf::from("promtool")
    }
}

#[test]
fn an_expression_with_an_unknown_metric_is_detected() {
    let known = BTreeMap::from([("switchboard_a".to_owned(), BTreeSet::from(["b".to_owned()]))]);
    names_what_is("sum by (b, job) (switchboard_a{b=\"x\"})", &known);
    for wrong in [
        "switchboard_b",
        "switchboard_a{c=\"x\"}",
        "sum by (c) (switchboard_a)",
    ] {
        let judged = std::panic::catch_unwind(|| names_what_is(wrong, &known));
        assert!(judged.is_err(), "{wrong}");
    }
}
