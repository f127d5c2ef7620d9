//! JSON depth: how deep a text nests, found without building anything.

/// Does it nest deeper than `most`? Brackets inside strings do not count; whether the text is JSON
/// at all is not looked at.
pub(crate) fn nests_deeper_than(text: &[u8], most: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > most {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> Vec<u8> {
        [vec![b'['; depth], vec![b']'; depth]].concat()
    }

    #[test]
    fn the_deepest_level_counts() {
        assert!(!nests_deeper_than(&nested(64), 64));
        assert!(nests_deeper_than(&nested(65), 64));
        let wide = [nested(64), nested(64)].concat();
        assert!(!nests_deeper_than(&wide, 64));
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert!(!nests_deeper_than(br#"{"a":"[[[{{{\"[[["}"#, 1));
        assert!(nests_deeper_than(br#"{"a\\":["x"]}"#, 1));
    }
}
