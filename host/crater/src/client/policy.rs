//! `crater policy status`.

use super::args::Common;
use super::http::{Api, path};
use super::queue::refusal;
use super::table::Table;
use super::{print, spell};
use crater_api::queues::{PolicyView, QueueView};
use crater_api::status::ServerView;
use std::fmt::Write as _;

/// Runs the command.
pub fn status(common: &Common) -> anyhow::Result<()> {
    let api = Api::new(common)?;
    let queues: Vec<QueueView> = api.get(&path(&["queues"]))?;
    let server: ServerView = api.get(&path(&["server"]))?;
    let shown = print::answer(common.output, &queues, |wide| {
        let mut text = table(&queues, wide);
        for queue in &queues {
            text += &queue
                .policy
                .as_ref()
                .map_or_else(String::new, |policy| refusal(&queue.name, policy));
        }
        if let Some(refused) = &server.reload_refused {
            let _ = writeln!(
                text,
                "
The configuration's last reload was refused; what was before it holds:\n  {}",
                print::clean(refused)
            );
        }
        text
    });
    print::unless_closed(shown)
}

fn table(queues: &[QueueView], wide: bool) -> String {
    let mut head = vec!["QUEUE", "POLICY", "VERSION", "DIGEST", "LIVE SINCE", "CALLS", "FAULTS"];
    if wide {
        head.extend(["SWAPS", "REFUSALS", "FALLBACK", "SOURCE"]);
    }
    let mut table = Table::new(&head);
    for queue in queues {
        let policy = queue.policy.as_ref();
        let live = policy.and_then(|policy| policy.live.as_ref());
        let name = live.map(|live| live.name.clone());
        let mut row = vec![
            queue.name.clone(),
            name.unwrap_or_else(|| policy.map(|p| p.source.clone()).unwrap_or_default()),
            live.map(|live| live.version.clone()).unwrap_or_default(),
            live.map(|live| live.digest.chars().take(12).collect()).unwrap_or_default(),
            live.map(|live| spell::moment(&live.since)).unwrap_or_default(),
            live.map(|live| live.calls.to_string()).unwrap_or_default(),
            live.map(|live| live.faults.to_string()).unwrap_or_default(),
        ];
        if wide {
            let count =
                |of: fn(&PolicyView) -> u64| policy.map(|p| of(p).to_string()).unwrap_or_default();
            row.extend([
                count(|policy| policy.swaps),
                count(|policy| policy.refusals),
                queue.fallback.clone(),
                policy.map(|policy| policy.source.clone()).unwrap_or_default(),
            ]);
        }
        table.row(row);
    }
    table.text(print::colours())
}
