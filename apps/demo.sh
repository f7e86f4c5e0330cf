#!/bin/bash
# From a bare Debian 12 to an explained address, a verified golden output and pictures of the run: installs what is missing,
# builds kvscope and its viewer, runs their main jobs on a small scenario. A second run installs nothing and rebuilds nothing.
# On a terminal with a display it ends by opening the viewer.
set -euo pipefail
cd "$(dirname "$0")/.."
. apps/packages.sh

[ $# -eq 0 ] || stop "takes no arguments"
scenario=apps/scenarios/first_light.json
out=build/demo
kvscope=build/release/apps/kvscope/kvscope
viewer=build/release/apps/kvscope-viewer/kvscope-viewer

# show PROGRAM ARGUMENT...: prints the command line, then its output.
show() {
  local program=$kvscope
  [ "$1" = kvscope-viewer ] && program=$viewer
  printf '\n$ %s\n' "$*"
  "$program" "${@:2}"
}

heading "packages"
# shellcheck disable=SC2086 # one word per package
install_missing $core_packages $viewer_packages

heading "build"
mkdir -p build "$out"
# The tests need more packages than the demo: they are not built unless tests/run.sh has installed these.
tests=OFF
grep -qs '^KVSCOPE_BUILD_TESTS:BOOL=ON$' build/release/CMakeCache.txt && tests=ON
cmake --preset release -D KVSCOPE_BUILD_TESTS=$tests >build/release.configure.log 2>&1 || {
  tail -n 30 build/release.configure.log >&2
  stop "configuring failed (above)"
}
cmake --build --preset release --target kvscope kvscope-viewer -j "$(nproc)"

heading "1. requests through the paging engine"
show kvscope run "$scenario"

heading "2. one number of the cache, from token to byte"
show kvscope explain "$scenario" --seq 3 --token 70 --layer 1 --head 1 --dim 3 --kv v

heading "3. what attention over this cache must give, written for others to compare with"
show kvscope golden "$scenario" --out "$out/first_light.npz"

heading "4. two candidates are judged: a kernel in single precision, and one that swaps two heads"
"$python" - "$out" <<'EOF'
import sys
import numpy as np
golden = np.load(sys.argv[1] + "/first_light.npz")
o, lse = golden["o"].astype(np.float32), golden["lse"].astype(np.float32)
np.savez(sys.argv[1] + "/single.npz", o=o, lse=lse)
np.savez(sys.argv[1] + "/swapped.npz", o=o[:, [1, 0, 2, 3]], lse=lse)
EOF
show kvscope verify "$out/first_light.npz" "$out/single.npz"
code=0
show kvscope verify "$out/first_light.npz" "$out/swapped.npz" || code=$?
[ "$code" -eq 1 ] || stop "the swapped heads were not found: verify ended with $code, not 1"

heading "5. the same run as a picture, and as a film of its first steps"
show kvscope-viewer --render "$out/overview.png" --scenario "$scenario" --step 6 --select 3:37
show kvscope-viewer --render "$out/first_steps.gif" --scenario "$scenario" --to 8 --fps 2 --size 1200x750
echo
ls -sh "$out/overview.png" "$out/first_steps.gif"

heading "6. the CUDA kernels of the paged path, on a GPU that is made of C++"
show kvscope kernels verify --small

heading "done"
cat <<EOF
programs  $kvscope
          $viewer
          --help lists what each can do; docs/00_start_here.md and docs/09_the_viewer.md walk through it
pictures  $PWD/$out/overview.png
          $PWD/$out/first_steps.gif

To watch this run: $viewer $scenario
Next: change page_size in $scenario and run step 2 again: the row moves, the token does not.
EOF

# Only on a terminal: a script that runs this expects it to end.
if [ -t 1 ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
  echo "The viewer is open on this run: close its window to come back."
  "$viewer" "$scenario" || true
fi
