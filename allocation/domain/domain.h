/* A domain: all stacks over one physical memory (one place). Out-of-memory concerns the whole domain: it owns the waiting, the
 * event pool and the count of reserved bytes. */
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

/* Called by the ladder with no lock held: frees the caller's own memory and returns the bytes. */
typedef uint64_t (*strata_domain_free_memory_fn)(void *context, strata_place_t place, size_t size);

/* The first failure that could not be reported to anybody, such as one in a layer's end: for the facade's close. */
typedef struct strata_lost {
    _Atomic int state; /* 0: nothing; 1: being written; 2: there */
    strata_error_t error;
} strata_lost_t;

/* For replays, on devices that know when an event passes. Called under a stack's lock for every block that is freed while other streams
 * still use it, with the time on the device's clock at which that use ends. `cut` is called if some of those bytes are reused earlier. */
typedef struct strata_deferral strata_deferral_t;
struct strata_deferral {
    void (*add)(strata_deferral_t *self, uint64_t now, uint64_t ready_at, uint64_t bytes);
    void (*cut)(strata_deferral_t *self, uint64_t now, uint64_t ready_at, uint64_t bytes);
};

typedef struct strata_driver_memory strata_driver_memory_t;

/* What the program has set for a place, and was given: every domain that the place has, one after the other, begins with it. */
typedef struct strata_domain_said {
    uint64_t limit; /* UINT64_MAX: none */
    uint64_t count; /* the last that was given out */
    strata_stream_t default_stream; /* NULL: the legacy stream */
    strata_deferral_t *deferral; /* NULL: nobody asks */
    uint32_t peers; /* other GPUs that may use the place's memory: a bit each */
} strata_domain_said_t;

/* The pools of graphs that are begun, in every place of a facade (allocation/graphs/graphs.h): a stream may be captured into one,
 * and ask in another place. */
typedef struct strata_captures {
    _Atomic uint32_t open; /* how many; with the lock */
    _Atomic uint32_t pools; /* that have not ended, begun or not */
    strata_domain_t *_Atomic *places; /* domains of the facade, NULL where none is; NULL: it has not said so yet */
    uint32_t place_count;
    strata_lock_t lock; /* a leaf */
    strata_graph_pool_t *first;
} strata_captures_t;

struct strata_domain {
    strata_device_t *device;
    strata_place_t place;
    strata_t facade;
    /* All devices of the facade, by number, NULL where none is open yet: a borrower may be a stream of theirs. */
    strata_device_t *_Atomic const *devices;
    uint32_t device_count;
    strata_group_t ordinary; /* stacks outside pools, of streams without stacks of their own; the first of the groups */
    strata_events_t events;
    strata_deferral_t *deferral; /* NULL: nobody asks */
    strata_quarantine_t quarantine;
    strata_sent_t sent; /* to other processes */

    strata_captures_t own_captures;
    strata_captures_t *captures; /* those of all places of the facade; before it has said so its own */
    _Atomic uint32_t graph_pools; /* of captured graphs, that have not ended */
    _Atomic uint32_t
        pool_frees; /* frees to the driver's pools that wait for running work, over all instances of cuda_malloc_async */
    strata_driver_memory_t *_Atomic driver_memory; /* that graphs allocate: allocation/domain/driver_memory.h; NULL: none so far */

    strata_quota_t quota; /* what sources got from the device and may get; used only around device calls. With the domain's lock */
    _Atomic bool above; /* reserved bytes are above the place's limit, and are watched: allocation/reclaim/above.h */
    _Atomic uint64_t peak_reserved_bytes;
    strata_peaks_t peaks; /* of what lives in all stacks */
    _Atomic uint64_t peak_needed; /* highest requested bytes seen at a growth that might have waited */
    _Atomic uint64_t given_bytes; /* that the device got back so far; memory of a driver's pool counts when the pool is trimmed */

    _Atomic uint64_t count; /* the last count that strata_next_count() or a free with a count has got */
    _Atomic(strata_stream_t) default_stream; /* what NULL means; NULL: the legacy stream. Changed at most once */
    _Atomic bool default_from_first; /* it was set before the legacy stream had a stack */

