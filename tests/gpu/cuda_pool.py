"""Run as a program: a host pool as SGLang's, registered with CUDA through the driver's own library, and device memory.

Arguments: bytes of the pool, bytes on the device. Prints one JSON object when all is there; then copies the pool to the
device as often as each line of its input says, and prints `done`.
"""

import ctypes
import json
import mmap
import os
import sys

MAP_POPULATE = 0x8000
REGISTER_PORTABLE = 1


def main() -> None:
    pool_bytes, device_bytes = int(sys.argv[1]), int(sys.argv[2])
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    pool = mmap.mmap(-1, pool_bytes, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | MAP_POPULATE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pool))
    registered = cuda.cuMemHostRegister_v2(ctypes.c_void_p(address), ctypes.c_size_t(pool_bytes), REGISTER_PORTABLE)
    check(registered, "cuMemHostRegister")
    check(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(device_bytes)), "cuMemAlloc")
    print(json.dumps({"pid": os.getpid(), "address": address}), flush=True)
    size = ctypes.c_size_t(min(pool_bytes, device_bytes))
    for line in sys.stdin:
        for _ in range(int(line)):
            check(cuda.cuMemcpyHtoD_v2(pointer, ctypes.c_void_p(address), size), "cuMemcpyHtoD")
        print("done", flush=True)


def check(code: int, call: str) -> None:
    if code:
        sys.exit(f"{call}: CUDA error {code}")


if __name__ == "__main__":
    main()
