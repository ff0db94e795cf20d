/* A domain: all stacks over one physical memory (one place). Out-of-memory is a matter of the domain: it owns the ladder, the
 * waiting, the event pool and the count of reserved bytes. */
#ifndef STRATA_ALLOCATION_DOMAIN_H
#define STRATA_ALLOCATION_DOMAIN_H

#include "allocation/domain/events.h"
#include "allocation/domain/group.h"
#include "allocation/domain/quarantine.h"
#include "allocation/domain/quota.h"
#include "allocation/stack/plan.h"
#include "allocation/stack/stack.h"
#include "platform/device.h"

/* Asked by the ladder, no lock held: frees the caller's own memory and answers the bytes. */
typedef uint64_t (*strata_domain_free_memory_fn)(void *context, strata_place_t place, size_t size);

/* What failed where nobody can be told, as in a layer's end: the first, for the facade's close. */
typedef struct strata_lost {
    _Atomic int state; /* 0: nothing; 1: being written; 2: there */
    strata_error_t error;
} strata_lost_t;

/* What the program has said of a place, and was told: it holds for every domain that the place has, one after the other. */
/* Told of every block that is freed and still in use by other streams: until when, by the device's clock. Under a stack's lock, on
 * devices that know when an event passes. For replays. */
typedef struct strata_deferral strata_deferral_t;
struct strata_deferral {
    void (*add)(strata_deferral_t *self, uint64_t now, uint64_t ready_at, uint64_t bytes);
};

typedef struct strata_domain_said {
    uint64_t limit; /* UINT64_MAX: none */
    uint64_t count; /* the last that was given out */
    strata_stream_t default_stream; /* NULL: the legacy stream */
    strata_deferral_t *deferral; /* NULL: nobody asks */
} strata_domain_said_t;

struct strata_domain {
    strata_device_t *device;
    strata_place_t place;
    strata_t facade;
    /* All devices of the facade, by number, NULL where none is open yet: a borrower may be a stream of theirs. */
    strata_device_t *_Atomic const *devices;
    uint32_t device_count;
    strata_group_t ordinary; /* stacks of no pool, and of no streams that have others; the first of the groups */
    strata_events_t events;
    strata_deferral_t *deferral; /* NULL: nobody asks */
    strata_quarantine_t quarantine;

    strata_quota_t quota; /* what sources got from the device and may get; touched on device calls alone. With the domain's lock */
    _Atomic bool above; /* what is reserved is above the place's limit, and is watched: allocation/reclaim/above.h */
    _Atomic uint64_t peak_reserved_bytes;
    _Atomic uint64_t peak_needed; /* highest requested bytes seen at a growth that might have waited */
    _Atomic uint64_t given_bytes; /* that the device got back so far; what goes to a driver's pool counts when the pool is trimmed */

    _Atomic uint64_t count; /* the last that strata_next_count() or a free that carries one has got */
    _Atomic(strata_stream_t) default_stream; /* what NULL stands for; NULL: the legacy stream. Changed once at most */
    _Atomic bool default_from_first; /* it was set before the legacy stream had a stack */

    strata_domain_free_memory_fn free_memory; /* the facade's callbacks; NULL: none. Constant once created */
    void *free_memory_context;
    strata_lost_t *lost; /* outlives the domain; may be NULL. Constant once created */

    strata_lock_t lock; /* guards what follows */
    strata_stack_t **stacks; /* of all groups in order of making, shared stacks included: allocation/stack/stack_list.h */
    strata_stack_t **chains; /* behind them, as many as there is room for: by whom they serve */
    uint32_t stack_count, stack_capacity;
    uint64_t exits_seen; /* of threads, up to which nothing that one has left is there; only whoever builds stacks looks */
    uint64_t looked; /* stacks that look-ups and walks have looked at */
    uint32_t orphans; /* stacks whose stream was forgotten and that still hold something */
    strata_stack_t *first_orphan, *last_orphan; /* in order of making */

