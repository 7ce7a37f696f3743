//! `crater serve` on machines that are declared: the embedded system.

use crate::exit::input;
use crate::loader::BUILT_IN;
use anyhow::{Context, anyhow};
use clap::Args;
use crater_api::App;
use crater_policy::Runtime;
use crater_server::{Options, System};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What `serve` takes for the embedded system.
#[derive(Debug, Args)]
pub struct Embedded {
    /// Configuration; without one there are three queues on eight simulated nodes of eight cards
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder for everything that outlives the process [default: ~/.local/state/crater]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address and port, instead of the configuration's
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,
    /// How the log is written; `CRATER_LOG` says how much of it
    #[arg(long, value_enum, default_value_t = crate::telemetry::LogFormat::Text)]
    pub log_format: crate::telemetry::LogFormat,
    /// Print the configuration file's JSON Schema, for editors, and end
    #[arg(long)]
    pub print_schema: bool,
}

/// The data folder that is used unless another one is named.
pub fn default_data() -> anyhow::Result<PathBuf> {
    if let Some(state) = std::env::var_os("XDG_STATE_HOME") {
        return Ok(PathBuf::from(state).join("crater"));
    }
    let home = std::env::var_os("HOME")
        .ok_or_else(|| input(anyhow!("--data: name a folder, since there is no HOME")))?;
    Ok(PathBuf::from(home).join(".local/state/crater"))
}

/// Name of the file in the data folder that holds the first administrator's
/// token.
pub const TOKEN_FILE: &str = "admin-token";

/// Serves until a signal comes.
pub fn run(args: &Embedded, local: bool) -> anyhow::Result<()> {
    if args.print_schema {
        println!("{}", serde_json::to_string_pretty(&crater_server::Config::schema())?);
        return Ok(());
    }
    let data = match &args.data {
        Some(data) => data.clone(),
        None => default_data()?,
    };
    if let Some(parent) = data.parent() {
        std::fs::create_dir_all(parent)
            .with_context(|| format!("{}", parent.display()))
            .map_err(input)?;
    }
    // Ends after the system: what it says last is sent, too.
    let _telemetry = crate::telemetry::start(args.log_format).map_err(input)?;
    let runtime = match Runtime::builder().cache(data.join("policies")).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            // The folder is made by the store's rules; before the first start
            // it is not there yet.
            tracing::debug!(%error, "policies are compiled anew at each start");
            Runtime::new()?
        }
    };
    let options = Options {
        data: data.clone(),
        config: args.config.clone(),
        runtime,
        built_ins: Arc::new(|name: &str| {
            BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, bytes)| bytes.to_vec())
        }),
        local,
    };
    let system = System::start(options).map_err(input)?;
    let config = system.config();
    let app = App::new(system);
    if let Some(token) = crater_api::auth::first(&app)? {
        let file = keep(&data, &token)?;
        eprintln!("crater: made a token for the first administrator, kept in {}", file.display());
        eprintln!("crater:   {token}");
    }
    let listen = args.listen.clone().unwrap_or(config.listen);
    let tls = config.tls.clone();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listening = |address| {
            eprintln!(
                "crater: listening on {scheme}://{address} (browse {scheme}://{address}/docs)"
            );
        };
        crater_api::serve(app, &listen, tls.as_ref(), config.allow_plain_http, listening, signal())
            .await
            .map_err(input)
    })
}

/// Writes the token where only its owner reads it.
fn keep(data: &Path, token: &str) -> anyhow::Result<PathBuf> {
    let file = data.join(TOKEN_FILE);
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&file)
        .and_then(|mut open| writeln!(open, "{token}"));
    written.with_context(|| format!("{}", file.display()))?;
    Ok(file)
}

/// Ends with the first SIGINT or SIGTERM.
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        // Without handlers the process ends by the signal itself.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    eprintln!("crater: ending");
}
