/* Layers that keep what a device gave them: the end of a program asks for every kind of thing. */
#include <stdio.h>

#include "allocation/domain/layer.h"
#include "tests/harness/test.h"
#include "tests/torture/opened.h"

static strata_status_t keep_an_event(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_handle_t event = NULL;
    EXPECT_OK(strata_device_event_create(self->domain->device, &event));
    return strata_below_allocate(self, request, record);
}

static strata_status_t keep_pinned_memory(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_address_t address = 0;
    EXPECT_OK(strata_device_host_alloc(self->domain->device, STRATA_MEMORY_PINNED, 100, 64, 0, &address));
    return strata_below_allocate(self, request, record);
}

static strata_status_t keep_addresses(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_address_t address = 0;
    EXPECT_OK(strata_device_reserve(self->domain->device, 2 << 20, 0, &address));
    return strata_below_allocate(self, request, record);
}

#define KEEPER(layer_name, function)                                                                                               \
    {                                                                                                                              \
        .struct_size = sizeof(strata_layer_type_t), .name = layer_name, .doc = "keeps what a device gave it",                      \
        .role = STRATA_DECORATOR, .scope = STRATA_SCOPE_NONE, .passes = ~0u, .state_size = sizeof(strata_layer_t),                 \
        .create = strata_layer_create_nothing, .destroy = strata_layer_destroy_nothing, .allocate = function,                      \
        .free = strata_layer_free_below                                                                                            \
    }

static const strata_layer_type_t keepers[] = {
    KEEPER("test_keeps_event", keep_an_event),
    KEEPER("test_keeps_pinned", keep_pinned_memory),
    KEEPER("test_keeps_addresses", keep_addresses),
};

TEST(torture_kept, an_event_pinned_memory_and_addresses_are_missed) {
    static const char *const lacking[] = {"1 events", "100 bytes of pinned memory", "2097152 bytes of reserved addresses"};
    for (size_t i = 0; i < sizeof keepers / sizeof *keepers; i++) {
        char text[100];
        opened_t o;
        const strata_layer_type_t *type = &keepers[i];
        EXPECT_OK(strata_layers_register(&type, 1, true));
        snprintf(text, sizeof text, "stack: [%s, auto_growth, system]\n", type->name);
        opened_begin(&o, text, 1, 0);
        torture_allocate(&o.world, 0, STRATA_TORTURE_GPU, 1, &(torture_request_t){.size = 1000});
        torture_free(&o.world, 0, STRATA_TORTURE_NO_STREAM, true, false);
        const torture_verdict_t *verdict = opened_verdict(&o);
        EXPECT_EQ(verdict->fault, TORTURE_FAULT_LEFT);
        snprintf(text, sizeof text, "after the facade was closed device 0 lacks %s", lacking[i]);
        EXPECT_STREQ(verdict->text, text);
    }
}
