# Installs torch without the 4 GB of CUDA libraries that it requires and the tests never call (see
# cpu_torch.py). Sourced after venv.sh and make_venv.
install_torch() {
  install --no-deps "$1"
  install filelock fsspec jinja2 networkx sympy typing-extensions
  "$python" -c 'import torch' 2>/dev/null || "$python" tests/cpu_torch.py "$site" || install "$1"
}
