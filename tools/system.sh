#!/usr/bin/env bash
# Installs what the tests need from the system: Python's venv and headers, a C++ compiler, npm and Chromium.
#
#   tools/system.sh     nothing to do: no output
#                       root on Debian or Ubuntu: installs what is missing with apt-get
#                       elsewhere: prints the command that installs it, exit code 1
#
# PYTHON names another Python, CXX another compiler, POSENC_CHROMIUM another browser, as everywhere in the project.
set -euo pipefail
python=${PYTHON:-python3}

found() { # one of these commands
  for name in "$@"; do
    command -v "$name" >/dev/null && return
  done
  return 1
}

missing=()  # in words
packages=() # of Debian
need() {    # WHAT PACKAGE …
  missing+=("$1")
  packages+=("${@:2}")
}
"$python" -c 'import venv, ensurepip' 2>/dev/null || need "Python's venv" python3-venv
"$python" -c 'import os, sysconfig; open(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null ||
  need "Python's headers" python3-dev
[ -n "${CXX:-}" ] || found g++ clang++ c++ || need "a C++ compiler" g++
found npm || need npm nodejs npm
[ -n "${POSENC_CHROMIUM:-}" ] || found chromium chromium-browser google-chrome chrome || need Chromium chromium
[ ${#missing[@]} -eq 0 ] && exit 0

if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "The tests need ${missing[*]}: installing ${packages[*]}" >&2
  apt-get update -qq
  exec env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
fi
printf 'The tests need what this machine lacks: %s\n' "$(IFS=,; echo "${missing[*]}" | sed 's/,/, /g')" >&2
if command -v apt-get >/dev/null; then
  echo "Install it, then run make test again: sudo apt-get install ${packages[*]}" >&2
else
  echo "Install it with the system's package manager, then run make test again." >&2
  echo "POSENC_CHROMIUM names a browser, and CXX a compiler, that is not on PATH." >&2
fi
exit 1
