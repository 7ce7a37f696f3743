//! Thousands of requests made from the server's own `OpenAPI` document, right
//! and wrong ones: none may make it fail (issue: bad input).
//!
//! `make setup` installs schemathesis; where it could not, this says so.
#![allow(missing_docs)]

mod common;

use common::{Server, text};
use std::path::Path;
use std::process::Command;

/// Requests of an operation and sort, at most.
const EXAMPLES: &str = "25";

/// Runs it on part of the document, for so many seconds at most.
fn run(server: &Server, tool: &Path, seconds: &str, more: &[&str]) {
    let mut command = Command::new(tool);
    let hooks = "../../tests/fixtures/schemathesis_hooks.py";
    let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join(hooks).canonicalize().unwrap();
    command.current_dir(server.folder.path()).env("SCHEMATHESIS_HOOKS", hooks);
    // The same requests each time, so that what fails here fails everywhere.
    command.args(["run", "--seed", "470", "--max-examples", EXAMPLES, "--max-time", seconds]);
    command.args(["--checks", "not_a_server_error", "--continue-on-failure", "--no-color"]);
    command.args(["--request-timeout", "20", "--workers", "1", "--warnings", "off"]);
    command.arg("--header").arg(format!("Authorization: Bearer {}", server.admin()));
    command.args(more).arg(format!("{}/api/openapi.json", server.address));
    let output = command.output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{said}");
    println!("{said}");
}

#[test]
fn no_request_makes_the_server_fail() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tool = root.join(".tools/schemathesis/bin/schemathesis");
    if !tool.is_file() {
        println!("schemathesis is not installed (make setup): nothing was tried");
        return;
    }
    let tool = tool.canonicalize().unwrap();
    let server = Server::start("cluster: {run: 1s}");
    // Two operations are left out of the first run:
    // - events never end, so each request would only wait for its time-out;
    //   observe.rs and the command line's tests read them;
    // - revoking would take away the very token that the others need, so that
    //   they would meet 401 instead of the code behind it. It goes last.
    run(
        &server,
        &tool,
        "70",
        &["--exclude-path", "/api/v1/events", "--exclude-path", "/api/v1/tokens/{id}"],
    );
    assert_eq!(
        server.get(&server.admin(), "/api/v1/server").0,
        200,
        "the token was good to the end"
    );
    run(&server, &tool, "15", &["--include-path", "/api/v1/tokens/{id}"]);
    assert_eq!(server.get("", "/readyz").0, 200);
}
