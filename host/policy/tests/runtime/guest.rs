//! Tiny guests, written in WebAssembly text and made components here. Each
//! test says only what its guest does differently.

use std::fmt::Write;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const WIT: &str = include_str!("../../../../wit/policy.wit");

/// A guest to be built. The default exports `policy` alone and is well-behaved.
#[derive(Clone)]
pub struct Guest {
    /// The contract, for guests that were built against another one.
    pub wit: String,
    /// Further items of the guest's world.
    pub world: String,
    /// Optional interfaces it exports, each with the body of its function.
    pub exports: Vec<(&'static str, String)>,
    /// Body of `configure`; parameters `$config $config_len $prepared $prepared_len`.
    pub configure: String,
    /// Body of `describe`, when it should not simply hand out the manifest.
    pub describe: Option<String>,
    /// Further fields of the core module.
    pub fields: String,
    pub manifest: Manifest,
}

#[derive(Clone)]
pub struct Manifest {
    pub name: String,
    pub version: String,
    pub wants: Vec<u32>,
    pub labels: Vec<String>,
    pub options: Vec<(u32, i32)>,
    pub reasons: Vec<(i32, String)>,
    pub schema: String,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            wit: WIT.to_owned(),
            world: "import log; import strings;".to_owned(),
            exports: Vec::new(),
            configure: "(i32.const 512)".to_owned(),
            describe: None,
            fields: String::new(),
            manifest: Manifest {
                name: "guest".to_owned(),
                version: "1".to_owned(),
                wants: vec![100, 104, 204, 207],
                labels: Vec::new(),
                options: Vec::new(),
                reasons: vec![(1, "no".to_owned()), (2, "not here".to_owned())],
                schema: String::new(),
            },
        }
    }
}

/// One answer value a row: the sum of the row's values over all columns.
pub const SUM: &str = "
  (local $out i32) (local $col i32) (local $i i32) (local $at i32)
  (local.set $out (call $room (local.get $rows)))
  (memory.fill (local.get $out) (i32.const 0) (i32.mul (local.get $rows) (i32.const 4)))
  (block $done (loop $next
    (br_if $done (i32.ge_u (local.get $col) (local.get $cols)))
    (local.set $at (i32.load offset=4
      (i32.add (local.get $table) (i32.mul (local.get $col) (i32.const 12)))))
    (local.set $i (i32.const 0))
    (block $end (loop $row
      (br_if $end (i32.ge_u (local.get $i) (i32.mul (local.get $rows) (i32.const 4))))
      (i32.store (i32.add (local.get $out) (local.get $i))
        (i32.add (i32.load (i32.add (local.get $out) (local.get $i)))
          (i32.load (i32.add (local.get $at) (local.get $i)))))
      (local.set $i (i32.add (local.get $i) (i32.const 4)))
      (br $row)))
    (local.set $col (i32.add (local.get $col) (i32.const 1)))
    (br $next)))
  (call $list (local.get $out) (local.get $rows))";

/// Every row kept: zeros.
pub const KEEP: &str = "
  (local $out i32)
  (local.set $out (call $room (local.get $rows)))
  (memory.fill (local.get $out) (i32.const 0) (i32.mul (local.get $rows) (i32.const 4)))
  (call $list (local.get $out) (local.get $rows))";

impl Guest {
    /// A guest that also decides this; the body answers a pointer.
    pub fn with(mut self, interface: &'static str, body: &str) -> Self {
        self.exports.push((interface, body.to_owned()));
        self
    }

    pub fn fields(mut self, fields: &str) -> Self {
        self.fields.push_str(fields);
        self
    }

    pub fn world(mut self, items: &str) -> Self {
        self.world.push_str(items);
        self
    }

    pub fn configure(mut self, body: &str) -> Self {
        body.clone_into(&mut self.configure);
        self
    }

