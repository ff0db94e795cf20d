#include "tests/bfc/model.h"

static uint64_t rounded(uint64_t size) { return (size + 255) / 256 * 256; }

static model_block_t *add(model_t *model, model_block_t block) {
    uint32_t at = 0;
    while (at < model->count && model->blocks[at].region) at++;
    if (at == model->count) model->count++;
    model->blocks[at] = block;
    return &model->blocks[at];
}

static model_block_t *serve(model_t *model, model_block_t *block, uint64_t size) {
    block->live = true;
    if (block->size < 2 * size && block->size - size < model->cap) return block;
    model_block_t behind = *block;
    behind.at += size;
    behind.size -= size;
    behind.live = false;
    block->size = size;
    (void)add(model, behind);
    return block;
}

model_block_t *model_allocate(model_t *model, uint64_t size, uint64_t *region) {
    model_block_t *found = 0;
    size = rounded(size);
    for (uint32_t i = 0; i < model->count; i++) {
        model_block_t *block = &model->blocks[i];
        if (!block->region || block->live || block->size < size) continue;
        if (!found || block->size < found->size || (block->size == found->size && block->at < found->at)) found = block;
    }
    if (found) return serve(model, found, size);
    bool enough = model->next >= size;
    while (model->next < size) model->next *= 2;
    *region = model->next;
    if (enough) model->next *= 2;
    return 0;
}

model_block_t *model_grow(model_t *model, uint64_t size, uint64_t at, uint64_t region) {
    model_block_t fresh = {.at = at, .size = region, .region = ++model->regions};
    return serve(model, add(model, fresh), rounded(size));
}

void model_free(model_t *model, uint64_t at) {
    model_block_t *block = 0;
    for (uint32_t i = 0; i < model->count; i++)
        if (model->blocks[i].region && model->blocks[i].live && model->blocks[i].at == at) block = &model->blocks[i];
    if (!block) return;
    block->live = false;
    for (uint32_t i = 0; i < model->count; i++) {
        model_block_t *other = &model->blocks[i];
        if (other == block || other->region != block->region || other->live) continue;
        if (other->at + other->size != block->at && block->at + block->size != other->at) continue;
        if (other->at < block->at) block->at = other->at;
        block->size += other->size;
        other->region = 0;
    }
}

static bool is_whole(const model_t *model, const model_block_t *block) {
    uint32_t parts = 0;
    for (uint32_t i = 0; i < model->count; i++) parts += model->blocks[i].region == block->region;
    return parts == 1;
}

uint64_t model_release(model_t *model) {
    uint64_t released = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        model_block_t *block = &model->blocks[i];
        if (!block->region || block->live || !is_whole(model, block)) continue;
        released += block->size;
        block->region = 0;
    }
    return released;
}
