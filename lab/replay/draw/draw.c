/* Draws the maps. A side is a list of lines with one byte per sign. Signs become terminal output only when they are printed. */
#include "lab/replay/draw/draw.h"

#include <stdarg.h>
#include <string.h>

#include "lab/replay/compare/cell.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum {
    GAP = 3, /* between sides */
    NARROWEST = 36, /* min width of a side, if several are next to each other */
    LEAST = 8, /* min width of a side, however narrow the terminal is */
    ALL_LINES = 16, /* lines for all chunks together, unless there are too many chunks */
    ALL_MAX = 48, /* max; later lines are not drawn */
    CHUNK_LINES = 10, /* max lines of one chunk */
    MIN_SCALE = 256 /* bytes per sign */
};

/* ---- signs ---- */

enum { FREE = '.', LIVE = '#', BEGINS = '[', WAITS = '~', MIXED = '+', BORDER = '|' };

static const char *in_unicode(char sign) {
    switch (sign) {
    case FREE: return "\u00b7";
    case LIVE: return "\u2588";
    case BEGINS: return "\u2590";
    case WAITS: return "\u2592";
    case MIXED: return "\u2584";
    case BORDER: return "\u2502";
    default: return " ";
    }
}

typedef struct cursor {
    const strata_map_span_t *span;
    uint64_t at; /* offset in the span */
    uint64_t left; /* bytes of the chunk still to be drawn */
} cursor_t;

static cursor_t cursor_of(const strata_map_t *map, const strata_map_chunk_t *chunk) {
    return (cursor_t){.span = map->spans + chunk->first, .left = chunk->size};
}

/* Returns the sign of the next bytes: the state of at least seven eighths of them, or MIXED. */
static char next_sign(cursor_t *cursor, uint64_t scale) {
    static const char signs[STRATA_CHUNK_STATES] = {FREE, LIVE, WAITS};
    uint64_t bytes[STRATA_CHUNK_STATES] = {0}, all = strata_min(scale, cursor->left);
    size_t begun = 0;
    cursor->left -= all;
    for (uint64_t left = all; left > 0;) {
        uint64_t part = strata_min(left, cursor->span->size - cursor->at);
        bytes[cursor->span->state] += part;
        begun += cursor->at == 0 && cursor->span->state == 1;
        cursor->at += part;
        left -= part;
        if (cursor->at < cursor->span->size) continue;
        cursor->span++;
        cursor->at = 0;
    }
    for (int state = 0; state < STRATA_CHUNK_STATES; state++)
        if (bytes[state] >= all - all / 8) return state == 1 && begun == 1 ? BEGINS : signs[state];
    return MIXED;
}

/* ---- sides ---- */

typedef struct side {
    const strata_map_t *map;
    const char *label;
    size_t width;
    char *lines; /* each has width + 1 bytes; the first is 1 for signs and 0 for text */
    size_t count, room, column; /* `column` is where the last line of signs continues, or 0 to start a new line */
    strata_status_t status;
} side_t;

static char *line_at(const side_t *side, size_t line) { return side->lines + line * (side->width + 1); }

/* Adds a line of blanks. Returns NULL and sets `status` if there is no host memory. */
static char *add_line(side_t *side, bool signs) {
    if (side->count == side->room && side->status == STRATA_OK) {
        size_t room = side->room ? 2 * side->room : 32;
        char *grown = strata_host_resize(side->lines, room, side->width + 1);
        side->status = grown ? STRATA_OK : STRATA_E_HOST_MEMORY;
        side->lines = grown ? grown : side->lines;
        side->room = grown ? room : side->room;
    }
    if (side->status != STRATA_OK) return NULL;
    char *line = line_at(side, side->count++);
    memset(line, ' ', side->width + 1);
    line[0] = signs;
    side->column = 0;
    return line + 1;
}

/* Text longer than the side is cut between characters. */
STRATA_PRINTF(2, 3) static void add_text(side_t *side, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t length = strata_min(strlen(text), side->width);
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
    char *line = add_line(side, false);
    if (line) memcpy(line, text, length);
}

static void put(side_t *side, char sign) {
    bool fresh = side->column == 0 || side->column == side->width;
    if (fresh && !add_line(side, true)) return;
    line_at(side, side->count - 1)[1 + side->column++] = sign;
}

static void put_chunk(side_t *side, const strata_map_chunk_t *chunk, uint64_t scale) {
    cursor_t cursor = cursor_of(side->map, chunk);
    while (cursor.left > 0 && side->status == STRATA_OK) put(side, next_sign(&cursor, scale));
}

static uint64_t signs_of(uint64_t size, uint64_t scale) { return size / scale + (size % scale != 0); }

/* ---- the text of a side ---- */

