#!/bin/sh
# Make a virtual environment: make_venv.sh PYTHON FOLDER
# Debian and Ubuntu ship Python without `ensurepip`; their package python3-venv brings it.
set -eu
python=$1
folder=$2

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "mfmadsl needs Python 3.10 or newer: make PYTHON=python3.12 ..." >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip' 2>/dev/null && command -v apt-get >/dev/null; then
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    echo "installing Debian's $package"
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq
    $sudo apt-get install -y -qq "$package"
fi
rm -rf "$folder"
"$python" -m venv "$folder"
