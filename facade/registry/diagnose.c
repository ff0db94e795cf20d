#include "facade/registry/diagnose.h"

#include "allocation/call/blocks.h"
#include "allocation/call/ref_info.h"
#include "facade/registry/text.h"
#include "platform/place.h"
#include "platform/text/pointer.h"

enum { WORDS = 700 };

static void write_place(strata_text_t *text, strata_place_t place) {
    char name[STRATA_PLACE_LETTERS];
    strata_place_text(place, name);
    strata_text_append(text, "%s", name);
}

/* Writes the place and stack of a block, as in "gpu:0, stack 3 of stream 0x55". */
static void write_stack(strata_text_t *text, const strata_ref_info_t *info, strata_ref_t ref) {
    write_place(text, info->place);
    strata_text_append(text, ", stack %u", (unsigned)strata_ref_home(ref));
    if (info->owned)
        strata_text_append(text, " of %sstream %s", info->orphan ? "the forgotten " : "", strata_pointer_text(info->stream).text);
}

/* Names are those of facades that are open now. */
static void write_requester(strata_text_t *text, const strata_ref_info_t *info) {
    char name[STRATA_NAME_LENGTH + 1];
    if (strata_facade_name(info->facade, info->note.tag, name, sizeof name)) strata_text_append(text, ", tag \"%s\"", name);
    if (strata_facade_name(info->facade, info->note.operator_name, name, sizeof name))
        strata_text_append(text, ", operator \"%s\" of step %llu", name, (unsigned long long)info->note.step);
}

/* Describes a live block, as in "4096 bytes at 0x7f0000000000 (ref 0x..., gpu:0, stack 3 of stream 0x55,
 * tag \"weights\")". */
static void write_live(strata_text_t *text, const strata_ref_info_t *info, strata_ref_t ref) {
    strata_text_append(text, "%llu bytes at %#llx (ref %#llx, ", (unsigned long long)info->size, (unsigned long long)info->ptr,
                       (unsigned long long)ref);
    write_stack(text, info, ref);
    write_requester(text, info);
    strata_text_append(text, ")");
}

static void write_freed(strata_text_t *text, const strata_ref_info_t *info, strata_ref_t ref) {
    if (info->deferred) strata_text_append(text, ", and is in use by other streams");
    strata_text_append(text, "; ");
    write_stack(text, info, ref);
    write_requester(text, info);
}

static void write_foreign(strata_text_t *text, const strata_ref_info_t *info, strata_ref_t ref) {
    strata_text_append(text, ", facade %#llx", (unsigned long long)info->facade);
    if (info->live) {
        strata_text_append(text, ": ");
        write_live(text, info, ref);
    } else if (info->freed) {
        strata_text_append(text, ", where it was already freed");
        write_freed(text, info, ref);
    }
}

strata_status_t strata_diagnose_ref(strata_t handle, strata_ref_t ref) {
    strata_ref_info_t info;
    char words[WORDS] = "";
    strata_text_t text = {.text = words, .capacity = sizeof words};
    strata_ref_info_of(ref, &info);
    if (info.stack_is_open && info.facade == handle) write_freed(&text, &info, ref);
    else if (info.stack_is_open) write_foreign(&text, &info, ref);
    return strata_fail(STRATA_E_STALE, 0, "%s%s", strata_last_error()->text, words);
}

/* ---- pointers ---- */

/* Returns the live allocation of any facade that contains an address, or 0. Walks all stacks of the
 * process, because errors may be slow. */
static strata_ref_t holder_of(uint64_t address) {
    for (uint16_t number = 1; number < STRATA_STACKS; number++) {
        strata_stack_t *stack = strata_stack_of(number);
        if (!stack) continue;
        strata_stack_lock_own(stack);
        const strata_record_t *record = strata_stack_block_at(stack, address);
        strata_ref_t ref = record ? strata_ref_make(number, strata_slab_slot(&stack->slab, record), record->generation) : 0;
        strata_unlock(&stack->lock);
        if (ref) return ref;
    }
    return 0;
}

