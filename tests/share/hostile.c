/* What comes from outside is believed in nothing. */
#include <fcntl.h>
#include <sys/mman.h>

#include "tests/share/share.h"

/* A socket pair, and an honest message. */
typedef struct hostile {
    rig_t rig;
    int ends[2];
    strata_shared_t shared;
} hostile_t;

static void open_hostile(hostile_t *self) {
    open_two(&self->rig, CACHED);
    strata_block_t block = make_join(&self->rig);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, self->ends), 0);
    EXPECT_OK(strata_export(self->rig.s, block.ref, &self->shared));
}

static void close_hostile(hostile_t *self) {
    strata_shared_close(&self->shared);
    close(self->ends[0]);
    if (self->ends[1] >= 0) close(self->ends[1]);
    rig_finish(&self->rig);
}

TEST(hostile_share, an_honest_message_arrives_as_it_was) {
    OPENED(hostile_t, h, close_hostile, open_hostile(&h));
    strata_shared_t got = {0};
    ASSERT_OK(strata_share_send(h.ends[1], &h.shared));
    ASSERT_OK(strata_share_receive(h.ends[0], &got));
    EXPECT_EQ(got.count, h.shared.count);
    EXPECT_EQ(got.size, h.shared.size);
    EXPECT_EQ(got.offset, h.shared.offset);
    EXPECT_EQ(got.owner[1], h.shared.owner[1]);
    EXPECT_EQ(got.sender, (uint64_t)getpid());
    EXPECT_EQ(memcmp(got.segments, h.shared.segments, sizeof got.segments), 0);
    for (uint32_t i = 0; i < got.count; i++) EXPECT_EQ(fcntl(got.descriptors[i], F_GETFD), FD_CLOEXEC);
    strata_shared_close(&got);
}

typedef void (*lie_fn)(strata_shared_t *shared);
static void no_segments(strata_shared_t *s) { s->count = 0; }
static void too_many(strata_shared_t *s) { s->count = STRATA_SHARE_SEGMENTS + 1; }
static void far_too_many(strata_shared_t *s) { s->count = UINT32_MAX; }
static void empty_segment(strata_shared_t *s) { s->segments[0].size = 0; }
static void huge_segment(strata_shared_t *s) { s->segments[0].size = UINT64_MAX - 4095; }
static void huge_sum(strata_shared_t *s) { s->segments[0].size = s->segments[1].size = 3ull << 45; }
static void no_bytes(strata_shared_t *s) { s->size = 0; }
static void too_large(strata_shared_t *s) { s->size = UINT64_MAX; }
static void beyond(strata_shared_t *s) { s->offset = s->segments[0].size; }
static void wrapped(strata_shared_t *s) { s->offset = UINT64_MAX - 100; }
static void too_short(strata_shared_t *s) { s->size = 1; }
static void crooked_segment(strata_shared_t *s) { s->segments[s->count - 1].size += 4096; }
static const lie_fn lies[] = {no_segments, too_many,  far_too_many, empty_segment, huge_segment, huge_sum,
                              no_bytes,    too_large, beyond,       wrapped,       too_short};

TEST(hostile_share, sizes_that_cannot_be_are_refused) {
    OPENED(hostile_t, h, close_hostile, open_hostile(&h));
    ASSERT_GT(h.shared.count, 1);
    for (size_t i = 0; i < COUNT(lies); i++) {
        strata_shared_t lie = h.shared;
        strata_imported_t there;
        lies[i](&lie);
        EXPECT_STATUS(STRATA_E_FORMAT, strata_import(h.rig.s, h.rig.gpu, &lie, &there));
        EXPECT_STATUS(STRATA_E_FORMAT, strata_share_send(h.ends[1], &lie));
    }
    strata_shared_t crooked = h.shared;
    strata_imported_t there;
    crooked_segment(&crooked);
    EXPECT_STATUS(STRATA_E_FORMAT, strata_import(h.rig.s, h.rig.gpu, &crooked, &there));
}

