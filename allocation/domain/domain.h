/* A domain: all stacks over one physical memory (one place). Out-of-memory concerns the whole domain, so it
 * owns the wait for memory, the event pool and the count of reserved bytes.
 *
 *     domain  ->  groups (group.h), each from one plan  ->  stacks (stack_list.h), one per stream
 *
 *  - quota.* bounds the bytes, peaks.* measures their peaks, quarantine.* holds memory that the device refused
 *  - events.* is the event pool, sent.* has blocks sent to other processes, captures.* counts open graph pools
 *  - devices.c waits for streams, paused.* pauses groups, layer.h has functions for layers */
#ifndef STRATA_ALLOCATION_DOMAIN_H
#define STRATA_ALLOCATION_DOMAIN_H

#include "allocation/domain/events.h"
#include "allocation/domain/group.h"
#include "allocation/domain/peaks.h"
#include "allocation/domain/quarantine.h"
#include "allocation/domain/quota.h"
#include "allocation/domain/sent.h"
#include "allocation/stack/plan.h"
#include "allocation/stack/stack.h"
#include "platform/device.h"

/* Called during recovery with no lock held. Frees the program's own memory and returns the bytes. */
typedef uint64_t (*strata_domain_free_memory_fn)(void *context, strata_place_t place, size_t size);

/* The first failure that could not be returned to a caller, such as one in a layer's destroy(). The
 * facade's close reports it. */
typedef struct strata_unreported {
    _Atomic int state; /* 0 if empty, 1 while it is written, 2 if it is set */
    strata_error_t error;
} strata_unreported_t;

/* For replays, on devices that predict when an event completes. Called under a stack's lock for every block
 * that is freed while other streams still use it. `ready_at` is the time on the device's clock when that
 * use ends. `cut` is called if some of those bytes are reused earlier. */
typedef struct strata_deferral strata_deferral_t;
struct strata_deferral {
    void (*add)(strata_deferral_t *self, uint64_t now, uint64_t ready_at, uint64_t bytes);
    void (*cut)(strata_deferral_t *self, uint64_t now, uint64_t ready_at, uint64_t bytes);
};

typedef struct strata_driver_memory strata_driver_memory_t;

/* The settings and state of a place. Successive domains of a place each begin with them. */
typedef struct strata_domain_settings {
    uint64_t limit; /* UINT64_MAX if there is none */
    uint64_t count; /* the last count that was issued */
    strata_stream_t default_stream; /* NULL means the legacy stream */
    strata_deferral_t *deferral; /* may be NULL */
    uint32_t peers; /* other GPUs that may use the place's memory, one bit each */
} strata_domain_settings_t;

/* The graph pools that have begun, in every place of a facade (allocation/graphs/graphs.h). A stream may be
 * captured into a pool of one place and request memory in another. */
typedef struct strata_captures {
    _Atomic uint32_t open; /* the number of open pools; written with the lock */
    _Atomic uint32_t pools; /* pools that have not ended, begun or not */
    /* domains of the facade, NULL for each that does not exist; NULL before the facade has set it */
    strata_domain_t *_Atomic *places;
    uint32_t place_count;
    strata_lock_t lock; /* a leaf */
    strata_graph_pool_t *first;
} strata_captures_t;

enum { STRATA_GROWN = 16 }; /* stacks at which a collection of memory at rest looks: allocation/reclaim/rest.h */

struct strata_domain {
    strata_device_t *device;
    strata_place_t place;
    strata_t facade;
    /* All devices of the facade, by number, each NULL until it is opened. A borrower may be a stream of any
     * of them. */
    strata_device_t *_Atomic const *devices;
    uint32_t device_count;
    strata_group_t ordinary; /* stacks outside pools, of streams without stacks of their own; the first group */
    strata_events_t events;
    strata_deferral_t *deferral; /* may be NULL */
    strata_quarantine_t quarantine;
    strata_sent_t sent; /* blocks sent to other processes */

    strata_captures_t own_captures;
    strata_captures_t *captures; /* those of all places of the facade; until the facade has set them, its own */
    _Atomic uint32_t graph_pools; /* graph pools that have not ended */
    _Atomic uint32_t pool_frees; /* frees to the driver's pools that wait for running work, in all cuda_malloc_async */
    strata_driver_memory_t *_Atomic driver_memory; /* memory that graphs allocate: allocation/domain/driver_memory.h; may be NULL */

