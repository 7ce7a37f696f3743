//! Why a command of the client did not work.

use crater_api::Problem;
use std::fmt;

/// The server cannot be reached, or its answer was lost. Exit code 3.
#[derive(Debug)]
pub struct Unreachable {
    /// The server.
    pub server: String,
    /// Why.
    pub cause: String,
    /// The request may have been done all the same.
    pub maybe_done: bool,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, cause, maybe_done } = self;
        if *maybe_done {
            return write!(
                f,
                "the connection to {server} was lost before its answer came ({cause}): look whether it was done before trying again"
            );
        }
        write!(
            f,
            "cannot reach {server}: {cause}; is `crater serve` running there? --server, CRATER_SERVER or `crater config set --server URL` name another one"
        )
    }
}

impl std::error::Error for Unreachable {}

/// The server said no. Exit code 1.
#[derive(Debug)]
pub struct Refused(pub Problem);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { detail, field, status, .. } = &self.0;
        if let Some(field) = field.as_ref().filter(|field| !detail.contains(field.as_str())) {
            write!(f, "{field}: ")?;
        }
        f.write_str(detail)?;
        let lists = |what: &str| detail.starts_with(what) && detail.ends_with("is unknown");
        let remedy = match () {
            () if lists("job ") => "`crater job list --all` lists those that there are",
            () if lists("queue ") => "`crater queue list` lists those that there are",
            () if lists("tenant ") => "`crater tenant list` lists those that there are",
            () if lists("node ") => "`crater node list` lists those that there are",
            () if lists("token ") => "`crater token list` lists those that there are",
            () if *status == 401 && !detail.contains("crater config set") => {
                "give another with --token, CRATER_TOKEN or `crater config set --token TOKEN`"
            }
            () if *status == 403 => "ask an administrator for a token with that role",
            () => return Ok(()),
        };
        write!(f, "; {remedy}")
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, detail: &str, field: Option<&str>) -> String {
        let problem = Problem {
            kind: "urn:crater:field".into(),
            title: String::new(),
            status,
            detail: detail.into(),
            field: field.map(Into::into),
            expected: None,
        };
        Refused(problem).to_string()
    }

    #[test]
    fn errors_name_the_field_once_and_a_remedy() {
        assert_eq!(problem(422, "cpu: \"x\" is refused", Some("cpu")), "cpu: \"x\" is refused");
        assert_eq!(problem(422, "is refused", Some("cpu")), "cpu: is refused");
        assert_eq!(
            problem(422, "queue \"x\" is unknown", Some("queue")),
            "queue \"x\" is unknown; `crater queue list` lists those that there are"
        );
        assert!(problem(401, "the token has expired", None).contains("CRATER_TOKEN"));
    }
}
