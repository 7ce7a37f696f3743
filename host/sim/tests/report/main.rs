//! Reports in their three forms.

#![allow(clippy::needless_raw_string_hashes)]

mod any;
mod page;
mod plain;
mod sample;
