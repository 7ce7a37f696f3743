//! The compiler process on its own, for tests: what the `crater` binary
//! becomes when its runtime starts it with the hidden argument.

fn main() {
    crater_policy::child::run_if_asked();
    eprintln!("crater-compile is started by Crater's policy runtime, never by hand");
    std::process::exit(64);
}
