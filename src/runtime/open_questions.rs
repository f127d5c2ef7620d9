//! Open questions: what an agent waits to be answered, by the name that the session answers it under. Pure.
//!
//! The names are our own: an agent's ids may be of any length and form.

use std::collections::BTreeMap;

/// Names questions `PREFIX-1`, `PREFIX-2`… and keeps what answers each until it is taken.
#[derive(Debug)]
pub(super) struct OpenQuestions<Q> {
    prefix: &'static str,
    count: u64,
    open: BTreeMap<u64, Q>,
}

impl<Q> OpenQuestions<Q> {
    pub(super) fn named(prefix: &'static str) -> Self {
        Self {
            prefix,
            count: 0,
            open: BTreeMap::new(),
        }
    }

    /// Returns the question's name.
    pub(super) fn add(&mut self, question: Q) -> String {
        self.count += 1;
        self.open.insert(self.count, question);
        self.name(self.count)
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Q> {
        let number = name.strip_prefix(self.prefix)?.strip_prefix('-')?;
        self.open.remove(&number.parse().ok()?)
    }

    /// Takes the first one of which this is true, with its name.
    pub(super) fn take_first(&mut self, is_it: impl Fn(&Q) -> bool) -> Option<(String, Q)> {
        let (number, _) = self.open.iter().find(|(_, question)| is_it(question))?;
        let number = *number;
        Some((self.name(number), self.open.remove(&number)?))
    }

    /// Takes all of them, the oldest first.
    pub(super) fn take_all(&mut self) -> Vec<(String, Q)> {
        let open = std::mem::take(&mut self.open).into_iter();
        open.map(|(number, question)| (self.name(number), question))
            .collect()
    }

    /// The names of those of which this is true.
    pub(super) fn names_of(&self, is_one: impl Fn(&Q) -> bool) -> Vec<String> {
        let open = self.open.iter().filter(|(_, question)| is_one(question));
        open.map(|(number, _)| self.name(*number)).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.open.keys().map(|number| self.name(*number)).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Q> {
        self.open.values()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn name(&self, number: u64) -> String {
        format!("{}-{number}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_taken_once_by_its_name() {
        let mut open = OpenQuestions::named("ask");
        assert_eq!(
            (open.add('a'), open.add('b')),
            ("ask-1".into(), "ask-2".into())
        );
        assert_eq!((open.take("ask-1"), open.take("ask-1")), (Some('a'), None));
        assert_eq!(
            (open.take("ask2"), open.take("other-2"), open.take("ask-")),
            (None, None, None)
        );
        assert_eq!(open.names(), ["ask-2"]);
        assert_eq!(open.add('c'), "ask-3", "no name is used twice");
        assert_eq!(
            open.take_first(|question| *question == 'c'),
            Some(("ask-3".into(), 'c'))
        );
        assert_eq!(open.take_all(), [("ask-2".into(), 'b')]);
        assert!(open.is_empty());
    }
}
