#!/bin/sh
# Install the package, editable, into a virtual environment: install.sh FOLDER WHAT
# Tells on a terminal what it downloads; quiet elsewhere. Nothing goes to standard output.
set -eu
folder=$1
what=$2

quiet=--quiet
[ -t 2 ] && quiet=
exec "$folder/bin/python" -m pip install $quiet --editable "$what" >&2
