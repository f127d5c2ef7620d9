//! Autobahn cases: the chapters of the suite, as tables.

use crate::case::{Case, pass};
use crate::gateway::Gateway;
use crate::raw_websocket::{BINARY, CLOSE, FIN, PING, PONG, RawWebSocket, TEXT, close_code};

const HELLO: &[u8] = b"Hello, world!";
const BYTES: &[u8] = b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff";
const GREEK: &[u8] = "κ\u{1f79}σμε".as_bytes();
const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
const CAP: usize = 4 * MIB;

const PROTOCOL_ERROR: &[u16] = &[1002];
const BAD_TEXT: &[u16] = &[1007];
const TOO_LARGE: &[u16] = &[1009];

/// Sent whole, and echoed.
fn echo(case: Case, opcode: u8, payload: &[u8]) -> Case {
    case.sends(FIN | opcode, payload).expects(opcode, payload)
}

#[tokio::test]
async fn chapter_1_messages_are_echoed_unchanged() {
    let mut cases = Vec::new();
    for (part, opcode, letter) in [(1, TEXT, b'*'), (2, BINARY, 0xfe)] {
        let sizes = [0, 125, 126, 127, 128, 65_535, 65_536];
        for (place, size) in (1..).zip(sizes) {
            let case = Case::new(format!("1.{part}.{place}"));
            cases.push(echo(case, opcode, &vec![letter; size]));
        }
        let payload = vec![letter; 65_536];
        let case = Case::new(format!("1.{part}.8"));
        let case = case.chops(997, &[(FIN | opcode, &payload)]);
        cases.push(case.expects(opcode, &payload));
    }
    pass(16, cases).await;
}

#[tokio::test]
async fn chapter_2_pings_are_answered() {
    let longest = [0xfe; 125];
    let ping = |number: &str, payload: &[u8]| {
        Case::new(number)
            .sends(FIN | PING, payload)
            .expects(PONG, payload)
    };
    let payloads: Vec<String> = (0..10).map(|number| format!("payload-{number}")).collect();
    let ten: Vec<(u8, &[u8])> = payloads
        .iter()
        .map(|payload| (FIN | PING, payload.as_bytes()))
        .collect();
    let answered = |case: Case| {
        let answers = payloads.iter().map(String::as_bytes);
        answers.fold(case, |case, answer| case.expects(PONG, answer))
    };
    let cases = vec![
        ping("2.1", b""),
        ping("2.2", HELLO),
        ping("2.3", BYTES),
        ping("2.4", &longest),
        Case::new("2.5")
            .sends(FIN | PING, &[0xfe; 126])
            .closes(PROTOCOL_ERROR),
        Case::new("2.6")
            .chops(1, &[(FIN | PING, &longest)])
            .expects(PONG, &longest),
        Case::new("2.7").sends(FIN | PONG, b""),
        Case::new("2.8").sends(FIN | PONG, b"unasked"),
        Case::new("2.9")
            .sends(FIN | PONG, b"unasked")
            .sends(FIN | PING, b"asked")
            .expects(PONG, b"asked"),
        answered(Case::new("2.10").sends_at_once(&ten)),
        answered(Case::new("2.11").chops(1, &ten)),
    ];
    pass(11, cases).await;
}

/// A valid message, an invalid frame, and a ping that gets no answer.
fn spoilt(first: u8, payload: &'static [u8]) -> [(u8, &'static [u8]); 3] {
    [(FIN | TEXT, HELLO), (first, payload), (FIN | PING, b"")]
}

