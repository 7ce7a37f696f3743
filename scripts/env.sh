# Sourced by the Makefile's recipes: where cargo and the tools of `make setup`
# are, and which toolchain serves.
PATH="$PWD/.tools/bin:$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
export PATH
# Where the pinned toolchain is missing and cannot be fetched, the stable one
# has to do; cargo refuses if it is older than `rust-version`.
if ! cargo --version >/dev/null 2>&1 && cargo +stable --version >/dev/null 2>&1; then
	RUSTUP_TOOLCHAIN=stable
	export RUSTUP_TOOLCHAIN
fi
