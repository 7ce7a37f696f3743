//! The machine found, in folders that look like machines, on this very
//! machine, and with a stand-in for the driver's library.

mod cards;
mod folder;
mod found;
