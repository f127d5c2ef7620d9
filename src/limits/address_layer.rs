//! A limit by client address, in front of a service.
//!
//! The layer decides and counts; what a refusal looks like is made in the one place where all
//! error responses are made, and handed in. An outer layer must have put the [`ClientAddress`]
//! into the request's extensions: a request without one is refused, because guessing an address
//! would be a way around the limit. Touches nothing else.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::Request;
use axum::response::Response;
use tower::{Layer, Service};

use super::address::{AddressBucket, ClientAddress};
use super::budget::Budget;
use super::network::Network;
use super::quota::{Quota, Refusal};
use super::rate::RequestRate;
use super::window::SlidingWindow;

/// Makes the response to a request that found this budget used up.
pub(crate) type Refuse = fn(Budget, Refusal) -> Response;

/// The answer to a request that nobody gave an address to, which is a fault of ours.
const NO_ADDRESS: Refusal = Refusal {
    limit: 0,
    period: super::MINUTE,
    retry_after: Duration::from_secs(1),
};

/// A limit that addresses can be held against.
pub(crate) trait Gate: Send + Sync {
    /// Counts one attempt, or refuses it.
    fn admit(&self, bucket: AddressBucket) -> Result<Quota, Refusal>;
}

impl Gate for SlidingWindow<AddressBucket> {
    fn admit(&self, bucket: AddressBucket) -> Result<Quota, Refusal> {
        self.admit(&bucket)
    }
}

impl Gate for RequestRate<AddressBucket> {
    fn admit(&self, bucket: AddressBucket) -> Result<Quota, Refusal> {
        self.admit(&bucket)
    }
}

/// When the headers say what is left of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announce {
    /// On every response.
    Always,
    /// Only on the response that refuses.
    OnRefusal,
}

/// Puts a [`Gate`] in front of a service.
#[derive(Clone)]
pub(crate) struct AddressLimitLayer {
    budget: Budget,
    gate: Arc<dyn Gate>,
    exempt: Arc<[Network]>,
    announce: Announce,
    refuse: Refuse,
}

impl AddressLimitLayer {
    /// A layer that applies to every address.
    pub(crate) fn new(
        budget: Budget,
        gate: Arc<impl Gate + 'static>,
        announce: Announce,
        refuse: Refuse,
    ) -> Self {
        Self {
            budget,
            gate,
            exempt: Arc::default(),
            announce,
            refuse,
        }
    }

    /// The same layer, which lets these clients pass uncounted.
    pub(crate) fn exempting(self, exempt: Arc<[Network]>) -> Self {
        Self { exempt, ..self }
    }

    /// What is left after this client's request, or nothing to say about an exempt client.
    fn admit(&self, client: Option<&ClientAddress>) -> Result<Option<Quota>, Refusal> {
        let client = client.ok_or(NO_ADDRESS)?;
        if self
            .exempt
            .iter()
            .any(|network| network.contains(client.ip))
        {
            return Ok(None);
        }
        self.gate.admit(client.bucket()).map(Some)
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

/// A service behind a [`Gate`].
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
            announce,
            refuse,
            ..
        } = self.limit;
        let quota = match self.limit.admit(request.extensions().get()) {
            Ok(quota) => quota.filter(|_| announce == Announce::Always),
            Err(refusal) => return Box::pin(std::future::ready(Ok(refuse(budget, refusal)))),
        };
        let response = self.inner.call(request);
        Box::pin(async move {
            let mut response = response.await?;
            if let Some(quota) = quota {
                // Appended: an outer and an inner limit may both have something to say.
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

    fn layer(announce: Announce) -> AddressLimitLayer {
        let [limit, max_keys] = [2, 10].map(|number| NonZeroU32::new(number).unwrap());
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let window = SlidingWindow::new(limit, MINUTE, max_keys, clock);
        AddressLimitLayer::new(
            Budget::Logins,
            Arc::new(window),
            announce,
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
        let layer = layer(Announce::Always);
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
    async fn a_quiet_limit_speaks_up_only_when_it_refuses() {
        let layer = layer(Announce::OnRefusal);
        for _ in 0..2 {
            assert_eq!(answer(&layer, Some("192.0.2.1")).await, (200, [None, None]));
        }
        let refused = answer(&layer, Some("192.0.2.1")).await;
        assert_eq!(refused, (429, headers(r#""logins";r=0;t=60"#)));
    }

    #[tokio::test]
    async fn an_exempt_client_is_never_refused() {
        let exempt: Network = "192.0.2.0/24".parse().unwrap();
        let layer = layer(Announce::Always).exempting([exempt].into());
        for _ in 0..5 {
            assert_eq!(answer(&layer, Some("192.0.2.1")).await, (200, [None, None]));
        }
    }

    #[tokio::test]
    async fn a_request_without_an_address_does_not_get_past() {
        assert_eq!(answer(&layer(Announce::Always), None).await.0, 429);
    }
}
