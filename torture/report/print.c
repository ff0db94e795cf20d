#include "torture/report/print.h"

#include <inttypes.h>
#include <string.h>

static void print_quoted(FILE *out, const char *text) {
    const char *end;
    for (; *text; text = end + (*end == '\n')) {
        end = text + strcspn(text, "\n");
        fputs("\n    \"", out);
        for (const char *at = text; at < end; at++) {
            if (*at == '"' || *at == '\\') fputc('\\', out);
            fputc(*at, out);
        }
        fputs(*end ? "\\n\"" : "\"", out);
    }
}

static void print_stream(FILE *out, uint32_t stream) {
    if (stream == TORTURE_NO_STREAM) fputs("TORTURE_NO_STREAM", out);
    else fprintf(out, "%u", stream);
}

static void print_place(FILE *out, uint32_t place) {
    if (place == TORTURE_PINNED) fputs("TORTURE_PINNED", out);
    else if (place == TORTURE_HOST_PLACE) fputs("TORTURE_HOST_PLACE", out);
    else fprintf(out, "%s%s", place < TORTURE_MANAGED ? "TORTURE_GPU" : "TORTURE_MANAGED", place & 1u ? " + 1" : "");
}

/* ---- as calls ---- */

static void print_order(FILE *out, uint32_t stream, torture_streams_t others, const char *call) {
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if (others >> s & 1u) fprintf(out, call, stream, s);
}

static void print_before(FILE *out, const torture_op_t *op) {
    print_order(out, op->stream, op->waits, "    torture_order(&w, %u, %u);\n");
    print_order(out, op->owner, op->owner_waits, "    torture_order(&w, %u, %u);\n");
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if (op->syncs >> s & 1u) fprintf(out, "    torture_synchronise(&w, %u);\n", s);
    print_order(out, op->blocks[0], op->borrows, "    torture_borrow(&w, %u, %u);\n");
}

static void print_allocate(FILE *out, const torture_op_t *op) {
    fprintf(out, "    torture_allocate(&w, %u, ", op->blocks[0]);
    print_place(out, op->place);
    fputs(", ", out);
    print_stream(out, op->stream);
    fprintf(out, ", &(torture_request_t){.size = %" PRIu64, op->size);
    if (op->alignment) fprintf(out, ", .alignment = %u", op->alignment);
    if (op->flags) fprintf(out, ", .flags = %u", op->flags);
    if (op->tag) fprintf(out, ", .tag = \"%s\"", op->tag);
    fputs("});\n", out);
}

static void print_work(FILE *out, const torture_op_t *op) {
    fprintf(out, "    torture_work(&w, %u, %u, (const uint8_t[]){%u", op->stream, op->us, op->blocks[0]);
    for (uint8_t i = 1; i < op->count; i++) fprintf(out, ", %u", op->blocks[i]);
    fprintf(out, "}, %u, %u);\n", op->count, op->writes);
}

static void print_free(FILE *out, const torture_op_t *op) {
    if (op->refused) fputs("    torture_refuse_events(&w, true);\n", out);
    fprintf(out, "    torture_free(&w, %u, ", op->blocks[0]);
    print_stream(out, op->how == TORTURE_COVER_FREE_ON ? op->stream : TORTURE_NO_STREAM);
    fprintf(out, ", %s, %s);\n", op->last ? "true" : "false", op->by_pointer ? "true" : "false");
    if (op->refused) fputs("    torture_refuse_events(&w, false);\n", out);
}

static void print_at_place(FILE *out, const char *call, const torture_op_t *op) {
    fprintf(out, "    torture_%s(&w, ", call);
    print_place(out, op->place);
    if (op->kind == TORTURE_TRIM) fprintf(out, ", %" PRIu64, op->size);
    fputs(");\n", out);
}

static void print_call(FILE *out, const torture_op_t *op) {
    uint8_t block = op->blocks[0];
    print_before(out, op);
    switch ((torture_kind_t)op->kind) {
    case TORTURE_ALLOCATE: print_allocate(out, op); return;
    case TORTURE_WORK: print_work(out, op); return;
    case TORTURE_FILL: fprintf(out, "    torture_fill(&w, %u, %u);\n", op->stream, block); return;
    case TORTURE_HOST: fprintf(out, "    torture_host(&w, %u, %s);\n", block, op->writes & 1u ? "true" : "false"); return;
    case TORTURE_CHECK: fprintf(out, "    torture_check(&w, %u);\n", block); return;
    case TORTURE_BORROW: fprintf(out, "    torture_borrow(&w, %u, %u);\n", block, op->stream); return;
    case TORTURE_ERASE: fprintf(out, "    torture_erase(&w, %u, %u);\n", block, op->stream); return;
    case TORTURE_RETAIN: fprintf(out, "    torture_retain(&w, %u);\n", block); return;
    case TORTURE_FREE: print_free(out, op); return;
    case TORTURE_RENEW: fprintf(out, "    torture_renew(&w, %u);\n", op->stream); return;
    case TORTURE_RELEASE: print_at_place(out, "release", op); return;
    case TORTURE_TRIM: print_at_place(out, "trim", op); return;
    case TORTURE_LOOK:
        if (op->count) fprintf(out, "    torture_look_at(&w, %u);\n", block);
        else print_at_place(out, "look", op);
        return;
    case TORTURE_PASS: fprintf(out, "    torture_pass(&w, %u);\n", op->us); return;
    case TORTURE_ORDER:
    case TORTURE_SYNCHRONISE:
    case TORTURE_KINDS: return;
    }
}

