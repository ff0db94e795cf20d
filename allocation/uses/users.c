#include "allocation/uses/users.h"

#include "allocation/stack/threads.h"

static uint64_t thread_of(strata_stream_t stream) { return stream == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0; }

/* The legacy stream has two names. */
static strata_stream_t key_of(strata_stream_t stream) { return stream == STRATA_STREAM_LEGACY ? NULL : stream; }

static uint32_t hash_of(strata_stream_t key, uint64_t thread) { return strata_index_hash((uintptr_t)key, thread); }

strata_status_t strata_users_init(strata_users_t *users, strata_events_t *events) {
    *users = (strata_users_t){.events = events};
    strata_status_t status = strata_nodes_init(&users->nodes, sizeof(strata_user_t), STRATA_USERS);
    if (status == STRATA_OK) strata_index_init(&users->index, &users->nodes, offsetof(strata_user_t, link));
    return status;
}

static void drop_event(strata_users_t *users, strata_user_t *user) {
    if (user->end_event) strata_events_release(users->events, user->end_event);
    user->end_event = NULL;
}

void strata_users_destroy(strata_users_t *users) {
    for (uint32_t node = 1; node < users->nodes.used; node++) drop_event(users, strata_user_at(users, node));
    strata_nodes_destroy(&users->nodes);
}

bool strata_user_is_nameable(const strata_user_t *user) {
    return user->state == STRATA_USER_NAMED && user->thread == thread_of(user->stream);
}

bool strata_user_is(const strata_user_t *user, strata_stream_t stream) {
    return user->stream == key_of(stream) && strata_user_is_nameable(user);
}

/* ---- look-up ---- */

/* Node 0 is never NAMED, so it never matches. */
static bool is_of(const strata_user_t *user, strata_stream_t key, uint64_t thread) {
    return user->state == STRATA_USER_NAMED && user->stream == key && user->thread == thread;
}

uint32_t strata_users_find(strata_users_t *users, strata_stream_t stream) {
    strata_stream_t key = key_of(stream);
    uint64_t thread = thread_of(stream);
    if (is_of(strata_user_at(users, users->last), key, thread)) return users->last;
    uint32_t node = strata_index_first(&users->index, hash_of(key, thread));
    while (node && !is_of(strata_user_at(users, node), key, thread)) node = strata_index_next(&users->index, node);
    return users->last = node;
}

uint32_t strata_users_make(strata_users_t *users, strata_stream_t stream) {
    uint32_t node = strata_users_find(users, stream);
    if (node) return node;
    node = strata_nodes_acquire(&users->nodes);
    if (node == 0) {
        strata_fail(STRATA_E_LIMIT, 0, "%d streams use blocks of one layer at the same time, the maximum", STRATA_USERS - 1);
        return 0;
    }
    strata_user_t *user = strata_user_at(users, node);
    *user = (strata_user_t){.stream = key_of(stream), .thread = thread_of(stream), .state = STRATA_USER_NAMED, .link = user->link};
    if (user->thread) {
        user->next_thread = users->first_thread;
        if (user->next_thread) strata_user_at(users, user->next_thread)->prev_thread = node;
        users->first_thread = node;
    }
    strata_index_add(&users->index, node, hash_of(user->stream, user->thread));
    return node;
}

/* ---- the end of a stream, and of an entry ---- */

void strata_users_detach(strata_users_t *users, uint32_t node, strata_user_state_t state) {
    strata_user_t *user = strata_user_at(users, node);
    if (user->state != STRATA_USER_NAMED) return;
    strata_index_remove(&users->index, node);
    user->state = state;
}

void strata_users_end(strata_users_t *users, uint32_t node) {
    strata_user_t *user = strata_user_at(users, node);
    strata_users_detach(users, node, STRATA_USER_UNOBSERVABLE);
    if (user->thread) {
        if (user->prev_thread) strata_user_at(users, user->prev_thread)->next_thread = user->next_thread;
        else users->first_thread = user->next_thread;
        if (user->next_thread) strata_user_at(users, user->next_thread)->prev_thread = user->prev_thread;
    }
    drop_event(users, user);
    user->state = STRATA_USER_UNUSED;
    strata_nodes_release(&users->nodes, node);
}

void strata_users_release(strata_users_t *users, uint32_t node) {
    strata_user_t *user = strata_user_at(users, node);
    if (--user->holds == 0 && user->state != STRATA_USER_NAMED) strata_users_end(users, node);
}

void strata_users_reap(strata_users_t *users, void (*detach)(void *owner, uint32_t node), void *owner) {
    uint64_t exits = strata_threads_exits();
    if (exits == users->exits_seen) return;
    users->exits_seen = exits;
    for (uint32_t node = users->first_thread, next; node; node = next) {
        const strata_user_t *user = strata_user_at(users, node);
        next = user->next_thread;
        users->index.examined++;
        if (user->state != STRATA_USER_NAMED || strata_threads_is_alive(user->thread)) continue;
        if (user->holds == 0) strata_users_end(users, node);
        else detach(owner, node);
    }
}

uint32_t strata_users_next_exited_thread(const strata_users_t *users, uint32_t node) {
    node = node ? strata_user_at(users, node)->next_thread : users->first_thread;
    while (node && strata_user_at(users, node)->state != STRATA_USER_UNOBSERVABLE) node = strata_user_at(users, node)->next_thread;
    return node;
}

strata_status_t strata_users_query(strata_users_t *users, uint32_t node) {
    strata_user_t *user = strata_user_at(users, node);
    if (user->state != STRATA_USER_DESTROYED) return STRATA_E_NOT_READY;
    strata_status_t status = user->end_event ? strata_device_event_query(users->events->device, user->end_event) : STRATA_OK;
    if (status == STRATA_OK) drop_event(users, user);
    return status;
}

/* ---- check ---- */

static bool is_indexed(strata_users_t *users, uint32_t node) {
    const strata_user_t *user = strata_user_at(users, node);
    uint32_t found = strata_index_first(&users->index, hash_of(user->stream, user->thread));
    while (found && found != node) found = strata_index_next(&users->index, found);
    return found != 0;
}

strata_status_t strata_users_validate(strata_users_t *users) {
    uint32_t named = 0, of_threads = 0, listed = 0;
    for (uint32_t node = users->first_thread; node && listed < users->nodes.used; node = strata_user_at(users, node)->next_thread)
        listed++;
    strata_status_t status = strata_nodes_validate(&users->nodes);
    if (status == STRATA_OK) status = strata_index_validate(&users->index);
    for (uint32_t node = 1; node < users->nodes.used && status == STRATA_OK; node++) {
        const strata_user_t *user = strata_user_at(users, node);
        if (user->state == STRATA_USER_UNUSED) continue;
        of_threads += user->thread != 0;
        named += user->state == STRATA_USER_NAMED;
        if (user->state == STRATA_USER_NAMED && !is_indexed(users, node))
            status = strata_fail(STRATA_E_CORRUPT, 0, "a stream's entry %u is not found by its handle", node);
    }
    if (status != STRATA_OK || (named == users->index.count && of_threads == listed)) return status;
    return strata_fail(STRATA_E_CORRUPT, 0, "the streams' index counts %u entries and %u of threads, but there are %u and %u",
                       users->index.count, listed, named, of_threads);
}