    _Atomic uint32_t peers; /* other GPUs that may use memory of sources, what comes included: a bit each */

    strata_domain_free_memory_fn free_memory; /* the facade's callbacks; NULL: none. Constant once created */
    void *free_memory_context;
    strata_lost_t *lost; /* outlives the domain; may be NULL. Constant once created */

    strata_lock_t lock; /* guards what follows */
    strata_stack_t *first_stack,
        *last_stack; /* every stack of every group in creation order, shared stacks included: stack/stack_list.h */
    strata_stack_t **chains; /* hash chains by served stream and pool, one for each possible stack */
    strata_stack_t **streams; /* hash chains by stream alone; same count, stored after `chains` */
    uint32_t stack_count, stack_capacity;
    uint64_t stacks_made;
    uint64_t exits_seen; /* of threads, up to which nothing that an exited one left is still there */
    uint64_t looked; /* stacks that look-ups and walks have examined */
    uint32_t orphans; /* stacks whose stream was forgotten and that still hold something */
    strata_stack_t *first_orphan, *last_orphan; /* in order of making */
    strata_stack_t *next_swept; /* the orphan at which the next partial sweep begins; NULL: the first one */
    strata_lock_t met_lock; /* rank EVENTS: taken under the lock above or a stack's lock; guards the fields below */
    strata_met_t *met[STRATA_MET_CHAINS]; /* by the hash of the stream */
    strata_stack_t *first_met_many;

    /* Waiting for memory. The epoch moves at every free that finds the waiter bit. */
    strata_condition_t freed;
    uint64_t epoch;
    uint32_t waiters; /* threads between "sets the bit" and "clears it" */
    uint32_t sleeping; /* those of them that wait although nothing is pending that they could wait for */
    _Atomic uint32_t held_up; /* requests that wait for a free, for work, or in a callback; needs no lock */
    strata_directory_t *directory; /* covers all chunks, so that free by pointer can begin at any time; may be NULL */
    bool pointers_noted; /* somebody frees by pointer: stacks note what they hand out */
};

/* Makes the ordinary group from `plan`, with its shared stack, whose layers may get memory already, as `said` allows. `plan`,
 * `device` and `directory` must outlive the domain. */
strata_status_t strata_domain_create(strata_device_t *device, strata_place_t place, strata_t facade, const strata_plan_t *plan,
                                     strata_directory_t *directory, const strata_domain_said_t *said, strata_domain_t **domain);
/* What is set for its place now. */
strata_domain_said_t strata_domain_said(strata_domain_t *domain);
/* Keeps the thread's last error, if none is kept yet. Any thread, under any lock. */
void strata_domain_lose(strata_domain_t *domain);
/* Destroys the remaining stacks and the shared stack, and gives back every event. */
void strata_domain_destroy(strata_domain_t *domain);

/* The stacks in order of making, while stacks come and go: the one after `previous` (NULL: the first); NULL after the last. The
 * returned stack cannot end until the walk goes on or leaves it. */
strata_stack_t *strata_domain_next_stack(strata_domain_t *domain, strata_stack_t *previous);
/* Ends a walk early. */
void strata_domain_leave_stack(strata_domain_t *domain, strata_stack_t *stack);
#define STRATA_DOMAIN_EACH(domain, stack)                                                                                          \
    for (strata_stack_t *stack = strata_domain_next_stack(domain, NULL); stack; stack = strata_domain_next_stack(domain, stack))
/* The same for the stacks of one group. */
strata_stack_t *strata_domain_next_of_group(strata_domain_t *domain, const strata_group_t *group, strata_stack_t *previous);
#define STRATA_DOMAIN_EACH_OF(domain, group, stack)                                                                                \
    for (strata_stack_t *stack = strata_domain_next_of_group(domain, group, NULL); stack;                                          \
         stack = strata_domain_next_of_group(domain, group, stack))
