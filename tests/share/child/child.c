/* The other process: share_child ROLE SOCKET.
 *
 *     export   sends three blocks of one facade (7, 8, 9 in their bytes), waits for a byte, and answers with the first byte of each
 *     import   maps what comes until the end; answers each with the first byte of the block, after adding 100 to it
 *     hold     maps one block, answers, and waits for its end, whatever end that is
 *     borrow   maps one block after the other: answers each, waits for a byte, ends the import, and answers
 *     tell     writes a strata_shared_t of one block (9 in its bytes) as plain bytes, keeps it, and waits for a byte
 */
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "lab/conform/rig/rig.h"

enum { BLOCKS = 3 };

static bool failed;

void strata_test_failed(const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    failed = true;
}

bool strata_test_has_failed(void) { return failed; }

static uint8_t *view(rig_t *rig, const void *ptr) { return strata_device_host_view(rig->devices[0], (uintptr_t)ptr, 1); }

static void answer(int socket, uint8_t byte) { EXPECT_EQ(write(socket, &byte, 1), 1); }

static void fill(rig_t *rig, const strata_block_t *block, uint8_t byte) {
    EXPECT_OK(strata_device_fill(rig->devices[0], (uintptr_t)block->ptr, byte, block->size, NULL));
}

static void export_blocks(rig_t *rig, int socket) {
    strata_block_t blocks[BLOCKS];
    strata_shared_t shared;
    uint8_t byte;
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = rig_allocate(rig, NULL, (i + 1) * 5 * MIB / 2);
        fill(rig, &blocks[i], (uint8_t)(7 + i));
        EXPECT_OK(strata_export(rig->s, blocks[i].ref, &shared));
        EXPECT_OK(strata_share_send(socket, &shared));
        strata_shared_close(&shared);
    }
    EXPECT_EQ(read(socket, &byte, 1), 1);
    for (size_t i = 0; i < BLOCKS; i++) answer(socket, *view(rig, blocks[i].ptr));
}

static bool import_one(rig_t *rig, int socket, strata_imported_t *imported) {
    strata_shared_t shared;
    if (strata_share_receive(socket, &shared) != STRATA_OK) return false;
    EXPECT_OK(strata_import(rig->s, rig->gpu, &shared, imported));
    strata_shared_close(&shared);
    answer(socket, *view(rig, imported->ptr));
    *view(rig, imported->ptr) = (uint8_t)(*view(rig, imported->ptr) + 100);
    answer(socket, 0);
    return true;
}

static void import_all(rig_t *rig, int socket) {
    strata_imported_t imported;
    while (import_one(rig, socket, &imported)) EXPECT_OK(strata_import_end(rig->s, imported.id));
}

static void hold_one(rig_t *rig, int socket) {
    strata_imported_t imported = {0};
    uint8_t byte;
    EXPECT_TRUE(import_one(rig, socket, &imported));
    (void)!read(socket, &byte, 1);
    EXPECT_OK(strata_import_end(rig->s, imported.id));
}

static void borrow_all(rig_t *rig, int socket) {
    strata_imported_t imported;
    uint8_t byte;
    while (import_one(rig, socket, &imported)) {
        (void)!read(socket, &byte, 1);
        EXPECT_OK(strata_import_end(rig->s, imported.id));
        (void)!write(socket, "", 1);
    }
}

static void tell_one(rig_t *rig, int socket) {
    strata_block_t block = rig_allocate(rig, NULL, 5 * MIB);
    strata_shared_t shared;
    uint8_t byte;
    fill(rig, &block, 9);
    EXPECT_OK(strata_export(rig->s, block.ref, &shared));
    EXPECT_EQ(write(socket, &shared, sizeof shared), sizeof shared);
    EXPECT_EQ(read(socket, &byte, 1), 1);
    strata_shared_close(&shared);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    rig_t rig;
    int socket = atoi(argv[2]);
    rig_open_on(&rig, rig_strategy("stack: [stream_safe, auto_growth_vmm, vmm]\n", NULL, 0),
                &(strata_sim_options_t){.devices = 1, .contents = true, .capacity = GIB}, 0);
    rig.borrowed_strategy = false;
    if (strcmp(argv[1], "export") == 0) export_blocks(&rig, socket);
    else if (strcmp(argv[1], "import") == 0) import_all(&rig, socket);
    else if (strcmp(argv[1], "tell") == 0) tell_one(&rig, socket);
    else if (strcmp(argv[1], "borrow") == 0) borrow_all(&rig, socket);
    else hold_one(&rig, socket);
    rig_finish(&rig);
    return failed;
}
