//! `crater job logs`.

use crate::client::args::Logs;
use crate::client::http::{Api, beyond, broken, path, with_query};
use crate::client::print;
use crater_api::logs::FROM;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// How long a lost server is looked for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause before the server is asked again.
const AGAIN: Duration = Duration::from_millis(500);

/// Where the output stands.
struct Printed {
    /// The next byte.
    at: u64,
}

/// Runs the command.
pub fn run(api: &Api, args: &Logs) -> anyhow::Result<()> {
    let mut printed = Printed { at: args.offset };
    if !args.follow {
        // An answer is bounded: ask until nothing more comes.
        while printed.part(api, args, false)? > 0 {}
        return Ok(());
    }
    let mut until = Instant::now() + PATIENCE;
    loop {
        let before = printed.at;
        match printed.part(api, args, true) {
            // The server ends a stream when the job is over, or where it cannot
            // go on without a gap: then there is more.
            Ok(_) => {
                if printed.part(api, args, false)? == 0 {
                    return Ok(());
                }
            }
            Err(error) if beyond(&error) && printed.at > 0 => {
                print::note("the server started again and keeps the job's output anew");
                printed.at = 0;
            }
            Err(error) if error.is::<Broken>() => print::note(&format!("{error}; going on")),
            Err(error) if error.is::<crate::client::Unreachable>() && before > 0 => {
                if Instant::now() > until {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        if printed.at > before {
            until = Instant::now() + PATIENCE;
        }
        std::thread::sleep(AGAIN);
    }
}

/// The connection ended in the middle.
#[derive(Debug)]
struct Broken(String);

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the connection was lost ({})", self.0)
    }
}

impl std::error::Error for Broken {}

impl Printed {
    /// Prints what the server has, or follows it; gives out how many bytes.
    fn part(&mut self, api: &Api, args: &Logs, follow: bool) -> anyhow::Result<u64> {
        let query = [
            ("stream", args.stream.clone()),
            ("offset", self.at.to_string()),
            ("follow", follow.to_string()),
        ];
        let (head, mut body) = api.open(&with_query(&path(&["jobs", &args.id, "logs"]), &query))?;
        let from = head.get(FROM.as_str()).and_then(|from| from.to_str().ok());
        let from: u64 = from.and_then(|from| from.parse().ok()).unwrap_or(self.at);
        if from > self.at {
            print::note(&format!("{} bytes before that are not kept", from - self.at));
            self.at = from;
        }
        let start = self.at;
        let mut buffer = vec![0; 64 << 10];
        let mut out = std::io::stdout().lock();
        loop {
            let read = match body.read(&mut buffer) {
                Ok(0) => return Ok(self.at - start),
                Ok(read) => read,
                Err(error) => return Err(Broken(broken(&error)).into()),
            };
            out.write_all(&buffer[..read])?;
            out.flush()?;
            self.at += read as u64;
        }
    }
}
