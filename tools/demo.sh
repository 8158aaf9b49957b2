#!/usr/bin/env bash
# The demo: ask one bundled trace which kernel ran, and say in words what the exit status means.
# Usage: BIN=.venv/bin tools/demo.sh TRACE
set -uo pipefail
trace=$1

note=${trace%%.json*}.md
printf '%s\n' "A flag is a request, not a guarantee. The trace shows what ran." ""
# The note says how the sample came about; its first bold line must be read before its figures.
if [[ -f $note ]]; then
    sed -n '/^\*\*/{s/\*\*//gp;q}' "$note"
    echo
fi
printf '%s\n' "\$ traceview check-dispatch $trace" ""
"$BIN/traceview" check-dispatch "$trace"
status=$?
echo
case $status in
    # In words, because a bare status is what a CI log shows and what people stumble over.
    0) echo "Exit status 0: every expectation holds. In CI this passes." ;;
    1) echo "Exit status 1: the trace proves that an expectation does not hold. In CI this fails the build." \
            "Without the check, the program would only have been slower." ;;
    3) echo "Exit status 3: the trace does not hold what is needed to judge. In CI this fails too, unless" \
            "you allow it." ;;
    *) echo "The demo could not run (exit status $status); the line above says why." >&2
       exit "$status" ;;
esac
printf '%s\n' "" "Next:" \
    "  $BIN/traceview check-dispatch YOUR_TRACE.json.gz   the same question for your own trace" \
    "  $BIN/traceview --help                              all commands" \
    "  ls sample_traces/                                  more samples, each with a note on how it was made"
