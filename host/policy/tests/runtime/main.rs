//! The policy runtime against guests that behave, guests that do not, and
//! files that are no guests.

mod behave;
mod compiling;
mod files;
mod guest;
mod hostile;
mod services;
mod sharing;
mod swapping;
mod world;
