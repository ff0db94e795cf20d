#include "lab/tools/plan/picture.h"

#include <inttypes.h>
#include <string.h>

#include "platform/host/host_memory.h"
#include "platform/text/printable.h"
#include "trace/text/output.h"

enum { ROWS = 20, WIDEST = 400, SVG_BUFFERS = 200000, SVG_WIDTH = 1200, SVG_HEIGHT = 600 };

/* The ranges that a picture shows. */
typedef struct frame {
    uint64_t begin, end, top;
} frame_t;

static frame_t frame_of(const strata_plan_table_t *t, const uint64_t *offsets) {
    frame_t f = {.begin = UINT64_MAX};
    for (size_t i = 0; i < t->count; i++) {
        const strata_plan_buffer_t *b = &t->buffers[i];
        if (b->lower < f.begin) f.begin = b->lower;
        if (b->upper > f.end) f.end = b->upper;
        if (b->size && offsets[i] + b->size > f.top) f.top = offsets[i] + b->size;
    }
    return f;
}

/* ---- characters ---- */

static char sign_of(size_t buffer) {
    static const char signs[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    return signs[buffer % (sizeof signs - 1)];
}

/* Returns the part of square `at` of `squares` over [0, all) that [from, to) covers. */
static double covered(double from, double to, double all, size_t at, size_t squares) {
    double begin = all / (double)squares * (double)at, end = all / (double)squares * (double)(at + 1);
    double low = from > begin ? from : begin, high = to < end ? to : end;
    return high > low ? (high - low) / (end - begin) : 0;
}

static size_t square_of(double at, double all, size_t squares) {
    double square = at / all * (double)squares;
    return square < 0 ? 0 : square >= (double)squares ? squares - 1 : (size_t)square;
}

static void draw_buffer(char *signs, float *most, size_t width, const frame_t *f, const strata_plan_buffer_t *b, uint64_t offset,
                        char sign) {
    double time = (double)(f->end - f->begin), from = (double)(b->lower - f->begin), to = (double)(b->upper - f->begin);
    double low = (double)offset, high = (double)(offset + b->size), top = (double)f->top;
    for (size_t y = square_of(low, top, ROWS); y <= square_of(high, top, ROWS); y++)
        for (size_t x = square_of(from, time, width); x <= square_of(to, time, width); x++) {
            float part = (float)(covered(low, high, top, y, ROWS) * covered(from, to, time, x, width));
            if (part <= most[y * width + x]) continue;
            most[y * width + x] = part;
            signs[y * width + x] = sign;
        }
}

strata_status_t strata_plan_draw(FILE *out, const strata_plan_table_t *t, const uint64_t *offsets, size_t width) {
    frame_t f = frame_of(t, offsets);
    if (f.top == 0) return STRATA_OK;
    width = width < 40 ? 40 : width > WIDEST ? WIDEST : width;
    size_t columns = width - 18;
    char *signs = strata_host_new(ROWS * columns, 1);
    float *most = strata_host_new(ROWS * columns, sizeof *most);
    if (signs && most) {
        memset(signs, '.', ROWS * columns);
        for (size_t i = 0; i < ROWS * columns; i++) most[i] = 0.1f; /* smaller parts are not shown */
        for (size_t i = 0; i < t->count; i++)
            if (t->buffers[i].size) draw_buffer(signs, most, columns, &f, &t->buffers[i], offsets[i], sign_of(i));
        for (size_t y = ROWS; y-- > 0;)
            fprintf(out, "%15" PRIu64 " |%.*s\n", (uint64_t)((double)f.top / ROWS * (double)y), (int)columns, signs + y * columns);
        fprintf(out, "%15s  time %" PRIu64 " to %" PRIu64 "\n", "", f.begin, f.end);
    }
    strata_status_t status = signs && most ? STRATA_OK : STRATA_E_HOST_MEMORY;
    strata_host_delete(most);
    strata_host_delete(signs);
    return status;
}

/* ---- SVG ---- */

static void print_escaped(strata_output_t *out, const char *name) {
    char text[128];
    snprintf(text, sizeof text, "%.120s", name);
    strata_make_printable(text, false);
    for (const char *at = text; *at; at++) {
        if (strchr("<>&\"'", *at)) (void)strata_output_print(out, "&#%d;", *at);
        else (void)strata_output_write(out, at, 1);
    }
}

static void print_rectangle(strata_output_t *out, const frame_t *f, const strata_plan_table_t *t, size_t i, uint64_t offset) {
    const strata_plan_buffer_t *b = &t->buffers[i];
    double across = (double)SVG_WIDTH / (double)(f->end - f->begin), up = (double)SVG_HEIGHT / (double)f->top;
    double x = (double)(b->lower - f->begin) * across, width = (double)(b->upper - b->lower) * across;
    double height = (double)b->size * up, y = SVG_HEIGHT - (double)offset * up - height;
    (void)strata_output_print(out,
                              "<rect x=\"%.3f\" y=\"%.3f\" width=\"%.3f\" height=\"%.3f\" fill=\"hsl(%zu,60%%,%zu%%)\"><title>", x,
                              y, width, height, i * 137 % 360, 55 + i % 4 * 6);
    print_escaped(out, strata_plan_table_name(t, i));
    (void)strata_output_print(out, ": %llu bytes at %llu, from %llu to %llu</title></rect>\n", (unsigned long long)b->size,
                              (unsigned long long)offset, (unsigned long long)b->lower, (unsigned long long)b->upper);
}

strata_status_t strata_plan_svg(const char *path, const strata_plan_table_t *t, const uint64_t *offsets) {
    strata_output_t *out = NULL;
    frame_t f = frame_of(t, offsets);
    if (t->count > SVG_BUFFERS)
        return strata_fail(STRATA_E_LIMIT, 0, "--svg: the plan has %zu buffers, but a picture shows at most %d", t->count,
                           SVG_BUFFERS);
    strata_status_t status = strata_output_open(path, &out);
    if (status != STRATA_OK) return status;
    (void)strata_output_print(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" stroke=\"#333\" stroke-width=\"0.3\">\n"
        "<title>time across, addresses up: %llu bytes</title>\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
        SVG_WIDTH, SVG_HEIGHT, (unsigned long long)f.top, SVG_WIDTH, SVG_HEIGHT);
    for (size_t i = 0; i < t->count; i++)
        if (t->buffers[i].size) print_rectangle(out, &f, t, i, offsets[i]);
    (void)strata_output_print(out, "</svg>\n");
    return strata_output_finish(out);
}
