#!/bin/bash
# Gradescope runs this once when the autograder's image is built. Zip it with run_autograder, the secret, and an installed kvscope:
#   cmake --install build/release --prefix kvscope && zip -r autograder.zip setup.sh run_autograder secret kvscope
set -e
apt-get update
apt-get install -y --no-install-recommends g++ bubblewrap libfmt9 libsqlite3-0 libzip4
