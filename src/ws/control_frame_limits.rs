//! What one connection may send besides messages: control frames, and fragments.
//!
//! Messages are counted per session, further in; the library deals with everything below them and
//! sets no limit. Only a complete message renews the bytes for the next one: if a ping did, pings
//! between empty fragments would keep a message going for ever. Touches `meter`, `limits`, `desk`.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::meter::Allowance;
use crate::clock::Clock;
use crate::desk::CloseReason;
use crate::limits::SlidingWindow;

/// Pings and pongs of one connection in any minute.
const CONTROL_FRAMES: NonZeroU32 = NonZeroU32::new(600).expect("not zero");
/// Of a control frame from a client: two bytes and the mask.
const HEADER_BYTES: u64 = 6;

/// How long a message may take from its first byte to its last, on whatever line.
const FINISHED_WITHIN: Duration = Duration::from_mins(1);

/// What one connection may send besides messages.
pub(super) struct Budget {
    control_frames: SlidingWindow<()>,
    allowance: Allowance,
    /// Since when the message under way is known to be.
    under_way: Option<Instant>,
}

impl Budget {
    pub(super) fn new(allowance: Allowance, clock: Clock) -> Self {
        let minute = Duration::from_mins(1);
        Self {
            control_frames: SlidingWindow::new(CONTROL_FRAMES, minute, NonZeroU32::MIN, clock),
            allowance,
            under_way: None,
        }
    }

    /// Has a message been under way for too long? To be asked from time to time: it counts from the
    /// first time that it was seen.
    pub(super) fn is_overdue(&mut self, now: Instant) -> bool {
        if !self.allowance.is_under_way() {
            self.under_way = None;
            return false;
        }
        let since = *self.under_way.get_or_insert(now);
        now - since >= FINISHED_WITHIN
    }

    /// Counts what the library handed out; `Err` if it is too much.
    pub(super) fn count(&mut self, frame: &Message) -> Result<(), CloseReason> {
        match frame {
            Message::Text(_) | Message::Binary(_) => {
                self.allowance.renew();
                self.under_way = None;
            }
            Message::Ping(payload) | Message::Pong(payload) => {
                self.allowance.excuse(HEADER_BYTES + payload.len() as u64);
                let admitted = self.control_frames.admit(&());
                return admitted.map(drop).map_err(|_| CloseReason::FLOODING);
            }
            Message::Close(_) | Message::Frame(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::limits::Pool;
    use crate::ws::meter::Meter;

    fn budget(most: u64) -> (Budget, Clock, Meter<tokio::io::Repeat>) {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let (meter, _, allowance) = Meter::new(tokio::io::repeat(0), most, Pool::new(0));
        (Budget::new(allowance, clock.clone()), clock, meter)
    }

    fn ping(bytes: usize) -> Message {
        Message::Ping(vec![0; bytes].into())
    }

    #[test]
    fn the_601st_control_frame_within_a_minute_is_one_too_many() {
        let (mut budget, clock, _) = budget(1);
        for _ in 0..300 {
            assert_eq!(budget.count(&ping(0)), Ok(()));
            assert_eq!(budget.count(&Message::Pong(Vec::new().into())), Ok(()));
        }
        clock.advance(Duration::from_secs(59));
        assert_eq!(budget.count(&ping(0)), Err(CloseReason::FLOODING));
        assert_eq!(budget.count(&Message::text("x")), Ok(()));
        clock.advance(Duration::from_secs(1));
        assert_eq!(budget.count(&ping(0)), Ok(()));
    }

    #[test]
    fn a_ping_every_200_ms_goes_on_for_ever() {
        let (mut budget, clock, _) = budget(1);
        for _ in 0..10_000 {
            assert_eq!(budget.count(&ping(8)), Ok(()));
            clock.advance(Duration::from_millis(200));
        }
    }

    #[tokio::test]
    async fn pings_pay_for_themselves_and_not_for_fragments() {
        let (mut budget, _, mut meter) = budget(100);
        let mut bytes = [0; 106];
        // A ping of 100 bytes, over and over: no part of any message.
        for _ in 0..10 {
            let (first, rest) = bytes.split_at_mut(53);
            meter.read_exact(first).await.unwrap();
            meter.read_exact(rest).await.unwrap();
            budget.count(&ping(100)).unwrap();
        }
        // Fragments of 10 bytes, each with an empty ping behind it.
        for _ in 0..10 {
            meter.read_exact(&mut bytes[..16]).await.unwrap();
            budget.count(&ping(0)).unwrap();
        }
        assert!(meter.read(&mut bytes).await.is_err());
        budget.count(&Message::binary(vec![1])).unwrap();
        meter.read_exact(&mut bytes[..100]).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_is_never_finished_is_overdue_whatever_comes_between() {
        let (mut budget, _, mut meter) = budget(1_000);
        let mut bytes = [0; 100];
        assert!(!budget.is_overdue(Instant::now()));
        meter.read_exact(&mut bytes).await.unwrap();
        assert!(!budget.is_overdue(Instant::now()));
        tokio::time::advance(FINISHED_WITHIN / 2).await;
        meter.read_exact(&mut bytes[..6]).await.unwrap();
        budget.count(&ping(0)).unwrap();
        assert!(!budget.is_overdue(Instant::now()));
        tokio::time::advance(FINISHED_WITHIN / 2).await;
        assert!(budget.is_overdue(Instant::now()));
        budget.count(&Message::text("at last")).unwrap();
        assert!(!budget.is_overdue(Instant::now()));
    }
}
