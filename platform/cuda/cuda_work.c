/* A kernel that keeps a stream busy. It serves tests and measurements, and is never part of an
 * allocator's work. */
#include "platform/cuda/cuda_device.h"

/* Spins until the device's nanosecond clock has advanced by `duration`. */
static const char spin_text[] = ".version 7.0\n"
                                ".target sm_70\n"
                                ".address_size 64\n"
                                ".visible .entry strata_spin(.param .u64 duration)\n"
                                "{\n"
                                "    .reg .u64 %t<4>;\n"
                                "    .reg .pred %more;\n"
                                "    ld.param.u64 %t0, [duration];\n"
                                "    mov.u64 %t1, %globaltimer;\n"
                                "again:\n"
                                "    mov.u64 %t2, %globaltimer;\n"
                                "    sub.u64 %t3, %t2, %t1;\n"
                                "    setp.lt.u64 %more, %t3, %t0;\n"
                                "    @%more bra again;\n"
                                "    ret;\n"
                                "}\n";

/* Called with slow_lock held. */
static strata_status_t load_spin(strata_cuda_device_t *device) {
    if (device->spin) return STRATA_OK;
    CUmodule module = NULL;
    CUfunction spin = NULL;
    strata_status_t status = CUDA_CALL(device, ModuleLoadData, &module, spin_text);
    if (status != STRATA_OK) return status;
    status = CUDA_CALL(device, ModuleGetFunction, &spin, module, "strata_spin");
    if (status != STRATA_OK) {
        device->driver->ModuleUnload(module);
        return status;
    }
    device->spin_module = module;
    device->spin = spin;
    return STRATA_OK;
}

/* This kernel touches no memory. Only the simulator's checker uses the accesses. */
strata_status_t strata_cuda_work(strata_device_t *self, strata_handle_t stream, uint64_t duration_ns,
                                 const strata_access_t *accesses, size_t count) {
    (void)accesses;
    (void)count;
    if (!self->capabilities.work) return strata_fail(STRATA_E_UNSUPPORTED, 0, "gpu:%u cannot run Strata's kernels", self->ordinal);
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter_stream(self, STRATA_CUDA_RELAXED, stream, &scope);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = scope.device;
    strata_lock(&device->slow_lock);
    status = load_spin(device);
    strata_unlock(&device->slow_lock);
    void *parameters[] = {&duration_ns};
    if (status == STRATA_OK)
        status = STREAM_CALL(device, stream, LaunchKernel, device->spin, 1, 1, 1, 1, 1, 1, 0, (CUstream)stream, parameters, NULL);
    return strata_cuda_exit(&scope, status);
}
