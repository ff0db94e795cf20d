#include "tests/caching/model.h"

#define MIB (1ull << 20)

static uint64_t rounded(uint64_t size) { return (size + 511) / 512 * 512; }

static bool is_whole(const model_t *model, const model_block_t *block) {
    uint32_t parts = 0;
    for (uint32_t i = 0; i < model->count; i++) parts += model->blocks[i].segment == block->segment;
    return parts == 1;
}

static model_block_t *add(model_t *model, model_block_t block) {
    uint32_t at = 0;
    while (at < model->count && model->blocks[at].segment) at++;
    if (at == model->count) model->count++;
    model->blocks[at] = block;
    return &model->blocks[at];
}

static bool fits(const model_block_t *block, uint32_t stream, uint64_t size) {
    return block->segment && !block->live && block->stream == stream && block->large == (size > MIB) && block->size >= size;
}

static model_block_t *best(model_t *model, uint32_t stream, uint64_t size) {
    model_block_t *found = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        model_block_t *block = &model->blocks[i];
        if (!fits(block, stream, size)) continue;
        if (!found || block->size < found->size || (block->size == found->size && block->at < found->at)) found = block;
    }
    if (!found) return 0;
    bool oversize = size >= model->max_split;
    if (!oversize && found->size >= model->max_split) return 0;
    return oversize && found->size >= size + model->rounding ? 0 : found;
}

static model_block_t *serve(model_t *model, model_block_t *block, uint64_t size) {
    uint64_t rest = block->size - size;
    bool cut = block->large ? size < model->max_split && rest > MIB : rest >= 512;
    block->live = true;
    if (!cut) return block;
    model_block_t behind = *block;
    behind.at += size;
    behind.size = rest;
    behind.live = false;
    block->size = size;
    (void)add(model, behind);
    return block;
}

model_block_t *model_allocate(model_t *model, uint32_t stream, uint64_t size, uint64_t *segment) {
    size = rounded(size);
    *segment = size <= MIB ? 2 * MIB : size < 10 * MIB ? 20 * MIB : (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    model_block_t *block = best(model, stream, size);
    return block ? serve(model, block, size) : 0;
}

model_block_t *model_grow(model_t *model, uint32_t stream, uint64_t size, uint64_t at, uint64_t segment) {
    model_block_t fresh = {.at = at, .size = segment, .segment = ++model->segments, .stream = stream};
    fresh.large = rounded(size) > MIB;
    return serve(model, add(model, fresh), rounded(size));
}

void model_free(model_t *model, uint64_t at) {
    model_block_t *block = 0;
    for (uint32_t i = 0; i < model->count; i++)
        if (model->blocks[i].segment && model->blocks[i].live && model->blocks[i].at == at) block = &model->blocks[i];
    if (!block) return;
    block->live = false;
    for (uint32_t i = 0; i < model->count; i++) {
        model_block_t *other = &model->blocks[i];
        if (other == block || other->segment != block->segment || other->live) continue;
        if (other->at + other->size != block->at && block->at + block->size != other->at) continue;
        if (other->at < block->at) block->at = other->at;
        block->size += other->size;
        other->segment = 0;
    }
}

uint64_t model_release(model_t *model) {
    uint64_t released = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        model_block_t *block = &model->blocks[i];
        if (!block->segment || block->live || !is_whole(model, block)) continue;
        released += block->size;
        block->segment = 0;
    }
    return released;
}

uint64_t model_reserved(const model_t *model) {
    uint64_t reserved = 0;
    for (uint32_t i = 0; i < model->count; i++) reserved += model->blocks[i].segment ? model->blocks[i].size : 0;
    return reserved;
}
