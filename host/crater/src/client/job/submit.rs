//! `crater job submit`.

use super::wait;
use crate::client::args::{For, Output, SubmitArgs};
use crate::client::http::{Api, path};
use crate::client::print;
use crate::exit::input;
use anyhow::anyhow;
use crater_api::{JobView, Submit};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

/// Runs the command.
pub fn run(api: &Api, output: Output, args: &SubmitArgs) -> anyhow::Result<()> {
    let submit = asked(args)?;
    let key = match &args.key {
        Some(key) => key.clone(),
        None => own_key()?,
    };
    let (new, job): (bool, JobView) = api.post_once(&path(&["jobs"]), &submit, &key)?;
    if !new && args.key.is_some() {
        print::note(&format!("{} was submitted with this key before", job.id));
    }
    job.notes.iter().for_each(|note| print::note(note));
    if !args.wait {
        return print::answer(output, &job, |_| said(&job));
    }
    if matches!(output, Output::Table | Output::Wide) {
        print::text(&said(&job))?;
    }
    let job = wait::until(api, &job.id, For::Over, args.timeout)?;
    wait::end(output, &job, For::Over)
}

/// One line about a job that was just submitted, its identity first.
pub fn said(job: &JobView) -> String {
    format!("{} {} is submitted to {}: {}", job.id, print::clean(&job.name), job.queue, job.status)
}

/// Random, so that no two submissions share it: the one that is sent again
/// after a lost connection is known by it.
fn own_key() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().fold(String::new(), |mut key, byte| {
        let _ = write!(key, "{byte:02x}");
        key
    }))
}

fn read(file: &Path) -> anyhow::Result<Submit> {
    let refuse = |error: String| input(anyhow!("{}: {error}", file.display()));
    let text = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|error| refuse(error.to_string()))?;
    // JSON is YAML, too.
    serde_saphyr::from_str(&text).map_err(|error| {
        // The first line says what and where, the rest shows the place.
        let text = error.to_string();
        refuse(text.lines().next().unwrap_or_default().to_owned())
    })
}

/// The file with what is given beside it.
fn asked(args: &SubmitArgs) -> anyhow::Result<Submit> {
    let mut submit = args.file.as_deref().map(read).transpose()?.unwrap_or_default();
    let text = |to: &mut String, from: &Option<String>| {
        if let Some(from) = from {
            to.clone_from(from);
        }
    };
    text(&mut submit.name, &args.name);
    text(&mut submit.queue, &args.queue);
    text(&mut submit.image, &args.image);
    text(&mut submit.command, &args.command);
    text(&mut submit.workdir, &args.workdir);
    for (to, from) in [
        (&mut submit.tenant, &args.tenant),
        (&mut submit.kind, &args.kind),
        (&mut submit.mig_profile, &args.mig_profile),
        (&mut submit.nvlink, &args.nvlink),
        (&mut submit.together, &args.together),
        (&mut submit.numa, &args.numa),
    ] {
        *to = from.clone().or(to.take());
    }
    for (to, from) in [
        (&mut submit.priority, &args.priority),
        (&mut submit.gpu, &args.gpu),
        (&mut submit.gpu_memory, &args.gpu_memory),
        (&mut submit.cpu, &args.cpu),
        (&mut submit.memory, &args.memory),
        (&mut submit.disk_io, &args.disk_io),
        (&mut submit.disk_bandwidth, &args.disk_bandwidth),
        (&mut submit.disk_iops, &args.disk_iops),
        (&mut submit.disk_bandwidth_limit, &args.disk_bandwidth_limit),
        (&mut submit.disk_iops_limit, &args.disk_iops_limit),
    ] {
        *to = from.as_deref().map(Into::into).or(to.take());
    }
    submit.gpu_exclusive = args.gpu_exclusive.unwrap_or(submit.gpu_exclusive);
    submit.preemptible = args.preemptible.unwrap_or(submit.preemptible);
    submit.members = args.members.or(submit.members);
    submit.min = args.min.or(submit.min);
    submit.run_limit = args.run_limit.or(submit.run_limit);
    submit.grace = args.grace.or(submit.grace);
    submit.node_selector.extend(args.node_selector.iter().cloned());
    submit.env.extend(args.env.iter().cloned());
    if !args.card_model.is_empty() {
        submit.card_model.clone_from(&args.card_model);
    }
    if !args.volumes.is_empty() {
        submit.volumes.clone_from(&args.volumes);
    }
    if !args.ports.is_empty() {
        submit.ports.clone_from(&args.ports);
    }
    Ok(submit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::client::args::JobCommand;
    use clap::Parser as _;

    fn submit(line: &[&str]) -> Submit {
        let args = ["crater", "job", "submit"].iter().chain(line);
        let Command::Job(of) = Cli::try_parse_from(args).unwrap().command else { panic!() };
        let JobCommand::Submit(args) = of.command else { panic!() };
        asked(&args).unwrap()
    }

    #[test]
    fn flags_go_before_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "name: a\nqueue: training\ngpu: 0.5\nmemory: 32Gi\npreemptible: true\nenv: {A: '1', B: '2'}\n";
        std::fs::write(file.path(), text).unwrap();
        let file = file.path().to_str().unwrap();
        let made =
            submit(&["-f", file, "--memory", "64Gi", "--preemptible", "false", "--env", "B=3=4"]);
        assert_eq!((made.name.as_str(), made.queue.as_str()), ("a", "training"));
        assert_eq!(made.gpu.unwrap().0, "0.5");
        assert_eq!(made.memory.unwrap().0, "64Gi");
        assert!(!made.preemptible);
        assert_eq!(made.env["A"], "1");
        assert_eq!(made.env["B"], "3=4");
    }

    #[test]
    fn a_flag_may_stand_alone_or_say_true() {
        let base = ["--name", "a", "--queue", "q"];
        let with = |more: &[&str]| submit(&[&base, more].concat());
        assert!(with(&["--gpu-exclusive", "--gpu", "1"]).gpu_exclusive);
        assert!(with(&["--gpu", "1", "--gpu-exclusive", "true"]).gpu_exclusive);
        assert!(!with(&["--gpu-exclusive", "false"]).gpu_exclusive);
        assert_eq!(with(&["--run-limit", "2h", "--grace", "90"]).run_limit, Some(7200));
    }
}
