/* The part of NVML's interface that Labwright and common monitors use, answering from a text file.
 *
 * gcc -shared -fPIC -O2 -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 fake_nvml.c
 *
 * LABWRIGHT_SIM_STATE names the file; it is read again on every call, so that a test can change a card while
 * somebody looks. Lines, written by gpus.py:
 *   init CODE                       what nvmlInit answers (0: all is well)
 *   hang 0|1                        1: every call waits until the file says 0 again
 *   driver VERSION
 *   card INDEX LOST BUS TOTAL_MB USED_MB UTILIZATION UUID NAME...
 *   process INDEX PID MB
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, NOT_FOUND = 6, TOO_SMALL = 7, DRIVER_NOT_LOADED = 9, LOST = 15, UNKNOWN = 999 };
enum { MAX_CARDS = 64, MAX_PROCESSES = 256 };

typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process_info;
typedef struct { unsigned long long total, free, used; } memory_v1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { char legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char id[32]; } pci_info;

typedef struct {
    int lost, bus, utilization, processes;
    unsigned long long total_mb, used_mb;
    char uuid[96], name[96];
    process_info process[MAX_PROCESSES];
} card;

typedef struct { int init, hang, cards; char driver[64]; card card[MAX_CARDS]; } state;

static state now;
static char handles[MAX_CARDS]; /* a handle is the address of its card's place here */

static void read_line(const char *line) {
    int index, lost, bus, used, pid, at = 0;
    unsigned long long total, mb;
    char uuid[96];
    if (sscanf(line, "init %d", &now.init) == 1 || sscanf(line, "hang %d", &now.hang) == 1) return;
    if (sscanf(line, "driver %63s", now.driver) == 1) return;
    if (sscanf(line, "card %d %d %d %llu %llu %d %95s %n", &index, &lost, &bus, &total, &mb, &used, uuid, &at) == 7
        && index >= 0 && index < MAX_CARDS) {
        card *c = &now.card[index];
        c->lost = lost; c->bus = bus; c->total_mb = total; c->used_mb = mb; c->utilization = used;
        snprintf(c->uuid, sizeof c->uuid, "%s", uuid);
        snprintf(c->name, sizeof c->name, "%s", line + at);
        c->name[strcspn(c->name, "\n")] = 0;
        if (index >= now.cards) now.cards = index + 1;
    } else if (sscanf(line, "process %d %d %llu", &index, &pid, &mb) == 3 && index >= 0 && index < now.cards) {
        card *c = &now.card[index];
        if (c->processes == MAX_PROCESSES) return;
        c->process[c->processes++] = (process_info){.pid = pid, .used = mb << 20, .gpu_instance = -1, .compute_instance = -1};
    }
}

static int load(void) {
    do {
        const char *path = getenv("LABWRIGHT_SIM_STATE");
        FILE *file = path ? fopen(path, "r") : NULL;
        char line[512];
        if (!file) return DRIVER_NOT_LOADED;
        memset(&now, 0, sizeof now);
        while (fgets(line, sizeof line, file)) read_line(line);
        fclose(file);
        if (now.hang) usleep(20000);
    } while (now.hang);
    return now.init;
}

static int find(void *handle, card **found) {
    int code = load();
    long index = (char *)handle - handles;
    if (code) return code;
    if (index < 0 || index >= now.cards) return INVALID;
    *found = &now.card[index];
    return (*found)->lost ? LOST : OK;
}

static int copy(char *to, unsigned size, const char *text) {
    if (strlen(text) >= size) return TOO_SMALL;
    strcpy(to, text);
    return OK;
}

#define CARD(handle) card *c = NULL; int code = find(handle, &c); if (code) return code

int nvmlInitWithFlags(unsigned flags) { (void)flags; return load(); }
int nvmlInit_v2(void) { return load(); }
int nvmlInit(void) { return load(); }
int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int code) {
    switch (code) {
    case OK: return "Success";
    case INVALID: return "Invalid Argument";
    case NOT_FOUND: return "Not Found";
    case TOO_SMALL: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case LOST: return "GPU is lost";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *to, unsigned size) { int code = load(); return code ? code : copy(to, size, now.driver); }
int nvmlSystemGetNVMLVersion(char *to, unsigned size) { return copy(to, size, "13.580.00"); }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13000; return OK; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 13000; return OK; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    int code = load();
    *count = now.cards;
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    int code = load();
    if (code) return code;
    if ((int)index >= now.cards) return INVALID;
    *handle = &handles[index];
    return now.card[index].lost ? LOST : OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    int code = load();
    for (int index = 0; !code && index < now.cards; index++)
        if (!strcmp(uuid, now.card[index].uuid)) return nvmlDeviceGetHandleByIndex_v2(index, handle);
    return code ? code : NOT_FOUND;
}

int nvmlDeviceGetIndex(void *handle, unsigned *index) { CARD(handle); *index = c - now.card; return OK; }
int nvmlDeviceGetMinorNumber(void *handle, unsigned *minor) { return nvmlDeviceGetIndex(handle, minor); }
int nvmlDeviceGetName(void *handle, char *to, unsigned size) { CARD(handle); return copy(to, size, c->name); }
int nvmlDeviceGetUUID(void *handle, char *to, unsigned size) { CARD(handle); return copy(to, size, c->uuid); }

int nvmlDeviceGetPciInfo_v3(void *handle, pci_info *info) {
    CARD(handle);
    memset(info, 0, sizeof *info);
    info->bus = c->bus;
    snprintf(info->legacy, sizeof info->legacy, "0000:%02X:00.0", c->bus & 255);
    snprintf(info->id, sizeof info->id, "00000000:%02X:00.0", c->bus & 255);
    return OK;
}

int nvmlDeviceGetMemoryInfo(void *handle, memory_v1 *memory) {
    CARD(handle);
    memory->total = c->total_mb << 20;
    memory->used = c->used_mb << 20;
    memory->free = memory->total - memory->used;
    return OK;
}

int nvmlDeviceGetMemoryInfo_v2(void *handle, memory_v2 *memory) {
    CARD(handle);
    memory->total = c->total_mb << 20;
    memory->reserved = 0;
    memory->used = c->used_mb << 20;
    memory->free = memory->total - memory->used;
    return OK;
}

int nvmlDeviceGetUtilizationRates(void *handle, utilization *rates) {
    CARD(handle);
    rates->gpu = c->utilization;
    rates->memory = c->total_mb ? c->used_mb * 100 / c->total_mb : 0;
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process_info *to) {
    CARD(handle);
    unsigned room = *count;
    *count = c->processes;
    if (!c->processes) return OK;
    if (!to || room < *count) return TOO_SMALL;
    memcpy(to, c->process, *count * sizeof *to);
    return OK;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned *count, process_info *to) {
    CARD(handle);
    (void)to;
    *count = 0;
    return OK;
}

int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *celsius) { CARD(handle); (void)sensor; *celsius = 30 + c->utilization / 2; return OK; }
int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) { CARD(handle); *milliwatts = 60000 + 6000 * c->utilization; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *milliwatts) { CARD(handle); *milliwatts = 700000; return OK; }
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) { CARD(handle); *major = 9; *minor = 0; return OK; }
