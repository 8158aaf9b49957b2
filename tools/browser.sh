#!/usr/bin/env bash
# Install what the tests in a browser need: the dashboard, Playwright, and the Chromium of the system.
#
# Playwright's own browser is not downloaded. Where something cannot be installed this says so and ends well, so that
# everything else is tested; $VENV/.browser holds 1 once all is there, and nothing before.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
: "${VENV:?}" "${PIP:?}"

mark=$VENV/.browser
if [ -s "$mark" ] && [ ! pyproject.toml -nt "$mark" ]; then exit 0; fi
: >"$mark"

say() { echo "$1 The tests of the dashboard in a browser will be skipped." >&2; }
browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

# shellcheck disable=SC2086 # several words
if ! $PIP install --editable '.[dashboard,browser]'; then
    say "The dashboard and Playwright could not be installed, pip said why above."
    exit 0
fi
if ! browser >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "No Chromium on the PATH: installing the Debian package" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update && apt-get -qq install --yes --no-install-recommends chromium >/dev/null
fi
if ! browser >/dev/null; then
    say "No Chromium on the PATH and none could be installed: install the package chromium."
    exit 0
fi
echo 1 >"$mark"