    /* Bytes that sources got from the device, and their limit; used only around device calls. With the
     * domain's lock. */
    strata_quota_t quota;
    _Atomic bool over_limit; /* reserved bytes are above the place's limit, and are watched: allocation/reclaim/over_limit.h */
    _Atomic uint64_t peak_reserved_bytes;
    strata_peaks_t peaks; /* of the live bytes in all stacks */
    uint64_t created_at; /* by the device's clock */
    /* Memory at rest (allocation/reclaim/rest.h): the time that collections have cost, and the highest sum of requested bytes */
    _Atomic uint64_t rest_ns, rest_needed;
    _Atomic uint64_t peak_needed; /* highest sum of requested bytes at a growth that might have waited */
    /* bytes returned to the device so far; memory of a driver's pool counts when the pool is trimmed */
    _Atomic uint64_t returned_bytes;

    _Atomic uint64_t count; /* the last count that strata_next_count() or a free with a count used */
    _Atomic(strata_stream_t) default_stream; /* the meaning of NULL; NULL is the legacy stream. Changed at most once */
    _Atomic bool default_from_first; /* it was set before the legacy stream had a stack */

    _Atomic uint32_t peers; /* other GPUs that may use memory of sources, future memory included, one bit each */

    strata_domain_free_memory_fn free_memory; /* the facade's callbacks, or NULL. Constant once created */
    void *free_memory_context;
    strata_unreported_t *unreported; /* outlives the domain; may be NULL. Constant once created */

    strata_lock_t lock; /* guards the fields below */
    /* Every stack of every group in creation order, shared stacks included: domain/stack_list.h. */
    strata_stack_t *first_stack, *last_stack;
    strata_stack_t **chains; /* hash chains by served stream and pool, one for each possible stack */
    strata_stack_t **streams; /* hash chains by stream alone; same count, stored after `chains` */
    uint32_t stack_count, stack_capacity;
    uint64_t stacks_made;
    uint64_t exits_seen; /* the number of thread exits when no exited thread had a stack left */
    uint64_t examined; /* stacks that look-ups and walks have examined */
    uint32_t orphans; /* stacks of forgotten streams that still hold memory */
    strata_stack_t *first_orphan, *last_orphan; /* in creation order */
    strata_stack_handle_t grown[STRATA_GROWN]; /* stacks whose caches in virtual memory have grown, the latest first; 0 if unused */
    strata_stack_t *next_swept; /* the orphan at which the next partial sweep begins; NULL means the first one */
    strata_lock_t borrowers_lock; /* rank EVENTS: taken under the lock above or a stack's lock; guards the fields below */
    strata_borrower_t *borrowers[STRATA_BORROWER_CHAINS]; /* by the hash of the stream */
    strata_stack_t *first_with_many;

    /* Waiting for memory. The epoch advances at every free that finds the waiter bit. */
    strata_condition_t freed;
    uint64_t epoch;
    uint32_t waiters; /* threads between strata_waiting_mark() and strata_waiting_unmark() */
    uint32_t sleeping; /* waiters that sleep although no free is pending */
    _Atomic uint32_t blocked; /* requests that wait for a free, for work, or in a callback; needs no lock */
    strata_directory_t *directory; /* covers all chunks, so that free by pointer can begin at any time; may be NULL */
    bool pointers_noted; /* the program frees by pointer, so stacks note the blocks that they hand out */
};

/* Creates a domain with its ordinary group, from `plan`, and that group's shared stack. The layers may
 * allocate memory immediately, within the limit in `settings`. `plan`, `device` and `directory` must outlive
 * the domain. */
strata_status_t strata_domain_create(strata_device_t *device, strata_place_t place, strata_t facade, const strata_plan_t *plan,
                                     strata_directory_t *directory, const strata_domain_settings_t *settings,
                                     strata_domain_t **domain);
/* Returns the current settings of the domain's place. */
strata_domain_settings_t strata_domain_settings(strata_domain_t *domain);
/* Stores the thread's last error for the facade's close, unless one is already stored. Any thread, under
 * any lock. */
void strata_domain_note_unreported(strata_domain_t *domain);
/* Destroys the remaining stacks and the shared stack, and returns every event. */
void strata_domain_destroy(strata_domain_t *domain);

/* Returns the stack after `previous`, or the first for NULL, in creation order. NULL after the last. Stacks
 * may be created and destroyed during the walk. The returned stack cannot be destroyed until the walk moves
 * on or leaves it. */
strata_stack_t *strata_domain_next_stack(strata_domain_t *domain, strata_stack_t *previous);
/* Ends a walk early. */
void strata_domain_end_walk(strata_domain_t *domain, strata_stack_t *stack);
#define STRATA_DOMAIN_EACH(domain, stack)                                                                                          \
    for (strata_stack_t *stack = strata_domain_next_stack(domain, NULL); stack; stack = strata_domain_next_stack(domain, stack))
