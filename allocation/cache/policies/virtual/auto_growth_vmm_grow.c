/* Decides what serves a miss of auto_growth_vmm: free pieces of handles, joined in a view, or new handles
 * beside a free block.
 *
 * Creation is preferred while the cache holds little more than its peak use (`slack`), because a new handle
 * remains useful for all later requests. Handles grow with the cache, because each call of the device takes
 * time per handle. */
#include "allocation/cache/policies/virtual/auto_growth_vmm_state.h"
#include "allocation/report/outcome.h"

#include "platform/arithmetic.h"

/* Found by replaying the traces of docs/comparison.md under a few hundred choices each. The PARTS_ and
 * _OF_LITTLE values divide the peak use. */
enum {
    PARTS_LARGEST = 64, /* max size of a handle, but at least LARGEST_LEAST */
    PARTS_SPARE = 128, /* min bytes to create, within the slack */
    ASKS_FIRST = 8, /* a growth of at least this many handles first queries the device's available memory */
    USUAL = 1, /* a size is not divided if it was created this often among the latest STRATA_VMM_REMEMBERED */
    PAIRS_FROM = 8, /* after this many blocks of one size in a row, each growth is for two */
    UNSEEN = 16, /* after this many sizes that were not requested before, handles are small */
    BUDGET_PARTS = 50, /* views and moves may take this part of the time since the place was opened */
    REPEATS_MAX = 256, /* after this many misses of known sizes the program's blocks have stopped growing */
    STEPS = 2, /* the program's blocks grow if this many new sizes in a row have grown by the step of the two before */
    PARTS_STEP = 8, /* a size has grown from another by at most this part of itself */
    PARTS_UNSEEN = 2048, /* max size of such a small handle, but at least UNSEEN_MIN */
    PARTS_MISS = 16, /* and at least this part of the missing bytes, because the device takes time for each handle */
    SPARE_OF_LITTLE = 16, /* limits SPARE_MIN */
    SLACK_OF_LITTLE = 28 /* limits `slack_least` */
};
#define LARGEST_LEAST (512ull << 20) /* a handle may have this size even if the peak use is small */
#define BUDGET_MIN    (10ull * 1000 * 1000) /* ns */
#define UNSEEN_MIN    (4ull << 20) /* and this size if it is a small handle */
#define SPARE_MIN     (36ull << 20)
#define PAIRS_MIN     (128ull << 20) /* rows of smaller blocks are interrupted by other blocks */

static strata_slab_t *slab(const auto_growth_vmm_t *self) { return strata_growth_vmm_slab(self); }

static uint64_t in_handles(const auto_growth_vmm_t *self, uint64_t bytes) {
    return strata_round_down(bytes + self->granularity - 1, self->granularity);
}

/* One growth. */
typedef struct growth {
    uint64_t rounded;
    vmm_kind_t pool;
    vmm_room_t room; /* where the fewest bytes are missing */
    uint64_t most; /* max bytes of a handle */
    bool joins; /* idle memory may be joined within the budget of time */
    uint64_t missing; /* bytes that the room lacks, in whole handles; 0 if other threads freed a block that fits */
} growth_t;

/* ---- one size in a row ---- */

/* Returns the bytes of the next two blocks in a row of large blocks, or 0 if there is no such row. The two are
 * created as one handle. A program that loads the layers of its model allocates blocks of one size and computes
 * nothing until it has them all. Then each device call delays it. The number of layers is mostly even. If it is
 * odd, one block is unused, at most a ninth of the row. */
static uint64_t next_two(const auto_growth_vmm_t *self, const growth_t *growth) {
    if (self->row_count < PAIRS_FROM || self->row_count % 2 != 0 || growth->rounded < PAIRS_MIN) return 0;
    uint64_t bytes = in_handles(self, 2 * growth->rounded - growth->room.have);
    return bytes <= growth->room.width ? bytes : 0;
}

/* ---- creating ---- */

static uint64_t handle_at_most(const auto_growth_vmm_t *self) {
    return in_handles(self, strata_max(self->peak_used / PARTS_LARGEST, LARGEST_LEAST));
}

/* Returns the size that was new `distance` new sizes ago, or 0. */
static uint64_t asked_before(const auto_growth_vmm_t *self, uint32_t distance) {
    return self->asked[(self->asked_next - distance) % STRATA_VMM_ASKED];
}

