/* Ranges over NVTX 3, which consists of headers only. Its first call loads the tool that
 * NVTX_INJECTION64_PATH names. Without a tool every later call does nothing. */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

#include "platform/ranges/ranges.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain;

static void make_domain(void) { domain = nvtxDomainCreateA("strata"); }

void strata_range_begin(strata_range_t range, uint64_t bytes) {
    static const char *const names[STRATA_RANGES] = {
#define STRATA_RANGE_NAME(range, name) name,
        STRATA_RANGE_MAP(STRATA_RANGE_NAME)
#undef STRATA_RANGE_NAME
    };
    pthread_once(&once, make_domain);
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
                                        .messageType = NVTX_MESSAGE_TYPE_ASCII};
    attributes.payload.ullValue = bytes;
    attributes.message.ascii = names[range];
    nvtxDomainRangePushEx(domain, &attributes);
}

void strata_range_end(void) { nvtxDomainRangePop(domain); }

bool strata_ranges_are_built(void) { return true; }
