#!/bin/sh
# Install Debian's Chromium, in which the explorer is tested, where that is possible: else its tests
# are skipped, and say so. Nothing goes to standard output.
set -eu
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update -qq && apt-get install -y -qq chromium; } >&2 && exit 0
fi
echo "no Chromium: the tests of the explorer are skipped (apt install chromium)" >&2
