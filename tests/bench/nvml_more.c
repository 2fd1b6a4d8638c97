/* What nvitop asks of NVML and ranktop does not, so that its start is no list of errors: fixed answers. */
typedef void Device;
#define EXPORT __attribute__((visibility("default")))
enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

static int answer(int *where, int value) { *where = value; return SUCCESS; }

EXPORT int nvmlSystemGetCudaDriverVersion(int *version) { return answer(version, 13000); }
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version) { return answer(version, 13000); }
EXPORT int nvmlDeviceGetComputeMode(Device *device, int *mode) { return answer(mode, 0); }
EXPORT int nvmlDeviceGetDisplayActive(Device *device, int *active) { return answer(active, 0); }
EXPORT int nvmlDeviceGetPerformanceState(Device *device, int *state) { return answer(state, 0); }
EXPORT int nvmlDeviceGetPersistenceMode(Device *device, int *mode) { return answer(mode, 1); }
EXPORT int nvmlDeviceGetPowerManagementLimit(Device *device, int *milliwatts) { return answer(milliwatts, 700000); }
EXPORT int nvmlDeviceGetDriverModel(Device *device, int *now, int *next) { return NOT_SUPPORTED; }
EXPORT int nvmlDeviceGetFanSpeed(Device *device, int *percent) { return NOT_SUPPORTED; }
EXPORT int nvmlDeviceGetEncoderUtilization(Device *device, int *percent, int *period) {
    return answer(percent, 0) + answer(period, 167000);
}
EXPORT int nvmlDeviceGetDecoderUtilization(Device *device, int *percent, int *period) {
    return answer(percent, 0) + answer(period, 167000);
}
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(Device *device, int *count, void *found) { return answer(count, 0); }
EXPORT int nvmlDeviceGetProcessUtilization(Device *device, void *found, int *count, unsigned long long since) {
    *count = 0;
    return NOT_FOUND;
}
