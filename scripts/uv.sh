#!/bin/sh
# Run uv with an interpreter that fits: `scripts/uv.sh sync --frozen`.
#
# uv is taken from PATH where it is recent enough, otherwise installed by pip into .uv-bootstrap/.
# The interpreter is $PYTHON, or the environment's own, or the first one found that is 3.11 or newer. uv gets its
# real path, because a pyenv shim answers for whatever version happens to be selected, and downloads none when one
# is here.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
own=$root/.uv-bootstrap
# 0.13 wrote the lock file; an older uv may not read it.
uv_minor=13
uv_requirement='uv>=0.13.9,<0.14'

die() {
    printf 'pyexec: %s\n' "$1" >&2
    exit 1
}

# Print the real path of an interpreter if it runs, is 3.11 or newer, and is not itself a virtual environment's.
real_python() {
    "$1" -I -c '
import os, sys
if sys.version_info < (3, 11):
    raise SystemExit(1)
print(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))
' 2>/dev/null </dev/null
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        real_python "$PYTHON" || die "PYTHON=$PYTHON does not run or is older than Python 3.11."
        return
    fi
    # Keep to the interpreter of an environment that is there already.
    if real_python "${UV_PROJECT_ENVIRONMENT:-$root/.venv}/bin/python"; then return; fi
    for candidate in python3 python3.13 python3.12 python3.11 python3.14 python; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        if real_python "$candidate"; then return; fi
    done
    for candidate in "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}"/versions/3.*/bin/python; do
        [ -x "$candidate" ] || continue
        if real_python "$candidate"; then return; fi
    done
}

# Succeed when a uv answers with a version that reads the lock file.
uv_fits() {
    version=$("$1" --version 2>/dev/null </dev/null) || return 1
    version=${version#uv }
    version=${version%% *}
    major=${version%%.*}
    rest=${version#*.}
    minor=${rest%%.*}
    case $major$minor in '' | *[!0-9]*) return 1 ;; esac
    [ "$major" -gt 0 ] || [ "$minor" -ge "$uv_minor" ]
}

install_uv() {
    rm -rf "$own"
    # Debian's Python may come without venv's pip; its own pip, if there, can fill a plain folder instead.
    if "$python" -m venv "$own" >/dev/null 2>&1; then
        "$own/bin/python" -m pip install -qq --disable-pip-version-check "$uv_requirement" >&2 && return
    elif rm -rf "$own" && "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m pip install -qq --disable-pip-version-check --target "$own" "$uv_requirement" >&2 && return
    else
        rm -rf "$own"
        die "uv is missing and $python has neither venv nor pip to install it; install uv or python3-venv."
    fi
    rm -rf "$own"
    die "uv is missing and pip could not install it (its words are above); install uv and try again."
}

python=$(find_python) || exit 1

if command -v uv >/dev/null 2>&1 && uv_fits uv; then
    uv=uv
else
    uv=$own/bin/uv
    if ! uv_fits "$uv"; then
        [ -n "$python" ] || die "Python 3.11 or newer is missing (or name one: make PYTHON=/path/to/python3)."
        install_uv
    fi
fi

case ${1:-} in
    sync | lock | build | venv)
        # These pick an interpreter; `run` uses the environment that sync made, and must not pass our settings on.
        if [ -n "$python" ]; then
            command=$1
            shift
            UV_PYTHON_DOWNLOADS=never exec "$uv" "$command" --python "$python" "$@"
        fi
        ;;
esac
exec "$uv" "$@"