/* Descriptors of anything else: of files, of pipes, of nothing, of files that look like memory. */
TEST(hostile_share, foreign_descriptors_are_refused) {
    OPENED(hostile_t, h, close_hostile, open_hostile(&h));
    int memory = memfd_create("none", MFD_CLOEXEC),
        made[] = {open("/dev/null", O_RDWR | O_CLOEXEC), memory, h.ends[0], -1, 1 << 20};
    EXPECT_EQ(ftruncate(memory, (off_t)h.shared.segments[0].size + 40), 0);
    for (size_t i = 0; i < COUNT(made); i++) {
        strata_shared_t foreign = h.shared;
        strata_imported_t there;
        foreign.descriptors[0] = made[i];
        foreign.segments[0].number += 1000;
        EXPECT_STATUS(STRATA_E_DEVICE, strata_import(h.rig.s, h.rig.gpu, &foreign, &there));
    }
    close(made[0]);
    close(memory);
}

/* A segment of a known name cannot become larger. */
TEST(hostile_share, a_known_segment_keeps_its_size) {
    OPENED(hostile_t, h, close_hostile, open_hostile(&h));
    strata_imported_t there, none;
    ASSERT_OK(strata_import(h.rig.s, h.rig.gpu, &h.shared, &there));
    strata_shared_t lie = h.shared;
    lie.segments[lie.count - 1].size *= 2;
    EXPECT_STATUS(STRATA_E_FORMAT, strata_import(h.rig.s, h.rig.gpu, &lie, &none));
    EXPECT_OK(strata_import_end(h.rig.s, there.id));
}

/* Whoever sends names of another sender's segments gets nothing of them. */
TEST(hostile_share, senders_share_no_names) {
    OPENED(hostile_t, h, close_hostile, open_hostile(&h));
    strata_imported_t there, none;
    ASSERT_OK(strata_import(h.rig.s, h.rig.gpu, &h.shared, &there));
    strata_shared_t lie = h.shared;
    lie.sender = 77;
    for (uint32_t i = 0; i < lie.count; i++) lie.descriptors[i] = -1;
    EXPECT_STATUS(STRATA_E_DEVICE, strata_import(h.rig.s, h.rig.gpu, &lie, &none));
    EXPECT_OK(strata_import_end(h.rig.s, there.id));
}

/* The bytes of an honest message, with these descriptors. */
static void send_bytes(int socket, const unsigned char *bytes, size_t size, const int *numbers, size_t count) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * 253)];
    } control = {0};
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(&control.header), numbers, sizeof(int) * count);
    }
    EXPECT_EQ(sendmsg(socket, &message, MSG_NOSIGNAL), (ssize_t)size);
}

/* The descriptors of the honest message. Returns their number. */
static size_t honest(const hostile_t *h, int numbers[253]) {
    memcpy(numbers, h->shared.descriptors, h->shared.count * sizeof *numbers);
    numbers[h->shared.count] = h->shared.lease;
    return h->shared.count + 1;
}

/* What strata_share_send() writes, without its descriptors. */
static size_t written(hostile_t *h, unsigned char bytes[8192]) {
    EXPECT_OK(strata_share_send(h->ends[1], &h->shared));
    ssize_t size = read(h->ends[0], bytes, 8192);
    EXPECT_GT(size, 0);
    return (size_t)size;
}

TEST(hostile_share, every_cut_of_a_message_is_refused) {
    OPENED(hostile_t, h, close_hostile, open_hostile(&h));
    unsigned char bytes[8192];
    size_t size = written(&h, bytes);
    int before = open_descriptors(), numbers[253];
    size_t count = honest(&h, numbers);
    for (size_t cut = 0; cut < size; cut++) {
        int ends[2];
        strata_shared_t got = {.count = 9};
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        if (cut) send_bytes(ends[1], bytes, cut, numbers, count);
        close(ends[1]);
        EXPECT_STATUS(STRATA_E_IO, strata_share_receive(ends[0], &got));
        EXPECT_EQ(got.count, 9);
        close(ends[0]);
    }
    EXPECT_EQ(open_descriptors(), before);
}

