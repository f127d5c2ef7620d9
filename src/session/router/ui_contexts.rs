//! UI contexts: what each user's client last reported (open files, selection). Not journaled: it
//! changes with every click.

use std::collections::HashMap;

use serde_json::Value;

use crate::domain::audit::Actor;
use crate::domain::id::UserId;

/// Full: all are dropped; clients report theirs again with the next click.
const MAX_USERS: usize = 16;

#[derive(Default)]
pub(super) struct UiContexts(HashMap<UserId, Value>);

impl UiContexts {
    pub(super) fn set(&mut self, actor: &Actor, context: Value) {
        let Some(user) = actor.user() else { return };
        if self.0.len() >= MAX_USERS && !self.0.contains_key(&user) {
            self.0.clear();
        }
        self.0.insert(user, context);
    }

    pub(super) fn of(&self, actor: &Actor) -> Option<Value> {
        self.0.get(&actor.user()?).cloned()
    }
}