/* Returns true if a size has grown by the step from the size that was new `buffers` sizes before. */
static bool is_next_step(const auto_growth_vmm_t *self, uint64_t size) {
    return self->step > 0 && asked_before(self, self->buffers) + self->step == size;
}

/* Counts new sizes in a row that have each grown by one step from the size that was new a fixed number of sizes before. That is the
 * number of buffers that grow together. */
static void note_step(auto_growth_vmm_t *self, uint64_t size) {
    bool grows = is_next_step(self, size);
    self->steps = grows ? self->steps + 1 : 0;
    if (!grows) self->step = 0;
    for (uint32_t buffers = 1; self->step == 0 && buffers < STRATA_VMM_ASKED; buffers++) {
        uint64_t before = asked_before(self, buffers), earlier = asked_before(self, buffers + 1);
        if (earlier == 0) return;
        if (before >= size || earlier + (size - before) != asked_before(self, 1)) continue;
        self->step = size - before;
        self->buffers = buffers;
    }
}

/* Counts a new size as growth if the next smaller size of recent requests is near, and much nearer than the next
 * larger one. Random sizes have both equally near, so their count stays low. Sizes that grow by one step are detected
 * earlier. */
static void note_growth(auto_growth_vmm_t *self, uint64_t size) {
    uint64_t below = UINT64_MAX, above = UINT64_MAX;
    for (uint32_t i = 0; i < STRATA_VMM_ASKED; i++) {
        uint64_t asked = self->asked[i];
        if (asked < size) below = strata_min(below, size - asked);
        else above = strata_min(above, asked - size);
    }
    note_step(self, size);
    bool grows = self->steps > 0 || (below <= size / PARTS_STEP && below <= above / 2);
    if (grows) self->repeats = 0;
    if (grows) self->growths++;
    else if (self->growths > 0 && !strata_growth_vmm_is_growing(self)) self->growths--;
    if (self->steps >= STEPS && !strata_growth_vmm_is_growing(self)) self->growths = STRATA_VMM_GROWING;
}

/* Notes a size. Returns true if the program's sizes do not repeat. Such a program leaves free pieces in the
 * middle of handles, where no view can use them. Small handles lose less that way. A program that repeats its
 * sizes would pay for small handles in each view. */
static bool note_asked(auto_growth_vmm_t *self, uint64_t size) {
    bool known = false;
    /* A growing block may have the size of another block. */
    for (uint32_t i = 0; i < STRATA_VMM_ASKED && !known; i++) known = self->asked[i] == size && !is_next_step(self, size);
    if (!known) note_growth(self, size);
    else if (++self->repeats > REPEATS_MAX) self->growths = self->steps = 0;
    if (!known) self->asked[self->asked_next++ % STRATA_VMM_ASKED] = size;
    self->unseen = known ? self->unseen / 2 : self->unseen + 1;
    return self->unseen >= UNSEEN;
}

/* Notes a creation. Returns true if its size is created again and again. Such blocks are also freed and
 * requested in that size, so one handle of any size will do. */
static bool is_usual(auto_growth_vmm_t *self, uint64_t bytes) {
    uint32_t times = 0;
    for (uint32_t i = 0; i < STRATA_VMM_REMEMBERED; i++) times += self->created[i] == bytes;
    self->created[self->created_next++ % STRATA_VMM_REMEMBERED] = bytes;
    return times >= USUAL;
}

void strata_growth_vmm_add_free(auto_growth_vmm_t *self, uint32_t slot, vmm_kind_t pool) {
    strata_record_t *block = strata_slab_record(slab(self), slot);
    block->pool = (uint8_t)pool;
    self->growth.used_bytes += block->size;
    self->growth.chunks.known = strata_auto_growth_free_block(&self->growth, block);
}

static uint64_t now_of(const auto_growth_vmm_t *self) {
    strata_clock_t *clock = self->growth.base.domain->device->clock;
    return clock->now(clock);
}

/* Returns whether views and moves are within their budget. It is a part of the program's time, or a little more than
 * the time that the creation of all handles has taken. Without it a program whose sizes never repeat would spend most
 * of its time on mappings. */
static bool may_join(const auto_growth_vmm_t *self) {
    uint64_t elapsed = now_of(self) - self->growth.base.domain->created_at;
    return self->joined_ns <= strata_max(self->created_ns + BUDGET_MIN, elapsed / BUDGET_PARTS);
}

