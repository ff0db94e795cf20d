/* Writes the page around the data. */
#include <stdio.h>
#include <string.h>

#include "lab/replay/report/parts.h"

static void put_text(strata_output_t *out, const char *text) { strata_output_write(out, text, strlen(text)); }

/* Escapes a letter for text between tags. */
static void put_letter(strata_output_t *out, char letter) {
    switch (letter) {
    case '<': put_text(out, "&lt;"); break;
    case '>': put_text(out, "&gt;"); break;
    case '&': put_text(out, "&amp;"); break;
    default: strata_output_write(out, &letter, 1); break;
    }
}

static ssize_t put_escaped(void *out, const char *text, size_t count) {
    for (size_t i = 0; i < count; i++) put_letter(out, text[i]);
    return (ssize_t)count;
}

/* Writes the verdicts and the printed table, for browsers without scripts. */
static strata_status_t put_table(strata_output_t *out, const strata_findings_t *findings) {
    FILE *table = fopencookie(out, "w", (cookie_io_functions_t){.write = put_escaped});
    if (!table) return strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory for the table of the page");
    for (size_t i = 0; i < findings->traces && findings->verdicts; i++) fprintf(table, "%s\n\n", findings->verdicts[i].text);
    const strata_table_view_t view = {
        .columns = findings->candidates, .stands_for = findings->stands_for, .searched = findings->searched};
    strata_figures_table(table, findings->runs, findings->traces * findings->candidates, &view);
    return fclose(table) == 0 ? STRATA_OK : strata_fail(STRATA_E_HOST_MEMORY, 0, "the table of the page could not be made");
}

strata_status_t strata_page_write(strata_output_t *out, strata_page_t *page, const strata_findings_t *findings) {
    put_text(out, strata_page_head);
    strata_status_t status = put_table(out, findings);
    put_text(out, strata_page_middle);
    if (status == STRATA_OK) status = strata_page_data(out, page, findings);
    put_text(out, strata_page_tail);
    return status;
}
