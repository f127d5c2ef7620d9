//! Search query: the words of a search, and the excerpt that shows them. Pure.
//!
//! A query is words only: everything between them, quotes and operators of a database's query
//! language included, is a separator.

/// Further words are ignored.
const MAX_WORDS: usize = 8;
/// Longer words are cut.
const MAX_WORD_CHARS: usize = 64;
/// Length of an excerpt, and of its part before the first match.
const EXCERPT_CHARS: usize = 160;
const LEAD_CHARS: usize = 50;

/// Words of a query: lower case, unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery(Vec<String>);

impl SearchQuery {
    /// Splits a typed text into words; there may be none.
    pub fn parse(query: &str) -> Self {
        let mut words: Vec<String> = Vec::new();
        for word in query.split(|letter: char| !letter.is_alphanumeric()) {
            let word: String = word.to_lowercase().chars().take(MAX_WORD_CHARS).collect();
            if !word.is_empty() && !words.contains(&word) && words.len() < MAX_WORDS {
                words.push(word);
            }
        }
        Self(words)
    }

    /// Has it no words?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The words.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// One line of the text around the first match; its beginning if none matches.
    pub fn excerpt(&self, text: &str) -> String {
        let found = self.first_match(text).or_else(|| self.first_part(text));
        let found = found.unwrap_or(0);
        let (before, rest) = text.split_at(found);
        let start = before
            .char_indices()
            .rev()
            .nth(LEAD_CHARS)
            .map_or(0, |(offset, letter)| offset + letter.len_utf8());
        let lead = &before[start..];
        let remaining = EXCERPT_CHARS - lead.chars().count();
        let end = rest
            .char_indices()
            .nth(remaining)
            .map_or(rest.len(), |(offset, _)| offset);
        let shown = on_one_line(&text[start..found + end]);
        let left = if start > 0 { "…" } else { "" };
        let right = if end < rest.len() { "…" } else { "" };
        format!("{left}{shown}{right}")
    }

    /// Byte offset of the first word in the text that starts with a query word.
    fn first_match(&self, text: &str) -> Option<usize> {
        let mut offset = 0;
        for piece in text.split_inclusive(|letter: char| !letter.is_alphanumeric()) {
            if self.words().any(|word| has_prefix(piece, word)) {
                return Some(offset);
            }
            offset += piece.len();
        }
        None
    }

    /// Byte offset of the first place where a query word is part of a word.
    fn first_part(&self, text: &str) -> Option<usize> {
        let mut starts = text.char_indices().map(|(offset, _)| offset);
        starts.find(|offset| self.words().any(|word| has_prefix(&text[*offset..], word)))
    }
}

fn has_prefix(piece: &str, word: &str) -> bool {
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

    fn words(query: &str) -> Vec<String> {
        SearchQuery::parse(query).0
    }

    #[test]
    fn a_query_is_split_into_words() {
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
            assert!(SearchQuery::parse(nothing).is_empty(), "{nothing:?}");
        }
    }

    #[test]
    fn a_query_is_bounded() {
        let many: Vec<String> = (0..1_000).map(|number| format!("w{number}")).collect();
        assert_eq!(SearchQuery::parse(&many.join(" ")).len(), MAX_WORDS);
        assert_eq!(words(&"x".repeat(10_000))[0].len(), MAX_WORD_CHARS);
    }

    #[test]
    fn an_excerpt_shows_the_word_and_what_is_around_it() {
        let query = SearchQuery::parse("router");
        assert_eq!(
            query.excerpt("The Routers\n\tare  here"),
            "The Routers are here"
        );
        assert_eq!(query.excerpt("nothing of it"), "nothing of it");
        let long = format!("{} router {}", "a ".repeat(500), "b ".repeat(500));
        let shown = query.excerpt(&long);
        assert!(shown.starts_with("…a") && shown.ends_with("b…"), "{shown}");
        assert!(shown.contains(" router b"), "{shown}");
        assert!(shown.chars().count() <= EXCERPT_CHARS + 2, "{shown}");
    }

    #[test]
    fn the_beginning_of_a_word_is_preferred_to_its_middle() {
        let text = format!("{} catalog {}", "concat ".repeat(30), "x ".repeat(200));
        assert!(
            SearchQuery::parse("cat")
                .excerpt(&text)
                .contains("catalog x")
        );
        let inside = SearchQuery::parse("zeile").excerpt("Die Befehlszeile und mehr");
        assert_eq!(inside, "Die Befehlszeile und mehr");
        let far = format!("{} Befehlszeile", "x ".repeat(300));
        assert!(SearchQuery::parse("zeile").excerpt(&far).ends_with("zeile"));
    }

    proptest! {
        #[test]
        fn any_text_has_a_short_excerpt(query in ".*", text in "(.|\n){0,500}") {
            let shown = SearchQuery::parse(&query).excerpt(&text);
            prop_assert!(shown.chars().count() <= EXCERPT_CHARS + 2);
            prop_assert!(!shown.contains('\n'));
        }
    }
}