/* Creates handles of `bytes` bytes together, of about `most` bytes each, with the locks open. They follow the *done
 * bytes that are in the room already. */
static strata_status_t create(auto_growth_vmm_t *self, const vmm_room_t *room, uint64_t bytes, uint64_t most,
                              const strata_request_t *request, uint64_t *done) {
    if (is_usual(self, bytes) && most >= handle_at_most(self)) most = bytes;
    uint64_t count = (bytes + most - 1) / most, units = bytes / self->granularity, began = now_of(self);
    strata_status_t status = STRATA_OK;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t size = (units / count + (i < units % count)) * self->granularity;
        uint64_t at = room->below ? room->at + room->width - *done - size : room->at + *done;
        uint32_t slot;
        status = strata_runs_map(&self->runs, at, size, request, &slot);
        if (status != STRATA_OK) {
            uint32_t shadow = at && strata_vmm_still_maps(self->vmm, at) ? strata_growth_vmm_block(self, at, size) : 0;
            if (shadow) strata_growth_vmm_unblock(self, shadow);
            break;
        }
        self->creations++;
        if (room->kind == STRATA_VMM_SMALL) self->small_bytes += size;
        *done += size;
        strata_growth_vmm_add_free(self, slot, room->kind);
    }
    self->created_ns += now_of(self) - began;
    return status;
}

/* Returns the bytes that may be created before free pieces are joined in views instead. A program whose blocks all grow
 * by one step has twice the slack. Otherwise it would move handles for nearly each block. */
static uint64_t allowance(const auto_growth_vmm_t *self) {
    const auto_growth_vmm_options_t *o = strata_growth_vmm_options(self);
    uint64_t share = strata_share(self->peak_used, self->steps >= STEPS && o->moves ? 2 * o->slack : o->slack);
    uint64_t slack = strata_max(share, strata_min(o->slack_least, self->peak_used / SLACK_OF_LITTLE));
    uint64_t most = self->peak_used + slack, held = self->growth.chunks.held;
    return held < most ? strata_round_down(most - held, self->granularity) : 0;
}

/* Returns the bytes to create for this miss and the next ones. Small blocks get the smallest handles, one by one.
 * The device takes the same time for each handle, and a large one would stay for one small block. */
static uint64_t spare(const auto_growth_vmm_t *self, const vmm_room_t *room) {
    if (room->kind == STRATA_VMM_SMALL) return 0;
    uint64_t least = strata_max(self->peak_used / PARTS_SPARE, strata_min(SPARE_MIN, self->peak_used / SPARE_OF_LITTLE));
    least = strata_min(least, allowance(self));
    return strata_min(strata_round_down(least, self->granularity), room->width);
}

/* Returns true if the device reports less available memory than is missing. Only a growth of many handles
 * queries that, because a query costs a sixth of creating one. Managed memory can move to the host, so the
 * device may still serve the request. So the caller tries one handle, which costs one refusal at most. */
static bool is_doubtful(auto_growth_vmm_t *self, uint64_t missing, strata_call_t *call) {
    uint64_t available, total;
    if (missing < ASKS_FIRST * handle_at_most(self)) return false;
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_status_t status = strata_device_mem_info(self->growth.base.domain->device, &available, &total);
    strata_call_lock(call, opened);
    return status == STRATA_OK && available < missing;
}

/* Creates the handles that the room lacks, and more if the device has memory for them. */
static strata_status_t fill(auto_growth_vmm_t *self, const growth_t *growth, const strata_request_t *request) {
    const vmm_room_t *room = &growth->room;
    uint64_t missing = growth->missing, most = growth->most, done = 0;
    uint64_t more = request->flags & STRATA_SMALL_GROWTH ? 0 : spare(self, room);
    uint64_t two = more > 0 ? next_two(self, growth) : 0;
    if (two > more) more = most = two;
    if (is_doubtful(self, missing, request->call)) return create(self, room, missing, missing, request, &done);
    strata_status_t status = create(self, room, strata_max(missing, more), most, request, &done);
    if (status == STRATA_OK && two > 0 && two == more) self->row_count++;
    if (status == STRATA_E_NO_MEMORY && more > missing)
        status = done < missing ? create(self, room, missing - done, most, request, &done) : STRATA_OK;
    if (status == STRATA_E_NO_MEMORY) strata_refused_piece(request, missing, done);
    return status;
}

