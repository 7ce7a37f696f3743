//! `crater job list --watch`: from the stream of events, drawn anew on a
//! terminal, a line for each change elsewhere.

use super::list::{ALIVE, row, table};
use crate::client::args::{List, Output};
use crate::client::http::Api;
use crate::client::print;
use crater_api::JobView;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal as _};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// At most one drawing in this time.
const DRAW: Duration = Duration::from_millis(200);
/// Pause before the server is asked again.
const AGAIN: Duration = Duration::from_secs(1);

enum News {
    /// All jobs follow.
    Anew,
    Job(Box<JobView>),
    Gone(String),
    Lost(String),
    /// The server says no.
    Refused(anyhow::Error),
}

/// Runs the command; ends with the process, or when nobody reads on.
pub fn run(api: &Api, output: Output, args: &List) -> anyhow::Result<()> {
    let first = api.events()?;
    let (send, news) = channel();
    let again = api.clone();
    std::thread::spawn(move || follow(&again, first, &send));
    let drawn = std::io::stdout().is_terminal() && matches!(output, Output::Table | Output::Wide);
    let mut shown = Shown { args, output, drawn, jobs: BTreeMap::new(), lost: None };
    loop {
        // The thread lives as long as the process.
        shown.take(news.recv()?)?;
        let until = Instant::now() + DRAW;
        while let Ok(more) = news.recv_timeout(until.saturating_duration_since(Instant::now())) {
            shown.take(more)?;
        }
        shown.draw()?;
    }
}

/// Reads events; connects again when the connection ends.
fn follow(api: &Api, first: impl BufRead, send: &Sender<News>) {
    if read(first, send).is_none() {
        return;
    }
    loop {
        std::thread::sleep(AGAIN);
        let went = match api.events() {
            Ok(stream) => read(stream, send),
            Err(error) if error.is::<crate::client::error::Refused>() => {
                let _ = send.send(News::Refused(error));
                return;
            }
            Err(error) => send.send(News::Lost(format!("{error:#}"))).ok(),
        };
        if went.is_none() {
            return;
        }
    }
}

/// Reads one stream to its end; `None` when nobody listens.
fn read(stream: impl BufRead, send: &Sender<News>) -> Option<()> {
    send.send(News::Anew).ok()?;
    let (mut name, mut data) = (String::new(), String::new());
    for line in stream.lines() {
        let Ok(line) = line else { break };
        match line.split_once(':') {
            Some(("event", value)) => value.trim_start().clone_into(&mut name),
            Some(("data", value)) => data.push_str(value.strip_prefix(' ').unwrap_or(value)),
            // An empty line ends an event; comments keep the connection.
            _ if line.is_empty() => {
                let event = match name.as_str() {
                    "job" => serde_json::from_str(&data).ok().map(|job| News::Job(Box::new(job))),
                    "gone" => Some(News::Gone(data.clone())),
                    _ => None,
                };
                if let Some(event) = event {
                    send.send(event).ok()?;
                }
                name.clear();
                data.clear();
            }
            _ => {}
        }
    }
    send.send(News::Lost("the connection ended".into())).ok()
}

/// Whether a job is one of those asked for.
fn wanted(args: &List, job: &JobView) -> bool {
    let is = |asked: &Option<String>, has: &str| asked.as_ref().is_none_or(|asked| asked == has);
    let below = |asked: &str| {
        job.tenant.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let of = |status: &str| job.status.eq_ignore_ascii_case(status);
    let status = match &args.status[..] {
        [] => args.all || ALIVE.into_iter().any(of),
        status => status.iter().any(|status| of(status)),
    };
    let since = args.since.is_none_or(|since| {
        let moment = job.since.parse::<jiff::Timestamp>();
        let age = moment.map(|at| jiff::Timestamp::now().as_second() - at.as_second());
        age.is_ok_and(|age| age <= since.as_secs() as i64)
    });
    status
        && since
        && is(&args.queue, &job.queue)
        && is(&args.name, &job.name)
        && args.tenant.as_deref().is_none_or(below)
}

struct Shown<'a> {
    args: &'a List,
    output: Output,
    drawn: bool,
    /// Those asked for, by number.
    jobs: BTreeMap<u64, JobView>,
    lost: Option<String>,
}

fn number(id: &str) -> u64 {
    id.strip_prefix("job-").and_then(|n| n.parse().ok()).unwrap_or(u64::MAX)
}

impl Shown<'_> {
    fn take(&mut self, news: News) -> anyhow::Result<()> {
        match news {
            News::Anew => {
                self.lost = None;
                // What has gone meanwhile is not said; lines compare with what
                // they said last.
                if self.drawn {
                    self.jobs.clear();
                }
            }
            News::Job(job) => {
                let (number, is) = (number(&job.id), wanted(self.args, &job));
                let was = self.jobs.get(&number);
                // The last change of one that leaves is shown, too.
                let changed = was.is_none_or(|was| *was != *job) && (is || was.is_some());
                if changed && !self.drawn {
                    self.line(&job)?;
                }
                if is {
                    self.jobs.insert(number, *job);
                } else {
                    self.jobs.remove(&number);
                }
            }
            News::Gone(id) => drop(self.jobs.remove(&number(&id))),
            News::Lost(why) => {
                if !self.drawn && self.lost.is_none() {
                    print::note(&format!("{why}; trying again"));
                }
                self.lost = Some(why);
            }
            News::Refused(error) => return Err(error),
        }
        Ok(())
    }

    /// One change, for programs.
    fn line(&self, job: &JobView) -> anyhow::Result<()> {
        match self.output {
            Output::Json => print::text(&serde_json::to_string(job)?),
            Output::Yaml => print::text(&format!("---\n{}", serde_saphyr::to_string(job)?)),
            Output::Table | Output::Wide => {
                let dash = |cell: String| {
                    if cell.is_empty() { "-".to_owned() } else { print::clean(&cell) }
                };
                let row = row(job, self.output == Output::Wide).into_iter().map(dash);
                print::text(&row.collect::<Vec<_>>().join("  "))
            }
        }
    }

    fn draw(&self) -> anyhow::Result<()> {
        if !self.drawn {
            return Ok(());
        }
        let room = print::lines().saturating_sub(3).max(1);
        let mut table = table(self.jobs.values().rev(), self.output == Output::Wide);
        let more = self.jobs.len().saturating_sub(room);
        table.truncate(room);
        let mut text = table.text(print::colours());
        if more > 0 {
            let _ = writeln!(text, "and {more} more");
        }
        if let Some(lost) = &self.lost {
            let _ = writeln!(text, "{}; trying again", print::clean(lost));
        }
        // Home, each line to its end, then what is left below.
        let text = text.trim_end().replace('\n', "\x1b[K\n");
        print::text(&format!("\x1b[H{text}\x1b[J"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_parts_and_between_comments() {
        let stream = ": hello\n\nevent: gone\ndata: job-001\n\n:\n\nevent: other\ndata: x\n\nevent: gone\ndata: job-002\n\n";
        let (send, news) = channel();
        read(stream.as_bytes(), &send).unwrap();
        drop(send);
        let ids: Vec<String> = news
            .iter()
            .filter_map(|news| match news {
                News::Gone(id) => Some(id),
                _ => None,
            })
            .collect();
        assert_eq!(ids, ["job-001", "job-002"]);
    }
}