/* Walks the stacks of one group like strata_domain_next_stack(). */
strata_stack_t *strata_domain_next_of_group(strata_domain_t *domain, const strata_group_t *group, strata_stack_t *previous);
#define STRATA_DOMAIN_EACH_OF(domain, group, stack)                                                                                \
    for (strata_stack_t *stack = strata_domain_next_of_group(domain, group, NULL); stack;                                          \
         stack = strata_domain_next_of_group(domain, group, stack))
/* Walks the orphans only. While there are any, a request looks at them and at no other stack. */
strata_stack_t *strata_domain_next_orphan(strata_domain_t *domain, strata_stack_t *previous);
bool strata_domain_has_orphans(strata_domain_t *domain);
/* Notes that `stream` uses a block of a stack that may belong to another stream. The stack's lock is held. */
void strata_domain_note_borrower(strata_stack_t *stack, strata_stream_t stream);
/* Returns whether a stream is served by the first stack, which is built before any request. That is the
 * legacy stream's, unless the program had set another default stream before. */
static inline bool strata_domain_is_first(strata_domain_t *domain, strata_stream_t stream) {
    return stream == NULL || (atomic_load(&domain->default_from_first) && stream == atomic_load(&domain->default_stream));
}
/* Adds a stack to its domain. One thread at a time creates stacks (a facade builds so). */
strata_status_t strata_domain_add_stack(strata_domain_t *domain, strata_stack_t *stack);
/* Removes a stack. Requires that no other thread walks there. */
void strata_domain_remove_stack(strata_domain_t *domain, strata_stack_t *stack);
/* Like strata_domain_remove_stack(), under the domain's lock. */
void strata_domain_unlist(strata_domain_t *domain, strata_stack_t *stack);

/* Returns the available and the total memory of the device. Layers size their first chunks and address
 * ranges by these. A simulated device without a bound, or with more memory than any GPU has, counts as one
 * of 80 GiB. Otherwise a layer would reserve an absurd size. Layers then get more chunks and ranges as they
 * need them. No lock is held. */
strata_status_t strata_domain_memory(strata_domain_t *domain, uint64_t *available, uint64_t *total);
/* The bytes of live chunks from the device. */
static inline uint64_t strata_domain_reserved(strata_domain_t *domain) { return atomic_load(&domain->quota.served); }

/* Returns the bytes left below the place's limit, or UINT64_MAX if there is no limit. */
static inline uint64_t strata_domain_headroom(strata_domain_t *domain) {
    uint64_t limit = atomic_load(&domain->quota.limit), reserved = strata_domain_reserved(domain);
    return limit == UINT64_MAX ? limit : limit > reserved ? limit - reserved : 0;
}

/* A source claims bytes before a device call. E_NO_MEMORY if they exceed the place's limit, and then it
 * makes no call. Then it books the memory, which free by pointer finds from then on, or takes the claim
 * back. If booking fails with E_LIMIT or E_HOST_MEMORY, the bytes are still only claimed. No lock is held. */
strata_status_t strata_domain_claim(strata_domain_t *domain, const strata_request_t *request, uint64_t bytes);
strata_status_t strata_domain_book(strata_domain_t *domain, uint64_t address, uint64_t bytes);
void strata_domain_unclaim(strata_domain_t *domain, uint64_t bytes);
/* Counts claimed bytes as reserved: the part of booking that cannot fail. */
void strata_domain_count(strata_domain_t *domain, uint64_t bytes);
/* Raises the peak to the bytes reserved now. */
void strata_domain_note_peak(strata_domain_t *domain);
/* Booked memory is about to be returned to the device. Uncovering hides it from free by pointer before
 * another thread may get the same address. If the device refuses, recovering restores the old state.
 * Otherwise unbooking ends the count once the device has the memory. */
void strata_domain_uncover(strata_domain_t *domain, uint64_t address, uint64_t bytes);
void strata_domain_recover(strata_domain_t *domain, uint64_t address, uint64_t bytes);
void strata_domain_unbook(strata_domain_t *domain, uint64_t bytes);
/* Ends the count of memory that went to a driver's pool, which keeps it. May be called under a stack's lock. */
void strata_domain_discount(strata_domain_t *domain, uint64_t bytes);

/* Notifies the layers of the stacks, one stack after the other, until one has handled the notice. No lock
 * is held. */
void strata_domain_notify(strata_domain_t *domain, strata_notice_t *notice);
/* Notifies the layers of the stack that served a live block. The call may hold that stack's lock. */
void strata_record_notify(strata_record_t *record, strata_notice_t *notice, strata_call_t *call);
/* Polls every stack. Returns the freed bytes. */
uint64_t strata_domain_poll(strata_domain_t *domain, strata_pending_t *pending);
/* Releases idle chunks of every stack. In groups that keep their chunks it releases only those of `own`,
 * which may be NULL. Offers quarantined memory to the device again. Returns the bytes. */