#[tokio::test]
async fn chapter_3_reserved_bits_are_refused() {
    let second = spoilt(FIN | 0x20 | TEXT, HELLO);
    let third = spoilt(FIN | 0x30 | TEXT, HELLO);
    let fourth = spoilt(FIN | 0x40 | TEXT, HELLO);
    let framewise = |case: Case| {
        third
            .iter()
            .fold(case, |case, (first, payload)| case.sends(*first, payload))
    };
    let cases = vec![
        Case::new("3.1").sends(FIN | 0x10 | TEXT, HELLO),
        Case::new("3.2").sends_at_once(&second).expects(TEXT, HELLO),
        framewise(Case::new("3.3")).expects(TEXT, HELLO),
        Case::new("3.4").chops(1, &fourth).expects(TEXT, HELLO),
        Case::new("3.5").sends(FIN | 0x50 | BINARY, BYTES),
        Case::new("3.6").sends(FIN | 0x60 | PING, HELLO),
        Case::new("3.7").sends(FIN | 0x70 | CLOSE, b""),
    ];
    let cases = cases.into_iter().map(|case| case.closes(PROTOCOL_ERROR));
    pass(7, cases.collect()).await;
}

#[tokio::test]
async fn chapter_4_reserved_opcodes_are_refused() {
    let mut cases = Vec::new();
    for (part, opcode) in [(1, 3), (2, 11)] {
        let case = |place: u8| Case::new(format!("4.{part}.{place}"));
        let bad = |offset: u8| FIN | (opcode + offset);
        cases.push(case(1).sends(bad(0), b""));
        cases.push(case(2).sends(bad(1), b"reserved"));
        let later = [
            case(3).sends_at_once(&spoilt(bad(2), b"")),
            case(4).sends_at_once(&spoilt(bad(3), HELLO)),
            case(5).chops(1, &spoilt(bad(4), HELLO)),
        ];
        cases.extend(later.map(|case| case.expects(TEXT, HELLO)));
    }
    let cases = cases.into_iter().map(|case| case.closes(PROTOCOL_ERROR));
    pass(10, cases.collect()).await;
}

/// The same bytes sent at once, frame by frame, and byte by byte.
fn cut(numbers: [&str; 3], frames: &[(u8, &[u8])]) -> [Case; 3] {
    let [at_once, framewise, bytewise] = numbers.map(Case::new);
    let framewise = frames.iter().fold(framewise, |case, (first, payload)| {
        case.sends(*first, payload)
    });
    [
        at_once.sends_at_once(frames),
        framewise,
        bytewise.chops(1, frames),
    ]
}

#[tokio::test]
async fn chapter_5_fragments_are_one_message() {
    let mut cases = Vec::new();
    for (number, opcode) in [("5.1", PING), ("5.2", PONG)] {
        let frames: [(u8, &[u8]); 2] = [(opcode, b"one"), (FIN, b"two")];
        cases.push(
            Case::new(number)
                .sends_at_once(&frames)
                .closes(PROTOCOL_ERROR),
        );
    }
    let two: [(u8, &[u8]); 2] = [(TEXT, b"one"), (FIN, b"two")];
    cases.extend(cut(["5.3", "5.4", "5.5"], &two).map(|case| case.expects(TEXT, b"onetwo")));
    let between: [(u8, &[u8]); 3] = [(TEXT, b"one"), (FIN | PING, b"ping"), (FIN, b"two")];
    cases.extend(
        cut(["5.6", "5.7", "5.8"], &between)
            .map(|case| case.expects(PONG, b"ping").expects(TEXT, b"onetwo")),
    );
    for (numbers, fin) in [
        (["5.9", "5.10", "5.11"], FIN),
        (["5.12", "5.13", "5.14"], 0),
    ] {
        let nothing: [(u8, &[u8]); 2] = [(fin, b"of nothing"), (FIN | TEXT, HELLO)];
        cases.extend(cut(numbers, &nothing).map(|case| case.closes(PROTOCOL_ERROR)));
    }
    cases.push(
        Case::new("5.15")
            .sends_at_once(&[
                (TEXT, b"one"),
                (FIN, b"two"),
                (0, b"three"),
                (FIN | TEXT, b"four"),
            ])
            .expects(TEXT, b"onetwo")
            .closes(PROTOCOL_ERROR),
    );
    for (number, fin) in [("5.16", 0), ("5.17", FIN)] {
        let once: [(u8, &[u8]); 3] = [(fin, b"one"), (TEXT, b"two"), (FIN, b"three")];
        cases.push(
            Case::new(number)
                .sends_at_once(&[once, once].concat())
                .closes(PROTOCOL_ERROR),
        );
    }
    cases.push(
        Case::new("5.18")
            .sends_at_once(&[(TEXT, b"one"), (FIN | TEXT, b"two")])
            .closes(PROTOCOL_ERROR),
    );
    let first: [(u8, &[u8]); 3] = [(TEXT, b"1"), (0, b"2"), (FIN | PING, b"first")];
    let second: [(u8, &[u8]); 4] = [(0, b"3"), (0, b"4"), (FIN | PING, b"second"), (FIN, b"5")];
    cases.push(
        Case::new("5.19")
            .sends_at_once(&first)
            .expects(PONG, b"first")
            .sends_at_once(&second)
            .expects(PONG, b"second")
            .expects(TEXT, b"12345"),
    );
    let framewise = |case: Case, frames: &[(u8, &[u8])]| {
        frames
            .iter()
            .fold(case, |case, (first, payload)| case.sends(*first, payload))
    };
    let case = framewise(Case::new("5.20"), &first).expects(PONG, b"first");
    let case = framewise(case, &second).expects(PONG, b"second");
    cases.push(case.expects(TEXT, b"12345"));
    pass(20, cases).await;
}

