/* The functions of allocation/uses/uses.h under other names, for a copy of them that does something else. */
#ifndef STRATA_TESTS_CHECKER_COPIED_USES_H
#define STRATA_TESTS_CHECKER_COPIED_USES_H

#define strata_uses_init              copied_uses_init
#define strata_uses_destroy           copied_uses_destroy
#define strata_uses_move              copied_uses_move
#define strata_uses_user              copied_uses_user
#define strata_uses_note              copied_uses_note
#define strata_uses_note_now          copied_uses_note_now
#define strata_uses_erase             copied_uses_erase
#define strata_uses_drop_all          copied_uses_drop_all
#define strata_uses_acquire_event     copied_uses_take_event
#define strata_uses_free              copied_uses_free
#define strata_uses_wait_for_user     copied_uses_wait_for_user
#define strata_uses_append            copied_uses_append
#define strata_uses_reduce            copied_uses_reduce
#define strata_uses_poll              copied_uses_poll
#define strata_uses_poll_brief        copied_uses_glance
#define strata_uses_wait              copied_uses_wait
#define strata_uses_pop_done          copied_uses_take_done
#define strata_uses_add_pending       copied_uses_tell_pending
#define strata_uses_each_wait         copied_uses_each_wait
#define strata_uses_stream_destroyed  copied_uses_stream_gone
#define strata_uses_mark_end          copied_uses_mark_end
#define strata_uses_detach            copied_uses_leave
#define strata_uses_enter_handle      copied_uses_enter_handle
#define strata_uses_exit_handle       copied_uses_leave_handle
#define strata_uses_capture_begin     copied_uses_capture_begin
#define strata_uses_hold_for_captures copied_uses_keep
#define strata_uses_resume_kept       copied_uses_take_up
#define strata_uses_capture_end       copied_uses_capture_end
#define strata_uses_validate          copied_uses_validate
#define strata_uses_add_done          copied_uses_add_done
#define strata_uses_drop_event        copied_uses_drop_event
#define strata_uses_enqueue           copied_uses_enqueue
#define strata_uses_end               copied_uses_end
#define strata_uses_count             copied_uses_count
#define strata_uses_quarantine        copied_uses_quarantine

#endif
