//! What somebody looks for, and the piece of a text that shows it. Pure.
//!
//! A question is words and nothing else: whatever separates them, quotes and operators of a
//! database's own language included, is only a gap.

/// Words beyond this many are not looked at.
const MOST_WORDS: usize = 8;
/// No word that anybody says is longer.
const WORD_CHARS: usize = 64;
/// How much of a text is shown, and how much of it before the first word that was found.
const EXCERPT_CHARS: usize = 160;
const LEAD_CHARS: usize = 50;

/// The words of a question, in lower case, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(Vec<String>);

impl Words {
    /// The words in what somebody typed; there may be none.
    pub fn of(question: &str) -> Self {
        let mut words: Vec<String> = Vec::new();
        for word in question.split(|letter: char| !letter.is_alphanumeric()) {
            let word: String = word.to_lowercase().chars().take(WORD_CHARS).collect();
            if !word.is_empty() && !words.contains(&word) && words.len() < MOST_WORDS {
                words.push(word);
            }
        }
        Self(words)
    }

    /// Is there nothing to look for?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The part of a text around the first of the words, on one line; its beginning if none is there.
    pub fn excerpt(&self, text: &str) -> String {
        let found = self.first_in(text).unwrap_or(0);
        let (before, rest) = text.split_at(found);
        let start = before
            .char_indices()
            .rev()
            .nth(LEAD_CHARS)
            .map_or(0, |(place, letter)| place + letter.len_utf8());
        let lead = &before[start..];
        let room = EXCERPT_CHARS - lead.chars().count();
        let end = rest
            .char_indices()
            .nth(room)
            .map_or(rest.len(), |(place, _)| place);
        let shown = on_one_line(&text[start..found + end]);
        let left = if start > 0 { "…" } else { "" };
        let right = if end < rest.len() { "…" } else { "" };
        format!("{left}{shown}{right}")
    }

    /// Where the first word of the text begins that one of these begins.
    fn first_in(&self, text: &str) -> Option<usize> {
        let mut place = 0;
        for piece in text.split_inclusive(|letter: char| !letter.is_alphanumeric()) {
            if self.iter().any(|word| begins(piece, word)) {
                return Some(place);
            }
            place += piece.len();
        }
        None
    }
}

fn begins(piece: &str, word: &str) -> bool {
    let mut letters = piece.chars().flat_map(char::to_lowercase);
    word.chars().all(|letter| letters.next() == Some(letter))
}

fn on_one_line(text: &str) -> String {
    let gap = |letter: char| letter.is_whitespace() || letter.is_control();
    let words: Vec<&str> = text.split(gap).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(question: &str) -> Vec<String> {
        Words::of(question).0
    }

    #[test]
    fn a_question_is_its_words_whatever_stands_between_them() {
        assert_eq!(
            words("Fix the PARSER, the parser!"),
            ["fix", "the", "parser"]
        );
        assert_eq!(
            words("\"a OR b\"* NEAR/2 c:d"),
            ["a", "or", "b", "near", "2", "c", "d"]
        );
        assert_eq!(
            words("src/session_router.rs"),
            ["src", "session", "router", "rs"]
        );
        assert_eq!(words("ÜBER größe"), ["über", "größe"]);
        for nothing in ["", " ", "*", "'\"';--", "\0", "!|&():*<->"] {
            assert!(Words::of(nothing).is_empty(), "{nothing:?}");
        }
    }

    #[test]
    fn a_question_is_bounded() {
        let many: Vec<String> = (0..1_000).map(|number| format!("w{number}")).collect();
        assert_eq!(Words::of(&many.join(" ")).len(), MOST_WORDS);
        assert_eq!(words(&"x".repeat(10_000))[0].len(), WORD_CHARS);
    }

    #[test]
    fn an_excerpt_shows_the_word_and_what_is_around_it() {
        let look = Words::of("router");
        assert_eq!(
            look.excerpt("The Routers\n\tare  here"),
            "The Routers are here"
        );
        assert_eq!(look.excerpt("nothing of it"), "nothing of it");
        let long = format!("{} router {}", "a ".repeat(500), "b ".repeat(500));
        let shown = look.excerpt(&long);
        assert!(shown.starts_with("…a") && shown.ends_with("b…"), "{shown}");
        assert!(shown.contains(" router b"), "{shown}");
        assert!(shown.chars().count() <= EXCERPT_CHARS + 2, "{shown}");
    }

    #[test]
    fn the_middle_of_a_word_is_no_beginning() {
        let text = format!("{} catalog {}", "concat ".repeat(30), "x ".repeat(200));
        assert!(Words::of("cat").excerpt(&text).contains("catalog x"));
    }

    proptest! {
        #[test]
        fn any_text_has_a_short_excerpt(question in ".*", text in "(.|\n){0,500}") {
            let shown = Words::of(&question).excerpt(&text);
            prop_assert!(shown.chars().count() <= EXCERPT_CHARS + 2);
            prop_assert!(!shown.contains('\n'));
        }
    }
}
