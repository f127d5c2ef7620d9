//! The WebSocket door: upgrade, connection, envelope, and every close code.
//!
//! Room for one task per socket that holds a cursor into one session's journal. Nothing lives here
//! yet: this version manages accounts only. May touch `auth`, `limits`, `session`, `domain`.
