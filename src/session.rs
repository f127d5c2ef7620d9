//! The session: registry, access, the per-session router, its journal and the state folded from it.
//!
//! Room for the only writer of a journal. Nothing lives here yet: this version manages accounts
//! only; the tables are in `migrations/`. May touch `bus`, `runtime`, `store`, `domain`.
