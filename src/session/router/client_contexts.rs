//! Where each user of a session is: files, selection, whatever their client told last.

use std::collections::HashMap;

use serde_json::Value;

use crate::domain::act::Actor;
use crate::domain::id::UserId;

/// So many users are kept in mind. One more: all are forgotten, and told again with the next click.
const USERS: usize = 16;

/// What each user's client told last.
#[derive(Default)]
pub(super) struct Contexts(HashMap<UserId, Value>);

impl Contexts {
    pub(super) fn set(&mut self, actor: &Actor, context: Value) {
        let Some(user) = actor.user() else { return };
        if self.0.len() >= USERS && !self.0.contains_key(&user) {
            self.0.clear();
        }
        self.0.insert(user, context);
    }

    pub(super) fn of(&self, actor: &Actor) -> Option<Value> {
        self.0.get(&actor.user()?).cloned()
    }
}
