#!/bin/sh
# Delete from a virtual environment what no test takes of its largest wheels: trim.sh FOLDER
# 700 MB go: Triton's tools for NVIDIA's GPUs, hip-python's bindings of libraries that the
# emulated GPU has not, and zig's headers of systems other than this one.
set -eu
packages=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

cd "$packages"
rm -rf triton/backends/nvidia/bin triton/backends/nvidia/lib
for library in blas fft rand solver sparse; do
    rm -f "hip/hip$library".* "hip/chip$library".*
done
rm -f hip/rccl.* hip/crccl.*
if [ "$(uname)" = Linux ] && [ -d ziglang/lib/libc/include ]; then
    rm -rf ziglang/lib/libc/mingw
    for target in ziglang/lib/libc/include/*; do
        case $target in
            *-linux-any | *-linux-gnu | */generic-glibc) ;;
            *) rm -rf "$target" ;;
        esac
    done
fi
