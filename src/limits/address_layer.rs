//! Address limit: a tower layer that limits requests by client address.
//!
//! The layer decides and counts; the caller passes in what a refusal looks like, because all error
//! responses are made in one place. An outer layer must have put the [`ClientAddress`] into the
//! request's extensions: a request without one is refused, because guessing an address would be a
//! way around the limit. Touches nothing else.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::http::Request;
use axum::response::Response;
use tower::{Layer, Service};

use super::client_address::{AddressBucket, ClientAddress};
use super::limit_exceeded::Budget;
use super::network::Network;
use super::rate_limit_headers::{Quota, Refusal};
use super::request_rate::RequestRate;
use super::sliding_window::SlidingWindow;

/// Makes the response to a request that found this budget used up.
pub(crate) type RefusalResponse = fn(Budget, Refusal) -> Response;

/// The answer to a request without an address, which is a fault of the gateway.
const NO_ADDRESS: Refusal = Refusal {
    limit: 0,
    period: super::MINUTE,
    retry_after: Duration::from_secs(1),
};

pub(crate) trait AddressLimiter: Send + Sync {
    /// Counts one attempt, or refuses it.
    fn admit(&self, bucket: AddressBucket) -> Result<Quota, Refusal>;
}

impl AddressLimiter for SlidingWindow<AddressBucket> {
    fn admit(&self, bucket: AddressBucket) -> Result<Quota, Refusal> {
        self.admit(&bucket)
    }
}

impl AddressLimiter for RequestRate<AddressBucket> {
    fn admit(&self, bucket: AddressBucket) -> Result<Quota, Refusal> {
        self.admit(&bucket)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaHeaders {
    Always,
    OnRefusal,
}

#[derive(Clone)]
pub(crate) struct AddressLimitLayer {
    budget: Budget,
    limiter: Arc<dyn AddressLimiter>,
    exempt: Arc<[Network]>,
    headers: QuotaHeaders,
    refuse: RefusalResponse,
    /// When a refusal was last logged.
    logged: Arc<Mutex<Option<Instant>>>,
}

impl AddressLimitLayer {
    pub(crate) fn new(
        budget: Budget,
        limiter: Arc<impl AddressLimiter + 'static>,
        headers: QuotaHeaders,
        refuse: RefusalResponse,
    ) -> Self {
        Self {
            budget,
            limiter,
            exempt: Arc::default(),
            headers,
            refuse,
            logged: Arc::default(),
        }
    }

    /// Tells the operator, at most once a minute, which setting refuses logins: an office behind one
    /// address may need more of them.
    fn log_refusal(&self, client: Option<&ClientAddress>, refusal: &Refusal) {
        if self.budget != Budget::Logins {
            return;
        }
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|at| at.elapsed() >= super::MINUTE) {
            *logged = Some(Instant::now());
            let address = client.map(|client| tracing::field::display(client.ip));
            tracing::warn!(
                client.address = address,
                limit = refusal.limit,
                "login attempts of an address are refused; if many people share it, raise limits.logins_per_minute"
            );
        }
    }

    /// The same layer, which lets these clients pass uncounted.
    pub(crate) fn exempting(self, exempt: Arc<[Network]>) -> Self {
        Self { exempt, ..self }
    }

    /// Remaining requests of this client; none for an exempt client.
    fn admit(&self, client: Option<&ClientAddress>) -> Result<Option<Quota>, Refusal> {
        let client = client.ok_or(NO_ADDRESS)?;
        if self
            .exempt
            .iter()
            .any(|network| network.contains(client.ip))
        {
            return Ok(None);
        }
        self.limiter.admit(client.bucket()).map(Some)
    }
}

impl<S> Layer<S> for AddressLimitLayer {
    type Service = AddressLimit<S>;

