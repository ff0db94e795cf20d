/* The sizes of caching: how requests are rounded, and how large segments are. */
#include "allocation/cache/policies/caching/caching_state.h"
#include "platform/arithmetic.h"

enum { FIRST_OCTAVE = 20, MIB = 1 << 20, SHOWN = 40 };
enum { SMALL_SEGMENT = 2 * MIB, LARGE_SEGMENT_BELOW = 10 * MIB, SEGMENT_UNIT = 2 * MIB };

/* ---- `roundup_power2_divisions`: "4", or "[256:1,512:2,>:8]" with sizes in MiB ---- */

static strata_status_t fail_divisions(const char *text) {
    return strata_fail(
        STRATA_E_STRATEGY, 0,
        "\"%.*s\" is not a list of divisions; write a power of two such as 4, or 0 for none, or one for each size in MiB, such "
        "as [256:1,512:2,>:8]",
        SHOWN, text);
}

/* Reads a number of at most nine digits. Returns false if there is none. */
static bool read_number(const char **at, uint32_t *number) {
    uint32_t digits = 0;
    for (*number = 0; **at >= '0' && **at <= '9'; ++*at, digits++) {
        if (digits == 9) return false;
        *number = *number * 10 + (uint32_t)(**at - '0');
    }
    return digits > 0;
}

static bool read_division(const char **at, uint32_t *number) {
    return read_number(at, number) && (*number == 0 || strata_is_power_of_two(*number));
}

static void fill(uint32_t *divisions, uint32_t from, uint32_t to, uint32_t value) {
    for (uint32_t octave = from; octave < to; octave++) divisions[octave] = value;
}

/* Reads an entry. "256:1" is for sizes from 256 MiB to below 512 MiB. The first entry is also for all smaller
 * sizes, and ">:8" is for all sizes above the last entry. */
static bool read_entry(const char **at, uint32_t *divisions, uint32_t *after) {
    uint32_t mib = 0, value;
    bool rest = **at == '>';
    if (rest) ++*at;
    else if (!read_number(at, &mib) || !strata_is_power_of_two(mib)) return false;
    if (*(*at)++ != ':' || !read_division(at, &value)) return false;
    if (rest) {
        fill(divisions, *after, STRATA_CACHING_OCTAVES, value);
        *after = STRATA_CACHING_OCTAVES;
        return true;
    }
    uint32_t octave = (uint32_t)strata_min((uint64_t)__builtin_ctz(mib), STRATA_CACHING_OCTAVES - 1);
    if (*after == 0) fill(divisions, 0, octave, value);
    divisions[octave] = value;
    *after = octave + 1;
    return true;
}

strata_status_t strata_caching_read_divisions(const char *text, uint32_t divisions[STRATA_CACHING_OCTAVES]) {
    const char *at = text;
    uint32_t value, after = 0;
    fill(divisions, 0, STRATA_CACHING_OCTAVES, 0);
    if (*at != '[') {
        if (!read_division(&at, &value) || *at) return fail_divisions(text);
        fill(divisions, 0, STRATA_CACHING_OCTAVES, value);
        return STRATA_OK;
    }
    do {
        at++;
        if (!read_entry(&at, divisions, &after)) return fail_divisions(text);
    } while (*at == ',');
    return at[0] == ']' && at[1] == '\0' ? STRATA_OK : fail_divisions(text);
}

/* ---- rounding ---- */

static uint32_t divisions_of(const caching_t *self, uint64_t size) {
    uint32_t octave = 63u - (uint32_t)__builtin_clzll(size);
    uint32_t index = octave > FIRST_OCTAVE ? octave - FIRST_OCTAVE : 0;
    return self->divisions[strata_min(index, STRATA_CACHING_OCTAVES - 1)];
}

bool strata_caching_has_plain_sizes(const uint32_t divisions[STRATA_CACHING_OCTAVES]) {
    bool plain = true;
    for (uint32_t i = 0; i < STRATA_CACHING_OCTAVES; i++) plain = plain && divisions[i] <= 1;
    return plain;
}

/* Rounds up to one of `divisions` equal steps between two powers of two. The slack of a block has 32 bits, so a
 * step that adds 4 GiB or more is not used. */
uint64_t strata_caching_round_to_division(const caching_t *self, uint64_t size) {
    uint64_t multiple = (size + STRATA_CACHING_UNIT - 1) & ~(uint64_t)(STRATA_CACHING_UNIT - 1);
    uint32_t divisions = divisions_of(self, size);
    if (divisions <= 1 || size <= (uint64_t)STRATA_CACHING_UNIT * divisions) return multiple;
    uint64_t floor = 1ull << (63 - __builtin_clzll(size)), step = floor / divisions;
    uint64_t stepped = (size + step - 1) & ~(step - 1);
    return stepped - size <= UINT32_MAX ? stepped : multiple;
}

uint64_t strata_caching_segment_size(const caching_options_t *o, uint64_t rounded) {
    if (rounded <= STRATA_CACHING_SMALL_LIMIT) return SMALL_SEGMENT;
    if (rounded < LARGE_SEGMENT_BELOW) return o->large_segment;
    return (rounded + SEGMENT_UNIT - 1) & ~(uint64_t)(SEGMENT_UNIT - 1);
}
