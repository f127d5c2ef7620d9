//! HTTP client: one user's token and cookie, requests, and checks of the responses.

use std::net::SocketAddr;

use reqwest::header::{HeaderMap, SET_COOKIE};
use serde_json::{Value, json};

use super::asyncapi;

/// A client of the HTTP API, with or without a login.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: reqwest::Client,
    base: String,
    /// The access token.
    pub(crate) token: Option<String>,
    /// The refresh cookie, as `name=value`.
    pub(crate) cookie: Option<String>,
    /// Headers sent with every request.
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// A response, read to its end.
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl HttpResponse {
    /// Fails the test unless the status is this one.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    /// Fails the test unless it is an error with this status and code, as problem+json.
    #[track_caller]
    pub(crate) fn refuses(self, status: u16, code: &str) -> Self {
        let answer = self.is(status);
        assert_eq!(
            answer.header("content-type"),
            "application/problem+json",
            "{}",
            answer.text
        );
        let body = answer.json();
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["status"], status, "{body}");
        assert_eq!(body["requestId"], answer.header("x-request-id"), "{body}");
        assert!(body["detail"].as_str().unwrap().len() > 10, "{body}");
        answer
    }

    /// Checks envelopes over HTTP against AsyncAPI: NDJSON lines, command replies, and accepted
    /// commands.
    fn is_as_described(&self, path: &str, sent: Option<&Value>) {
        let kind = self.headers.get("content-type");
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("");
        if kind == "application/x-ndjson" {
            for line in self.text.lines() {
                asyncapi::check_gateway_message(&serde_json::from_str(line).unwrap());
            }
        }
        if path.contains("/commands") && kind == "application/json" {
            asyncapi::check_gateway_message(&self.json());
            if let Some(sent) = sent.filter(|_| self.status == 200) {
                asyncapi::check_client_message(&sent.to_string());
            }
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

impl HttpClient {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            client: reqwest::Client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .unwrap(),
            base: format!("http://{address}"),
            token: None,
            cookie: None,
            headers: Vec::new(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.base.strip_prefix("http://").unwrap().parse().unwrap()
    }

    /// Sends `X-Forwarded-For` with this address, as a proxy would.
    pub(crate) fn through_proxy(mut self, address: &str) -> Self {
        self.headers.push(("x-forwarded-for", address.to_owned()));
        self
    }

    pub(crate) async fn sends(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> HttpResponse {
        let mut request = self
            .client
            .request(method.parse().unwrap(), format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = &body {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        let answer = HttpResponse {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        };
        answer.is_as_described(path, body.as_ref());
        answer
    }

    pub(crate) async fn gets(&self, path: &str) -> HttpResponse {
        self.sends("GET", path, None).await
    }

    pub(crate) async fn posts(&self, path: &str, body: Value) -> HttpResponse {
        self.sends("POST", path, Some(body)).await
    }

    pub(crate) async fn creates_session(&self) -> String {
        let made = self.posts("/api/sessions", json!({})).await.is(201).json();
        made["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn me(&self) -> HttpResponse {
        self.gets("/api/auth/me").await
    }

    pub(crate) async fn logs_in(&mut self, username: &str, password: &str) -> HttpResponse {
        let body = json!({ "username": username, "password": password });
        let answer = self.posts("/api/auth/login", body).await;
        self.stores_login(answer)
    }

    pub(crate) async fn refreshes(&mut self) -> HttpResponse {
        let answer = self.sends("POST", "/api/auth/refresh", None).await;
        self.stores_login(answer)
    }

    /// Stores the token and the cookie of a response, as a page would.
    pub(crate) fn stores_login(&mut self, answer: HttpResponse) -> HttpResponse {
        if answer.status == 200 {
            self.token = answer.json()["token"].as_str().map(str::to_owned);
        }
        if let Some(cookie) = answer.headers.get(SET_COOKIE) {
            let pair = cookie.to_str().unwrap().split(';').next().unwrap();
            self.cookie = Some(pair.to_owned());
        }
        answer
    }

    /// Requests `/healthz`; the connection may be refused.
    pub(crate) async fn tries_health(&self) -> reqwest::Result<()> {
        let request = self.client.get(format!("{}/healthz", self.base)).send();
        request.await?.error_for_status().map(drop)
    }

    /// Polls until the response has that status; fails after the promised second.
    pub(crate) async fn sees_within_a_second(&self, path: &str, status: u16) {
        let started = std::time::Instant::now();
        loop {
            let answer = self.gets(path).await;
            if answer.status == status {
                return;
            }
            let waited = started.elapsed();
            assert!(
                waited.as_millis() < 1000,
                "still {} after {waited:?}",
                answer.status
            );
            tokio::task::yield_now().await;
        }
    }
}