#[tokio::test]
async fn chapter_6_text_is_utf8() {
    let accents = "Hello-µ@ßöäüàá-UTF-8!!".as_bytes();
    let half = "Hello-µ@ßöä".len();
    let surrogate = [GREEK, b"\xed\xa0\x80", b"edited"].concat();
    // Its thirteenth byte makes it invalid: beyond U+10FFFF.
    let beyond = [GREEK, b"\xf4\x90\x80\x80", b"edited"].concat();
    let mut cases = vec![
        echo(Case::new("6.1.1"), TEXT, b""),
        Case::new("6.1.2")
            .sends_at_once(&[(TEXT, b""), (0, b""), (FIN, b"")])
            .expects(TEXT, b""),
        Case::new("6.1.3")
            .sends_at_once(&[(TEXT, b""), (0, b"middle"), (FIN, b"")])
            .expects(TEXT, b"middle"),
        echo(Case::new("6.2.1"), TEXT, accents),
        Case::new("6.2.2")
            .sends_at_once(&[(TEXT, &accents[..half]), (FIN, &accents[half..])])
            .expects(TEXT, accents),
        Case::new("6.2.3")
            .fragments(TEXT, accents, 1)
            .expects(TEXT, accents),
        Case::new("6.2.4")
            .fragments(TEXT, GREEK, 1)
            .expects(TEXT, GREEK),
        Case::new("6.3.1")
            .sends(FIN | TEXT, &surrogate)
            .closes(BAD_TEXT),
        Case::new("6.3.2")
            .fragments(TEXT, &surrogate, 1)
            .closes(BAD_TEXT),
    ];
    // Refused at the invalid fragment; the rest is never sent.
    for (number, from, to) in [("6.4.1", 11, 15), ("6.4.2", 12, 13)] {
        cases.push(
            Case::new(number)
                .sends(TEXT, &beyond[..from])
                .stays_open()
                .sends(0, &beyond[from..to])
                .closes(BAD_TEXT),
        );
    }
    // Inside one frame it is refused when the frame is complete. The suite calls that NON-STRICT:
    // allowed, and the earliest that the library can detect.
    for (number, size) in [("6.4.3", 11), ("6.4.4", 12)] {
        cases.push(
            Case::new(number)
                .chops(6 + size, &[(FIN | TEXT, &beyond)])
                .closes(BAD_TEXT),
        );
    }
    let mut place = (0, 0);
    for (section, sequence, valid) in sequences() {
        place = (section, if place.0 == section { place.1 + 1 } else { 1 });
        let case = Case::new(format!("6.{}.{}", place.0, place.1));
        cases.push(if valid {
            echo(case, TEXT, &sequence)
        } else {
            case.sends(FIN | TEXT, &sequence).closes(BAD_TEXT)
        });
    }
    pass(145, cases).await;
}

