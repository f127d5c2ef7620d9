#!/bin/sh
# Builds the gateway into FILE: build.sh FILE. A step of the Dockerfile; runs in the sources.
# SWITCHBOARD_WEB_DIST is the page bundled by page.sh.
set -eu
cargo build --locked --bin switchboard --profile dist
install -D -m 0755 "${CARGO_TARGET_DIR:-target}/dist/switchboard" "$1"