static void add_sums(side_t *side, size_t of) {
    const strata_map_t *map = side->map;
    uint64_t bytes[STRATA_CHUNK_STATES] = {0}, size = 0;
    for (size_t i = 0; i < map->chunk_count; i++) {
        size += map->chunks[i].size;
        for (int state = 0; state < STRATA_CHUNK_STATES; state++) bytes[state] += map->chunks[i].bytes[state];
    }
    add_text(side, "%s", side->label);
    if (of) add_text(side, "after row %zu of %zu", map->rows, of);
    add_text(side, "%s in %zu chunk%s:", strata_cell_bytes(size).text, map->chunk_count, map->chunk_count == 1 ? "" : "s");
    add_text(side, "  live    %12s", strata_cell_bytes(bytes[1]).text);
    add_text(side, "  waiting %12s", strata_cell_bytes(bytes[2]).text);
    add_text(side, "  free    %12s", strata_cell_bytes(bytes[0]).text);
}

static void add_all_chunks(side_t *side, uint64_t scale) {
    add_text(side, " ");
    add_text(side, "all chunks, %s per character", strata_cell_bytes(scale).text);
    size_t first = side->count;
    for (size_t i = 0; i < side->map->chunk_count && side->status == STRATA_OK; i++) {
        if (side->count - first >= ALL_MAX) {
            add_text(side, "and %zu more chunks", side->map->chunk_count - i);
            return;
        }
        put(side, BORDER);
        put_chunk(side, &side->map->chunks[i], scale);
    }
}

static void add_chunk(side_t *side, const char *which, const strata_map_chunk_t *chunk) {
    uint64_t scale = MIN_SCALE, most = (uint64_t)CHUNK_LINES * side->width;
    while (signs_of(chunk->size, scale) > most) scale *= 2;
    add_text(side, " ");
    add_text(side, "%s: %s, %s", which, chunk->place, chunk->stream);
    add_text(side, "%s, %s per character", strata_cell_bytes(chunk->size).text, strata_cell_bytes(scale).text);
    add_text(side, "free %s in %zu piece%s", strata_cell_bytes(chunk->bytes[0]).text, chunk->blocks[0],
             chunk->blocks[0] == 1 ? "" : "s");
    put_chunk(side, chunk, scale);
}

/* ---- choosing a chunk ---- */

/* A chunk with nothing in use can be returned to the device, so its free bytes do not count. */
static uint64_t stranded_bytes(const strata_map_chunk_t *chunk) { return chunk->bytes[0] < chunk->size ? chunk->bytes[0] : 0; }

static bool is_more_fragmented(const strata_map_chunk_t *a, const strata_map_chunk_t *b) {
    if (stranded_bytes(a) != stranded_bytes(b)) return stranded_bytes(a) > stranded_bytes(b);
    return stranded_bytes(a) > 0 && a->blocks[0] > b->blocks[0];
}

static bool is_larger(const strata_map_chunk_t *a, const strata_map_chunk_t *b) { return a->size > b->size; }

typedef bool (*is_more_fn)(const strata_map_chunk_t *a, const strata_map_chunk_t *b);

/* Among equals, returns the one at the lowest address. */
static const strata_map_chunk_t *most(const strata_map_t *map, is_more_fn is_more) {
    const strata_map_chunk_t *best = map->chunks;
    for (size_t i = 1; i < map->chunk_count; i++)
        if (is_more(&map->chunks[i], best)) best = &map->chunks[i];
    return best;
}

/* Includes a border before each chunk. */
static uint64_t signs_of_all(const strata_map_t *map, uint64_t scale) {
    uint64_t signs = map->chunk_count;
    for (size_t i = 0; i < map->chunk_count; i++) signs += signs_of(map->chunks[i].size, scale);
    return signs;
}

/* Returns the smallest scale at which all chunks of every side fit in ALL_LINES, or at which each is one sign. */
static uint64_t scale_of_all(const strata_map_t *maps, size_t count, size_t width) {
    uint64_t largest = 0;
    for (size_t i = 0; i < count; i++)
        if (maps[i].chunk_count) largest = strata_max(largest, most(&maps[i], is_larger)->size);
    for (uint64_t scale = MIN_SCALE;; scale *= 2) {
        uint64_t signs = 0;
        for (size_t i = 0; i < count; i++) signs = strata_max(signs, signs_of_all(&maps[i], scale));
        if (signs <= (uint64_t)ALL_LINES * width || scale >= largest) return scale;
    }
}

/* ---- print ---- */

static void print_line(const strata_draw_t *draw, const char *line, size_t width) {
    for (size_t i = 1; i <= width; i++) {
        if (line[0] && draw->unicode) fputs(in_unicode(line[i]), draw->out);
        else fputc(line[i], draw->out);
    }
}

static size_t end_of(const char *line, size_t width) {
    while (width > 0 && line[width] == ' ') width--;
    return width;
}

