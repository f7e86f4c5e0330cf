# Sourced by apps/demo.sh and tests/run.sh: the Debian 12 packages each needs, and the one way they are installed.
# apt is called only if a package is missing, so a second run works without a network.

core_packages="g++ cmake ninja-build libgtest-dev libgmock-dev libxtensor-dev nlohmann-json3-dev libcli11-dev libfmt-dev
libsqlite3-dev libzip-dev zlib1g-dev python3 python3-numpy bubblewrap"
python_packages="pybind11-dev python3-dev python3-pytest python3-hypothesis mypy"
viewer_packages="qt6-base-dev qt6-svg-dev libgif-dev fonts-inter fonts-jetbrains-mono"
development_packages="librapidcheck-dev libbenchmark-dev ccache python3-jsonschema python3-venv
xvfb xauth locales"
fuzz_packages="clang libclang-rt-14-dev"

heading() { printf '\n== %s\n' "$*"; }

stop() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 2
}

# The system's Python: another one that is first in PATH may lack numpy.
python=/usr/bin/python3

missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
  done
}

# as_root COMMAND...: runs the command directly as root, through sudo otherwise.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

# install_missing PACKAGE...
install_missing() {
  command -v dpkg-query >/dev/null ||
    stop "no dpkg-query here: this script installs on Debian 12; elsewhere install these by hand and use the CMake presets: $*"
  local missing log
  missing=$(missing_packages "$@")
  if [ -z "$missing" ]; then
    echo "packages: all $# are installed"
    return
  fi
  echo "packages: installing $missing"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      stop "packages are missing and this is neither root nor is there sudo: as root, run: apt-get install --no-install-recommends $missing"
    sudo -n true 2>/dev/null || [ -t 0 ] ||
      stop "packages are missing, sudo wants a password and there is no terminal to type it: as root, run: apt-get install --no-install-recommends $missing"
  fi
  log=$(mktemp)
  as_root apt-get update >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    stop "apt-get update failed (above): is the network up, and does /etc/apt name a reachable mirror?"
  }
  # shellcheck disable=SC2086 # one word per package
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$log" 2>&1 </dev/null || {
    tail -n 15 "$log" >&2
    stop "apt-get install failed (above): install these by hand, then run this again: $missing"
  }
  rm -f "$log"
}