static strata_status_t find_room(auto_growth_vmm_t *self, growth_t *growth, strata_call_t *call) {
    strata_status_t status = strata_growth_vmm_find_room(self, growth->rounded, growth->pool, call, &growth->room);
    uint64_t have = growth->room.have;
    growth->missing = status == STRATA_OK && have < growth->rounded ? in_handles(self, growth->rounded - have) : 0;
    return status;
}

/* Serves the request from free pieces. If they lack bytes, it first creates handles for these, unless extending
 * a free block needs no more. */
static strata_status_t join_idle(auto_growth_vmm_t *self, growth_t *growth, const strata_request_t *request,
                                 strata_record_t **served) {
    uint64_t lacking, done = 0;
    strata_status_t status = strata_growth_vmm_view(self, growth->rounded, request, served, &lacking);
    if (status != STRATA_OK || *served) return status;
    status = find_room(self, growth, request->call);
    lacking = in_handles(self, lacking);
    if (status != STRATA_OK || lacking == 0 || lacking >= growth->missing) return status;
    uint64_t most = is_doubtful(self, lacking, request->call) ? lacking : growth->most;
    status = create(self, &growth->room, lacking, most, request, &done);
    if (status == STRATA_OK) status = strata_growth_vmm_view(self, growth->rounded, request, served, &lacking);
    return status == STRATA_OK && !*served ? find_room(self, growth, request->call) : status;
}

/* Joins idle memory, in a view or by moves, as far as the budget permits. Without a view, *served stays NULL. */
static strata_status_t join_within_budget(auto_growth_vmm_t *self, growth_t *growth, const strata_request_t *request,
                                          strata_record_t **served) {
    strata_status_t status = STRATA_OK;
    bool grows = strata_growth_vmm_is_growing(self);
    *served = grows || !growth->joins ? strata_growth_vmm_reuse_view(self, growth->rounded, request->size) : NULL;
    if (*served || !growth->joins) return STRATA_OK;
    if (grows) {
        strata_growth_vmm_gather(self, &growth->room, growth->missing, request->call);
        status = find_room(self, growth, request->call);
    }
    return status == STRATA_OK && growth->missing > allowance(self) ? join_idle(self, growth, request, served) : status;
}

/* Creates what is missing. If the device refuses that, idle memory is joined even beyond the budget. */
static strata_status_t fill_or_join(auto_growth_vmm_t *self, growth_t *growth, const strata_request_t *request,
                                    strata_record_t **served) {
    strata_status_t status = fill(self, growth, request);
    if (status != STRATA_E_NO_MEMORY || growth->joins || growth->pool != STRATA_VMM_LARGE) return status;
    const strata_error_t reason = *strata_last_error();
    status = join_idle(self, growth, request, served);
    return status == STRATA_OK && !*served ? strata_fail_again(&reason) : status;
}

static strata_status_t find_or_create(auto_growth_vmm_t *self, uint64_t rounded, const strata_request_t *request, uint64_t *place,
                                      strata_record_t **served) {
    growth_t growth = {.rounded = rounded, .joins = true, .most = handle_at_most(self)};
    growth.pool = strata_auto_growth_pool_for(&self->growth, rounded);
    strata_status_t status = find_room(self, &growth, request->call);
    bool unseen = growth.pool == STRATA_VMM_LARGE && note_asked(self, rounded);
    uint64_t began = now_of(self), created = self->created_ns;
    if (status == STRATA_OK && growth.pool == STRATA_VMM_LARGE && growth.missing > allowance(self)) {
        uint64_t small = strata_max(growth.missing / PARTS_MISS, strata_max(self->peak_used / PARTS_UNSEEN, UNSEEN_MIN));
        if (unseen && !strata_growth_vmm_is_growing(self)) growth.most = in_handles(self, small);
        growth.joins = may_join(self);
        status = join_within_budget(self, &growth, request, served);
    }
    bool creates = status == STRATA_OK && !*served && growth.missing > 0;
    if (creates) strata_growth_vmm_drop_shadows(self, false, request->call);
    self->joined_ns += now_of(self) - began - (self->created_ns - created);
    if (!creates) return status;
    const vmm_room_t *room = &growth.room;
    *place = room->below ? 0 : room->beside ? strata_slab_record(slab(self), room->beside)->ptr : room->at;
    return fill_or_join(self, &growth, request, served);
}

