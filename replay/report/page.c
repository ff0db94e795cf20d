/* The page around the data. */
#include <stdlib.h>
#include <string.h>

#include "platform/host/host_memory.h"
#include "replay/report/parts.h"

static void put_text(strata_output_t *out, const char *text) { strata_output_write(out, text, strlen(text)); }

/* As text between tags. */
static void put_escaped(strata_output_t *out, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '<': put_text(out, "&lt;"); break;
        case '>': put_text(out, "&gt;"); break;
        case '&': put_text(out, "&amp;"); break;
        default: strata_output_write(out, text, 1); break;
        }
    }
}

/* The printed table, for whoever runs no scripts. */
static strata_status_t put_table(strata_output_t *out, const strata_page_t *page, const strata_figures_t *figures) {
    char *text = NULL;
    size_t length = 0;
    FILE *table = open_memstream(&text, &length);
    if (!table) return STRATA_E_HOST_MEMORY;
    strata_figures_table(table, figures, page->count, page->contenders, 0);
    bool whole = fclose(table) == 0;
    if (whole) put_escaped(out, text);
    free(text);
    return whole ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

strata_status_t strata_page_write(strata_output_t *out, strata_page_t *page, const strata_figures_t *figures) {
    put_text(out, strata_page_head);
    strata_status_t status = put_table(out, page, figures);
    put_text(out, strata_page_middle);
    if (status == STRATA_OK) status = strata_page_data(out, page, figures);
    put_text(out, strata_page_tail);
    return status;
}
