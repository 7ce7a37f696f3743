//! The policy runtime against guests that behave, guests that do not, and
//! files that are no guests.

mod behave;
mod guest;
mod world;
