/* Injected faults, and the device's own sticky failure. */
#include "platform/host/host_memory.h"
#include "platform/sim/world/sim_internal.h"

static strata_status_t fail_lost(const sim_device_t *device) {
    if (device->lost_code == SIM_CU_ILLEGAL_ADDRESS)
        return strata_fail(STRATA_E_DEVICE_LOST, SIM_CU_ILLEGAL_ADDRESS,
                           "CUDA_ERROR_ILLEGAL_ADDRESS: work accessed memory that it must not access");
    return strata_fail(STRATA_E_DEVICE_LOST, device->lost_code, "CUDA_ERROR_LAUNCH_FAILED: the device is lost by injection");
}

static strata_status_t answer(sim_device_t *device, strata_device_call_t call, strata_status_t status) {
    const char *name = strata_device_call_name(call);
    if (status == STRATA_E_DEVICE_LOST) {
        sim_mark_lost(device, SIM_CU_LAUNCH_FAILED);
        return fail_lost(device);
    }
    if (status == STRATA_E_NO_MEMORY)
        return strata_fail(status, SIM_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY: %s failed by injection", name);
    return strata_fail(status, SIM_CU_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM: %s failed by injection", name);
}

static void forget(sim_device_t *device, size_t index) {
    device->fault_count--;
    for (size_t i = index; i < device->fault_count; i++) device->faults[i] = device->faults[i + 1];
}

strata_status_t sim_inject_fault(sim_device_t *device, strata_device_call_t call) {
    device->calls++;
    if (device->lost_code) return fail_lost(device);
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < device->fault_count;) {
        sim_fault_t *fault = &device->faults[i];
        bool meant = fault->call == STRATA_DEVICE_CALLS || fault->call == call;
        if (!meant || (fault->left && --fault->left)) {
            i++;
            continue;
        }
        if (status == STRATA_OK) status = fault->status;
        if (fault->onward) i++;
        else forget(device, i);
    }
    return status == STRATA_OK ? STRATA_OK : answer(device, call, status);
}

void sim_mark_lost(sim_device_t *device, int64_t code) {
    if (!device->lost_code) device->lost_code = code;
}

strata_status_t sim_out_of_memory(sim_device_t *device, const char *what, uint64_t size) {
    uint64_t used = sim_used(device);
    return strata_fail(STRATA_E_NO_MEMORY, SIM_CU_OUT_OF_MEMORY,
                       "CUDA_ERROR_OUT_OF_MEMORY: %s of %llu bytes on %s:%u (capacity %llu, used %llu)", what,
                       (unsigned long long)size, device->base.name, device->base.ordinal, (unsigned long long)device->capacity,
                       (unsigned long long)used);
}

strata_status_t sim_no_host_memory(void) {
    char bound[96];
    return strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory for the simulated device%s",
                       strata_host_bound(bound, sizeof bound));
}

strata_status_t strata_sim_fail(strata_device_t *base, strata_device_call_t call, uint64_t k, bool onward, strata_status_t status) {
    if (k == 0 || (unsigned)call > STRATA_DEVICE_CALLS)
        return strata_fail(STRATA_E_INVALID, 0, "a fault needs k of at least 1 and a kind of call");
    if (status != STRATA_E_NO_MEMORY && status != STRATA_E_DEVICE && status != STRATA_E_DEVICE_LOST)
        return strata_fail(STRATA_E_INVALID, 0, "a fault cannot return %s", strata_status_name(status));
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    bool room = device->fault_count < SIM_FAULTS_MAX;
    if (room) device->faults[device->fault_count++] = (sim_fault_t){.call = call, .left = k, .onward = onward, .status = status};
    strata_unlock(&device->world->lock);
    return room ? STRATA_OK : strata_fail(STRATA_E_LIMIT, 0, "at most %d faults at once", SIM_FAULTS_MAX);
}

void strata_sim_clear_faults(strata_device_t *base) {
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    device->fault_count = 0;
    device->lost_code = 0;
    strata_unlock(&device->world->lock);
}

uint64_t strata_sim_calls(strata_device_t *base) {
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    uint64_t calls = device->calls;
    strata_unlock(&device->world->lock);
    return calls;
}