/* Every byte changed: it is refused, or what it says is checked at the import. No descriptor stays open. */
TEST(hostile_share, every_changed_byte_is_survived) {
    OPENED(hostile_t, h, close_hostile, open_hostile(&h));
    unsigned char bytes[8192];
    size_t size = written(&h, bytes), imported = 0;
    int before = open_descriptors(), numbers[253];
    size_t count = honest(&h, numbers);
    for (size_t at = 0; at < size; at++) {
        int ends[2];
        strata_shared_t got = {0};
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        bytes[at] ^= 0xff;
        send_bytes(ends[1], bytes, size, numbers, count);
        close(ends[1]);
        if (strata_share_receive(ends[0], &got) == STRATA_OK) {
            strata_imported_t there;
            if (strata_import(h.rig.s, h.rig.gpu, &got, &there) == STRATA_OK) {
                EXPECT_OK(strata_import_end(h.rig.s, there.id));
                imported++;
            }
            strata_shared_close(&got);
        }
        bytes[at] ^= 0xff;
        close(ends[0]);
    }
    EXPECT_GT(imported, 0); /* a changed owner alone is no lie */
    EXPECT_EQ(open_descriptors(), before);
}

/* Fewer descriptors than segments, more, and as many as a message can carry. */
TEST(hostile_share, other_numbers_of_descriptors_are_refused) {
    OPENED(hostile_t, h, close_hostile, open_hostile(&h));
    unsigned char bytes[8192];
    size_t size = written(&h, bytes);
    int before = open_descriptors(), numbers[253];
    const size_t counts[] = {0, 1, h.shared.count, h.shared.count + 2, 250, 251, 253};
    for (size_t i = 0; i < 253; i++) numbers[i] = h.shared.descriptors[0];
    for (size_t i = 0; i < COUNT(counts); i++) {
        strata_shared_t got = {.count = 9};
        ASSERT_TRUE(counts[i] != h.shared.count + 1);
        send_bytes(h.ends[1], bytes, size, numbers, counts[i]);
        EXPECT_STATUS(STRATA_E_FORMAT, strata_share_receive(h.ends[0], &got));
        EXPECT_EQ(open_descriptors(), before);
    }
}

/* A lease that is not a pipe would keep nothing, or keep the receiver at its close. */
TEST(hostile_share, a_lease_that_is_no_pipe_is_refused) {
    OPENED(hostile_t, h, close_hostile, open_hostile(&h));
    const int wrong[] = {h.ends[0], h.shared.descriptors[0], -1, 1 << 20};
    strata_imported_t there = {.id = 5};
    int before = open_descriptors();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        strata_shared_t lie = h.shared;
        lie.lease = wrong[i];
        EXPECT_STATUS(STRATA_E_FORMAT, strata_import(h.rig.s, h.rig.gpu, &lie, &there));
        EXPECT_EQ(there.id, 5);
        EXPECT_EQ(open_descriptors(), before);
    }
}

TEST(hostile_share, a_silent_sender_is_left_in_time) {
    OPENED(hostile_t, h, close_hostile, open_hostile(&h));
    const struct timeval soon = {.tv_usec = 20 * 1000};
    strata_shared_t got;
    EXPECT_EQ(setsockopt(h.ends[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
    EXPECT_EQ(write(h.ends[1], "abc", 3), 3);
    EXPECT_STATUS(STRATA_E_IO, strata_share_receive(h.ends[0], &got));
}

TEST(hostile_share, only_unix_streams_carry_memory) {
    OPENED(hostile_t, h, close_hostile, open_hostile(&h));
    int packets[2];
    strata_shared_t got;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets), 0);
    const int wrong[] = {-1, packets[0], h.shared.descriptors[0]};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        EXPECT_STATUS(STRATA_E_INVALID, strata_share_send(wrong[i], &h.shared));
        EXPECT_STATUS(STRATA_E_INVALID, strata_share_receive(wrong[i], &got));
    }
    close(packets[0]);
    close(packets[1]);
}
