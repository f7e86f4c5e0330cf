#!/bin/bash
# Gradescope runs this once when the autograder's image is built. Zip it with run_autograder, the secret, and an installed kvscope:
#   cmake --install build/release --prefix kvscope && zip -r autograder.zip setup.sh run_autograder secret kvscope
# Choose a base image that is at least as new as the system on which kvscope was built: Ubuntu 24.04 for a build on Debian 12.
set -e
CUDA_LABS=${CUDA_LABS:-no}  # yes: also NVRTC, which compiles labs 09 to 13 without the CUDA toolkit
TRITON=${TRITON:-no}  # yes: also Triton, in which labs 09 and 13 may be written
apt-get update
apt-get install -y --no-install-recommends g++ bubblewrap python3 libfmt9 libsqlite3-0 libzip4
if [ "$CUDA_LABS" = yes ]; then
  apt-get install -y --no-install-recommends python3-pip
  python3 -m pip install --break-system-packages nvidia-cuda-nvrtc-cu12
fi
if [ "$TRITON" = yes ]; then
  apt-get install -y --no-install-recommends python3-pip
  python3 -m pip install --break-system-packages triton
fi
