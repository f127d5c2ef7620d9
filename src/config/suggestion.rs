//! Suggestions: the key that was probably meant. Touches `known_keys` and `error` only.

use super::error::{Place, Problem};
use super::key::{Key, Step};
use super::known_keys::Schema;

/// The problem of an unknown key, with the nearest known one.
pub(crate) fn unknown_key(schema: &Schema, key: &Key, place: Place) -> Problem {
    let shown = match place {
        Place::Variable(_) => Key::variable,
        _ => Key::to_string,
    };
    let hint = match near(schema, key) {
        Some(meant) => Some(did_you_mean(&shown(&meant))),
        None => list(schema, key),
    };
    unknown(key, place).hinting(hint)
}

/// The problem of an unknown key, without advice.
pub(crate) fn unknown(key: &Key, place: Place) -> Problem {
    Problem {
        key: Some(key.to_string()),
        ..Problem::at(place, format!("unknown key `{key}`"))
    }
}

pub(crate) fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`?")
}

/// The candidate within a typo's distance of a word.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    let distance = |candidate: &str| strsim::osa_distance(&word, &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= slips(&word, candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// One typo in three letters, at most three.
fn slips(word: &str, candidate: &str) -> usize {
    let longer = word.chars().count().max(candidate.chars().count());
    (longer / 3).clamp(1, 3)
}

fn near(schema: &Schema, key: &Key) -> Option<Key> {
    let (table, name) = first_unknown(schema, key)?;
    let names = schema.names(&table);
    match nearest(&name, names.iter().map(String::as_str)) {
        Some(meant) => Some(with_rest(schema, key, &table.child(meant))),
        None if names.is_empty() => Some(table),
        None => elsewhere(schema, key),
    }
}

/// The longest existing prefix of the key, and the unknown name below it.
fn first_unknown(schema: &Schema, key: &Key) -> Option<(Key, String)> {
    let exists = |length: &usize| *length == 0 || schema.kind(&key.prefix(*length)).is_some();
    let known = (0..key.steps().len()).rev().find(exists)?;
    match key.steps().get(known)? {
        Step::Name(name) => Some((key.prefix(known), name.clone())),
        Step::Index(_) => None,
    }
}

/// The rest of a key below its corrected prefix, if such a key exists.
fn with_rest(schema: &Schema, key: &Key, mended: &Key) -> Key {
    let rest = key.steps().iter().skip(mended.steps().len());
    let whole = rest.fold(mended.clone(), |whole, step| match step {
        Step::Name(name) => whole.child(name),
        Step::Index(_) => whole,
    });
    if schema.kind(&whole).is_some() {
        whole
    } else {
        mended.clone()
    }
}

/// The same name in another section, or the same words with other separators.
fn elsewhere(schema: &Schema, key: &Key) -> Option<Key> {
    let flat = |key: &Key| key.to_string().replace('.', "_");
    let (_, wanted) = key.split_last()?;
    let same_name = |known: &Key| known.split_last().is_some_and(|(_, name)| name == wanted);
    let keys = schema.keys();
    let moved = keys.iter().find(|known| same_name(known));
    let glued = || keys.iter().find(|known| flat(known) == flat(key));
    moved.or_else(glued).cloned()
}

fn list(schema: &Schema, key: &Key) -> Option<String> {
    let (table, _) = first_unknown(schema, key)?;
    let names = schema.names(&table).join(", ");
    Some(if table == Key::default() {
        format!("the sections are: {names}")
    } else {
        format!("the keys of `{table}` are: {names}")
    })
}

#[cfg(test)]
mod tests {
    use super::super::layers::Rules;
    use super::*;

    fn hint(key: &str, place: Place) -> String {
        let rules = Rules {
            secrets: &["admin.password"],
            open_tables: &[],
        };
        let root = serde_json::json!({
            "admin": { "password": null },
            "server": { "listen": "x", "max_connections": 1 },
        });
        let schema = Schema::new(root, &rules);
        unknown_key(&schema, &Key::dotted(key), place).hint.unwrap()
    }

    #[test]
    fn a_slip_is_mended() {
        let place = || Place::Flag("--x".into());
        assert_eq!(
            hint("server.lisen", place()),
            "did you mean `server.listen`?"
        );
        assert_eq!(
            hint("servre.listen", place()),
            "did you mean `server.listen`?"
        );
        assert_eq!(hint("servre.foo", place()), "did you mean `server`?");
        assert_eq!(hint("listen", place()), "did you mean `server.listen`?");
        assert_eq!(
            hint("server.listen.x", place()),
            "did you mean `server.listen`?"
        );
        assert_eq!(
            hint("admin.pasword_file", place()),
            "did you mean `admin.password_file`?"
        );
    }

    #[test]
    fn a_variable_is_mended_as_a_variable() {
        let place = || Place::Variable("X".into());
        let wanted = "did you mean `SWITCHBOARD__SERVER__LISTEN`?";
        assert_eq!(hint("server.lisetn", place()), wanted);
        assert_eq!(hint("server_listen", place()), wanted);
    }

    #[test]
    fn what_resembles_nothing_gets_the_list() {
        assert_eq!(
            hint("server.colour", Place::Default),
            "the keys of `server` are: listen, max_connections"
        );
        assert_eq!(
            hint("colour", Place::Default),
            "the sections are: admin, server"
        );
    }
}
