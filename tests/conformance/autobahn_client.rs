//! Autobahn client: the suite's own fuzzing client, where installed.

use std::process::Command;

use crate::gateway::Gateway;

/// Compression is never negotiated; above 4 MiB we close, which the suite does not expect.
const EXCLUDED: [&str; 6] = ["12.*", "13.*", "9.1.5", "9.1.6", "9.2.5", "9.2.6"];

#[test]
#[ignore = "needs Python 2.7 and the suite; scripts/autobahn brings it"]
fn autobahns_fuzzing_client_finds_no_failure() {
    let client = std::env::var("SWITCHBOARD_TEST_WSTEST").expect("where the client is");
    let gateway = Gateway::start();
    let dir = tempfile::tempdir().unwrap();
    let spec = serde_json::json!({
        "outdir": dir.path(),
        "servers": [{ "agent": "switchboard", "url": format!("ws://{}/echo", gateway.address) }],
        "cases": ["*"],
        "exclude-cases": EXCLUDED,
        "exclude-agent-cases": {},
    });
    let spec_file = dir.path().join("spec.json");
    std::fs::write(&spec_file, spec.to_string()).unwrap();
    let ran = Command::new(client)
        .args(["-m", "fuzzingclient", "-s"])
        .arg(&spec_file)
        .current_dir(dir.path())
        .output()
        .unwrap();
    let index = std::fs::read_to_string(dir.path().join("index.json"));
    let index = index.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ran.stderr)));
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let cases = index["switchboard"].as_object().unwrap();
    let judged = |words: &[&str]| -> Vec<&str> {
        let is = |verdict: &serde_json::Value| words.contains(&verdict.as_str().unwrap());
        let cases = cases.iter();
        let cases = cases.filter(|(_, case)| is(&case["behavior"]) && is(&case["behaviorClose"]));
        cases.map(|(number, _)| number.as_str()).collect()
    };
    let good = judged(&["OK", "NON-STRICT", "INFORMATIONAL"]);
    println!(
        "{} cases: {} as they should be, {} failed",
        cases.len(),
        good.len(),
        cases.len() - good.len()
    );
    assert_eq!(cases.len(), 297, "the cases of the suite, without those");
    let failed: Vec<&String> = cases
        .keys()
        .filter(|number| !good.contains(&number.as_str()))
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}
