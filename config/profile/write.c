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
    "A profile defines the memory of a simulated device and the costs of its calls. [profiles.md](profiles.md) lists the built-in\n"
    "ones, `h100` and others, with their sources. A profile in a file can be used wherever a device is named:\n\n"
    "    strata calibrate -o my-gpu.yaml                      # measures the GPU of this machine\n"
    "    strata compare --device sim:my-gpu.yaml mine.csv\n"
    "    strata compare --device sim:my-gpu.yamlx2 mine.csv   # two of them\n\n"
    "In a strategy it is `devices: sim:my-gpu.yaml`, relative to the strategy's file. The file's name must end in `.yaml` or\n"
    "`.yml`.\n\n"
    "```yaml\n"
    "profile: my-gpu              # name, as in sim:my-gpu; default: the file's\n"
    "extends: h100                # a built-in one, which supplies all missing keys\n"
    "total_bytes: 24GiB\n"
    "malloc: 60us + 100us/GiB\n"
    "event_record: 0.3us\n"
    "```\n\n"
    "Without `extends`, the file must have every key below. A cost is a time, a time for each GiB (or `/MiB`) of the call's size,\n"
    "or both, and at most 900 s. A profile has the same limits as a strategy file, and every error is reported with its line and\n"
    "column.\n\n"
    "## Properties of the device\n\n"
    "| key | value | `h100` | meaning |\n|---|---|---|---|\n";

strata_status_t strata_profile_page(FILE *out) {
    const strata_sim_profile_t *example = strata_sim_profile(strata_sim_profile_name(0));
    char value[VALUE];
    fputs(introduction, out);
    for (size_t i = 0; i < STRATA_PROFILE_FIELDS; i++) {
        const strata_profile_field_t *field = &strata_profile_fields[i];
        if (!field->number && strata_profile_fields[i - 1].number)
            fputs("\n## Costs of calls\n\n| key | `h100` | the call |\n|---|---|---|\n", out);
        strata_profile_print(field, example, value, sizeof value);
        fprintf(out, "| `%s` |", field->name);
        if (field->number) fprintf(out, " %s |", strata_kind_word(field->number->kind));
        fprintf(out, " %s | %s |\n", value, field->meaning);
    }
    return strata_config_written(out);
}
