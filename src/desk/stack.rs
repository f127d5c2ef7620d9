//! What every frame passes through on its way to the session, as one stack of tower services.
//!
//! Limits come first and read only the frame's type, so that refusing is cheap; then size and shape;
//! then whether the sender may still do this; then the session. Whoever refuses answers the sender,
//! and nothing further in has seen the frame.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_tungstenite::tungstenite::Utf8Bytes;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceBuilder, ServiceExt as _, layer::layer_fn, service_fn};

use super::{Desk, Outcome};
use crate::domain::account::Principal;
use crate::wire::inbound::{self, Inbound};

/// A frame, who sent it, and where.
pub(crate) struct Frame {
    pub(crate) text: Utf8Bytes,
    pub(crate) principal: Principal,
    pub(crate) desk: Arc<Desk>,
}

/// A frame that could be read.
struct Message {
    frame: Frame,
    inbound: Inbound,
}

/// A frame on its way, until its outcome is known.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Outcome, Infallible>> + Send>>;

/// The whole way.
pub(super) type Stack = BoxCloneSyncService<Frame, Outcome, Infallible>;

/// The whole way, outermost first.
pub(super) fn stack() -> Stack {
    let session = service_fn(|message: Message| async {
        let Message { frame, inbound } = message;
        let desk = Arc::clone(&frame.desk);
        Ok(desk
            .serve(frame.text.len(), inbound, &frame.principal)
            .await)
    });
    let way = ServiceBuilder::new()
        .layer(layer_fn(Limits))
        .layer(layer_fn(Shape))
        .layer(layer_fn(Access))
        .service(session);
    BoxCloneSyncService::new(way)
}

impl Frame {
    /// Sends it on its way.
    pub(crate) fn answering(self) -> Answering {
        let stack = self.desk.reception.stack.clone();
        Box::pin(stack.oneshot(self))
    }
}

fn answer(outcome: Outcome) -> Answering {
    Box::pin(std::future::ready(Ok(outcome)))
}

/// Counts a frame against its budget.
#[derive(Clone)]
struct Limits<S>(S);

impl<S> Service<Frame> for Limits<S>
where
    S: Service<Frame, Response = Outcome, Error = Infallible, Future: Send + 'static>,
{
    type Response = Outcome;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, frame: Frame) -> Answering {
        match frame
            .desk
            .count(inbound::kind(&frame.text), &frame.principal)
        {
            Ok(()) => Box::pin(self.0.call(frame)),
            Err(overdrawn) => answer(frame.desk.rate_limited(overdrawn)),
        }
    }
}

/// Reads a frame: its size, its JSON, the session it names, its fields.
#[derive(Clone)]
struct Shape<S>(S);

impl<S> Service<Frame> for Shape<S>
where
    S: Service<Message, Response = Outcome, Error = Infallible, Future: Send + 'static>,
{
    type Response = Outcome;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, frame: Frame) -> Answering {
        match frame.desk.read(&frame.text) {
            Ok(inbound) => Box::pin(self.0.call(Message { frame, inbound })),
            Err(rejected) => answer(frame.desk.rejected(&rejected)),
        }
    }
}

/// Asks whether the sender may do this, and still may. Somebody whose rights have ended is about to be
/// sent away; until then nothing more happens in their name.
#[derive(Clone)]
struct Access<S>(S);

impl<S> Service<Message> for Access<S>
where
    S: Service<Message, Response = Outcome, Error = Infallible, Future: Send + 'static>,
{
    type Response = Outcome;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, message: Message) -> Answering {
        let Frame {
            desk, principal, ..
        } = &message.frame;
        match desk.allows(principal, &message.inbound) {
            Ok(()) => Box::pin(self.0.call(message)),
            Err(refused) => {
                let id = message.inbound.message_id.as_deref();
                answer(desk.refuse(refused.code, &refused.message, id))
            }
        }
    }
}
