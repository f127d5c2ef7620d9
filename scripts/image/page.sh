#!/bin/sh
# Bundles the page into a directory: page.sh DIRECTORY. A step of the Dockerfile; runs in the sources.
set -eu
npm ci --prefix web --ignore-scripts --no-audit --no-fund
node web/build.mjs "$1"
