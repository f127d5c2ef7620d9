//! Exposition: a strict parser of the `OpenMetrics` text format.

use std::collections::{BTreeMap, BTreeSet};

type Labels = Vec<(String, String)>;

/// One parsed scrape.
pub(crate) struct Exposition {
    pub(crate) samples: Vec<Sample>,
    kinds: BTreeMap<String, String>,
}

pub(crate) struct Sample {
    family: String,
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    value: f64,
}

impl Exposition {
    /// Parses a scrape, or names the first error.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let body = text
            .strip_suffix("# EOF\n")
            .ok_or("it does not end with # EOF")?;
        let (mut kinds, mut samples) = (BTreeMap::new(), Vec::<Sample>::new());
        let (mut current, mut helped) = (String::new(), BTreeSet::new());
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# ") {
                let mut words = rest.splitn(3, ' ');
                let (word, name) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
                let shown = words
                    .next()
                    .ok_or_else(|| format!("nothing is told: {line}"))?;
                if !is_name(name) {
                    return Err(format!("no name: {line}"));
                }
                match word {
                    "HELP" if helped.insert(name.to_owned()) => {}
                    "TYPE" if !kinds.contains_key(name) => {
                        name.clone_into(&mut current);
                        kinds.insert(current.clone(), shown.to_owned());
                    }
                    "UNIT" => {}
                    _ => return Err(format!("out of place: {line}")),
                }
                continue;
            }
            let sample =
                sample(line, &current, &kinds).map_err(|fault| format!("{fault}: {line}"))?;
            let is_same =
                |known: &Sample| known.name == sample.name && known.labels == sample.labels;
            if samples.iter().any(is_same) {
                return Err(format!("told twice: {line}"));
            }
            samples.push(sample);
        }
        if let Some(silent) = kinds.keys().find(|name| !helped.contains(*name)) {
            return Err(format!("{silent} has no help"));
        }
        let exposition = Self { samples, kinds };
        exposition.histograms_add_up()?;
        Ok(exposition)
    }

    /// Metric names as in a query, with type and labels.
    pub(crate) fn families(&self) -> BTreeMap<String, (String, BTreeSet<String>)> {
        let mut families = BTreeMap::new();
        for (family, kind) in &self.kinds {
            let name = match kind.as_str() {
                "counter" => format!("{family}_total"),
                "info" => format!("{family}_info"),
                _ => family.clone(),
            };
            let own = self
                .samples
                .iter()
                .filter(|sample| sample.family == *family);
            let labels =
                own.flat_map(|sample| sample.labels.iter().map(|(label, _)| label.clone()));
            let labels = labels.filter(|label| label != "le").collect();
            families.insert(name, (kind.clone(), labels));
        }
        families
    }

    fn histograms_add_up(&self) -> Result<(), String> {
        let mut last: BTreeMap<(String, Labels), (f64, f64)> = BTreeMap::new();
        for sample in self
            .samples
            .iter()
            .filter(|sample| sample.name.ends_with("_bucket"))
        {
            let mut labels = sample.labels.clone();
            let le = labels
                .iter()
                .position(|(label, _)| label == "le")
                .ok_or("a bucket without le")?;
            let bound = match labels.remove(le).1.as_str() {
                "+Inf" => f64::INFINITY,
                bound => bound.parse().map_err(|_| format!("a bound like {bound}"))?,
            };
            let place = (sample.family.clone(), labels);
            let (before, count) = last
                .get(&place)
                .copied()
                .unwrap_or((f64::NEG_INFINITY, 0.0));
            if bound <= before || sample.value < count {
                return Err(format!("the buckets of {} do not grow", sample.family));
            }
            last.insert(place, (bound, sample.value));
        }
        for ((family, labels), (bound, count)) in last {
            let of_all = self
                .samples
                .iter()
                .find(|sample| sample.name == format!("{family}_count") && sample.labels == labels);
            let of_all = of_all.map(|sample| sample.value);
            if bound.is_finite() || of_all.is_none_or(|all| (all - count).abs() > f64::EPSILON) {
                return Err(format!("{family} does not add up"));
            }
        }
        Ok(())
    }
}

fn sample(line: &str, current: &str, kinds: &BTreeMap<String, String>) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, rest) = line.split_at(end);
    let suffix = name.strip_prefix(current).ok_or("of another family")?;
    let wanted: &[&str] = match kinds.get(current).map(String::as_str) {
        Some("counter") => &["_total"],
        Some("gauge") => &[""],
        Some("info") => &["_info"],
        Some("histogram") => &["_bucket", "_count", "_sum"],
        other => return Err(format!("of the type {other:?}")),
    };
    if !is_name(name) || !wanted.contains(&suffix) {
        return Err(format!("{suffix} is not a suffix of its type"));
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value = rest.strip_prefix(' ').ok_or("no value")?;
    let value: f64 = value.parse().map_err(|_| "no number".to_owned())?;
    let counts = matches!(suffix, "_total" | "_count" | "_bucket");
    if value.is_nan() || (counts && value < 0.0) {
        return Err("not a value of its type".to_owned());
    }
    Ok(Sample {
        family: current.to_owned(),
        name: name.to_owned(),
        labels,
        value,
    })
}

/// Parses labels; returns them and the rest of the line.
fn labels(mut rest: &str) -> Result<(Labels, &str), String> {
    let mut labels: Vec<(String, String)> = Vec::new();
    loop {
        let (name, after) = rest.split_once("=\"").ok_or("a label without value")?;
        if !is_name(name) || labels.iter().any(|(known, _)| known == name) {
            return Err(format!("the label {name}"));
        }
        let (mut value, mut letters) = (String::new(), after.char_indices());
        let end = loop {
            match letters.next().ok_or("a value without end")? {
                (place, '"') => break place,
                (_, '\\') => value.push(match letters.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, letter @ ('"' | '\\'))) => letter,
                    _ => return Err("a bad escape".to_owned()),
                }),
                (_, letter) => value.push(letter),
            }
        };
        labels.push((name.to_owned(), value));
        let after = &after[end + 1..];
        if let Some(done) = after.strip_prefix('}') {
            return Ok((labels, done));
        }
        rest = after.strip_prefix(',').ok_or("no comma")?;
    }
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[test]
fn exposition_errors_are_detected() {
    let good = "# HELP a A.\n# TYPE a counter\na_total{b=\"c\\\"\"} 1\n# EOF\n";
    assert!(Exposition::read(good).is_ok());
    for (from, to) in [
        ("# EOF\n", ""),
        ("a_total{", "a{"),
        (" 1\n", " x\n"),
        (" 1\n", " -1\n"),
        ("# HELP a A.\n", ""),
        ("c\\\"\"", "c\\x\""),
        ("{b=", "{b-="),
        ("# EOF", "a_total{b=\"c\\\"\"} 1\n# EOF"),
        ("a_total{", "d_total{"),
    ] {
        let bad = good.replace(from, to);
        assert!(Exposition::read(&bad).is_err(), "{bad}");
    }
}
