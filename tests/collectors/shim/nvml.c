/* A stand-in for libnvidia-ml.so.1: what it answers is read from a text file at every call.
 *
 * The file named by RANKTOP_FAKE_NVML holds lines `key value`. A key is `name` for the whole machine or `GPU.name` for
 * one GPU; a MIG device of GPU 2 with index 1 is `2m1.name`. Unknown keys take the default in the code below.
 *   init, count                      return code of nvmlInit, number of GPUs
 *   wait 15                          return code of nvmlEventSetWait
 *   0.handle 15                      return code of nvmlDeviceGetHandleByIndex
 *   0.error 15                       return code of every call on the device
 *   0.memory 3, 0.processes 4, ...   return code of one call
 *   0.hang 1                         every call on the device blocks while the line is there
 *   0.used, 0.total, 0.reserved      MiB
 *   0.pids 100:5,101:-1              pid and MiB of each process, -1 for not available
 *   0.mig 2                          MIG mode on, with so many devices
 *   0.xid 79                         one XID event waits; told once for every change of the number
 * Built with -DWITHOUT_NEW the symbols of newer drivers are missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int nvmlReturn_t;
enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMED_OUT = 10 };
#define EXPORT __attribute__((visibility("default")))
#define MIB 1048576ULL
#define GPUS 64
#define MIGS 8

typedef struct { int gpu; int mig; char name[16]; } Device;
static Device devices[GPUS][MIGS + 1];

static int lookup(const char *key, char *value, size_t size) {
    const char *path = getenv("RANKTOP_FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[4096];
    int found = 0;
    if (!file) return 0;
    while (!found && fgets(line, sizeof line, file)) {
        char *space = strchr(line, ' ');
        if (!space) continue;
        *space = 0;
        if (strcmp(line, key) == 0) {
            space[1 + strcspn(space + 1, "\n")] = 0;
            snprintf(value, size, "%s", space + 1);
            found = 1;
        }
    }
    fclose(file);
    return found;
}

static long long number(const char *key, long long otherwise) {
    char value[64];
    return lookup(key, value, sizeof value) ? atoll(value) : otherwise;
}

static long long of(Device *device, const char *name, long long otherwise) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", device->name, name);
    return number(key, otherwise);
}

static nvmlReturn_t enter(Device *device, const char *call) {
    while (of(device, "hang", 0)) usleep(20000);
    long long error = of(device, "error", 0);
    return error ? (nvmlReturn_t)error : (nvmlReturn_t)of(device, call, 0);
}
#define ENTER(device, call) do { nvmlReturn_t r_ = enter(device, call); if (r_) return r_; } while (0)

static Device *device_at(int gpu, int mig) {
    Device *device = &devices[gpu][mig + 1];
    device->gpu = gpu;
    device->mig = mig;
    if (mig < 0) snprintf(device->name, sizeof device->name, "%d", gpu);
    else snprintf(device->name, sizeof device->name, "%dm%d", gpu, mig);
    return device;
}

static int sessions;

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    nvmlReturn_t code = (nvmlReturn_t)number("init", 0);
    if (!code) sessions++;
    return code;
}
EXPORT nvmlReturn_t nvmlShutdown(void) {
    if (!sessions) return 1;
    sessions--;
    return SUCCESS;
}
EXPORT int fake_sessions(void) { return sessions; }
EXPORT const char *nvmlErrorString(nvmlReturn_t code) { return "error of the stand-in"; }
EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
    snprintf(version, length, "590.48.01");
    return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    if (number("uninitialized", 0)) return 1;
    *count = (unsigned)number("count", 8);
    return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    if (index >= GPUS) return INVALID_ARGUMENT;
    *device = device_at((int)index, -1);
    ENTER(*device, "handle");
    return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetUUID(Device *device, char *uuid, unsigned length) {
    ENTER(device, "uuid");
    snprintf(uuid, length, "%s-0000-%s", device->mig < 0 ? "GPU" : "MIG", device->name);
    return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetName(Device *device, char *name, unsigned length) {
    ENTER(device, "name");
    snprintf(name, length, "NVIDIA H200");
    return SUCCESS;
}

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} Pci;
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(Device *device, Pci *pci) {
    ENTER(device, "pci");
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", 0x1A + 0x10 * device->gpu);
    return SUCCESS;
}

typedef struct { unsigned long long total, free, used; } MemoryV1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } MemoryV2;
static void memory_of(Device *device, MemoryV2 *memory) {
    memory->total = MIB * (unsigned long long)of(device, "total", device->mig < 0 ? 143771 : 18000);
    memory->reserved = MIB * (unsigned long long)of(device, "reserved", 600);
    memory->used = MIB * (unsigned long long)of(device, "used", 1000);
    memory->free = memory->total - memory->reserved - memory->used;
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(Device *device, MemoryV1 *memory) {
    MemoryV2 newer;
    ENTER(device, "memory");
    memory_of(device, &newer);
    memory->total = newer.total;
    memory->free = newer.free;
    memory->used = newer.used + newer.reserved;
    return SUCCESS;
}
#ifndef WITHOUT_NEW
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *memory) {
    ENTER(device, "memory");
    if (memory->version != (sizeof *memory | 2 << 24)) return INVALID_ARGUMENT;
    memory_of(device, memory);
    return SUCCESS;
}
#endif

typedef struct { unsigned gpu, memory; } Utilization;
EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(Device *device, Utilization *rates) {
    ENTER(device, "utilization");
    rates->gpu = (unsigned)of(device, "busy", 72);
    rates->memory = 31;
    return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetTemperature(Device *device, unsigned sensor, unsigned *celsius) {
    ENTER(device, "temperature");
    *celsius = 55;
    return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(Device *device, unsigned *milliwatts) {
    ENTER(device, "power");
    *milliwatts = 412500;
    return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(Device *device, unsigned type, unsigned counter, unsigned long long *n) {
    ENTER(device, "ecc");
    *n = (unsigned long long)of(device, "uncorrected", 0);
    return SUCCESS;
}
#ifndef WITHOUT_NEW
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(Device *device, unsigned long long *reasons) {
    ENTER(device, "clocks");
    *reasons = 4;
    return SUCCESS;
}
#endif
EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(Device *device, unsigned words, unsigned long long *set, unsigned scope) {
    ENTER(device, "affinity");
    memset(set, 0, words * sizeof *set);
    set[0] = 1ULL << of(device, "node", device->gpu / 4);
    return SUCCESS;
}
typedef struct { unsigned long long total, free, used; } Bar1;
EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(Device *device, Bar1 *bar1) {
    ENTER(device, "bar1");
    bar1->total = 262144 * MIB;
    bar1->used = 5 * MIB;
    bar1->free = bar1->total - bar1->used;
    return SUCCESS;
}

typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } Process;
static nvmlReturn_t processes_of(Device *device, unsigned *count, Process *found) {
    char key[64], value[2048] = "", *save = NULL;
    unsigned room = *count, n = 0;
    ENTER(device, "processes");
    snprintf(key, sizeof key, "%s.pids", device->name);
    lookup(key, value, sizeof value);
    for (char *item = strtok_r(value, ",", &save); item; item = strtok_r(NULL, ",", &save), n++) {
        long long mebibytes = strchr(item, ':') ? atoll(strchr(item, ':') + 1) : 0;
        if (!found || n >= room) continue;
        found[n].pid = (unsigned)atoll(item);
        found[n].used = mebibytes < 0 ? ~0ULL : MIB * (unsigned long long)mebibytes;
        found[n].gpu_instance = device->mig < 0 ? 0xFFFFFFFF : (unsigned)(device->mig + 7);
        found[n].compute_instance = device->mig < 0 ? 0xFFFFFFFF : 0;
    }
    *count = n;
    return n > room || (n && !found) ? INSUFFICIENT_SIZE : SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(Device *device, unsigned *count, Process *found) {
    return processes_of(device, count, found);
}
#ifndef WITHOUT_NEW
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *found) {
    return processes_of(device, count, found);
}
#endif

typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    int type;
    nvmlReturn_t code;
    union { unsigned small; unsigned long long large; } value;
} Field;
EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(Device *device, int count, Field *fields) {
    ENTER(device, "fields");
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "field%u", fields[i].field);
        long long value = of(device, name, fields[i].field >= 144 && fields[i].field <= 145 ? 0 : 1000000);
        fields[i].type = fields[i].field == 144 || fields[i].field == 145 ? 1 : (int)of(device, "fieldtype", 3);
        fields[i].code = value < 0 ? NOT_SUPPORTED : SUCCESS;
        fields[i].value.large = (unsigned long long)value;
        if ((fields[i].field == 138 || fields[i].field == 139) && fields[i].scope != 0xFFFFFFFF) fields[i].code = 2;
    }
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    ENTER(device, "migmode");
    *current = *pending = of(device, "mig", 0) > 0;
    return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *count) {
    *count = MIGS - 1;
    return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **mig) {
    if ((long long)index >= of(device, "mig", 0)) return NOT_FOUND;
    *mig = device_at(device->gpu, (int)index);
    return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(Device *device, unsigned *id) {
    *id = (unsigned)(device->mig + 7);
    return device->mig < 0 ? NOT_SUPPORTED : SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(Device *device, unsigned *id) {
    *id = 0;
    return device->mig < 0 ? NOT_SUPPORTED : SUCCESS;
}

typedef struct { Device *device; unsigned long long type, data; unsigned gpu_instance, compute_instance; } EventData;
static int event_set;
static long long told[GPUS];
EXPORT nvmlReturn_t nvmlEventSetCreate(void **set) {
    *set = &event_set;
    return (nvmlReturn_t)number("events", 0);
}
EXPORT nvmlReturn_t nvmlEventSetFree(void *set) { return SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(Device *device, unsigned long long types, void *set) {
    ENTER(device, "register");
    return SUCCESS;
}
EXPORT nvmlReturn_t nvmlEventSetWait_v2(void *set, EventData *data, unsigned milliseconds) {
    for (unsigned waited = 0; waited <= milliseconds; waited += 20, usleep(20000)) {
        if (number("wait", 0)) return (nvmlReturn_t)number("wait", 0);
        for (int gpu = 0; gpu < (int)number("count", 8); gpu++) {
            long long xid = of(device_at(gpu, -1), "xid", 0);
            if (xid == told[gpu]) continue;
            told[gpu] = xid;
            memset(data, 0, sizeof *data);
            data->device = device_at(gpu, -1);
            data->type = 8;
            data->data = (unsigned long long)xid;
            return SUCCESS;
        }
    }
    return TIMED_OUT;
}
