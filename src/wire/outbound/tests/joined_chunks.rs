//! Pieces joined for a reader that lags.

use serde_json::json;

use super::*;

#[test]
fn pieces_of_one_utterance_are_joined() {
    let mut joined = recorded(3, piece("Hel", 5));
    assert!(joined.join(&recorded(4, piece("lo", 6))));
    assert!(joined.join(&recorded(5, piece("!", 7))));
    let mut expected = json_of(include_str!("../../golden/server_task_output_chunk.json"));
    expected["payload"]["content"] = json!("Hello!");
    expected["payload"]["chunkIndex"] = json!(5);
    expected["payload"]["fromOffset"] = json!(3);
    expected["offset"] = json!(5);
    assert_eq!(json_of(&event(session(), &joined)), expected);
}

#[test]
fn joined_chunks_can_be_joined_again() {
    let mut one = recorded(3, piece("Hel", 5));
    assert!(one.join(&recorded(4, piece("lo", 6))));
    let mut two = recorded(5, piece("!", 7));
    assert!(two.join(&recorded(6, piece("!", 8))));
    assert!(one.join(&two));
    assert_eq!((one.first(), one.offset), (3, 6));
    let frame = json_of(&event(session(), &one));
    assert_eq!(frame["payload"]["content"], "Hello!!");
    assert_eq!(frame["payload"]["chunkIndex"], 5);
}

#[test]
fn chunks_of_different_messages_are_not_joined() {
    let first = recorded(3, piece("Hello", 0));
    let thought = Event::MessageDelta {
        message: answer(),
        run: run(),
        channel: Channel::Thought,
        text: "hm".into(),
        index: 1,
        joined: 0,
    };
    let another = Event::MessageDelta {
        message: question(),
        run: run(),
        channel: Channel::Text,
        text: "hm".into(),
        index: 1,
        joined: 0,
    };
    for second in [
        recorded(4, thought),
        recorded(4, another),
        recorded(4, progress()),
        recorded(5, piece("after a gap", 1)),
        recorded(3, piece("the same again", 1)),
        recorded(4, piece("out of order", 2)),
    ] {
        let mut joined = first.clone();
        assert!(!joined.join(&second));
        assert_eq!(joined, first, "nothing has changed");
    }
}
