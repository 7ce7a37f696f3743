//! Readers of traces: what they read, what they refuse and with which words.

#![allow(clippy::needless_raw_string_hashes)]

mod arrivals;
mod folder;
mod generate;
mod openb;
mod panics;
mod philly;
mod real;
