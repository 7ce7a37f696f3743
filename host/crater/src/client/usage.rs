//! `crater tenant usage`.

use super::args::{Output, Usage};
use super::http::{Api, path, with_query};
use super::print;
use super::table::Table;
use crater_api::usage::{UsageView, Usages};

/// Runs the command.
pub fn run(api: &Api, output: Output, args: &Usage) -> anyhow::Result<()> {
    let mut query =
        vec![("since", format!("{}s", args.since.as_secs())), ("limit", "1000".to_owned())];
    query.extend(args.tenant.iter().map(|tenant| ("tenant", tenant.clone())));
    let mut all: Vec<UsageView> = vec![];
    let mut cursor: Option<String> = None;
    loop {
        let mut query = query.clone();
        query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
        let page: Usages = api.get(&with_query(&path(&["usage"]), &query))?;
        all.extend(page.usage);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    print::answer(output, &all, |_| table(&all))
}

fn table(all: &[UsageView]) -> String {
    let mut table = Table::new(&[
        "DAY",
        "TENANT",
        "QUEUE",
        "GPU-SECONDS",
        "GPU-GiB-SECONDS",
        "CPU-SECONDS",
        "GiB-SECONDS",
    ]);
    for row in all {
        let round = |n: f64| format!("{n:.1}");
        table.row([
            row.day.clone(),
            row.tenant.clone(),
            row.queue.clone(),
            round(row.gpu_seconds),
            round(row.gpu_memory_gib_seconds),
            round(row.cpu_seconds),
            round(row.memory_gib_seconds),
        ]);
    }
    table.text(print::colours())
}
