#!/bin/sh
# Makes a bare Debian or Ubuntu machine able to build and test Crater: system
# packages, then Rust, then what `cargo xtask setup` brings. Elsewhere it says
# what is missing. Run again, it changes nothing. With --build it brings only
# what building the program needs, not what testing does.
set -eu
only=${1:-}
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }
has() { command -v "$1" >/dev/null 2>&1; }

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# A fresh container has no package lists.
install_packages() {
	apt_install "$@" || { as_root apt-get update && apt_install "$@"; }
}

# Packages of Debian for the commands that are not there.
missing() {
	has cc || printf ' build-essential'
	has curl || printf ' curl ca-certificates'
	has git || printf ' git'
	has pkg-config || printf ' pkg-config'
	[ "$only" != --build ] || return 0
	# Guests in Python and JavaScript. Debian's python3 can lack ensurepip.
	python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || printf ' python3 python3-venv'
	has node || printf ' nodejs'
	has npm || printf ' npm'
}

packages=$(missing)
if [ -n "$packages" ]; then
	if has apt-get; then
		say "apt-get install$packages"
		# shellcheck disable=SC2086 # one word a package
		install_packages $packages || say "apt-get failed; going on without$packages"
	else
		say "please install what Debian calls$packages"
	fi
	has cc || { say "a C compiler is needed to link"; exit 1; }
fi

. scripts/env.sh
if ! has cargo; then
	say "installing rustup"
	installer=$(mktemp)
	if curl --proto '=https' --tlsv1.2 --fail --silent --show-error --max-time 60 \
		--output "$installer" https://sh.rustup.rs &&
		sh "$installer" -y --quiet --profile minimal --default-toolchain none; then
		. scripts/env.sh
	elif has apt-get; then
		say "no rustup to be had here; taking Debian's Rust"
		# Lists of yesterday may name one that is too old.
		as_root apt-get update || true
		install_packages rustc-web cargo-web rust-web-src rust-web-clippy rustfmt-web lld
	fi
	rm -f "$installer"
fi
if has rustup && ! cargo --version >/dev/null 2>&1; then
	say "installing the toolchain of rust-toolchain.toml"
	# Without a name it takes the one that the file names.
	rustup toolchain install --profile minimal --component rustfmt --component clippy
	. scripts/env.sh
fi
[ "$only" = --build ] || say "$(cargo --version)"
cargo --version >/dev/null
exec cargo xtask setup $only
