//! Policies in Python and JavaScript: one file each, made a component by the
//! language's own tool with WASI stubbed.
//!
//! A comment in the first lines names what the file exports:
//! `# exports: policy, filter` or `// exports: policy, filter`.

use super::{component, entries};
use crate::command::{clean, run_quietly};
use crate::setup::{guest_tools, versions};
use crate::tree::write_if_changed;
use anyhow::{Context as _, Result, bail, ensure};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines in which `exports:` is looked for.
const HEAD: usize = 20;

/// The world that is written for each script.
const WORLD: &str = "crater-guest";

/// The language of a script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    JavaScript,
}

/// A policy of one file.
pub struct Script {
    language: Language,
    path: PathBuf,
    /// The file's name without its ending.
    stem: String,
    /// The component's name: dashes for underscores, and the language.
    pub output: String,
    exports: Vec<String>,
    text: String,
}

/// The scripts among the examples.
pub fn find(root: &Path) -> Result<Vec<Script>> {
    let mut scripts = Vec::new();
    for path in entries(&root.join("policies/examples"))? {
        let (language, ending) = match path.extension().and_then(|e| e.to_str()) {
            Some("py") => (Language::Python, "py"),
            Some("mjs") => (Language::JavaScript, "js"),
            _ => continue,
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path)?;
        let exports =
            exports(&text).with_context(|| format!("in policies/examples/{stem}.{ending}"))?;
        let output = format!("{}-{ending}", stem.replace('_', "-"));
        scripts.push(Script { language, path, stem, output, exports, text });
    }
    Ok(scripts)
}

/// The interfaces named in the head of a script.
fn exports(text: &str) -> Result<Vec<String>> {
    let list = text
        .lines()
        .take(HEAD)
        .find_map(|line| line.trim_start_matches(['#', '/', '*', ' ']).strip_prefix("exports:"));
    let Some(list) = list else {
        bail!("no comment such as `exports: policy, filter` in the first {HEAD} lines");
    };
    let names: Vec<_> = list.split(',').map(|n| n.trim().to_string()).collect();
    ensure!(names.iter().any(|n| n == "policy"), "`exports:` must name `policy`");
    Ok(names)
}

/// Builds those whose source, contract, SDK or tool changed.
pub fn build(root: &Path, scripts: &[Script], out: &Path) -> Result<()> {
    for script in scripts {
        let (tool, tool_version) = match script.language {
            Language::Python => (guest_tools::python(root), versions::COMPONENTIZE_PY),
            Language::JavaScript => (guest_tools::javascript(root), versions::COMPONENTIZE_QJS),
        };
        let Some(tool) = tool else {
            println!("skipped {}: its tool is not installed; `make setup` says why", script.output);
            continue;
        };
        let wit = world(root, &script.exports)?;
        let modules = modules(root, script.language)?;
        let file = out.join(format!("{}.wasm", script.output));
        let stage = root.join("target/guest/scripts").join(&script.output);
        let inputs = inputs(script, &wit, &modules, tool_version);
        let stamp = stage.join("inputs");
        if file.is_file() && fs::read_to_string(&stamp).is_ok_and(|old| old == inputs) {
            continue;
        }
        let _ = fs::remove_dir_all(&stage);
        write_if_changed(&stage.join("wit/policy.wit"), wit.as_bytes())?;
        let made = stage.join("policy.wasm");
        match script.language {
            Language::Python => python(&tool, &stage, script, &modules, &made),
            Language::JavaScript => javascript(root, &tool, &stage, script, &made),
        }
        .with_context(|| format!("building {}", script.path.display()))?;
        let bytes = fs::read(&made)?;
        component::check(&bytes).with_context(|| format!("in {}", script.path.display()))?;
        component::save(&file, &bytes)?;
        fs::remove_file(&made)?;
        fs::write(&stamp, inputs)?;
    }
    Ok(())
}

/// The contract with a world of exactly these exports.
fn world(root: &Path, exports: &[String]) -> Result<String> {
    let mut wit = fs::read_to_string(root.join("wit/policy.wit"))?;
    let _ = write!(wit, "\nworld {WORLD} {{\n    import log;\n    import strings;\n");
    for name in exports {
        let _ = writeln!(wit, "    export {name};");
    }
    wit.push_str("}\n");
    Ok(wit)
}

/// The SDK's files of a language.
fn modules(root: &Path, language: Language) -> Result<Vec<(PathBuf, String)>> {
    let (folder, ending) = match language {
        Language::Python => ("sdk/python", "py"),
        Language::JavaScript => ("sdk/js", "mjs"),
    };
    let mut files = Vec::new();
    for path in entries(&root.join(folder))? {
        if path.extension().is_some_and(|e| e == ending) {
            let text = fs::read_to_string(&path)?;
            files.push((path, text));
        }
    }
    Ok(files)
}

/// Everything that the component depends on.
fn inputs(script: &Script, wit: &str, modules: &[(PathBuf, String)], tool: &str) -> String {
    let mut all = format!("{tool}\n{wit}\n{}\n", script.text);
    for (path, text) in modules {
        let _ = write!(all, "{}\n{text}\n", path.display());
    }
    all
}

/// From a folder that holds just the script and the SDK: the tool takes in
/// whole folders.
fn python(
    tool: &Path,
    stage: &Path,
    script: &Script,
    modules: &[(PathBuf, String)],
    made: &Path,
) -> Result<()> {
    let app = stage.join("app");
    write_if_changed(&app.join(format!("{}.py", script.stem)), script.text.as_bytes())?;
    for (path, text) in modules {
        write_if_changed(&app.join(path.file_name().unwrap_or_default()), text.as_bytes())?;
    }
    let mut command = clean(tool, stage);
    command.args(["--quiet", "--wit-path", "wit", "--world", WORLD, "componentize"]);
    command.args(["--stub-wasi", "--python-path", "app", &script.stem, "--output"]).arg(made);
    run_quietly(command.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("VIRTUAL_ENV"))
}

/// In place, since scripts import the SDK by its path.
fn javascript(root: &Path, tool: &Path, stage: &Path, script: &Script, made: &Path) -> Result<()> {
    let mut command = clean("node", root);
    command.arg(tool).arg("--wit").arg(stage.join("wit")).arg("--js");
    command.arg(script.path.strip_prefix(root)?).args(["--module-root", ".", "--world", WORLD]);
    run_quietly(command.args(["--stub-wasi", "--sync", "--output"]).arg(made))
}

#[cfg(test)]
mod tests {
    use super::exports;

    #[test]
    fn a_comment_names_the_exports() {
        assert_eq!(
            exports("\"\"\"A.\"\"\"\n# exports: policy, filter\n").unwrap(),
            ["policy", "filter"]
        );
        assert_eq!(exports("// exports: policy,score-groups").unwrap(), ["policy", "score-groups"]);
        assert!(exports("# exports: filter").is_err());
        assert!(exports("print()").is_err());
    }
}