/// The sections 6.5 to 6.23: a sequence, and whether it is UTF-8.
fn sequences() -> Vec<(u8, Vec<u8>, bool)> {
    let mut all: Vec<(u8, Vec<u8>, bool)> = Vec::new();
    let mut section = |number, valid, sequences: &[&[u8]]| {
        let sequences = sequences.iter();
        all.extend(sequences.map(|sequence| (number, sequence.to_vec(), valid)));
    };
    section(
        5,
        true,
        &[
            b"hello\x24world",
            "hello¢world".as_bytes(),
            "hello€world".as_bytes(),
            "hello\u{24b62}world".as_bytes(),
            GREEK,
        ],
    );
    // Every prefix of a text; valid where a character ends.
    for length in 1..=GREEK.len() {
        let valid = [2, 5, 7, 9, 11].contains(&length);
        section(6, valid, &[&GREEK[..length]]);
    }
    // The first and the last sequence of each length, and obsolete lengths.
    section(
        7,
        true,
        &[b"\0", b"\xc2\x80", b"\xe0\xa0\x80", b"\xf0\x90\x80\x80"],
    );
    section(
        8,
        false,
        &[b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80"],
    );
    section(
        9,
        true,
        &[b"\x7f", b"\xdf\xbf", b"\xef\xbf\xbf", b"\xf4\x8f\xbf\xbf"],
    );
    section(
        10,
        false,
        &[
            b"\xf7\xbf\xbf\xbf",
            b"\xfb\xbf\xbf\xbf\xbf",
            b"\xfd\xbf\xbf\xbf\xbf\xbf",
        ],
    );
    // Around the surrogates and the end of Unicode.
    section(
        11,
        true,
        &[
            b"\xed\x9f\xbf",
            b"\xee\x80\x80",
            b"\xef\xbf\xbd",
            b"\xf4\x8f\xbf\xbf",
        ],
    );
    section(11, false, &[b"\xf4\x90\x80\x80"]);
    // Continuation bytes without a start.
    let continuations: Vec<u8> = (0x80..0xbf).collect();
    section(12, false, &[b"\x80", b"\xbf"]);
    for length in 2..=6 {
        section(12, false, &[&b"\x80\xbf\x80\xbf\x80\xbf"[..length]]);
    }
    section(12, false, &[&continuations]);
    // Start bytes without a continuation.
    for range in [0xc0..0xdf, 0xe0..0xef, 0xf0..0xf7, 0xf8..0xfb, 0xfc..0xfd] {
        let lonely: Vec<u8> = range.flat_map(|start| [start, b' ']).collect();
        section(13, false, &[&lonely]);
    }
    // The last byte is missing: each alone, then all together.
    let cut_short: [&[u8]; 10] = [
        b"\xc0",
        b"\xe0\x80",
        b"\xf0\x80\x80",
        b"\xf8\x80\x80\x80",
        b"\xfc\x80\x80\x80\x80",
        b"\xdf",
        b"\xef\xbf",
        b"\xf7\xbf\xbf",
        b"\xfb\xbf\xbf\xbf",
        b"\xfd\xbf\xbf\xbf\xbf",
    ];
    section(14, false, &cut_short);
    section(15, false, &[&cut_short.concat()]);
    section(16, false, &[b"\xfe", b"\xff", b"\xfe\xfe\xff\xff"]);
    // Overlong: a slash, the maximum, and NUL.
    section(
        17,
        false,
        &[
            b"\xc0\xaf",
            b"\xe0\x80\xaf",
            b"\xf0\x80\x80\xaf",
            b"\xf8\x80\x80\x80\xaf",
            b"\xfc\x80\x80\x80\x80\xaf",
        ],
    );
    section(
        18,
        false,
        &[
            b"\xc1\xbf",
            b"\xe0\x9f\xbf",
            b"\xf0\x8f\xbf\xbf",
            b"\xf8\x87\xbf\xbf\xbf",
            b"\xfc\x83\xbf\xbf\xbf\xbf",
        ],
    );
    section(
        19,
        false,
        &[
            b"\xc0\x80",
            b"\xe0\x80\x80",
            b"\xf0\x80\x80\x80",
            b"\xf8\x80\x80\x80\x80",
            b"\xfc\x80\x80\x80\x80\x80",
        ],
    );
    // Surrogates, alone and in pairs.
    section(
        20,
        false,
        &[
            b"\xed\xa0\x80",
            b"\xed\xad\xbf",
            b"\xed\xae\x80",
            b"\xed\xaf\xbf",
            b"\xed\xb0\x80",
            b"\xed\xbe\x80",
            b"\xed\xbf\xbf",
        ],
    );
    for high in [
        b"\xed\xa0\x80",
        b"\xed\xad\xbf",
        b"\xed\xae\x80",
        b"\xed\xaf\xbf",
    ] {
        for low in [b"\xed\xb0\x80", b"\xed\xbf\xbf"] {
            section(21, false, &[&[*high, *low].concat()]);
        }
    }
    // Noncharacters: the last two code points of each plane. Valid UTF-8 all the same.
    for plane in 0..=16_u32 {
        for last in [0xfffe, 0xffff] {
            let point = char::from_u32(plane * 0x1_0000 + last).unwrap();
            section(22, true, &[point.to_string().as_bytes()]);
        }
    }
    for special in '\u{fff9}'..='\u{ffff}' {
        section(23, true, &[special.to_string().as_bytes()]);
    }
    all
}

#[tokio::test]
async fn chapter_7_a_close_is_answered_with_the_same_code() {
    let normal = &1000_u16.to_be_bytes()[..];
    let close = |number: String, payload: &[u8]| Case::new(number).sends(FIN | CLOSE, payload);
    let reasoned =
        |number: &str, reason: &[u8]| close(number.to_owned(), &[normal, reason].concat());
    let big = vec![b'x'; 256 * KIB];
    let mut cases = vec![
        echo(Case::new("7.1.1"), TEXT, HELLO),
        Case::new("7.1.2")
            .sends_at_once(&[(FIN | CLOSE, normal), (FIN | CLOSE, b"")])
            .closes(&[1000]),
        Case::new("7.1.3")
            .sends_at_once(&[(FIN | CLOSE, normal), (FIN | PING, b"")])
            .closes(&[1000]),
        Case::new("7.1.4")
            .sends_at_once(&[(FIN | CLOSE, normal), (FIN | TEXT, HELLO)])
            .closes(&[1000]),
        Case::new("7.1.5")
            .sends_at_once(&[(TEXT, b"one"), (FIN | CLOSE, normal), (FIN, b"two")])
            .closes(&[1000]),
        // The suite leaves open whether messages before the close are echoed. Ours are.
        Case::new("7.1.6")
            .sends_at_once(&[
                (FIN | TEXT, &big),
                (FIN | TEXT, HELLO),
                (FIN | CLOSE, normal),
                (FIN | PING, b""),
            ])
            .expects(TEXT, &big)
            .expects(TEXT, HELLO)
            .closes(&[1000]),
        close("7.3.1".to_owned(), b"").closes_without_code(),
        close("7.3.2".to_owned(), b"a").closes(PROTOCOL_ERROR),
        reasoned("7.3.3", b"").closes(&[1000]),
        reasoned("7.3.4", HELLO).closes(&[1000]),
        reasoned("7.3.5", &[b'*'; 123]).closes(&[1000]),
        reasoned("7.3.6", &[b'*'; 124]).closes(PROTOCOL_ERROR),
        reasoned("7.5.1", &[GREEK, b"\xed\xa0\x80", b"edited"].concat()).closes(&[1002, 1007]),
    ];
    let good = [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999_u16,
    ];
    let bad = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999_u16];
    // Not covered by the RFC: codes that must not be used.
    let unheard_of = [5000, 65_535_u16];
    for (place, code) in (1..).zip(good) {
        cases.push(close(format!("7.7.{place}"), &code.to_be_bytes()).closes(&[code]));
    }
    for (part, codes) in [(9, &bad[..]), (13, &unheard_of)] {
        for (place, code) in (1..).zip(codes) {
            let case = close(format!("7.{part}.{place}"), &code.to_be_bytes());
            cases.push(case.closes(PROTOCOL_ERROR));
        }
    }
    pass(37, cases).await;
}

