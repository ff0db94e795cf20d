/* Writes a profile as a file, and the page that describes such files. */
#include <string.h>

#include "allocation/options/option.h"
#include "config/profile/fields.h"
#include "config/profile/profile.h"
#include "config/words.h"

enum { VALUE = 96, AT = 44 /* column where comments begin */ };

void strata_profile_write(strata_output_t *out, const strata_sim_profile_t *profile, strata_profile_note_fn note,
                          const void *context) {
    char value[VALUE];
    strata_output_print(out, "profile: \"%s\"\n", profile->name);
    for (size_t i = 0; i < STRATA_PROFILE_FIELDS; i++) {
        const strata_profile_field_t *field = &strata_profile_fields[i];
        const char *says = note ? note(field->name, context) : NULL;
        strata_profile_print(field, profile, value, sizeof value);
        strata_output_print(out, "%s: %-*s # %s%s%s\n", field->name, AT - (int)strlen(field->name), value, field->meaning,
                            says ? "; " : "", says ? says : "");
    }
}

/* ---- docs/profile-file.md ---- */

static const char introduction[] =
    "# Device profiles as files\n\n"
    "<!-- Made by `strata calibrate --markdown`; a test compares. The tables are in platform/sim/sim.h. -->\n\n"
    "A profile defines the memory of a simulated device and the costs of its calls. [profiles.md](profiles.md) has the built-in ones,\n"
    "`h100` and others, with their sources. A profile in a file is used wherever a device is named:\n\n"
    "    strata calibrate -o my-gpu.yaml                      # measures the GPU that is there\n"
    "    strata compare --device sim:my-gpu.yaml mine.csv\n"
    "    strata compare --device sim:my-gpu.yamlx2 mine.csv   # two of them\n\n"
    "and as `devices: sim:my-gpu.yaml` in a strategy, relative to the strategy's file. Its name ends in `.yaml` or `.yml`.\n\n"
    "```yaml\n"
    "profile: my-gpu              # its name, as in sim:my-gpu; else the file's\n"
    "extends: h100                # a built-in one: what this file does not say is as there\n"
    "total_bytes: 24GiB\n"
    "malloc: 60us + 100us/GiB\n"
    "event_record: 0.3us\n"
    "```\n\n"
    "Without `extends` every key below must be there. A cost is a time, a time for each GiB (or `/MiB`) of the call's size, or both, at\n"
    "most 900 s. A file is read like a strategy's: the same limits, and every mistake with its line and column.\n\n"
    "## What the device has\n\n"
    "| key | value | `h100` | meaning |\n|---|---|---|---|\n";

strata_status_t strata_profile_page(FILE *out) {
    const strata_sim_profile_t *example = strata_sim_profile(strata_sim_profile_name(0));
    char value[VALUE];
    fputs(introduction, out);
    for (size_t i = 0; i < STRATA_PROFILE_FIELDS; i++) {
        const strata_profile_field_t *field = &strata_profile_fields[i];
        if (!field->number && strata_profile_fields[i - 1].number)
            fputs("\n## What calls cost\n\n| key | `h100` | the call |\n|---|---|---|\n", out);
        strata_profile_print(field, example, value, sizeof value);
        fprintf(out, "| `%s` |", field->name);
        if (field->number) fprintf(out, " %s |", strata_kind_word(field->number->kind));
        fprintf(out, " %s | %s |\n", value, field->meaning);
    }
    return strata_config_written(out);
}
