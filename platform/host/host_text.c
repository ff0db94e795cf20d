#include "platform/host/host_text.h"

#include <string.h>

#include "platform/host/host_memory.h"

/* Returns 0 on failure; the FILE then keeps its error flag. */
static ssize_t add(void *cookie, const char *bytes, size_t count) {
    strata_host_text_t *text = cookie;
    size_t needed = text->length + count + 1;
    if (needed > text->capacity) {
        size_t capacity = needed > 2 * text->capacity ? needed : 2 * text->capacity;
        char *grown = strata_host_resize(text->bytes, capacity, 1);
        if (!grown) return 0;
        text->bytes = grown;
        text->capacity = capacity;
    }
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = '\0';
    return (ssize_t)count;
}

strata_status_t strata_host_text_begin(strata_host_text_t *text) {
    enum { USUAL = 256 };
    *text = (strata_host_text_t){.bytes = strata_host_new(USUAL, 1), .capacity = USUAL};
    if (!text->bytes) return STRATA_E_HOST_MEMORY;
    text->out = fopencookie(text, "w", (cookie_io_functions_t){.write = add});
    if (text->out) return STRATA_OK;
    strata_host_delete(text->bytes);
    return strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory for a text");
}

strata_status_t strata_host_text_end(strata_host_text_t *text, char **whole) {
    bool lost = ferror(text->out) != 0;
    lost = fclose(text->out) != 0 || lost;
    *whole = lost ? NULL : text->bytes;
    if (!lost) return STRATA_OK;
    strata_host_delete(text->bytes);
    return strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory for a text");
}