#[tokio::test]
async fn chapter_9_large_messages_are_echoed_up_to_the_cap() {
    let mut cases = Vec::new();
    for (part, opcode, letter) in [(1, TEXT, b'*'), (2, BINARY, 0xfe)] {
        let sizes = [64 * KIB, 256 * KIB, MIB, CAP, 2 * CAP, 4 * CAP];
        for (place, size) in (1..).zip(sizes) {
            let case = Case::new(format!("9.{part}.{place}"));
            let payload = vec![letter; size];
            cases.push(if size <= CAP {
                echo(case, opcode, &payload)
            } else {
                case.sends(FIN | opcode, &payload).closes(TOO_LARGE)
            });
        }
    }
    pass(12, cases).await;
}

#[tokio::test]
async fn chapter_9_large_messages_may_use_fragments_of_any_size() {
    let mut cases = Vec::new();
    for (part, opcode, letter) in [(3, TEXT, b'*'), (4, BINARY, 0xfe)] {
        let payload = vec![letter; CAP];
        for (place, exponent) in (1..=9).zip((6..).step_by(2)) {
            let case = Case::new(format!("9.{part}.{place}"));
            let case = case.fragments(opcode, &payload, 1 << exponent);
            cases.push(case.expects(opcode, &payload));
        }
    }
    pass(18, cases).await;
}

