#include "allocation/uses/users.h"

#include "allocation/stack/threads.h"
#include "platform/device.h"

static uint64_t thread_of(strata_stream_t stream) { return stream == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0; }

/* The legacy stream has two names. */
static strata_stream_t key_of(strata_stream_t stream) { return stream == STRATA_STREAM_LEGACY ? NULL : stream; }

static uint32_t hash_of(strata_stream_t key, uint64_t thread) { return strata_index_hash((uintptr_t)key, thread); }

strata_status_t strata_users_init(strata_users_t *users, size_t entry_size) {
    *users = (strata_users_t){0};
    strata_status_t status = strata_nodes_init(&users->nodes, entry_size, STRATA_USERS);
    if (status == STRATA_OK) strata_index_init(&users->index, &users->nodes, offsetof(strata_user_t, link));
    return status;
}

void strata_users_destroy(strata_users_t *users) { strata_nodes_destroy(&users->nodes); }

bool strata_user_is_nameable(const strata_user_t *user) {
    return user->state == STRATA_USER_NAMED && user->thread == thread_of(user->stream);
}

/* Number 0 is never NAMED. */
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

uint32_t strata_users_next_of_the_dead(strata_users_t *users, uint32_t node, strata_user_state_t state) {
    while (users->of_threads > 0 && ++node < users->nodes.used) {
        const strata_user_t *user = strata_user_at(users, node);
        users->index.looked++;
        if (user->state == state && user->thread != 0 && !strata_threads_is_alive(user->thread)) return node;
    }
    return 0;
}

static void bury_threads(strata_users_t *users) {
    for (uint32_t node = 0; (node = strata_users_next_of_the_dead(users, node, STRATA_USER_NAMED)) != 0;) {
        const strata_user_t *user = strata_user_at(users, node);
        if (user->holds == 0 && user->busy == 0) strata_users_end(users, node);
    }
}

uint32_t strata_users_make(strata_users_t *users, strata_stream_t stream) {
    uint32_t node = strata_users_find(users, stream);
    if (node) return node;
    if (stream == STRATA_STREAM_PER_THREAD) bury_threads(users);
    node = strata_nodes_take(&users->nodes);
    if (node == 0) {
        strata_fail(STRATA_E_LIMIT, 0, "one source serves %d streams at a time, its most", STRATA_USERS - 1);
        return 0;
    }
    strata_user_t *user = strata_user_at(users, node);
    *user = (strata_user_t){.stream = key_of(stream), .thread = thread_of(stream), .state = STRATA_USER_NAMED, .link = user->link};
    users->of_threads += user->thread != 0;
    strata_index_add(&users->index, node, hash_of(user->stream, user->thread));
    return node;
}

void strata_users_leave(strata_users_t *users, uint32_t node, strata_user_state_t state) {
    strata_user_t *user = strata_user_at(users, node);
    if (user->state == STRATA_USER_NAMED) strata_index_remove(&users->index, node);
    user->state = state;
}

void strata_users_end(strata_users_t *users, uint32_t node) {
    strata_user_t *user = strata_user_at(users, node);
    if (user->state == STRATA_USER_NAMED) strata_index_remove(&users->index, node);
    users->of_threads -= user->thread != 0;
    user->state = STRATA_USER_UNUSED;
    strata_nodes_give(&users->nodes, node);
}

void strata_users_let_go(strata_users_t *users, uint32_t node) {
    strata_user_t *user = strata_user_at(users, node);
    if (--user->holds == 0 && user->state != STRATA_USER_NAMED) strata_users_end(users, node);
}

static bool is_indexed(strata_users_t *users, uint32_t node) {
    const strata_user_t *user = strata_user_at(users, node);
    uint32_t found = strata_index_first(&users->index, hash_of(user->stream, user->thread));
    while (found && found != node) found = strata_index_next(&users->index, found);
    return found != 0;
}

strata_status_t strata_users_validate(strata_users_t *users) {
    uint32_t named = 0, of_threads = 0;
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
    if (status != STRATA_OK || (named == users->index.count && of_threads == users->of_threads)) return status;
    return strata_fail(STRATA_E_CORRUPT, 0, "the streams' index counts %u entries and %u of threads, there are %u and %u",
                       users->index.count, users->of_threads, named, of_threads);
}
