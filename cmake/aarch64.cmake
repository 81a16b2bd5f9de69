# Cross build for 64-bit Arm; its tests run under qemu-aarch64 (Debian: gcc-aarch64-linux-gnu, qemu-user).
#   cmake -G Ninja -B build/aarch64 -S . -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake && ninja -C build/aarch64 && ctest --test-dir build/aarch64 -L kernels
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;/usr/aarch64-linux-gnu)
