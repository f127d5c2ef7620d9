//! Halves of characters in JSON.
//!
//! A text of UTF-16 that is cut between the two halves of a character is written with an escape such
//! as `\ud83d` alone. The grammar of JSON allows that, but no Unicode text can hold it: readers
//! refuse the whole document.

/// What stands for a half in the text that goes on without it: U+FFFD.
pub(crate) const REPLACEMENT: [u8; 6] = *br"\ufffd";
/// One that no text may hold, to find the place again.
pub(crate) const MARK: [u8; 6] = *br"\u0000";

const ESCAPE: usize = REPLACEMENT.len();

/// The same JSON with `by` in place of every escape that is half of a character; `None` if there is
/// no such escape.
pub(crate) fn without_lone_halves(json: &[u8], by: [u8; ESCAPE]) -> Option<Vec<u8>> {
    let mut whole: Option<Vec<u8>> = None;
    // All before it is in `whole`, once there is one.
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = json[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        match unit(&json[at..]) {
            None => at = json.len().min(at + 2),
            Some(0xD800..=0xDBFF)
                if matches!(unit(&json[at + ESCAPE..]), Some(0xDC00..=0xDFFF)) =>
            {
                at += 2 * ESCAPE;
            }
            Some(0xD800..=0xDFFF) => {
                let whole = whole.get_or_insert_default();
                whole.extend_from_slice(&json[copied..at]);
                whole.extend_from_slice(&by);
                at += ESCAPE;
                copied = at;
            }
            Some(_) => at += ESCAPE,
        }
    }
    let mut whole = whole?;
    whole.extend_from_slice(&json[copied..]);
    Some(whole)
}

/// The unit of UTF-16 that an escape at the beginning says.
fn unit(json: &[u8]) -> Option<u16> {
    let digits = json.strip_prefix(br"\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mended(json: &str) -> Option<String> {
        let mended = without_lone_halves(json.as_bytes(), REPLACEMENT)?;
        Some(String::from_utf8(mended).unwrap())
    }

    #[test]
    fn only_halves_are_replaced() {
        for (json, expected) in [
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\uDE00b""#, r#""\ufffdb""#),
            (
                r#""\ud83d\ud83d\ude00\ude00""#,
                r#""\ufffd\ud83d\ude00\ufffd""#,
            ),
            (r#""\ud83d\n\ude00""#, r#""\ufffd\n\ufffd""#),
            (r#"{"\ud83d":"é\ud83d"}"#, r#"{"\ufffd":"é\ufffd"}"#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
        ] {
            assert_eq!(mended(json).as_deref(), Some(expected));
        }
        for whole in [
            "",
            r#""\ud83d\ude00 \u00e9\n""#,
            // A backslash, and then no escape.
            r#""\\ud83d""#,
            r#""\ud83"#,
            r#""\u+d83""#,
            "\\",
        ] {
            assert_eq!(mended(whole), None, "{whole}");
        }
    }

    proptest! {
        #[test]
        fn whatever_units_a_text_has_it_can_be_read_afterwards(units: Vec<u16>) {
            let escapes: Vec<String> = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{}\"", escapes.concat());
            let json = mended(&json).unwrap_or(json);
            let text: String = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(text, String::from_utf16_lossy(&units));
        }
    }
}