    /* Waiting for memory. The epoch moves at every free that finds the waiter bit. */
    strata_condition_t freed;
    uint64_t epoch;
    uint32_t waiters; /* threads between "sets the bit" and "clears it" */
    uint32_t sleeping; /* of those, the ones that wait with nothing pending that they could wait for */
    _Atomic uint32_t held_up; /* requests that wait for a free, for work, or in a callback; no lock */
    strata_directory_t *directory; /* covers all chunks, so that free by pointer can begin at any time; may be NULL */
    bool pointers_noted; /* somebody frees by pointer: stacks note their hand-outs */
};

/* Makes the ordinary group, by `plan`, with its shared stack, in which layers may get memory already: by `said`. `plan`, `device`,
 * `directory` outlive the domain. */
strata_status_t strata_domain_create(strata_device_t *device, strata_place_t place, strata_t facade, const strata_plan_t *plan,
                                     strata_directory_t *directory, const strata_domain_said_t *said, strata_domain_t **domain);
/* What is said of its place by now. */
strata_domain_said_t strata_domain_said(strata_domain_t *domain);
/* Keeps the thread's last error, if none is kept yet. Any thread, under any lock. */
void strata_domain_lose(strata_domain_t *domain);
/* Destroys what stacks are left and the shared stack, gives back every event. */
void strata_domain_destroy(strata_domain_t *domain);

/* The stacks in order of making, while stacks come and go: the one after `previous` (NULL: the first), NULL behind the last.
 * The stack answered cannot end until the walk goes on or leaves it. */
strata_stack_t *strata_domain_next_stack(strata_domain_t *domain, strata_stack_t *previous);
/* Ends a walk early. */
void strata_domain_leave_stack(strata_domain_t *domain, strata_stack_t *stack);
#define STRATA_DOMAIN_EACH(domain, stack)                                                                                          \
    for (strata_stack_t *stack = strata_domain_next_stack(domain, NULL); stack; stack = strata_domain_next_stack(domain, stack))
/* Likewise of the orphans alone: a request looks at them, and at no other stack, as long as there are some. */
strata_stack_t *strata_domain_next_orphan(strata_domain_t *domain, strata_stack_t *previous);
bool strata_domain_has_orphans(strata_domain_t *domain);
/* Whether a stack is the one that NULL has meant from the first, which is got ready before anybody asks: the legacy stream's where
 * nobody has said otherwise by then. */
static inline bool strata_domain_is_first(strata_domain_t *domain, strata_stream_t stream) {
    return stream == NULL || (atomic_load(&domain->default_from_first) && stream == atomic_load(&domain->default_stream));
}
/* Stacks are made by one thread at a time (a facade builds so). */
strata_status_t strata_domain_add_stack(strata_domain_t *domain, strata_stack_t *stack);
/* Nobody else walks there. */
void strata_domain_remove_stack(strata_domain_t *domain, strata_stack_t *stack);
/* Likewise, under the domain's lock. */
void strata_domain_unlist(strata_domain_t *domain, strata_stack_t *stack);

/* Live chunks got from the device. */
static inline uint64_t strata_domain_reserved(strata_domain_t *domain) { return atomic_load(&domain->quota.served); }

/* What the place's limit leaves; UINT64_MAX: there is none. */
static inline uint64_t strata_domain_headroom(strata_domain_t *domain) {
    uint64_t limit = atomic_load(&domain->quota.limit), reserved = strata_domain_reserved(domain);
    return limit == UINT64_MAX ? limit : limit > reserved ? limit - reserved : 0;
}

/* A source claims what it is about to ask the device for, before it asks: E_NO_MEMORY, and no device call, above the place's
 * limit. Then it books what it got, known to free by pointer from now on (E_LIMIT, E_HOST_MEMORY: it is still but claimed), or takes
 * the claim back. No lock is held. */
strata_status_t strata_domain_claim(strata_domain_t *domain, uint64_t bytes);
strata_status_t strata_domain_book(strata_domain_t *domain, uint64_t address, uint64_t bytes);
void strata_domain_unclaim(strata_domain_t *domain, uint64_t bytes);
/* What was claimed and got counts as reserved: the part of booking that cannot fail. */
void strata_domain_count(strata_domain_t *domain, uint64_t bytes);
/* The peak is not below what is reserved now. */
void strata_domain_note_peak(strata_domain_t *domain);
/* What was booked is about to go back: free by pointer forgets it, before another thread may be given the same address. If the
 * device refuses it, it is as before; else it counts no more once the device has it. */
