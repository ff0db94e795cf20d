/* Keeps the allocator's own work out of the program's captures. Work in the order of a captured stream
 * would become a node of the program's graph. It would not be done now. Every launch would repeat it, on
 * memory that may belong to another allocation by then. */
#include "allocation/domain/domain.h"

strata_status_t strata_domain_refuse_captured(strata_domain_t *domain, strata_stream_t stream) {
    strata_capture_status_t capture = STRATA_CAPTURE_NONE;
    uint64_t id;
    if (!domain->device->capabilities.capture) return STRATA_OK;
    strata_status_t status = strata_device_capture_status(domain->device, stream, &capture, &id);
    if (status != STRATA_OK || capture == STRATA_CAPTURE_NONE) return status;
    return strata_fail(STRATA_E_CAPTURE, 0,
                       "the stream is being captured, so the allocator's calls would become part of the graph");
}

strata_status_t strata_domain_fill(strata_domain_t *domain, uint64_t address, uint8_t byte, uint64_t size, strata_stream_t stream) {
    strata_status_t status = strata_domain_refuse_captured(domain, stream);
    return status == STRATA_OK ? strata_device_fill(domain->device, address, byte, size, stream) : status;
}
