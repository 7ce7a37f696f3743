//! The versions that are known to work, each in one place.

/// The test runner.
pub const NEXTEST: &str = "0.9.151";
/// The check of licences, bans and sources.
pub const DENY: &str = "0.20.2";
/// Python guests; guests/requirements.txt names it too.
pub const COMPONENTIZE_PY: &str = "0.25.1";
/// JavaScript guests; guests/package.json names it too.
pub const COMPONENTIZE_QJS: &str = "0.4.5";
/// What throws bad requests at the API; guests/schemathesis.txt names it too.
pub const SCHEMATHESIS: &str = "4.32.5";

#[cfg(test)]
mod tests {
    #[test]
    fn agree_with_the_files_that_install_them() {
        let requirements = include_str!("../../guests/requirements.txt");
        assert_eq!(requirements.trim(), format!("componentize-py=={}", super::COMPONENTIZE_PY));
        let schemathesis = include_str!("../../guests/schemathesis.txt");
        let pinned = format!("schemathesis=={}", super::SCHEMATHESIS);
        assert!(schemathesis.lines().any(|line| line == pinned));
        let package = include_str!("../../guests/package.json");
        assert!(
            package.contains(&format!("\"componentize-qjs\": \"{}\"", super::COMPONENTIZE_QJS))
        );
    }
}
