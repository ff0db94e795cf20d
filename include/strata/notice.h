/* Notices: events other than requests and frees, for the operation `notify` of strata/layer.h. */
#ifndef STRATA_NOTICE_H
#define STRATA_NOTICE_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_record strata_record_t; /* one block, live or free: strata/layer.h */

/* The out-of-memory report of a failed request, to which layers add lines for its reader. */
typedef struct strata_report_sink {
    size_t struct_size;
    size_t size; /* bytes requested */
    const char *layer; /* as the strategy names it */
    void (*write)(const struct strata_report_sink *sink, const char *text); /* adds to the report while there is room */
    /* Returns the operator that strata_annotate() named when a live block was requested, or "", and its step. Call it under the
     * lock of the block's stack. */
    const char *(*find_note)(const struct strata_report_sink *sink, const strata_record_t *record, uint64_t *step);
    void *context;
} strata_report_sink_t;

/* The kinds of notices. X(name, meaning): the fields in the meaning are set. */
#define STRATA_NOTICE_MAP(X)                                                                                                       \
    X(STREAM_DESTROYED, "`stream` is about to be destroyed: record the events that you need on it now")                            \
    X(CAPTURE_BEGIN,                                                                                                               \
      "this instance, which belongs to `pool`, now serves captures (docs/graphs.md): give nothing back, and record no event "      \
      "for the borrows of captured streams")                                                                                       \
    X(CAPTURE_END, "they have ended")                                                                                              \
    X(STEP, "the program has ended a step (strata_step())")                                                                        \
    X(FRONTIER, "all work before counts below `count` is done (strata_next_count()); set `handled` if frees here carry counts")    \
    X(PEAKS, "reset the peaks among the figures to their current values")                                                          \
    X(FIGURES, "the figures of `stats` are about to be read: bring them up to date")                                               \
    X(REPORT, "a request ran out of memory: add to its report by `sink`; no lock is held")                                         \
    X(WORK, "a kernel on `stream` uses `record`, a live block of the stack, or no block if that is NULL")                          \
    X(WAIT, "later work of `stream` runs after that of `other`")                                                                   \
    X(SYNC, "the host has waited for `stream`, or for the whole device (`all`)")                                                   \
    X(RELEASE, "strata_release(): the caches of the place are emptied")                                                            \
    X(OUT_OF_MEMORY, "a request has finally run out of memory, and its report is complete")

typedef enum strata_notice_kind {
#define STRATA_NOTICE_ENUM(name, meaning) STRATA_NOTICE_##name,
    STRATA_NOTICE_MAP(STRATA_NOTICE_ENUM)
#undef STRATA_NOTICE_ENUM
        STRATA_NOTICE_KINDS
} strata_notice_kind_t;

/* WORK goes to the stack of each block that the kernel uses. WORK without a block, WAIT, SYNC, RELEASE and OUT_OF_MEMORY go to
 * the layers of one stack after the other until one sets `handled`. All others go to each layer. */
typedef struct strata_notice {
    size_t struct_size;
    strata_notice_kind_t kind;
    strata_stream_t stream, other; /* the device's handles */
    uint64_t pool;
    uint64_t count;
    const strata_report_sink_t *sink;
    const strata_record_t *record;
    uint64_t kernel; /* WORK: the same number for all blocks of a kernel */
    uint64_t duration_ns; /* WORK */
    bool all;
    bool handled; /* set by a layer */
} strata_notice_t;

#ifdef __cplusplus
}
#endif

#endif
