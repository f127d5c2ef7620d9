//! Settings before they have types: a tree in which every node knows where it was set.
//!
//! Layers are laid over one another here. Touches `key` and `problem` only.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use super::key::{Key, Step};
use super::problem::Place;

/// One setting, or a table or list of them.
#[derive(Clone)]
pub(crate) struct Node {
    /// What was set.
    pub(crate) content: Content,
    /// Where it was set.
    pub(crate) place: Place,
    /// What the text of a variable means if the key turns out not to take text.
    pub(crate) second_reading: Option<toml::Value>,
}

/// What a node holds.
#[derive(Clone)]
pub(crate) enum Content {
    /// A single value.
    Leaf(toml::Value),
    /// Values in order, each with its own line.
    List(Vec<Node>),
    /// Settings by name.
    Table(BTreeMap<String, Node>),
}

impl Node {
    /// A node that holds this.
    pub(crate) fn new(content: Content, place: Place) -> Self {
        Self {
            content,
            place,
            second_reading: None,
        }
    }

    /// A node for a value, all of which was set at the same place.
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

    /// The values alone, as a deserialiser wants them.
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

    /// Lays another layer over this one: tables are united, everything else is replaced.
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

    /// Sets one key, making the tables on the way to it; list positions are not followed.
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

    /// Takes a key out, if it is there.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Self> {
        let (parent, name) = key.split_last()?;
        match &mut self.find_mut(&parent)?.content {
            Content::Table(children) => children.remove(name),
            Content::Leaf(_) | Content::List(_) => None,
        }
    }

    /// The node at a key.
    pub(crate) fn find(&self, key: &Key) -> Option<&Self> {
        key.steps()
            .iter()
            .try_fold(self, |node, step| node.child(step))
    }

    /// The node at a key, to change.
    pub(crate) fn find_mut(&mut self, key: &Key) -> Option<&mut Self> {
        key.steps()
            .iter()
            .try_fold(self, |node, step| match (&mut node.content, step) {
                (Content::Table(children), Step::Name(name)) => children.get_mut(name),
                (Content::List(items), Step::Index(index)) => items.get_mut(*index),
                _ => None,
            })
    }

    /// The longest beginning of a key that was set.
    pub(crate) fn deepest(&self, key: &Key) -> Key {
        let mut node = self;
        let mut length = 0;
        while let Some(child) = key.steps().get(length).and_then(|step| node.child(step)) {
            node = child;
            length += 1;
        }
        key.prefix(length)
    }

    /// Where this was set; a table that is only built in may hold something that was set.
    pub(crate) fn origin(&self) -> Place {
        if self.place != Place::Default {
            return self.place.clone();
        }
        self.children()
            .map(Self::origin)
            .find(|place| *place != Place::Default)
            .unwrap_or(Place::Default)
    }

    /// The nodes directly below this one.
    pub(crate) fn children(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match &self.content {
            Content::Leaf(_) => Box::new(std::iter::empty()),
            Content::List(items) => Box::new(items.iter()),
            Content::Table(entries) => Box::new(entries.values()),
        }
    }

    /// Reads the first text at or below this node its other way; false if there is none left.
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

/// Shows where, not what: it may be a secret.
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
