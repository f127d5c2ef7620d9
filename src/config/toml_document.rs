//! TOML document: text as a tree with line numbers. Knows the grammar, not the keys. Touches `tree` and `error`
//! only.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Place, Problem};
use super::tree::{Content, Node};

/// Parses a document; `place_of` turns a line number into the place that messages show.
pub(crate) fn parse(text: &str, place_of: impl Fn(usize) -> Place) -> Result<Node, Vec<Problem>> {
    let document = Document {
        line_starts: line_starts(text),
        place_of,
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        document
            .node(DeValue::Table(table.into_inner()), 0)
            .map_err(|problem| vec![problem])
    } else {
        Err(document.syntax_problems(&errors))
    }
}

struct Document<F> {
    line_starts: Vec<usize>,
    place_of: F,
}

impl<F: Fn(usize) -> Place> Document<F> {
    fn place(&self, offset: usize) -> Place {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        (self.place_of)(line)
    }

    fn node(&self, value: DeValue<'_>, offset: usize) -> Result<Node, Problem> {
        let content = match value {
            DeValue::Table(table) => self.table(table)?,
            DeValue::Array(items) => Content::List(
                items
                    .into_iter()
                    .map(|item| self.element(item))
                    .collect::<Result<_, _>>()?,
            ),
            leaf => Content::Leaf(scalar(leaf).map_err(|why| self.problem(offset, why))?),
        };
        Ok(Node::new(content, self.place(offset)))
    }

    fn table(&self, table: DeTable<'_>) -> Result<Content, Problem> {
        let entry = |(name, value): (Spanned<_>, Spanned<_>)| {
            let offset = name.span().start;
            let name = String::from(name.into_inner());
            Ok((name, self.node(value.into_inner(), offset)?))
        };
        let entries = table.into_iter().map(entry).collect::<Result<_, _>>()?;
        Ok(Content::Table(entries))
    }

    fn element(&self, item: Spanned<DeValue<'_>>) -> Result<Node, Problem> {
        let offset = item.span().start;
        self.node(item.into_inner(), offset)
    }

    fn problem(&self, offset: usize, message: &str) -> Problem {
        Problem::at(self.place(offset), message)
    }

    /// One problem per line: further ones on the same line mostly follow from the first.
    fn syntax_problems(&self, errors: &[toml::de::Error]) -> Vec<Problem> {
        let problem = |error: &toml::de::Error| {
            let offset = error.span().map_or(0, |span| span.start);
            self.problem(offset, &format!("not valid TOML: {}", error.message()))
        };
        let mut problems: Vec<Problem> = errors.iter().map(problem).collect();
        problems.sort_by(|left, right| left.place.cmp(&right.place));
        problems.dedup_by(|later, first| later.place == first.place);
        problems
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    let after_breaks = text.match_indices('\n').map(|(offset, _)| offset + 1);
    std::iter::once(0).chain(after_breaks).collect()
}

fn scalar(value: DeValue<'_>) -> Result<toml::Value, &'static str> {
    match value {
        DeValue::String(text) => Ok(toml::Value::String(text.into())),
        DeValue::Boolean(flag) => Ok(toml::Value::Boolean(flag)),
        DeValue::Datetime(time) => Ok(toml::Value::Datetime(time)),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(toml::Value::Integer)
            .map_err(|_| "this number is too large"),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map(toml::Value::Float)
            .map_err(|_| "this number cannot be read"),
        DeValue::Array(_) | DeValue::Table(_) => Err("a single value was expected here"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::Key;
    use super::*;

    fn place_of(line: usize) -> Place {
        let path = "s.toml".into();
        Place::File { path, line }
    }

    #[test]
    fn every_key_knows_its_line() {
        let text = "# hello\n[server]\nlisten = 'x'\nlist = [\n  1,\n  2,\n]\na.b = 0x10\n";
        let root = parse(text, place_of).unwrap();
        let line = |key| root.find(&Key::dotted(key)).unwrap().place.clone();
        assert_eq!(line("server"), place_of(2));
        assert_eq!(line("server.listen"), place_of(3));
        assert_eq!(line("server.list"), place_of(4));
        assert_eq!(line("server.a.b"), place_of(8));
        let list = root.find(&Key::dotted("server.list")).unwrap();
        assert_eq!(list.children().nth(1).unwrap().place, place_of(6));
    }

    #[test]
    fn a_syntax_error_names_its_line_and_what_was_expected() {
        let problems = parse("[server]\nlisten = \n\n[x\n", place_of).unwrap_err();
        let shown: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert!(
            shown[0].starts_with("s.toml:2: not valid TOML: "),
            "{shown:?}"
        );
        assert!(shown[1].starts_with("s.toml:4: "), "{shown:?}");
        assert!(shown[1].contains("expected `]`"), "{shown:?}");
    }

    #[test]
    fn a_key_set_twice_or_a_number_too_large_is_a_problem() {
        let twice = parse("a = 1\na = 2\n", place_of).unwrap_err();
        assert_eq!(
            twice[0].to_string(),
            "s.toml:2: not valid TOML: duplicate key"
        );
        let large = parse("\na = 99999999999999999999\n", place_of).unwrap_err();
        assert_eq!(large[0].to_string(), "s.toml:2: this number is too large");
    }
}