/* Serves the request when the device has no more memory. Free pieces are used even if the allowance permits
 * creation. So is the other pool, which is separate only so that small blocks do not keep large handles in use. */
static strata_status_t serve_any_other_way(auto_growth_vmm_t *self, vmm_kind_t pool, strata_lookup_t *lookup,
                                           strata_record_t **served) {
    const strata_request_t *request = lookup->request;
    const strata_error_t reason = *strata_last_error();
    vmm_kind_t other = pool == STRATA_VMM_SMALL ? STRATA_VMM_LARGE : STRATA_VMM_SMALL;
    uint64_t lacking;
    if (pool == STRATA_VMM_LARGE) (void)strata_growth_vmm_view(self, lookup->rounded, request, served, &lacking);
    if (*served) return STRATA_OK;
    *served = strata_auto_growth_serve_from_pool(&self->growth, lookup->rounded, lookup->size, other);
    if (!*served) return strata_fail_again(&reason);
    lookup->grown = false;
    return STRATA_OK;
}

/* Refuses a block that is larger than the device itself, so that nothing is created or released for it. Where the
 * device has the host's memory, the attempt would take that from the system. */
static strata_status_t refuse_larger_than_device(auto_growth_vmm_t *self, const strata_request_t *request, uint64_t rounded) {
    uint64_t available;
    if (rounded < ASKS_FIRST * LARGEST_LEAST) return STRATA_OK;
    if (self->device_bytes == 0) {
        uint64_t total = 0;
        strata_unlocked_t opened = strata_call_unlock(request->call);
        strata_status_t status = strata_device_mem_info(self->growth.base.domain->device, &available, &total);
        strata_call_lock(request->call, opened);
        if (status == STRATA_OK) self->device_bytes = total;
    }
    if (self->device_bytes == 0 || rounded <= self->device_bytes) return STRATA_OK;
    strata_refused_for_good(request, rounded);
    return strata_fail(STRATA_E_NO_MEMORY, 0, "the device has %llu bytes in all, and the block needs %llu",
                       (unsigned long long)self->device_bytes, (unsigned long long)rounded);
}

/* Only one thread grows at a time, so no other thread changes peak_used. A refused request was not in use, so
 * peak_used is restored. */
strata_status_t strata_growth_vmm_grow(strata_layer_t *base, strata_lookup_t *lookup, uint64_t rounded, strata_record_t **served) {
    auto_growth_vmm_t *self = (auto_growth_vmm_t *)base;
    const strata_request_t *request = lookup->request;
    uint64_t place = 0;
    strata_status_t status = refuse_larger_than_device(self, request, rounded);
    if (status != STRATA_OK) return status;
    vmm_kind_t pool = strata_auto_growth_pool_for(&self->growth, rounded);
    /* If a free block is large enough, another thread freed it while the lock was open, or there was no slot for its
     * rest. */
    bool fits = strata_bins_find_any(strata_growth_vmm_bins(self, pool), slab(self), rounded) != 0;
    if (fits || strata_growth_vmm_may_mix(self, pool, rounded)) {
        uint64_t slots = strata_slab_slots_for(slab(self), 1);
        strata_unlocked_t opened = strata_call_unlock(request->call);
        strata_status_t reserved = strata_slab_reserve(slab(self), slots);
        strata_call_lock(request->call, opened);
        return reserved;
    }
    const uint64_t before = self->peak_used;
    if (rounded != self->row_size || self->growth.used_bytes < before) self->row_count = 0;
    self->row_size = rounded;
    self->peak_used = strata_max(before, self->growth.used_bytes + rounded);
    status = find_or_create(self, rounded, request, &place, served);
    if (status == STRATA_E_NO_MEMORY) status = serve_any_other_way(self, pool, lookup, served);
    if (status != STRATA_OK) self->peak_used = before;
    else self->row_count++;
    const strata_extent_t extent = {.ptr = place, .size = rounded};
    if (status == STRATA_OK && !*served && place)
        *served = strata_auto_growth_serve_extent(&self->growth, &extent, rounded, lookup->size);
    return status;
}
