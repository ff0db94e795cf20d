#include "lab/trace/formats/foreign.h"

#include <stdbool.h>
#include <string.h>

#include "trace/text/json_scan.h"

#define OF_PYTORCH "record a snapshot with torch.cuda.memory._record_memory_history() and _dump_snapshot()"
#define OF_TENSORFLOW                                                                                                              \
    "run the program under strata run with a strategy that has the layer trace, and TF_GPU_ALLOCATOR=cuda_malloc_async"
#define OF_JAX "run the program under strata run with a strategy that has the layer trace, and XLA_PYTHON_CLIENT_ALLOCATOR=platform"

/* How a file is recognized. */
typedef enum position { AT_BEGIN, WITHIN_JSON, ANYWHERE } position_t;

typedef struct foreign {
    position_t position;
    const char *mark; /* for AT_BEGIN and ANYWHERE: the bytes to find */
    size_t length;
    const char *also; /* NULL, or a text that the head must also contain */
    const char *meaning;
} foreign_t;

#define MARK(bytes) (bytes), sizeof(bytes) - 1

static const foreign_t foreign_formats[] = {
    {AT_BEGIN, MARK("PK\3\4"), NULL,
     "a zip archive, as torch.save() writes; unpack it, or write a snapshot with torch.cuda.memory._dump_snapshot()"},
    {AT_BEGIN, MARK("SQLite format 3"), NULL,
     "an SQLite database, as nsys export writes; docs/records.md has the command that makes a table of it"},
    {AT_BEGIN, MARK("\xff\xfe"), NULL, "a text in UTF-16, as a redirection of PowerShell writes; save it as UTF-8"},
    {AT_BEGIN, MARK("\xfe\xff"), NULL, "a text in UTF-16; save it as UTF-8"},
    {AT_BEGIN, MARK("(dp"), NULL, "a pickle of protocol 0; write it with protocol 2 or later: pickle.dump(x, file, 4)"},
    {AT_BEGIN, MARK("(lp"), NULL, "a pickle of protocol 0; write it with protocol 2 or later: pickle.dump(x, file, 4)"},
    {AT_BEGIN, MARK("}q"), NULL, "a pickle of protocol 1; write it with protocol 2 or later: pickle.dump(x, file, 4)"},
    {AT_BEGIN, MARK("]q"), NULL, "a pickle of protocol 1; write it with protocol 2 or later: pickle.dump(x, file, 4)"},
    {AT_BEGIN, MARK("REPLAY,"), NULL, "a replay log of Umpire before 2019; record it with a later Umpire and UMPIRE_REPLAY=1"},
    {WITHIN_JSON, MARK("\"schema\""), "\"nodes\"",
     "an execution trace of PyTorch (Chakra), which has operators and tensors but no allocations; " OF_PYTORCH},
    {WITHIN_JSON, MARK("\"schema\""), "chakra",
     "an execution trace of PyTorch (Chakra), which has operators and tensors but no allocations; " OF_PYTORCH},
    {WITHIN_JSON, MARK("\"segments\""), NULL,
     "a memory snapshot of PyTorch as JSON; write it as a pickle with torch.cuda.memory._dump_snapshot()"},
    {WITHIN_JSON, MARK("\"device_traces\""), NULL,
     "a memory snapshot of PyTorch as JSON; write it as a pickle with torch.cuda.memory._dump_snapshot()"},
    {WITHIN_JSON, MARK("\"highres-ticks\""), NULL,
     "a timeline of TensorFlow's or JAX's profiler, which has no allocations; " OF_TENSORFLOW},
    {ANYWHERE, MARK("BFCAllocator dump for"), NULL,
     "TensorFlow's report of an allocator that is out of memory, which is one moment; " OF_TENSORFLOW},
    {ANYWHERE, MARK("InUse at "), " of size ", "TensorFlow's map of an allocator's memory, which is one moment; " OF_TENSORFLOW},
    {ANYWHERE, MARK("Total Chunks: "), "Bin (",
     "TensorFlow's report of an allocator that is out of memory, which is one moment; " OF_TENSORFLOW},
    {ANYWHERE, MARK("bfc_allocator.cc:"), NULL, "a log of TensorFlow's BFC allocator; " OF_TENSORFLOW},
};

static bool contains(const char *head, size_t count, const char *part, size_t length) {
    return memmem(head, count, part, length) != NULL;
}

static bool matches(const foreign_t *foreign, const char *head, size_t count) {
    size_t length = foreign->length;
    char first = *strata_json_begin(head);
    bool marked = false;
    switch (foreign->position) {
    case AT_BEGIN: marked = count >= length && memcmp(head, foreign->mark, length) == 0; break;
    case WITHIN_JSON: marked = first == '{' && contains(head, count, foreign->mark, length); break;
    case ANYWHERE: marked = first != '{' && contains(head, count, foreign->mark, length); break;
    }
    return marked && (!foreign->also || contains(head, count, foreign->also, strlen(foreign->also)));
}

/* ---- protocol buffers, which have no magic bytes ---------------------------------------------------- */

/* Returns the end of a length-delimited field after its tag byte, at most the end of the head. Returns 0 if
 * it is not such a field. */
static size_t field_end(const unsigned char *head, size_t count, size_t at) {
    size_t length = 0;
    for (unsigned shift = 0; at < count && shift < 35; shift += 7) {
        unsigned char byte = head[at++];
        length |= (size_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return length > 0 ? (length < count - at ? at + length : count) : 0;
    }
    return 0;
}

/* Returns true if there are control characters other than those of text files. */
static bool is_binary(const unsigned char *head, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (head[i] < ' ' && !memchr("\t\n\f\r", head[i], 4)) return true;
    return false;
}

/* Chakra files are length-prefixed messages, of which the first has a version. A profile of XLA is a list of
 * planes. A pprof file begins with its sample types, and TensorFlow's memory dump of an allocator with the
 * allocator's name. */
static const char *protocol_buffer(const char *text, size_t count) {
    const unsigned char *head = (const unsigned char *)text;
    if (count < 8 || !is_binary(head, count)) return NULL;
    if (head[1] == 0x0a && head[0] < 0x80 && contains(text, 64 < count ? 64 : count, "0.0.", 4))
        return "an execution trace in Chakra's format, which has operators and tensors but no allocations; " OF_PYTORCH;
    bool begins_with_number = head[0] == 0x08 && head[1] < 0x80 && head[2] == 0x12;
    if (!begins_with_number && (head[0] != 0x0a || !field_end(head, count, 1))) return NULL;
    if (contains(text, count, "_bfc", 4)) return "TensorFlow's dump of an allocator's memory, which is one moment; " OF_TENSORFLOW;
    if (contains(text, count, "/host:", 6) || contains(text, count, "/device:", 8))
        return "a profile of TensorFlow or JAX (xplane.pb), which has no allocations that could be read; " OF_TENSORFLOW;
    return "a message of protocol buffers, as TensorFlow, JAX (device_memory_profile) and pprof write, which cannot be read; " OF_JAX;
}

const char *strata_trace_foreign(const char *head, size_t count) {
    for (size_t i = 0; i < sizeof foreign_formats / sizeof *foreign_formats; i++)
        if (matches(&foreign_formats[i], head, count)) return foreign_formats[i].meaning;
    return protocol_buffer(head, count);
}