/* The same for the orphans only: as long as there are some a request looks at them, and at no other stack. */
strata_stack_t *strata_domain_next_orphan(strata_domain_t *domain, strata_stack_t *previous);
bool strata_domain_has_orphans(strata_domain_t *domain);
/* Notes that `stream` uses a block of a stack that may belong to another stream. The stack's lock is held. */
void strata_domain_meet(strata_stack_t *stack, strata_stream_t stream);
/* Whether a stack is the one that NULL has meant from the beginning, built before anybody asks: the legacy stream's, unless the
 * program had said otherwise by then. */
static inline bool strata_domain_is_first(strata_domain_t *domain, strata_stream_t stream) {
    return stream == NULL || (atomic_load(&domain->default_from_first) && stream == atomic_load(&domain->default_stream));
}
/* One thread at a time makes stacks (a facade builds so). */
strata_status_t strata_domain_add_stack(strata_domain_t *domain, strata_stack_t *stack);
/* Only while no other thread walks there. */
void strata_domain_remove_stack(strata_domain_t *domain, strata_stack_t *stack);
/* The same, under the domain's lock. */
void strata_domain_unlist(strata_domain_t *domain, strata_stack_t *stack);

/* Returns the available and the total memory of the device. Layers size their first chunks and address ranges by these. A simulated
 * device without a bound, or with more memory than any GPU has, counts as one of 80 GiB, so that no layer reserves an absurd size.
 * Layers then get more chunks and ranges as they need them. No lock is held. */
strata_status_t strata_domain_memory(strata_domain_t *domain, uint64_t *available, uint64_t *total);
/* Live chunks got from the device. */
static inline uint64_t strata_domain_reserved(strata_domain_t *domain) { return atomic_load(&domain->quota.served); }

/* The bytes that the place's limit leaves; UINT64_MAX: there is none. */
static inline uint64_t strata_domain_headroom(strata_domain_t *domain) {
    uint64_t limit = atomic_load(&domain->quota.limit), reserved = strata_domain_reserved(domain);
    return limit == UINT64_MAX ? limit : limit > reserved ? limit - reserved : 0;
}

/* A source claims what it is about to ask the device for: E_NO_MEMORY above the place's limit, and then no device call. Then it
 * books what it got, which free by pointer knows from now on (E_LIMIT, E_HOST_MEMORY: it is still only claimed), or takes the claim
 * back. No lock is held. */
strata_status_t strata_domain_claim(strata_domain_t *domain, const strata_request_t *request, uint64_t bytes);
strata_status_t strata_domain_book(strata_domain_t *domain, uint64_t address, uint64_t bytes);
void strata_domain_unclaim(strata_domain_t *domain, uint64_t bytes);
/* What was claimed and got counts as reserved: the part of booking that cannot fail. */
void strata_domain_count(strata_domain_t *domain, uint64_t bytes);
/* Raises the peak to what is reserved now. */
void strata_domain_note_peak(strata_domain_t *domain);
/* Booked memory is about to go back: free by pointer forgets it before another thread may be given the same address. If the device
 * refuses, everything is as before; otherwise it stops counting once the device has it. */
void strata_domain_uncover(strata_domain_t *domain, uint64_t address, uint64_t bytes);
void strata_domain_recover(strata_domain_t *domain, uint64_t address, uint64_t bytes);
void strata_domain_unbook(strata_domain_t *domain, uint64_t bytes);
/* The same for memory that went to a driver's pool, which keeps it. May be called under a stack's lock. */
void strata_domain_discount(strata_domain_t *domain, uint64_t bytes);

/* Notifies the layers of the stacks, one stack after the other, until one has taken the notice. No lock is held. */
void strata_domain_notify(strata_domain_t *domain, strata_notice_t *notice);
/* Notifies the layers of the stack that served a live block, whose lock the call may hold. */
void strata_record_notify(strata_record_t *record, strata_notice_t *notice, strata_call_t *call);
/* Polls every stack; returns the bytes. */
uint64_t strata_domain_poll(strata_domain_t *domain, strata_pending_t *pending);
/* Gives back idle chunks of every stack; of groups that keep theirs only those of `own` (NULL: none). Offers quarantined memory
 * again. Returns the bytes. */