    pub fn named(mut self, name: &str, version: &str) -> Self {
        name.clone_into(&mut self.manifest.name);
        version.clone_into(&mut self.manifest.version);
        self
    }

    /// Builds against a changed contract.
    pub fn edit(mut self, from: &str, to: &str) -> Self {
        assert!(self.wit.contains(from), "the contract has no {from:?}");
        self.wit = self.wit.replace(from, to);
        self
    }

    /// The component.
    pub fn build(&self) -> Vec<u8> {
        self.wrap(self.core())
    }

    fn wrap(&self, mut module: Vec<u8>) -> Vec<u8> {
        let exports =
            self.exports.iter().fold(String::new(), |out, (i, _)| out + "export " + i + ";");
        let wit =
            format!("{}\nworld guest {{ {} export policy; {exports} }}", self.wit, self.world);
        let mut resolve = Resolve::default();
        let package = resolve.push_str("policy.wit", &wit).unwrap();
        let world = resolve.select_world(&[package], Some("guest")).unwrap();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)
            .unwrap();
        ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
    }

    /// The core module alone.
    pub fn core(&self) -> Vec<u8> {
        parse(&self.text())
    }

    /// The component, after a change to the core module's text.
    pub fn build_edited(&self, from: &str, to: &str) -> Vec<u8> {
        let text = self.text();
        assert!(text.contains(from), "the module has no {from:?}");
        self.wrap(parse(&text.replace(from, to)))
    }

    fn text(&self) -> String {
        let version = self.wit.split("package crater:policy@").nth(1).unwrap();
        let version = version.split(';').next().unwrap();
        let name = |interface: &str| format!("crater:policy/{interface}@{version}");
        let mut out = String::from("(module\n");
        if self.world.contains("import log") {
            let _ = writeln!(
                out,
                "(import \"{}\" \"log\" (func $log (param i32 i32 i32)))
                 (import \"{}\" \"id\" (func $id (param i32 i32) (result i32)))
                 (import \"{1}\" \"text\" (func $text (param i32 i32)))",
                name("log"),
                name("strings"),
            );
        }
        out.push_str(COMMON);
        let _ = writeln!(
            out,
            "(data (i32.const 1024) \"{}\")\n{}",
            escape(&self.manifest.bytes(1024)),
            self.fields
        );
        let policy = name("policy");
        let describe = self.describe.as_deref().unwrap_or("(i32.const 1024)");
        let _ = writeln!(
            out,
            "(func (export \"{policy}#describe\") (result i32) {describe})
             (func (export \"{policy}#configure\")
               (param $config i32) (param $config_len i32)
               (param $prepared i32) (param $prepared_len i32) (result i32)
               {})",
            self.configure
        );
        for (interface, body) in &self.exports {
            let (function, params) = shape(interface);
            let export = format!("{}#{function}", name(interface));
            let _ = writeln!(
                out,
                "(func (export \"{export}\") {params} (result i32) {body})
                 (func (export \"cabi_post_{export}\") (param i32)
                   (global.set $top (i32.const 65536)))"
            );
        }
        out.push(')');
        out
    }
}

fn shape(interface: &str) -> (&str, &str) {
    match interface {
        "prepare" => (
            "prepare",
            "(param $config i32) (param $config_len i32) (param $facts i32) (param $facts_len i32)",
        ),
        "rank" => (
            "rank",
            "(param $context i32) (param $context_len i32)
             (param $rows i32) (param $table i32) (param $cols i32)",
        ),
        "admit" => (
            "admit",
            "(param $context i32) (param $context_len i32) (param $job i32) (param $job_len i32)",
        ),
        other => (
            if other == "preempt" { "price" } else { other },
            "(param $context i32) (param $context_len i32) (param $job i32) (param $job_len i32)
             (param $rows i32) (param $table i32) (param $cols i32)",
        ),
    }
}

/// Memory from 64 KiB up is handed out in order and taken back after each
/// call. 512: an accepting result. 768: room for an answer.
const COMMON: &str = r#"
(memory (export "memory") 2)
(global $top (mut i32) (i32.const 65536))
(func $alloc (param $align i32) (param $size i32) (result i32)
  (local $at i32) (local $end i32)
  (local.set $at (i32.and
    (i32.add (global.get $top) (i32.sub (local.get $align) (i32.const 1)))
    (i32.sub (i32.const 0) (local.get $align))))
  (local.set $end (i32.add (local.get $at) (local.get $size)))
  (if (i32.gt_u (local.get $end) (i32.mul (memory.size) (i32.const 65536)))
    (then (if (i32.eq (i32.const -1) (memory.grow (i32.add (i32.const 1)
        (i32.shr_u (i32.sub (local.get $end) (i32.mul (memory.size) (i32.const 65536)))
          (i32.const 16)))))
      (then (unreachable)))))
  (global.set $top (local.get $end))
  (local.get $at))
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (call $alloc (local.get 2) (local.get 3)))
(func $room (param $values i32) (result i32)
  (call $alloc (i32.const 4) (i32.mul (local.get $values) (i32.const 4))))
(func $list (param $ptr i32) (param $len i32) (result i32)
  (i32.store (i32.const 768) (local.get $ptr))
  (i32.store (i32.const 772) (local.get $len))
  (i64.store (i32.const 776) (i64.const 0))
  (i32.const 768))
(func $refuse (param $ptr i32) (param $len i32) (result i32)
  (i32.store (i32.const 768) (i32.const 1))
  (i32.store (i32.const 772) (local.get $ptr))
  (i32.store (i32.const 776) (local.get $len))
  (i32.const 768))
"#;

impl Manifest {
    /// The record and what it points to, as they lie at `base`.
    fn bytes(&self, base: u32) -> Vec<u8> {
        let mut head = Vec::new();
        let mut rest = Vec::new();
        let start = base + 56;
        let pair = |ptr: u32, len: usize, to: &mut Vec<u8>| {
            to.extend(ptr.to_le_bytes());
            to.extend(u32::try_from(len).unwrap().to_le_bytes());
        };
        let place = |bytes: &[u8], rest: &mut Vec<u8>| {
            rest.resize(rest.len().next_multiple_of(4), 0);
            let at = start + u32::try_from(rest.len()).unwrap();
            rest.extend(bytes);
            at
        };
        for text in [&self.name, &self.version] {
            let at = place(text.as_bytes(), &mut rest);
            pair(at, text.len(), &mut head);
        }
        let wants: Vec<u8> = self.wants.iter().flat_map(|w| w.to_le_bytes()).collect();
        let at = place(&wants, &mut rest);
        pair(at, self.wants.len(), &mut head);
        let mut labels = Vec::new();
        for label in &self.labels {
            let at = place(label.as_bytes(), &mut rest);
            pair(at, label.len(), &mut labels);
        }
        let at = place(&labels, &mut rest);
        pair(at, self.labels.len(), &mut head);
        let options: Vec<u8> = self
            .options
            .iter()
            .flat_map(|(id, value)| [id.to_le_bytes(), value.to_le_bytes()].concat())
            .collect();
        let at = place(&options, &mut rest);
        pair(at, self.options.len(), &mut head);
        let mut reasons = Vec::new();
        for (code, text) in &self.reasons {
            let at = place(text.as_bytes(), &mut rest);
            reasons.extend(code.to_le_bytes());
            pair(at, text.len(), &mut reasons);
        }
        let at = place(&reasons, &mut rest);
        pair(at, self.reasons.len(), &mut head);
        let at = place(self.schema.as_bytes(), &mut rest);
        pair(at, self.schema.len(), &mut head);
        head.extend(rest);
        assert!(head.len() < 60_000, "the manifest does not fit below the heap");
        head
    }
}

fn parse(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn escape(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, b| {
        let _ = write!(out, "\\{b:02x}");
        out
    })
}
