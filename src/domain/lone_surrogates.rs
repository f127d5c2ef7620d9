//! Lone surrogates: replaces unpaired UTF-16 escapes in JSON.
//!
//! UTF-16 text that is cut within a surrogate pair is written with a lone escape such as `\ud83d`.
//! JSON's grammar allows it, but no Unicode text can hold it: parsers refuse the whole document.

pub(crate) const REPLACEMENT: [u8; 6] = *br"\ufffd";
/// Escape that no accepted text contains, to find the position again.
pub(crate) const MARK: [u8; 6] = *br"\u0000";

const ESCAPE: usize = REPLACEMENT.len();

/// The JSON with `by` in place of every lone surrogate; `None` if there is none.
pub(crate) fn replace_lone_surrogates(json: &[u8], by: [u8; ESCAPE]) -> Option<Vec<u8>> {
    let mut fixed: Option<Vec<u8>> = None;
    // Everything before `copied` is in `fixed`, if there is one.
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
                let fixed = fixed.get_or_insert_default();
                fixed.extend_from_slice(&json[copied..at]);
                fixed.extend_from_slice(&by);
                at += ESCAPE;
                copied = at;
            }
            Some(_) => at += ESCAPE,
        }
    }
    let mut fixed = fixed?;
    fixed.extend_from_slice(&json[copied..]);
    Some(fixed)
}

/// The UTF-16 unit of an escape at the start.
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

    fn fixed(json: &str) -> Option<String> {
        let fixed = replace_lone_surrogates(json.as_bytes(), REPLACEMENT)?;
        Some(String::from_utf8(fixed).unwrap())
    }

    #[test]
    fn only_lone_surrogates_are_replaced() {
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
            assert_eq!(fixed(json).as_deref(), Some(expected));
        }
        for valid in [
            "",
            r#""\ud83d\ude00 \u00e9\n""#,
            // A backslash, and then no escape.
            r#""\\ud83d""#,
            r#""\ud83"#,
            r#""\u+d83""#,
            "\\",
        ] {
            assert_eq!(fixed(valid), None, "{valid}");
        }
    }

    proptest! {
        #[test]
        fn any_sequence_of_units_parses_afterwards(units: Vec<u16>) {
            let escapes: Vec<String> = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{}\"", escapes.concat());
            let json = fixed(&json).unwrap_or(json);
            let text: String = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(text, String::from_utf16_lossy(&units));
        }
    }
}