uint64_t strata_domain_release(strata_domain_t *domain, const strata_group_t *own);
/* Ends the stacks of a group like those of forgotten streams. The work of all their users must be known to
 * be complete. */
void strata_domain_orphan_group(strata_domain_t *domain, const strata_group_t *group);
/* Releases idle chunks of one group's stacks, whether it keeps them or not. Returns the bytes. */
uint64_t strata_domain_release_group(strata_domain_t *domain, const strata_group_t *group);
/* Returns the idle bytes of groups that keep their chunks, without `own`, which may be NULL. No release for
 * other groups takes them. */
uint64_t strata_domain_kept_bytes(strata_domain_t *domain, const strata_group_t *own);
/* Returns the idle bytes of one group. With NULL, returns those of all groups that other groups may take memory from. */
uint64_t strata_domain_idle_bytes(strata_domain_t *domain, const strata_group_t *only);
/* Trims the stacks in creation order, those that others use last, until at most `keep` idle bytes remain in
 * all of them. Groups that keep their chunks are neither trimmed nor counted. */
void strata_domain_trim(strata_domain_t *domain, uint64_t keep);
/* Like strata_domain_trim(), for the stacks of one group only. */
void strata_domain_trim_group(strata_domain_t *domain, const strata_group_t *group, uint64_t keep);
/* Returns the stack that serves a stream of the calling thread in a pool, or NULL. `pool` is 0 outside
 * pools. `thread` is that of a per-thread default stream. */
strata_stack_t *strata_domain_find(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread);
/* Returns the handle of that stack, or 0 if there is none. */
strata_stack_handle_t strata_domain_find_handle(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread);
/* Returns whether any stack serves a stream outside pools. If each thread has its own stacks, those of any
 * thread count. */
bool strata_domain_serves(strata_domain_t *domain, strata_stream_t stream);
/* Returns the instances of thread scope that the stacks of a thread share in a group, or NULL. */
strata_stack_t *strata_domain_thread_shared(strata_group_t *group, uint64_t thread);
/* Called before `stream` is destroyed. Its stacks in this place, if it owns blocks there, become orphans.
 * Their cached memory serves other streams of their group once the work of the stream is complete. Their
 * live blocks remain valid, and an empty orphan is destroyed. */
void strata_domain_orphan_stream(strata_domain_t *domain, strata_stream_t stream);
/* Called while building. Once a thread has exited, the stacks of its own default stream become orphans,
 * after a wait for the device. Idle memory of stacks that served only this thread is released, and they are
 * destroyed once they are empty. By then no thread looks them up. */
void strata_domain_orphan_exited_threads(strata_domain_t *domain);
/* Returns whether `stream` names one stream on each of several devices: a default stream, in memory that
 * belongs to no device. */
bool strata_domain_is_ambiguous_stream(const strata_domain_t *domain, strata_stream_t stream);
/* Records an event after the work of a stream. May be called under a stack's lock. E_UNSUPPORTED if the
 * name means several streams: no event follows the work of all of them, and the host must wait. */
strata_status_t strata_domain_record_event(strata_domain_t *domain, strata_handle_t event, strata_stream_t stream);
/* Makes the host wait for a stream of any of the facade's devices, or for each stream that the name means.
 * If that fails, waits for all devices. Returns false if even that failed, or if the stream is being
 * captured. */
bool strata_domain_wait_for(strata_domain_t *domain, strata_stream_t stream);
/* Returns whether a stream may be being captured, so that it must be queried. */
bool strata_domain_may_capture(const strata_domain_t *domain);
/* Sets whether a stream of any of the facade's devices is being captured, and the id of that capture. */
strata_status_t strata_domain_capture_of(strata_domain_t *domain, strata_stream_t stream, strata_capture_status_t *capture,
                                         uint64_t *id);
/* Wait for the place's own device, or for all devices of the facade. Return false also while a stream may
 * be being captured (E_CAPTURE). */
bool strata_domain_wait_for_own(strata_domain_t *domain);
bool strata_domain_wait_for_all(strata_domain_t *domain);
/* Returns E_CAPTURE if the stream is being captured, or if any call on it would break another capture. Does
 * nothing on the stream. A quick call. */
strata_status_t strata_domain_refuse_captured(strata_domain_t *domain, strata_stream_t stream);
/* Sets bytes in stream order. If it fails with E_CAPTURE, no byte was set. No lock is held. */
strata_status_t strata_domain_fill(strata_domain_t *domain, uint64_t address, uint8_t byte, uint64_t size, strata_stream_t stream);
/* Destroys the stacks of forgotten streams that are empty. */
void strata_domain_sweep_orphans(strata_domain_t *domain);

#endif