    fn layer(&self, inner: S) -> AddressLimit<S> {
        AddressLimit {
            inner,
            limit: self.clone(),
        }
    }
}

#[derive(Clone)]
pub(crate) struct AddressLimit<S> {
    inner: S,
    limit: AddressLimitLayer,
}

impl<S, B> Service<Request<B>> for AddressLimit<S>
where
    S: Service<Request<B>, Response = Response>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let AddressLimitLayer {
            budget,
            headers,
            refuse,
            ..
        } = self.limit;
        let quota = match self.limit.admit(request.extensions().get()) {
            Ok(quota) => quota.filter(|_| headers == QuotaHeaders::Always),
            Err(refusal) => {
                self.limit.log_refusal(request.extensions().get(), &refusal);
                return Box::pin(std::future::ready(Ok(refuse(budget, refusal))));
            }
        };
        let response = self.inner.call(request);
        Box::pin(async move {
            let mut response = response.await?;
            if let Some(quota) = quota {
                // Appended: an outer and an inner limit may both send headers.
                for (header, value) in quota.headers(budget.counted()) {
                    response.headers_mut().append(header, value);
                }
            }
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::IpAddr;
    use std::num::NonZeroU32;

    use axum::body::Body;
    use axum::http::{HeaderMap, StatusCode};
    use axum::response::IntoResponse;
    use jiff::Timestamp;
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::clock::Clock;
    use crate::limits::{MINUTE, TrustedProxies};

    fn layer(headers: QuotaHeaders) -> AddressLimitLayer {
        let [limit, max_keys] = [2, 10].map(|number| NonZeroU32::new(number).unwrap());
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let window = SlidingWindow::new(limit, MINUTE, max_keys, clock);
        AddressLimitLayer::new(
            Budget::Logins,
            Arc::new(window),
            headers,
            |budget, refusal| {
                let headers = refusal.headers(budget.counted());
                (StatusCode::TOO_MANY_REQUESTS, headers).into_response()
            },
        )
    }

    fn request(from: Option<&str>) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        if let Some(ip) = from {
            let peer: IpAddr = ip.parse().unwrap();
            let client =
                ClientAddress::resolve(peer, &HeaderMap::new(), &TrustedProxies::default());
            request.extensions_mut().insert(client);
        }
        request
    }

    async fn answer(layer: &AddressLimitLayer, from: Option<&str>) -> (u16, [Option<String>; 2]) {
        let inner = service_fn(async |_| Ok::<_, Infallible>("inside".into_response()));
        let response = layer.layer(inner).oneshot(request(from)).await.unwrap();
        let header = |name| Some(response.headers().get(name)?.to_str().unwrap().to_owned());
        let headers = [header("ratelimit-policy"), header("ratelimit")];
        (response.status().as_u16(), headers)
    }

    fn headers(state: &str) -> [Option<String>; 2] {
        [r#""logins";q=2;w=60"#, state].map(|text| Some(text.to_owned()))
    }

    #[tokio::test]
    async fn a_client_is_told_what_is_left_and_then_refused() {
        let layer = layer(QuotaHeaders::Always);
        let alice = Some("192.0.2.1");
        assert_eq!(
            answer(&layer, alice).await,
            (200, headers(r#""logins";r=1;t=60"#))
        );
        assert_eq!(
            answer(&layer, alice).await,
            (200, headers(r#""logins";r=0;t=60"#))
        );
        assert_eq!(
            answer(&layer, alice).await,
            (429, headers(r#""logins";r=0;t=60"#))
        );
        assert_eq!(answer(&layer, Some("192.0.2.2")).await.0, 200);
    }

    #[tokio::test]
    async fn a_limit_can_send_its_headers_only_with_a_refusal() {
        let layer = layer(QuotaHeaders::OnRefusal);
        for _ in 0..2 {
            assert_eq!(answer(&layer, Some("192.0.2.1")).await, (200, [None, None]));
        }
        let refused = answer(&layer, Some("192.0.2.1")).await;
        assert_eq!(refused, (429, headers(r#""logins";r=0;t=60"#)));
    }

    #[tokio::test]
    async fn an_exempt_client_is_never_refused() {
        let exempt: Network = "192.0.2.0/24".parse().unwrap();
        let layer = layer(QuotaHeaders::Always).exempting([exempt].into());
        for _ in 0..5 {
            assert_eq!(answer(&layer, Some("192.0.2.1")).await, (200, [None, None]));
        }
    }

    #[tokio::test]
    async fn a_request_without_an_address_does_not_get_past() {
        assert_eq!(answer(&layer(QuotaHeaders::Always), None).await.0, 429);
    }
}