void strata_domain_uncover(strata_domain_t *domain, uint64_t address, uint64_t bytes);
void strata_domain_recover(strata_domain_t *domain, uint64_t address, uint64_t bytes);
void strata_domain_unbook(strata_domain_t *domain, uint64_t bytes);
/* Likewise of what went to a driver's pool, which keeps it. May be called under a stack's lock. */
void strata_domain_discount(strata_domain_t *domain, uint64_t bytes);
/* Another limit; who waits for memory tries again. No lock is held. */
void strata_domain_set_limit(strata_domain_t *domain, uint64_t bytes);

/* Polls every stack; the bytes. */
uint64_t strata_domain_poll(strata_domain_t *domain, strata_pending_t *pending);
/* Idle chunks of every stack go back, of groups that keep theirs those of `own` alone (NULL: nobody's); what the device refused is
 * offered again; the bytes. */
uint64_t strata_domain_release(strata_domain_t *domain, const strata_group_t *own);
/* Idle chunks of one group's stacks go back, whether it keeps them or not; the bytes. */
uint64_t strata_domain_release_group(strata_domain_t *domain, const strata_group_t *group);
/* What groups that keep their chunks hold idle, `own` left out (NULL: none is): bytes that no release of others takes. */
uint64_t strata_domain_kept_bytes(strata_domain_t *domain, const strata_group_t *own);
/* The stacks give back in order of making, those that others stand on last, until at most `keep` idle bytes stay in all of them;
 * the bytes. Groups that keep their chunks are not concerned, nor counted. */
uint64_t strata_domain_trim(strata_domain_t *domain, uint64_t keep);
/* The stack that serves a stream (and thread, for the per-thread default stream) of the calling thread in a pool (0: in none), or
 * NULL. */
strata_stack_t *strata_domain_find(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread);
/* Its handle; 0: there is none. */
strata_stack_handle_t strata_domain_find_handle(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread);
/* Whether a stack serves a stream in no pool, that of any thread where each has its own. */
bool strata_domain_serves(strata_domain_t *domain, strata_stream_t stream);
/* The instances of thread scope that the stacks of a thread share in a group; NULL: none yet. */
strata_stack_t *strata_domain_thread_shared(strata_group_t *group, uint64_t thread);
/* `stream` will be destroyed. The stacks that it has, if it owns blocks in this place, become orphans: what they cache is the
 * other streams' of their group once the work of the stream is done, their live blocks stay valid, and they end when they hold
 * nothing more. */
void strata_domain_forget_stream(strata_domain_t *domain, strata_stream_t stream);
/* While building. Once a thread has exited the stacks of its own default stream become orphans, for which the device is waited for;
 * what stacks that served it alone keep idle goes back, and they end where they hold nothing more: lookups of them are over by then. */
void strata_domain_forget_dead_threads(strata_domain_t *domain);
/* Whether the name means a stream on each of several devices: that of a default stream in memory which is no device's own. */
bool strata_domain_means_many(const strata_domain_t *domain, strata_stream_t stream);
/* Under a stack's lock too. E_UNSUPPORTED where the name means many: no event is behind the work of all of them, and the host has to
 * wait. */
strata_status_t strata_domain_record_event(strata_domain_t *domain, strata_handle_t event, strata_stream_t stream);
/* The host waits for a stream of any of the facade's devices, or for each that the name means; where that fails, for all of them.
 * False: not even that, or the stream is being captured. */
bool strata_domain_wait_for(strata_domain_t *domain, strata_stream_t stream);
bool strata_domain_wait_for_all(strata_domain_t *domain);
/* E_CAPTURE: the stream is being captured, or any call on it would break another's capture: nothing is done on it. A quick call. */
strata_status_t strata_domain_refuse_captured(strata_domain_t *domain, strata_stream_t stream);
/* Sets bytes in the order of the stream. E_CAPTURE: none was set. No lock is held. */
strata_status_t strata_domain_fill(strata_domain_t *domain, uint64_t address, uint8_t byte, uint64_t size, strata_stream_t stream);
/* Stacks of forgotten streams that hold nothing any more end. */
void strata_domain_sweep_orphans(strata_domain_t *domain);

#endif
