//! Tree of untyped settings: every node knows where it was set; layers are merged here. Touches `key` and
//! `error` only.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use super::error::Place;
use super::key::{Key, Step};

#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) content: Content,
    pub(crate) place: Place,
    /// The other reading of a variable's text, if the key does not take text.
    pub(crate) second_reading: Option<toml::Value>,
}

#[derive(Clone)]
pub(crate) enum Content {
    Leaf(toml::Value),
    /// Values in order, each with its own line.
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
}

impl Node {
    pub(crate) fn new(content: Content, place: Place) -> Self {
        Self {
            content,
            place,
            second_reading: None,
        }
    }

    pub(crate) fn of_value(value: toml::Value, place: &Place) -> Self {
        let content = match value {
            toml::Value::Array(items) => Content::List(
                items
                    .into_iter()
                    .map(|item| Self::of_value(item, place))
                    .collect(),
            ),
            toml::Value::Table(entries) => Content::Table(
                entries
                    .into_iter()
                    .map(|(name, value)| (name, Self::of_value(value, place)))
                    .collect(),
            ),
            leaf => Content::Leaf(leaf),
        };
        Self::new(content, place.clone())
    }

    pub(crate) fn to_value(&self) -> toml::Value {
        match &self.content {
            Content::Leaf(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::to_value).collect::<Vec<_>>().into(),
            Content::Table(entries) => {
                let entry = |(name, node): (&String, &Self)| (name.clone(), node.to_value());
                toml::Value::Table(entries.iter().map(entry).collect())
            }
        }
    }

    /// Merges another layer into this one: tables are united, everything else is replaced.
    pub(crate) fn overlay(&mut self, upper: Self) {
        match (&mut self.content, upper.content) {
            (Content::Table(mine), Content::Table(theirs)) => {
                self.place = upper.place;
                for (name, node) in theirs {
                    match mine.entry(name) {
                        Entry::Occupied(entry) => entry.into_mut().overlay(node),
                        Entry::Vacant(entry) => {
                            entry.insert(node);
                        }
                    }
                }
            }
            (_, content) => *self = Self { content, ..upper },
        }
    }

    /// Sets one key and creates the tables on the way; list positions are not followed.
    pub(crate) fn set(&mut self, key: &Key, node: Self) {
        let mut table = self;
        for step in key.steps() {
            let Step::Name(name) = step else { return };
            let place = &node.place;
            let children = table.children_or_make();
            table = children
                .entry(name.clone())
                .or_insert_with(|| Self::new(Content::Table(BTreeMap::new()), place.clone()));
        }
        *table = node;
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Self> {
        let (parent, name) = key.split_last()?;
        match &mut self.find_mut(&parent)?.content {
            Content::Table(children) => children.remove(name),
            Content::Leaf(_) | Content::List(_) => None,
        }
    }

    pub(crate) fn find(&self, key: &Key) -> Option<&Self> {
        key.steps()
            .iter()
            .try_fold(self, |node, step| node.child(step))
    }

    pub(crate) fn find_mut(&mut self, key: &Key) -> Option<&mut Self> {
        key.steps()
            .iter()
            .try_fold(self, |node, step| match (&mut node.content, step) {
                (Content::Table(children), Step::Name(name)) => children.get_mut(name),
                (Content::List(items), Step::Index(index)) => items.get_mut(*index),
                _ => None,
            })
    }

    /// The longest prefix of a key that was set.
    pub(crate) fn deepest(&self, key: &Key) -> Key {
        let mut node = self;
        let mut length = 0;
        while let Some(child) = key.steps().get(length).and_then(|step| node.child(step)) {
            node = child;
            length += 1;
        }
        key.prefix(length)
    }

    /// The origin; for a built-in table, that of an entry that was set.
    pub(crate) fn origin(&self) -> Place {
        if self.place != Place::Default {
            return self.place.clone();
        }
        self.children()
            .map(Self::origin)
            .find(|place| *place != Place::Default)
            .unwrap_or(Place::Default)
    }

    pub(crate) fn children(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match &self.content {
            Content::Leaf(_) => Box::new(std::iter::empty()),
            Content::List(items) => Box::new(items.iter()),
            Content::Table(entries) => Box::new(entries.values()),
        }
    }

    /// Switches the first text at or below this node to its other reading; false if there is none left.
    pub(crate) fn read_again(&mut self) -> bool {
        if let Some(value) = self.second_reading.take() {
            self.content = Self::of_value(value, &self.place).content;
            return true;
        }
        match &mut self.content {
            Content::Leaf(_) => false,
            Content::List(items) => items.iter_mut().any(Self::read_again),
            Content::Table(entries) => entries.values_mut().any(Self::read_again),
        }
    }

    fn child(&self, step: &Step) -> Option<&Self> {
        match (&self.content, step) {
            (Content::Table(children), Step::Name(name)) => children.get(name),
            (Content::List(items), Step::Index(index)) => items.get(*index),
            _ => None,
        }
    }

    fn children_or_make(&mut self) -> &mut BTreeMap<String, Self> {
        if !matches!(self.content, Content::Table(_)) {
            self.content = Content::Table(BTreeMap::new());
        }
        match &mut self.content {
            Content::Table(children) => children,
            Content::Leaf(_) | Content::List(_) => unreachable!("it was just made a table"),
        }
    }
}

/// Shows origins, not values: some are secrets.
impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Node({})", self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str, place: &Place) -> Node {
        Node::of_value(toml::Value::Table(text.parse().unwrap()), place)
    }

    #[test]
    fn an_upper_layer_replaces_values_and_keeps_their_neighbours() {
        let flag = Place::Flag("--x".into());
        let mut lower = tree("a = { b = 1, c = [1, 2] }", &Place::Default);
        lower.overlay(tree("a = { c = [3] }", &flag));
        let wanted = toml::Value::Table("a = { b = 1, c = [3] }".parse().unwrap());
        assert_eq!(lower.to_value(), wanted);
        assert_eq!(
            lower.find(&Key::dotted("a.b")).unwrap().origin(),
            Place::Default
        );
        assert_eq!(lower.find(&Key::dotted("a.c")).unwrap().origin(), flag);
    }

    #[test]
    fn a_built_in_table_points_at_what_was_set_in_it() {
        let flag = Place::Flag("--x".into());
        let mut root = tree("a = { b = 1 }", &Place::Default);
        root.set(&Key::dotted("a.d.e"), Node::of_value(5.into(), &flag));
        assert_eq!(root.find(&Key::dotted("a")).unwrap().origin(), flag);
        assert!(root.remove(&Key::dotted("a.d")).is_some());
        assert_eq!(
            root.find(&Key::dotted("a")).unwrap().origin(),
            Place::Default
        );
    }
}
