//! docs/contract.md: every interface and every id on one page.

use super::spec::{Spec, Table, constant};
use anyhow::{Context as _, Result};
use std::fmt::Write as _;
use std::path::Path;
use wit_parser::{Docs, Function, Interface, Resolve, Type, TypeDef, TypeDefKind, TypeOwner};

/// Writes the page.
pub fn page(spec: &Spec, wit: &Path) -> Result<String> {
    let mut resolve = Resolve::default();
    let text =
        std::fs::read_to_string(wit).with_context(|| format!("reading {}", wit.display()))?;
    let package = resolve.push_source("policy.wit", &text)?;
    let package = &resolve.packages[package];

    let mut out = String::from(
        "# The policy contract\n\n<!-- Written by `cargo xtask contract` from wit/policy.wit and \
         wit/columns.toml; change those. -->\n\n",
    );
    let _ = write!(out, "Package `{}`.\n\n", package.name);
    out.push_str(&docs(&package.docs));
    out.push_str("## Interfaces\n\n");
    for id in package.interfaces.values() {
        interface(&mut out, &resolve, &resolve.interfaces[*id]);
    }
    out.push_str("## Columns and facts\n\n");
    out.push_str(
        "`shape`: *value* one a row; *list* many, of the one thing that the call is about; *offsets* \
         rows + 1 positions; *ragged* many a row, end to end, over the offsets column of the family; \
         *pair* n × n a row, row by row, likewise. `depends`: what a value depends on; a relation \
         (*both*) costs the host a look at each row per job. *Settable* columns may be filled in by \
         `admit`. A unit of `string` is an id of the `strings` interface; `opaque` may only be \
         compared for equality. The constants of the SDKs are the names in upper case with \
         underscores: `",
    );
    let example = spec.tables.iter().flat_map(|t| &t.columns).find(|c| c.name == "job-cpu");
    out.push_str(&example.map_or_else(|| "JOB_CPU".into(), |c| constant(&c.name)));
    out.push_str("`.\n\n");
    for table in &spec.tables {
        columns(&mut out, table);
    }
    out.push_str("## Options\n\nIds and values of the manifest's `options`; constants begin with `OPTION_`.\n\n");
    out.push_str("| id | name | meaning |\n|---:|---|---|\n");
    for option in &spec.options {
        let _ = writeln!(out, "| {} | `{}` | {} |", option.id, option.name, cell(&option.about));
    }
    Ok(out)
}

fn columns(out: &mut String, table: &Table) {
    let nodes = table.columns.iter().any(|c| c.depends.is_some());
    let _ = write!(out, "### {}\n\n{}\n\n", table.name, table.about);
    let (head, line) = if nodes { (" depends |", "---|") } else { ("", "") };
    let _ =
        write!(out, "| id | name | unit | shape |{head} meaning |\n|---:|---|---|---|{line}---|\n");
    for column in &table.columns {
        let depends =
            if nodes { format!(" {} |", table.depends(column).word()) } else { String::new() };
        let set = if column.set { " *Settable.*" } else { "" };
        let _ = writeln!(
            out,
            "| {} | `{}` | {} | {} |{depends} {}{set} |",
            column.id,
            column.name,
            cell(&column.unit),
            column.shape.word(),
            cell(&column.about)
        );
    }
    out.push('\n');
}

/// Words as they may stand in a cell.
fn cell(words: &str) -> String {
    words.replace('|', "\\|").replace('\n', " ")
}

fn docs(docs: &Docs) -> String {
    docs.contents.as_ref().map_or_else(String::new, |d| format!("{}\n\n", d.trim_end()))
}

fn interface(out: &mut String, resolve: &Resolve, interface: &Interface) {
    let _ = write!(out, "### `{}`\n\n", interface.name.as_deref().unwrap_or_default());
    out.push_str(&docs(&interface.docs));
    for (name, id) in &interface.types {
        let def = &resolve.types[*id];
        // What is used from another interface is told there.
        if matches!(def.kind, TypeDefKind::Type(Type::Id(of)) if resolve.types[of].owner != TypeOwner::None)
        {
            continue;
        }
        definition(out, resolve, name, def);
    }
    for function in interface.functions.values() {
        let _ = write!(out, "```wit\n{}\n```\n\n", signature(resolve, function));
        out.push_str(&docs(&function.docs));
    }
}

fn definition(out: &mut String, resolve: &Resolve, name: &str, def: &TypeDef) {
    if let TypeDefKind::Record(record) = &def.kind {
        let _ = write!(out, "```wit\nrecord {name}\n```\n\n");
        out.push_str(&docs(&def.docs));
        out.push_str("| field | type | meaning |\n|---|---|---|\n");
        for field in &record.fields {
            let about = field.docs.contents.as_deref().unwrap_or_default().trim();
            let _ = writeln!(
                out,
                "| `{}` | `{}` | {} |",
                field.name,
                ty(resolve, field.ty),
                cell(about)
            );
        }
        out.push('\n');
    } else {
        let _ = write!(out, "```wit\ntype {name} = {}\n```\n\n", kind(resolve, &def.kind));
        out.push_str(&docs(&def.docs));
    }
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    let params: Vec<_> =
        function.params.iter().map(|p| format!("{}: {}", p.name, ty(resolve, p.ty))).collect();
    let result = function.result.map_or_else(String::new, |r| format!(" -> {}", ty(resolve, r)));
    format!("{}: func({}){result}", function.name, params.join(", "))
}

fn ty(resolve: &Resolve, ty: Type) -> String {
    match ty {
        Type::Id(id) => {
            let def = &resolve.types[id];
            def.name.clone().unwrap_or_else(|| kind(resolve, &def.kind))
        }
        Type::ErrorContext => "error-context".into(),
        plain => format!("{plain:?}").to_lowercase(),
    }
}

fn kind(resolve: &Resolve, of: &TypeDefKind) -> String {
    match of {
        TypeDefKind::List(t) => format!("list<{}>", ty(resolve, *t)),
        TypeDefKind::Option(t) => format!("option<{}>", ty(resolve, *t)),
        TypeDefKind::Tuple(t) => {
            let parts: Vec<_> = t.types.iter().map(|t| ty(resolve, *t)).collect();
            format!("tuple<{}>", parts.join(", "))
        }
        TypeDefKind::Result(r) => match (r.ok, r.err) {
            (None, None) => "result".into(),
            (Some(ok), None) => format!("result<{}>", ty(resolve, ok)),
            (ok, Some(err)) => {
                let ok = ok.map_or_else(|| "_".into(), |t| ty(resolve, t));
                format!("result<{ok}, {}>", ty(resolve, err))
            }
        },
        TypeDefKind::Type(t) => ty(resolve, *t),
        // The contract has no others; their sort is said rather than nothing.
        other => other.as_str().into(),
    }
}
