//! Pieces joined for a reader that lags.

use serde_json::json;

use super::*;

#[test]
fn pieces_of_one_utterance_are_joined() {
    let pieces = [
        recorded(3, piece("Hel", 5)),
        recorded(4, piece("lo", 6)),
        recorded(5, piece("!", 7)),
    ];
    let frame = merged(session(), &pieces.each_ref()).unwrap();
    let mut expected = json_of(include_str!("../../golden/server_task_output_chunk.json"));
    expected["payload"]["content"] = json!("Hello!");
    expected["payload"]["chunkIndex"] = json!(5);
    expected["payload"]["fromOffset"] = json!(3);
    expected["offset"] = json!(5);
    assert_eq!(json_of(&frame), expected);
}

#[test]
fn one_piece_alone_is_sent_as_it_is() {
    let one = recorded(3, piece("Hello", 0));
    assert_eq!(merged(session(), &[&one]), Some(event(session(), &one)));
}

#[test]
fn what_does_not_belong_together_is_not_joined() {
    let first = recorded(3, piece("Hello", 0));
    let thought = Event::MessageDelta {
        message: answer(),
        run: run(),
        channel: Channel::Thought,
        text: "hm".into(),
        index: 1,
    };
    let another = Event::MessageDelta {
        message: question(),
        run: run(),
        channel: Channel::Text,
        text: "hm".into(),
        index: 1,
    };
    for second in [
        recorded(4, thought),
        recorded(4, another),
        recorded(4, progress()),
        recorded(5, piece("after a gap", 1)),
        recorded(3, piece("the same again", 1)),
    ] {
        assert_eq!(merged(session(), &[&first, &second]), None);
    }
    assert_eq!(merged(session(), &[]), None);
    assert_eq!(merged(session(), &[&recorded(1, started())]), None);
}
