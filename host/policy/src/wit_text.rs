//! Types of a component in the words of WIT, for messages to its author.

use wasmtime::component::types::{ComponentFunc, Type};

/// `func(context: values, …) -> list<s32>`.
pub(crate) fn func(func: &ComponentFunc) -> String {
    let params: Vec<_> = func.params().map(|(name, ty)| format!("{name}: {}", text(&ty))).collect();
    let results: Vec<_> = func.results().map(|ty| text(&ty)).collect();
    let word = if func.async_() { "async func" } else { "func" };
    let arrow = if results.is_empty() { "" } else { " -> " };
    in_contract_words(&format!("{word}({}){arrow}{}", params.join(", "), results.join(", ")))
}

/// The contract's own names for the shapes that have one.
fn in_contract_words(text: &str) -> String {
    [
        ("list<tuple<u32, list<s32>>>", "values"),
        ("record { rows: u32, columns: values }", "table"),
        ("record { scores: list<s32>, cards: list<s32> }", "scores"),
        (
            "record { name: string, version: string, wants: list<u32>, labels: list<string>, \
             options: list<tuple<u32, s32>>, reasons: list<tuple<s32, string>>, schema: string }",
            "manifest",
        ),
    ]
    .iter()
    .fold(text.to_owned(), |text, (shape, name)| text.replace(shape, name))
}

fn text(ty: &Type) -> String {
    let opt = |ty: Option<Type>| ty.map_or_else(|| "_".to_owned(), |ty| text(&ty));
    let list = |parts: Vec<String>| parts.join(", ");
    match ty {
        Type::Bool => "bool".to_owned(),
        Type::S8 => "s8".to_owned(),
        Type::U8 => "u8".to_owned(),
        Type::S16 => "s16".to_owned(),
        Type::U16 => "u16".to_owned(),
        Type::S32 => "s32".to_owned(),
        Type::U32 => "u32".to_owned(),
        Type::S64 => "s64".to_owned(),
        Type::U64 => "u64".to_owned(),
        Type::Float32 => "f32".to_owned(),
        Type::Float64 => "f64".to_owned(),
        Type::Char => "char".to_owned(),
        Type::String => "string".to_owned(),
        Type::ErrorContext => "error-context".to_owned(),
        Type::List(t) => format!("list<{}>", text(&t.ty())),
        Type::FixedLengthList(t) => format!("list<{}, {}>", text(&t.ty()), t.len()),
        Type::Map(t) => format!("map<{}, {}>", text(&t.key()), text(&t.value())),
        Type::Tuple(t) => format!("tuple<{}>", list(t.types().map(|t| text(&t)).collect())),
        Type::Record(t) => {
            let fields = t.fields().map(|f| format!("{}: {}", f.name, text(&f.ty)));
            format!("record {{ {} }}", list(fields.collect()))
        }
        Type::Variant(t) => {
            let cases = t.cases().map(|c| match c.ty {
                Some(ty) => format!("{}({})", c.name, text(&ty)),
                None => c.name.to_owned(),
            });
            format!("variant {{ {} }}", list(cases.collect()))
        }
        Type::Enum(t) => format!("enum {{ {} }}", list(t.names().map(str::to_owned).collect())),
        Type::Flags(t) => format!("flags {{ {} }}", list(t.names().map(str::to_owned).collect())),
        Type::Option(t) => format!("option<{}>", text(&t.ty())),
        Type::Result(t) => match (t.ok(), t.err()) {
            (None, None) => "result".to_owned(),
            (ok, None) => format!("result<{}>", opt(ok)),
            (ok, err) => format!("result<{}, {}>", opt(ok), opt(err)),
        },
        Type::Future(t) => format!("future<{}>", opt(t.ty())),
        Type::Stream(t) => format!("stream<{}>", opt(t.ty())),
        Type::Own(_) => "own<resource>".to_owned(),
        Type::Borrow(_) => "borrow<resource>".to_owned(),
    }
}
