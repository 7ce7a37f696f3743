//! Who a tenant's members run as.
//!
//! Each tenant has a user of its own: one of this machine that the
//! configuration names, or a number out of a range that nobody else uses, given
//! once and kept. With one user for all, a stated choice for machines of a
//! single tenant, members of different tenants can reach each other.

use crate::folder::{read_whole, write_whole};
use crate::order::User;
use crater_model::TenantPath;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How users are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// One for each tenant: the named ones, and numbers from a range.
    Each {
        /// Users of this machine by tenant; one named for a department or a
        /// project holds for everybody in it.
        named: BTreeMap<String, String>,
        /// First number of the range.
        first: u32,
        /// How many.
        count: u32,
    },
    /// One for all.
    One(String),
}

/// First number given to tenants, far above people's and below containers'.
pub const FIRST: u32 = 300_000;
/// How many tenants have one.
pub const COUNT: u32 = 65_536;

/// Nobody to run as.
#[derive(Debug, Error)]
pub enum UserError {
    /// There is no such user.
    #[error("cluster.local.users: this machine has no user {0:?}; make it, or name another")]
    Unknown(String),
    /// The user is the server's own, or root.
    #[error("cluster.local.users: {0:?} is root or the server's own user, which jobs never run as")]
    Own(String),
    /// All numbers are given.
    #[error("cluster.local.uids: all {0} numbers are given to tenants; give it more")]
    Full(u32),
    /// The list cannot be kept.
    #[error("{0}: {1}")]
    Kept(PathBuf, io::Error),
}

/// The users of all tenants that ran anything.
#[derive(Clone, Debug)]
pub struct Users {
    file: PathBuf,
    rule: Rule,
    given: BTreeMap<String, u32>,
}

impl Users {
    /// Reads who was given which number, and checks those that are named.
    pub fn open(base: &Path, rule: Rule) -> Result<Self, UserError> {
        let file = base.join("users.json");
        let given = read_whole(&file).map_err(|error| UserError::Kept(file.clone(), error))?;
        match &rule {
            Rule::One(name) => drop(named(name)?),
            Rule::Each { named: names, .. } => {
                names.values().try_for_each(|name| named(name).map(drop))?;
            }
        }
        Ok(Self { file, rule, given: given.unwrap_or_default() })
    }

    /// The user of a tenant; a number is given, durably, the first time.
    pub fn of(&mut self, tenant: &TenantPath) -> Result<User, UserError> {
        let (names, first, count) = match &self.rule {
            Rule::One(name) => return named(name),
            Rule::Each { named, first, count } => (named, *first, *count),
        };
        let path = tenant.to_string();
        let levels = path.match_indices('/').map(|(at, _)| &path[..at]);
        let levels: Vec<&str> = levels.chain([path.as_str()]).collect();
        if let Some(name) = levels.iter().rev().find_map(|level| names.get(*level)) {
            return named(name);
        }
        if let Some(uid) = self.given.get(&path) {
            return Ok(number(*uid));
        }
        let next = self.given.values().max().map_or(first, |last| last.saturating_add(1));
        if next.checked_sub(first).is_none_or(|at| at >= count) {
            return Err(UserError::Full(count));
        }
        self.given.insert(path, next);
        write_whole(&self.file, &self.given)
            .map_err(|error| UserError::Kept(self.file.clone(), error))?;
        Ok(number(next))
    }
}

fn number(uid: u32) -> User {
    User { uid, gid: uid, groups: vec![] }
}

fn named(name: &str) -> Result<User, UserError> {
    let unknown = || UserError::Unknown(name.to_owned());
    let user = nix::unistd::User::from_name(name).ok().flatten().ok_or_else(unknown)?;
    if user.uid.is_root() || user.uid == nix::unistd::geteuid() {
        return Err(UserError::Own(name.to_owned()));
    }
    let login = CString::new(name).map_err(|_| unknown())?;
    let groups = nix::unistd::getgrouplist(&login, user.gid).unwrap_or_default();
    let groups = groups.into_iter().map(nix::unistd::Gid::as_raw).collect();
    Ok(User { uid: user.uid.as_raw(), gid: user.gid.as_raw(), groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(path: &str) -> TenantPath {
        TenantPath::parse("tenant", path).unwrap()
    }

    #[test]
    fn each_tenant_has_a_number_of_its_own_and_keeps_it() {
        let base = tempfile::tempdir().unwrap();
        let rule = Rule::Each { named: BTreeMap::new(), first: 1000, count: 2 };
        let mut users = Users::open(base.path(), rule.clone()).unwrap();
        let uid = |users: &mut Users, path: &str| users.of(&tenant(path)).map(|user| user.uid);
        assert_eq!(uid(&mut users, "ai/nlp/mei").unwrap(), 1000);
        assert_eq!(uid(&mut users, "ai/nlp/ada").unwrap(), 1001);
        let mut again = Users::open(base.path(), rule).unwrap();
        assert_eq!(uid(&mut again, "ai/nlp/mei").unwrap(), 1000);
        assert!(matches!(uid(&mut again, "ai/cv"), Err(UserError::Full(2))));
    }

    #[test]
    fn nobody_runs_as_root_or_as_a_user_that_is_not_there() {
        let base = tempfile::tempdir().unwrap();
        let open = |name: &str| Users::open(base.path(), Rule::One(name.into())).map(drop);
        assert!(matches!(open("root"), Err(UserError::Own(_))));
        assert!(matches!(open("no-such-user"), Err(UserError::Unknown(_))));
        let named = BTreeMap::from([("ai".to_owned(), "nobody".to_owned())]);
        let rule = Rule::Each { named, first: 1000, count: 9 };
        let mut users = Users::open(base.path(), rule).unwrap();
        let nobody = users.of(&tenant("ai/nlp/mei")).unwrap();
        assert_eq!(nobody.uid, 65_534);
        assert_eq!(users.of(&tenant("bio")).unwrap().uid, 1000);
    }
}
