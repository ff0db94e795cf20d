/* Where NVTX's headers were not found there is no tool, and no range. */
#include "tests/ranges/tool.h"

#include <string.h>

#include "platform/lock.h"

enum { RANGES = 4096 };

static tool_range_t ranges[RANGES];
static size_t count, depth;
static char domain_name[32];

void tool_clear(void) { count = 0; }

size_t tool_open(void) { return depth; }

const char *tool_domain(void) { return domain_name; }

const tool_range_t *tool_first(const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(ranges[i].name, name) == 0) return &ranges[i];
    return NULL;
}

size_t tool_count(const char *name) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) found += strcmp(ranges[i].name, name) == 0;
    return found;
}

#ifdef STRATA_TEST_NVTX
/* NVTX finds a tool that is linked by this name, and declares it only where it is not defined. */
extern int (*InitializeInjectionNvtx2_fnptr)(const void *(*)(uint32_t));
#define NVTX_STATIC_INJECTION_IMPL
#include <nvtx3/nvToolsExt.h>

static nvtxDomainHandle_t NVTX_API create_domain(const char *name) {
    strncpy(domain_name, name, sizeof domain_name - 1);
    return (nvtxDomainHandle_t)domain_name;
}

static int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes) {
    (void)domain;
    strata_lock_assert_none("a tool that may wait");
    if (count < RANGES) {
        tool_range_t *range = &ranges[count++];
        memset(range, 0, sizeof *range);
        strncpy(range->name, attributes->message.ascii, sizeof range->name - 1);
        range->bytes = attributes->payload.ullValue;
        range->depth = depth;
    }
    return (int)depth++;
}

static int NVTX_API pop(nvtxDomainHandle_t domain) {
    (void)domain;
    strata_lock_assert_none("a tool that may wait");
    return (int)--depth;
}

static int NVTX_API attach(NvtxGetExportTableFunc_t export_table) {
    const NvtxExportTableCallbacks *callbacks = export_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned int size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}

NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = attach;
#endif