/* Sides may have different heights; no line ends in blanks. */
static void print_sides(const strata_draw_t *draw, const side_t *sides, size_t count) {
    size_t lines = 0;
    for (size_t i = 0; i < count; i++) lines = strata_max(lines, sides[i].count);
    for (size_t line = 0; line < lines; line++) {
        size_t last = 0;
        for (size_t i = 0; i < count; i++)
            if (line < sides[i].count && end_of(line_at(&sides[i], line), sides[i].width) > 0) last = i;
        for (size_t i = 0; i <= last; i++) {
            bool none = line >= sides[i].count;
            size_t width = none ? 0 : i < last ? sides[i].width : end_of(line_at(&sides[i], line), sides[i].width);
            if (i) fprintf(draw->out, "%*s", GAP, "");
            if (none && i < last) fprintf(draw->out, "%*s", (int)sides[i].width, "");
            else print_line(draw, none ? NULL : line_at(&sides[i], line), width);
        }
        fputc('\n', draw->out);
    }
}

/* Pads all sides to one height, so that parts of one kind begin on the same line. */
static void level(side_t *sides, size_t count) {
    size_t lines = 0;
    for (size_t i = 0; i < count; i++) lines = strata_max(lines, sides[i].count);
    for (size_t i = 0; i < count; i++)
        while (sides[i].count < lines && add_line(&sides[i], false)) {}
}

static void fill_chunks(const strata_draw_t *draw, side_t *sides, size_t count) {
    static const struct {
        unsigned what;
        const char *name;
        is_more_fn is_more;
    } kinds[] = {{STRATA_DRAW_FRAGMENTED, "fragmented", is_more_fragmented}, {STRATA_DRAW_LARGEST, "largest", is_larger}};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        if (!(draw->what & kinds[kind].what)) continue;
        level(sides, count);
        for (size_t i = 0; i < count; i++)
            if (sides[i].map->chunk_count) add_chunk(&sides[i], kinds[kind].name, most(sides[i].map, kinds[kind].is_more));
    }
}

static void fill_sides(const strata_draw_t *draw, side_t *sides, size_t count, size_t rows, uint64_t scale) {
    for (size_t i = 0; i < count; i++) {
        if (sides[i].map->chunk_count) {
            add_sums(&sides[i], rows);
        } else {
            add_text(&sides[i], "%s", sides[i].label);
            add_text(&sides[i], "reserves no device memory");
        }
    }
    level(sides, count);
    for (size_t i = 0; i < count && draw->what & STRATA_DRAW_ALL; i++)
        if (sides[i].map->chunk_count) add_all_chunks(&sides[i], scale);
    fill_chunks(draw, sides, count);
}

static void print_legend(const strata_draw_t *draw) {
    static const struct {
        char sign;
        const char *meaning;
    } legend[] = {
        {BEGINS, "a live block begins"}, {LIVE, "live"}, {WAITS, "waits for other streams"}, {FREE, "free"}, {MIXED, "mixed"}};
    fputc('\n', draw->out);
    for (size_t i = 0; i < sizeof legend / sizeof *legend; i++) {
        char sign[2] = {legend[i].sign};
        fprintf(draw->out, "%s%s %s", i ? "   " : "", draw->unicode ? in_unicode(*sign) : sign, legend[i].meaning);
    }
    fputc('\n', draw->out);
}

static strata_status_t status_of(const side_t *sides, size_t count) {
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < count && status == STRATA_OK; i++) status = sides[i].status;
    return status;
}

strata_status_t strata_draw_maps(const strata_draw_t *draw, const strata_map_t *maps, const char *const *labels, size_t count,
                                 size_t rows) {
    size_t fit = strata_max((draw->width + GAP) / (NARROWEST + GAP), 1), across = strata_min(fit, count);
    size_t gaps = GAP * (across - 1), width = strata_max(draw->width > gaps ? (draw->width - gaps) / across : 0, LEAST);
    side_t *sides = strata_host_new(count + 1, sizeof *sides);
    strata_status_t status = sides ? STRATA_OK : STRATA_E_HOST_MEMORY;
    uint64_t scale = scale_of_all(maps, count, width);
    for (size_t i = 0; i < count && sides; i++) sides[i] = (side_t){.map = &maps[i], .label = labels[i], .width = width};
    for (size_t first = 0; first < count && status == STRATA_OK; first += across) {
        size_t here = strata_min(across, count - first);
        if (first) fputc('\n', draw->out);
        fill_sides(draw, sides + first, here, rows, scale);
        status = status_of(sides + first, here);
        if (status == STRATA_OK) print_sides(draw, sides + first, here);
    }
    if (status == STRATA_OK) print_legend(draw);
    for (size_t i = 0; i < count && sides; i++) strata_host_delete(sides[i].lines);
    strata_host_delete(sides);
    return status;
}