uint64_t strata_domain_release(strata_domain_t *domain, const strata_group_t *own);
/* The stacks of a group, whose users are all known to be done, end as those of forgotten streams do. */
void strata_domain_orphan_group(strata_domain_t *domain, const strata_group_t *group);
/* Gives back idle chunks of one group's stacks, whether it keeps them or not; returns the bytes. */
uint64_t strata_domain_release_group(strata_domain_t *domain, const strata_group_t *group);
/* The idle bytes of groups that keep their chunks, without `own` (NULL: none): no release of others takes them. */
uint64_t strata_domain_kept_bytes(strata_domain_t *domain, const strata_group_t *own);
/* The stacks give back in order of making, those that others use last, until at most `keep` idle bytes stay in all of them.
 * Groups that keep their chunks are neither asked nor counted. */
void strata_domain_trim(strata_domain_t *domain, uint64_t keep);
/* The same for the stacks of one group alone. */
void strata_domain_trim_group(strata_domain_t *domain, const strata_group_t *group, uint64_t keep);
/* The stack that serves a stream (and thread, for the per-thread default stream) of the calling thread in a pool (0: in none), or
 * NULL. */
strata_stack_t *strata_domain_find(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread);
/* Its handle; 0: there is none. */
strata_stack_handle_t strata_domain_find_handle(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread);
/* Whether any stack serves a stream outside pools; if each thread has its own, that of any thread. */
bool strata_domain_serves(strata_domain_t *domain, strata_stream_t stream);
/* The instances of thread scope that the stacks of a thread share in a group; NULL: none yet. */
strata_stack_t *strata_domain_thread_shared(strata_group_t *group, uint64_t thread);
/* `stream` will be destroyed. The stacks that it has in this place, if it owns blocks there, become orphans: what they cache serves
 * other streams of their group once the work of the stream is done; their live blocks stay valid; they end when they hold nothing
 * more. */
void strata_domain_forget_stream(strata_domain_t *domain, strata_stream_t stream);
/* While building. Once a thread has exited, the stacks of its own default stream become orphans, after a wait for the device. Idle
 * memory of stacks that served only this thread goes back, and they end when they hold nothing more; nobody looks them up by
 * then. */
void strata_domain_forget_dead_threads(strata_domain_t *domain);
/* Whether the name means a stream on each of several devices: that of a default stream, in memory that belongs to no device. */
bool strata_domain_means_many(const strata_domain_t *domain, strata_stream_t stream);
/* Also under a stack's lock. E_UNSUPPORTED if the name means many: no event comes after the work of all of them, and the host must
 * wait. */
strata_status_t strata_domain_record_event(strata_domain_t *domain, strata_handle_t event, strata_stream_t stream);
/* The host waits for a stream of any of the facade's devices, or for each that the name means; if that fails, for all of them.
 * False: even that failed, or the stream is being captured. */
bool strata_domain_wait_for(strata_domain_t *domain, strata_stream_t stream);
/* Whether it is worth asking which streams are being captured. */
bool strata_domain_may_capture(const strata_domain_t *domain);
/* Whether a stream of any of the facade's devices is being captured, and for which graph. */
strata_status_t strata_domain_capture_of(strata_domain_t *domain, strata_stream_t stream, strata_capture_status_t *capture,
                                         uint64_t *id);
/* For the place's own device, or for all of the facade. Also false while a stream may be being captured (E_CAPTURE). */
bool strata_domain_wait_for_own(strata_domain_t *domain);
bool strata_domain_wait_for_all(strata_domain_t *domain);
/* E_CAPTURE: the stream is being captured, or any call on it would break another capture: nothing is done on it. A quick call. */
strata_status_t strata_domain_refuse_captured(strata_domain_t *domain, strata_stream_t stream);
/* Sets bytes in the order of the stream. E_CAPTURE: none was set. No lock is held. */
strata_status_t strata_domain_fill(strata_domain_t *domain, uint64_t address, uint8_t byte, uint64_t size, strata_stream_t stream);
/* Stacks of forgotten streams that hold nothing any more end. */
void strata_domain_sweep_orphans(strata_domain_t *domain);

#endif
