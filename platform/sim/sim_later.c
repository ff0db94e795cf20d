#include "platform/sim/sim_internal.h"
#define U strata_fail(STRATA_E_UNSUPPORTED, SIM_CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED: not simulated")
strata_status_t sim_capture_refuse(sim_stream_t *s, const char *w) { (void)s; (void)w; return U; }
strata_status_t sim_capture_refuse_device(sim_device_t *d, const char *w) { (void)d; (void)w; return U; }
strata_status_t sim_capture_record(sim_stream_t *s, sim_event_t *e) { (void)s; (void)e; return U; }
strata_status_t sim_capture_wait(sim_stream_t *s, const sim_event_t *e) { (void)s; (void)e; return U; }
strata_status_t sim_capture_work(sim_stream_t *s, uint64_t d) { (void)s; (void)d; return U; }
strata_status_t sim_capture_fill(sim_stream_t *s, strata_address_t a, uint8_t b, uint64_t z) { (void)s; (void)a; (void)b; (void)z; return U; }
void sim_capture_stream_gone(sim_stream_t *s) { (void)s; }
void sim_captures_invalidate(sim_device_t *d, bool b) { (void)d; (void)b; }
void sim_captures_end(sim_device_t *d) { (void)d; }
strata_status_t sim_pools_init(sim_device_t *d) { (void)d; return STRATA_OK; }
void sim_pools_end(sim_device_t *d) { (void)d; }
void sim_pools_synchronised(sim_device_t *d) { (void)d; }
bool sim_pool_allows(const sim_region_t *r, const sim_device_t *d) { (void)r; (void)d; return false; }
#define OP(name, ...) strata_status_t sim_op_##name(strata_device_t *d, __VA_ARGS__) { (void)d;
OP(malloc_async, strata_handle_t p, uint64_t z, strata_handle_t s, strata_address_t *a) (void)p; (void)z; (void)s; (void)a; return U; }
OP(free_async, strata_address_t a, strata_handle_t s) (void)a; (void)s; return U; }
OP(pool_create, uint64_t m, bool s, strata_handle_t *p) (void)m; (void)s; (void)p; return U; }
OP(pool_destroy, strata_handle_t p) (void)p; return U; }
OP(pool_default, strata_handle_t *p) (void)p; return U; }
OP(pool_set, strata_handle_t p, strata_pool_attribute_t a, uint64_t v) (void)p; (void)a; (void)v; return U; }
OP(pool_get, strata_handle_t p, strata_pool_attribute_t a, uint64_t *v) (void)p; (void)a; (void)v; return U; }
OP(pool_trim, strata_handle_t p, uint64_t v) (void)p; (void)v; return U; }
OP(pool_set_access, strata_handle_t p, uint32_t v) (void)p; (void)v; return U; }
OP(capture_begin, strata_handle_t p, strata_capture_mode_t v) (void)p; (void)v; return U; }
OP(capture_end, strata_handle_t p, strata_handle_t *v) (void)p; (void)v; return U; }
OP(capture_status, strata_handle_t p, strata_capture_status_t *v, uint64_t *i) (void)p; (void)i; *v = STRATA_CAPTURE_NONE; return STRATA_OK; }
OP(graph_on_destroy, strata_handle_t p, void (*f)(void *), void *v) (void)p; (void)v; (void)f; return U; }
OP(graph_launch, strata_handle_t p, strata_handle_t v) (void)p; (void)v; return U; }
OP(graph_destroy, strata_handle_t p) (void)p; return U; }
OP(can_access_peer, uint32_t p, bool *c) (void)p; (void)c; return U; }
OP(enable_peer, uint32_t p) (void)p; return U; }
OP(export_memory, strata_physical_t p, int *c) (void)p; (void)c; return U; }
OP(import_memory, int p, strata_physical_t *c) (void)p; (void)c; return U; }
