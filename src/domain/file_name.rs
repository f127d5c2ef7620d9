//! File names: for display only, never a path.

/// Longest name, in characters.
pub const NAME_CHARS: usize = 255;

/// The rule, as shown in error messages.
pub const NAME_RULE: &str =
    "has 1 to 255 characters after the last slash, no invisible ones, and is not . or ..";

/// The name without directories; `None` if it cannot be shown. Every platform's separators count.
pub fn base_name(given: &str) -> Option<&str> {
    let name = given.rsplit(['/', '\\']).next()?;
    let good = (1..=NAME_CHARS).contains(&name.chars().count())
        && name != "."
        && name != ".."
        && !name.chars().any(is_invisible);
    good.then_some(name)
}

/// Control (Cc) and format (Cf) characters: with U+202E `txt.exe` can be shown as `exe.txt`.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            // Includes the line and paragraph separators, which are neither.
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_follows_the_last_slash_is_the_name() {
        for (given, name) in [
            ("cat.png", "cat.png"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\mia\\cat.png", "cat.png"),
            ("a/b\\c", "c"),
            ("Überblick 2.pdf", "Überblick 2.pdf"),
            ("...", "..."),
            ("/.profile", ".profile"),
        ] {
            assert_eq!(base_name(given), Some(name));
        }
        assert_eq!(base_name(&"é".repeat(255)).map(str::len), Some(510));
    }

    #[test]
    fn unprintable_names_are_refused() {
        for given in [
            "",
            ".",
            "..",
            "a/",
            "a\\",
            "a/..",
            "a\0b",
            "a\nb",
            "a\u{7f}",
            "a\u{85}b",
            "gpj.\u{202e}exe",
            "a\u{200b}b",
            "\u{feff}a",
            "a\u{2066}b",
            "a\u{2029}b",
            "a\u{e0041}",
        ] {
            assert_eq!(base_name(given), None, "{given:?}");
        }
        assert_eq!(base_name(&"é".repeat(256)), None);
    }
}
