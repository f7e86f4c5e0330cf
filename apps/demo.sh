#!/bin/bash
# From a bare Debian 12 to an explained address and a verified golden output: installs what is missing, builds kvscope, runs
# its main job on a small scenario. A second run installs nothing and rebuilds nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
. apps/packages.sh

[ $# -eq 0 ] || stop "takes no arguments"
scenario=apps/scenarios/first_light.json
out=build/demo
kvscope=build/release/apps/kvscope/kvscope

# show COMMAND...: as one would type it, then what it prints.
show() {
  printf '\n$ %s\n' "$*"
  "$kvscope" "${@:2}"
}

heading "packages"
# shellcheck disable=SC2086 # one word a package
install_missing $core_packages $viewer_packages

heading "build"
mkdir -p build "$out"
# The tests need packages that the demo does not: they are left out unless tests/run.sh has put them in.
tests=OFF
grep -qs '^KVSCOPE_BUILD_TESTS:BOOL=ON$' build/release/CMakeCache.txt && tests=ON
cmake --preset release -D KVSCOPE_BUILD_TESTS=$tests >build/release.configure.log 2>&1 || {
  tail -n 30 build/release.configure.log >&2
  stop "configuring failed (above)"
}
cmake --build --preset release --target kvscope -j "$(nproc)"

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

heading "done"
cat <<EOF
The program is $kvscope; '$kvscope --help' lists its commands, docs/00_start_here.md walks through them.
Next: change page_size in $scenario and run step 2 again: the row moves, the token does not.
EOF