static void print_calls(FILE *out, const torture_program_t *program, const torture_page_t *page) {
    fputs("    torture_world_t w;\n    torture_world_open(&w, list.all[0].strategy, &(torture_setting_t){", out);
    fprintf(out, ".devices = %u", program->devices);
    if (program->capacity) fprintf(out, ", .capacity = %" PRIu64, program->capacity);
    if (program->check_stream_ids) fputs(", .check_stream_ids = true", out);
    if (page->may_refuse) fputs(", .may_refuse = true", out);
    fputs("});\n", out);
    for (uint32_t i = 0; i < program->count; i++) print_call(out, &program->ops[i]);
    fputs("    torture_world_end(&w);\n    torture_strategies_delete(&list);\n"
          "    if (w.verdict.fault) FAIL_TEST(\"%s\", w.verdict.text);\n}\n",
          out);
}

/* ---- as a table ---- */

static void print_number(FILE *out, const char *field, uint64_t value) {
    if (value) fprintf(out, ", .%s = %" PRIu64, field, value);
}

static void print_row(FILE *out, const torture_op_t *op) {
    fprintf(out, "    {.kind = TORTURE_%s", torture_kind_name((torture_kind_t)op->kind));
    print_number(out, "thread", op->thread);
    print_number(out, "place", op->place);
    print_number(out, "stream", op->stream);
    print_number(out, "other", op->other);
    print_number(out, "how", op->how);
    print_number(out, "by_pointer", op->by_pointer);
    print_number(out, "refused", op->refused);
    print_number(out, "count", op->count);
    if (op->count) fprintf(out, ", .blocks = {%u, %u, %u}", op->blocks[0], op->blocks[1], op->blocks[2]);
    print_number(out, "writes", op->writes);
    print_number(out, "flags", op->flags);
    print_number(out, "alignment", op->alignment);
    print_number(out, "us", op->us);
    print_number(out, "size", op->size);
    if (op->tag) fprintf(out, ", .tag = \"%s\"", op->tag);
    fputs("},\n", out);
}

static const char *mode_name(torture_mode_t mode) {
    static const char *const names[] = {
#define TORTURE_MODE_NAME(name, text) "TORTURE_" #name,
        TORTURE_MODE_MAP(TORTURE_MODE_NAME)
#undef TORTURE_MODE_NAME
    };
    return names[mode];
}

static void print_threads(FILE *out, const torture_program_t *program, const torture_page_t *page) {
    fputs("    static torture_program_t program;\n    static torture_verdict_t verdict;\n", out);
    fprintf(out, "    program = (torture_program_t){.devices = %u, .threads = %u, .capacity = %" PRIu64, program->devices,
            program->threads, program->capacity);
    fprintf(out, "%s, .count = %u};\n", program->check_stream_ids ? ", .check_stream_ids = true" : "", program->count);
    fputs("    memcpy(program.ops, operations, sizeof operations);\n", out);
    fprintf(out, "    torture_law(&program, %s);\n",
            page->dialect == TORTURE_USE_COVERS ? "TORTURE_USE_COVERS" : "TORTURE_FREE_COVERS");
    fprintf(out, "    torture_play(&program, list.all[0].strategy, %s, %s, &verdict);\n", page->may_refuse ? "true" : "false",
            mode_name(page->mode));
    fputs("    torture_strategies_delete(&list);\n    if (verdict.fault) FAIL_TEST(\"%s\", verdict.text);\n}\n", out);
}

void torture_print(FILE *out, const torture_program_t *program, const torture_page_t *page) {
    bool threads = page->mode != TORTURE_INTERLEAVED;
    if (page->about) fprintf(out, "/* %s */\n", page->about);
    if (threads) fputs("#include <string.h>\n\n", out);
    fputs("#include \"tests/harness/test.h\"\n#include \"torture/play.h\"\n#include \"torture/strategies.h\"\n\n", out);
    fputs("static const char strategy[] =", out);
    print_quoted(out, page->strategy);
    fputs(";\n\n", out);
    if (threads) {
        fputs("static const torture_op_t operations[] = {\n", out);
        for (uint32_t i = 0; i < program->count; i++) print_row(out, &program->ops[i]);
        fputs("};\n\n", out);
    }
    fprintf(out, "TEST(torture, %s) {\n    torture_strategies_t list = {0};\n", page->name);
    fputs("    ASSERT_OK(torture_add_text(&list, \"strategy\", strategy));\n", out);
    if (threads) print_threads(out, program, page);
    else print_calls(out, program, page);
}
