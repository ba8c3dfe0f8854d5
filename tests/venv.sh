# Python environments of tests. Sourced, with `venv` set to a directory.

# Creates the environment. Without the python3-venv package, a new environment has no pip.
make_venv() {
  python3 -m venv "$venv" 2>/dev/null || python3 -m venv --without-pip "$venv"
  python=$PWD/$venv/bin/python
  site=$("$python" -c 'import site; print(site.getsitepackages()[0])')
}

# Like `pip install` in the environment.
install() {
  if "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m pip install --quiet "$@"
  else
    python3 -m pip install --quiet --upgrade --target "$site" "$@"
  fi
}
