//! Stands in for `libnvidia-ml.so.1`, NVIDIA's management library: the same C
//! interface, with cards from a description, a file of JSON.
//!
//! The description is the file that `CRATER_NVML_MACHINE` names, or
//! `machine.json` beside the library. It is read again at every call, so that
//! a test can make cards ill while somebody looks at them; whoever changes it
//! puts a new file in its place.
//!
//! ```no_run
//! use crater_nvml_stand_in::{Card, Machine, install};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let cards = vec![Card::new(0, "Tesla T4", 15_109), Card::new(1, "Tesla T4", 15_109)];
//! let library = install(folder.path(), &Machine { cards, ..Machine::default() });
//! // Load `library`, or start a process with LD_LIBRARY_PATH set to the folder.
//! ```
//!
//! A function that is not here is missing to who loads the library, as of an
//! old driver. To add one: its name and C signature from `nvml.h` in
//! `interface`, its answer by `system` or `card`, which see to the state, to
//! handles and to the failures that a description asks for.

mod answer;
mod description;
mod install;
mod interface;

pub use description::{Card, Far, Link, Machine};
pub use install::install;
