//! Life cycle: cancel, crash, refusal, pauses and end.

use std::time::Duration;

use tokio::time::Instant;

use super::super::super::link::LinkLost;
use super::super::super::{FromAgent, ToAgent};
use super::{LONG_WAIT, Session, deltas, ended, prompt};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Channel;
use crate::domain::id::RunId;
use crate::domain::run::RunOutcome;

#[tokio::test(start_paused = true)]
async fn crash_ends_the_agent_without_ending_the_run() {
    let mut session = Session::start(8);
    let run = session.prompts("/crash").await;
    let mut events = Vec::new();
    while let Some(event) = session.events.recv().await {
        events.push(event);
    }
    assert_eq!(events[0], FromAgent::RunAccepted { run });
    assert_eq!(deltas(&events, Channel::Text).len(), 1);
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, FromAgent::RunEnded { .. }))
    );
    session.tracker.wait().await;
    let late = ToAgent::Cancel { run };
    assert_eq!(session.link.send(late).await, Err(LinkLost));
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_slowed_down_and_ended_at_256_mebibytes() {
    const MEBIBYTE: usize = 1024 * 1024;
    let mut session = Session::start(8);
    let run = session.prompts("/chunks 1000000 100000").await;
    let (mut bytes, start) = (0, Instant::now());
    let end = loop {
        match session.events.recv().await.unwrap() {
            FromAgent::MessageDelta { text, .. } => bytes += text.len(),
            end @ FromAgent::RunEnded { .. } => break end,
            _ => {}
        }
        let allowed = 64.0 + 2.0 * start.elapsed().as_secs_f64();
        let sent = u32::try_from(bytes / MEBIBYTE).map(f64::from).unwrap();
        // One burst of events may be under way.
        assert!(sent <= allowed + 10.0, "{sent} after {:?}", start.elapsed());
    };
    assert!((255 * MEBIBYTE..257 * MEBIBYTE).contains(&bytes), "{bytes}");
    let failed = matches!(&end, FromAgent::RunEnded { run: ended, outcome: RunOutcome::Failed { .. }, .. } if *ended == run);
    assert!(failed, "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_steered_run_says_so_and_goes_on() {
    let mut session = Session::start(8);
    let run = session.prompts("/stream 4 1000").await;
    session.receives().await;
    session.receives().await;
    let text = "shorter".to_owned();
    session
        .link
        .send(ToAgent::Steer { run, text })
        .await
        .unwrap();
    let mut events = Vec::new();
    while !events
        .iter()
        .any(|event| matches!(event, FromAgent::RunEnded { .. }))
    {
        events.push(session.receives().await);
    }
    let said = deltas(&events, Channel::Text).concat();
    assert!(said.contains("You steered me: shorter"), "{said}");
    assert!(said.ends_with("4 "), "{said}");
}

#[tokio::test(start_paused = true)]
async fn hang_sends_nothing_until_it_is_cancelled() {
    let mut session = Session::start(8);
    let run = session.prompts("/hang").await;
    session.receives().await;
    session.receives().await;
    session.receives_nothing_more().await;
    session.cancels(run).await;
    assert_eq!(session.receives().await, ended(run, RunOutcome::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_a_pause_ends_the_run_at_once_and_only_once() {
    let mut session = Session::start(8);
    let run = session.prompts("/stream 10 60000").await;
    for _ in 0..3 {
        session.receives().await;
    }
    let begin = Instant::now();
    session.cancels(run).await;
    session.cancels(run).await;
    assert_eq!(session.receives().await, ended(run, RunOutcome::Cancelled));
    assert_eq!(begin.elapsed(), Duration::ZERO);
    session.receives_nothing_more().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_before_the_first_event_leaves_only_the_end() {
    let mut session = Session::start(8);
    let run = session.prompts("/echo too late").await;
    session.cancels(run).await;
    assert_eq!(
        session.receives_rest(run).await,
        [ended(run, RunOutcome::Cancelled)]
    );
    session.receives_nothing_more().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_works_while_the_event_channel_is_full() {
    let mut session = Session::start(4);
    let run = session.prompts("/chunks 1000000 100000").await;
    tokio::time::sleep(LONG_WAIT).await;
    assert_eq!(session.events.len(), 4);
    session.cancels(run).await;
    tokio::time::sleep(LONG_WAIT).await;
    let events = session.receives_rest(run).await;
    assert_eq!(events.len(), 5, "what was said before, and the end");
    assert_eq!(events[4], ended(run, RunOutcome::Cancelled));
    session.receives_nothing_more().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_an_unknown_or_ended_run_is_ignored() {
    let mut session = Session::start(8);
    session.cancels(RunId::new()).await;
    let run = session.prompts("/echo done").await;
    session.receives_run(run).await;
    session.cancels(run).await;
    let run = session.prompts("/stream 3 1000").await;
    session.cancels(RunId::new()).await;
    let events = session.receives_run(run).await;
    assert_eq!(events.last(), Some(&ended(run, RunOutcome::Completed)));
    session.receives_nothing_more().await;
}

#[tokio::test(start_paused = true)]
async fn commands_for_other_runs_do_not_lengthen_a_pause() {
    let mut session = Session::start(8);
    let begin = Instant::now();
    let run = session.prompts("/stream 2 1000").await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        session.cancels(RunId::new()).await;
    }
    session.receives_run(run).await;
    assert_eq!(begin.elapsed(), Duration::from_millis(1500));
}

#[tokio::test(start_paused = true)]
async fn a_second_prompt_is_refused_and_the_first_run_continues() {
    let mut session = Session::start(2);
    let first = session.prompts("/stream 5 1000").await;
    let mut others = Vec::new();
    for _ in 0..40 {
        others.push(session.prompts("/echo me too").await);
        let FromAgent::RunEnded { run, outcome, .. } = session.receives_refusal().await else {
            panic!("not an end");
        };
        assert_eq!(Some(&run), others.last());
        assert!(matches!(
            outcome,
            RunOutcome::Failed {
                code: ErrorCode::Busy,
                ..
            }
        ));
    }
    let events = session.receives_rest(first).await;
    assert_eq!(events.last(), Some(&ended(first, RunOutcome::Completed)));
}

#[tokio::test(start_paused = true)]
async fn a_fast_stream_is_sent_in_bursts() {
    let mut session = Session::start(1000);
    session.prompts("/stream 1000").await;
    session.receives().await;
    assert!(session.events.len() >= 200, "{}", session.events.len());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_link_ends_the_agent_whatever_it_does() {
    for prompt in ["/hang", "/stream 1000000", "/stream 10 60000", "/echo idle"] {
        let session = Session::start(4);
        session.prompts(prompt).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let Session {
            link,
            mut events,
            tracker,
            ..
        } = session;
        drop(link);
        tracker.wait().await;
        while events.recv().await.is_some() {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_or_a_closed_session_ends_the_agent() {
    let session = Session::start(4);
    session.prompts("/hang").await;
    session.stop.cancel();
    session.tracker.wait().await;

    let session = Session::start(4);
    session.prompts("/stream 1000000").await;
    drop(session.events);
    session.tracker.wait().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_link_leaves_its_siblings_alone() {
    let session = Session::start(4);
    drop(session.link);
    session.tracker.wait().await;
    assert!(!session.stop.is_cancelled());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_words_arrive_in_order() {
    let mut session = Session::start(512);
    let run = session.prompts("/stream 1000000").await;
    let (mut many, mut next) = (Vec::new(), 1_u64);
    loop {
        session.events.recv_many(&mut many, 512).await;
        for event in many.drain(..) {
            match event {
                FromAgent::MessageDelta { text, .. } => {
                    assert_eq!(text.trim_end().parse(), Ok(next));
                    next += 1;
                }
                FromAgent::RunEnded { .. } => {
                    assert_eq!(event, ended(run, RunOutcome::Completed));
                    assert_eq!(next, 1_000_001);
                    return;
                }
                _ => {}
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_beyond_the_queue_wait_and_each_is_refused_once() {
    let mut session = Session::start(1);
    let first = session.prompts("/hang").await;
    let Session { link, events, .. } = &mut session;
    let flood = async {
        for _ in 0..100 {
            let event = prompt(RunId::new(), "/echo me too");
            link.send(event).await.unwrap();
        }
        link.send(ToAgent::Cancel { run: first }).await.unwrap();
    };
    assert!(
        tokio::time::timeout(LONG_WAIT, flood).await.is_err(),
        "all of it is kept"
    );
    let cancel = link.send(ToAgent::Cancel { run: first });
    let refusals = async {
        let mut ends = Vec::new();
        while let Some(event) = events.recv().await {
            match event {
                FromAgent::RunEnded { run, .. } if run == first => return ends,
                FromAgent::RunEnded { run, .. } => ends.push(run),
                _ => {}
            }
        }
        panic!("the agent is gone");
    };
    let (sent, ends) = tokio::join!(cancel, refusals);
    assert_eq!(sent, Ok(()));
    assert!((16..100).contains(&ends.len()), "{}", ends.len());
    assert!(
        ends.is_sorted_by(|one, two| one < two),
        "in order, no one twice"
    );
}