/* Returns the ref of the last allocation that began at an address, as recorded by the directories.
 * Returns 0 if there is none or it is live. */
static strata_ref_t last_at(strata_facade_t *facade, uint64_t address) {
    strata_ref_t ref = 0;
    bool noted = atomic_load(&facade->pointer_directory) != NULL;
    for (int i = 0; noted && i < 2 && !ref; i++) {
        uint16_t number;
        uint32_t slot;
        if (!strata_directory_read(facade->directories[i], address, &number, &slot)) continue;
        strata_stack_t *home = strata_stack_of(number);
        strata_stack_lock_own(home);
        bool ours = home->open && home->facade == facade->handle && slot < home->slab.used;
        const strata_record_t *record = ours ? strata_slab_record(&home->slab, slot) : NULL;
        bool freed = record && record->generation > 0 && record->state != STRATA_RECORD_LIVE;
        if (freed) ref = strata_ref_make(number, slot, record->generation - 1);
        strata_unlock(&home->lock);
    }
    return ref;
}

strata_status_t strata_diagnose_pointer(strata_facade_t *facade, const void *ptr, const char *does) {
    uint64_t address = (uint64_t)(uintptr_t)ptr;
    char words[WORDS] = "";
    strata_text_t text = {.text = words, .capacity = sizeof words};
    strata_ref_info_t info = {.live = false};
    strata_ref_t holder = holder_of(address), last = holder ? 0 : last_at(facade, address);
    if (holder) strata_ref_info_of(holder, &info);
    if (info.live) {
        strata_text_append(&text, "; it is %llu bytes inside ", (unsigned long long)(address - info.ptr));
        write_live(&text, &info, holder);
        if (info.facade != facade->handle) strata_text_append(&text, " of facade %#llx", (unsigned long long)info.facade);
    } else if (last) {
        strata_ref_info_of(last, &info);
        strata_text_append(&text, "; the last one, ref %#llx, was freed", (unsigned long long)last);
        write_freed(&text, &info, last);
    }
    return strata_fail(STRATA_E_UNKNOWN_POINTER, 0, "%s: no live allocation of this facade %s%s", strata_pointer_text(ptr).text,
                       does, words);
}

/* ---- streams ---- */

typedef struct first_live {
    strata_ref_t ref;
    uint64_t count, bytes;
} first_live_t;

static void count_live(const strata_record_t *record, void *context) {
    first_live_t *first = context;
    if (first->count++ == 0) first->ref = strata_ref_of(record);
    first->bytes += record->size;
}

/* Returns false if nothing is live there, or if the stack belongs to another stream. */
static bool write_what_it_holds(strata_text_t *text, const strata_facade_t *facade, strata_stack_t *stack, strata_stream_t stream) {
    first_live_t first = {.ref = 0};
    strata_ref_info_t info = {.live = false};
    if (stack->is_shared || stack->ownerless || stack->forgotten.orphan || stack->stream != stream) return false;
    strata_stack_walk_live(stack, count_live, &first);
    if (first.ref) strata_ref_info_of(first.ref, &info);
    if (!info.live || info.facade != facade->handle) return false;
    strata_text_append(text, "; stack %u of the old stream has %llu allocations, including ", (unsigned)stack->number,
                       (unsigned long long)first.count);
    write_live(text, &info, first.ref);
    return true;
}

strata_status_t strata_diagnose_stream(strata_facade_t *facade, strata_domain_t *domain, strata_stream_t stream) {
    char words[WORDS] = "", place[32] = "";
    strata_text_t text = {.text = words, .capacity = sizeof words}, where = {.text = place, .capacity = sizeof place};
    write_place(&where, domain->place);
    STRATA_DOMAIN_EACH(domain, stack) {
        if (!write_what_it_holds(&text, facade, stack, stream)) continue;
        strata_domain_end_walk(domain, stack);
        break;
    }
    return strata_fail(STRATA_E_UNKNOWN_STREAM, 0,
                       "stream %s of %s was destroyed without strata_stream_forget(): its handle now names another stream%s",
                       strata_pointer_text(stream).text, place, words);
}
