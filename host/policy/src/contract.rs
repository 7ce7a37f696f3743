//! What a component may import and must export, checked before any of its
//! code runs.

use crate::fault::cut;
use crate::wit_text;
use crater_engine::policy::Interface;
use std::fmt;
use thiserror::Error;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex};

/// The contract's package.
pub(crate) const PACKAGE: &str = "crater:policy";
/// The version that this host speaks. Components built for another patch of
/// the same minor version are welcome: growth happens in data and in new
/// optional interfaces.
pub(crate) const VERSION: &str = "0.1.0";
/// Where `log` and `strings` are linked.
pub(crate) const LOG: &str = "crater:policy/log@0.1.0";
pub(crate) const STRINGS: &str = "crater:policy/strings@0.1.0";

/// A function of the contract that the host calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Describe,
    Configure,
    Decide(Interface),
}

impl Call {
    /// All of them; the position is the one in [`Exports::funcs`].
    pub(crate) const ALL: [Self; 9] = [
        Self::Describe,
        Self::Configure,
        Self::Decide(Interface::Prepare),
        Self::Decide(Interface::Filter),
        Self::Decide(Interface::Score),
        Self::Decide(Interface::ScoreGroups),
        Self::Decide(Interface::Preempt),
        Self::Decide(Interface::Rank),
        Self::Decide(Interface::Admit),
    ];

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Describe => 0,
            Self::Configure => 1,
            Self::Decide(Interface::Prepare) => 2,
            Self::Decide(Interface::Filter) => 3,
            Self::Decide(Interface::Score) => 4,
            Self::Decide(Interface::ScoreGroups) => 5,
            Self::Decide(Interface::Preempt) => 6,
            Self::Decide(Interface::Rank) => 7,
            Self::Decide(Interface::Admit) => 8,
        }
    }

    const fn interface(self) -> &'static str {
        match self {
            Self::Describe | Self::Configure => "policy",
            Self::Decide(interface) => interface.name(),
        }
    }

    pub(crate) const fn function(self) -> &'static str {
        match self {
            Self::Describe => "describe",
            Self::Configure => "configure",
            Self::Decide(Interface::Preempt) => "price",
            Self::Decide(interface) => interface.name(),
        }
    }

    /// Its type, as wit/policy.wit has it.
    const fn wit(self) -> &'static str {
        match self {
            Self::Describe => "func() -> manifest",
            Self::Configure => "func(config: string, prepared: list<u8>) -> result<_, string>",
            Self::Decide(Interface::Prepare) => {
                "func(config: string, facts: values) -> result<list<u8>, string>"
            }
            Self::Decide(Interface::Filter) => {
                "func(context: values, job: values, nodes: table) -> list<s32>"
            }
            Self::Decide(Interface::Score) => {
                "func(context: values, job: values, nodes: table) -> scores"
            }
            Self::Decide(Interface::ScoreGroups) => {
                "func(context: values, job: values, groups: table) -> list<s32>"
            }
            Self::Decide(Interface::Preempt) => {
                "func(context: values, preemptor: values, units: table) -> list<tuple<s32, s32>>"
            }
            Self::Decide(Interface::Rank) => {
                "func(context: values, jobs: table) -> list<tuple<s32, s32, s32>>"
            }
            Self::Decide(Interface::Admit) => {
                "func(context: values, job: values) -> result<values, string>"
            }
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.function())
    }
}

/// Why a component is not a policy of this host's contract.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ContractError {
    /// It wants something of the host that policies do not get.
    #[error(
        "it imports {}; a policy may import {PACKAGE}'s log and strings and nothing else{}",
        list(.imports),
        import_hint(.imports)
    )]
    Imports {
        /// Their names.
        imports: Vec<String>,
    },
    /// It was built for another version of the contract.
    #[error(
        "it was built for {PACKAGE} {found} ({name}), and this host speaks {VERSION}; \
         rebuild it with the SDK of this host"
    )]
    Version {
        /// The export or import that says so.
        name: String,
        /// The version named there, or "no version".
        found: String,
    },
    /// The required interface is not there.
    #[error(
        "it does not export {PACKAGE}/policy@{VERSION}, which every policy needs; it exports {}",
        list(.found)
    )]
    NoPolicy {
        /// What it exports instead.
        found: Vec<String>,
    },
    /// The same interface twice, under two patch versions.
    #[error("it exports {interface} more than once")]
    Twice {
        /// The interface.
        interface: String,
    },
    /// A function is absent or of another type. An interface that is present
    /// is meant; it is refused, not ignored.
    #[error("{interface}.{function} must be {expected}, and the component has {found}")]
    Type {
        /// The interface.
        interface: &'static str,
        /// The function.
        function: &'static str,
        /// Its type in the contract.
        expected: &'static str,
        /// What the component exports.
        found: String,
    },
    /// An import has the right name and the wrong type.
    #[error("its imports do not fit the host's: {detail}")]
    ImportType {
        /// The runtime's words.
        detail: String,
    },
}

