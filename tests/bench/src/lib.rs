//! Measurements of Crater.
