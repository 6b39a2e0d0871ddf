//! People: accounts, sessions, and those who guess at passwords.

mod accounts;
mod attempts;
mod departures;
mod sessions;
