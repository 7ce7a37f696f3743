#[path = "../src/exit.rs"] mod exit;
#[allow(dead_code)] #[path = "../src/loader.rs"] mod loader;
#[path = "../src/kubernetes.rs"] mod kubernetes;
use clap::Parser;
#[derive(Parser)] struct Cli { #[command(subcommand)] c: Cmd }
#[derive(clap::Subcommand)] enum Cmd { Serve { #[arg(long)] cluster: String, #[command(flatten)] k: kubernetes::Kubernetes } }
fn main() -> std::process::ExitCode {
    crater_policy::child::run_if_asked();
    let Cmd::Serve { k, .. } = Cli::parse().c;
    exit::code(kubernetes::run(&k))
}