#[tokio::test]
async fn chapter_9_large_messages_may_use_writes_of_any_size() {
    let mut cases = Vec::new();
    for (part, opcode, letter) in [(5, TEXT, b'*'), (6, BINARY, 0xfe)] {
        let payload = vec![letter; MIB];
        for place in 1..=6 {
            let case = Case::new(format!("9.{part}.{place}"));
            let case = case.chops(32 << place, &[(FIN | opcode, &payload)]);
            cases.push(case.expects(opcode, &payload));
        }
    }
    pass(12, cases).await;
}

#[tokio::test]
async fn chapter_9_a_thousand_messages_are_echoed() {
    let mut cases = Vec::new();
    for (part, opcode, letter) in [(7, TEXT, b'*'), (8, BINARY, 0xfe)] {
        for (place, size) in (1..).zip([0, 16, 64, 256, 1024, 4096]) {
            let case = Case::new(format!("9.{part}.{place}"));
            let payload = vec![letter; size];
            cases.push((0..1000).fold(case, |case, _| echo(case, opcode, &payload)));
        }
    }
    pass(12, cases).await;
}

#[tokio::test]
async fn chapter_10_automatic_fragments_are_one_message() {
    let payload = vec![b'*'; 65_536];
    let case = Case::new("10.1.1").fragments(TEXT, &payload, 1300);
    pass(1, vec![case.expects(TEXT, &payload)]).await;
}

#[tokio::test]
async fn compression_is_not_accepted() {
    let gateway = Gateway::start();
    let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
    let mut raw = RawWebSocket::open(gateway.address, "/echo", offer).await;
    assert!(
        !raw.answer.contains("sec-websocket-extensions"),
        "{}",
        raw.answer
    );
    // "Hello", compressed, as from a client that assumes its offer was accepted.
    raw.send(FIN | 0x40 | TEXT, b"\xf2\x48\xcd\xc9\xc9\x07\x00")
        .await;
    let (opcode, payload) = raw.frame().await.unwrap();
    assert_eq!((opcode, close_code(&payload)), (CLOSE, Some(1002)));
}
