//! OTLP configuration: the collector, read from OpenTelemetry's standard variables.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};

use super::sampler::Sampler;

const PATH: &str = "/v1/traces";
/// Capacity of the export queue. Full: the next span is lost, and counted.
const QUEUE_CAPACITY: usize = 2_048;
/// Spans per request.
const BATCH_SPANS: usize = 512;
const BATCH_DELAY: Duration = Duration::from_secs(5);
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// The collector, and which traces it gets.
#[derive(Debug)]
pub struct Destination {
    pub(super) url: Uri,
    /// May hold a key: never printed.
    pub(super) headers: Headers,
    /// Certificate authority of the collector, unless it is a public one.
    pub(super) certificate: Option<PathBuf>,
    pub(super) resource: Vec<(String, String)>,
    pub(super) sampler: Sampler,
    pub(super) queue: usize,
    pub(super) batch: usize,
    pub(super) delay: Duration,
    pub(super) timeout: Duration,
}

pub(super) struct Headers(pub(super) Vec<(HeaderName, HeaderValue)>);

impl std::fmt::Debug for Headers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("(kept to itself)")
    }
}

impl Destination {
    /// Reads the variables: no collector, one, or an error.
    pub fn from_variables(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Option<Self>, String> {
        let known: HashMap<String, String> = variables
            .into_iter()
            .filter(|(name, value)| name.starts_with("OTEL_") && !value.trim().is_empty())
            .collect();
        let get = |name: &str| known.get(name).map(|value| value.trim());
        // Variables for traces override those for all signals.
        let of_traces = |name: &str| {
            let own = get(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
            own.or_else(|| get(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let is_off = get("OTEL_SDK_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true"))
            || get("OTEL_TRACES_EXPORTER") == Some("none");
        let Some(url) = endpoint(&get).filter(|_| !is_off) else {
            return Ok(None);
        };
        if of_traces("PROTOCOL") == Some("grpc") {
            return Err(
                "OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not spoken here; use http/json, which \
                 collectors take at port 4318"
                    .to_owned(),
            );
        }
        let sampler = match get("OTEL_TRACES_SAMPLER") {
            Some(name) => Sampler::named(name, get("OTEL_TRACES_SAMPLER_ARG"))?,
            None => Sampler::default(),
        };
        let number = |name: &str, default: usize| match get(name).map(str::parse) {
            None => Ok(default),
            Some(Ok(number)) if number > 0 => Ok(number),
            Some(_) => Err(format!("{name}: expected a whole number above 0")),
        };
        let millis = |duration: Duration| usize::try_from(duration.as_millis()).unwrap_or(0);
        let span_of = |name: &str, default| {
            let millis = number(name, millis(default))?;
            Ok::<_, String>(Duration::from_millis(millis as u64))
        };
        let queue = number("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE_CAPACITY)?.min(1 << 20);
        let timeout = match get("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT") {
            Some(_) => span_of("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", EXPORT_TIMEOUT)?,
            None => span_of("OTEL_EXPORTER_OTLP_TIMEOUT", EXPORT_TIMEOUT)?,
        };
        Ok(Some(Self {
            url: checked(&url)?,
            headers: Headers(headers(of_traces("HEADERS").unwrap_or_default())?),
            certificate: of_traces("CERTIFICATE").map(PathBuf::from),
            resource: resource(
                get("OTEL_SERVICE_NAME"),
                get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default(),
            )?,
            sampler,
            queue,
            batch: number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", BATCH_SPANS)?.min(queue),
            delay: span_of("OTEL_BSP_SCHEDULE_DELAY", BATCH_DELAY)?,
            timeout,
        }))
    }

    /// The collector's address for logs: without path and user info.
    pub(crate) fn place(&self) -> String {
        let (host, port) = self.host_and_port();
        format!(
            "{}://{host}:{port}",
            self.url.scheme_str().unwrap_or("http")
        )
    }

    pub(super) fn is_https(&self) -> bool {
        self.url.scheme_str() == Some("https")
    }

    pub(super) fn host_and_port(&self) -> (&str, u16) {
        let default = if self.is_https() { 443 } else { 80 };
        let host = self.url.host().unwrap_or("localhost");
        (host, self.url.port_u16().unwrap_or(default))
    }
}

/// The traces endpoint as it is; the general endpoint with the path for traces appended.
fn endpoint<'a>(get: &impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let own = get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(str::to_owned);
    own.or_else(|| {
        let base = get("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        Some(format!("{}{PATH}", base.trim_end_matches('/')))
    })
}

fn checked(url: &str) -> Result<Uri, String> {
    // The value is not repeated: URLs may hold keys.
    let wrong = || "OTEL_EXPORTER_OTLP_ENDPOINT: expected a URL like http://localhost:4318";
    let url: Uri = url.parse().map_err(|_| wrong())?;
    let is_good = matches!(url.scheme_str(), Some("http" | "https"))
        && url.host().is_some_and(|host| !host.is_empty())
        && url
            .authority()
            .is_some_and(|place| !place.as_str().contains('@'));
    is_good.then_some(url).ok_or_else(|| wrong().to_owned())
}

fn headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let wrong =
        || "OTEL_EXPORTER_OTLP_HEADERS: expected name=value, one or more with commas between";
    let header = |(name, value): (String, String)| {
        let name = HeaderName::try_from(name.to_ascii_lowercase()).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    pairs(text)
        .ok_or_else(wrong)?
        .into_iter()
        .map(header)
        .collect()
}

fn resource(name: Option<&str>, text: &str) -> Result<Vec<(String, String)>, String> {
    let wrong = "OTEL_RESOURCE_ATTRIBUTES: expected name=value, one or more with commas between";
    let mut told = pairs(text).ok_or(wrong)?;
    if let Some(name) = name {
        told.retain(|(key, _)| key != "service.name");
        told.push(("service.name".to_owned(), name.to_owned()));
    }
    for (key, value) in [
        ("service.name", env!("CARGO_PKG_NAME")),
        ("service.version", env!("CARGO_PKG_VERSION")),
    ] {
        if !told.iter().any(|(known, _)| known == key) {
            told.push((key.to_owned(), value.to_owned()));
        }
    }
    Ok(told)
}

/// Parses `a=b,c=d` with percent-encoding.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (decoded(name.trim())?, decoded(value.trim())?);
        (!name.is_empty()).then_some((name, value))
    };
    let all = text.split(',').filter(|part| !part.trim().is_empty());
    all.map(pair).collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if *first == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Destination>, String> {
        let owned = variables.iter();
        Destination::from_variables(owned.map(|(name, value)| {
            let name = format!("OTEL_{name}");
            (name, (*value).to_owned())
        }))
    }

    #[test]
    fn nothing_is_exported_without_an_endpoint_or_when_disabled() {
        let place = ("EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        assert!(read(&[]).unwrap().is_none());
        assert!(read(&[("SERVICE_NAME", "x")]).unwrap().is_none());
        assert!(read(&[place, ("SDK_DISABLED", "True")]).unwrap().is_none());
        assert!(
            read(&[place, ("TRACES_EXPORTER", "none")])
                .unwrap()
                .is_none()
        );
        assert!(read(&[("EXPORTER_OTLP_ENDPOINT", " ")]).unwrap().is_none());
    }

    #[test]
    fn variables_for_traces_override_general_ones() {
        let all = ("EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/otlp/");
        let there = read(&[all]).unwrap().unwrap();
        assert_eq!(there.url, "http://localhost:4318/otlp/v1/traces");
        let own = ("EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces.example/in");
        let keys = [
            ("EXPORTER_OTLP_HEADERS", "x=1"),
            (
                "EXPORTER_OTLP_TRACES_HEADERS",
                "Authorization=Basic%20YQ==,b=c",
            ),
            (
                "RESOURCE_ATTRIBUTES",
                "service.name=a,deployment.environment=b%2Cc",
            ),
            ("SERVICE_NAME", "desk"),
        ];
        let there = read(&[&[all, own], &keys[..]].concat()).unwrap().unwrap();
        assert_eq!(there.place(), "https://traces.example:443");
        let sent: Vec<&str> = there
            .headers
            .0
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(sent, ["authorization", "b"]);
        assert_eq!(there.headers.0[0].1, "Basic YQ==");
        assert!(!format!("{there:?}").contains("YQ"));
        for pair in [("service.name", "desk"), ("deployment.environment", "b,c")] {
            let pair = (pair.0.to_owned(), pair.1.to_owned());
            assert!(there.resource.contains(&pair), "{:?}", there.resource);
        }
    }

    #[test]
    fn a_bad_variable_is_named_without_its_value() {
        let place = ("EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        for wrong in [
            ("EXPORTER_OTLP_ENDPOINT", "localhost:4318"),
            ("EXPORTER_OTLP_ENDPOINT", "ftp://localhost"),
            ("EXPORTER_OTLP_ENDPOINT", "http://hidden@localhost"),
            ("EXPORTER_OTLP_HEADERS", "hidden"),
            ("EXPORTER_OTLP_HEADERS", "a=hidden%"),
            ("EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("TRACES_SAMPLER", "hidden"),
            ("BSP_SCHEDULE_DELAY", "hidden"),
        ] {
            let told = read(&[place, wrong]).unwrap_err();
            assert!(
                told.starts_with("OTEL_") && !told.contains("hidden"),
                "{told}"
            );
        }
    }
}
