//! Check layer: tower services that check a frame on its way to the session.
//!
//! A check passes its input on, perhaps as a richer type, or refuses it; nothing further in sees a
//! refused frame. Checks are synchronous, so that no layer boxes a future.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use futures_util::future::Either;
use tower::{Layer, Service};

use super::Handled;

pub(super) fn check<F>(check: F) -> CheckLayer<F> {
    CheckLayer(check)
}

#[derive(Clone, Copy)]
pub(super) struct CheckLayer<F>(F);

#[derive(Clone, Copy)]
pub(super) struct Check<F, S> {
    check: F,
    inner: S,
}

impl<F: Copy, S> Layer<S> for CheckLayer<F> {
    type Service = Check<F, S>;

    fn layer(&self, inner: S) -> Check<F, S> {
        let check = self.0;
        Check { check, inner }
    }
}

impl<F, S, In, Out> Service<In> for Check<F, S>
where
    F: Fn(In) -> Result<Out, Handled>,
    S: Service<Out, Response = Handled, Error = Infallible>,
{
    type Response = Handled;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Handled, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, input: In) -> Self::Future {
        match (self.check)(input) {
            Ok(checked) => Either::Left(self.inner.call(checked)),
            Err(refused) => Either::Right(ready(Ok(refused))),
        }
    }
}