/// The first names of a list that a component's author made.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 10;
    if names.is_empty() {
        return "nothing".to_owned();
    }
    let shown = names.iter().take(SHOWN).map(|name| cut(name)).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn import_hint(imports: &[String]) -> &'static str {
    if imports.iter().any(|i| i.starts_with("wasi:")) {
        ". Build it with WASI stubbed: componentize-py and componentize-qjs take --stub-wasi, \
         and the SDKs for C and Go bring an adapter that does it"
    } else {
        ""
    }
}

/// Where a component's functions are.
#[derive(Clone, Debug)]
pub(crate) struct Exports {
    funcs: [Option<(ComponentExportIndex, String)>; Call::ALL.len()],
}

impl Exports {
    /// The export of a function, if the component has its interface.
    pub(crate) fn get(&self, call: Call) -> Option<&ComponentExportIndex> {
        self.funcs[call.index()].as_ref().map(|(index, _)| index)
    }

    /// The optional interfaces that it exports, ascending.
    pub(crate) fn interfaces(&self) -> Vec<Interface> {
        Interface::ALL.into_iter().filter(|i| self.get(Call::Decide(*i)).is_some()).collect()
    }

    /// The error for a function whose type does not fit.
    pub(crate) fn mistyped(&self, call: Call) -> ContractError {
        let found = self.funcs[call.index()].as_ref().map(|(_, text)| text.clone());
        mistyped(call, found.unwrap_or_else(|| "no such function".to_owned()))
    }
}

fn mistyped(call: Call, found: String) -> ContractError {
    let (interface, function) = (call.interface(), call.function());
    ContractError::Type { interface, function, expected: call.wit(), found }
}

/// `crater:policy/filter@0.1.0` → `filter` if the version is one of ours;
/// `None` for other packages.
fn ours(name: &str) -> Option<Result<&str, ContractError>> {
    let rest = name.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    let (interface, version) = rest.split_once('@').unwrap_or((rest, ""));
    let patch = version.strip_prefix("0.1.").unwrap_or_default();
    if !patch.is_empty() && patch.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Ok(interface));
    }
    let found = if version.is_empty() { "with no version" } else { version };
    Some(Err(ContractError::Version { name: name.to_owned(), found: found.to_owned() }))
}

/// Refuses what a policy may not import.
pub(crate) fn check_imports(component: &Component) -> Result<(), ContractError> {
    let mut imports = Vec::new();
    for (name, _) in component.component_type().imports(component.engine()) {
        match ours(name) {
            // `types` has no functions: it only names shapes.
            Some(Ok("log" | "strings" | "types")) => {}
            Some(Err(version)) => return Err(version),
            _ => imports.push(name.to_owned()),
        }
    }
    if imports.is_empty() { Ok(()) } else { Err(ContractError::Imports { imports }) }
}

/// Finds the functions of the contract. Interfaces of other packages, and
/// unknown ones of this contract's version, are none of the host's business.
pub(crate) fn find_exports(component: &Component) -> Result<Exports, ContractError> {
    let ty = component.component_type();
    let mut found = Vec::new();
    let mut interfaces: Vec<(&str, &str)> = Vec::new();
    for (name, _) in ty.exports(component.engine()) {
        found.push(name.to_owned());
        let Some(interface) = ours(name) else {
            continue;
        };
        let interface = interface?;
        if interfaces.iter().any(|(known, _)| *known == interface) {
            return Err(ContractError::Twice { interface: interface.to_owned() });
        }
        interfaces.push((interface, name));
    }
    if !interfaces.iter().any(|(interface, _)| *interface == "policy") {
        return Err(ContractError::NoPolicy { found });
    }
    let mut exports = Exports { funcs: [const { None }; Call::ALL.len()] };
    for call in Call::ALL {
        let Some((_, name)) = interfaces.iter().find(|(i, _)| *i == call.interface()) else {
            continue;
        };
        let outer = component.get_export_index(None, *name);
        let inner = outer.and_then(|i| component.get_export(Some(&i), call.function()));
        match inner {
            Some((ComponentItem::ComponentFunc(func), index)) => {
                exports.funcs[call.index()] = Some((index, cut(&wit_text::func(&func))));
            }
            Some(_) => return Err(mistyped(call, "something that is no function".to_owned())),
            None => return Err(mistyped(call, "no such function".to_owned())),
        }
    }
    Ok(exports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_patch_of_the_minor_version_is_welcome() {
        let interface = |name| ours(name).map(|r| r.map_err(|e| e.to_string()));
        assert_eq!(interface("crater:policy/filter@0.1.0"), Some(Ok("filter")));
        assert_eq!(interface("crater:policy/filter@0.1.17"), Some(Ok("filter")));
        assert_eq!(interface("wasi:cli/run@0.2.0"), None);
        for other in ["@0.2.0", "@0.10.0", "@1.1.0", "@0.1.0-rc1", "@0.1.", "@0.1", ""] {
            let name = format!("crater:policy/filter{other}");
            assert!(matches!(ours(&name), Some(Err(_))), "{name}");
        }
    }
}
